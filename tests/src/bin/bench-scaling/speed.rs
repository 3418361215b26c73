//! How long a profile and its fits take.
use crate::Res;
use phasecast_scaling::phases::{self, Kind, find};
use phasecast_scaling::profile::{Profile, Settings};
use phasecast_scaling::signature::{self, Runs, ScaledPhase, scale};
use phasecast_tests::bench::{Bound, figure, median};
use phasecast_trace::model::{CommDef, Ending, PEER_NONE, TAG_NONE, Trailer};
use phasecast_trace::writer::{TraceWriter, made_header};
use phasecast_trace::{Call, Class, Nanos, ProcId, Rank, Trace};
use std::path::Path;
use std::time::Instant;

/// Runs it.
pub fn run(args: &[String]) -> Res<()> {
    let calls = args.first().map_or("10m", String::as_str).trim_end_matches('m').parse::<u64>()? * 1_000_000;
    let folder = tempfile::tempdir()?;
    for ranks in [4, 16, 64] {
        let path = folder.path().join(format!("{ranks}.trace"));
        write(&path, ranks, calls)?;
        let mut times = Vec::new();
        for _ in 0..3 {
            let begun = Instant::now();
            let trace = Trace::open(&path)?;
            let profile = Profile::of(&trace, &Settings::default(), &|_, _| {})?;
            let found = find(&profile.series, &phases::Settings::default());
            assert!(!found.best(None).is_empty());
            times.push(begun.elapsed().as_secs_f64());
        }
        let what = format!("profile with phases, {ranks} ranks, {calls} calls");
        figure(&what, median(&times), "s", Bound::Most(2.0));
        std::fs::remove_dir_all(&path)?;
    }
    let mut times = Vec::new();
    for _ in 0..3 {
        let begun = Instant::now();
        let settings = signature::Settings { to: vec![64, 256, 4096], ..signature::Settings::default() };
        scale(hundred().checked()?, &settings, &|_, _| None)?;
        times.push(begun.elapsed().as_secs_f64());
    }
    figure("signatures of 100 phases of 5 runs, with intervals", median(&times), "s", Bound::Most(1.0));
    Ok(())
}

/// Hundred phases at 2 to 32 processors.
fn hundred() -> Runs {
    let processors = [2u32, 4, 8, 16, 32];
    let time = |phase: usize, p: u32| {
        let (p, k) = (f64::from(p), phase as f64);
        (1.0 + 0.02 * ((7 * phase + p as usize) % 5) as f64) * (100.0 / p + 0.05 * k * p.log2() + 0.02 * k)
    };
    let phases = (0..100).map(|at| ScaledPhase {
        name: format!("P{at}"),
        kind: Kind::Other,
        times: processors.iter().map(|p| time(at, *p)).collect(),
        weight: 1,
    });
    Runs {
        program: "made".into(),
        processors: processors.to_vec(),
        names: processors.iter().map(u32::to_string).collect(),
        phases: phases.collect(),
        shared_out: vec![],
        notes: vec![],
        unit_s: 1.0,
    }
}

/// Ranks that compute and wait in turn, not in step with one another.
fn write(path: &Path, ranks: u32, calls: u64) -> Res<()> {
    let writer = TraceWriter::create(path)?;
    for rank in 0..ranks {
        let mut out = writer.rank(&made_header(Rank(rank), ranks, "made", &["MPI_Wait"]))?;
        out.comms(&[CommDef { local: 0, members: (0..ranks).collect(), remote: vec![] }])?;
        let (mut now, mut noise) = (u64::from(rank) * 37, u64::from(rank) + 1);
        for _ in 0..calls / u64::from(ranks) {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let enter = now + 5_000 + (noise >> 54);
            now = enter + 1_000 + (noise >> 52 & 0x1ff);
            let (class, [enter, exit]) = (Class::Complete, [enter, now].map(Nanos));
            let call =
                Call { proc: ProcId(0), class, site: 1, peer: PEER_NONE, tag: TAG_NONE, enter, exit, ..Call::BLANK };
            out.push(&call, &[])?;
        }
        out.finish(Trailer { ending: Ending::Finalized, calls: 0, end_units: now, own_ns: 0, modules: vec![] })?;
    }
    Ok(writer.finish()?)
}
