//! Follows one rank's stream along the pieces of the base run and takes the time of each as it passes.
//!
//! A piece runs from the exit of the event before it to the exit of its last event. Event counts
//! carry over from the base run because the stream of completed communications is the same from run to run; the
//! hash of each piece's symbols is compared to see that it is.
use phasecast_analyzer::symbol::{SegmentHasher, Symbols};
use phasecast_analyzer::{Analysis, Order, Piece};
use phasecast_trace::{Event, Nanos, Rank};

/// Where the stream first left that of the base run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The rank.
    pub rank: Rank,
    /// Its events before the piece that differs.
    pub event: u64,
    /// The phase that was expected.
    pub phase: u32,
}

/// One rank's progress through the pieces.
pub struct Tracker<'a> {
    analysis: &'a Analysis,
    rank: Rank,
    /// Times of the pieces so far.
    pub times: Vec<Option<Nanos>>,
    next: usize,
    events: u64,
    piece_start: u64,
    boundary: Nanos,
    started: Nanos,
    hasher: SegmentHasher,
    /// Pieces whose symbols differ from the base's.
    pub strange: usize,
    /// The first of them.
    pub divergence: Option<Divergence>,
    base_total: f64,
    base_done: f64,
}

impl<'a> Tracker<'a> {
    /// A tracker of a rank whose process started at `started`; `procedures` are the names of its own numbers.
    pub fn new(analysis: &'a Analysis, rank: Rank, started: Nanos, procedures: &[String]) -> Tracker<'a> {
        let pieces = &analysis.pieces[rank.index()];
        let mut tracker = Tracker {
            analysis,
            rank,
            times: vec![None; pieces.len()],
            next: 0,
            events: 0,
            piece_start: 0,
            boundary: started,
            started,
            hasher: SegmentHasher::new(&Symbols::new(&analysis.volume_classes, procedures, analysis.order)),
            strange: 0,
            divergence: None,
            base_total: pieces.iter().map(Piece::profile).sum(),
            base_done: 0.0,
        };
        // What ends before this rank's first event.
        tracker.close_up_to(started);
        tracker
    }

    /// When the process started.
    pub fn started(&self) -> Nanos {
        self.started
    }

    /// Pieces measured so far.
    pub fn measured(&self) -> usize {
        self.next
    }

    /// Share of the base runs' mean time that lies behind, 0 to 1.
    pub fn progress(&self) -> f64 {
        if self.base_total > 0.0 { (self.base_done / self.base_total).min(1.0) } else { 1.0 }
    }

    /// Time from the start of the process to the end of the last whole piece.
    pub fn measured_time(&self) -> Nanos {
        self.boundary.since(self.started)
    }

    /// Takes in an event. Where positions are counts of collectives only, it follows nothing: which communicators have all
    /// ranks is known once the program has ended.
    pub fn event(&mut self, event: &Event) {
        if self.analysis.order == Order::Collectives {
            return;
        }
        self.events += 1;
        self.hasher.push(event);
        self.close_up_to(event.exit);
    }

    /// Closes pieces that end with the events so far. The last ends with the process, not with an event.
    fn close_up_to(&mut self, at: Nanos) {
        let pieces = &self.analysis.pieces[self.rank.index()];
        while self.next + 1 < pieces.len() && pieces[self.next].end == self.events {
            self.close(at);
        }
    }

    /// The process has ended; it may be told several times.
    pub fn end(&mut self, at: Nanos) {
        let pieces = &self.analysis.pieces[self.rank.index()];
        let Some(piece) = pieces.get(self.next) else { return };
        if self.next + 1 == pieces.len() && piece.end == self.events {
            self.close(at);
        } else if self.analysis.order != Order::Collectives && self.analysis.verdict.difference.is_none() {
            self.strange = self.strange.max(1);
            let first = Divergence { rank: self.rank, event: self.piece_start, phase: piece.phase.0 };
            self.divergence.get_or_insert(first);
        }
    }

    fn close(&mut self, at: Nanos) {
        let piece = self.analysis.pieces[self.rank.index()][self.next];
        let expected = self.analysis.phases.get(piece.phase.index()).and_then(|p| p.hashes.get(self.rank.index()));
        let seen = self.hasher.finish();
        if expected.is_some_and(|&hash| hash != 0 && hash != seen) {
            self.strange += 1;
            let first = Divergence { rank: self.rank, event: self.piece_start, phase: piece.phase.0 };
            self.divergence.get_or_insert(first);
        }
        self.times[self.next] = Some(at.since(self.boundary));
        self.base_done += piece.profile();
        self.boundary = self.boundary.max(at);
        self.piece_start = self.events;
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::restart::plan::tests::two_kinds;
    use phasecast_trace::model::{PEER_NONE, TAG_NONE};
    use phasecast_trace::{CommId, EventKind, ProcId};

    fn event(at: u64) -> Event {
        Event {
            kind: EventKind::Collective,
            peer: PEER_NONE,
            tag: TAG_NONE,
            bytes: 0,
            comm: CommId(0),
            proc: ProcId(0),
            wildcard: false,
            thread: 0,
            site: 0,
            enter: Nanos(at),
            exit: Nanos(at),
        }
    }

    fn tracker(analysis: &Analysis) -> Tracker<'_> {
        Tracker::new(analysis, Rank(0), Nanos(0), &["MPI_Barrier".into()])
    }

    /// One base run that was slow to start must not count the start for more of the run than the estimate does.
    #[test]
    fn progress_is_a_share_of_the_mean_of_the_base_runs() {
        let mut analysis = two_kinds(2);
        analysis.pieces[0][0].time.0 *= 10;
        let mut tracker = tracker(&analysis);
        tracker.event(&event(1));
        let all = &analysis.pieces[0];
        let share = all[0].profile() / all.iter().map(Piece::profile).sum::<f64>();
        assert!((tracker.progress() - share).abs() < 1e-9, "{} for {share}", tracker.progress());
    }

    /// The pieces of these analyses have an event each.
    #[test]
    fn a_run_of_another_length_is_another() {
        let analysis = two_kinds(2);
        let whole = analysis.events[0];
        let left = |events: u64| {
            let mut tracker = tracker(&analysis);
            (1..=events).for_each(|at| tracker.event(&event(at)));
            (0..2).for_each(|_| tracker.end(Nanos(events + 1)));
            (tracker.strange, tracker.divergence.map(|left| left.event))
        };
        assert_eq!(left(whole), (0, None));
        assert_eq!(left(5), (1, Some(5)));
        assert_eq!(left(whole + 1), (1, Some(whole - 1)));
    }
}
