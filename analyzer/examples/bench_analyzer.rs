//! Speed and memory of the analyzer on made traces: `cargo run --release --example bench_analyzer -- [1m,10m,100m]
//! [marker,pbb]`; `-- --write TRACE RANKS EVENTS regular|irregular` only writes one. Regular and irregular programs with 4 and 64 ranks are written to a temporary folder and analysed by
//! a child process of its own each, with 1 and 2 threads. Printed: events per second from file to phases, peak memory,
//! whether 1 and 2 threads gave the same bytes, and the exponent of time over length.
use phasecast_analyzer::symbol::mix;
use phasecast_analyzer::{Method, Settings, analyze};
use phasecast_trace::model::{CommDef, Ending, PEER_NONE, TAG_NONE, Trailer};
use phasecast_trace::writer::{RankWriter, TraceWriter, made_header};
use phasecast_trace::{Call, Class, CommId, Flags, Nanos, Part, PartKind, ProcId, Rank, Trace};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [child, trace, threads, method, out] = args.as_slice()
        && child == "--child"
    {
        return measure(Path::new(trace), threads.parse()?, method, Path::new(out));
    }
    if let [only, trace, ranks, length, regular] = args.as_slice()
        && only == "--write"
    {
        write(Path::new(trace), ranks.parse()?, length.parse()?, regular == "regular")?;
        return Ok(());
    }
    let lengths = args.first().map_or("1m,10m", String::as_str);
    let methods = args.get(1).map_or("marker", String::as_str);
    let lengths = lengths.split(',').map(|l| Ok(l.trim_end_matches('m').parse::<u64>()? * 1_000_000));
    let lengths = lengths.collect::<Result<Vec<u64>, std::num::ParseIntError>>()?;
    let folder = tempfile::tempdir()?;
    for (regular, name) in [(true, "regular"), (false, "irregular")] {
        for ranks in [4, 64] {
            let mut points: Vec<(String, Vec<(f64, f64)>)> =
                methods.split(',').map(|m| (m.into(), Vec::new())).collect();
            for &length in &lengths {
                let path = folder.path().join("made.trace");
                let events = write(&path, ranks, length, regular)?;
                for (method, points) in &mut points {
                    let runs =
                        [2u32, 1].map(|threads| child(&path, threads, method, &folder.path().join("made.phases")));
                    let [two, one] = runs;
                    let (two, one) = (two?, one?);
                    println!(
                        "{method:7} {name:9} {ranks:3} ranks {events:10} events: {:5.1} M/s on 2 threads, {:5.1} M/s on 1 \
                         ({:.0} ns of processor time per event), peak {:4} MiB, {} phases, same output: {}",
                        events as f64 / two.seconds * 1e-6,
                        events as f64 / one.seconds * 1e-6,
                        one.processor_s / events as f64 * 1e9,
                        two.peak_mib.max(one.peak_mib),
                        two.phases,
                        two.hash == one.hash
                    );
                    points.push(((events as f64).ln(), two.seconds.ln()));
                }
                std::fs::remove_dir_all(&path)?;
            }
            for (method, points) in points.iter().filter(|(_, points)| points.len() > 1) {
                println!("{method:7} {name:9} {ranks:3} ranks: time ~ events^{:.3}", slope(points));
            }
        }
    }
    Ok(())
}

struct Run {
    seconds: f64,
    processor_s: f64,
    peak_mib: u64,
    phases: usize,
    hash: String,
}

fn child(trace: &Path, threads: u32, method: &str, out: &Path) -> Result<Run, Failure> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--child".as_ref(), trace.as_os_str(), threads.to_string().as_ref(), method.as_ref(), out.as_os_str()])
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [seconds, processor_s, peak_mib, phases, hash] = fields.as_slice() else {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    };
    Ok(Run {
        seconds: seconds.parse()?,
        processor_s: processor_s.parse()?,
        peak_mib: peak_mib.parse()?,
        phases: phases.parse()?,
        hash: (*hash).into(),
    })
}

fn measure(trace: &Path, threads: usize, method: &str, out: &Path) -> Result<(), Failure> {
    let method = if method == "pbb" { Method::Pbb } else { Method::Marker };
    let start = Instant::now();
    let analysis = analyze(&[Trace::open(trace)?], &Settings { method, threads, ..Settings::default() }, &|_, _| {})?;
    analysis.save(out)?;
    let seconds = start.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse()?;
    // Fields 14 and 15 of stat: user and system time in hundredths of a second.
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace().skip(11).take(2);
    let processor_s: f64 = fields.filter_map(|f| f.parse::<f64>().ok()).sum::<f64>() / 100.0;
    let hash = xxhash_rust::xxh3::xxh3_64(&std::fs::read(out)?);
    std::fs::remove_file(out)?;
    println!("{seconds} {processor_s} {} {} {hash:x}", peak / 1024, analysis.phases.len());
    Ok(())
}

fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (mx, my) = points.iter().fold((0.0, 0.0), |m, p| (m.0 + p.0 / n, m.1 + p.1 / n));
    let (xy, xx) =
        points.iter().fold((0.0, 0.0), |s, p| (s.0 + (p.0 - mx) * (p.1 - my), s.1 + (p.0 - mx) * (p.0 - mx)));
    xy / xx
}

/// One rank as it is written.
struct Made {
    out: RankWriter,
    now: u64,
    rank: u32,
    events: u64,
}

impl Made {
    fn call(
        &mut self,
        class: Class,
        proc: u16,
        peer: i32,
        tag: i32,
        bytes: u64,
        parts: &[Part],
    ) -> Result<(), Failure> {
        let enter = Nanos(self.now);
        self.now += 300 + mix(self.events << 8 | u64::from(self.rank)) % 200;
        self.events += 1;
        let flags = if class == Class::Send { Flags::NONBLOCKING } else { Flags(0) };
        let (thread, comm, exit) = (0, CommId(0), Nanos(self.now));
        let call = Call { proc: ProcId(proc), class, flags, thread, peer, tag, bytes, comm, site: 0, enter, exit };
        Ok(self.out.push(&call, parts)?)
    }

    fn exchange(&mut self, partner: u32, bytes: u64) -> Result<(), Failure> {
        let peer = partner as i32;
        self.call(Class::Send, 0, peer, 1, bytes, &[])?;
        let part = Part { kind: PartKind::Recv, flags: Flags(0), peer, tag: 1, bytes, comm: CommId(0) };
        self.call(Class::Recv, 1, PEER_NONE, TAG_NONE, 0, &[part])
    }

    fn allreduce(&mut self) -> Result<(), Failure> {
        self.call(Class::Collective, 2, PEER_NONE, TAG_NONE, 8, &[])
    }

    fn work(&mut self, ns: u64, step: u64) {
        self.now += ns + mix(step * 1_000_003 + u64::from(self.rank)) % (ns / 20 + 1);
    }
}

/// Writes a trace of about `length` events and returns how many there are.
fn write(path: &Path, ranks: u32, length: u64, regular: bool) -> Result<u64, Failure> {
    let writer = TraceWriter::create(path)?;
    let mut events = 0;
    for rank in 0..ranks {
        let header = made_header(Rank(rank), ranks, "made", &["MPI_Isend", "MPI_Recv", "MPI_Allreduce"]);
        let mut out = writer.rank(&header)?;
        out.comms(&[CommDef { local: 0, members: (0..ranks).collect(), remote: Vec::new() }])?;
        let mut made = Made { out, now: 1_000_000, rank, events: 0 };
        let each = length / u64::from(ranks);
        let mut step = 0;
        while made.events < each {
            if regular {
                regular_step(&mut made, ranks, step)?
            } else {
                irregular_step(&mut made, ranks, step)?
            }
            step += 1;
        }
        events += made.events;
        let end_units = made.now + 1_000_000;
        made.out.finish(Trailer { ending: Ending::Finalized, calls: 0, end_units, own_ns: 0, modules: Vec::new() })?;
    }
    writer.finish()?;
    Ok(events)
}

/// A stencil: exchanges with every neighbour of a hypercube, ten times, then an allreduce.
fn regular_step(made: &mut Made, ranks: u32, step: u64) -> Result<(), Failure> {
    for inner in 0..10 {
        for bit in 0..ranks.trailing_zeros() {
            made.exchange(made.rank ^ (1 << bit), 8192)?;
        }
        made.work(40_000, step * 10 + inner);
    }
    made.allreduce()
}

/// Loops of varying length with volumes and partners that vary; the ranks agree on them by the step's number.
fn irregular_step(made: &mut Made, ranks: u32, step: u64) -> Result<(), Failure> {
    for inner in 0..5 + mix(step) % 30 {
        let chance = mix(step << 16 | inner);
        let bytes = 1 << (4 + chance % 14);
        made.exchange(
            made.rank ^ (1 << ((chance >> 20) % u64::from(ranks.trailing_zeros()))),
            bytes + (chance >> 40) % 100,
        )?;
        made.work(5_000 + chance % 20_000, step << 8 | inner);
    }
    if step.is_multiple_of(4) { made.allreduce() } else { Ok(()) }
}
