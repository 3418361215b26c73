//! The logical trace (seed 002, section 2): one program for all ranks, whose messages go to logical neighbours.
//! Ranks that do something else (edges, corners, roots, stages of a pipeline) are classes with traces of their own.
use crate::nest::Node;
use phasecast_trace::Counters;
use serde::{Deserialize, Serialize};

/// A logical trace: what the skeleton program is written from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogicalTrace {
    /// The traced program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Ranks.
    pub ranks: u32,
    /// Time of the traced run, `MPI_Init` to `MPI_Finalize`, in nanoseconds.
    pub run_ns: u64,
    /// The topology in words, as `16x8 grid`; none if none was recognised.
    pub topology: Option<String>,
    /// Where messages go.
    pub directions: Vec<Direction>,
    /// Communicators that collectives use; 0 is the world.
    pub groups: Vec<Group>,
    /// Ranks that do the same.
    pub classes: Vec<ClassTrace>,
    /// What is not in it, in sentences for the user.
    pub left_out: Vec<String>,
    /// What was counted of computation, if anything was.
    pub counted: Option<Counted>,
}

/// What was counted of computation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// By which counters.
    pub counters: Counters,
    /// Share of the time of computation that was counted, 0 to 1.
    pub share: f64,
}

/// A logical neighbour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// A C identifier: `EAST`, `WEST`, `UP`, `PARENT`, `CHILD_1`, `RANK_0`.
    pub name: String,
    /// For each rank, who lies there; none at an edge.
    pub peer: Vec<Option<u32>>,
}

/// A communicator: a partition of some ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// A C identifier: `WORLD`, `ROW`, `GROUP_2`.
    pub name: String,
    /// World ranks of each of its communicators in the order of their ranks there; disjoint.
    pub members: Vec<Vec<u32>>,
}

/// The trace of some ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassTrace {
    /// World ranks, ascending. Each rank is in one class.
    pub ranks: Vec<u32>,
    /// What they do.
    pub body: Vec<Node<Step>>,
}

/// Some computation, then a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Computation before the call.
    pub compute: Computation,
    /// The call.
    pub call: Operation,
    /// Mean time of the call on the base, in nanoseconds.
    pub call_ns: f64,
}

/// Times of all computations that a symbol stands for, over all ranks of its class, without time that was spent waiting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Computation {
    /// How many.
    pub count: u64,
    /// Their mean in nanoseconds.
    pub mean_ns: f64,
    /// Their standard deviation in nanoseconds.
    pub deviation_ns: f64,
    /// Their quantiles at 0, 1/8, ... 1 in nanoseconds, where they spread; else empty.
    pub quantiles_ns: Vec<f64>,
    /// What they did, where the trace has counts.
    pub work: Option<Work>,
}

/// What computation did in a microsecond, by the counts of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Instructions.
    pub instructions_per_us: f64,
    /// Cache lines that came from memory.
    pub lines_per_us: f64,
}

/// How a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// `MPI_Send`, `MPI_Isend`.
    Standard,
    /// `MPI_Ssend`, `MPI_Issend`.
    Synchronous,
    /// `MPI_Bsend`, `MPI_Ibsend`.
    Buffered,
    /// `MPI_Rsend`, `MPI_Irsend`.
    Ready,
}

/// One end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct End {
    /// Index into [`LogicalTrace::directions`].
    pub direction: u16,
    /// Tag.
    pub tag: i32,
    /// Bytes: sent, or received.
    pub bytes: u64,
}

/// A call of the logical trace. Requests live in slots: a nonblocking call takes the lowest free one, a completion
/// frees those that it completed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Operation {
    /// A send; it blocks if it has no slot.
    Send {
        /// Where, and how much.
        end: End,
        /// How.
        mode: Mode,
        /// The slot of its request.
        slot: Option<u16>,
    },
    /// A receive; it blocks if it has no slot.
    Receive {
        /// From where, and how much was received.
        end: End,
        /// Whether it took any source; it is written with the source that was recorded.
        wildcard: bool,
        /// The slot of its request.
        slot: Option<u16>,
    },
    /// `MPI_Sendrecv`; one side may be missing (`MPI_PROC_NULL`).
    SendReceive {
        /// What is sent.
        send: Option<End>,
        /// What is received.
        receive: Option<End>,
    },
    /// Any completion call: waits for the slots that it completed.
    Wait {
        /// The slots, ascending.
        slots: Vec<u16>,
    },
    /// A collective.
    Collective {
        /// The name of its blocking form: `MPI_Allreduce`.
        name: String,
        /// Index into [`LogicalTrace::groups`].
        group: u16,
        /// Bytes of this rank's part.
        bytes: u64,
        /// The root's rank in the communicator, where it has one.
        root: Option<u32>,
        /// The slot of its request, if it does not block.
        slot: Option<u16>,
    },
    /// Computation alone: the end of the run.
    Nothing,
}
