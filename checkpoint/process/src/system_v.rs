//! What the upper half asks of System V: segments of shared memory, which may be attached at a cut, and semaphores and queues of
//! messages, which no other machine has. Its calls run in the trap handler.
use crate::Error;
use crate::own::Guarded;
use crate::space::{PAGE, TABLE, page_up};
use crate::sys::{error, failed, syscall};
use libc::{EINVAL, ENOMEM};

/// What the program has asked for: by which call, and its number and one; 0 for none.
static NUMBERS: Guarded<[(i64, i32); 64]> = Guarded::new([(0, 0); 64]);

/// Whether it is there, and not a segment that is marked to be removed.
fn stays((call, number): (i64, i32)) -> bool {
    const MARKED: u32 = 0o1000;
    if number == 0 {
        return false;
    }
    let id = number - 1;
    // SAFETY: each fills a local structure.
    unsafe {
        let mut segment: libc::shmid_ds = std::mem::zeroed();
        let mut semaphores: libc::semid_ds = std::mem::zeroed();
        let mut queue: libc::msqid_ds = std::mem::zeroed();
        let result = match call {
            libc::SYS_shmget => syscall!(libc::SYS_shmctl, id, libc::IPC_STAT, &raw mut segment),
            libc::SYS_semget => syscall!(libc::SYS_semctl, id, 0, libc::IPC_STAT, &raw mut semaphores),
            _ => syscall!(libc::SYS_msgctl, id, libc::IPC_STAT, &raw mut queue),
        };
        !failed(result) && u32::from(segment.shm_perm.mode) & MARKED == 0
    }
}

/// The upper half's shmget, semget or msgget, which is this call.
///
/// # Safety
/// Called by the trap handler with the arguments of the call.
pub(crate) unsafe fn trapped_get(call: i64, [key, size, flags, ..]: [usize; 6]) -> isize {
    // SAFETY: the upper half's own call.
    let id = unsafe { syscall!(call, key, size, flags) };
    if !failed(id)
        && let Some(place) = NUMBERS.lock_blocked().iter_mut().find(|one| !stays(**one))
    {
        *place = (call, id as i32 + 1);
    }
    id
}

/// # Errors
/// If there is something that the program may ask for by its number, which another machine does not know.
pub(crate) fn none_stays() -> Result<(), Error> {
    let what = match NUMBERS.lock().iter().find(|one| stays(**one)) {
        None => return Ok(()),
        Some((libc::SYS_shmget, _)) => "a segment of System V that is not marked to be removed",
        Some((libc::SYS_semget, _)) => "semaphores of System V",
        Some(_) => "a queue of messages of System V",
    };
    Err(Error::Obstacle(format!("it has {what}")))
}

/// Segments of System V shared memory that are attached: address and length.
static SEGMENTS: Guarded<[(usize, usize); 64]> = Guarded::new([(0, 0); 64]);

/// Those that are attached.
pub(crate) fn attached() -> Vec<(usize, usize)> {
    SEGMENTS.lock().iter().copied().filter(|segment| segment.1 > 0).collect()
}

/// Takes over those of an image, in whose place there are mappings.
pub(crate) fn set_attached(segments: &[(usize, usize)]) {
    let mut table = SEGMENTS.lock();
    table.fill((0, 0));
    table.iter_mut().zip(segments).for_each(|(place, segment)| *place = *segment);
}

/// The upper half's shmat.
///
/// # Safety
/// Called by the trap handler with the arguments of the call.
pub(crate) unsafe fn trapped_shmat(args: [usize; 6]) -> isize {
    let [id, wanted, flags, ..] = args;
    // SAFETY: fills a local structure.
    let size = unsafe {
        let mut data: libc::shmid_ds = std::mem::zeroed();
        let result = syscall!(libc::SYS_shmctl, id, libc::IPC_STAT, &raw mut data);
        if failed(result) {
            return result;
        }
        data.shm_segsz
    };
    let Some(len) = page_up(size) else { return error(EINVAL) };
    let address = {
        let mut table = TABLE.lock_blocked();
        let place = if wanted != 0 { Some(wanted) } else { table.find(len, PAGE) };
        let Some(place) = place else { return error(ENOMEM) };
        // SAFETY: the upper half's own call, at a free place or where it wants it.
        let address = unsafe { syscall!(libc::SYS_shmat, id, place, flags) };
        if !failed(address) {
            table.insert(address as usize, (address as usize).wrapping_add(len));
        }
        address
    };
    if !failed(address)
        && let Some(free) = SEGMENTS.lock_blocked().iter_mut().find(|s| s.1 == 0)
    {
        *free = (address as usize, len);
    }
    address
}

/// The upper half's shmdt.
///
/// # Safety
/// Called by the trap handler with the argument of the call.
pub(crate) unsafe fn trapped_shmdt(address: usize) -> isize {
    // SAFETY: the upper half's own call.
    let mut result = unsafe { syscall!(libc::SYS_shmdt, address) };
    let mut len = 0;
    if let Some(segment) = SEGMENTS.lock_blocked().iter_mut().find(|s| s.0 == address && s.1 > 0) {
        if failed(result) {
            // After a restart another mapping stands for it.
            // SAFETY: the upper half's own mapping, which it wants gone.
            result = unsafe { syscall!(libc::SYS_munmap, address, segment.1) };
        }
        len = std::mem::take(&mut segment.1);
    }
    if len > 0 {
        TABLE.lock_blocked().remove(address, address.wrapping_add(len));
    }
    result
}
