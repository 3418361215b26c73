//! Makes traces for tests: what each rank calls, written through the trace's writer.
#![allow(dead_code, missing_docs)]
use phasecast_skeleton::compress::Method;
use phasecast_skeleton::logical::{LogicalTrace, Operation};
use phasecast_skeleton::nest::Node;
use phasecast_skeleton::program::calibrate::{Mix, Rates};
use phasecast_skeleton::steps::{Settings, logical_trace};
use phasecast_skeleton::{SkeletonError, topology};
use phasecast_trace::model::{CommDef, Ending, PEER_ANY, PEER_NONE, TAG_ANY, TAG_NONE, Trailer};
use phasecast_trace::writer::{TraceWriter, made_header};
use phasecast_trace::{Call, Class, CommId, Counters, Counts, Flags, Nanos, Part, PartKind, ProcId, Rank, Trace};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Rates of no machine.
pub const RATES: Rates = Rates {
    mix: Mix { memory: 0.5, working_set: 1 << 16 },
    rounds_per_us: 100.0,
    lines_per_us: 100.0,
    block_us: 0.0,
    far: None,
};

pub const NAMES: [&str; 32] = [
    "MPI_Init",
    "MPI_Finalize",
    "MPI_Send",
    "MPI_Recv",
    "MPI_Isend",
    "MPI_Irecv",
    "MPI_Wait",
    "MPI_Waitall",
    "MPI_Test",
    "MPI_Waitany",
    "MPI_Allreduce",
    "MPI_Iallreduce",
    "MPI_Bcast",
    "MPI_Sendrecv",
    "MPI_Iprobe",
    "MPI_Win_fence",
    "MPI_File_write_all",
    "MPI_Pcontrol",
    "MPI_Send_init",
    "MPI_Recv_init",
    "MPI_Start",
    "MPI_Alltoallv",
    "MPI_Waitsome",
    "MPI_Ibarrier",
    "MPI_File_iwrite",
    "MPI_Rput",
    "MPI_Comm_idup",
    "MPI_Isendrecv",
    "MPI_Session_init",
    "MPI_Session_finalize",
    "MPI_Neighbor_allgather",
    "MPI_Finalized",
];

pub fn procedure(name: &str) -> ProcId {
    ProcId(NAMES.iter().position(|n| *n == name).unwrap_or_else(|| panic!("{name} is not in the list")) as u16)
}

/// The calls of one rank, one after the other.
#[derive(Clone, Debug)]
pub struct Calls {
    pub list: Vec<(Call, Vec<Part>)>,
    pub now: u64,
    /// How long each call takes.
    pub each: u64,
    site: u64,
    /// What was counted before calls, by their places in the list.
    counts: BTreeMap<usize, Counts>,
}

impl Calls {
    pub fn new() -> Calls {
        let mut calls = Calls { list: Vec::new(), now: 1000, each: 100, site: 0, counts: BTreeMap::new() };
        calls.push("MPI_Init", Class::Setup, |_| {}, vec![]);
        calls
    }

    pub fn push(&mut self, name: &str, class: Class, set: impl FnOnce(&mut Call), parts: Vec<Part>) -> &mut Calls {
        let (enter, exit) = (Nanos(self.now), Nanos(self.now + self.each));
        let mut call = Call {
            proc: procedure(name),
            class,
            site: self.site,
            peer: PEER_NONE,
            tag: TAG_NONE,
            enter,
            exit,
            ..Call::BLANK
        };
        set(&mut call);
        self.now = call.exit.0;
        self.list.push((call, parts));
        self
    }

    /// What follows is called from here.
    pub fn from(&mut self, site: u64) -> &mut Calls {
        self.site = site;
        self
    }

    pub fn work(&mut self, ns: u64) -> &mut Calls {
        self.now += ns;
        self
    }

    /// What comes next has this counted before it.
    pub fn counted(&mut self, instructions: u64, misses: u64) -> &mut Calls {
        self.counts.insert(self.list.len(), Counts { instructions, cycles: instructions, misses });
        self
    }

