//! One rank's MPI as the program sees it: the machine's library below, virtual objects above, the count of events, and
//! where the program is to be stopped.
use crate::comms::Comm;
use crate::library::Library;
use crate::log::Log;
use crate::objects::{ARENA, ARENA_SIZE, Objects};
use crate::replay::MadeAgain;
use crate::requests::Requests;
use crate::shape::{Shape, shapes};
use crate::upper::Upper;
use crate::values::Values;
use crate::{callbacks, drain, memory, waits, wakeups};
use phasecast_process::gate::Frame;
use phasecast_process::threads;
use rustc_hash::FxHashMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// What the host does when a rank's count of events has reached [`Session::next_stop`]: it is given the call's frame and
/// result, and returns the result with which the program goes on.
pub type Stop = unsafe fn(frame: *mut Frame, result: usize) -> usize;

/// What happens at the ends of the program's use of MPI.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// A position was reached.
    pub stop: Stop,
    /// The program has called `MPI_Finalize`, which is about to be passed on.
    pub finalize: fn(),
    /// Whether an address is the upper half's.
    pub within: fn(usize) -> bool,
    /// Whether only collectives count as events that synchronise all ranks.
    pub collectives: bool,
}

/// The state of a rank's MPI.
pub struct Session {
    /// The machine's library.
    pub library: &'static Library,
    /// Constants above and below.
    pub values: Values,
    /// Virtual objects.
    pub objects: Objects,
    /// How they came to be.
    pub log: Log,
    /// Requests.
    pub requests: Requests,
    /// What the library reads while requests are under way: their numbers, and the memory.
    pub kept: Vec<(u32, Vec<Box<[u64]>>)>,
    /// Communicators by the program's handle.
    pub comms: FxHashMap<usize, Box<Comm>>,
    recent_comm: (usize, *const Comm),
    /// Messages that were taken out of the network at a cut.
    pub drained: drain::Drained,
    /// What the program is to take where it would take whatever comes first.
    pub recorded: crate::recorded::Recorded,
    /// Memory that MPI lends to the program.
    pub memory: memory::Lent,
    /// Events so far.
    pub events: u64,
    /// The program is stopped once so many events are reached.
    pub next_stop: u64,
    /// Messages to and from each rank of the world.
    pub traffic: Traffic,
    /// What is translated how.
    pub shapes: &'static [Shape],
    /// The host's part.
    pub hooks: Hooks,
    /// Seconds added to the library's clock, so that the program's goes on over a restart.
    pub clock_offset: f64,
    /// The level of thread support that was asked for and given, in neutral form.
    pub thread_level: Option<i32>,
    /// The thread pointer of the thread that has initialised it.
    pub main_thread: usize,
    /// The program has called `MPI_Init`: it has more than sessions.
    pub world: bool,
    /// Events are counted: since `MPI_Init`, or else since the first communicator of a session was made, which stands for
    /// the world in a trace.
    pub begun: bool,
    /// `MPI_Finalize` was called.
    pub finalized: bool,
    /// Why this rank cannot be saved now, if there is a reason that lasts.
    pub unsaveable: Vec<String>,
    /// Why the last call failed, where the library was not what refused it.
    pub trouble: Option<String>,
    /// Attribute keys that the program has freed, by which procedure, while attributes were set with them.
    pub freed_keys: Vec<(usize, u32)>,
    /// Attributes of objects that the program has freed, and that are still needed.
    pub lingering: Vec<crate::attributes::Attribute>,
    /// What is done at the end of the first call after a restart.
    pub late: crate::attributes::Late,
    /// Communicators in the making.
    pub making: Vec<crate::duplicates::Making>,
    /// Files with a split collective that is not ended.
    pub split: Vec<usize>,
    /// Error classes and codes of the program's own.
    pub errors: crate::errors::Own,
    /// One-sided communication that is under way.
    pub one_sided: crate::windows::OneSided,
    /// Whether the program goes on from an image: what it writes is kept apart from the originals.
    pub replayed: bool,
    /// What the library told that the program has started with, if it goes on with another.
    pub started_with: Option<crate::library::Versions>,
    /// A communicator of our own, with all ranks.
    pub private: usize,
    /// A communicator of our own, with this rank only.
    pub private_self: usize,
    /// This process's rank and the number of ranks.
    pub place: (i32, i32),
    /// Several threads may call at once.
    pub multiple: bool,
    /// Calls that threads have stepped out of, by the thread pointer.
    pub stepped_out: FxHashMap<usize, waits::SteppedOut>,
    /// Recorded calls are being made again.
    pub restoring: bool,
    /// The objects that a recorded call makes again, the first one last.
    pub replaying: Vec<MadeAgain>,
    /// Fortran handles of predefined objects, where they are not the handles themselves.
    pub fortran: crate::convert::Fortran,
}

