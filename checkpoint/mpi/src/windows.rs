//! One-sided communication. A cut can lie only where none is under way: between epochs; with fences, where nothing was
//! put or got since the last; and while a rank holds shared locks, as programs do that lock all once and for all: these
//! are given up at the cut, which completes what was put or got, and taken again.
use crate::calls::lower;
use crate::dispatch::Call;
use crate::forward::forward;
use crate::session::{Session, session};
use phasecast_abi::{Class, Kind, RmaStep};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A lock that this rank holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Lock {
    /// Nobody else may have it.
    exclusive: bool,
    /// The program has asserted that nobody else wants it.
    unchecked: bool,
}

/// How a window stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Standing {
    /// The last fence has begun an epoch. What comes after it does not change that: a fence is made again on all ranks or on
    /// none, and other synchronisation is each rank's own.
    fenced: bool,
    /// Something was put or got since.
    since_fence: bool,
    /// Members of the group to which this rank has opened its memory.
    exposed: Option<u64>,
    /// Members of the group whose memory this rank has access to.
    access: Option<u64>,
    /// Locks by their target; none: of all.
    locks: BTreeMap<Option<i32>, Lock>,
}

/// What is under way, by window (the program's handles).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneSided {
    windows: BTreeMap<usize, Standing>,
}

impl OneSided {
    /// Why a cut cannot lie here.
    pub fn obstacle(&self) -> Option<String> {
        let reason = |window: &Standing| {
            if window.exposed.is_some() || window.access.is_some() {
                Some("a window is in an epoch that MPI_Win_start or MPI_Win_post began")
            } else if window.locks.values().any(|lock| lock.exclusive) {
                Some(
                    "a window is in an epoch that MPI_Win_lock began with MPI_LOCK_EXCLUSIVE: nobody else may come between",
                )
            } else if window.since_fence {
                Some("one-sided communication with a window is under way until the next MPI_Win_fence")
            } else {
                None
            }
        };
        self.windows.values().find_map(reason).map(String::from)
    }

    /// A window was freed.
    pub fn freed(&mut self, window: usize) {
        self.windows.remove(&window);
    }
}

impl Session {
    /// The windows that the program has, in the order in which they were made: the program's handles and the library's.
    fn windows(&self) -> Vec<(usize, usize)> {
        let open = self.objects.in_use(Kind::Window);
        open.into_iter().map(|(number, lower)| (self.objects.encode(Kind::Window, number), lower)).collect()
    }

    /// All locks that this rank holds: the library's window and its form of the target.
    fn locks(&self) -> impl Iterator<Item = (usize, Option<i32>, Lock)> {
        let null = self.library.constant("MPI_PROC_NULL").unwrap_or(0) as i32;
        let of = move |(window, lower): (usize, usize)| {
            let locks = self.one_sided.windows.get(&window).map(|standing| &standing.locks);
            let below = move |target: i32| if target < 0 { null } else { target };
            locks.into_iter().flatten().map(move |(target, lock)| (lower, target.map(below), *lock))
        };
        self.windows().into_iter().flat_map(of)
    }

    /// Gives up all locks, which completes what was put or got. To be called on all ranks, none of which has an exclusive
    /// lock.
    pub fn give_up_locks(&self) {
        let library = self.library;
        for (window, target, _) in self.locks() {
            match target {
                Some(target) => lower!(library, MPI_Win_unlock(target, window)),
                None => lower!(library, MPI_Win_unlock_all(window)),
            };
        }
    }

    /// Takes the locks again that [`Session::give_up_locks`] gave up.
    pub fn take_locks_again(&self) {
        let library = self.library;
        let named = |name| library.constant(name).unwrap_or(0);
        for (window, target, lock) in self.locks() {
            let assertion = if lock.unchecked { named("MPI_MODE_NOCHECK") } else { 0 };
            match target {
                Some(target) => lower!(library, MPI_Win_lock(named("MPI_LOCK_SHARED"), target, assertion, window)),
                None => lower!(library, MPI_Win_lock_all(assertion, window)),
            };
        }
    }

    /// After a restart, begins the epochs again that fences had begun, and takes the locks.
    pub fn epochs_again(&self) {
        let library = self.library;
        for (window, lower) in self.windows() {
            if self.one_sided.windows.get(&window).is_some_and(|standing| standing.fenced) {
                lower!(library, MPI_Win_fence(0, lower));
            }
        }
        self.take_locks_again();
    }

    /// Members of a group: the program's handle.
    fn group_size(&mut self, group: usize) -> u64 {
        let (library, lower, mut size) = (self.library, self.down_handle(Kind::Group, group), 0i32);
        lower!(library, MPI_Group_size(lower, &raw mut size));
        u64::try_from(size).unwrap_or(0)
    }
}

/// One-sided communication and its synchronisation. Each member of a group that is synchronised with is an event, and so
/// is a fence.
///
/// # Safety
/// A call of the gate.
pub unsafe fn one_sided(call: &mut Call) -> usize {
    let procedure = call.shape.procedure;
    let request = procedure.output_index(Kind::Request).is_some();
    // SAFETY: the caller's.
    let result = unsafe { if request { crate::point::post(call) } else { forward(call) } };
    let (Class::Rma { step, .. }, Some(at)) = (procedure.class, procedure.param_index(Kind::Window)) else {
        return result;
    };
    if result as i32 != 0 || step == RmaStep::Flush {
        return result;
    }
    let mut access = session();
    let s = &mut *access;
    let window = call.arg(at) & s.values.upper.layout().handle_mask as usize;
    let group = procedure.param_index(Kind::Group).map(|at| s.group_size(call.arg(at)));
    let constant = |name| s.values.above(name).unwrap_or(0) as i32;
    let argument = |name| procedure.param_named(name).map(|at| call.arg(at) as i32);
    let standing = s.one_sided.windows.entry(window).or_default();
    let mut events = None;
    match step {
        RmaStep::Communication => {
            standing.since_fence |= standing.access.is_none() && standing.locks.is_empty();
        }
        RmaStep::Fence => {
            let last = argument("assert").unwrap_or(0) & constant("MPI_MODE_NOSUCCEED") != 0;
            (standing.fenced, standing.since_fence) = (!last, false);
            events = Some(1);
        }
        RmaStep::Post => (standing.exposed, events) = (group, group),
        RmaStep::Start => (standing.access, events) = (group, group),
        RmaStep::Complete => events = standing.access.take(),
        RmaStep::Wait => {
            let flag = procedure.param_index(Kind::Flag);
            // SAFETY: the caller's: the flag that the library has written.
            if flag.is_none_or(|flag| unsafe { *(call.arg(flag) as *const i32) } != 0) {
                events = standing.exposed.take();
            }
        }
        RmaStep::Lock => {
            let exclusive = argument("lock_type") == Some(constant("MPI_LOCK_EXCLUSIVE"));
            let unchecked = argument("assert").unwrap_or(0) & constant("MPI_MODE_NOCHECK") != 0;
            standing.locks.insert(argument("rank"), Lock { exclusive, unchecked });
        }
        RmaStep::Unlock => drop(standing.locks.remove(&argument("rank"))),
        _ => {}
    }
    if let Some(events) = events {
        s.count(events);
    }
    result
}
