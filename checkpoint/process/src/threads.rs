//! Threads of the upper half: the lower thread pointer each borrows when it calls MPI, stopping them at a cut, making
//! them again at a restart.
pub use crate::asking::{Answer, Standing, ask, on_ask};
pub use crate::ending::end;
pub use crate::parking::{ThreadState, go, leave, on_stopping, stop, stopping};
pub(crate) use crate::parking::{probe, stop_entry};
pub use crate::processors::Places;
pub use crate::rebirth::{MainState, main_state, recreate, release, restore_main, resume};
pub use crate::returned::Returned;
pub use crate::signals::STOP as ASKING;
use crate::sys::{self, failed, syscall};
use crate::{Error, gate};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*};

/// As many threads may call MPI besides the main one.
const MOST: usize = 1024;

/// A parked thread of the lower half and the upper thread that borrows its thread pointer.
struct Loan {
    /// Zero: no parked thread yet.
    lower: AtomicUsize,
    /// Zero: free.
    upper: AtomicUsize,
    /// The kernel's number of the borrower, by which it is claimed.
    tid: AtomicU32,
}

static LOANS: [Loan; MOST] =
    [const { Loan { lower: AtomicUsize::new(0), upper: AtomicUsize::new(0), tid: AtomicU32::new(0) } }; MOST];
/// Loans that have a parked thread.
static PARKED: AtomicU32 = AtomicU32::new(0);
/// Threads other than the main one have called MPI.
static SEVERAL: AtomicBool = AtomicBool::new(false);
/// Parked threads that are wanted.
static WANTED: AtomicU32 = AtomicU32::new(0);

/// Makes the calling thread the main one and starts the thread that makes parked threads on demand.
pub(crate) fn register_main() -> Result<(), Error> {
    let mask = sys::set_mask(!0);
    let spawned = std::thread::Builder::new().name("phasecast-spare".into()).stack_size(128 << 10).spawn(supply);
    sys::set_mask(mask);
    spawned.map(|_| ()).map_err(Error::Thread)
}

/// Makes a parked thread for each that is wanted. All signals are blocked here and in what is made.
fn supply() {
    let mut made = 0;
    loop {
        let wanted = WANTED.load(Acquire);
        if made == wanted || made as usize == MOST {
            sys::wait(&WANTED, wanted);
            continue;
        }
        let Some(loan) = LOANS.get(made as usize) else { continue };
        let spawned = std::thread::Builder::new().name("phasecast-parked".into()).stack_size(128 << 10).spawn(|| {
            park(|pointer| {
                loan.lower.store(pointer, Release);
                PARKED.fetch_add(1, Release);
                sys::wake(&PARKED);
            })
        });
        match spawned {
            Ok(_) => made += 1,
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    }
}

/// Lends the calling thread's pointer, and waits for good.
pub(crate) fn park(lend: impl FnOnce(usize)) -> ! {
    let pointer = gate::thread_pointer();
    forget_processor(pointer);
    lend(pointer);
    let never = AtomicU32::new(0);
    loop {
        sys::wait(&never, 0);
    }
}

/// Has the kernel no longer note by this thread pointer, which another thread is to use, on which processor the calling
/// thread runs: the C library then asks.
fn forget_processor(pointer: usize) {
    const UNREGISTER: usize = 1;
    const SIGNATURE: usize = 0x5305_3053;
    /// The area that the C library registers.
    const LENGTH: usize = 32;
    // SAFETY: a number that C libraries have which register such an area; the call ends what they have begun.
    unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()) as *const isize;
        if !offset.is_null() {
            syscall!(libc::SYS_rseq, pointer.wrapping_add_signed(*offset), LENGTH, UNREGISTER, SIGNATURE);
        }
    }
}

/// Has threads of the lower half made that take no signals: the program's handlers must not run on them.
pub fn without_signals<T>(make: impl FnOnce() -> T) -> T {
    // SAFETY: sets of signals of our own; the mask is put back.
    unsafe {
        let (mut all, mut old): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
        let made = make();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old, std::ptr::null_mut());
        made
    }
}

fn alive(tid: u32) -> bool {
    // SAFETY: sends no signal.
    !failed(unsafe { syscall!(libc::SYS_tgkill, sys::getpid(), tid, 0) })
}

/// The lower thread pointer for the calling thread of the upper half, which is not the main one. It runs with the upper
/// one: no thread-local storage, no allocation.
pub extern "C" fn lower_fs(upper: usize) -> usize {
    let own = sys::gettid();
    let claim = |loan: &Loan| {
        let lower = loan.lower.load(Acquire);
        let holder = loan.tid.load(Acquire);
        let free = || holder == 0 || !alive(holder);
        let claimed = || free() && loan.tid.compare_exchange(holder, own, AcqRel, Relaxed).is_ok();
        (lower != 0 && (holder == own || claimed())).then(|| {
            SEVERAL.store(true, Relaxed);
            loan.upper.store(upper, Release);
            lower
        })
    };
    if let Some(lower) = LOANS.iter().filter(|loan| loan.upper.load(Acquire) == upper).find_map(claim) {
        return lower;
    }
    let mut ticket = 0;
    loop {
        let parked = PARKED.load(Acquire);
        if let Some(lower) = LOANS.iter().find_map(claim) {
            return lower;
        }
        // Who is faster may take what was made for this thread: then it asks again.
        if ticket <= parked {
            ticket = WANTED.fetch_add(1, AcqRel) + 1;
            sys::wake(&WANTED);
        }
        sys::wait(&PARKED, parked);
    }
}

/// Whether other threads than the main one have called MPI.
#[inline(always)]
pub fn several() -> bool {
    SEVERAL.load(Relaxed)
}

/// Other threads have called MPI, as an image says.
pub fn have_called() {
    SEVERAL.store(true, Relaxed);
}

/// The upper thread pointer that belongs to a lower one; zero if none does.
pub(crate) fn upper_of(lower: usize) -> usize {
    if lower == gate::main_lower() {
        return gate::main_upper();
    }
    LOANS.iter().find(|l| l.lower.load(Relaxed) == lower).map_or(0, |l| l.upper.load(Relaxed))
}

/// The threads that call MPI and come after this one, where the main one is the first.
pub(crate) fn callers_after(tid: u32) -> impl Iterator<Item = u32> {
    let callers = || LOANS.iter().map(|loan| loan.tid.load(Acquire));
    let before = callers().position(|caller| caller == tid).map_or(0, |at| at + 1);
    callers().skip(before).filter(|caller| *caller != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Barrier;

    #[test]
    fn no_two_threads_borrow_from_the_same() {
        const THREADS: usize = 16;
        std::thread::spawn(supply);
        for round in 0..100 {
            let together = Barrier::new(THREADS);
            let borrow = |number: usize| {
                together.wait();
                let lower = lower_fs(1 + number + THREADS * (round % 2));
                // All live until all have borrowed.
                together.wait();
                lower
            };
            let lowers: BTreeSet<usize> = std::thread::scope(|scope| {
                let borrow = &borrow;
                let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || borrow(number))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(lowers.len(), THREADS, "round {round}");
        }
    }
}
