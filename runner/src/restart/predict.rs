//! The executor that restarts: windows in rounds, one launch for many of them, until the interval is as narrow as asked
//! or the budget is spent. All that it takes counts as SET.
use crate::launch::Launcher;
use crate::live::phases;
use crate::output::note;
use crate::restart::manifest::Images;
use crate::restart::processor::others_note;
use crate::restart::recorded::crowded_note;
use crate::restart::replay::Replayer;
use crate::restart::schedule::{Costs, Seen};
use crate::restart::windows::{Profile, Window};
use crate::scratch::Scratch;
use crate::signature::{Manifest, Signature, this_machine};
use anyhow::{Context, Result};
use phasecast_analyzer::{Analysis, Edge, Estimate, Restart, estimate_restarts};
use phasecast_checkpoint::job::Within;
use phasecast_prediction::{Prediction, TimelinePiece, Uncertainty, VERSION};
use std::path::Path;
use std::time::{Duration, Instant};

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;
/// The budget where none is given: seconds, and a share of the base run.
const BUDGET: (f64, f64) = (2.0, 0.02);
/// What is left of the budget, in seconds: launches and restarts take now more, now less.
const RESERVE_S: f64 = 0.1;
/// Rectangles of the report's timeline.
const TIMELINE: usize = 4000;

/// How much is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// The launcher, on a machine that is fit for the images ([`crate::restart::preflight::fit_launcher`]).
    pub launcher: &'a Launcher,
    /// Wall time for all, in seconds.
    pub budget_s: Option<f64>,
    /// The half-width of the interval as a share of the prediction.
    pub precision: f64,
}

/// Predicts by restarts. `source` holds the images: the signature, or a packed set.
///
/// # Errors
/// If restarting fails.
pub fn predict(signature: &Signature, source: &Path, wish: &Wish<'_>, begun: Instant) -> Result<Prediction> {
    let Signature { manifest, analysis } = signature;
    let images = manifest.images.as_ref().context("this signature has no images")?;
    let scratch = Scratch::here()?;
    let replayer = Replayer::new(signature, images, source, wish.launcher, scratch.path());
    let profile = Profile::of(analysis).context("the pieces of this signature are no cuts")?;
    let budget = wish.budget_s.unwrap_or(BUDGET.0 + BUDGET.1 * manifest.base_run_s());
    let mut costs = Costs { images, windows: images.windows.clone(), profile: &profile, manifest };
    let mut seen = Seen::default();
    let mut notes = Vec::new();
    note(&format!("restarting with {}", wish.launcher));
    let mut precise = false;
    let mut brief: Vec<Restart> = Vec::new();
    let answer = loop {
        let left = budget - RESERVE_S - begun.elapsed().as_secs_f64();
        let windows = costs.schedule(&seen, left, !precise);
        if windows.is_empty() {
            break estimate(analysis, images, &seen);
        }
        let first = seen.launches == 0;
        seen.one_offs |= windows.iter().any(|w| w.one_off);
        seen.round |= windows.iter().any(|w| !w.one_off);
        let (longest, within) = costs.within(&windows, &seen, left);
        match launch(&replayer, [&windows, &longest], within, &mut seen, &mut notes, &profile) {
            // What was seen before holds, with the interval that it has.
            Err(error) if !(first || crate::launch::interrupted()) => {
                notes.push(format!("no further restarts were made: {}", crate::exit::sentence(&error)));
                if !brief.is_empty() {
                    seen.replayed.restarts = brief;
                }
                break estimate(analysis, images, &seen);
            }
            Err(error) if crate::launch::interrupted() => return Err(error),
            // All checksums are only tried where something is wrong.
            other => other.map_err(|error| damage(source).unwrap_or(error))?,
        }
        // What was measured so briefly is not mixed with what was measured now.
        brief.clear();
        if first && costs.lengthen(seen.pace()) {
            // One-offs are as long as they are.
            let one_off = |r: &Restart| images.windows.iter().any(|w| w.one_off && w.pieces().start == r.first);
            let long: Vec<Restart> =
                seen.replayed.restarts.iter().filter(|r| one_off(r) || !costs.is_brief(r)).cloned().collect();
            if costs.shown_by(&long) {
                seen.replayed.restarts = long;
            } else if costs.has_time_for_a_round(&seen, budget - RESERVE_S - begun.elapsed().as_secs_f64()) {
                brief = std::mem::replace(&mut seen.replayed.restarts, long);
                seen.round = false;
                continue;
            }
        }
        let now = estimate(analysis, images, &seen);
        precise = now.half_width_s <= wish.precision * now.total_s;
    };
    let mut prediction = assemble(manifest, analysis, &answer, &seen);
    notes.extend(manifest.scatter_note());
    notes.extend(seen.replayed.held_note());
    notes.extend(seen.replayed.processors.map(others_note));
    notes.extend(seen.replayed.crowded.map(crowded_note));
    prediction.notes = notes;
    prediction.set_s = begun.elapsed().as_secs_f64();
    Ok(prediction)
}

/// What is damaged in a file of images, if anything is.
fn damage(source: &Path) -> Option<anyhow::Error> {
    let images = phasecast_image::Images::open(source).and_then(|images| images.verify());
    images.err().map(anyhow::Error::from)
}

