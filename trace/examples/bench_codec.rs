//! Measures the trace's codec on a made stencil: `cargo run --release -p phasecast-trace --example bench_codec [MILLIONS]`.
//!
//! One rank on one core, in processor time. An item is a call or a part of one; an event is one communication (see `docs/src/formats/trace.md`).
use nix::time::{ClockId, clock_gettime};
use phasecast_trace::encode::{Encoder, Shape};
use phasecast_trace::model::{CommDef, Ending, PEER_NONE, TAG_NONE, Trailer};
use phasecast_trace::tail::CAPACITY;
use phasecast_trace::writer::{TraceWriter, made_header};
use phasecast_trace::{Call, Class, CommId, Flags, Nanos, Part, PartKind, ProcId, Rank, Trace};
use std::hint::black_box;

/// Processor time of this thread in ns: other load on the machine does not count.
fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every Linux has this clock");
    time.tv_sec() as f64 * 1e9 + time.tv_nsec() as f64
}

const PROCEDURES: [&str; 4] = ["MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce"];

/// The stencil: in each iteration receives from and sends to four neighbours, one Waitall, every tenth a reduction.
struct Stencil {
    random: u64,
    now: u64,
    iteration: u64,
}

impl Stencil {
    /// A span around `mean` ns that varies as spans do: by a few percent, now and then by much.
    fn span(&mut self, mean: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let spread = if self.random & 0xff == 0 { mean * 8 } else { mean / 16 + 2 };
        mean + (self.random >> 16) % spread
    }

    fn call(&mut self, proc: u16, class: Class, flags: Flags, peer: i32, compute: u64, inside: u64) -> Call {
        let enter = self.now + self.span(compute);
        let exit = enter + self.span(inside);
        self.now = exit;
        let tag = if peer < 0 { TAG_NONE } else { 7 };
        let (enter, exit) = (Nanos(enter), Nanos(exit));
        let (proc, comm, site) = (ProcId(proc), CommId(0), 0x40_1000 + u64::from(proc) * 64);
        Call { proc, class, flags, thread: 0, peer, tag, bytes: 8192, comm, site, enter, exit }
    }

    fn iteration(&mut self, each: &mut impl FnMut(&Call, &[Part])) {
        let posted = Flags::NONBLOCKING.with(Flags::RECV_POST);
        for peer in 1..5 {
            each(&self.call(0, Class::Post, posted, peer, 400, 150), &[]);
        }
        for peer in 1..5 {
            each(&self.call(1, Class::Send, Flags::NONBLOCKING, peer, 500, 300), &[]);
        }
        let part = |peer| Part { kind: PartKind::Recv, flags: Flags(0), peer, tag: 7, bytes: 8192, comm: CommId(0) };
        let parts = [part(1), part(2), part(3), part(4)];
        each(&self.call(2, Class::Complete, Flags(0), PEER_NONE, 300, 9_000), &parts);
        if self.iteration % 10 == 9 {
            each(&self.call(3, Class::Collective, Flags(0), PEER_NONE, 250_000, 12_000), &[]);
        }
        self.iteration += 1;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let millions: f64 = std::env::args().nth(1).map_or(Ok(5.0), |n| n.parse())?;
    let (mut calls, mut parts) = (Vec::new(), Vec::new());
    let mut stencil = Stencil { random: 88_172_645_463_325_252, now: 0, iteration: 0 };
    while (calls.len() as f64) < millions * 1e6 {
        stencil.iteration(&mut |call, list| {
            calls.push((*call, parts.len()..parts.len() + list.len()));
            parts.extend_from_slice(list);
        });
    }
    let items = calls.len() + parts.len();

    let (mut buffer, mut encoder, mut raw) = (vec![0; CAPACITY], Encoder::default(), 0);
    let mut best = f64::MAX;
    for _ in 0..3 {
        let start = cpu_ns();
        let mut used = 0;
        raw = 0;
        for (call, range) in &calls {
            if !encoder.fits(range.len(), buffer.len() - used) {
                raw += used;
                used = 0;
                encoder.begin(encoder.last());
            }
            used = encoder.call(&mut buffer, used, &Shape::call(call, 0), call.enter.0, call.exit.0);
            for part in &parts[range.clone()] {
                used = encoder.part(&mut buffer, used, &Shape::part(part, 0));
            }
        }
        raw += used;
        black_box(&buffer);
        encoder = Encoder::default();
        best = best.min(cpu_ns() - start);
    }
    println!("{:.1} M calls, {:.1} M items", calls.len() as f64 / 1e6, items as f64 / 1e6);
    println!("encode          {:6.1} ns per call {:6.1} ns per item", best / calls.len() as f64, best / items as f64);

    let folder = tempfile::tempdir()?;
    let path = folder.path().join("bench.trace");
    let writer = TraceWriter::create(&path)?;
    let header = made_header(Rank(0), 5, "stencil", &PROCEDURES);
    let start = cpu_ns();
    let mut out = writer.rank(&header)?;
    out.comms(&[CommDef { local: 0, members: (0..5).collect(), remote: vec![] }])?;
    for (call, range) in &calls {
        out.push(call, &parts[range.clone()])?;
    }
    let end_units = out.last().0;
    out.finish(Trailer { ending: Ending::Finalized, calls: 0, end_units, own_ns: 0, modules: vec![] })?;
    writer.finish()?;
    println!("encode and zstd {:6.1} ns per call, with the file", (cpu_ns() - start) / calls.len() as f64);

    let trace = Trace::open(&path)?;
    let (mut events, mut sum, mut best) = (0u64, 0u64, f64::MAX);
    for _ in 0..3 {
        events = 0;
        let start = cpu_ns();
        trace.for_each_event(Rank(0), |event| {
            events += 1;
            sum = sum.wrapping_add(event.exit.0 ^ event.bytes);
        })?;
        best = best.min(cpu_ns() - start);
    }
    black_box(sum);
    println!(
        "decode, resolve {:6.1} ns per call {:6.1} ns per event, with zstd and the file",
        best / calls.len() as f64,
        best / events as f64
    );
    let (plain, stored) = trace.chunk_bytes();
    assert_eq!(trace.items(), items as u64);
    println!(
        "bytes per item  {:6.2} raw {:6.2} zstd;  per call {:.2} raw {:.2} zstd;  per event {:.2} raw {:.2} zstd",
        raw as f64 / items as f64,
        stored as f64 / items as f64,
        plain as f64 / calls.len() as f64,
        stored as f64 / calls.len() as f64,
        plain as f64 / events as f64,
        stored as f64 / events as f64
    );
    Ok(())
}
