//! Memory that the ranks of a node share (`MPI_Win_allocate_shared`). The library's own could not stay at its addresses
//! over a restart, so it is ours: a file in memory that all ranks of the window map, each at an address of its upper half,
//! and a window of the library's on each rank's part of it. An image of a rank holds the pages whose first byte is in its
//! part; at a restart a new file is made of all of these, and mapped where the old one was.
use crate::calls::{MOST, lower};
use crate::dispatch::Call;
use crate::forward::{forward, forward_with};
use crate::memory::PAGE;
use crate::session::{Session, session};
use crate::shape::Shape;
use crate::words::{handle_bytes, read_handle};
use phasecast_abi::Kind;
use phasecast_process::{complain, space};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;

/// Bytes that are copied before their first place is given up.
pub const CHUNK: usize = 4 << 20;

/// The part of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Part {
    offset: usize,
    size: usize,
    /// The unit of displacements in bytes.
    unit: usize,
}

/// A window on shared memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shared {
    /// The program's handle.
    pub window: usize,
    at: usize,
    length: usize,
    rank: usize,
    parts: Vec<Part>,
}

/// Where the parts lie and how long all is: one behind the other, or each on a page of its own.
fn laid_out(given: &[[u64; 3]]) -> (Vec<Part>, usize) {
    let apart = given.first().is_some_and(|first| first[2] != 0);
    let mut end = 0usize;
    let part = |&[size, unit, _]: &[u64; 3]| {
        let part = Part { offset: end, size: size as usize, unit: unit as usize };
        end = end.saturating_add(part.size);
        end = if apart { end.next_multiple_of(PAGE) } else { end };
        part
    };
    (given.iter().map(part).collect(), end.max(1).next_multiple_of(PAGE))
}

impl Shared {
    /// The addresses of all of it.
    pub fn whole(&self) -> Range<usize> {
        self.at..self.at + self.length
    }

    /// The addresses of the pages that this rank's image holds.
    pub fn own(&self) -> Range<usize> {
        let up = |at: usize| self.at + at.next_multiple_of(PAGE).min(self.length);
        let part = self.parts[self.rank];
        up(part.offset)..up(part.offset + part.size)
    }

    /// Where this rank's part begins.
    pub fn own_base(&self) -> usize {
        self.base(self.rank)
    }

    /// Where the part of a rank begins; null for an empty one, as the libraries have it.
    fn base(&self, rank: usize) -> usize {
        let part = self.parts[rank];
        if part.size == 0 { 0 } else { self.at + part.offset }
    }
}

/// Makes a window on shared memory: for the program, or again after a restart.
///
/// # Safety
/// `args` are those of `MPI_Win_allocate_shared`, in the program's form.
pub unsafe fn allocate(_: usize, shape: &'static Shape, args: &[usize; MOST]) -> usize {
    let mut s = session();
    let (library, comm, info) = (s.library, s.down_handle(Kind::Communicator, args[3]), args[2]);
    let apart = s.values.above("MPI_INFO_NULL") != Some(info) && s.asks_for_parts_apart(info);
    let old = s.made_again().and_then(|window| s.memory.shared(window)).cloned();
    let refused = s.values.above("MPI_ERR_RMA_SHARED").unwrap_or(1);
    drop(s);
    let (mut rank, mut size) = (0i32, 0i32);
    lower!(library, MPI_Comm_rank(comm, &raw mut rank));
    lower!(library, MPI_Comm_size(comm, &raw mut size));
    let word = library.constant("MPI_UNSIGNED_LONG").unwrap_or(0);
    let own = [args[0] as u64, args[1] as u32 as u64, u64::from(apart)];
    let mut given = vec![[0u64; 3]; size as usize];
    lower!(library, MPI_Allgather(own.as_ptr(), 3, word, given.as_mut_ptr(), 3, word, comm));
    let (parts, length) = laid_out(&given);
    let file = common_file(library, comm, rank, length);
    let mapped = file.and_then(|file| {
        if let Some(old) = &old {
            give_back(old, &file).map_err(|error| format!("the memory cannot be filled: {error}"))?;
        }
        space::share(old.as_ref().map(|old| old.at), length, file.as_raw_fd()).map_err(|error| error.to_string())
    });
    let all = agreed(library, comm, mapped.is_ok());
    let at = match mapped {
        Ok(at) if all => at,
        mapped => {
            let reason = mapped.as_ref().err().cloned();
            if let Ok(at) = mapped {
                space::take_back(at, length);
            }
            if old.is_some() {
                session().trouble = reason;
            } else {
                reason.iter().for_each(|reason| complain(format_args!("MPI_Win_allocate_shared: {reason}")));
                let code = library.constant("MPI_ERR_RMA_SHARED").unwrap_or(1);
                lower!(library, MPI_Comm_call_errhandler(comm, code));
            }
            return refused;
        }
    };
    let mut shared = Shared { window: 0, at, length, rank: rank as usize, parts };
    let index = crate::calls::index("MPI_Win_create");
    let (base, bytes) = (shared.own_base(), args[0]);
    // SAFETY: the arguments of MPI_Win_create, of which the last two stand at the same places.
    let result = unsafe {
        forward_with(index, shape, args, |below| {
            let [_, unit, info, comm, _, window] = below[..6] else { return };
            below[..6].copy_from_slice(&[base, bytes, unit, info, comm, window]);
        })
    };
    if result as i32 != 0 {
        space::take_back(at, length);
        return result;
    }
    if old.is_some() {
        touch(&shared.whole());
        return result;
    }
    let mut s = session();
    // SAFETY: the caller's: where the address goes, and the new window.
    unsafe {
        *(args[4] as *mut usize) = base;
        shared.window = read_handle(args[5], handle_bytes(s.values.upper, Kind::Window));
    }
    s.memory.shared.push(shared);
    0
}

