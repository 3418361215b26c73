//! What is restarted next: how much launches have shown, what they and restarts cost, and what there is time for.
use crate::restart::manifest::Images;
use crate::restart::plan::restart_s;
use crate::restart::replay::Replayed;
use crate::restart::windows::{Profile, Window};
use crate::signature::Manifest;
use phasecast_analyzer::Restart;
use phasecast_checkpoint::job::{StepTime, Within};
use phasecast_checkpoint::moment::Moment;
use std::collections::BTreeSet;

/// The fewest windows that are measured, whatever they cost.
const FEWEST: usize = 2;
/// Rounds of one launch, if they take at most this share of the time that is left: their middle is free of bursts.
const ROUNDS: (usize, f64) = (3, 0.6);
/// A window shows enough if what it does not show of a round takes at most this share of the time of its phases.
const UNSHOWN: f64 = 0.1;
/// The most by which a window is made longer, in seconds, where there is time for a further launch after that.
const LONGEST_S: f64 = 0.5;
/// So many times faster than known a target may be for windows to be made longer by that.
const UNKNOWN: f64 = 2.0;
/// What a launch takes beside the launcher and MPI_Init: finding the library, and the end.
const LAUNCH_S: f64 = 0.15;
/// What of that is after the last restart.
const END_S: f64 = 0.05;
/// A target that takes less than this share of the base's time gets longer windows.
const FASTER: f64 = 0.7;

/// What launches have shown so far.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) replayed: Replayed,
    pub(super) launches: usize,
    pub(super) restarts: usize,
    /// Times that launchers took to start and to end, in seconds.
    pub(super) startups: Vec<f64>,
    pub(super) teardowns: Vec<f64>,
    /// Time of the pieces that ran, here and on the base, in seconds.
    pub(super) ran: (f64, f64),
    /// Whether a whole round, and the one-offs that there was time for, were measured.
    pub(super) round: bool,
    pub(super) one_offs: bool,
}

impl Seen {
    /// Takes in a launch in which pieces of this base time ran.
    pub(super) fn add(&mut self, more: Replayed, base_s: f64) {
        self.ran.0 += more.warmup_s + more.measured_s;
        self.ran.1 += base_s;
        let all = &mut self.replayed;
        self.restarts += more.restarts.len();
        all.restarts.extend(more.restarts);
        all.restart_s += more.restart_s;
        all.warmup_s += more.warmup_s;
        all.measured_s += more.measured_s;
        all.held_s += more.held_s;
        all.processors = all.processors.or(more.processors);
        all.crowded = all.crowded.or(more.crowded);
        self.startups.extend(more.startup_s);
        self.teardowns.extend(more.teardown_s);
        if self.launches == 0 {
            (all.init_s, all.finalize_s, all.mpi) = (more.init_s, more.finalize_s, more.mpi);
        } else {
            all.init_s.iter_mut().zip(more.init_s).for_each(|(least, s)| *least = least.min(s));
            all.finalize_s.iter_mut().zip(more.finalize_s).for_each(|(least, s)| *least = least.min(s));
        }
        self.launches += 1;
    }

    /// What a launcher takes to start and to end, in seconds: the least that was seen, or what it took on the base.
    pub(super) fn edges(&self, base: &Manifest) -> (f64, f64) {
        let least = |seen: &[f64], base: f64| seen.iter().copied().reduce(f64::min).unwrap_or(base);
        (least(&self.startups, base.startup_s), least(&self.teardowns, base.teardown_s))
    }

    /// Time here over time on the base.
    pub(super) fn pace(&self) -> f64 {
        if self.ran.0 > 0.0 && self.ran.1 > 0.0 { self.ran.0 / self.ran.1 } else { 1.0 }
    }
}

/// What launches and restarts will take.
pub(super) struct Costs<'a> {
    pub(super) images: &'a Images,
    /// What is measured here: the windows of the images, longer where the target is faster.
    pub(super) windows: Vec<Window>,
    pub(super) profile: &'a Profile,
    pub(super) manifest: &'a Manifest,
}

