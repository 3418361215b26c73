//! What a recorded call says about communication: what all classes of calls share. (Collectives and completions have
//! files of their own beside this folder.)
pub mod constructor;
pub mod matched;
pub mod message;
pub mod other;

use crate::clock;
use crate::plan::{NONE, Plan};
use crate::real::mpi;
use crate::thread::Thread;
use phasecast_abi::{CountLayout, Layout, Side};
use phasecast_trace::encode::{PART, Shape};
use phasecast_trace::model::{Class, Flags, PEER_NONE, PartKind, TAG_ANY, TAG_NONE};

/// A call that is under way or done.
pub struct Call {
    /// The procedure.
    pub plan: &'static Plan,
    /// Where it returns to.
    pub site: usize,
    /// When it was entered, in units.
    pub enter: u64,
    /// When it returned, in units.
    pub exit: u64,
}

impl Call {
    /// A call that is about to be made.
    #[inline(always)]
    pub fn new(plan: &'static Plan, site: usize) -> Call {
        Call { plan, site, enter: 0, exit: 0 }
    }

    /// Makes it.
    #[inline(always)]
    pub fn time(&mut self, call: impl FnOnce() -> usize) -> usize {
        self.enter = clock::entered();
        let rc = call();
        self.exit = clock::returned(self.enter);
        rc
    }

    /// Its shape.
    #[inline(always)]
    pub fn shape(&self, class: Class, flags: Flags, peer: i32, tag: i32, bytes: u64, comm: u32) -> Shape {
        let (site, proc, flags, role) = (self.site as u64, self.plan.number, flags.0, class as u8);
        Shape { peer, tag, bytes, site, comm, proc, flags, role }
    }

    /// Records it as having failed: no communication came of it.
    #[inline(always)]
    pub fn failed(&self, thread: &mut Thread) {
        record_failed(thread, Call { ..*self });
    }
}

/// Takes the call by value, so that it need not stand in memory where calls succeed.
#[cold]
fn record_failed(thread: &mut Thread, call: Call) {
    thread.record(&call, &call.shape(Class::Other, Flags::ERROR, PEER_NONE, TAG_NONE, 0, 0));
}

/// The shape of a part.
pub fn part(kind: PartKind, flags: Flags, peer: i32, tag: i32, bytes: u64, comm: u32) -> Shape {
    Shape { peer, tag, bytes, site: 0, comm, proc: 0, flags: flags.0, role: PART | kind as u8 }
}

/// Whether a procedure returned an error.
#[inline(always)]
pub fn failed(rc: usize) -> bool {
    rc as i32 != 0
}

/// Whether a receive that returned this has received a message: it did, too, if the message was too long for the buffer.
#[inline(always)]
pub fn has_received(rc: usize) -> bool {
    !failed(rc) || is_of_class(rc as i32, "MPI_ERR_TRUNCATE")
}

/// Whether an error code is of a class.
#[cold]
pub fn is_of_class(code: i32, name: &str) -> bool {
    let mut class = 0i32;
    mpi!(MPI_Error_class(code, &raw mut class));
    crate::real::library().and_then(|library| library.constant(name)) == Some(class as usize)
}

/// The handle that stands at an address.
///
/// # Safety
/// A handle stands there.
#[inline(always)]
pub unsafe fn handle_at(layout: &Layout, at: usize) -> usize {
    // SAFETY: the caller's.
    unsafe {
        if layout.handle_bytes == 4 { (at as *const u32).read_unaligned() as usize } else { *(at as *const usize) }
    }
}

#[inline(always)]
fn tag(layout: &Layout, tag: usize) -> i32 {
    if tag as i32 == layout.any_tag { TAG_ANY } else { tag as i32 }
}

/// Bytes of a buffer that is described by one count.
///
/// # Safety
/// `args` are those of a procedure with this side.
#[inline(always)]
pub unsafe fn side_bytes(thread: &mut Thread, plan: &Plan, side: &Side, args: &[usize]) -> u64 {
    let count = match side.count {
        Some(at) if plan.wide => args[at as usize] as i64,
        Some(at) => i64::from(args[at as usize] as i32),
        None => 1,
    };
    // Where there is nothing, the datatype need not be one.
    if count <= 0 {
        return 0;
    }
    let partitions = side.partitions.map_or(1, |at| args[at as usize] as i32 as u64);
    let size = side.datatype.map_or(1, |at| thread.type_size(args[at as usize]));
    (count as u64).wrapping_mul(partitions).wrapping_mul(size)
}

/// A status that stands in for one that the program does not want.
#[derive(Default)]
pub struct OwnStatus([u64; 8]);

impl OwnStatus {
    /// Puts this one in place of `MPI_STATUS_IGNORE`.
    #[inline(always)]
    pub fn lend(&mut self, thread: &Thread, plan: &Plan, args: &mut [usize]) {
        if plan.status != NONE && args[plan.status] == thread.layout.status_ignore {
            args[plan.status] = self.0.as_mut_ptr() as usize;
        }
    }
}

/// What a status says of a receive.
pub struct Arrived {
    /// Rank of the sender in the communicator.
    pub source: i32,
    /// The tag.
    pub tag: i32,
    /// The bytes.
    pub bytes: u64,
    /// Nothing was received: the request was cancelled.
    pub cancelled: bool,
}

/// Reads a status.
///
/// # Safety
/// A status that MPI has filled in stands there.
#[inline(always)]
pub unsafe fn arrived(layout: &Layout, at: usize) -> Arrived {
    // SAFETY: fields of the status, by the layout of the interface.
    let word = |offset: usize| unsafe { ((at + offset) as *const i32).read_unaligned() };
    let (source, tag) = (word(layout.status.source), word(layout.status.tag));
    let (bytes, cancelled) = match layout.status.count {
        _ if layout.abi == phasecast_abi::Abi::Standard => ask_status(at),
        CountLayout::Apart { bytes, cancelled } => {
            // SAFETY: as above.
            (unsafe { ((at + bytes) as *const u64).read_unaligned() }, word(cancelled) != 0)
        }
        CountLayout::Packed { low, high } => {
            let high = word(high) as u32;
            (u64::from(word(low) as u32) | u64::from(high >> 1) << 32, high & 1 != 0)
        }
    };
    Arrived { source, tag, bytes, cancelled }
}

/// The standard interface leaves to each library how a status holds these.
#[cold]
fn ask_status(at: usize) -> (u64, bool) {
    const BYTE: usize = match phasecast_abi::constant("MPI_BYTE") {
        Some(byte) => match byte.value(phasecast_abi::Abi::Standard) {
            phasecast_abi::Value::Number(handle) => handle as usize,
            _ => panic!("a number in the standard interface"),
        },
        None => panic!("a constant of MPI"),
    };
    let (mut bytes, mut cancelled) = (0i64, 0i32);
    mpi!(MPI_Get_elements_c(at, BYTE, &raw mut bytes));
    mpi!(MPI_Test_cancelled(at, &raw mut cancelled));
    (u64::try_from(bytes).unwrap_or(0), cancelled != 0)
}
