//! What a completion is about: the receives that it names, and guesses about all that leaves no mark when it is done. A
//! guess was wrong if a later completion finds nothing to wait for; where that is the rule, none is made.
use super::{Walk, message};
use crate::steps::acts::{Act, Sink, Site, Sites};
use crate::steps::roles::{Completes, Role};
use phasecast_trace::model::PEER_ANY;
use phasecast_trace::{Call, Flags, Part, PartKind};
use std::collections::{HashMap, VecDeque};

/// Guesses that may still turn out wrong.
const OPEN: usize = 16;

/// Guesses that were made at a place, and those of them that seem wrong.
#[derive(Clone, Copy, Debug, Default)]
struct Guessed {
    times: u64,
    doubted: u64,
}

/// The guesses of a walk.
#[derive(Debug, Default)]
pub(super) struct Guesses {
    /// Places of the last ones.
    last: VecDeque<Site>,
    all: HashMap<Site, Guessed>,
}

impl Guesses {
    fn add(&mut self, site: Site) {
        self.all.entry(site).or_default().times += 1;
        if self.last.len() == OPEN {
            self.last.pop_front();
        }
        self.last.push_back(site);
    }

    /// A completion found nothing to wait for: the last guess may have been wrong. Or the program waits for nothing there
    /// (`MPI_REQUEST_NULL`, no requests), which happens at times and says little of the guess.
    fn doubt(&mut self) {
        if let Some(of) = self.last.pop_back().and_then(|site| self.all.get_mut(&site)) {
            of.doubted += 1;
        }
    }

    /// Places whose guesses are as good as always doubted.
    fn wrong(&self) -> impl Iterator<Item = Site> + '_ {
        self.all.iter().filter(|(_, of)| 4 * of.doubted >= 3 * of.times).map(|(site, _)| *site)
    }
}

impl<S: Sink> Walk<'_, S> {
    pub(super) fn found_out(&self) -> Sites {
        Sites { wary: self.guesses.wrong().collect(), about_all: self.requests.about_all().collect() }
    }

    pub(super) fn complete(&mut self, call: &Call, parts: &[Part], role: &Role, took: u64) {
        let mut slots = Vec::new();
        let mut received = false;
        for part in parts.iter().filter(|part| part.kind == PartKind::Recv) {
            let posted = self.requests.received(part);
            let got = message(part);
            match (posted, got) {
                (Some(posted), Some(got)) => {
                    let any = posted.peer == PEER_ANY && part.flags.has(Flags::WILDCARD);
                    self.met.wildcards += u64::from(any);
                    self.sink.settle(posted.token, Act::Receive(got, any, Some(posted.slot)));
                    slots.push(posted.slot);
                    slots.extend(posted.send);
                }
                (Some(posted), None) => {
                    self.met.lost += 1;
                    self.sink.drop(posted.token);
                    self.requests.release(posted.slot);
                    slots.extend(posted.send);
                }
                (None, Some(got)) => self.emit(Act::Receive(got, false, None), 0),
                (None, None) => {}
            }
            received = true;
        }
        let site = (call.proc.0, call.site);
        let wary = received && self.sites.wary.contains(&site);
        let before = slots.len();
        let found = match role.completes {
            Completes::All => {
                let sends = !wary && self.requests.complete_sends(&mut slots);
                self.others(site, received || sends, &mut slots) || sends
            }
            // The last receive is through: that it would come back for its sends alone is less likely.
            Completes::Some if !wary && !self.requests.any_posted() && self.requests.complete_sends(&mut slots) => true,
            Completes::One | Completes::First | Completes::Some => received || self.requests.complete_one(&mut slots),
        };
        if received && slots.len() > before {
            self.guesses.add(site);
        } else if !received && !found {
            self.guesses.doubt();
        }
        let as_it_comes = matches!(role.completes, Completes::First | Completes::Some)
            || role.polls && role.completes == Completes::One;
        self.waited(slots, as_it_comes, took);
    }

    /// What is no send, at a completion of several: done, if there is nothing else, or if it is known to be.
    fn others(&mut self, site: Site, about_more: bool, slots: &mut Vec<u16>) -> bool {
        if !about_more || self.sites.about_all.contains(&site) {
            return self.requests.complete_others(slots);
        }
        self.requests.pass(site);
        false
    }

    /// A run of tests has ended with no receive: the last was perhaps about what was begun before.
    pub(super) fn polled(&mut self, polled: Option<(u16, u64, Completes, bool)>) {
        let Some((procedure, site, completes, probe)) = polled else { return };
        let site = (procedure, site);
        if probe || self.sites.wary.contains(&site) || !self.requests.any_begun() {
            return;
        }
        let mut slots = Vec::new();
        if completes == Completes::All {
            let sends = self.requests.complete_sends(&mut slots);
            self.others(site, sends, &mut slots);
        } else {
            self.requests.complete_one(&mut slots);
        }
        self.guesses.add(site);
        self.waited(slots, false, 0);
    }

    /// A call has waited for these slots, in whatever order they were done; `as_it_comes` if it took what was done first.
    pub(super) fn waited(&mut self, mut slots: Vec<u16>, as_it_comes: bool, took: u64) {
        slots.extend(self.requests.overdue());
        if slots.is_empty() {
            self.wait += took;
            return;
        }
        slots.sort_unstable();
        slots.iter().for_each(|slot| self.requests.release(*slot));
        if as_it_comes {
            let mut took = took;
            slots.into_iter().for_each(|slot| self.in_row(Act::Wait(vec![slot]), std::mem::take(&mut took)));
        } else {
            self.emit(Act::Wait(slots), took);
        }
    }
}
