//! System calls without the C library: they set no `errno`, hence need no thread-local storage, hence work under the
//! thread pointer of either half.
use std::arch::asm;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// As many calls were made here, but for what threads have counted at the same time.
pub(crate) static CALLS: AtomicU32 = AtomicU32::new(0);

/// A system call; a negative result is an error number.
///
/// # Safety
/// That of the call itself.
#[inline(always)]
pub(crate) unsafe fn call(number: usize, args: [usize; 6]) -> isize {
    let result: isize;
    CALLS.store(CALLS.load(Relaxed).wrapping_add(1), Relaxed);
    // SAFETY: the caller's; the kernel changes rax, rcx and r11 only.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2], in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _, options(nostack))
    };
    result
}

/// A system call of up to six arguments, the rest zero.
macro_rules! syscall {
    ($number:expr $(, $arg:expr)*) => {{
        let mut args = [0usize; 6];
        let given = [$($arg as usize),*];
        let mut i = 0;
        while i < given.len() {
            args[i] = given[i];
            i += 1;
        }
        crate::sys::call($number as usize, args)
    }};
}
pub(crate) use syscall;

/// An error number as a result of a system call.
pub(crate) const fn error(number: i32) -> isize {
    -(number as isize)
}

/// Whether a result is an error number.
pub(crate) const fn failed(result: isize) -> bool {
    result < 0 && result > -4096
}

/// The process's number, as the kernel has it now.
pub(crate) fn getpid() -> u32 {
    // SAFETY: takes and changes nothing.
    (unsafe { call(libc::SYS_getpid as usize, [0; 6]) }) as u32
}

/// The thread's number, as the kernel has it now.
pub(crate) fn gettid() -> u32 {
    // SAFETY: takes and changes nothing.
    (unsafe { call(libc::SYS_gettid as usize, [0; 6]) }) as u32
}

/// Waits while `word` holds `value`, or until a signal.
pub(crate) fn wait(word: &std::sync::atomic::AtomicU32, value: u32) {
    // SAFETY: the word lives through the call.
    unsafe { syscall!(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, 0) };
}

/// Wakes all who wait for `word`.
pub(crate) fn wake(word: &std::sync::atomic::AtomicU32) {
    // SAFETY: the word lives through the call.
    unsafe { syscall!(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Sets the calling thread's mask of blocked signals and returns the old one.
pub(crate) fn set_mask(mask: u64) -> u64 {
    let mut old = 0u64;
    // SAFETY: both words live through the call.
    unsafe { syscall!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, &raw mut old, 8) };
    old
}
