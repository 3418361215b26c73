//! What a procedure does.

/// When the work of a communication is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timing {
    /// In the call.
    Blocking,
    /// From the call to the completion of its request.
    Nonblocking,
    /// From each start of its request to the completion.
    Persistent,
    /// As persistent, in partitions.
    Partitioned,
}

/// The four ways of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendMode {
    /// `MPI_Send`.
    Standard,
    /// `MPI_Bsend`.
    Buffered,
    /// `MPI_Ssend`.
    Synchronous,
    /// `MPI_Rsend`.
    Ready,
}

/// Of how many requests a completion call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Which {
    /// The one given.
    One,
    /// One of several.
    Any,
    /// Those of several that are done.
    Some,
    /// Several together.
    All,
}

/// What a collective does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// All wait for all.
    Barrier,
    /// One to all, the same data.
    Bcast,
    /// All to one.
    Gather,
    /// One to all, each its part.
    Scatter,
    /// All to all, the same data.
    Allgather,
    /// All to all, each its part.
    Alltoall,
    /// All to one, combined.
    Reduce,
    /// All to all, combined.
    Allreduce,
    /// Combined, then scattered, with counts per rank.
    ReduceScatter,
    /// Combined, then scattered in equal blocks.
    ReduceScatterBlock,
    /// Combined over the ranks up to each.
    Scan,
    /// Combined over the ranks before each.
    Exscan,
}

/// Whether counts (v) and datatypes (w) differ from rank to rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vector {
    /// One count, one datatype.
    None,
    /// Counts per rank.
    Counts,
    /// Counts and datatypes per rank.
    CountsAndTypes,
}

/// Which ranks call a constructor of communicators together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callers {
    /// Those of the parent, of which some may get no communicator.
    Parent,
    /// The members of the new communicator: some of the parent's, if there is one.
    Members,
    /// The members of the new intercommunicator: all of the parent's and those of another.
    BothGroups,
}

/// What a one-sided procedure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RmaStep {
    /// Moves data.
    Communication,
    /// Ends an epoch of all members of the window's group, or begins one, or both.
    Fence,
    /// Opens one's own memory to a group's members.
    Post,
    /// Begins access to the memory of a group's members, once each has opened it.
    Start,
    /// Ends that access.
    Complete,
    /// Closes one's own memory once each member of the group has ended its access, or asks whether it can be.
    Wait,
    /// Begins access to memory whose owner does nothing about it.
    Lock,
    /// Ends that access.
    Unlock,
    /// Completes what has been moved, or orders it, within an epoch.
    Flush,
    /// Makes a window: collective over its communicator.
    WindowConstructor,
    /// Frees a window: collective over its group.
    WindowFree,
    /// Attaches or detaches memory, or asks for a shared part.
    Other,
}

/// What an I/O procedure does to the data of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoStep {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Opens, closes, seeks, sets a view and so on.
    Other,
}

/// What a procedure is for somebody who follows the communication of a program. Indices are those of [`Param`](super::Param)s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// A send: to [`Kind::Dest`](super::Kind::Dest).
    Send {
        /// When it is done.
        timing: Timing,
        /// Which way.
        mode: SendMode,
    },
    /// A receive: from [`Kind::Source`](super::Kind::Source).
    Recv {
        /// When it is done.
        timing: Timing,
    },
    /// A send and a receive in one.
    SendRecv {
        /// When it is done.
        timing: Timing,
        /// One buffer for both.
        replace: bool,
    },
    /// A receive of a message that was matched before.
    MatchedRecv {
        /// When it is done.
        timing: Timing,
    },
    /// A look at what has come.
    Probe {
        /// It waits.
        blocking: bool,
        /// It takes the message out ([`Kind::Message`](super::Kind::Message)), for a matched receive.
        matched: bool,
    },
    /// Completion of requests.
    Completion {
        /// It waits (else it tests).
        blocking: bool,
        /// Of how many.
        which: Which,
    },
    /// Start of persistent requests.
    Start {
        /// Of several.
        all: bool,
    },
    /// Partitions of a partitioned send are ready.
    Pready,
    /// A collective that moves data, or a barrier.
    Collective {
        /// What it does.
        pattern: Pattern,
        /// When it is done.
        timing: Timing,
        /// Between neighbours of a topology only.
        neighbourhood: bool,
        /// Per-rank counts or datatypes.
        vector: Vector,
        /// Argument that is the root, if any.
        root: Option<u8>,
    },
    /// Makes a communicator.
    CommConstructor {
        /// Argument that is the communicator from which it is made, if any.
        parent: Option<u8>,
        /// The ranks that call it.
        callers: Callers,
        /// Argument that the new communicator is written to.
        child: u8,
        /// Blocking or nonblocking.
        timing: Timing,
    },
    /// Frees a communicator.
    CommFree {
        /// It waits for pending communication.
        disconnect: bool,
    },
    /// One-sided communication.
    Rma {
        /// What it is.
        step: RmaStep,
        /// Blocking or nonblocking.
        timing: Timing,
    },
    /// MPI-IO.
    Io {
        /// What it does to the data.
        step: IoStep,
        /// All processes of the file's group call it.
        collective: bool,
        /// Blocking, nonblocking, or (for `_begin`) persistent from `_begin` to `_end`.
        timing: Timing,
    },
    /// `MPI_Init` and its kin.
    Init,
    /// `MPI_Finalize`.
    Finalize,
    /// Starts a session.
    SessionInit,
    /// Ends a session.
    SessionFinalize,
    /// `MPI_Abort`.
    Abort,
    /// `MPI_Pcontrol`.
    Pcontrol,
    /// Frees a request.
    RequestFree,
    /// Cancels a request.
    Cancel,
    /// Makes a datatype.
    DatatypeConstructor,
    /// Frees a datatype: what was known of the handle is void.
    DatatypeFree,
    /// Anything else.
    Other,
}

impl Class {
    /// It sends or is a collective: a persistent form of it makes a request that does, once it is started.
    pub fn sends(&self) -> bool {
        matches!(self, Class::Send { .. } | Class::Collective { .. })
    }
}
