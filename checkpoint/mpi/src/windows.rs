//! One-sided communication. A cut can lie only where none is under way: between epochs, or, with fences, where nothing was
//! put or got since the last.
use crate::calls::lower;
use crate::forward::forward;
use crate::session::{Call, Session, session};
use phasecast_abi::{Class, Kind, RmaStep};
use std::collections::BTreeSet;

/// What is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneSided {
    /// Windows (the program's handles) on which the last synchronisation was a fence: it has begun an epoch.
    pub fenced: BTreeSet<usize>,
    /// Epochs that a lock, a start or a post has opened.
    pub epochs: i64,
    /// Something was put or got since the last fence.
    pub since_fence: bool,
}

impl OneSided {
    /// Why a cut cannot lie here.
    pub fn obstacle(&self) -> Option<String> {
        if self.epochs > 0 {
            return Some("a window is locked, or in an epoch that MPI_Win_start or MPI_Win_post began".into());
        }
        self.since_fence.then(|| "one-sided communication is under way until the next MPI_Win_fence".into())
    }
}

impl Session {
    /// Begins the epochs again that fences had begun.
    pub fn fence_again(&mut self) {
        let library = self.library;
        let open = self.objects.in_use(Kind::Window);
        for (number, lower) in open {
            if self.one_sided.fenced.contains(&self.objects.encode(Kind::Window, number)) {
                lower!(library, MPI_Win_fence(0, lower));
            }
        }
    }
}

/// One-sided communication and its synchronisation.
///
/// # Safety
/// A call of the gate.
pub unsafe fn one_sided(call: &mut Call) -> usize {
    let procedure = session().shapes[call.index].procedure;
    let request = procedure.output_index(phasecast_abi::Kind::Request).is_some();
    // SAFETY: the caller's.
    let result = unsafe { if request { crate::point::post(call) } else { forward(call) } };
    if result as i32 != 0 {
        return result;
    }
    let mut s = session();
    let Class::Rma { step, .. } = procedure.class else { return result };
    if step == RmaStep::Communication {
        s.one_sided.since_fence = s.one_sided.epochs == 0;
        return result;
    }
    match procedure.name {
        "MPI_Win_fence" => {
            s.one_sided.since_fence = false;
            let window = call.arg(1) & s.values.upper.layout().handle_mask as usize;
            s.one_sided.fenced.insert(window);
            s.event();
        }
        "MPI_Win_lock" | "MPI_Win_lock_all" | "MPI_Win_start" | "MPI_Win_post" => {
            s.one_sided.epochs += 1;
            s.one_sided.fenced.clear();
        }
        "MPI_Win_unlock" | "MPI_Win_unlock_all" | "MPI_Win_complete" | "MPI_Win_wait" => s.one_sided.epochs -= 1,
        "MPI_Win_test" => {
            // SAFETY: the caller's: the flag.
            let done = unsafe { *(call.arg(1) as *const i32) } != 0;
            s.one_sided.epochs -= i64::from(done);
        }
        _ => {}
    }
    result
}

/// `MPI_Win_allocate_shared`: its memory is the library's, so no image can hold it.
///
/// # Safety
/// A call of the gate.
pub unsafe fn shared(call: &mut Call) -> usize {
    // SAFETY: the caller's.
    let result = unsafe { forward(call) };
    if result as i32 == 0 {
        let mut s = session();
        s.unsaveable.push("the program has memory that MPI shares between ranks (MPI_Win_allocate_shared)".into());
        s.event();
    }
    result
}
