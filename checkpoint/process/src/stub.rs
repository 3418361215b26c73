//! Reissued system calls: where a trapped call must run as the upper half's own (because it blocks, and a thread that is
//! saved must not stand in the host), its instruction pointer is moved to a stub outside the fence that repeats the
//! `syscall` and returns to where the first one would have. Stubs lie at a fixed address, so a thread saved in one goes on
//! in another host. One more stub makes a call of the gate again ([`gate::again`]).
use crate::own::Guarded;
use crate::{Error, gate};
use std::io;

/// Address of the stubs: behind the gate's page.
const STUBS: usize = 0x1fff_fff1_0000;
/// `syscall; mov rcx, imm64; jmp rcx`: rcx holds the return address after a system call anyway.
const SIZE: usize = 16;
/// As many can be handed out; one more stands behind them.
const COUNT: usize = 4095;
/// The stub that lets other threads have the processor and then goes through the gate, with the registers of a call.
pub(crate) const AGAIN: usize = STUBS + SIZE * COUNT;
/// What is mapped.
const LENGTH: usize = SIZE * (COUNT + 1);

struct Stubs {
    mapped: bool,
    count: usize,
    /// Where each returns to, and the call's number.
    calls: [(usize, usize); COUNT],
}

static TABLE: Guarded<Stubs> = Guarded::new(Stubs { mapped: false, count: 0, calls: [(0, 0); COUNT] });

/// Whether an address lies in the stubs.
pub(crate) fn contains(address: usize) -> bool {
    (STUBS..STUBS + LENGTH).contains(&address)
}

/// The number of the call that the stub at an address repeats.
pub(crate) fn number(address: usize) -> Option<usize> {
    let i = address.checked_sub(STUBS)? / SIZE;
    let table = TABLE.lock_blocked();
    table.calls.get(i).filter(|_| i < table.count).map(|c| c.1)
}

fn write(i: usize, to: usize) {
    let mut code = [0xf, 5, 0x48, 0xb9, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe1, 0x90, 0x90];
    code[4..12].copy_from_slice(&(to as u64).to_le_bytes());
    // SAFETY: `i` is below `COUNT`, the page is mapped, and no thread runs a stub that was not handed out yet.
    unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), (STUBS + i * SIZE) as *mut u8, SIZE) };
}

/// Maps the stubs' pages.
pub(crate) fn prepare() -> Result<(), Error> {
    let mut table = TABLE.lock();
    if table.mapped {
        return Ok(());
    }
    // SAFETY: new pages at an address that must be free.
    let page = unsafe {
        libc::mmap(
            STUBS as *mut libc::c_void,
            LENGTH,
            libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if page as usize != STUBS {
        return Err(Error::Kernel { what: "pages for reissued calls", cause: io::Error::last_os_error() });
    }
    // `push rcx; push SYS_sched_yield; pop rax; syscall; pop rcx; jmp [rip + gate]`: the call changes rcx, an argument's.
    let mut code = [0x51, 0x6a, libc::SYS_sched_yield as u8, 0x58, 0xf, 5, 0x59, 0xff, 0x25, 0, 0, 0, 0];
    let gate = (gate::GATE as isize - (AGAIN + code.len()) as isize) as i32;
    code[9..].copy_from_slice(&gate.to_le_bytes());
    // SAFETY: the last place of the pages that were just mapped, which has room for it.
    unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), AGAIN as *mut u8, code.len()) };
    table.mapped = true;
    Ok(())
}

/// The stub that repeats system call `number` and returns to `to`. None if there are too many.
pub(crate) fn stub(to: usize, number: usize) -> Option<usize> {
    let mut table = TABLE.lock_blocked();
    let count = table.count;
    if let Some(i) = table.calls.get(..count)?.iter().position(|c| *c == (to, number)) {
        return Some(STUBS + i * SIZE);
    }
    if count == COUNT || !table.mapped {
        return None;
    }
    write(count, to);
    table.calls[count] = (to, number);
    table.count = count + 1;
    Some(STUBS + count * SIZE)
}

/// The stubs' calls: where each returns to, and its number.
pub(crate) fn list() -> Vec<(usize, usize)> {
    let mut list = Vec::with_capacity(COUNT);
    let table = TABLE.lock();
    list.extend_from_slice(&table.calls[..table.count]);
    list
}

/// Writes the stubs of an image.
pub(crate) fn set(calls: &[(usize, usize)]) -> Result<(), Error> {
    if calls.len() > COUNT {
        return Err(Error::Obstacle("its list of reissued calls is not sound".into()));
    }
    prepare()?;
    let mut table = TABLE.lock();
    for (i, call) in calls.iter().enumerate() {
        write(i, call.0);
        table.calls[i] = *call;
    }
    table.count = calls.len();
    Ok(())
}
