//! Sinks: ranks that others only send to, such as one that writes the output, or the later ones of a pipeline.
//!
//! [Closure](crate::closure) takes the fewest events that a cut allows, which of a sink are none, so that all that was
//! ever sent to it would be in flight. A third pass, made only where there are sinks, moves them on: at each cut by
//! what asks nothing of another rank (receives of what has been sent, sends, collectives to which all members have
//! come) for as long as messages are in flight to them, or to one that waits for them, and from there back to where a
//! cut may lie. It may lie within a set of receives: all that they take was sent before the cut, in whatever order they
//! take it.
use crate::closure::{Cut, Stand};
use crate::error::AnalyzeError;
use crate::matching::{Channels, Collectives, Message};
use crate::model;
use crate::source::{Feed, Item};
use crate::survey::Survey;
use phasecast_trace::epochs::epoch_change;
use phasecast_trace::{EventKind, Trace};

/// How often a rank comes further from one cut to the next.
pub fn advances(cuts: &[Cut], rank: usize) -> usize {
    model::advances(cuts.iter().map(|cut| cut.stands[rank].events))
}

/// The ranks that come further less than a tenth as often as another. Workers of a master come further in turn.
pub fn find(cuts: &[Cut]) -> Vec<usize> {
    let ranks = cuts.first().map_or(0, |cut| cut.stands.len());
    let advances: Vec<usize> = (0..ranks).map(|rank| advances(cuts, rank)).collect();
    let most = advances.iter().max().copied().unwrap_or(0);
    (0..ranks).filter(|&rank| 10 * advances[rank] < most).collect()
}

/// Events of a sink, the last exit among them, and its messages sent less received.
#[derive(Clone, Copy)]
struct Place {
    events: u64,
    exit: u64,
    ahead: i64,
}

/// What is known of a sink.
#[derive(Clone, Copy)]
struct Sink {
    /// Where it has come.
    at: Place,
    epochs: i64,
    /// What was sent to it and not received.
    inbound: i64,
    /// What a probe has found that was not sent yet.
    found: Option<Message>,
    /// The last place where a cut may lie.
    place: Place,
    /// Whether it has sent or taken part in a collective after that place.
    told: bool,
    /// Where it was left at the last cut.
    left: Place,
    /// Its events up to the last that is no receive.
    active: u64,
}

struct Follower<'f, 'a, F> {
    feed: &'f mut Feed<'a>,
    channels: Channels,
    collectives: Collectives,
    /// For each rank, what is known of it if it is a sink.
    sinks: Vec<Option<Sink>>,
    allowed: F,
}

impl<F: Fn(usize, u64, u64) -> bool> Follower<'_, '_, F> {
    /// Takes the next event of a rank.
    fn take(&mut self, rank: usize, item: &Item) {
        let own = rank as u32;
        self.feed.advance(rank);
        let ahead = match item.kind {
            EventKind::Send => {
                self.channels.send(own, item);
                if let Some(Some(sink)) = usize::try_from(item.peer).ok().and_then(|to| self.sinks.get_mut(to)) {
                    sink.inbound += 1;
                }
                1
            }
            EventKind::Recv => {
                self.channels.receive(own, item);
                -1
            }
            EventKind::Collective => {
                self.collectives.arrive(item.comm, own);
                0
            }
        };
        let Some(sink) = &mut self.sinks[rank] else { return };
        let Place { events, exit, ahead: before } = sink.at;
        sink.at = Place { events: events + 1, exit: exit.max(item.exit), ahead: before + ahead };
        sink.inbound -= i64::from(item.kind == EventKind::Recv);
        sink.epochs += epoch_change(item.tag);
        if item.kind != EventKind::Recv {
            (sink.told, sink.active) = (true, sink.at.events);
        }
        if item.last && sink.epochs <= 0 && (self.allowed)(rank, sink.at.events, sink.active) {
            (sink.place, sink.told) = (sink.at, false);
        }
    }

    /// Moves a rank that has come as far as `from` to its stand.
    fn go(&mut self, rank: usize, from: u64, to: u64) -> Result<(), AnalyzeError> {
        for _ in from..to {
            let Some(item) = self.feed.peek(rank)? else { break };
            while let Some(probe) = self.feed.probe(rank) {
                self.channels.find(rank as u32, &probe);
            }
            self.take(rank, &item);
        }
        Ok(())
    }

    /// The next event of a sink, if what probes before it find has been sent.
    fn next(&mut self, rank: usize) -> Result<Option<Item>, AnalyzeError> {
        let Some(Some(sink)) = self.sinks.get_mut(rank) else { return Ok(None) };
        let Some(item) = self.feed.peek(rank)? else { return Ok(None) };
        while sink.found.is_none_or(|message| self.channels.satisfied(message)) {
            let Some(probe) = self.feed.probe(rank) else {
                sink.found = None;
                return Ok(Some(item));
            };
            sink.found = self.channels.find(rank as u32, &probe);
        }
        Ok(None)
    }

