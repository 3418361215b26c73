//! Asking a host from outside where it stands: a signal that it answers by a function of its own, which is told in which
//! call of the upper half the main thread is, or the first of the others if that one is in none.
use crate::gate::{self, Frame};
use crate::parking::{self, MARK};
use crate::space::{in_range, is_upper_pointer};
use crate::{signals, sys, threads};
use std::sync::atomic::{AtomicUsize, Ordering::*};

/// The slot of a signal that asks.
pub(crate) const ASK: usize = 0xffff_fffe;
/// How far above the stack pointer a call's frame is looked for, in words: what a library's functions take.
const DEEP: usize = 1 << 17;

/// Where a host stands.
pub enum Standing<'a> {
    /// In the upper half's call of this frame.
    Call(&'a Frame),
    /// In the upper half.
    Program,
    /// In the host, between one upper half and the next.
    Host,
}

/// What a host does when it is asked where it stands.
pub type Answer = fn(Standing<'_>);

static ASKED_FOR: AtomicUsize = AtomicUsize::new(0);

/// Sets what is done when somebody asks with [`ask`]. It runs in the handler of a signal: without memory from the heap.
pub fn on_ask(answer: Answer) {
    ASKED_FOR.store(answer as *const () as usize, Release);
}

/// Asks the host with this process id where it stands; whether it is there to be asked.
pub fn ask(pid: u32) -> bool {
    let value = libc::sigval { sival_ptr: (MARK | ASK) as *mut libc::c_void };
    // SAFETY: sends a signal that only hosts answer, to a process that the caller says is one.
    unsafe { libc::sigqueue(pid as libc::pid_t, signals::STOP, value) == 0 }
}

/// Answers, if a function is set for it; a thread that is in no call passes the question on to the next. `stack` is the stack
/// pointer of the calling thread.
///
/// # Safety
/// Called in the handler of the signal, by the thread that it interrupted.
pub(crate) unsafe fn answer(stack: usize) {
    let hook = ASKED_FOR.load(Acquire);
    if hook == 0 {
        return;
    }
    // SAFETY: the caller's.
    let standing = unsafe { standing(stack) };
    let pass_on = |tid| !sys::failed(parking::send(tid, ASK));
    if matches!(standing, Standing::Program) && threads::callers_after(sys::gettid()).any(pass_on) {
        return;
    }
    // SAFETY: set by `on_ask`.
    let answer: Answer = unsafe { std::mem::transmute(hook) };
    answer(standing);
}

/// Where the calling thread stands. `stack` is its stack pointer.
///
/// # Safety
/// The thread stays there.
unsafe fn standing(stack: usize) -> Standing<'static> {
    let pointer = gate::thread_pointer();
    match (is_upper_pointer(pointer), in_range(stack)) {
        (true, _) => Standing::Program,
        (false, false) => Standing::Host,
        (false, true) => {
            let upper = threads::upper_of(pointer);
            // SAFETY: with the lower thread pointer on the upper half's stack it is in a call, whose frame lies above.
            let mut frames =
                (0..DEEP).map(|word| unsafe { &*((stack.next_multiple_of(8) + 8 * word) as *const Frame) });
            let is_frame = |frame: &&Frame| frame.mark == gate::MARK && frame.fs == upper && in_range(frame.ret);
            frames.find(is_frame).map_or(Standing::Program, Standing::Call)
        }
    }
}
