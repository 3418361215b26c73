//! What an analysis says: phases with their weights, the pieces into which they cut every rank's run, the plan of what
//! to measure, and the verdict. It is kept in a container of kind `phases` (manifest: all but the pieces, as JSON).
use phasecast_trace::{Nanos, PhaseId, Rank};
use serde::{Deserialize, Serialize};

/// How phases were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Seed 004 to the letter: similar parallel basic blocks make a phase.
    Pbb,
    /// Sequences of blocks between recurring communication patterns.
    Marker,
}

/// Whether the order of messages tells phases apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// It does; but receives with nothing between them may complete in any order.
    #[default]
    Kept,
    /// All messages between two collectives are a set: for programs that serve what comes first.
    Free,
    /// As [`Order::Kept`], but with whom messages are exchanged does not count: for programs that go by what comes first.
    Anyone,
    /// Messages do not count at all, nor do other collectives than those that synchronise all ranks, and positions are counts
    /// of these ([`crate::counted`]): for programs whose messages are others in every run.
    Collectives,
}

/// A recurring pattern of events of one rank; each occurrence ends a segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Marker {
    /// The rank on which it was found.
    pub pilot: Rank,
    /// Its symbols ([`crate::symbol`]).
    pub pattern: Vec<u64>,
    /// The same in words.
    pub words: String,
    /// n: every n-th occurrence ends a segment.
    pub every: u64,
    /// Mean time between the first and the last rank's last exit before a cut, in seconds: quiet cuts have little.
    pub skew_s: f64,
    /// Mean number of messages under way at a cut.
    pub in_flight: f64,
}

/// A repeating piece of the run, or a one-off (weight 1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its number; phases are numbered by their first occurrence.
    pub id: PhaseId,
    /// How often it occurs in the run.
    pub weight: u64,
    /// Whether weight x time is at least the relevance (1 %) of the run.
    pub relevant: bool,
    /// Whether it occurs once and does not repeat.
    pub one_off: bool,
    /// Mean time of an occurrence on the slowest rank, in seconds.
    pub time_s: f64,
    /// Standard deviation of an occurrence's time, in seconds.
    pub sd_s: f64,
    /// weight x time as a share of the run, 0 to 1.
    pub share: f64,
    /// Events of an occurrence, all ranks together.
    pub events: u64,
    /// Its structure in short, like `(send(E) recv(W))^160 allreduce`.
    pub structure: String,
    /// For each rank, the hash of an occurrence's symbols ([`crate::symbol`]); 0 where occurrences differ.
    pub hashes: Vec<u64>,
    /// The occurrences to measure, by their number from 0.
    pub planned: Vec<u64>,
}

/// A stretch of one rank's run: from the exit of the event before it to the exit of its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The phase of which it is part of an occurrence. The occurrences of a phase on a rank are counted in order.
    pub phase: PhaseId,
    /// How many events of the rank lie before its end.
    pub end: u64,
    /// How long it took in the base run.
    pub time: Nanos,
    /// How long it took in the second base run, if there was one.
    pub again: Option<Nanos>,
}

impl Piece {
    /// How long it took in the base runs, in seconds: their mean.
    pub fn profile(&self) -> f64 {
        crate::estimate::profile(self.time.seconds(), self.again.map(|again| again.seconds()))
    }
}

/// What can be said of the program as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether measuring phases pays.
    pub pays: bool,
    /// A sentence: why, or why not, with what to do instead.
    pub reason: String,
    /// The first event at which two base runs differ, in words.
    pub difference: Option<String>,
}

impl Verdict {
    /// Whether base runs differ so early that no cut can be carried from one to another.
    pub fn refuses(&self) -> bool {
        self.difference.is_some() && !self.pays
    }
}

/// The analysis of one base run (or two).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// How phases were found.
    pub method: Method,
    /// The traced program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The base machine's MPI.
    pub mpi: String,
    /// Ranks of the run.
    pub ranks: u32,
    /// Events of each rank.
    pub events: Vec<u64>,
    /// Length of the run (its longest rank) in seconds; of the first base run.
    pub run_time_s: f64,
    /// Lengths of all base runs in seconds.
    pub base_runs_s: Vec<f64>,
    /// The markers, with [`Method::Marker`]: the first is sought in the whole run, each further one in what those before
    /// leave whole.
    pub markers: Vec<Marker>,
    /// Upper bounds of the classes of volumes, ascending ([`crate::symbol`]).
    pub volume_classes: Vec<u64>,
    /// Whether the order of messages tells phases apart.
    #[serde(default)]
    pub order: Order,
    /// The phases, by id.
    pub phases: Vec<Phase>,
    /// weight x time of the planned occurrences of relevant phases and one-offs, scaled to the run, in seconds.
    pub explained_s: f64,
    /// Time of the planned occurrences: what must be measured, in seconds.
    pub planned_s: f64,
    /// Share of the run that relevant phases and measured one-offs cover.
    pub coverage: f64,
    /// The rest of the run, in seconds.
    pub residual_s: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// Messages sent but not received in the first base run.
    #[serde(default)]
    pub unmatched_sends: u64,
    /// Messages received but not sent (something was not recorded) in the first base run.
    #[serde(default)]
    pub unmatched_receives: u64,
    /// For each rank, the pieces that tile its run: their times add up to its span, to the ns.
    #[serde(skip)]
    pub pieces: Vec<Vec<Piece>>,
}