impl Costs<'_> {
    /// Makes windows longer for a target of this pace; whether any has changed.
    pub(super) fn lengthen(&mut self, pace: f64) -> bool {
        if pace >= FASTER {
            return false;
        }
        let longer = |w: &Window| if w.one_off { *w } else { self.profile.paced(w, pace) };
        let longer: Vec<Window> = self.windows.iter().map(longer).collect();
        let changed = longer != self.windows;
        self.windows = longer;
        changed
    }

    /// What is to be measured where the restart began: by the window of the images that begins there.
    fn wanted(&self, restart: &Restart) -> Option<&Window> {
        let mut both = self.images.windows.iter().zip(&self.windows);
        both.find(|(planned, _)| !planned.one_off && planned.pieces().start == restart.first).map(|(_, wanted)| wanted)
    }

    /// Whether a restart measured less than is to be measured there.
    pub(super) fn is_brief(&self, restart: &Restart) -> bool {
        let measured = restart.first..restart.first + restart.times.first().map_or(0, Vec::len);
        self.wanted(restart).is_some_and(|wanted| self.profile.time(measured) < self.profile.time(wanted.pieces()))
    }

    /// Whether restarts show each window of what repeats.
    pub(super) fn shown_by(&self, restarts: &[Restart]) -> bool {
        self.repeating().all(|w| restarts.iter().any(|restart| self.wanted(restart) == Some(w)))
    }

    /// Whether there is time for a launch of a whole round.
    pub(super) fn has_time_for_a_round(&self, seen: &Seen, left: f64) -> bool {
        self.launch_s(seen) + self.round_s(seen) <= left
    }

    fn round_s(&self, seen: &Seen) -> f64 {
        self.repeating().map(|w| self.window_s(w, seen)).sum()
    }

    fn repeating(&self) -> impl Iterator<Item = &Window> {
        self.windows.iter().filter(|w| !w.one_off)
    }

    fn launch_s(&self, seen: &Seen) -> f64 {
        let init = |of: &mut dyn Iterator<Item = f64>| of.fold(0.0, f64::max);
        let init_s = match seen.launches {
            0 => init(&mut self.images.edges.iter().map(|e| e.init_s)),
            _ => init(&mut seen.replayed.init_s.iter().copied()),
        };
        let (startup_s, teardown_s) = seen.edges(self.manifest);
        startup_s + teardown_s + init_s + LAUNCH_S
    }

    fn restart_s(&self, seen: &Seen) -> f64 {
        match (seen.restarts, &self.images.verified) {
            (0, Some(verified)) => verified.restart_s,
            (0, None) => restart_s(self.images.needs.rank_bytes, self.manifest.ranks),
            (n, _) => seen.replayed.restart_s / n as f64,
        }
    }

    /// What a window will take: the restart, and its pieces at the pace of what was seen.
    fn window_s(&self, window: &Window, seen: &Seen) -> f64 {
        self.restart_s(seen) + seen.pace() * self.profile.time(window.run())
    }

    /// A single window, longer than planned, for a round for which there is no time: the one with the most phases that is
    /// within the time left. If none is that shows enough, the shortest that shows enough, or else the one with the most
    /// phases, at no more than `most_s` seconds.
    fn one_for_all(&self, round: &[Window], seen: &Seen, left: f64, most_s: f64) -> Option<Window> {
        let time = |phases: &BTreeSet<usize>| phases.iter().map(|&phase| self.profile.time_of(phase)).sum::<f64>();
        let mut wanted: BTreeSet<usize> = round.iter().flat_map(|w| self.profile.phases(w.pieces())).collect();
        let enough_s = (1.0 - UNSHOWN) * time(&wanted);
        let mut best = None;
        while !wanted.is_empty() && (best.is_none() || time(&wanted) >= enough_s) {
            let longer = round.iter().filter_map(|w| self.profile.showing(w, &wanted));
            let priced = longer.map(|w| (self.window_s(&w, seen), w)).filter(|(cost_s, _)| *cost_s <= most_s);
            if let Some((cost_s, window)) = priced.min_by(|a, b| a.0.total_cmp(&b.0)) {
                best = Some(window);
                if cost_s <= left {
                    break;
                }
            }
            // The phase with the least time is the first to go.
            let time_of = |phase: usize| self.profile.time_of(phase);
            let least = wanted.iter().copied().min_by(|&a, &b| time_of(a).total_cmp(&time_of(b)))?;
            wanted.remove(&least);
        }
        // Else of all phases by themselves that one with the most time.
        best.or_else(|| {
            let phases: BTreeSet<usize> = round.iter().flat_map(|w| self.profile.phases(w.pieces())).collect();
            let showing = |phase: usize| {
                let windows = round.iter().filter_map(|w| self.profile.showing(w, &BTreeSet::from([phase])));
                windows.min_by(|a, b| self.window_s(a, seen).total_cmp(&self.window_s(b, seen)))
            };
            let alone = phases.into_iter().filter_map(|phase| Some((phase, showing(phase)?)));
            let within = alone.filter(|(_, window)| self.window_s(window, seen) <= most_s);
            let longest = |phase: usize| self.profile.time_of(phase);
            within.max_by(|a, b| longest(a.0).total_cmp(&longest(b.0))).map(|(_, window)| window)
        })
    }

    /// The windows of the next launch, in order: a round, or what there is time for of it; then one-offs, the longest
    /// first, and further rounds (if they are wanted).
    pub(super) fn schedule(&self, seen: &Seen, left: f64, more: bool) -> Vec<Window> {
        let mut round: Vec<Window> = self.repeating().copied().collect();
        let mut one_offs: Vec<Window> = self.windows.iter().filter(|w| w.one_off).copied().collect();
        one_offs.sort_by(|a, b| self.profile.time(b.pieces()).total_cmp(&self.profile.time(a.pieces())));
        let count = round.len();
        let round_s = self.round_s(seen);
        let mut left = left - self.launch_s(seen);
        if !seen.round && count > 0 {
            let cost = |windows: &[Window]| windows.iter().map(|w| self.window_s(w, seen)).sum::<f64>();
            let room = (left / round_s.max(1e-9) * count as f64).max(0.0) as usize;
            if room < count {
                // A spread part of the round; where that takes too long, or a restart longer than what is measured after
                // it, one that shows all it can.
                let part = room.max(FEWEST.min(count));
                let spread: Vec<Window> = (0..part).map(|at| round[at * count / part]).collect();
                let dear = 2.0 * self.restart_s(seen) * count as f64 > round_s;
                let spread_s = cost(&spread);
                let most_s = if dear { spread_s } else { left };
                let one = (dear || spread_s > left).then(|| self.one_for_all(&round, seen, left, most_s));
                round = one.flatten().map_or(spread, |one| vec![one]);
            }
            left -= cost(&round);
        }
        let mut once = Vec::new();
        if !seen.one_offs {
            for window in one_offs {
                let cost = self.window_s(&window, seen);
                if cost <= left || once.is_empty() && count == 0 && seen.launches == 0 {
                    once.push(window);
                    left -= cost;
                }
            }
        }
        let mut rounds = usize::from(!seen.round);
        if more && count > 0 && round.len() == count {
            let room = left + rounds as f64 * round_s;
            if ROUNDS.0 as f64 * round_s <= ROUNDS.1 * room {
                rounds = ROUNDS.0;
            } else if round_s <= room {
                rounds = 1;
            }
            round = self.most_first(round);
        }
        let mut windows = round.repeat(rounds.min(1));
        windows.append(&mut once);
        windows.extend(round.repeat(rounds.saturating_sub(1)));
        windows
    }

    /// The windows of a round in the order in which they are missed most: first those that show phases that none before
    /// shows, the longest first, then each as far from those before as can be.
    fn most_first(&self, mut round: Vec<Window>) -> Vec<Window> {
        let mut shown = BTreeSet::new();
        let mut ordered: Vec<Window> = Vec::new();
        while !round.is_empty() {
            let key = |window: &Window| {
                let new: BTreeSet<usize> =
                    self.profile.phases(window.pieces()).filter(|phase| !shown.contains(phase)).collect();
                let new_s: f64 = new.into_iter().map(|phase| self.profile.time_of(phase)).sum();
                let apart = ordered.iter().map(|before| before.after.abs_diff(window.after)).min();
                (new_s, apart.unwrap_or(0))
            };
            let keys: Vec<(f64, usize)> = round.iter().map(key).collect();
            let further = |&a: &usize, &b: &usize| {
                keys[a].0.total_cmp(&keys[b].0).then(keys[a].1.cmp(&keys[b].1)).then(b.cmp(&a))
            };
            let next = round.remove((0..round.len()).max_by(further).unwrap_or(0));
            shown.extend(self.profile.phases(next.pieces()));
            ordered.push(next);
        }
        ordered
    }

    /// How long the windows may become, and the time that a launch of them has that is made now, of what is left. In any
    /// case those are made that show the phases that all of them show, as a target may be much slower than the base. What
    /// time is left when a window has run as planned makes it longer: that is cheaper than to restart again, of which only
    /// the time after the warm-up counts.
    pub(super) fn within(&self, windows: &[Window], seen: &Seen, left: f64) -> (Vec<Window>, Within) {
        let repeating = windows.iter().filter(|w| !w.one_off).count();
        let windows_s: f64 = windows.iter().map(|w| self.window_s(w, seen)).sum();
        let again = left - self.launch_s(seen) - windows_s - LONGEST_S * repeating as f64;
        let longest_s = match self.has_time_for_a_round(seen, again) {
            true => LONGEST_S,
            false => LONGEST_S.max(left / repeating.max(1) as f64),
        };
        let longest: Vec<Window> =
            windows.iter().map(|w| self.profile.longer(w, UNKNOWN * longest_s / seen.pace())).collect();
        let step = |at: usize| {
            let times = longest[at].run().map(|piece| self.profile.time(piece..piece + 1));
            let sum = |sum: &mut f64, time: f64| {
                *sum += time;
                Some(*sum)
            };
            StepTime {
                base_s: times.scan(0.0, sum).collect(),
                planned: windows[at].run().len(),
                repeats: windows[..at].iter().position(|earlier| *earlier == windows[at]),
            }
        };
        let steps = (0..windows.len()).map(step).collect();
        let phases = |count: usize| -> BTreeSet<usize> {
            let made = windows.iter().take(count).filter(|w| !w.one_off);
            made.flat_map(|w| self.profile.phases(w.pieces())).collect()
        };
        let all = phases(windows.len());
        let showing = (1..windows.len()).find(|&count| phases(count) == all).unwrap_or(windows.len());
        let (startup_s, teardown_s) = seen.edges(self.manifest);
        let seconds = left - teardown_s - END_S;
        let least = showing.max(FEWEST.min(windows.len()));
        let launched = Moment::now();
        (longest, Within { seconds, launched, startup_s, least, longest_s, ran_s: seen.ran, steps })
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
