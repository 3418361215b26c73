//! The second pass: cuts of all ranks by causal closure of the pilot's.
//!
//! The pilot's stream is followed from one cut to the next. At each, every other rank is moved on just as far as it
//! must be for the cut to be consistent: no message received before it, or found by a probe before the last event, and
//! sent after it, no collective passed by some members only, no call and no set of receives cut in two, no epoch of
//! one-sided communication with a group open. Demands are worked off from a stack until none is left (the fixpoint).
//! Each event is taken once, so the pass is linear and its memory that of the messages in flight.
use crate::error::AnalyzeError;
use crate::matching::{Channels, Collectives, Message};
use crate::parallel::Stage;
use crate::source::Feed;
use crate::survey::Survey;
use crate::symbol::{Point, SetBuilder, Symbols};
use phasecast_trace::epochs::epoch_change;
use phasecast_trace::{EventKind, Trace};

/// Where a rank stands at a cut.
#[derive(Clone, Copy, Debug)]
pub struct Stand {
    /// Events before the cut.
    pub events: u64,
    /// The exit of the last of them in ns (the start of the rank's run if there is none).
    pub exit: u64,
    /// Its stream of symbols so far.
    pub point: Point,
}

/// A consistent cut.
#[derive(Clone, Debug)]
pub struct Cut {
    /// Symbols of the pilot before it.
    pub at: u64,
    /// Every rank's stand.
    pub stands: Vec<Stand>,
    /// From the first rank's last exit to the last rank's, in ns.
    pub skew: u64,
    /// Messages sent before it and received after it.
    pub in_flight: i64,
}

/// What the pass found.
pub struct Closed {
    /// The cuts, in order; those that closure pushed beyond the pilot's position are left out.
    pub cuts: Vec<Cut>,
    /// The ranks' stands at the end of their streams.
    pub end: Vec<Stand>,
    /// Sends without receive, receives without send.
    pub unmatched: (u64, u64),
}

enum Need {
    Send(Message),
    Collective(u32, u32),
}

struct Closer<'f, 'a> {
    feed: &'f mut Feed<'a>,
    symbols: &'f Symbols,
    channels: Channels,
    collectives: Collectives,
    stands: Vec<Stand>,
    sets: Vec<SetBuilder>,
    last: Vec<bool>,
    /// Epochs of one-sided communication that are open on each rank.
    epochs: Vec<i64>,
    needs: Vec<Need>,
}

impl Closer<'_, '_> {
    /// Takes the next event of a rank; false at the end of its stream.
    fn take(&mut self, rank: usize) -> Result<bool, AnalyzeError> {
        let Some(item) = self.feed.peek(rank)? else { return Ok(false) };
        let own = rank as u32;
        // A probe after the last event before a cut is not reached: it counts with the event after it.
        while let Some(probe) = self.feed.probe(rank) {
            self.needs.extend(self.channels.find(own, &probe).map(Need::Send));
        }
        self.feed.advance(rank);
        let stand = &mut self.stands[rank];
        stand.events += 1;
        stand.exit = stand.exit.max(item.exit);
        self.last[rank] = item.last;
        self.epochs[rank] += epoch_change(item.tag);
        let symbol = self.symbols.item(&item);
        self.sets[rank].append(&mut stand.point, symbol, self.symbols.gathers(item.kind));
        match item.kind {
            EventKind::Recv => self.needs.extend(self.channels.receive(own, &item).map(Need::Send)),
            EventKind::Send => self.channels.send(own, &item),
            EventKind::Collective => {
                for &member in self.collectives.arrive(item.comm, own) {
                    if member != own {
                        self.needs.push(Need::Collective(item.comm, member));
                    }
                }
            }
        }
        Ok(true)
    }

    /// Moves a rank on to where a cut may lie: after a whole call and a whole set, with no epoch open.
    fn settle(&mut self, rank: usize) -> Result<(), AnalyzeError> {
        loop {
            let more = self.feed.peek(rank)?;
            let within_set = self.sets[rank].open() && more.is_some_and(|item| self.symbols.gathers(item.kind));
            if self.last[rank] && !within_set && self.epochs[rank] <= 0 {
                if let Some(set) = self.sets[rank].close() {
                    self.stands[rank].point.push(set);
                }
                return Ok(());
            }
            if !self.take(rank)? {
                return Ok(());
            }
        }
    }

    fn close(&mut self) -> Result<(), AnalyzeError> {
        while let Some(need) = self.needs.pop() {
            let rank = match need {
                Need::Send(message) => message.source(),
                Need::Collective(_, member) => member,
            } as usize;
            let mut moved = false;
            loop {
                let satisfied = match need {
                    Need::Send(message) => self.channels.satisfied(message),
                    Need::Collective(comm, member) => self.collectives.satisfied(comm, member),
                };
                if satisfied || !self.take(rank)? {
                    break;
                }
                moved = true;
            }
            if moved {
                self.settle(rank)?;
            }
        }
        self.channels.sweep();
        Ok(())
    }

    fn cut(&self, at: u64) -> Cut {
        let exits = || self.stands.iter().map(|s| s.exit);
        let skew = exits().max().unwrap_or(0) - exits().min().unwrap_or(0);
        Cut { at, stands: self.stands.clone(), skew, in_flight: self.channels.in_flight }
    }
}

/// Makes the second pass: a cut for each of `targets`, ascending numbers of symbols of the pilot.
///
/// # Errors
/// If a file is damaged.
pub fn close(
    trace: &Trace,
    survey: &Survey,
    feed: &mut Feed<'_>,
    symbols: &Symbols,
    pilot: usize,
    targets: &[u64],
    stage: &Stage<'_>,
) -> Result<Closed, AnalyzeError> {
    let stands = survey.spans.iter().map(|span| Stand { events: 0, exit: span.0, point: Point::default() }).collect();
    let ranks = survey.spans.len();
    let mut closer = Closer {
        feed,
        symbols,
        channels: Channels::new(survey),
        collectives: Collectives::new(trace, survey),
        stands,
        sets: vec![symbols.set(); ranks],
        last: vec![true; ranks],
        epochs: vec![0; ranks],
        needs: Vec::new(),
    };
    let mut cuts = Vec::with_capacity(targets.len());
    for target in targets.iter().copied().chain([u64::MAX]) {
        while closer.stands[pilot].point.symbols < target {
            let before = closer.stands[pilot].events;
            if !closer.take(pilot)? {
                break;
            }
            if closer.stands[pilot].point.symbols + u64::from(closer.sets[pilot].open()) >= target {
                closer.settle(pilot)?;
            }
            if closer.needs.len() > 1024 {
                closer.close()?;
            }
            if (before ^ closer.stands[pilot].events) >> 13 != 0 {
                stage.tell(closer.feed.taken());
            }
        }
        closer.close()?;
        if closer.stands[pilot].point.symbols == target {
            cuts.push(closer.cut(target));
        }
    }
    for rank in 0..ranks {
        while closer.take(rank)? {
            closer.needs.clear();
            if closer.stands[rank].events.is_multiple_of(1 << 16) {
                closer.channels.sweep();
                stage.tell(closer.feed.taken());
            }
        }
        closer.settle(rank)?;
    }
    Ok(Closed { cuts, end: closer.stands, unmatched: closer.channels.unmatched() })
}