    pub fn send(&mut self, to: u32, tag: i32, bytes: u64) -> &mut Calls {
        self.push("MPI_Send", Class::Send, |c| (c.peer, c.tag, c.bytes) = (to as i32, tag, bytes), vec![])
    }

    pub fn isend(&mut self, to: u32, tag: i32, bytes: u64) -> &mut Calls {
        let set = |c: &mut Call| (c.peer, c.tag, c.bytes, c.flags) = (to as i32, tag, bytes, Flags::NONBLOCKING);
        self.push("MPI_Isend", Class::Send, set, vec![])
    }

    pub fn recv(&mut self, from: u32, tag: i32, bytes: u64) -> &mut Calls {
        self.push("MPI_Recv", Class::Recv, |_| {}, vec![got(from, tag, bytes)])
    }

    pub fn recv_any(&mut self, from: u32, tag: i32, bytes: u64) -> &mut Calls {
        let part = Part { flags: Flags::WILDCARD, ..got(from, tag, bytes) };
        self.push("MPI_Recv", Class::Recv, |c| (c.peer, c.flags) = (PEER_ANY, Flags::WILDCARD), vec![part])
    }

    pub fn irecv(&mut self, from: u32, tag: i32, bytes: u64) -> &mut Calls {
        let flags = Flags::NONBLOCKING.with(Flags::RECV_POST);
        let set = |c: &mut Call| (c.peer, c.tag, c.bytes, c.flags) = (from as i32, tag, bytes, flags);
        self.push("MPI_Irecv", Class::Post, set, vec![])
    }

    pub fn irecv_any(&mut self) -> &mut Calls {
        let flags = Flags::NONBLOCKING.with(Flags::RECV_POST).with(Flags::WILDCARD);
        self.push("MPI_Irecv", Class::Post, |c| (c.peer, c.tag, c.flags) = (PEER_ANY, TAG_ANY, flags), vec![])
    }

    /// Begins what does not block and leaves no mark when it is done.
    pub fn begin(&mut self, name: &str, class: Class, bytes: u64) -> &mut Calls {
        self.push(name, class, |c| (c.bytes, c.flags) = (bytes, Flags::NONBLOCKING), vec![])
    }

    pub fn complete(&mut self, name: &str, parts: Vec<Part>) -> &mut Calls {
        self.push(name, Class::Complete, |_| {}, parts)
    }

    pub fn wait(&mut self, parts: Vec<Part>) -> &mut Calls {
        self.complete("MPI_Wait", parts)
    }

    pub fn waitall(&mut self, parts: Vec<Part>) -> &mut Calls {
        self.complete("MPI_Waitall", parts)
    }

    pub fn collective(&mut self, name: &str, comm: u32, root: i32, bytes: u64) -> &mut Calls {
        let set = |c: &mut Call| (c.peer, c.bytes, c.comm) = (root, bytes, CommId(comm));
        self.push(name, Class::Collective, set, vec![])
    }
}

pub fn got(from: u32, tag: i32, bytes: u64) -> Part {
    Part { kind: PartKind::Recv, flags: Flags::default(), peer: from as i32, tag, bytes, comm: CommId(0) }
}

pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    /// Writes a trace; `comms` are the communicators beside the world, by world ranks, numbered from 1.
    pub fn trace(&self, comms: &[Vec<u32>], ranks: Vec<Calls>) -> Trace {
        let path: PathBuf = self.0.path().join("made.trace");
        write(&path, comms, ranks, Ending::Finalized)
    }

    pub fn ended(&self, ranks: Vec<Calls>, ending: Ending) -> Trace {
        write(&self.0.path().join("ended.trace"), &[], ranks, ending)
    }
}