/// Restarts windows in one launch, in which they may become the longer ones; where that fails, each in a launch of its own.
fn launch(
    replayer: &Replayer<'_>,
    [windows, longer]: [&[Window]; 2],
    within: Within,
    seen: &mut Seen,
    notes: &mut Vec<String>,
    profile: &Profile,
) -> Result<()> {
    let longest = |windows: &[Window]| windows.iter().map(|w| profile.time(w.run())).fold(0.0, f64::max);
    let least = within.least;
    let ends = Instant::now() + Duration::from_secs_f64(within.seconds.clamp(0.0, 1e9));
    let bar = crate::progress::bar("restarting", "restarts");
    let told = |done| bar.set(done, windows.len() as u64);
    let failure = match replayer.run(longer, longest(windows), Some(within), &told) {
        Ok(replayed) => {
            let made = |(w, r): (&Window, &Restart)| profile.time(w.after + 1..w.pieces().start + r.times[0].len());
            let base_s = windows.iter().zip(&replayed.restarts).map(made).sum();
            seen.add(replayed, base_s);
            return Ok(());
        }
        Err(error) => error,
    };
    // A failure before the first restart is none of the images: it would fail again.
    if crate::launch::interrupted() || windows.len() < 2 || seen.launches > 0 || !replayer.stepped() || replayer.hung()
    {
        return Err(failure);
    }
    notes.push(format!(
        "a launch for each restart was needed, as one for all failed: {}",
        crate::exit::sentence(&failure)
    ));
    let mut made = 0;
    for (at, window) in windows.iter().enumerate() {
        if windows[..at].contains(window) {
            continue;
        }
        if replayer.hung() || (made >= least && Instant::now() >= ends) {
            notes.push("the other images were not restarted".into());
            break;
        }
        match replayer.run(std::slice::from_ref(window), longest(&[*window]), None, &|_| ()) {
            Ok(replayed) => {
                seen.add(replayed, profile.time(window.run()));
                made += 1;
            }
            Err(error) if crate::launch::interrupted() => return Err(error),
            Err(error) => {
                notes.push(format!("the image after piece {} failed: {}", window.after, crate::exit::sentence(&error)))
            }
        }
    }
    if made > 0 { Ok(()) } else { Err(failure) }
}

fn estimate(analysis: &Analysis, images: &Images, seen: &Seen) -> Estimate {
    let of = |times: &[f64], rank: usize| times.get(rank).copied().unwrap_or(0.0);
    let (init, finalize) = (&seen.replayed.init_s, &seen.replayed.finalize_s);
    let ranks = images.edges.iter().enumerate();
    let edges: Vec<Edge> = ranks.map(|(rank, e)| e.with_launch(of(init, rank), of(finalize, rank))).collect();
    estimate_restarts(analysis, &seen.replayed.restarts, &edges, CONFIDENCE).doubted(seen.replayed.doubt())
}

fn assemble(manifest: &Manifest, analysis: &Analysis, estimate: &Estimate, seen: &Seen) -> Prediction {
    let (startup_s, teardown_s) = seen.edges(manifest);
    let pet_s = startup_s + estimate.total_s + teardown_s;
    let around = |half: f64| [(pet_s - half).max(0.0), pet_s + half];
    Prediction {
        version: VERSION,
        method: "restart".into(),
        program: manifest.command.join(" "),
        ranks: manifest.ranks,
        target: this_machine(&seen.replayed.mpi),
        base: manifest.machine.clone(),
        pet_s,
        interval_s: around(estimate.half_width_s),
        run_interval_s: around(estimate.run_half_width_s),
        confidence: CONFIDENCE,
        set_s: 0.0,
        coverage: estimate.coverage,
        startup_s,
        residual_s: estimate.unmeasured_s,
        restarts: seen.restarts as u64,
        restart_s: seen.replayed.restart_s,
        warmup_s: seen.replayed.warmup_s,
        measured_s: seen.replayed.measured_s,
        uncertainty: Uncertainty {
            sampling_s: estimate.sampling_s,
            unmeasured_s: estimate.rest_s,
            machine_s: estimate.machine_s,
        },
        base_run_s: manifest.base_run_s(),
        naive_s: None,
        phases: phases(analysis, estimate),
        notes: Vec::new(),
        aet_s: None,
        pete: None,
        timeline: timeline(analysis, seen),
    }
}

/// The measured pieces, restart after restart, as many as a page can show.
fn timeline(analysis: &Analysis, seen: &Seen) -> Vec<TimelinePiece> {
    let mut all = Vec::new();
    let mut origin = 0.0;
    for restart in &seen.replayed.restarts {
        let mut longest: f64 = 0.0;
        for (rank, times) in restart.times.iter().enumerate() {
            let mut at = origin;
            for (offset, time) in times.iter().enumerate() {
                let Some(piece) = analysis.pieces[rank].get(restart.first + offset) else { break };
                let end = at + time.seconds();
                all.push(TimelinePiece { rank: rank as u32, phase: piece.phase.0, start_s: at, end_s: end });
                at = end;
            }
            longest = longest.max(at - origin);
        }
        origin += longest;
        if all.len() > TIMELINE {
            all.truncate(TIMELINE);
            break;
        }
    }
    all
}
