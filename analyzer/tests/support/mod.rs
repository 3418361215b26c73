//! Makes traces for tests: valid schedules of communication, written through the trace's writer.
#![allow(dead_code, missing_docs)]
use phasecast_trace::epochs::epoch_tag;
use phasecast_trace::model::{CommDef, Ending, PEER_NONE, TAG_NONE, Trailer};
use phasecast_trace::writer::{RankWriter, TraceWriter, made_header};
use phasecast_trace::{Call, Class, CommId, Flags, Nanos, Part, PartKind, ProcId, Rank, Trace};
use std::path::{Path, PathBuf};

pub const NAMES: [&str; 8] =
    ["MPI_Send", "MPI_Recv", "MPI_Allreduce", "MPI_Waitall", "MPI_Isend", "MPI_Ibarrier", "MPI_Improbe", "MPI_Start"];

/// One action of one rank.
#[derive(Clone, Debug)]
pub enum Act {
    /// Computes so long, in ns.
    Work(u64),
    /// A blocking send.
    Send {
        to: u32,
        tag: i32,
        bytes: u64,
    },
    Isend {
        to: u32,
        tag: i32,
        bytes: u64,
    },
    /// One call that completes receives: source, tag, bytes, wildcard.
    Recv(Vec<(u32, i32, u64, bool)>),
    Sendrecv {
        to: u32,
        from: u32,
        bytes: u64,
    },
    /// A probe that finds a message, and may match it.
    Probe {
        from: u32,
        tag: i32,
        bytes: u64,
        matched: bool,
    },
    /// A collective of the communicator with this number.
    Collective {
        comm: u32,
        root: i32,
        bytes: u64,
    },
    /// A nonblocking collective starts.
    Start {
        comm: u32,
    },
    /// A send in partitions is started.
    Partitions {
        to: u32,
        bytes: u64,
    },
    /// Synchronisation of a window with the members of a group: post or complete (it sends), start or wait.
    Group {
        sends: bool,
        closes: bool,
        with: Vec<u32>,
    },
}

/// A program: communicators (world ranks of each) and what each rank does.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub comms: Vec<Vec<u32>>,
    pub acts: Vec<Vec<Act>>,
}

impl Program {
    pub fn new(ranks: u32) -> Program {
        Program { comms: vec![(0..ranks).collect()], acts: vec![Vec::new(); ranks as usize] }
    }

    pub fn ranks(&self) -> u32 {
        self.acts.len() as u32
    }

    pub fn act(&mut self, rank: u32, act: Act) {
        self.acts[rank as usize].push(act);
    }

    pub fn all(&mut self, act: impl Fn(u32) -> Act) {
        (0..self.ranks()).for_each(|rank| self.act(rank, act(rank)));
    }

    /// Writes the trace; each call takes `call_ns`.
    pub fn write(&self, path: &Path, call_ns: u64) -> Trace {
        let writer = TraceWriter::create(path).unwrap();
        for (rank, acts) in self.acts.iter().enumerate() {
            let mut header = made_header(Rank(rank as u32), self.ranks(), "made", &NAMES);
            header.boot_id = "one".into();
            let mut out = writer.rank(&header).unwrap();
            let locals: Vec<CommDef> = self
                .comms
                .iter()
                .enumerate()
                .filter(|(_, members)| members.contains(&(rank as u32)))
                .map(|(local, members)| CommDef { local: local as u32, members: members.clone(), remote: vec![] })
                .collect();
            out.comms(&locals).unwrap();
            let mut now = 0;
            for act in acts {
                perform(&mut out, &mut now, act, call_ns);
            }
            let end_units = now + 1000;
            out.finish(Trailer { ending: Ending::Finalized, calls: 0, end_units, own_ns: 0, modules: vec![] }).unwrap();
        }
        writer.finish().unwrap();
        Trace::open(path).unwrap()
    }
}

fn call(class: Class, proc: u16, now: u64, call_ns: u64) -> Call {
    Call {
        proc: ProcId(proc),
        class,
        flags: Flags(0),
        thread: 0,
        peer: PEER_NONE,
        tag: TAG_NONE,
        bytes: 0,
        comm: CommId(0),
        site: 0,
        enter: Nanos(now),
        exit: Nanos(now + call_ns),
    }
}

fn received(from: u32, tag: i32, bytes: u64, wildcard: bool) -> Part {
    let flags = if wildcard { Flags::WILDCARD } else { Flags(0) };
    Part { kind: PartKind::Recv, flags, peer: from as i32, tag, bytes, comm: CommId(0) }
}

fn perform(out: &mut RankWriter, now: &mut u64, act: &Act, ns: u64) {
    match act {
        Act::Work(time) => {
            *now += time;
            return;
        }
        Act::Send { to, tag, bytes } => {
            let send = Call { peer: *to as i32, tag: *tag, bytes: *bytes, ..call(Class::Send, 0, *now, ns) };
            out.push(&send, &[]).unwrap();
        }
        Act::Isend { to, tag, bytes } => {
            let send = Call { peer: *to as i32, tag: *tag, bytes: *bytes, ..call(Class::Send, 4, *now, ns) };
            out.push(&Call { flags: Flags::NONBLOCKING, ..send }, &[]).unwrap();
        }
        Act::Recv(parts) => {
            let parts: Vec<Part> =
                parts.iter().map(|&(from, tag, bytes, wild)| received(from, tag, bytes, wild)).collect();
            let class = if parts.len() == 1 { Class::Recv } else { Class::Complete };
            out.push(&call(class, if parts.len() == 1 { 1 } else { 3 }, *now, ns), &parts).unwrap();
        }
        Act::Sendrecv { to, from, bytes } => {
            let send = Call { peer: *to as i32, tag: 9, bytes: *bytes, ..call(Class::Send, 0, *now, ns) };
            out.push(&send, &[received(*from, 9, *bytes, false)]).unwrap();
        }
        Act::Probe { from, tag, bytes, matched } => {
            let flags = if *matched { Flags::FOUND.with(Flags::MATCHED) } else { Flags::FOUND };
            let probe = Call { peer: *from as i32, tag: *tag, bytes: *bytes, ..call(Class::Probe, 6, *now, ns) };
            out.push(&Call { flags, ..probe }, &[]).unwrap();
        }
        Act::Collective { comm, root, bytes } => {
            let it = Call { peer: *root, bytes: *bytes, comm: CommId(*comm), ..call(Class::Collective, 2, *now, ns) };
            out.push(&it, &[]).unwrap();
        }
        Act::Start { comm } => {
            let it = Call { comm: CommId(*comm), ..call(Class::Collective, 5, *now, ns) };
            out.push(&Call { flags: Flags::NONBLOCKING, ..it }, &[]).unwrap();
        }
        Act::Partitions { to, bytes } => {
            let part = Part { kind: PartKind::Send, ..received(*to, 7, *bytes, false) };
            let flags = Flags::PERSISTENT.with(Flags::PARTITIONED);
            out.push(&Call { flags, ..call(Class::Start, 7, *now, ns) }, &[part]).unwrap();
        }
        Act::Group { sends, closes, with } => {
            let kind = if *sends { PartKind::Send } else { PartKind::Recv };
            let tag = epoch_tag(0, *closes);
            let parts: Vec<Part> = with.iter().map(|&peer| Part { kind, ..received(peer, tag, 0, false) }).collect();
            out.push(&call(Class::Rma, 3, *now, ns), &parts).unwrap();
        }
    }
    *now += ns;
}

/// A folder for a test's traces.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}
