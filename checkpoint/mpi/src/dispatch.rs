//! A call of the program: it comes in from the gate, goes down the route of its procedure, and stops where a position is
//! reached.
use crate::callbacks;
use crate::session::{Session, current, session};
use crate::shape::Shape;
use phasecast_process::gate::Frame;
use std::sync::atomic::{AtomicBool, Ordering};

/// There is something to do at the end of the call that is being carried out: a position was reached, or
/// something is [`Late`](crate::attributes::Late).
static STOP: AtomicBool = AtomicBool::new(false);
/// A thread is with the host because a position was reached; others go on meanwhile.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Lets threads stop again after a replay left its upper half at a position.
pub fn allow_stops() {
    STOPPED.store(false, Ordering::Release);
}

/// There is something to do at the end of this call, as for [`STOP`].
#[inline(always)]
pub fn stop_soon() {
    STOP.store(true, Ordering::Relaxed);
}

/// The dispatcher of the gate: carries out a call of the program.
///
/// # Safety
/// Called by the gate, with the lower half's thread pointer.
pub unsafe extern "C" fn dispatch(frame: *mut Frame, index: usize) -> usize {
    callbacks::FRAME.set(frame);
    // SAFETY: a session is never freed while the program runs, and its shapes never change.
    let Some(shapes) = (unsafe { current() }).map(|s| s.shapes) else {
        // SAFETY: the gate's frame.
        return unsafe { crate::life::before_session(frame, index) };
    };
    let Some(shape) = shapes.get(index) else {
        // SAFETY: the gate's frame.
        return unsafe { crate::hide::answer(&*frame, index) };
    };
    // SAFETY: the route of this procedure, with its frame.
    let result = unsafe { (shape.route)(&mut Call { index, frame, shape }) };
    if STOP.load(Ordering::Relaxed) {
        // SAFETY: the call is complete.
        return unsafe { stop(frame, result) };
    }
    result
}

/// A position was reached in a call, which is complete, or in one of another thread; or it is the first after a restart.
///
/// # Safety
/// The frame is the call's.
#[cold]
unsafe fn stop(frame: *mut Frame, result: usize) -> usize {
    if callbacks::any_inside() {
        return result;
    }
    crate::attributes::catch_up();
    let stop = {
        let s = session();
        if s.events < s.next_stop {
            STOP.store(false, Ordering::Relaxed);
            return result;
        }
        s.hooks.stop
    };
    if STOPPED.swap(true, Ordering::Acquire) {
        return result;
    }
    STOP.store(false, Ordering::Relaxed);
    // SAFETY: the caller's.
    let result = unsafe { stop(frame, result) };
    STOPPED.store(false, Ordering::Release);
    result
}

/// A call of the program.
pub struct Call {
    /// Index of the procedure in the table.
    pub index: usize,
    /// Its frame.
    pub frame: *mut Frame,
    /// How the procedure's arguments are treated.
    pub shape: &'static Shape,
}

impl Call {
    /// Argument `i`.
    #[inline(always)]
    pub fn arg(&self, i: usize) -> usize {
        // SAFETY: the frame is that of a call of the procedure, which has this argument.
        unsafe { (*self.frame).arg(i) }
    }

    /// Whether it can be passed on word by word, with argument `status` where its status goes.
    #[inline(always)]
    pub fn is_direct(&self, s: &Session, status: usize) -> bool {
        self.shape.direct
            || self.shape.direct_without_status && self.arg(status) == s.values.upper.layout().status_ignore
    }
}
