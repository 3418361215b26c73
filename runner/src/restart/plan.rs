//! The plan of a signature: where images are saved and what is measured from each (seed 004, section on building the
//! signature).
//!
//! A piece boundary is a cut of all ranks ([`Analysis::cut`]), so an image lies after a piece. From it the program warms
//! up (one occurrence at least, `WARM_S` at least), then a few pieces are measured. All restarts happen within a short
//! while on the target, so spreading them over the program averages the program's variation and not the machine's:
//! images are few, as many as both base runs give reason for, and repetitions are left to the runner.
//!
//! Two things cannot be restarted. What lies before the first cut, process start and MPI_Init above all, is timed by the
//! launch of the restarts and for the rest scaled; the analysis puts a cut as early as one can lie where a set-up of 1 %
//! or more follows, so that this is little. What lies after the last event (MPI_Finalize, exit) is scaled.
use crate::restart::windows::{Profile, Window};
use phasecast_analyzer::segments::RESTARTS;
use phasecast_analyzer::{Analysis, Order, Phase};
use std::collections::BTreeMap;
use std::ops::Range;

/// The most images that phases that repeat are spread over (and as many again for phases that these do not show), and the
/// most for one-offs, where the user does not say.
const MOST: (usize, usize) = (RESTARTS as usize, 6);
/// What a further image must gain in error, as a share of the run.
const IMAGE_WORTH: f64 = 0.002;
/// Error of a phase that is not measured but scaled, as a share of its time.
const SCALED: f64 = 0.15;
/// What measuring a share of the run may cost in error.
const COST_WORTH: f64 = 0.1;
/// What a restart takes beside reading its bytes, in seconds, and how many bytes are read in a second.
const RESTART: (f64, f64) = (0.02, 1e9);
/// Places for an image that are tried within a stratum, and how often.
const TRIES: (usize, usize) = (48, 3);
/// A window is lengthened by so much time, in seconds, to take in a phase that would need an image of its own.
const LENGTHEN_S: f64 = 0.15;

/// A signature pays where at least so much of the run repeats, ...
const REPEATS: f64 = 0.3;
/// ... at least so much repeats or can be restarted as a one-off, ...
const SHOWN: f64 = 0.5;
/// ... and at most so much of it must be run to measure all windows of what repeats once.
const ROUND: f64 = 0.3;

/// What a restart of ranks of so many bytes each is likely to take on one node, in seconds.
pub fn restart_s(rank_bytes: u64, ranks: u32) -> f64 {
    RESTART.0 + rank_bytes as f64 * f64::from(ranks) / RESTART.1
}

/// Plans the images: at most `most` of them, if that is given; fewer, the longer a restart takes (`restart_s`). Windows in
/// the order of their cuts; several may share one.
pub fn plan(analysis: &Analysis, profile: &Profile, most: Option<usize>, restart_s: f64) -> Vec<Window> {
    let mut search = Search::new(profile, &repeating(analysis));
    search.image_worth += COST_WORTH * restart_s / profile.total;
    let room = most.unwrap_or(usize::MAX);
    let mut fewer = room;
    let mut windows = loop {
        let windows = search.windows(fewer);
        if windows.len() < 2 || round(profile, &windows) <= ROUND {
            break windows;
        }
        // A part of the phases is better than no signature.
        fewer = windows.len() - 1;
    };
    // Where runs differ in what comes last, an image may never get to the end of that; and where only some collectives
    // count, the last of them is not the end of it.
    let last_too = analysis.verdict.difference.is_none() && analysis.order != Order::Collectives;
    let mut one_offs: Vec<usize> = (1..profile.pieces() - usize::from(!last_too))
        .filter(|&at| analysis.phases.get(profile.phase[at]).is_some_and(|phase| phase.relevant && phase.weight == 1))
        .filter(|&at| !windows.iter().any(|w| w.pieces().contains(&at)))
        .filter(|&at| SCALED * profile.time[at] > COST_WORTH * restart_s)
        .collect();
    one_offs.sort_by(|&a, &b| profile.time[b].total_cmp(&profile.time[a]));
    let room = room.saturating_sub(windows.len()).min(MOST.1);
    windows.extend(one_offs.into_iter().take(room).filter_map(|at| profile.around(at, true)));
    windows.sort_by_key(|w| (w.after, w.warm));
    windows
}

/// The relevant phases that repeat.
fn repeating(analysis: &Analysis) -> Vec<usize> {
    let repeats = |phase: &&Phase| phase.relevant && phase.weight > 1;
    analysis.phases.iter().filter(repeats).map(|phase| phase.id.index()).collect()
}