impl Session {
    /// Whether an info says that the parts need not lie one behind the other.
    fn asks_for_parts_apart(&mut self, info: usize) -> bool {
        let (library, info) = (self.library, self.down_handle(Kind::Info, info));
        let (mut value, mut flag) = ([0u8; 8], 0i32);
        let key = c"alloc_shared_noncontig".as_ptr();
        lower!(library, MPI_Info_get(info, key, value.len() - 1, value.as_mut_ptr(), &raw mut flag));
        flag != 0 && value.starts_with(b"true")
    }
}

/// Whether all ranks of a communicator have it.
pub fn agreed(library: &crate::Library, comm: usize, ours: bool) -> bool {
    let (ours, mut all) = (i32::from(ours), 0i32);
    let [int, least] = ["MPI_INT", "MPI_MIN"].map(|name| library.constant(name).unwrap_or(0));
    lower!(library, MPI_Allreduce(&raw const ours, &raw mut all, 1, int, least, comm));
    all != 0
}

/// A file in memory that all ranks of a communicator have opened: the first has made it.
fn common_file(library: &crate::Library, comm: usize, rank: i32, length: usize) -> Result<File, String> {
    let made = if rank == 0 { Some(memory_file(length)) } else { None };
    let fd = made.as_ref().map_or(-1, |made| made.as_ref().map_or(-1, |file| i64::from(file.as_raw_fd())));
    let mut place = [i64::from(std::process::id()), fd, node()];
    let word = library.constant("MPI_LONG").unwrap_or(0);
    lower!(library, MPI_Bcast(place.as_mut_ptr(), 3, word, 0, comm));
    let [process, number, at] = place;
    let file = match made {
        Some(made) => made,
        None if at != node() => Err("the ranks of the window are not all on one node. Let the launcher place them together, as they were when the signature was made.".into()),
        None => file_of(process as u64, number as u64),
    };
    // The first keeps it until all have it.
    lower!(library, MPI_Barrier(comm));
    file
}

/// A file that a rank of this [`node`] has open.
///
/// # Errors
/// If it cannot be opened.
pub fn file_of(process: u64, number: u64) -> Result<File, String> {
    let path = format!("/proc/{process}/fd/{number}");
    let open = File::options().read(true).write(true).open(&path);
    open.map_err(|error| format!("the memory that another rank has made cannot be opened ({path}): {error}"))
}

/// A new file without a name, in memory, of so many bytes.
///
/// # Errors
/// If there is no room for it.
pub fn memory_file(length: usize) -> Result<File, String> {
    let cannot = || format!("{length} bytes of shared memory cannot be had: {}", std::io::Error::last_os_error());
    // SAFETY: makes a descriptor, which becomes the file's own.
    let file = unsafe {
        let fd = libc::memfd_create(c"phasecast-shared".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(cannot());
        }
        File::from_raw_fd(fd)
    };
    file.set_len(length as u64).map_err(|_| cannot())?;
    Ok(file)
}

/// A number of this node and its processes: ranks with the same one can open each other's files.
pub fn node() -> i64 {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let processes = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let name = format!("{} {}", read("/proc/sys/kernel/random/boot_id"), processes.display());
    (crate::log::hash(name.as_bytes()) >> 1) as i64
}

/// Whether each page of a mapping is there.
fn resident(range: &Range<usize>) -> Vec<u8> {
    let mut there = vec![0u8; range.len() / PAGE];
    // SAFETY: asks about a mapping, with a byte for each of its pages.
    unsafe { libc::mincore(range.start as *mut _, range.len(), there.as_mut_ptr()) };
    there
}

