//! The speedup as SVG: of the runs and of the forecasts, with the ideal and the phases that gain least.
use super::scale::Scaled;
use crate::plot::{Axis, COLOURS, GREY, Plot};
use phasecast_trace::model::file_name;
use plotters::style::BLACK;

/// Points of a curve.
const POINTS: u32 = 64;

/// The curve from the smallest run to the largest forecast, relative to the smallest run (of which p processors count as p).
pub fn speedup(scaled: &Scaled) -> String {
    let runs = &scaled.runs;
    let (least, largest) = (runs.processors[0], runs.processors[runs.processors.len() - 1]);
    let most = scaled.forecasts.iter().map(|forecast| forecast.processors).max().unwrap_or(largest).max(largest);
    let (low, high) = (f64::from(least), f64::from(most));
    let one = runs.total(0) * low;
    let title = format!("Speedup of {}", file_name(&runs.program));
    let mut plot = Plot::new(
        &title,
        Axis::logarithmic("processors", low, high),
        Axis::logarithmic("speedup", 1.0f64.min(low), high),
    );
    let places: Vec<f64> = (0..=POINTS).map(|i| low * (high / low).powf(f64::from(i) / f64::from(POINTS))).collect();
    plot.line("ideal", GREY, true, [(low, low), (high, high)].into_iter());
    let mut band: Vec<(f64, [f64; 2])> = vec![(f64::from(largest), [one / runs.total(runs.processors.len() - 1); 2])];
    let beyond = scaled.forecasts.iter().filter(|forecast| forecast.processors > largest);
    band.extend(beyond.map(|f| (f64::from(f.processors), [1, 0].map(|end| one / f.interval[end].max(1e-300)))));
    band.sort_by(|a, b| a.0.total_cmp(&b.0));
    plot.band("interval", COLOURS[0], &band);
    let time = |p: f64| scaled.phases.iter().map(|phase| phase.time(p, scaled.seed_forms)).sum::<f64>();
    plot.line("signatures", COLOURS[0], false, places.iter().map(|&p| (p, one / time(p))));
    if let Some(phase) = scaled.holds_back.map(|at| &scaled.phases[at]).filter(|_| scaled.phases.len() > 1) {
        let own = phase.phase.times[0] * low;
        let name = format!("phase {}", phase.phase.name.chars().take(24).collect::<String>());
        plot.line(&name, COLOURS[1], true, places.iter().map(|&p| (p, own / phase.time(p, scaled.seed_forms))));
    }
    let seen = runs.processors.iter().enumerate().map(|(at, p)| (f64::from(*p), one / runs.total(at)));
    plot.points("runs", BLACK, seen);
    let actual = scaled.forecasts.iter().filter_map(|f| Some((f64::from(f.processors), one / f.actual?)));
    let actual: Vec<(f64, f64)> = actual.collect();
    if !actual.is_empty() {
        plot.points("actual", COLOURS[2], actual.into_iter());
    }
    plot.svg()
}
