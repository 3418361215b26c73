//! Prints the phases of traces: `cargo run --release --example analyze -- [--pbb] TRACE [TRACE2]`. With `--live`, the
//! last trace is the target: it is predicted from its first 30 %.
use phasecast_analyzer::{Method, Settings, analyze, estimate};
use phasecast_trace::{Nanos, Trace};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let mut flag = |name: &str| {
        let before = args.len();
        args.retain(|a| a != name);
        args.len() < before
    };
    let method = if flag("--pbb") { Method::Pbb } else { Method::Marker };
    let (live, brief) = (flag("--live"), flag("--brief"));
    let mut traces = args.iter().map(|a| Trace::open(Path::new(a))).collect::<Result<Vec<_>, _>>()?;
    let target = if live { traces.pop() } else { None };
    let analysis = analyze(&traces, &Settings { method, ..Settings::default() }, &|_, _| {})?;
    let percent = |x: f64| 100.0 * x / analysis.run_time_s;
    let relevant = analysis.phases.iter().filter(|p| p.relevant);
    println!(
        "{:10} {:?} run {:.4} s, {} classes ({} relevant), coverage {:.1} %, explained {:+.2} %, planned {:.1} %, {}",
        analysis.program.rsplit('/').next().unwrap_or(""),
        method,
        analysis.run_time_s,
        analysis.phases.len(),
        relevant.count(),
        100.0 * analysis.coverage,
        percent(analysis.explained_s) - 100.0,
        percent(analysis.planned_s),
        if analysis.verdict.pays { "pays".into() } else { analysis.verdict.reason.clone() },
    );
    for marker in analysis.markers.iter().filter(|_| !brief) {
        println!(
            "  marker {} every {} skew {:.2e} s in flight {:.2}",
            marker.words, marker.every, marker.skew_s, marker.in_flight
        );
    }
    for phase in analysis.phases.iter().filter(|p| p.relevant && !brief) {
        println!(
            "  {:4} x {:6}  {:.6} s  sd {:.6}  {:5.2} %  planned {:3}  {}",
            phase.id.0,
            phase.weight,
            phase.time_s,
            phase.sd_s,
            100.0 * phase.share,
            phase.planned.len(),
            phase.structure
        );
    }
    if let Some(target) = target {
        let mut measured: Vec<Vec<Option<Nanos>>> = Vec::new();
        for rank in target.ranks() {
            let pieces = &analysis.pieces[rank.index()];
            let (start, end) = target.span(rank);
            let limit = start.0 + (end.0 - start.0) * 3 / 10;
            let (mut at, mut events, mut before) = (0, 0, start);
            let mut seen = vec![None; pieces.len()];
            target.for_each_event(rank, |event| {
                events += 1;
                if pieces.get(at).is_some_and(|p| p.end == events) {
                    if event.exit.0 <= limit && at + 1 < pieces.len() {
                        seen[at] = Some(event.exit.since(before));
                    }
                    (at, before) = (at + 1, event.exit);
                }
            })?;
            measured.push(seen);
        }
        let estimate = estimate(&analysis, &measured, 0.95);
        let truth = target.run_time().seconds();
        println!(
            "  live 30 %: PET {:.4} s +- {:.4} (another run +- {:.4}), AET {:.4} s, error {:+.2} %, covered {:.1} %, unseen {:.2} s",
            estimate.total_s,
            estimate.half_width_s,
            estimate.run_half_width_s,
            truth,
            100.0 * (estimate.total_s / truth - 1.0),
            100.0 * estimate.coverage,
            estimate.unmeasured_s
        );
    }
    Ok(())
}
