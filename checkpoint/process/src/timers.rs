//! Timers that the program makes by `timer_create`. Their numbers are ours, since nobody can choose the kernel's; at a cut it
//! is noted what each does and what is left of it, and a restart makes them again.
use crate::own::{self, Guarded, Who};
use crate::sys::{self, error, failed, syscall};
use crate::trap::Call;
use crate::{Error, identity};
use libc::{CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID, SIGEV_NONE, SIGEV_SIGNAL, SIGEV_THREAD_ID, c_int};
use serde::{Deserialize, Serialize};
use std::io;

/// As many timers a program can have.
const MOST: usize = 4096;

/// A clock that counts what a process or, with this bit, a thread has used: the number stands above these bits, inverted.
const OF_THREAD: c_int = 4;
/// The lowest bits of a clock that counts as the scheduler does.
const SCHEDULER: c_int = 2;
/// Both bits: a device's clock.
const OF_DEVICE: c_int = 3;

/// The calls that make timers and name them.
pub(crate) const CALLS: [i64; 5] = [
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_gettime,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_delete,
];

/// What happens when a timer rings: the beginning of the kernel's `sigevent`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Event {
    value: usize,
    signal: c_int,
    notify: c_int,
    /// The thread that gets the signal, with `SIGEV_THREAD_ID`.
    thread: u32,
}

/// The kernel's `sigevent`.
#[repr(C)]
struct Sigevent {
    event: Event,
    rest: [u8; REST],
}

const REST: usize = 64 - size_of::<Event>();

#[derive(Clone, Copy)]
struct Timer {
    /// Its number in the kernel, from 1; zero: none.
    number: u32,
    clock: c_int,
    event: Event,
}

static TABLE: Guarded<[Timer; MOST]> = Guarded::new(
    [const { Timer { number: 0, clock: 0, event: Event { value: 0, signal: 0, notify: 0, thread: 0 } } }; MOST],
);

/// A timer for an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerState {
    place: u32,
    clock: c_int,
    event: Event,
    /// Interval and rest, each in seconds and nanoseconds.
    time: [i64; 4],
}

impl TimerState {
    /// If a signal of these (bit n - 1: signal n) waits for a thread, or for the process if it is the main one, and is what
    /// this timer sends there, has the timer ring at once. Yields the signal's bit.
    pub(crate) fn rings(&mut self, pending: u64, thread: u32) -> u64 {
        let to = if self.event.notify == SIGEV_THREAD_ID { self.event.thread } else { sys::getpid() };
        let sends = matches!(self.event.notify, SIGEV_SIGNAL | SIGEV_THREAD_ID) && to == thread;
        let bit =
            if sends { 1u64.checked_shl((self.event.signal as u32).wrapping_sub(1)).unwrap_or(0) & pending } else { 0 };
        if bit != 0 {
            [self.time[2], self.time[3]] = [0, 1];
        }
        bit
    }
}

/// Carries out such a call of the upper half; none for others.
pub(crate) unsafe fn trapped(call: &Call) -> Option<isize> {
    if !CALLS.contains(&call.number) || own::who() != Who::Program {
        return None;
    }
    let mut args = call.args;
    if call.number == libc::SYS_timer_create {
        // SAFETY: the program's own call.
        return Some(unsafe { create(args) });
    }
    let mut table = TABLE.lock_blocked();
    let named = table.get_mut(args[0] as u32 as usize);
    let Some(timer) = named.filter(|timer| timer.number != 0) else { return Some(error(libc::EINVAL)) };
    args[0] = timer.number as usize - 1;
    // SAFETY: the program's own call, on the timer that it means.
    let result = unsafe { sys::call(call.number as usize, args) };
    if call.number == libc::SYS_timer_delete && !failed(result) {
        timer.number = 0;
    }
    Some(result)
}

/// # Safety
/// The arguments are those of a `timer_create` of the program.
unsafe fn create([clock, event, out, ..]: [usize; 6]) -> isize {
    // SAFETY: the program's pointer, as the kernel would read it.
    let given = (event != 0).then(|| unsafe { (event as *const Event).read_unaligned() });
    let (clock, event) = meant(clock as c_int, given.unwrap_or_default());
    let mut table = TABLE.lock_blocked();
    let Some((place, timer)) = table.iter_mut().enumerate().find(|(_, timer)| timer.number == 0) else {
        return error(libc::EAGAIN);
    };
    let signals = || Event { value: place, signal: libc::SIGALRM, notify: SIGEV_SIGNAL, thread: 0 };
    let result = make(timer, clock, given.map_or_else(signals, |_| event));
    if !failed(result) {
        // SAFETY: the program's pointer, as the kernel would write it.
        unsafe { (out as *mut c_int).write_unaligned(place as c_int) };
    }
    result
}

/// A clock and what happens, with the kernel's numbers of processes and threads in place of those that the program knows.
fn meant(clock: c_int, mut event: Event) -> (c_int, Event) {
    let clock = match clock {
        CLOCK_THREAD_CPUTIME_ID => clock_of(sys::gettid(), OF_THREAD | SCHEDULER),
        ..0 if !is_device(clock) => clock_of(identity::here(number_of(clock)), clock & 7),
        _ => clock,
    };
    if event.notify == SIGEV_THREAD_ID {
        event.thread = identity::here(event.thread);
    }
    (clock, event)
}

