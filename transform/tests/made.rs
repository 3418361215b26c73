//! Traces and machines made by hand, for tests of the transformation.
#![allow(dead_code)]
use phasecast_trace::model::{COMPUTING_CLOCK, CommDef, Ending, PEER_NONE, TAG_NONE, Trailer};
use phasecast_trace::writer::{TraceWriter, made_header};
use phasecast_trace::{Call, Class, CommId, Counters, Counts, Flags, Nanos, Part, PartKind, ProcId, Rank, Trace};
use phasecast_transform::machine::{Collective, Cost, Costs, Identity, Kernel, Link, Machine, Place};
use phasecast_transform::transform::{Outcome, Settings, TransformError, transform};
use std::path::Path;

/// Procedures of made traces.
pub const PROCEDURES: [&str; 16] = [
    "MPI_Send",
    "MPI_Recv",
    "MPI_Isend",
    "MPI_Irecv",
    "MPI_Wait",
    "MPI_Allreduce",
    "MPI_Bcast",
    "MPI_Sendrecv",
    "MPI_Ssend",
    "MPI_Alltoall",
    "MPI_Scatter",
    "MPI_Neighbor_alltoall",
    "MPI_Ssend_init",
    "MPI_Allreduce_init",
    "MPI_Start",
    "MPI_Init",
];

/// A call with its parts.
pub type Made = (Call, Vec<Part>);

/// A call with no peer.
pub fn call(proc: u16, class: Class, enter: u64, exit: u64) -> Call {
    Call {
        proc: ProcId(proc),
        class,
        flags: Flags::default(),
        thread: 0,
        peer: PEER_NONE,
        tag: TAG_NONE,
        bytes: 0,
        comm: CommId(0),
        site: u64::from(proc) * 16 + 1,
        enter: Nanos(enter),
        exit: Nanos(exit),
    }
}

/// A part.
pub fn part(kind: PartKind, peer: u32, tag: i32, bytes: u64) -> Part {
    Part { kind, flags: Flags::default(), peer: peer as i32, tag, bytes, comm: CommId(0) }
}

/// A blocking send.
pub fn send(to: u32, bytes: u64, enter: u64, exit: u64) -> Made {
    (Call { peer: to as i32, tag: 1, bytes, ..call(0, Class::Send, enter, exit) }, Vec::new())
}

/// A blocking receive.
pub fn recv(from: u32, bytes: u64, enter: u64, exit: u64) -> Made {
    (call(1, Class::Recv, enter, exit), vec![part(PartKind::Recv, from, 1, bytes)])
}

/// A nonblocking send.
pub fn isend(to: u32, bytes: u64, enter: u64, exit: u64) -> Made {
    let flags = Flags::NONBLOCKING;
    (Call { peer: to as i32, tag: 1, bytes, flags, ..call(2, Class::Send, enter, exit) }, Vec::new())
}

/// A nonblocking receive.
pub fn irecv(from: u32, bytes: u64, enter: u64, exit: u64) -> Made {
    let flags = Flags::RECV_POST;
    (Call { peer: from as i32, tag: 1, bytes, flags, ..call(3, Class::Post, enter, exit) }, Vec::new())
}

/// The wait for a nonblocking receive.
pub fn wait(from: u32, bytes: u64, enter: u64, exit: u64) -> Made {
    (call(4, Class::Complete, enter, exit), vec![part(PartKind::Recv, from, 1, bytes)])
}

/// A rank's part in an all-to-all collective.
pub fn allreduce(bytes: u64, enter: u64, exit: u64) -> Made {
    (Call { bytes, ..call(5, Class::Collective, enter, exit) }, Vec::new())
}

/// Writes a trace; each rank ends with its last call.
pub fn write(path: &Path, ranks: &[Vec<Made>]) -> Trace {
    write_with(path, ranks, None)
}

/// The same with these counts before each call.
pub fn write_with(path: &Path, ranks: &[Vec<Made>], counts: Option<Counts>) -> Trace {
    write_as(path, ranks, counts, &Recorded::default())
}

/// How a trace was recorded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorded {
    /// Time passes only while ranks compute.
    pub computing: bool,
    /// Ranks from here on were cut off.
    pub cut_from: Option<usize>,
    /// Ranks from here on were on a second node.
    pub second_from: Option<usize>,
    /// Communicator 1 is each rank by itself.
    pub alone: bool,
    /// Processes but the first start so much later, in ns.
    pub late: u64,
}

