//! A profile as CSV and as SVG.
use super::Profile;
use crate::phases::Phase;
use crate::plot::{Axis, COLOURS, Plot};
use std::fmt::Write;

/// The most phases with a mark of their own.
const MOST_MARKS: usize = 40;

/// The points as CSV: `start_s,end_s,busy,smoothed,least,most,phase`; phases count from 1.
pub fn csv(profile: &Profile, smoothed: &[f64], phases: &[Phase]) -> String {
    let series = &profile.series;
    let mut text = String::from("start_s,end_s,busy,smoothed,least,most,phase\n");
    let mut phase = 0;
    for (at, (point, smooth)) in series.points.iter().zip(smoothed).enumerate() {
        while phases.get(phase).is_some_and(|phase| phase.end <= at) {
            phase += 1;
        }
        let [start, end] = [at, at + 1].map(|at| series.edge_ns(at) as f64 * 1e-9);
        let _ = writeln!(
            text,
            "{start:.9},{end:.9},{:.6},{smooth:.6},{},{},{}",
            point.mean(),
            point.least,
            point.most,
            phase + 1
        );
    }
    text
}

/// The profile over time, smoothed, with the beginnings of its phases.
pub fn svg(profile: &Profile, smoothed: &[f64], phases: &[Phase]) -> String {
    let series = &profile.series;
    let most = f64::from(profile.ranks) * 1.05;
    let title = format!("Execution profile: {} processors, average parallelism {:.2}", profile.ranks, profile.mean());
    let mut plot = Plot::new(
        &title,
        Axis::linear("time [s]", 0.0, profile.length_s()),
        Axis::linear("busy processors", 0.0, most),
    );
    let middle = |at: usize| 0.5e-9 * (series.edge_ns(at) + series.edge_ns(at + 1)) as f64;
    let steps = series
        .points
        .iter()
        .enumerate()
        .flat_map(|(at, point)| [at, at + 1].map(|edge| (series.edge_ns(edge) as f64 * 1e-9, point.mean())));
    plot.area("busy", COLOURS[0], steps);
    plot.line("smoothed", COLOURS[1], false, smoothed.iter().enumerate().map(|(at, value)| (middle(at), *value)));
    for (number, phase) in (1..).zip(phases.iter().take(MOST_MARKS)) {
        plot.mark(series.edge_ns(phase.start) as f64 * 1e-9, &format!("P{number}"));
    }
    plot.svg()
}
