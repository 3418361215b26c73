//! Follows one rank's stream along the pieces of the base run and takes the time of each as it passes.
//!
//! A piece runs from the exit of the event before it to the exit of its last event. Event counts
//! carry over from the base run because the stream of completed communications is the same from run to run; the
//! hash of each piece's symbols is compared to see that it is.
use phasecast_analyzer::symbol::{SegmentHasher, Symbols};
use phasecast_analyzer::{Analysis, Order};
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
    base_total: u64,
    base_done: u64,
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
            base_total: pieces.iter().map(|p| p.time.0).sum(),
            base_done: 0,
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

    /// Share of the base run's time that lies behind, 0 to 1.
    pub fn progress(&self) -> f64 {
        if self.base_total == 0 { 1.0 } else { self.base_done as f64 / self.base_total as f64 }
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

    /// The process has ended.
    pub fn end(&mut self, at: Nanos) {
        let pieces = &self.analysis.pieces[self.rank.index()];
        if self.next + 1 == pieces.len() && pieces[self.next].end == self.events {
            self.close(at);
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
        self.base_done += piece.time.0;
        self.boundary = self.boundary.max(at);
        self.piece_start = self.events;
        self.next += 1;
    }
}