/// Why a plan does not pay, in words; none if it does. The verdict of the analysis is about measuring to 1 % within one
/// run; restarts can be repeated, so what counts here is whether there is something that stands for the run at all.
pub fn objection(analysis: &Analysis, profile: &Profile, windows: &[Window]) -> Option<String> {
    if analysis.verdict.refuses() {
        return Some(analysis.verdict.reason.clone());
    }
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let repeating = repeating(analysis).into_iter().fold(0.0, |sum, phase| sum + analysis.phases[phase].share);
    let one_offs = windows.iter().filter(|w| w.one_off).map(|w| profile.time(w.pieces())).sum::<f64>() / profile.total;
    if repeating < REPEATS || windows.iter().all(|w| w.one_off) {
        return Some(format!("what repeats in this program is {} of its run", percent(repeating)));
    }
    if repeating + one_offs < SHOWN {
        let both = percent(repeating + one_offs);
        return Some(format!("what repeats, and what else can be restarted, is {both} of its run"));
    }
    let round = round(profile, windows);
    (round > ROUND).then(|| format!("{} of the run would have to be run to measure what repeats once", percent(round)))
}

/// The share of the run that must be run to measure all windows of what repeats once.
fn round(profile: &Profile, windows: &[Window]) -> f64 {
    windows.iter().filter(|w| !w.one_off).map(|w| profile.time(w.run())).sum::<f64>() / profile.total
}

/// The cuts of a plan: after which pieces images are saved, ascending.
pub fn cuts(windows: &[Window]) -> Vec<usize> {
    let mut cuts: Vec<usize> = windows.iter().map(|w| w.after).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// A place for an image and what its window shows.
struct Place {
    window: Window,
    /// For each phase that is wanted and seen: occurrences, and their time in each base run.
    seen: Vec<(usize, f64, [f64; 2])>,
    cost: f64,
}

/// The search for windows over the phases that repeat.
struct Search<'a> {
    profile: &'a Profile,
    /// The wanted phase's place in `whole`, by phase.
    index: BTreeMap<usize, usize>,
    /// For each wanted phase: occurrences, and their time in each base run.
    whole: Vec<(f64, [f64; 2])>,
    /// What a further image must gain in error, as a share of the run.
    image_worth: f64,
}