fn write(path: &Path, comms: &[Vec<u32>], ranks: Vec<Calls>, ending: Ending) -> Trace {
    let size = ranks.len() as u32;
    let writer = TraceWriter::create(path).unwrap();
    for (rank, mut calls) in ranks.into_iter().enumerate() {
        calls.push("MPI_Finalize", Class::Setup, |_| {}, vec![]);
        let header = made_header(Rank(rank as u32), size, "made", &NAMES);
        let counted = !calls.counts.is_empty();
        let mut out =
            if counted { writer.counted_rank(&header, &Counters::hardware()) } else { writer.rank(&header) }.unwrap();
        let mut defs = vec![CommDef { local: 0, members: (0..size).collect(), remote: vec![] }];
        defs.extend(
            comms
                .iter()
                .enumerate()
                .filter(|(_, members)| members.contains(&(rank as u32)))
                .map(|(at, members)| CommDef { local: at as u32 + 1, members: members.clone(), remote: vec![] }),
        );
        out.comms(&defs).unwrap();
        for (at, (call, parts)) in calls.list.iter().enumerate() {
            out.push_counted(call, parts, calls.counts.get(&at).copied()).unwrap();
        }
        let end_units = calls.now;
        out.finish(Trailer { ending: ending.clone(), calls: 0, end_units, own_ns: 0, modules: vec![] }).unwrap();
    }
    writer.finish().unwrap();
    Trace::open(path).unwrap()
}

pub fn try_logical(trace: &Trace, threads: usize) -> Result<LogicalTrace, SkeletonError> {
    let matrix = topology::Matrix::of_trace(trace, &|_, _| {}).unwrap();
    let recognition = topology::recognise(&matrix);
    let directions = topology::directions(&matrix, &recognition);
    let settings = Settings { method: Method::Greedy, threads };
    logical_trace(trace, &recognition, &directions, &settings, &|_, _| {})
}

pub fn logical(trace: &Trace) -> LogicalTrace {
    try_logical(trace, 1).unwrap()
}

/// A class in short: `(isend(EAST)0 irecv(WEST)1 wait[0,1])^10 end`.
pub fn short(logical: &LogicalTrace, class: usize) -> String {
    fn nodes(logical: &LogicalTrace, list: &[Node<phasecast_skeleton::logical::Step>]) -> String {
        let parts = list.iter().map(|node| match node {
            Node::Item(step) => operation(logical, &step.call),
            Node::Loop { count, body } => format!("({})^{count}", nodes(logical, body)),
        });
        parts.collect::<Vec<_>>().join(" ")
    }
    nodes(logical, &logical.classes[class].body)
}

fn operation(logical: &LogicalTrace, call: &Operation) -> String {
    let name = |direction: u16| logical.directions[direction as usize].name.as_str();
    let slot = |slot: &Option<u16>| slot.map(|s| format!("#{s}")).unwrap_or_default();
    match call {
        Operation::Send { end, slot: s, .. } => format!("send({},{}){}", name(end.direction), end.bytes, slot(s)),
        Operation::Receive { end, slot: s, .. } => format!("recv({},{}){}", name(end.direction), end.bytes, slot(s)),
        Operation::SendReceive { send, receive } => {
            let side = |end: &Option<phasecast_skeleton::logical::End>| {
                end.map_or("-".into(), |e| name(e.direction).to_owned())
            };
            format!("sendrecv({},{})", side(send), side(receive))
        }
        Operation::Wait { slots } => format!("wait{slots:?}"),
        Operation::Collective { name, group, bytes, root, slot: s } => {
            let root = root.map(|r| format!(",root {r}")).unwrap_or_default();
            format!("{}({group},{bytes}{root}){}", name.trim_start_matches("MPI_").to_lowercase(), slot(s))
        }
        Operation::Nothing => "end".into(),
    }
}

/// Ranks on a circle that send to the right and receive from the left.
pub fn circle(ranks: u32, steps: u32, each: impl Fn(&mut Calls, u32, u32)) -> Vec<Calls> {
    let rank = |rank: u32| {
        let mut calls = Calls::new();
        for step in 0..steps {
            each(&mut calls, rank, step);
            let (right, left) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
            calls.irecv(left, 7, 4096).isend(right, 7, 4096).work(500);
            calls.waitall(vec![got(left, 7, 4096)]);
        }
        calls
    };
    (0..ranks).map(rank).collect()
}