/// The same, recorded in some way.
pub fn write_as(path: &Path, ranks: &[Vec<Made>], counts: Option<Counts>, recorded: &Recorded) -> Trace {
    let size = ranks.len() as u32;
    let writer = TraceWriter::create(path).expect("a new trace");
    for (rank, calls) in ranks.iter().enumerate() {
        let mut header = made_header(Rank(rank as u32), size, "made", &PROCEDURES);
        if recorded.second_from.is_some_and(|from| rank >= from) {
            (header.host, header.boot_id) = ("second".into(), "second".into());
        }
        if rank > 0 {
            let late = recorded.late;
            (header.clock.units, header.clock.monotonic_ns, header.clock.realtime_ns) = (late, late, late);
        }
        if recorded.computing {
            header.boot_id = COMPUTING_CLOCK.into();
        }
        let out = match counts {
            Some(_) => writer.counted_rank(&header, &Counters::hardware()),
            None => writer.rank(&header),
        };
        let mut out = out.expect("a rank");
        let mut comms = vec![CommDef { local: 0, members: (0..size).collect(), remote: Vec::new() }];
        if recorded.alone {
            comms.push(CommDef { local: 1, members: vec![rank as u32], remote: Vec::new() });
        }
        out.comms(&comms).expect("comms");
        for (call, parts) in calls {
            out.thread(call.thread).expect("a thread");
            out.push_counted(call, parts, counts).expect("a call");
        }
        let end = calls.last().map_or(0, |c| c.0.exit.0);
        let is_cut = recorded.cut_from.is_some_and(|from| rank >= from);
        let ending = if is_cut { Ending::Stopped("cut".into()) } else { Ending::Finalized };
        out.finish(Trailer { ending, calls: 0, end_units: end, own_ns: 0, modules: Vec::new() }).expect("an end");
    }
    writer.finish().expect("a whole trace");
    Trace::open(path).expect("it opens")
}

/// What is in a trace.
pub fn read(trace: &Trace) -> Vec<Vec<Made>> {
    let of = |rank| {
        let (mut calls, mut reader) = (Vec::new(), trace.calls(rank));
        while let Some(item) = reader.next_call().expect("a whole trace") {
            calls.push((*item.call, item.parts.to_vec()));
        }
        calls
    };
    trace.ranks().map(of).collect()
}

/// Costs that do not depend on length.
pub fn flat(seconds: f64) -> Costs {
    Costs(vec![Cost { bytes: 0, seconds, spread: 0.0 }])
}

/// A machine of one node: f(b) and g(b) for all lengths, transfers that take no longer than sends.
pub fn machine(send: f64, receive: f64) -> Machine {
    let link = Link {
        place: Place::Within,
        latency_s: 0.0,
        bandwidth: 1e30,
        eager_bytes: None,
        overlap: 0.0,
        contention: Some(1.0),
        send: flat(send),
        receive: flat(receive),
        isend: flat(send),
        irecv: flat(1e-7),
        wait: flat(receive),
        wait_send: flat(1e-7),
        transfer: flat(1e-9),
    };
    let identity = Identity { hosts: vec!["here".into()], mpi: "an MPI".into(), ..Identity::default() };
    let all = Collective {
        name: "MPI_Allreduce".into(),
        ranks: 2,
        costs: flat(receive),
        root: Costs::default(),
        others: Costs::default(),
    };
    let kernels = vec![Kernel { name: "stencil".into(), seconds: 1e-3, spread: 0.0 }];
    Machine { identity, links: vec![link], collectives: vec![all], kernels, ..Machine::empty() }
}

/// Transforms a made trace with one ratio; the calls that come out.
pub fn transformed(
    ranks: &[Vec<Made>],
    base: &Machine,
    target: &Machine,
    settings: &Settings<'_>,
) -> Result<(Vec<Vec<Made>>, Outcome), TransformError> {
    transformed_as(ranks, &Recorded::default(), base, target, settings)
}

/// The same of one that was recorded in some way.
pub fn transformed_as(
    ranks: &[Vec<Made>],
    recorded: &Recorded,
    base: &Machine,
    target: &Machine,
    settings: &Settings<'_>,
) -> Result<(Vec<Vec<Made>>, Outcome), TransformError> {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = write_as(&folder.path().join("base.trace"), ranks, None, recorded);
    let path = folder.path().join("new.trace");
    let outcome = transform(&trace, base, target, settings, &path, &|_, _| {})?;
    Ok((read(&Trace::open(&path).expect("the new trace opens")), outcome))
}

/// With the ratio `k` and one thread.
pub fn ratio(k: f64) -> Settings<'static> {
    Settings { ratio: Some(k), threads: 1, ..Settings::default() }
}