/// What a rank does in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Its events.
    pub events: u64,
    /// Its time, in ns.
    pub ns: u64,
    /// Pieces between cuts in which it has events.
    pub pieces: usize,
}

/// How often a rank comes further from one cut to the next, by its events before each.
pub fn advances(ends: impl Iterator<Item = u64>) -> usize {
    let mut before = None;
    ends.filter(|&end| before.replace(end).is_some_and(|before| before < end)).count()
}

/// The rank that takes longest, of those that have a hundredth of the most events, as one that takes no part in what repeats
/// says nothing of it. Nor does one that the others only send to: whatever has been sent, it need not have come further at a
/// cut. Where it has events in less than half as many pieces as another, which takes as long but for a twentieth, it is that
/// one.
pub fn longest(ranks: &[Share]) -> usize {
    let most = ranks.iter().map(|rank| rank.events).max().unwrap_or(0);
    let part = || (0..ranks.len()).filter(|&rank| ranks[rank].events.saturating_mul(100) >= most);
    // Of equals the first.
    let Some(slowest) = part().rev().max_by_key(|&rank| ranks[rank].ns) else { return 0 };
    let as_long = part().rev().filter(|&rank| ranks[rank].ns >= ranks[slowest].ns - ranks[slowest].ns / 20);
    let steady = as_long.max_by_key(|&rank| ranks[rank].pieces);
    steady.filter(|&rank| ranks[rank].pieces > 2 * ranks[slowest].pieces).unwrap_or(slowest)
}

impl Analysis {
    /// The share of the run in relevant phases that come again.
    pub fn repeating_share(&self) -> f64 {
        self.phases.iter().filter(|phase| phase.relevant && !phase.one_off).map(|phase| phase.share).sum()
    }

    /// How many pieces every rank's run is cut into; none where ranks differ in that: then the ends of pieces are no
    /// cuts of all ranks (with [`Method::Pbb`]).
    pub fn segments(&self) -> Option<usize> {
        let count = self.pieces.first()?.len();
        self.pieces.iter().all(|pieces| pieces.len() == count).then_some(count)
    }

    /// The cut after the piece of this number on every rank: for each rank its events before the cut. With
    /// [`Method::Marker`] it is consistent, and lies within no call of any rank ([`crate::closure`]). None behind the
    /// last piece, where the program has ended.
    pub fn cut(&self, after: usize) -> Option<Vec<u64>> {
        let segments = self.segments()?;
        let end = |pieces: &Vec<Piece>| pieces.get(after).map(|piece| piece.end);
        (after < segments.saturating_sub(1)).then(|| self.pieces.iter().map(end).collect())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_takes_no_part_is_not_the_slowest() {
        let of = |ranks: &[(u64, u64)]| {
            longest(&ranks.iter().map(|&(events, ns)| Share { events, ns, pieces: 1 }).collect::<Vec<_>>())
        };
        assert_eq!(of(&[(1000, 50), (1000, 70), (3, 90)]), 1);
        assert_eq!(of(&[(1000, 50), (1000, 50), (10, 90)]), 2, "a worker of many");
        assert_eq!((of(&[(0, 0), (0, 5)]), of(&[])), (1, 0));
    }

    #[test]
    fn a_rank_that_others_only_send_to_is_not_the_slowest() {
        let share = |events, ns, pieces| Share { events, ns, pieces };
        let workers = [share(243, 4217, 200), share(243, 4212, 200)];
        assert_eq!(longest(&[&[share(84, 4231, 2)], &workers[..]].concat()), 1);
        assert_eq!(longest(&[&[share(84, 4231, 150)], &workers[..]].concat()), 0, "it takes part");
        assert_eq!(longest(&[&[share(84, 4500, 2)], &workers[..]].concat()), 0, "what the run takes is its time");
    }
}