    /// Whether `rank` is a sink that stands before a collective of `comm`.
    fn stands_before(&mut self, rank: u32, comm: u32) -> Result<bool, AnalyzeError> {
        let next = self.next(rank as usize)?;
        Ok(next.is_some_and(|item| item.kind == EventKind::Collective && item.comm == comm))
    }

    /// Whether all others have come to the next collective of `rank`.
    fn all_there(&mut self, rank: u32, comm: u32) -> Result<bool, AnalyzeError> {
        let Some(missing) = self.collectives.missing(comm, rank) else { return Ok(false) };
        for member in missing {
            if !self.stands_before(member, comm)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The sink that has not sent what `rank` receives next, if that is so.
    fn awaits(&mut self, rank: usize) -> Result<Option<usize>, AnalyzeError> {
        let next = self.feed.peek(rank)?.filter(|next| next.kind == EventKind::Recv);
        let Some(next) = next.filter(|next| !self.channels.sent(rank as u32, next)) else { return Ok(None) };
        let sender = usize::try_from(next.peer).ok();
        Ok(sender.filter(|&sender| self.sinks.get(sender).is_some_and(Option::is_some)))
    }

    /// Moves on a sink for which another waits that has messages in flight to it; false if there is none.
    fn lead(&mut self) -> Result<bool, AnalyzeError> {
        let ranks = self.sinks.len();
        for rank in 0..ranks {
            if self.sinks[rank].is_none_or(|sink| sink.inbound == 0) {
                continue;
            }
            let mut last = rank;
            for _ in 0..ranks {
                let Some(sender) = self.awaits(last)? else { break };
                last = sender;
            }
            if last != rank && self.step(last, true)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves a sink on by an event, if that asks nothing of others, and something is in flight to it or it is `asked`.
    fn step(&mut self, rank: usize, asked: bool) -> Result<bool, AnalyzeError> {
        let own = rank as u32;
        let Some(item) = self.next(rank)? else { return Ok(false) };
        let inbound = self.sinks[rank].is_some_and(|sink| sink.inbound > 0);
        let due = || item.kind == EventKind::Collective && !self.collectives.satisfied(item.comm, own);
        if !(asked || inbound || due()) {
            return Ok(false);
        }
        let free = match item.kind {
            EventKind::Send => true,
            EventKind::Recv => self.channels.sent(own, &item),
            EventKind::Collective => self.all_there(own, item.comm)?,
        };
        if free {
            self.take(rank, &item);
        }
        Ok(free)
    }

    /// Moves all sinks as far as they go, and returns whether their places make a consistent cut: what one of them has
    /// told after its place another may have heard.
    fn settle(&mut self) -> Result<bool, AnalyzeError> {
        loop {
            let mut moved = false;
            for rank in 0..self.sinks.len() {
                while self.step(rank, false)? {
                    moved = true;
                }
            }
            if !moved && !self.lead()? {
                return Ok(!self.sinks.iter().flatten().any(|sink| sink.told));
            }
        }
    }
}

/// Moves the stands of `sinks` at `cuts` on; `allowed` says whether a cut may lie behind so many events of a rank, of
/// which those after so many others are receives. Of the stands' symbols nothing is known afterwards.
///
/// # Errors
/// If a file is damaged.
pub fn follow(
    trace: &Trace,
    survey: &Survey,
    feed: &mut Feed<'_>,
    cuts: &mut [Cut],
    sinks: &[usize],
    allowed: impl Fn(usize, u64, u64) -> bool,
) -> Result<(), AnalyzeError> {
    let of = |(rank, span): (usize, &(u64, u64))| {
        let at = Place { events: 0, exit: span.0, ahead: 0 };
        let sink = Sink { at, epochs: 0, inbound: 0, found: None, place: at, told: false, left: at, active: 0 };
        sinks.contains(&rank).then_some(sink)
    };
    let mut follower = Follower {
        feed,
        channels: Channels::new(survey),
        collectives: Collectives::new(trace, survey),
        sinks: survey.spans.iter().enumerate().map(of).collect(),
        allowed,
    };
    let mut before = vec![0; survey.spans.len()];
    for cut in cuts {
        for (rank, stand) in cut.stands.iter().enumerate() {
            let from = follower.sinks[rank].map_or(before[rank], |sink| sink.at.events);
            follower.go(rank, from, stand.events)?;
            before[rank] = stand.events;
        }
        let consistent = follower.settle()?;
        cut.in_flight = follower.channels.in_flight;
        for (stand, sink) in cut.stands.iter_mut().zip(&mut follower.sinks) {
            let Some(sink) = sink else { continue };
            // The join of two consistent cuts is one: of this one, and of the last with the sinks moved on.
            if consistent {
                sink.left = sink.place;
            }
            if sink.left.events < stand.events {
                sink.left = Place { events: stand.events, exit: stand.exit, ..sink.left };
            }
            *stand = Stand { events: sink.left.events, exit: sink.left.exit, ..*stand };
            cut.in_flight -= sink.at.ahead - sink.left.ahead;
        }
        let exits = || cut.stands.iter().map(|stand| stand.exit);
        cut.skew = exits().max().unwrap_or(0) - exits().min().unwrap_or(0);
        follower.channels.sweep();
    }
    Ok(())
}
