//! The signals of a process in an image, and bringing them back: dispositions, mask, alternate stack and timers.
use crate::Error;
use crate::signals::{Action, HIDDEN, SIGNALS, SLOTS, Slot, bit, register, set_stack, stack, visible};
use crate::sys::{self, syscall};
use libc::{SIG_DFL, SIG_IGN, c_int};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering::Relaxed;

/// What an image must hold of the signals of a process and its main thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalState {
    /// The disposition of each signal, from 1.
    pub actions: Vec<Action>,
    /// What the main thread blocks.
    pub mask: u64,
    /// The main thread's alternate stack: address, flags, size.
    pub stack: (usize, i32, usize),
    /// The three interval timers: interval and rest, each in seconds and microseconds.
    pub timers: Timers,
}

/// While it lives, the calling thread takes no signals: a handler that ran while memory is saved would be half in it.
pub struct Held(u64);

/// So often signals that come just now are let through before a program counts as never quiet.
const TRIES: usize = 100;

/// What is left of the three interval timers: seconds and microseconds of the interval and until they ring.
pub type Timers = [[i64; 4]; 3];

/// Holds back the signals of the calling thread from a moment on at which none waits, as no image holds one; with what was
/// left of the timers just before: one that rings after that shows as a signal that waits, or is still in its timer.
///
/// # Errors
/// If one waits that the program has blocked, or there is always one.
pub fn quiet() -> Result<(Held, Timers), Error> {
    for _ in 0..TRIES {
        let held = hold();
        let mut timers: Timers = [[0; 4]; 3];
        for (which, timer) in timers.iter_mut().enumerate() {
            // SAFETY: a local structure of the right shape.
            unsafe { syscall!(libc::SYS_getitimer, which, timer.as_mut_ptr()) };
        }
        let mut pending = 0u64;
        // SAFETY: the word lives through the call.
        unsafe { syscall!(libc::SYS_rt_sigpending, &raw mut pending, 8) };
        if pending & held.0 != 0 {
            return Err(Error::Obstacle("a signal waits that the program has blocked".into()));
        }
        if pending == 0 {
            return Ok((held, timers));
        }
        // Its handler runs as it is let go.
        drop(held);
    }
    Err(Error::Obstacle("signals come all the time".into()))
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

/// The signals of the process and of the calling thread, which is the main one, for an image.
///
/// # Errors
/// If something cannot be saved: timers made by `timer_create`.
pub fn save(held: &Held, timers: Timers) -> Result<SignalState, Error> {
    if std::fs::read_to_string("/proc/self/timers").is_ok_and(|t| !t.is_empty()) {
        return Err(Error::Obstacle("it has timers made by timer_create".into()));
    }
    Ok(SignalState { actions: SLOTS.iter().map(Slot::load).collect(), mask: held.0, stack: stack(), timers })
}

/// Brings back the signals of an image. Until [`unblock`] none is taken.
pub fn restore(state: &SignalState) {
    sys::set_mask(visible(!0));
    for (i, action) in state.actions.iter().enumerate().take(SIGNALS) {
        let signal = i + 1;
        SLOTS[i].store(action);
        if HIDDEN & bit(signal as c_int) == 0 {
            register(signal, action);
        }
    }
    set_stack(state.stack);
}

/// Starts the timers, and sets the main thread's mask: the last step before the program runs.
pub fn unblock(state: &SignalState) {
    set_timers(&state.timers);
    sys::set_mask(visible(state.mask));
}

/// What an exec does: handlers go, what is ignored stays so, as do mask and timers.
pub(crate) fn exec() {
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
    set_timers(&[[0; 4]; 3]);
    for (i, slot) in SLOTS.iter().enumerate() {
        let before = slot.load();
        slot.store(&Action::default());
        if HIDDEN & bit(i as c_int + 1) == 0 && before.handler != SIG_DFL {
            register(i + 1, &Action::default());
        }
    }
    set_stack((0, libc::SS_DISABLE, 0));
}

fn set_timers(timers: &[[i64; 4]; 3]) {
    for (which, timer) in timers.iter().enumerate() {
        // SAFETY: a local structure of the right shape.
        unsafe { syscall!(libc::SYS_setitimer, which, timer.as_ptr(), 0) };
    }
}
