//! Thread pointers by segment. An instruction that sets FS waits until all that was stored before is in the cache, which
//! takes long where other ranks read it; a segment register is loaded without waiting. Segments begin below 4 GiB, so the
//! main thread's pointers lie there in both halves: the upper one because its dynamic linker gets low places for what it
//! maps before it sets the pointer, the lower one because the main thread borrows that of a parked thread with a low stack.
//! Where any of this cannot be had, calls are slower and nothing else.
use crate::space::{LOW, PAGE, Table};
use crate::sys::{self, syscall};
use crate::{gate, threads};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

/// Where the stack of the parked thread lies: below all programs, and apart from [`LOW`], so that the kernel does not join
/// the two.
const STACK: Range<usize> = LOW.start - 0x6_0000..LOW.start - 0x2_0000;

/// Selectors of the lower and the upper half's segment, the first two of the process's own table.
pub(crate) const LOWER: u16 = selector(0);
/// See [`LOWER`].
pub(crate) const UPPER: u16 = selector(1);

const fn selector(entry: u16) -> u16 {
    entry << 3 | 7
}

/// The main thread's pointer in the upper half if both halves' segments are set, else zero.
pub(crate) static UPPER_BASE: AtomicUsize = AtomicUsize::new(0);
/// The same of the lower half, on whose segment the main thread runs.
static LOWER_BASE: AtomicUsize = AtomicUsize::new(0);

/// The base of GS, which neither half needs, for programs that do.
pub(crate) fn gs() -> usize {
    let gs;
    // SAFETY: reads a register; the processor has the instruction, as the crossing needs its kind.
    unsafe { std::arch::asm!("rdgsbase {}", out(reg) gs, options(nomem, nostack, preserves_flags)) };
    gs
}

/// Sets it.
///
/// # Safety
/// Nothing of the calling thread relies on the last one.
pub(crate) unsafe fn set_gs(gs: usize) {
    // SAFETY: the caller's; as above.
    unsafe { std::arch::asm!("wrgsbase {}", in(reg) gs, options(nomem, nostack, preserves_flags)) };
}

/// Has the calling thread, the main one, borrow a thread pointer of the lower half that lies low. To be called before it
/// does anything that depends on the thread.
pub(crate) fn borrow() {
    let Some(lower) = parked() else { return };
    if describe(LOWER, lower) {
        // SAFETY: a thread pointer that the C library made, of a thread that does nothing with it.
        unsafe { std::arch::asm!("mov fs, {:e}", in(reg) u32::from(LOWER), options(nostack, preserves_flags)) };
        LOWER_BASE.store(lower, Relaxed);
    }
}

/// The thread pointer of a thread with a low stack that is parked for good; none if there can be no such thread.
fn parked() -> Option<usize> {
    static POINTER: AtomicUsize = AtomicUsize::new(0);
    static IS_SET: AtomicU32 = AtomicU32::new(0);
    extern "C" fn park(_: *mut libc::c_void) -> *mut libc::c_void {
        threads::park(|pointer| {
            POINTER.store(pointer, Relaxed);
            IS_SET.store(1, Release);
            sys::wake(&IS_SET);
        })
    }
    let (start, len) = (STACK.start as *mut libc::c_void, STACK.len());
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: a new mapping, given to a thread that never ends; all signals are blocked there.
    unsafe {
        let at = libc::mmap(start, len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if at == libc::MAP_FAILED {
            return None;
        }
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        libc::pthread_attr_init(&raw mut attributes);
        let mut thread = 0;
        let made = at == start
            && libc::pthread_attr_setstack(&raw mut attributes, at, len) == 0
            && threads::without_signals(|| {
                libc::pthread_create(&raw mut thread, &raw const attributes, park, std::ptr::null_mut())
            }) == 0;
        libc::pthread_attr_destroy(&raw mut attributes);
        if !made {
            libc::munmap(at, len);
            return None;
        }
    }
    while IS_SET.load(Acquire) == 0 {
        sys::wait(&IS_SET, 0);
    }
    Some(POINTER.load(Relaxed))
}

/// Sets the segment of the upper half's main thread. Runs under either thread pointer.
pub(crate) fn set_upper(pointer: usize) {
    UPPER_BASE.store(0, Relaxed);
    if LOWER_BASE.load(Relaxed) != 0 && describe(UPPER, pointer) {
        UPPER_BASE.store(pointer, Relaxed);
    }
}

/// Writes a segment that begins at this address; false if there can be none.
fn describe(selector: u16, base: usize) -> bool {
    const WRITE: usize = 0x11;
    /// Of 32 bits, counted in pages, useable.
    const DATA: u32 = 1 | 1 << 4 | 1 << 6;
    let Ok(base) = u32::try_from(base) else { return false };
    // The kernel's `user_desc`.
    let entry = [u32::from(selector) >> 3, base, 0xf_ffff, DATA];
    // SAFETY: reads the local words; nobody has a segment of this number but this module.
    unsafe { syscall!(libc::SYS_modify_ldt, WRITE, entry.as_ptr(), size_of_val(&entry)) == 0 }
}

/// Where the upper half's dynamic linker gets memory that its thread pointer may come to lie in; none once that is set, or
/// where there is no use in it.
pub(crate) fn place(table: &Table, len: usize) -> Option<usize> {
    let lower = LOWER_BASE.load(Relaxed);
    let early = lower != 0 && gate::thread_pointer() == lower;
    if early { table.find_in(LOW, len, PAGE) } else { None }
}