impl<'a> Search<'a> {
    fn new(profile: &'a Profile, wanted: &[usize]) -> Search<'a> {
        let index: BTreeMap<usize, usize> = wanted.iter().enumerate().map(|(place, &phase)| (phase, place)).collect();
        let mut search =
            Search { profile, index, whole: vec![(0.0, [0.0; 2]); wanted.len()], image_worth: IMAGE_WORTH };
        for (place, occurrences, times) in search.sums(0..profile.pieces()) {
            search.whole[place] = (occurrences, times);
        }
        search
    }

    /// The windows of at most so many images for what repeats.
    fn windows(&self, room: usize) -> Vec<Window> {
        let mut windows = self.best(room.min(MOST.0));
        self.cover(&mut windows, room.min(MOST.0 + self.whole.len().min(MOST.0)));
        windows
    }

    /// What a stretch shows of the wanted phases.
    fn sums(&self, pieces: Range<usize>) -> Vec<(usize, f64, [f64; 2])> {
        let mut sums: BTreeMap<usize, (f64, [f64; 2])> = BTreeMap::new();
        for at in pieces {
            let Some(&place) = self.index.get(&self.profile.phase[at]) else { continue };
            let (count, times) = sums.entry(place).or_default();
            *count += 1.0;
            for (sum, run) in times.iter_mut().zip(&self.profile.runs) {
                *sum += run[at];
            }
        }
        sums.into_iter().map(|(place, (count, times))| (place, count, times)).collect()
    }

    fn place(&self, window: Window) -> Place {
        Place { window, seen: self.sums(window.pieces()), cost: self.profile.time(window.run()) }
    }

    /// What a choice of places is worth, as a share of the run, the less the better: how far the phases are off on each
    /// base run, the worse of both; what is not seen; what measuring costs.
    fn error(&self, chosen: &[&Place]) -> f64 {
        let mut seen = vec![(0.0, [0.0; 2]); self.whole.len()];
        for (place, count, times) in chosen.iter().flat_map(|c| &c.seen) {
            seen[*place].0 += count;
            (0..2).for_each(|run| seen[*place].1[run] += times[run]);
        }
        let runs = self.profile.runs.len();
        let off = |run: usize| -> f64 {
            let phases = seen.iter().zip(&self.whole).filter(|((count, _), _)| *count > 0.0);
            phases.map(|((count, times), (all, whole))| (all * times[run] / count - whole[run]).abs()).sum()
        };
        let unseen: f64 = seen
            .iter()
            .zip(&self.whole)
            .filter(|(s, _)| s.0 == 0.0)
            .map(|(_, w)| w.1[..runs].iter().sum::<f64>())
            .sum();
        let cost: f64 = chosen.iter().map(|c| c.cost).sum();
        let worst = (0..runs).map(off).fold(0.0, f64::max);
        (worst + SCALED * unseen / runs as f64 + COST_WORTH * cost) / self.profile.total
    }

    /// As many windows as are worth their images, at most `room`.
    fn best(&self, room: usize) -> Vec<Window> {
        let worth = |windows: &[Window]| {
            let places: Vec<Place> = windows.iter().map(|&w| self.place(w)).collect();
            self.error(&places.iter().collect::<Vec<_>>()) + self.image_worth * windows.len() as f64
        };
        let least = room.min(2);
        let plans = (least..=room).filter(|_| !self.whole.is_empty()).map(|count| self.spread(count));
        let valued = plans.filter(|plan| !plan.is_empty()).map(|plan| (worth(&plan), plan));
        valued.min_by(|a, b| a.0.total_cmp(&b.0)).map_or_else(Vec::new, |(_, plan)| plan)
    }

    /// One window in each of `count` strata of equal time in wanted phases, such that together they stand for all.
    fn spread(&self, count: usize) -> Vec<Window> {
        if count == 0 {
            return Vec::new();
        }
        let strata: Vec<Vec<Place>> = self.strata(count).into_iter().map(|s| self.places(s)).collect();
        let strata: Vec<Vec<Place>> = strata.into_iter().filter(|places| !places.is_empty()).collect();
        let mut chosen: Vec<usize> = strata.iter().map(|places| places.len() / 2).collect();
        for _ in 0..TRIES.1 {
            let before = chosen.clone();
            for stratum in 0..strata.len() {
                let worth = |place: usize| {
                    let at = |s: usize| if s == stratum { place } else { chosen[s] };
                    let picked: Vec<&Place> = strata.iter().enumerate().map(|(s, places)| &places[at(s)]).collect();
                    self.error(&picked)
                };
                let best = (0..strata[stratum].len()).map(|p| (worth(p), p)).min_by(|a, b| a.0.total_cmp(&b.0));
                chosen[stratum] = best.map_or(chosen[stratum], |(_, place)| place);
            }
            if chosen == before {
                break;
            }
        }
        let mut windows: Vec<Window> = strata.iter().zip(chosen).map(|(places, at)| places[at].window).collect();
        windows.dedup_by_key(|w| w.after);
        windows
    }

    /// Ranges of cuts of equal time in wanted phases.
    fn strata(&self, count: usize) -> Vec<Range<usize>> {
        let wanted = |at: &usize| self.index.contains_key(&self.profile.phase[*at]);
        let whole: f64 = (0..self.profile.pieces()).filter(wanted).map(|at| self.profile.time[at]).sum();
        let (mut bounds, mut sum) = (Vec::new(), 0.0);
        for at in (0..self.profile.pieces()).filter(wanted) {
            if sum >= whole * bounds.len() as f64 / count as f64 && bounds.len() < count {
                bounds.push(at.max(1) - 1);
            }
            sum += self.profile.time[at];
        }
        bounds.push(self.profile.pieces() - 1);
        bounds.windows(2).map(|pair| pair[0]..pair[1]).collect()
    }

    /// Places in a range of cuts, evenly spread, whose windows show something.
    fn places(&self, cuts: Range<usize>) -> Vec<Place> {
        let tries = cuts.len().min(TRIES.0);
        let at = (0..tries).map(|i| cuts.start + i * cuts.len() / tries);
        let places = at.filter_map(|after| self.profile.window(after)).map(|window| self.place(window));
        places.filter(|place| !place.seen.is_empty()).collect()
    }

    /// Sees to phases that no window shows: one is lengthened if that does it, else there is a further one.
    fn cover(&self, windows: &mut Vec<Window>, room: usize) {
        let mut missing: Vec<(usize, usize)> = self.index.iter().map(|(&phase, &place)| (phase, place)).collect();
        missing.sort_by(|a, b| self.whole[b.1].1[0].total_cmp(&self.whole[a.1].1[0]));
        for (phase, _) in missing {
            let shows = |w: &Window| w.pieces().any(|at| self.profile.phase[at] == phase);
            if windows.iter().any(shows) {
                continue;
            }
            let at: Vec<usize> = (1..self.profile.pieces() - 1).filter(|&at| self.profile.phase[at] == phase).collect();
            let next = |w: &Window| {
                let piece = *at.get(at.partition_point(|&piece| piece < w.pieces().end))?;
                let more = self.profile.time(w.pieces().end..piece + 1) - self.profile.time[piece];
                (more <= LENGTHEN_S).then_some(piece)
            };
            if let Some((window, piece)) = windows.iter_mut().find_map(|w| next(w).map(|piece| (w, piece))) {
                window.measured = piece + 1 - window.pieces().start;
            } else if let Some(&middle) = at.get(at.len() / 2).filter(|_| windows.len() < room) {
                windows.extend(self.profile.around(middle, false));
            }
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
pub mod tests;
