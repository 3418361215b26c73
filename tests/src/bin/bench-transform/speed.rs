//! Calls per second, on made traces: a ring of nonblocking exchanges with a reduction now and then.
use crate::Res;
use phasecast_trace::model::{CommDef, Ending, PEER_NONE, TAG_NONE, Trailer};
use phasecast_trace::writer::{TraceWriter, made_header};
use phasecast_trace::{Call, Class, CommId, Flags, Nanos, Part, PartKind, ProcId, Rank, Trace};
use phasecast_transform::machine::Machine;
use phasecast_transform::transform::{Settings, transform};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const PROCEDURES: [&str; 4] = ["MPI_Irecv", "MPI_Isend", "MPI_Wait", "MPI_Allreduce"];
/// At least so many calls per second on two processors.
const BOUND: f64 = 5e6;

/// A machine as `phasecast characterize` might have measured it.
const MACHINE: &str = r#"
format = 1
[[links]]
place = "within"
latency_s = 5e-7
bandwidth = 5e9
eager_bytes = 4096
overlap = 0.1
contention = 1.5
send = [{ bytes = 0, seconds = 1e-7 }, { bytes = 4096, seconds = 1e-6 }, { bytes = 1048576, seconds = 2e-4 }]
receive = [{ bytes = 0, seconds = 2e-7 }, { bytes = 4096, seconds = 1e-6 }, { bytes = 1048576, seconds = 2e-4 }]
isend = [{ bytes = 0, seconds = 1e-7 }, { bytes = 4096, seconds = 1e-6 }]
irecv = [{ bytes = 0, seconds = 5e-8 }]
wait = [{ bytes = 0, seconds = 1e-7 }, { bytes = 4096, seconds = 1e-6 }, { bytes = 1048576, seconds = 2e-4 }]
transfer = [{ bytes = 0, seconds = 5e-7 }, { bytes = 4096, seconds = 2e-6 }, { bytes = 1048576, seconds = 2.5e-4 }]
[[collectives]]
name = "MPI_Allreduce"
ranks = 2
costs = [{ bytes = 8, seconds = 2e-6 }]
"#;

/// Runs it.
pub fn run(args: &[String]) -> Res<()> {
    let lengths = args.first().map_or("1m,10m", String::as_str);
    let folder = tempfile::tempdir()?;
    for length in lengths.split(',') {
        let calls = length.trim_end_matches('m').parse::<u64>()? * 1_000_000;
        for ranks in [2, 4, 64] {
            let path = folder.path().join("made.trace");
            let written = write(&path, ranks, calls)?;
            for threads in [2, 1] {
                let out = folder.path().join("new.trace");
                let output = Command::new(std::env::current_exe()?)
                    .arg("--child")
                    .args([path.as_os_str(), out.as_os_str()])
                    .arg(threads.to_string())
                    .output()?;
                let text = String::from_utf8(output.stdout)?;
                let [seconds, peak] = text.split_whitespace().collect::<Vec<_>>()[..] else {
                    return Err(String::from_utf8_lossy(&output.stderr).into());
                };
                let rate = written as f64 / seconds.parse::<f64>()?;
                let verdict = if threads == 2 && rate < BOUND { ", below the bound of 5 M/s" } else { "" };
                println!(
                    "{ranks:3} ranks {written:9} calls: {:5.1} M calls/s with {threads} threads, peak {peak} MiB{verdict}",
                    rate * 1e-6
                );
                std::fs::remove_dir_all(&out)?;
            }
            std::fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

/// One transformation in a process of its own: prints seconds and peak memory.
pub fn child(args: &[String]) -> Res<()> {
    let [trace, out, threads] = args else { return Err("--child TRACE OUT THREADS".into()) };
    let machine = Machine::parse(Path::new("made.toml"), MACHINE.as_bytes())?;
    let settings = Settings { ratio: Some(0.9), threads: threads.parse()?, ..Settings::default() };
    let begun = Instant::now();
    transform(&Trace::open(Path::new(trace))?, &machine, &machine, &settings, Path::new(out), &|_, _| {})?;
    let seconds = begun.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    println!("{seconds} {}", peak.trim().trim_end_matches(" kB").parse::<u64>()? / 1024);
    Ok(())
}

fn write(path: &Path, ranks: u32, calls: u64) -> Res<u64> {
    let writer = TraceWriter::create(path)?;
    let rounds = calls / u64::from(ranks) / 3;
    let mut written = 0;
    for rank in 0..ranks {
        let mut out = writer.rank(&made_header(Rank(rank), ranks, "made", &PROCEDURES))?;
        out.comms(&[CommDef { local: 0, members: (0..ranks).collect(), remote: Vec::new() }])?;
        let (from, to) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
        let call = |proc: u16, class, peer: i32, bytes, flags, enter: u64, exit: u64| Call {
            proc: ProcId(proc),
            class,
            flags,
            thread: 0,
            peer,
            tag: if peer < 0 { TAG_NONE } else { 1 },
            bytes,
            comm: CommId(0),
            site: 0x1000 + u64::from(proc) * 16,
            enter: Nanos(enter),
            exit: Nanos(exit),
        };
        let mut last = 0;
        for round in 0..rounds {
            let at = 1000 + round * 50_000 + (round * 7919 + u64::from(rank) * 104_729) % 3000;
            // One in 16 is long enough to share the link.
            let bytes = if round % 16 == 0 { 65_536 } else { 1024 };
            out.push(&call(0, Class::Post, from as i32, bytes, Flags::RECV_POST, at, at + 80), &[])?;
            out.push(&call(1, Class::Send, to as i32, bytes, Flags::NONBLOCKING, at + 200, at + 900), &[])?;
            let part = Part {
                kind: PartKind::Recv,
                flags: Flags::default(),
                peer: from as i32,
                tag: 1,
                bytes,
                comm: CommId(0),
            };
            let arrives = 1000 + round * 50_000 + 10_000 + (round * 31) % 2000;
            out.push(&call(2, Class::Complete, PEER_NONE, bytes, Flags::default(), arrives, arrives + 400), &[part])?;
            written += 3;
            last = arrives + 400;
            if round % 50 == 49 {
                let end = 1000 + round * 50_000 + 40_000;
                out.push(&call(3, Class::Collective, PEER_NONE, 8, Flags::default(), last + 9000, end), &[])?;
                (last, written) = (end, written + 1);
            }
        }
        let ending = Ending::Finalized;
        out.finish(Trailer { ending, calls: 0, end_units: last, own_ns: 0, modules: Vec::new() })?;
    }
    writer.finish()?;
    Ok(written)
}
