//! Processor time that a program has used: after a restart its clocks go on from where they were at the cut.
use crate::own::{self, Guarded, Who};
use crate::sys::{self, failed, syscall};
use libc::{CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, RUSAGE_SELF, RUSAGE_THREAD, c_int};
use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};

const SECOND: i64 = 1_000_000_000;

/// Time that has been used, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Time {
    /// As the clock tells it.
    clock: i64,
    /// As the accounts tell it: by the program and for it by the kernel.
    user: i64,
    system: i64,
}

/// What a process and its main thread have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    process: Time,
    thread: Time,
}

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time { clock: self.clock + other.clock, user: self.user + other.user, system: self.system + other.system }
    }
}

impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time { clock: self.clock - other.clock, user: self.user - other.user, system: self.system - other.system }
    }
}

/// What the program had used at its cut beyond what this process had used when it went on.
static BEFORE: Guarded<Used> = Guarded::new(Used {
    process: Time { clock: 0, user: 0, system: 0 },
    thread: Time { clock: 0, user: 0, system: 0 },
});

/// What the kernel has counted for this process, or for the calling thread.
fn counted(clock: c_int, usage: c_int) -> Time {
    // SAFETY: fills local structures.
    unsafe {
        let (mut time, mut used): (libc::timespec, libc::rusage) = (std::mem::zeroed(), std::mem::zeroed());
        syscall!(libc::SYS_clock_gettime, clock, &raw mut time);
        syscall!(libc::SYS_getrusage, usage, &raw mut used);
        let all = |time: libc::timeval| time.tv_sec * SECOND + time.tv_usec * 1000;
        Time { clock: time.tv_sec * SECOND + time.tv_nsec, user: all(used.ru_utime), system: all(used.ru_stime) }
    }
}

/// What the kernel had counted for the main thread when it was stopped last.
static STOPPED: Guarded<Time> = Guarded::new(Time { clock: 0, user: 0, system: 0 });

/// The main thread, which calls this in the handler of a signal, stops here.
pub(crate) fn stopped() {
    *STOPPED.lock_blocked() = counted(CLOCK_THREAD_CPUTIME_ID, RUSAGE_THREAD);
}

/// What the program has used so far. The main thread is the calling one, or was stopped.
pub(crate) fn used() -> Used {
    let is_main = sys::gettid() == sys::getpid();
    let main = if is_main { counted(CLOCK_THREAD_CPUTIME_ID, RUSAGE_THREAD) } else { *STOPPED.lock() };
    let before = BEFORE.lock();
    Used { process: before.process + counted(CLOCK_PROCESS_CPUTIME_ID, RUSAGE_SELF), thread: before.thread + main }
}

/// From now on the program has used what it had at its cut, and what it uses. Called by the main thread just before it goes on.
pub fn go_on(used: &Used) {
    let process = used.process - counted(CLOCK_PROCESS_CPUTIME_ID, RUSAGE_SELF);
    let thread = used.thread - counted(CLOCK_THREAD_CPUTIME_ID, RUSAGE_THREAD);
    *BEFORE.lock() = Used { process, thread };
}

/// What is to be added to what the kernel tells the caller of the process, or of the calling thread: to that of a thread that
/// is not the main one nothing.
fn before(of_process: bool) -> Time {
    if own::who() != Who::Program || !of_process && sys::gettid() != sys::getpid() {
        return Time::default();
    }
    // The gate's clock runs outside the handler, where signals must be held back.
    let before = BEFORE.lock();
    if of_process { before.process } else { before.thread }
}

/// `clock_gettime` of a clock of processor time. Usable under the thread pointer of either half.
pub(crate) unsafe extern "C" fn clock_gettime(clock: c_int, out: *mut libc::timespec) -> isize {
    // SAFETY: the upper half's own call, its arguments as it gave them; the kernel has written to `out` if it succeeds.
    unsafe {
        let result = syscall!(libc::SYS_clock_gettime, clock, out);
        if !failed(result) && !out.is_null() {
            let told = out.read_unaligned();
            let all = told.tv_sec * SECOND + told.tv_nsec + before(clock == CLOCK_PROCESS_CPUTIME_ID).clock;
            out.write_unaligned(libc::timespec { tv_sec: all / SECOND, tv_nsec: all % SECOND });
        }
        result
    }
}

/// The upper half's getrusage.
///
/// # Safety
/// Called by the trap handler with the arguments of the call.
pub(crate) unsafe fn trapped_getrusage([of, out, ..]: [usize; 6]) -> isize {
    let of = of as c_int;
    // SAFETY: the upper half's own call; the kernel has written to `out` if it succeeds.
    unsafe {
        let result = syscall!(libc::SYS_getrusage, of, out);
        if !failed(result) && (of == RUSAGE_SELF || of == RUSAGE_THREAD) {
            let out = out as *mut libc::rusage;
            let mut told = out.read_unaligned();
            let before = before(of == RUSAGE_SELF);
            let later = |time: libc::timeval, before: i64| {
                let all = (time.tv_sec * SECOND + time.tv_usec * 1000 + before) / 1000;
                libc::timeval { tv_sec: all / 1_000_000, tv_usec: all % 1_000_000 }
            };
            told.ru_utime = later(told.ru_utime, before.user);
            told.ru_stime = later(told.ru_stime, before.system);
            out.write_unaligned(told);
        }
        result
    }
}

/// The upper half's times.
///
/// # Safety
/// Called by the trap handler with the argument of the call.
pub(crate) unsafe fn trapped_times(out: usize) -> isize {
    /// The kernel counts hundredths of a second here, whatever its own clock does.
    const TICK: i64 = SECOND / 100;
    // SAFETY: the upper half's own call; the kernel has written to `out` if it succeeds.
    unsafe {
        let result = syscall!(libc::SYS_times, out);
        if !failed(result) && out != 0 {
            let out = out as *mut libc::tms;
            let mut told = out.read_unaligned();
            let used = before(true) + counted(CLOCK_PROCESS_CPUTIME_ID, RUSAGE_SELF);
            (told.tms_utime, told.tms_stime) = (used.user / TICK, used.system / TICK);
            out.write_unaligned(told);
        }
        result
    }
}
