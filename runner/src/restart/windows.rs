//! What is measured from an image ([`Window`]), in the base runs as a plan and a replay see them ([`Profile`]): pieces
//! of the slowest rank, with their phases and times.
use phasecast_analyzer::{Analysis, Piece, Share, advances, longest};
use phasecast_trace::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;

/// Warm-up before a measurement, in seconds, where an occurrence is shorter.
pub const WARM_S: f64 = 0.03;
/// A piece of this length, in seconds, needs no warm-up: what a cold start costs is less than one per cent of it.
pub(super) const COLD_S: f64 = 0.5;
/// A piece of this length, in seconds, is not run only to warm up further.
pub(super) const LONG_S: f64 = 0.2;
/// Time to be measured from an image, in seconds: the least, the most, and between them the share of the run.
const MEASURE_S: (f64, f64, f64) = (0.05, 0.3, 0.003);

/// What is measured from an image: pieces by their numbers, the same on every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The image is saved after the piece of this number.
    pub after: usize,
    /// So many pieces follow as warm-up.
    pub warm: usize,
    /// So many are measured then.
    pub measured: usize,
    /// Whether this is a one-off: measured once, if there is time for it.
    pub one_off: bool,
}

impl Window {
    /// The measured pieces.
    pub fn pieces(&self) -> Range<usize> {
        let first = self.after + 1 + self.warm;
        first..first + self.measured
    }

    /// All pieces that run, warm-up first.
    pub fn run(&self) -> Range<usize> {
        self.after + 1..self.pieces().end
    }
}

/// The base runs as a plan sees them: pieces of the slowest rank.
#[derive(Clone, Debug)]
pub struct Profile {
    pub(super) runs: Vec<Vec<f64>>,
    /// Mean time over the base runs, in seconds.
    pub(super) time: Vec<f64>,
    pub(super) phase: Vec<usize>,
    pub(super) total: f64,
    /// Whether all ranks have events in the piece.
    shared: Vec<bool>,
}

impl Profile {
    /// The profile of an analysis; none if its pieces are no cuts of all ranks, or there is but one.
    pub fn of(analysis: &Analysis) -> Option<Profile> {
        analysis.segments().filter(|&count| count > 1)?;
        let of = |pieces: &Vec<Piece>| Share {
            events: pieces.last().map_or(0, |p| p.end),
            ns: pieces.iter().map(|p| p.time.0).sum(),
            // As the analysis counts: between one cut and the next.
            pieces: advances(pieces[..pieces.len() - 1].iter().map(|piece| piece.end)),
        };
        let slowest = analysis.pieces.get(longest(&analysis.pieces.iter().map(of).collect::<Vec<_>>()))?;
        let first: Vec<f64> = slowest.iter().map(|p| p.time.seconds()).collect();
        let again: Option<Vec<f64>> = slowest.iter().map(|p| p.again.map(Nanos::seconds)).collect();
        let runs: Vec<Vec<f64>> = std::iter::once(first).chain(again).collect();
        let mean = |at: usize| runs.iter().map(|run| run[at]).sum::<f64>() / runs.len() as f64;
        let time: Vec<f64> = (0..slowest.len()).map(mean).collect();
        let total = time.iter().sum::<f64>().max(1e-9);
        let phase = slowest.iter().map(|p| p.phase.index()).collect();
        let before = |pieces: &[Piece], at: usize| at.checked_sub(1).map_or(0, |at| pieces[at].end);
        let has_events = |at| analysis.pieces.iter().all(|pieces| before(pieces, at) < pieces[at].end);
        let shared = (0..slowest.len()).map(has_events).collect();
        Some(Profile { runs, time, phase, total, shared })
    }

    pub(super) fn pieces(&self) -> usize {
        self.time.len()
    }

    /// Mean base time of pieces, in seconds.
    pub fn time(&self, pieces: Range<usize>) -> f64 {
        self.time.get(pieces).map_or(0.0, |times| times.iter().sum())
    }

    pub(super) fn aim(&self) -> f64 {
        (MEASURE_S.2 * self.total).clamp(MEASURE_S.0, MEASURE_S.1)
    }

    /// The window from the cut after a piece: warm-up, then pieces for the time aimed at. The last piece is none of
    /// them: it ends with the process.
    pub(super) fn window(&self, after: usize) -> Option<Window> {
        let last = self.pieces() - 1;
        let (mut warm, mut warmed) = (0, 0.0);
        while after + 1 + warm < last && warmed < WARM_S && (warm > 0 || self.time[after + 1] < COLD_S) {
            warmed += self.time[after + 1 + warm];
            warm += 1;
        }
        let (mut measured, mut sum) = (0, 0.0);
        while after + 1 + warm + measured < last && sum < self.aim() {
            sum += self.time[after + 1 + warm + measured];
            measured += 1;
        }
        (measured > 0).then_some(Window { after, warm, measured, one_off: false })
    }