/// Counts of messages by world rank.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Traffic {
    /// Sends to each.
    pub sent: Vec<u64>,
    /// Receives from each that are complete.
    pub received: Vec<u64>,
}

static SESSION: AtomicPtr<Session> = AtomicPtr::new(std::ptr::null_mut());
static LOCKED: AtomicBool = AtomicBool::new(false);

/// Access to the session. With several threads that may call at once it is a lock: it must not be held while a procedure
/// of the library runs, which may wait, or call back.
pub struct Access(&'static mut Session);

impl Deref for Access {
    type Target = Session;
    #[inline(always)]
    fn deref(&self) -> &Session {
        self.0
    }
}

impl DerefMut for Access {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Session {
        self.0
    }
}

impl Drop for Access {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.multiple {
            LOCKED.store(false, Ordering::Release);
        }
    }
}

/// The session.
///
/// # Panics
/// Before [`install`].
#[inline(always)]
pub fn session() -> Access {
    let pointer = SESSION.load(Ordering::Relaxed);
    assert!(!pointer.is_null(), "a program runs only where a session is installed");
    // SAFETY: set by `install`, never freed. One thread at a time has access: either there is one only that calls MPI at
    // a time, as the level of thread support says, or the lock sees to it.
    unsafe {
        if (*pointer).multiple {
            while LOCKED.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
                std::hint::spin_loop();
            }
        }
        Access(&mut *pointer)
    }
}

/// The session, to be looked at only; none before [`install`].
///
/// # Safety
/// Nothing changes it meanwhile.
#[inline(always)]
pub unsafe fn current() -> Option<&'static Session> {
    // SAFETY: never freed while the program runs; the rest is the caller's.
    unsafe { SESSION.load(Ordering::Relaxed).as_ref() }
}

/// Whether there is a session.
pub fn installed() -> bool {
    !SESSION.load(Ordering::Relaxed).is_null()
}

/// Makes a session for a program, or puts one in place of the last.
pub fn install(session: Session) {
    let old = SESSION.swap(Box::into_raw(Box::new(session)), Ordering::AcqRel);
    if !old.is_null() {
        // SAFETY: it came from Box::into_raw, and the program that used it is gone.
        drop(unsafe { Box::from_raw(old) });
    }
}

impl Session {
    /// A session for a program that has done nothing yet.
    pub fn new(library: &'static Library, program: Upper, hooks: Hooks) -> Session {
        callbacks::prepare(&program);
        threads::on_stopping(wakeups::wake);
        let values = Values::new(program, library);
        let shapes = table(values.same(), library);
        map_arena();
        Session {
            library,
            objects: Objects::new(values.upper),
            values,
            log: Log::default(),
            requests: Requests::default(),
            kept: Vec::new(),
            comms: FxHashMap::default(),
            recent_comm: (usize::MAX, std::ptr::null()),
            drained: drain::Drained::default(),
            recorded: crate::recorded::Recorded::default(),
            memory: memory::Lent::default(),
            events: 0,
            next_stop: u64::MAX,
            traffic: Traffic::default(),
            shapes,
            hooks,
            clock_offset: 0.0,
            thread_level: None,
            main_thread: 0,
            world: false,
            begun: false,
            finalized: false,
            unsaveable: Vec::new(),
            trouble: None,
            freed_keys: Vec::new(),
            lingering: Vec::new(),
            late: crate::attributes::Late::default(),
            making: Vec::new(),
            split: Vec::new(),
            errors: crate::errors::Own::default(),
            one_sided: crate::windows::OneSided::default(),
            replayed: false,
            started_with: None,
            private: 0,
            private_self: 0,
            place: (0, 1),
            multiple: false,
            stepped_out: FxHashMap::default(),
            restoring: false,
            replaying: Vec::new(),
            fortran: crate::convert::Fortran::default(),
        }
    }

