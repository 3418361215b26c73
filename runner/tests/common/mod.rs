//! What the tests of the command share: running it, and files of each kind to run it on.
#![allow(dead_code)] // Each test file uses its own part.
use phasecast_trace::model::{CommDef, Ending, PEER_NONE, TAG_NONE, Trailer};
use phasecast_trace::writer::{RankWriter, made_header};
use phasecast_trace::{Call, Class, CommId, Flags, Nanos, Part, PartKind, ProcId, Rank, TraceWriter};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The outcome of a command.
pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Done {
    /// Standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("no JSON ({e}): {}\n{}", self.out, self.err))
    }
}

/// The command with these arguments.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_phasecast"));
    command.args(args);
    command
}

/// Runs the command. It must end by itself and must not panic.
pub fn phasecast(args: &[&str]) -> Done {
    let Output { status, stdout, stderr } = command(args).output().expect("the command starts");
    let (out, err) = (String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr).into_owned());
    let code = status.code().unwrap_or_else(|| panic!("{args:?} was killed: {err}"));
    assert!(code < 100 && !err.contains("panicked"), "{args:?} panicked: {err}");
    Done { code, out, err }
}

/// Runs the command, which must succeed.
pub fn well(args: &[&str]) -> Done {
    let done = phasecast(args);
    assert_eq!(done.code, 0, "{args:?}: {}", done.err);
    done
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}

const PROCEDURES: [&str; 5] = ["MPI_Init", "MPI_Isend", "MPI_Recv", "MPI_Allreduce", "MPI_Finalize"];

/// A program of a ring exchange and an allreduce, so many times: per rank and iteration 3 events.
pub struct Ring {
    pub ranks: u32,
    pub iterations: u64,
}

impl Ring {
    /// Writes its trace.
    pub fn write(&self, path: &Path) {
        let trace = TraceWriter::create(path).expect("the trace can be created");
        for rank in 0..self.ranks {
            let header = made_header(Rank(rank), self.ranks, "/opt/ring, \"quoted\"", &PROCEDURES);
            let mut out = trace.rank(&header).expect("a rank can be written");
            let world = CommDef { local: 0, members: (0..self.ranks).collect(), remote: Vec::new() };
            out.comms(&[world]).expect("communicators can be written");
            let end = self.rank(rank, &mut out);
            let trailer =
                Trailer { ending: Ending::Finalized, calls: 0, end_units: end, own_ns: 1000, modules: Vec::new() };
            out.finish(trailer).expect("a rank can be finished");
        }
        trace.finish().expect("the trace can be finished");
    }

    fn rank(&self, rank: u32, out: &mut RankWriter) -> u64 {
        let (next, previous) = ((rank + 1) % self.ranks, (rank + self.ranks - 1) % self.ranks);
        let mut now = 0;
        let mut push = |proc: u16, class, peer: i32, tag, bytes, parts: &[Part], gap: u64, length: u64| {
            let enter = now + gap;
            now = enter + length;
            let call = Call {
                proc: ProcId(proc),
                class,
                flags: Flags::default(),
                thread: 0,
                peer,
                tag,
                bytes,
                comm: CommId(0),
                site: 0x40_1000 + u64::from(proc),
                enter: Nanos(enter),
                exit: Nanos(now),
            };
            out.push(&call, parts).expect("a call can be written");
            now
        };
        push(0, Class::Setup, PEER_NONE, TAG_NONE, 0, &[], 1_000_000, 5_000_000);
        for _ in 0..self.iterations {
            push(1, Class::Send, next as i32, 7, 8192, &[], 400_000, 2_000);
            let part = Part {
                kind: PartKind::Recv,
                flags: Flags::default(),
                peer: previous as i32,
                tag: 7,
                bytes: 8192,
                comm: CommId(0),
            };
            push(2, Class::Recv, previous as i32, 7, 8192, &[part], 1_000, 20_000);
            push(3, Class::Collective, PEER_NONE, TAG_NONE, 8, &[], 600_000, 15_000);
        }
        push(4, Class::Setup, PEER_NONE, TAG_NONE, 0, &[], 100_000, 50_000)
    }
}

/// A prediction as JSON, for a machine of this name.
pub fn prediction(host: &str, pet_s: f64) -> Value {
    let machine = json!({"host": host, "cpu": "made up", "cores": 4, "mpi": "none"});
    json!({
        "version": 1, "method": "live", "program": "/opt/ring", "ranks": 2, "target": machine, "base": machine,
        "pet_s": pet_s, "interval_s": [pet_s * 0.99, pet_s * 1.01], "run_interval_s": [pet_s * 0.97, pet_s * 1.03],
        "confidence": 0.95, "set_s": pet_s * 0.3, "coverage": 0.9, "startup_s": 0.5, "residual_s": 0.25,
        "restart_s": 0.0, "warmup_s": 0.0, "measured_s": pet_s * 0.2,
        "uncertainty": {"sampling_s": 0.1, "unmeasured_s": 0.1, "machine_s": 0.1}, "base_run_s": 12.0,
        "phases": [
            {"id": 0, "weight": 1, "measured": 1, "base_s": 1.0, "target_s": 0.9, "total_s": 0.9, "structure": "bcast"},
            {"id": 1, "weight": 100, "measured": 20, "base_s": 0.1, "target_s": 0.08, "total_s": 8.0,
             "structure": "(send recv)^2 allreduce <script>alert(1)</script>"},
            {"id": 2, "weight": 5, "measured": 0, "base_s": 0.1, "target_s": null, "total_s": 0.4, "structure": "gather"},
        ],
        "notes": ["it is only a test"], "aet_s": null, "pete": null,
        "timeline": [
            {"rank": 0, "phase": 0, "start_s": 0.0, "end_s": 0.9}, {"rank": 0, "phase": 1, "start_s": 0.9, "end_s": 1.0},
            {"rank": 1, "phase": 0, "start_s": 0.1, "end_s": 0.9}, {"rank": 1, "phase": 1, "start_s": 0.9, "end_s": 1.1},
        ],
    })
}

/// Writes a prediction into a folder.
pub fn write_prediction(folder: &Path, host: &str, pet_s: f64) -> PathBuf {
    let path = folder.join(format!("{host}.json"));
    std::fs::write(&path, prediction(host, pet_s).to_string()).expect("a prediction can be written");
    path
}