/// Stretches of pages that are there.
pub fn stretches(range: &Range<usize>) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), range.start);
    for same in resident(range).chunk_by(|a, b| a & 1 == b & 1) {
        let end = at + same.len() * PAGE;
        if same[0] & 1 != 0 {
            found.push(at..end);
        }
        at = end;
    }
    found
}

/// Writes what the image has brought into the new file; the memory in which it came is given up meanwhile.
fn give_back(old: &Shared, file: &File) -> std::io::Result<()> {
    for stretch in stretches(&old.own()) {
        for at in stretch.clone().step_by(CHUNK) {
            let length = CHUNK.min(stretch.end - at);
            // SAFETY: the image's memory, in which nothing runs yet.
            let bytes = unsafe { std::slice::from_raw_parts(at as *const u8, length) };
            file.write_all_at(bytes, (at - old.at) as u64)?;
            // SAFETY: as above; the bytes are in the file.
            unsafe { libc::madvise(at as *mut _, length, libc::MADV_REMOVE) };
        }
    }
    Ok(())
}

/// Lets the pages that are there stand in this process's tables too, as they did when it was cut: the program's first
/// touch of each would take its time.
pub fn touch(range: &Range<usize>) {
    for stretch in stretches(range) {
        // SAFETY: pages of our own mapping, which keep their content. Kernels before 5.14 leave it to the program.
        unsafe { libc::madvise(stretch.start as *mut _, stretch.len(), libc::MADV_POPULATE_WRITE) };
    }
}

/// `MPI_Win_shared_query`.
///
/// # Safety
/// A call of the gate.
pub unsafe fn query(call: &mut Call) -> usize {
    let mut s = session();
    let window = call.arg(0) & s.values.upper.layout().handle_mask as usize;
    let rank = call.arg(1) as i32;
    let first = s.values.above("MPI_PROC_NULL").map(|null| null as i32) == Some(rank);
    let Some(shared) = s.memory.shared(window) else {
        drop(s);
        // SAFETY: the caller's.
        let result = unsafe { forward(call) };
        s = session();
        if result == 0
            && let Some(made) = s.memory.allocated(window)
        {
            let (size, at) = made.told(usize::try_from(rank).ok().filter(|_| !first));
            // SAFETY: as above: where the size and the address go.
            unsafe { (*(call.arg(2) as *mut usize), *(call.arg(4) as *mut usize)) = (size, at) };
        }
        return result;
    };
    let found = if first {
        // The first that has any.
        Some(shared.parts.iter().position(|part| part.size > 0))
    } else {
        usize::try_from(rank).ok().filter(|rank| *rank < shared.parts.len()).map(Some)
    };
    let Some(rank) = found else { return s.values.above("MPI_ERR_RANK").unwrap_or(6) };
    let part = rank.map_or(Part { offset: 0, size: 0, unit: 1 }, |rank| shared.parts[rank]);
    // SAFETY: the caller's: where the size, the unit and the address go.
    unsafe {
        *(call.arg(2) as *mut usize) = part.size;
        if call.shape.procedure.name.ends_with("_c") {
            *(call.arg(3) as *mut usize) = part.unit;
        } else {
            *(call.arg(3) as *mut i32) = part.unit as i32;
        }
        *(call.arg(4) as *mut usize) = rank.map_or(0, |rank| shared.base(rank));
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(sizes: &[u64], apart: bool, rank: usize) -> Shared {
        let given: Vec<[u64; 3]> = sizes.iter().map(|&size| [size, 8, u64::from(apart)]).collect();
        let (parts, length) = laid_out(&given);
        Shared { window: 0, at: 0x10000, length, rank, parts }
    }

    #[test]
    fn parts_lie_one_behind_the_other_or_on_pages_of_their_own() {
        let offsets = |apart| shared(&[10, 0, 5000, 3], apart, 0).parts.iter().map(|p| p.offset).collect::<Vec<_>>();
        assert_eq!(offsets(false), [0, 10, 10, 5010]);
        assert_eq!(offsets(true), [0, PAGE, PAGE, 3 * PAGE]);
        assert_eq!(shared(&[0, 0], false, 0).length, PAGE);
    }

    #[test]
    fn each_page_is_in_one_image() {
        for sizes in [&[10, 0, 5000, 3][..], &[8192, 4096], &[1, 1, 1], &[4095, 2, 8190, 70000]] {
            for apart in [false, true] {
                let mut next = 0x10000;
                for rank in 0..sizes.len() {
                    let own = shared(sizes, apart, rank).own();
                    assert!(own.is_empty() || own.start == next, "{sizes:?} {rank}: {own:x?}");
                    next = next.max(own.end);
                }
                assert_eq!(next, shared(sizes, apart, 0).whole().end);
            }
        }
    }
}