    /// The window that measures one piece, after as much warm-up as there is before it.
    pub(super) fn around(&self, piece: usize, one_off: bool) -> Option<Window> {
        let mut after = piece.checked_sub(1)?;
        let mut warmed = if self.time[piece] >= COLD_S { WARM_S } else { 0.0 };
        while after > 0 && warmed < WARM_S && (warmed == 0.0 || self.time[after] < LONG_S) {
            warmed += self.time[after];
            after -= 1;
        }
        Some(Window { after, warm: piece - 1 - after, measured: 1, one_off })
    }

    /// The window as a target needs it on which the program takes `pace` times as long: on a faster one more pieces must
    /// run to warm up, and more be measured, for the same time.
    pub fn paced(&self, window: &Window, pace: f64) -> Window {
        let last = self.pieces() - 1;
        let Window { after, mut warm, mut measured, .. } = *window;
        let takes = |pieces: Range<usize>| pace * self.time(pieces);
        let cold = warm == 0 && takes(after + 1..after + 2) >= COLD_S;
        // What warms up is no longer measured: not the only occurrence of a phase.
        let others = |at: usize| (at + 1..=at + measured).any(|later| self.phase[later] == self.phase[at]);
        let mut warmed = takes(after + 1..after + 1 + warm);
        while !cold && after + 1 + warm + measured < last && warmed < WARM_S && others(after + 1 + warm) {
            warmed += pace * self.time[after + 1 + warm];
            warm += 1;
        }
        let aim = (MEASURE_S.2 * pace * self.total).clamp(MEASURE_S.0, MEASURE_S.1);
        let first = after + 1 + warm;
        let mut sum = takes(first..first + measured);
        while first + measured < last && sum < aim {
            sum += pace * self.time[first + measured];
            measured += 1;
        }
        Window { warm, measured, ..*window }
    }

    /// The window with so many seconds of base time more to be measured, as far as pieces follow. A one-off is as long as it
    /// is, and so is a window at the end of whose last piece not all ranks have something to do: whether it is made longer is
    /// decided there.
    pub fn longer(&self, window: &Window, seconds: f64) -> Window {
        if window.one_off || !self.shared[window.pieces().end - 1] {
            return *window;
        }
        let (last, own) = (self.pieces() - 1, window.pieces());
        let (mut more, mut end) = (0.0, own.end);
        // Half a piece more than there is time for is as near to it as half a piece less.
        while end < last && more + 0.5 * self.time[end] <= seconds {
            more += self.time[end];
            end += 1;
        }
        Window { measured: end - own.start, ..*window }
    }

    /// The phases of pieces.
    pub fn phases(&self, pieces: Range<usize>) -> impl Iterator<Item = usize> {
        self.phase.get(pieces).into_iter().flatten().copied()
    }

    /// Mean base time of all occurrences of a phase, in seconds.
    pub fn time_of(&self, phase: usize) -> f64 {
        let of = self.phase.iter().zip(&self.time).filter(|(of, _)| **of == phase);
        of.map(|(_, time)| time).sum()
    }

    /// The window made so long that it shows all of these phases; none if they do not all follow.
    pub fn showing(&self, window: &Window, phases: &BTreeSet<usize>) -> Option<Window> {
        let first = window.pieces().start;
        let mut missing = phases.clone();
        let shows = |at: &usize| {
            missing.remove(&self.phase[*at]);
            missing.is_empty()
        };
        let at = (first..self.pieces() - 1).find(shows)?;
        Some(Window { measured: window.measured.max(at + 1 - first), ..*window })
    }

    /// A window that serves in the place of one whose cut was refused: from the cut after it, or before it.
    pub fn neighbour(&self, window: &Window) -> Option<Window> {
        let earlier = || window.after.checked_sub(1);
        if window.one_off {
            return Some(Window { after: earlier()?, warm: window.warm + 1, ..*window });
        }
        // The same phases, where they follow.
        let phases = self.phases(window.pieces()).collect();
        let cuts = [Some(window.after + 1), earlier()].into_iter().flatten();
        let windows: Vec<Window> = cuts.filter_map(|after| self.window(after)).collect();
        let showing = windows.iter().filter_map(|other| self.showing(other, &phases));
        let run_s = |window: &Window| self.time(window.run());
        showing.min_by(|a, b| run_s(a).total_cmp(&run_s(b))).or_else(|| windows.first().copied())
    }
}