/// Makes a timer of the kernel's.
fn make(timer: &mut Timer, clock: c_int, event: Event) -> isize {
    let (full, mut number) = (Sigevent { event, rest: [0; REST] }, 0u32);
    // SAFETY: local structures of the right shapes.
    let result = unsafe { syscall!(libc::SYS_timer_create, clock, &raw const full, &raw mut number) };
    if !failed(result) {
        *timer = Timer { number: number + 1, clock, event };
    }
    result
}

/// The clock of what a process or thread has used.
fn clock_of(number: u32, bits: c_int) -> c_int {
    !(number as c_int) << 3 | bits
}

/// Whether a clock, which is none of the system's, is a device's.
fn is_device(clock: c_int) -> bool {
    clock & OF_DEVICE == OF_DEVICE
}

/// The process or thread that a clock is of.
fn number_of(clock: c_int) -> u32 {
    !(clock >> 3) as u32
}

/// The timers, and what is left of each.
///
/// # Errors
/// If one goes by a clock that is not the program's.
pub(crate) fn save(is_thread: impl Fn(u32) -> bool) -> Result<Vec<TimerState>, Error> {
    // The allocation comes before the lock.
    let mut list = Vec::with_capacity(MOST);
    let table = TABLE.lock();
    for (place, timer) in table.iter().enumerate().filter(|(_, timer)| timer.number != 0) {
        let Timer { number, clock, event } = *timer;
        let mut time = [0i64; 4];
        // SAFETY: room for an `itimerspec`.
        unsafe { syscall!(libc::SYS_timer_gettime, number - 1, time.as_mut_ptr()) };
        list.push(TimerState { place: place as u32, clock, event, time });
    }
    drop(table);
    let is_own = |number| number == sys::getpid() || is_thread(number);
    for TimerState { clock, event, time, .. } in &mut list {
        // What goes by a thread that has ended never rings, and what is for one does nothing.
        if event.notify == SIGEV_THREAD_ID && !is_own(event.thread) {
            event.notify = SIGEV_NONE;
        }
        let of = number_of(*clock);
        if *clock >= 0 || !is_device(*clock) && (of == 0 || is_own(of)) {
            continue;
        }
        if is_device(*clock) || *clock & OF_THREAD == 0 {
            let reason = "it has a timer that goes by another process's or a device's clock";
            return Err(Error::Obstacle(reason.into()));
        }
        (*clock, *time) = (CLOCK_MONOTONIC, [0; 4]);
    }
    Ok(list)
}

/// Makes the timers of an image, whose threads are there, and starts them.
///
/// # Errors
/// If the kernel grants one of them not.
pub(crate) fn restore(list: &[TimerState]) -> Result<(), Error> {
    for state in list {
        let (clock, event) = meant(state.clock, state.event);
        let mut table = TABLE.lock();
        let Some(timer) = table.get_mut(state.place as usize) else { continue };
        let made = make(timer, clock, event);
        let number = timer.number;
        drop(table);
        if failed(made) {
            let cause = io::Error::from_raw_os_error(-made as i32);
            return Err(Error::Kernel { what: "a timer that the program had made by timer_create", cause });
        }
        // SAFETY: an `itimerspec`.
        unsafe { syscall!(libc::SYS_timer_settime, number - 1, 0, state.time.as_ptr(), 0) };
    }
    Ok(())
}

/// The program is gone: so are its timers.
pub(crate) fn clear() {
    for timer in TABLE.lock().iter_mut().filter(|timer| timer.number != 0) {
        // SAFETY: a timer of the table.
        unsafe { syscall!(libc::SYS_timer_delete, timer.number - 1) };
        timer.number = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_tell_whose_they_are() {
        let mut clock = 0;
        // SAFETY: fills a word.
        assert_eq!(unsafe { libc::clock_getcpuclockid(libc::getpid(), &raw mut clock) }, 0);
        assert_eq!(clock, clock_of(sys::getpid(), SCHEDULER));
        for bits in [SCHEDULER, OF_THREAD | SCHEDULER] {
            assert_eq!(number_of(clock_of(4711, bits)), 4711);
        }
    }

    #[test]
    fn a_timer_whose_signal_waits_rings_at_once() {
        let event = Event { value: 7, signal: 34, notify: SIGEV_SIGNAL, thread: 0 };
        let far = TimerState { place: 0, clock: CLOCK_MONOTONIC, event, time: [5, 0, 100, 0] };
        let rings = |event, pending, thread| {
            let mut timer = TimerState { event, ..far };
            (timer.rings(pending, thread), timer.time)
        };
        let (process, bit, at_once) = (sys::getpid(), 1u64 << 33, [5, 0, 0, 1]);
        assert_eq!(rings(event, bit | 1, process), (bit, at_once));
        assert_eq!(rings(event, bit, process + 1), (0, far.time));
        assert_eq!(rings(event, 1, process), (0, far.time));
        let to_thread = Event { notify: SIGEV_THREAD_ID, thread: process + 1, ..event };
        assert_eq!(rings(to_thread, bit, process + 1), (bit, at_once));
        assert_eq!(rings(to_thread, bit, process), (0, far.time));
        assert_eq!(rings(Event { notify: SIGEV_NONE, ..event }, bit, process), (0, far.time));
    }
}