    /// How the arguments of a procedure are treated. (A reference to a field would keep the access for as long.)
    pub fn shape(&self, index: usize) -> &'static Shape {
        &self.shapes[index]
    }

    /// The program's handle of what a recorded call makes again.
    pub fn made_again(&self) -> Option<usize> {
        let again = self.replaying.last().filter(|_| self.restoring)?;
        Some(self.objects.encode(again.kind, again.number))
    }

    /// What is known of a communicator of the program.
    #[inline(always)]
    pub fn comm(&mut self, handle: usize) -> Option<&'static Comm> {
        let handle = handle & self.values.upper.layout().handle_mask as usize;
        if self.recent_comm.0 != handle {
            let found: *const Comm = &raw const **self.comms.get(&handle)?;
            self.recent_comm = (handle, found);
        }
        // SAFETY: the box lives until `forget_comm`; nobody keeps the reference beyond the call that asked for it.
        Some(unsafe { &*self.recent_comm.1 })
    }

    /// Takes note of a communicator.
    pub fn add_comm(&mut self, handle: usize, comm: Comm) {
        self.recent_comm.0 = usize::MAX;
        self.comms.insert(handle, Box::new(comm));
    }

    /// Forgets one that was freed.
    pub fn forget_comm(&mut self, handle: usize) {
        self.recent_comm.0 = usize::MAX;
        self.comms.remove(&handle);
    }

    /// An event happened.
    #[inline(always)]
    pub fn event(&mut self) {
        self.count(1);
    }

    /// So many events happened.
    #[inline(always)]
    pub fn count(&mut self, events: u64) {
        self.events += match threads::several() {
            _ if self.hooks.collectives || callbacks::inside() => 0,
            true => waits::deferred(events),
            false => events,
        };
        self.look();
    }

    /// A collective, where only those count that synchronise all ranks.
    #[cold]
    pub fn count_collective(&mut self, call: &crate::dispatch::Call) {
        let (procedure, size) = (call.shape.procedure, self.place.1 as usize);
        let comm = procedure.param_index(phasecast_abi::Kind::Communicator).and_then(|at| self.comm(call.arg(at)));
        let of_all = comm.is_some_and(|comm| !comm.inter && comm.members.len() == size);
        self.events += u64::from(of_all && procedure.synchronises() && !callbacks::inside());
        self.look();
    }

    /// Looks whether a position is reached.
    #[inline(always)]
    pub fn look(&self) {
        if self.events >= self.next_stop {
            crate::dispatch::stop_soon();
        }
    }

    /// The world rank of a rank in a communicator; none for `MPI_PROC_NULL` and for processes of other worlds.
    #[inline(always)]
    pub fn world_rank(&mut self, comm: usize, rank: i32) -> Option<usize> {
        if rank < 0 {
            return None;
        }
        let peers = &self.comm(comm)?.peers;
        usize::try_from(*peers.get(rank as usize)?).ok()
    }
}

/// The shapes, made once for each case; a process has one library.
fn table(same: bool, library: &Library) -> &'static [Shape] {
    use std::sync::OnceLock;
    static TABLES: [OnceLock<Vec<Shape>>; 2] = [OnceLock::new(), OnceLock::new()];
    TABLES[usize::from(same)].get_or_init(|| shapes(same, library))
}

/// Maps the memory of Open MPI's objects, unless an image has brought it.
fn map_arena() {
    if !phasecast_process::space::contains(ARENA) {
        // Where there is no room for it, the first object faults; nothing else uses these addresses.
        let _ = phasecast_process::space::lend(Some(ARENA), ARENA_SIZE);
    }
}
