//! How steady an analysis is where a machine's pace wanders: `cargo run --release --example scatter -- TRACE TRACE2 BY HOLDS
//! COUNT`. Each of COUNT pairs is the two base runs at a pace that is the same for all ranks, holds for HOLDS seconds in
//! the mean and is slower by BY in the mean (both exponential). Prints what repeats in each, and how many do not pay.
use phasecast_analyzer::{Settings, analyze};
use phasecast_trace::model::{Ending, Trailer};
use phasecast_trace::writer::{TraceWriter, made_header};
use phasecast_trace::{Nanos, Trace};
use std::path::Path;

/// A linear congruential generator.
struct Random(u64);

impl Random {
    /// Exponentially distributed with mean 1.
    fn exponential(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        -((self.0 >> 11) as f64 / (1u64 << 53) as f64).max(1e-9).ln()
    }
}

/// When what was at the first time is now: the ends of stretches of one pace.
struct Pace(Vec<(f64, f64)>);

impl Pace {
    fn new(end: f64, by: f64, holds_s: f64, random: &mut Random) -> Pace {
        let mut ends = vec![(0.0, 0.0)];
        while let Some(&(was, is)) = ends.last().filter(|last| last.0 <= end) {
            let length = 1.0 + 1e9 * holds_s * random.exponential();
            ends.push((was + length, is + length * (1.0 + by * random.exponential())));
        }
        Pace(ends)
    }

    fn at(&self, time: Nanos) -> Nanos {
        let time = time.0 as f64;
        let next = self.0.partition_point(|end| end.0 <= time);
        let (from, to) = (self.0[next - 1], self.0[next]);
        Nanos((from.1 + (time - from.0) * (to.1 - from.1) / (to.0 - from.0)) as u64)
    }
}

/// Writes `from` at another pace.
fn scattered(from: &Trace, path: &Path, pace: &Pace) -> Result<Trace, Box<dyn std::error::Error>> {
    let names: Vec<&str> = from.procedures().iter().map(AsRef::as_ref).collect();
    let writer = TraceWriter::create(path)?;
    for rank in from.ranks() {
        let known = from.header(rank).ok_or("a rank is missing")?;
        let mut header = made_header(rank, from.size(), &known.program, &names);
        header.args = known.args.clone();
        let mut out = writer.rank(&header)?;
        out.comms(&from.comms_of(rank))?;
        let mut calls = from.calls(rank);
        while let Some(item) = calls.next_call()? {
            let mut call = *item.call;
            (call.enter, call.exit) = (pace.at(call.enter), pace.at(call.exit));
            out.thread(call.thread)?;
            out.push(&call, item.parts)?;
        }
        let end_units = pace.at(from.span(rank).1).0;
        out.finish(Trailer { ending: Ending::Finalized, calls: 0, end_units, own_ns: 0, modules: Vec::new() })?;
    }
    writer.finish()?;
    Ok(Trace::open(path)?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [one, two, by, holds_s, count] = args.as_slice() else { return Err("see the head of this file".into()) };
    let base = [Trace::open(Path::new(one))?, Trace::open(Path::new(two))?];
    let (by, holds_s, count): (f64, f64, u64) = (by.parse()?, holds_s.parse()?, count.parse()?);
    let scratch = std::env::temp_dir().join(format!("scatter.{}", std::process::id()));
    let (mut repeating, mut dear, mut random) = (Vec::new(), 0, Random(1));
    for _ in 0..count {
        std::fs::create_dir(&scratch)?;
        let traces = base
            .iter()
            .enumerate()
            .map(|(number, from)| {
                let end = from.ranks().map(|rank| from.span(rank).1.0).max().unwrap_or(0);
                let pace = Pace::new(end as f64, by, holds_s, &mut random);
                scattered(from, &scratch.join(format!("{number}.trace")), &pace)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let analysis = analyze(&traces, &Settings { collectives: true, ..Settings::default() }, &|_, _| {})?;
        repeating.push(analysis.repeating_share());
        dear += usize::from(!analysis.verdict.pays);
        std::fs::remove_dir_all(&scratch)?;
    }
    repeating.sort_by(f64::total_cmp);
    let percent = |share: f64| format!("{:.0} %", 100.0 * share.max(0.0));
    let of = |place: usize| repeating.get(place).copied().map_or_else(String::new, percent);
    let little = repeating.iter().filter(|share| **share < 0.3).count();
    println!(
        "what repeats: least {}, median {}; of {count} pairs {little} below 30 %, {dear} that do not pay",
        of(0),
        of(repeating.len() / 2)
    );
    Ok(())
}
