//! The ends of the upper half's threads: of one that ends by itself, and of all as their program is thrown away.
use crate::own::{self, Who};
use crate::parking::{self, PATIENCE, is_upper, others};
use crate::sys;
use crate::trap::{self, Call};
use crate::{Error, gate, processors, signals};
use std::sync::atomic::{AtomicU32, Ordering::Release};
use std::time::{Duration, Instant};

/// Carries out the end of the calling thread. Where others go on without the main thread, it waits for good: the kernel tells
/// next to nothing of a process whose main thread is gone, and a restart could not make one. For the program it is gone.
///
/// # Safety
/// Called by the trap handler with the call.
pub(crate) unsafe fn trapped_exit(call: &mut Call) -> isize {
    // SAFETY: the program's own call.
    unsafe {
        if own::who() != Who::Program || sys::getpid() != sys::gettid() {
            return call.pass();
        }
        if trap::under(gate::main_lower(), others_go_on as *const () as usize, &[0; 3]) == 0 {
            return trap::exit(call.args[0] as libc::c_int);
        }
    }
    let (number, _) = parking::known(gate::thread_pointer());
    if number != 0 {
        // SAFETY: where the C library keeps the thread's number, for the kernel to clear.
        let number = unsafe { AtomicU32::from_ptr(number as *mut u32) };
        number.store(0, Release);
        sys::wake(number);
    }
    *call.mask() = signals::visible(!0);
    call.number = libc::SYS_pause;
    call.reissue()
}

/// Whether the upper half has other threads than the calling one.
extern "C" fn others_go_on() -> usize {
    usize::from(others().is_ok_and(|mut tids| tids.any(|tid| is_upper(tid) != Some(false))))
}

/// Stops the upper half's threads and ends them; what they were doing is lost. Called by the main thread, which is no longer
/// pinned.
///
/// # Errors
/// If one cannot be stopped.
pub fn end() -> Result<(), Error> {
    parking::stop()?;
    parking::next_round(1);
    processors::free();
    let deadline = Instant::now() + PATIENCE;
    while others()?.any(|tid| is_upper(tid) == Some(true)) {
        if Instant::now() > deadline {
            return Err(Error::Obstacle("a thread does not end".into()));
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    Ok(())
}
