//! What ends a wait within the library: each thread that waits there waits for a message from its own rank besides, which the
//! thread that stops all others sends. So a wait is the library's own, with its way to use or to leave the processor.
use crate::calls::lower;
use crate::session::{Session, installed, session};
use crate::words::{handle_bytes, read_handle, write_handle};
use phasecast_abi::Kind;
use phasecast_process::threads;
use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::*, fence};

/// As many threads may wait.
const MOST: usize = 1025;
/// The tag of the first one's message; those of the others follow.
const TAG: usize = 5000;

/// The message to a thread.
struct Wakeup {
    /// The library's request of its receive.
    request: AtomicUsize,
    /// One of [`NONE`] to [`SENT`]. Only who finds [`WAITED`] sends, so that no message is without a receive: MPICH's own rank
    /// would wait for one.
    state: AtomicU8,
}

/// No receive is posted.
const NONE: u8 = 0;
/// A receive is posted, and the thread does not wait.
const POSTED: u8 = 1;
/// A receive is posted, and the thread waits, or is about to.
const WAITED: u8 = 2;
/// The message of the receive is sent. The thread may have been done with its wait before it came.
const SENT: u8 = 3;

static WAKEUPS: [Wakeup; MOST] = [const { Wakeup { request: AtomicUsize::new(0), state: AtomicU8::new(NONE) } }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The place of the calling thread among them.
    static PLACE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// What has come of one of several requests: which, the library's code, its request and status.
pub struct Completed {
    pub index: usize,
    pub code: i32,
    pub handle: usize,
    pub status: [u64; 8],
}

/// Waits until one of these requests of the library is complete. None if the thread has been woken, or may not wait now.
pub fn wait_any(requests: &[usize]) -> Option<Completed> {
    let place = PLACE.get().unwrap_or_else(|| COUNT.fetch_add(1, AcqRel));
    PLACE.set(Some(place));
    let own = WAKEUPS.get(place)?;
    let s = session();
    let (library, comm, bytes) = (s.library, s.private_self, handle_bytes(s.values.lower, Kind::Request));
    drop(s);
    if own.state.load(Acquire) == NONE {
        let byte = library.constant("MPI_BYTE").unwrap_or(0);
        let mut request = 0usize;
        lower!(library, MPI_Irecv(0, 0, byte, 0, TAG + place, comm, &raw mut request));
        own.request.store(request, Release);
        own.state.store(POSTED, Release);
    }
    let mut handles = vec![0u64; requests.len() + 1];
    let first = handles.as_mut_ptr() as usize;
    for (index, &request) in requests.iter().chain([&own.request.load(Acquire)]).enumerate() {
        // SAFETY: within the array, which has a whole word for each.
        unsafe { write_handle(first + index * bytes, bytes, request) };
    }
    own.turns(POSTED, WAITED);
    // Either who stops threads sees that this one waits, or this one that it is to be stopped.
    fence(SeqCst);
    if threads::stopping() {
        own.turns(WAITED, POSTED);
        return None;
    }
    let (mut index, mut status) = (-1i32, [0u64; 8]);
    let code = lower!(library, MPI_Waitany(requests.len() + 1, first, &raw mut index, status.as_mut_ptr()));
    own.turns(WAITED, POSTED);
    let index = usize::try_from(index).ok()?;
    if index == requests.len() {
        own.state.store(NONE, Release);
    }
    // SAFETY: the library has changed what is in the array.
    let handle = unsafe { read_handle(first + index * bytes, bytes) };
    (index < requests.len()).then_some(Completed { index, code, handle, status })
}

impl Wakeup {
    /// Goes from one state to another; whether it was in the first.
    fn turns(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, AcqRel, Acquire).is_ok()
    }
}

/// Those that threads have, each with its tag.
fn all() -> impl Iterator<Item = (&'static Wakeup, usize)> {
    WAKEUPS.iter().zip(TAG..).take(COUNT.load(Acquire))
}

/// Wakes the threads that wait.
pub fn wake() {
    fence(SeqCst);
    if !installed() {
        return;
    }
    let (library, comm) = {
        let s = session();
        (s.library, s.private_self)
    };
    let byte = library.constant("MPI_BYTE").unwrap_or(0);
    for (wakeup, tag) in all() {
        if wakeup.turns(WAITED, SENT) {
            lower!(library, MPI_Send(0, 0, byte, 0, tag, comm));
        }
    }
}

impl Session {
    /// Takes back what is posted: the communicator is to be freed.
    pub fn end_wakeups(&mut self) {
        let (library, comm) = (self.library, self.private_self);
        let byte = library.constant("MPI_BYTE").unwrap_or(0);
        for (wakeup, tag) in all() {
            let state = wakeup.state.swap(NONE, AcqRel);
            if state == POSTED || state == WAITED {
                lower!(library, MPI_Send(0, 0, byte, 0, tag, comm));
            }
            if state != NONE {
                let mut request = wakeup.request.load(Acquire);
                lower!(library, MPI_Wait(&raw mut request, library.abi.layout().status_ignore));
            }
        }
    }
}
