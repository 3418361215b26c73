//! What is restarted next: how much launches have shown, what they and restarts cost, and what there is time for.
use crate::restart::manifest::Images;
use crate::restart::plan::restart_s;
use crate::restart::replay::Replayed;
use crate::restart::windows::{Profile, Window};
use crate::signature::Manifest;
use phasecast_checkpoint::job::{StepTime, Within};
use std::collections::BTreeSet;

/// The fewest windows that are measured, whatever they cost.
const FEWEST: usize = 2;
/// Rounds of one launch, if they take at most this share of the time that is left: their middle is free of bursts.
const ROUNDS: (usize, f64) = (3, 0.6);
/// A window shows enough if what it does not show of a round takes at most this share of the time of its phases.
const UNSHOWN: f64 = 0.1;
/// The share of the time left over that longer windows are planned to use.
const SPARE: f64 = 0.9;
/// The most by which a window is made longer, in seconds.
const LONGEST_S: f64 = 0.5;
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

    /// Whether windows that ran are shorter than they are to be.
    pub(super) fn too_short(&self, ran: &[Window]) -> bool {
        let shorter = |w: &Window| {
            let wanted = self.windows.iter().find(|wanted| !wanted.one_off && wanted.after == w.after);
            wanted.is_some_and(|wanted| self.profile.time(w.pieces()) < self.profile.time(wanted.pieces()))
        };
        ran.iter().filter(|w| !w.one_off).any(shorter)
    }

    fn launch_s(&self, seen: &Seen) -> f64 {
        let init = |of: &mut dyn Iterator<Item = f64>| of.fold(0.0, f64::max);
        let init_s = match seen.launches {
            0 => init(&mut self.images.edges.iter().map(|e| e.init_s)),
            _ => init(&mut seen.replayed.init_s.iter().copied()),
        };
        self.manifest.startup_s + self.manifest.teardown_s + init_s + LAUNCH_S
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
    /// first, and further rounds (if they are wanted). What time is left makes the windows of the rounds longer: that is
    /// cheaper than to restart again, of which only the time after the warm-up counts.
    pub(super) fn schedule(&self, seen: &Seen, left: f64, more: bool) -> Vec<Window> {
        let mut round: Vec<Window> = self.windows.iter().filter(|w| !w.one_off).copied().collect();
        let mut one_offs: Vec<Window> = self.windows.iter().filter(|w| w.one_off).copied().collect();
        one_offs.sort_by(|a, b| self.profile.time(b.pieces()).total_cmp(&self.profile.time(a.pieces())));
        let count = round.len();
        let round_s: f64 = round.iter().map(|w| self.window_s(w, seen)).sum();
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
                round = one.flatten().map_or(spread, |one| {
                    let more_s = SPARE * (left - cost(&[one])) / seen.pace();
                    vec![self.profile.longer(&one, more_s.clamp(0.0, LONGEST_S))]
                });
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
        let mut pilot = None;
        if more && count > 0 && round.len() == count {
            let room = left + rounds as f64 * round_s;
            if ROUNDS.0 as f64 * round_s <= ROUNDS.1 * room {
                rounds = ROUNDS.0;
            } else if round_s <= room {
                rounds = 1;
            }
            round = self.most_first(round);
            // How fast the target is shows in a window that is not made longer. It is made again at the end.
            pilot = round.first().copied().filter(|_| rounds == 1 && seen.launches == 0);
            let pilot_s = pilot.map_or(0.0, |w| self.window_s(&w, seen));
            let spare = SPARE * ((room - pilot_s) / rounds.max(1) as f64 - round_s) / count as f64;
            let more_s = spare.clamp(0.0, LONGEST_S) / seen.pace();
            round = round.iter().map(|w| self.profile.longer(w, more_s)).collect();
            pilot = pilot.filter(|w| spare > 0.0 && *w != round[0]);
        }
        let mut windows = round.repeat(rounds.min(1));
        windows.append(&mut once);
        windows.extend(round.repeat(rounds.saturating_sub(1)));
        if let Some(pilot) = pilot {
            let again = std::mem::replace(&mut windows[0], pilot);
            windows.push(again);
        }
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

    /// The time that a launch of `windows` has of what is left. In any case those windows are made that show the phases
    /// that all of them show, as long as they were planned, as a target may be much slower than the base.
    pub(super) fn within(&self, windows: &[Window], left: f64) -> Within {
        let phases = |windows: &[Window]| -> BTreeSet<usize> {
            windows.iter().filter(|w| !w.one_off).flat_map(|w| self.profile.phases(w.pieces())).collect()
        };
        let all = phases(windows);
        let showing = (1..windows.len()).find(|&count| phases(&windows[..count]) == all).unwrap_or(windows.len());
        let seconds = left - self.manifest.startup_s - self.manifest.teardown_s - END_S;
        let repeating = |windows: &[Window]| -> BTreeSet<usize> {
            windows.iter().filter(|w| !w.one_off).map(|w| w.after).collect()
        };
        // One that shows what others would is as long as that takes.
        let for_all = repeating(windows).len() == 1 && repeating(&self.windows).len() > 1;
        let steps = windows.iter().map(|w| self.step(w, for_all)).collect();
        Within { seconds, least: showing.max(FEWEST.min(windows.len())), steps }
    }

    /// What a window takes. It may be as short as it was planned, if not `whole`.
    fn step(&self, window: &Window, whole: bool) -> StepTime {
        let sum = |sum: &mut f64, piece: usize| {
            *sum += self.profile.time(piece..piece + 1);
            Some(*sum)
        };
        let base_s = window.run().scan(0.0, sum).collect();
        let own = |w: &&Window| (w.after, w.one_off) == (window.after, window.one_off);
        let planned = self.windows.iter().find(own).map(|w| w.run().len()).filter(|_| !whole);
        let all = window.run().len();
        StepTime { base_s, fewest: planned.map_or(all, |planned| planned.min(all)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::restart::manifest::{EdgeTimes, FORMAT, Needs, ProgramFile};
    use crate::restart::plan::plan;
    use crate::restart::plan::tests::{MS, loop_of, two_kinds, two_kinds_and_a_rare_one};
    use crate::signature::this_machine;
    use phasecast_analyzer::Analysis;

    /// What is scheduled of a loop of 10 ms with a set-up of 0.7 s, with so much time left.
    fn scheduled(seen: &Seen, left: f64, more: bool) -> (Vec<Window>, Vec<Window>) {
        let (steps, windows, _) = scheduled_of(&loop_of(2000, |_| 10 * MS), 80_000_000, seen, left, more);
        (steps, windows)
    }

    /// The same of any program, with images of so many bytes.
    fn scheduled_of(
        analysis: &Analysis,
        rank_bytes: u64,
        seen: &Seen,
        left: f64,
        more: bool,
    ) -> (Vec<Window>, Vec<Window>, Profile) {
        costs_of(analysis, rank_bytes, |costs| {
            (costs.schedule(seen, left, more), costs.windows.clone(), costs.profile.clone())
        })
    }

    fn costs_of<T>(analysis: &Analysis, rank_bytes: u64, look: impl FnOnce(&Costs<'_>) -> T) -> T {
        let profile = Profile::of(analysis).expect("it has cuts");
        let windows = plan(analysis, &profile, None, 0.1);
        let images = Images {
            format: FORMAT,
            created: 0,
            user: String::new(),
            program: ProgramFile { path: String::new(), bytes: 0, sha256: String::new() },
            needs: Needs {
                architecture: String::new(),
                cpu_baseline: String::new(),
                cpu_features: vec![],
                page_size: 4096,
                rank_bytes,
            },
            cuts: vec![],
            windows: windows.clone(),
            edges: vec![EdgeTimes { init_s: 0.2, ..EdgeTimes::default() }],
            verified: None,
        };
        let manifest = Manifest {
            kind: "restart".into(),
            phasecast: String::new(),
            command: vec!["loop".into()],
            ranks: 1,
            machine: this_machine(""),
            aet_s: vec![21.0],
            startup_s: 0.05,
            teardown_s: 0.05,
            images: None,
        };
        look(&Costs { images: &images, windows, profile: &profile, manifest: &manifest })
    }

    #[test]
    fn the_first_windows_show_all_phases_and_are_made_in_any_case() {
        for analysis in [loop_of(2000, |_| 10 * MS), two_kinds_and_a_rare_one(400)] {
            costs_of(&analysis, 80_000_000, |costs| {
                let steps = costs.schedule(&Seen::default(), 60.0, true);
                let within = costs.within(&steps, 60.0);
                let least = within.least;
                let phases = |steps: &[Window]| -> BTreeSet<usize> {
                    steps.iter().filter(|w| !w.one_off).flat_map(|w| costs.profile.phases(w.pieces())).collect()
                };
                assert!(least >= FEWEST && steps.len() > least, "{within:?} of {steps:?}");
                assert_eq!(phases(&steps[..least]), phases(&steps), "{steps:?}");
                assert!(59.0 < within.seconds && within.seconds < 60.0, "{within:?}");
                for (window, step) in steps.iter().zip(&within.steps) {
                    let shorter = Window { measured: step.fewest - window.warm, ..*window };
                    assert!(costs.windows.contains(&shorter), "{window:?}: {step:?}");
                    assert!(window.one_off || step.fewest < window.run().len(), "{window:?}: {step:?}");
                    assert!((step.base_s[step.base_s.len() - 1] - costs.profile.time(window.run())).abs() < 1e-9);
                }
            });
        }
    }

    #[test]
    fn a_round_starts_with_what_is_missed_most() {
        costs_of(&two_kinds(40), 80_000_000, |costs| {
            // Of the 40 iterations' pieces, two of the first kind by themselves, or one of the second.
            let at = |after, measured| Window { after, warm: 0, measured, one_off: false };
            let [start, first, second, far] = [at(0, 2), at(3, 2), at(5, 1), at(90, 2)];
            assert_eq!(costs.most_first(vec![start, first, second, far]), [second, far, start, first]);
        });
    }

    #[test]
    fn where_a_restart_is_dear_one_shows_all_phases() {
        let analysis = two_kinds(40);
        let (steps, windows, profile) = scheduled_of(&analysis, 4_000_000_000, &Seen::default(), 2.4, true);
        let phases = |windows: &[Window]| -> BTreeSet<usize> {
            windows.iter().flat_map(|w| profile.phases(w.pieces())).collect()
        };
        assert_eq!(steps.len(), 1, "{steps:?}");
        assert!(windows.len() > 1 && phases(&steps) == phases(&windows), "{steps:?} for {windows:?}");
    }

    #[test]
    fn a_phase_that_takes_little_is_left_out_where_there_is_no_time_for_it() {
        let analysis = two_kinds_and_a_rare_one(40);
        let restart_s = restart_s(1_000_000_000, 1);
        let phases = |left| {
            let (steps, _, profile) = scheduled_of(&analysis, 1_000_000_000, &Seen::default(), left, true);
            assert_eq!(steps.len(), 1, "{steps:?}");
            let shown: BTreeSet<usize> = profile.phases(steps[0].pieces()).collect();
            (shown, restart_s + profile.time(steps[0].run()))
        };
        let (all, all_s) = phases(3.2);
        let (most, most_s) = phases(2.6);
        assert!(all.len() == 3 && most.len() == 2 && most_s < all_s, "{all:?} in {all_s}, {most:?} in {most_s}");
    }

    #[test]
    fn one_round_is_made_whatever_it_costs() {
        let (steps, windows) = scheduled(&Seen::default(), 0.0, true);
        assert!(!steps.is_empty() && steps.len() == windows.iter().filter(|w| !w.one_off).count(), "{steps:?}");
    }

    #[test]
    fn one_offs_are_measured_once_and_rounds_fill_the_budget() {
        let (steps, windows) = scheduled(&Seen::default(), 60.0, true);
        let repeating = windows.iter().filter(|w| !w.one_off).count();
        assert_eq!(steps.iter().filter(|w| w.one_off).count(), 1);
        assert_eq!(steps.len(), 1 + ROUNDS.0 * repeating);
        assert!(steps[repeating].one_off, "after the first round: {steps:?}");
        let planned = |w: &Window| windows.iter().any(|p| p.after == w.after && p.measured < w.measured);
        assert!(steps.iter().all(|w| w.one_off || planned(w)), "longer: {steps:?}");
        // 0.45 s for the launch, 0.4 s a round, 0.8 s for the set-up.
        let (steps, windows) = scheduled(&Seen::default(), 1.3, true);
        assert!(!steps.iter().any(|w| w.one_off) && steps.len() == repeating + 1, "{steps:?}");
        assert!(steps[1..].iter().all(planned), "rather longer than again: {steps:?}");
        assert!(windows.contains(&steps[0]) && steps[0].after == steps[repeating].after, "a target's pace: {steps:?}");
        let seen = Seen { launches: 1, ..Seen::default() };
        let (steps, _) = scheduled(&seen, 1.3, true);
        assert!(steps.len() == repeating && steps.iter().all(planned), "known by then: {steps:?}");
    }

    #[test]
    fn enough_is_enough() {
        let seen = Seen { launches: 1, round: true, one_offs: true, ..Seen::default() };
        assert_eq!(scheduled(&seen, 60.0, false).0, []);
        assert!(!scheduled(&seen, 60.0, true).0.is_empty());
        let seen = Seen { launches: 1, round: true, one_offs: false, ..Seen::default() };
        assert!(scheduled(&seen, 60.0, false).0.iter().all(|w| w.one_off), "only what was not seen yet");
    }
}
