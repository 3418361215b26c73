//! The signals of a process in an image, and bringing them back: dispositions and timers. What each thread blocks, and its
//! alternate stack, is in its frame.
use crate::Error;
use crate::signals::{Action, HIDDEN, SIGNALS, SLOTS, Slot, bit, register, set_stack, visible};
use crate::sys::{self, syscall};
use crate::threads::ThreadState;
use crate::timers::{self, TimerState};
use libc::{SIG_DFL, SIG_IGN, c_int};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering::Relaxed;

/// What an image must hold of the signals of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalState {
    /// The disposition of each signal, from 1.
    pub actions: Vec<Action>,
    /// What is left of the timers.
    pub timers: Timers,
}

/// While it lives, the calling thread takes no signals: a handler that ran while memory is saved would be half in it. What it
/// blocks by itself.
pub struct Held(pub(crate) u64);

/// So often signals that come just now are let through before a program counts as never quiet.
const TRIES: usize = 100;

/// What is left of a program's timers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timers {
    /// The three interval timers: interval and rest, each in seconds and microseconds.
    intervals: [[i64; 4]; 3],
    /// Those that it has made.
    made: Vec<TimerState>,
}

impl Timers {
    fn read(threads: &[ThreadState]) -> Result<Timers, Error> {
        let mut intervals = [[0; 4]; 3];
        for (which, timer) in intervals.iter_mut().enumerate() {
            // SAFETY: a local structure of the right shape.
            unsafe { syscall!(libc::SYS_getitimer, which, timer.as_mut_ptr()) };
        }
        let own = sys::gettid();
        let made = timers::save(|number| number == own || threads.iter().any(|thread| thread.number == number))?;
        Ok(Timers { intervals, made })
    }

    /// Of signals that wait for a thread, those that no timer has sent: a timer that has rings at once after a restart.
    fn not_theirs(&mut self, pending: u64, thread: u32) -> u64 {
        pending & !self.made.iter_mut().fold(0, |sent, timer| sent | timer.rings(pending, thread))
    }
}

/// Holds back the signals of the calling thread from a moment on at which none waits but what a timer sends, as no image holds
/// one; with what was left of the timers just before: one that rings after that shows as a signal that waits,
/// or is still in its timer. The other threads are stopped.
///
/// # Errors
/// If one waits that the program has blocked, or that is for a stopped thread, or there is always one.
pub fn quiet(threads: &[ThreadState]) -> Result<(Held, Timers), Error> {
    for _ in 0..TRIES {
        let held = hold();
        let mut timers = Timers::read(threads)?;
        for thread in threads {
            if timers.not_theirs(waiting_for(thread.number), thread.number) != 0 {
                return Err(Error::Obstacle("a signal waits for a thread".into()));
            }
        }
        let mut pending = 0u64;
        // SAFETY: the word lives through the call.
        unsafe { syscall!(libc::SYS_rt_sigpending, &raw mut pending, 8) };
        let blocked = timers.not_theirs(pending & held.0, sys::getpid());
        if timers.not_theirs(blocked, sys::gettid()) != 0 {
            return Err(Error::Obstacle("a signal waits that the program has blocked".into()));
        }
        if pending & !held.0 == 0 {
            return Ok((held, timers));
        }
        // Its handler runs as it is let go.
        drop(held);
    }
    Err(Error::Obstacle("signals come all the time".into()))
}

/// A set of signals (bit n - 1: signal n) that the kernel tells of a process or thread, by what /proc calls both; none if there
/// is no such process.
pub fn told(of: &str, set: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{of}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(set)?.strip_prefix(':'))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// The signals that wait for a thread alone.
fn waiting_for(thread: u32) -> u64 {
    visible(told(&format!("self/task/{thread}"), "SigPnd").unwrap_or(0))
}

/// Holds back the signals of the calling thread.
fn hold() -> Held {
    Held(sys::set_mask(visible(!0)))
}

impl Drop for Held {
    fn drop(&mut self) {
        sys::set_mask(self.0);
    }
}

/// The signals of the process, for an image.
pub fn save(timers: Timers) -> SignalState {
    SignalState { actions: SLOTS.iter().map(Slot::load).collect(), timers }
}

/// Has the calling thread, and those that it makes from now on, take none of the program's signals. A thread that has done its
/// work may not have ended yet when the first timer of an image rings.
pub fn take_none() {
    sys::set_mask(visible(!0));
}

/// Brings back the signals of an image. The calling thread [takes none](take_none).
pub fn restore(state: &SignalState) {
    for (i, action) in state.actions.iter().enumerate().take(SIGNALS) {
        let signal = i + 1;
        SLOTS[i].store(action);
        if HIDDEN & bit(signal as c_int) == 0 {
            register(signal, action);
        }
    }
}

/// Starts the timers of an image, whose threads are there.
///
/// # Errors
/// If the kernel grants a timer not.
pub fn start_timers(state: &SignalState) -> Result<(), Error> {
    timers::restore(&state.timers.made)?;
    set_intervals(&state.timers.intervals);
    Ok(())
}

/// What an exec does: handlers and timers that were made go, what is ignored stays so, as do mask and interval timers.
pub(crate) fn exec() {
    timers::clear();
    for (i, slot) in SLOTS.iter().enumerate() {
        let handler = slot.handler.load(Relaxed);
        if handler != SIG_DFL && handler != SIG_IGN {
            slot.store(&Action::default());
            if HIDDEN & bit(i as c_int + 1) == 0 {
                register(i + 1, &Action::default());
            }
        }
    }
    set_stack((0, libc::SS_DISABLE, 0));
}

/// Forgets the upper half's signals: dispositions, timers, the alternate stack.
pub fn clear() {
    timers::clear();
    set_intervals(&[[0; 4]; 3]);
    for (i, slot) in SLOTS.iter().enumerate() {
        let before = slot.load();
        slot.store(&Action::default());
        if HIDDEN & bit(i as c_int + 1) == 0 && before.handler != SIG_DFL {
            register(i + 1, &Action::default());
        }
    }
    set_stack((0, libc::SS_DISABLE, 0));
}

fn set_intervals(timers: &[[i64; 4]; 3]) {
    for (which, timer) in timers.iter().enumerate() {
        // SAFETY: a local structure of the right shape.
        unsafe { syscall!(libc::SYS_setitimer, which, timer.as_ptr(), 0) };
    }
}
