//! Calls that the stop of a thread ended early. They are made again, so that the program does not see it: the kernel does so
//! itself for most, but not for those that wait for a time.
use crate::stub;
use libc::{REG_RAX, REG_RDI, REG_RIP};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering::*};

const WAITS: [i64; 17] = [
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
    libc::SYS_pause,
    libc::SYS_futex,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
];

/// The call in which a thread waits as it is asked to stop.
pub(crate) struct Waiting {
    number: AtomicUsize,
    /// Its first argument.
    first: AtomicUsize,
    /// Where it returns to.
    at: AtomicUsize,
}

impl Waiting {
    pub(crate) const fn new() -> Self {
        Self { number: AtomicUsize::new(0), first: AtomicUsize::new(0), at: AtomicUsize::new(0) }
    }

    /// Notes where a thread waits, if it does.
    pub(crate) fn note(&self, tid: u32) {
        let line = fs::read_to_string(format!("/proc/self/task/{tid}/syscall")).unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let address = |word: &str| usize::from_str_radix(word.strip_prefix("0x")?, 16).ok();
        // The number, six arguments, the stack pointer, the instruction pointer.
        let call = match words[..] {
            [number, first, _, _, _, _, _, _, at] => number.parse().ok().zip(address(first)).zip(address(at)),
            _ => None,
        };
        let ((number, first), at) = call.unwrap_or_default();
        self.number.store(number, Relaxed);
        self.first.store(first, Relaxed);
        self.at.store(at, Release);
    }

    /// The number of the call, if it is the one that returns with these registers.
    fn of(&self, registers: &[libc::greg_t; 23]) -> Option<usize> {
        let at = self.at.load(Acquire);
        let same = at == registers[REG_RIP as usize] as usize
            && self.first.load(Relaxed) == registers[REG_RDI as usize] as usize;
        same.then(|| self.number.load(Relaxed))
    }
}

/// Lets a call that the stop ended early be made again.
pub(crate) fn repeat(registers: &mut [libc::greg_t; 23], waiting: &Waiting) {
    if registers[REG_RAX as usize] != -i64::from(libc::EINTR) {
        return;
    }
    let at = registers[REG_RIP as usize] as usize;
    let number = if stub::contains(at) {
        stub::number(at).filter(|_| at % 16 == 2)
    } else {
        // `mov eax, number; syscall`, all in one page that the thread executes.
        let page = at & 4095;
        let code = (page >= 7).then(|| {
            // SAFETY: the bytes before the instruction pointer, in the same page.
            unsafe { ((at - 7) as *const [u8; 7]).read_unaligned() }
        });
        match code {
            Some([0xb8, a, b, c, d, 0xf, 5]) => Some(u32::from_le_bytes([a, b, c, d]) as usize),
            _ => waiting.of(registers),
        }
    };
    if let Some(number) = number.filter(|n| WAITS.contains(&(*n as i64))) {
        registers[REG_RAX as usize] = number as i64;
        registers[REG_RIP as usize] -= 2;
    }
}
