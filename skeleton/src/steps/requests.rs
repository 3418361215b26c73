//! Requests in slots. A trace names no requests: which one a call completes follows from what it received, and for what
//! leaves no mark when it is done, from the order in which it began. Sends stand in one row; nonblocking collectives, and
//! what the skeleton leaves out but a call may wait for (I/O, one-sided calls, new communicators), in another.
use super::acts::Site;
use phasecast_trace::Part;
use phasecast_trace::model::{PEER_ANY, PEER_NONE, TAG_ANY, TAG_NONE};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};

/// A receive that was posted.
#[derive(Clone, Copy, Debug)]
pub struct Posted<T> {
    /// What its step is known by.
    pub token: T,
    /// Its slot.
    pub slot: u16,
    /// The source that was asked for; all, if it is [`PEER_ANY`], or [`PEER_NONE`] as nothing tells.
    pub peer: i32,
    /// The tag that was asked for; all, if it is [`TAG_ANY`], or [`TAG_NONE`] as nothing tells.
    pub tag: i32,
    /// The communicator; none if nothing tells.
    pub comm: Option<u32>,
    /// The slot of the send that is complete with it.
    pub send: Option<u16>,
}

/// A send; to or from `MPI_PROC_NULL` it has no slot, as it is done when it begins, but a call may wait for it.
#[derive(Clone, Copy, Debug)]
struct Send {
    slot: Option<u16>,
    to: u32,
}

/// Something else that was begun; without a slot if the skeleton leaves it out.
#[derive(Clone, Copy, Debug)]
struct Other {
    slot: Option<u16>,
    /// The first completion of several that did not count it among them.
    passed: Option<Site>,
}

/// What became of those that a completion of several did not count among them.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    /// A later call waited for them.
    waited: u64,
    /// No call ever did.
    left: u64,
}

/// Sends to one rank that may be under way, and other requests, before the oldest is taken for one that nobody waits for.
const MOST: usize = 256;

/// The requests of a rank that are under way.
#[derive(Debug)]
pub struct Requests<T> {
    receives: VecDeque<Posted<T>>,
    sends: VecDeque<Send>,
    /// Sends under way to each rank; to [`NOBODY`], those that were done at once.
    to: FxHashMap<u32, usize>,
    others: VecDeque<Other>,
    passed: FxHashMap<Site, Passed>,
    /// Slots that the next completion waits for too.
    overdue: Vec<u16>,
    free: BTreeSet<u16>,
    slots: u32,
}

/// No rank.
const NOBODY: u32 = u32::MAX;

impl<T> Default for Requests<T> {
    fn default() -> Requests<T> {
        Requests {
            receives: VecDeque::new(),
            sends: VecDeque::new(),
            to: FxHashMap::default(),
            others: VecDeque::new(),
            passed: FxHashMap::default(),
            overdue: Vec::new(),
            free: BTreeSet::new(),
            slots: 0,
        }
    }
}

impl<T: Copy> Requests<T> {
    /// The lowest free slot; none if there are no more.
    pub fn slot(&mut self) -> Option<u16> {
        self.free.pop_first().or_else(|| {
            let next = u16::try_from(self.slots).ok()?;
            self.slots += 1;
            Some(next)
        })
    }

    /// A slot is free again.
    pub fn release(&mut self, slot: u16) {
        self.free.insert(slot);
    }

    /// A receive is posted.
    pub fn post(&mut self, posted: Posted<T>) {
        self.receives.push_back(posted);
    }

    /// Whether receives are posted.
    pub fn any_posted(&self) -> bool {
        !self.receives.is_empty()
    }

    /// A send to a rank begins.
    pub fn begin_send(&mut self, slot: u16, to: u32) {
        self.begin(Some(slot), to);
    }

    /// A send or receive begins that is done at once.
    pub fn begin_null(&mut self) {
        self.begin(None, NOBODY);
    }

    fn begin(&mut self, slot: Option<u16>, to: u32) {
        self.sends.push_back(Send { slot, to });
        let count = self.to.entry(to).or_default();
        *count += 1;
        if *count > MOST
            && let Some(at) = self.sends.iter().position(|send| send.to == to)
        {
            let slot = self.remove_send(at);
            self.overdue.extend(slot);
        }
    }

    /// Takes a send out; its slot.
    fn remove_send(&mut self, at: usize) -> Option<u16> {
        let send = self.sends.remove(at)?;
        if let Some(count) = self.to.get_mut(&send.to) {
            *count -= 1;
        }
        send.slot
    }

    /// Something else begins, in a slot if the skeleton has it.
    pub fn begin_other(&mut self, slot: Option<u16>) {
        self.others.push_back(Other { slot, passed: None });
        if self.others.len() > MOST
            && let Some(oldest) = self.others.pop_front()
        {
            self.left_behind(oldest);
            self.overdue.extend(oldest.slot);
        }
    }

    fn left_behind(&mut self, other: Other) {
        if let Some(site) = other.passed {
            self.passed.entry(site).or_default().left += 1;
        }
    }

    /// The receive that a completed part was: the one posted first that could have been. One of which nothing is known
    /// gives way to one that names the source.
    pub fn received(&mut self, part: &Part) -> Option<Posted<T>> {
        let fits = |posted: &Posted<T>| {
            (posted.peer == part.peer || [posted.peer, part.peer].contains(&PEER_ANY) || posted.peer == PEER_NONE)
                && (posted.tag == part.tag || [posted.tag, part.tag].contains(&TAG_ANY) || posted.tag == TAG_NONE)
                && posted.comm.is_none_or(|comm| comm == part.comm.0)
        };
        let mut at = self.receives.iter().position(fits)?;
        if self.receives[at].comm.is_none() {
            let named = |posted: &Posted<T>| posted.peer == part.peer && fits(posted);
            at = self.receives.iter().position(named).unwrap_or(at);
        }
        let posted = self.receives.remove(at)?;
        // Something else may have waited for its send before.
        let sent = posted.send.and_then(|slot| self.sends.iter().position(|send| send.slot == Some(slot)));
        Some(Posted { send: sent.and_then(|at| self.remove_send(at)), ..posted })
    }

    /// What was begun first is done, a send if there is one; returns false if there was nothing.
    pub fn complete_one(&mut self, into: &mut Vec<u16>) -> bool {
        if self.sends.is_empty() {
            return self.complete_other(into);
        }
        into.extend(self.remove_send(0));
        true
    }

    /// All sends are done; returns false if there was none.
    pub fn complete_sends(&mut self, into: &mut Vec<u16>) -> bool {
        let any = !self.sends.is_empty();
        into.extend(self.sends.drain(..).filter_map(|send| send.slot));
        self.to.clear();
        any
    }

    fn complete_other(&mut self, into: &mut Vec<u16>) -> bool {
        let Some(other) = self.others.pop_front() else { return false };
        into.extend(other.slot);
        if let Some(site) = other.passed {
            self.passed.entry(site).or_default().waited += 1;
        }
        true
    }

    /// All that is no send is done; returns false if there was nothing.
    pub fn complete_others(&mut self, into: &mut Vec<u16>) -> bool {
        let any = !self.others.is_empty();
        while self.complete_other(into) {}
        any
    }

    /// A completion of several from here was about nothing that is no send.
    pub fn pass(&mut self, site: Site) {
        self.others.iter_mut().rev().take_while(|other| other.passed.is_none()).for_each(|other| {
            other.passed = Some(site);
        });
    }

    /// The run ends: all is done.
    pub fn end(&mut self, into: &mut Vec<u16>) {
        self.complete_sends(into);
        while let Some(other) = self.others.pop_front() {
            self.left_behind(other);
            into.extend(other.slot);
        }
    }

    /// Places from which completions of several must have been about what is no send too: too often no call ever waited
    /// for it.
    pub fn about_all(&self) -> impl Iterator<Item = Site> + '_ {
        self.passed.iter().filter(|(_, of)| 3 * of.left > of.waited).map(|(site, _)| *site)
    }

    /// Whether sends or collectives are under way.
    pub fn any_begun(&self) -> bool {
        self.sends.iter().any(|send| send.slot.is_some()) || self.others.iter().any(|other| other.slot.is_some())
    }

    /// Slots of what nobody seems to wait for.
    pub fn overdue(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.overdue)
    }

    /// Receives that were never completed.
    pub fn left(&mut self) -> impl Iterator<Item = Posted<T>> + '_ {
        self.receives.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phasecast_trace::{CommId, Flags, PartKind};

    fn part(peer: i32, tag: i32, comm: u32) -> Part {
        Part { kind: PartKind::Recv, flags: Flags::default(), peer, tag, bytes: 8, comm: CommId(comm) }
    }

    fn posted(slot: u16, peer: i32, tag: i32, comm: Option<u32>) -> Posted<u16> {
        Posted { token: slot, slot, peer, tag, comm, send: None }
    }

    /// As archives of OTF2 and `MPI_Isendrecv` have them.
    #[test]
    fn a_receive_of_which_nothing_is_known_takes_what_no_other_names() {
        let mut requests = Requests::default();
        requests.post(posted(0, PEER_NONE, TAG_NONE, None));
        requests.post(posted(1, 3, 7, Some(0)));
        requests.post(posted(2, PEER_ANY, TAG_ANY, None));
        let mut slot = |part: Part| requests.received(&part).map(|posted| posted.slot);
        assert_eq!(slot(part(3, 7, 0)), Some(1));
        assert_eq!(slot(part(5, 9, 4)), Some(0));
        assert_eq!(slot(part(3, 7, 0)), Some(2));
        assert_eq!(slot(part(3, 7, 0)), None);
    }

    /// The order in which receives are posted decides where nothing is unknown, as MPI has it.
    #[test]
    fn a_wildcard_that_was_posted_first_takes_the_message() {
        let mut requests = Requests::default();
        requests.post(posted(0, PEER_ANY, TAG_ANY, Some(0)));
        requests.post(posted(1, 3, 7, Some(0)));
        assert_eq!(requests.received(&part(3, 7, 0)).map(|posted| posted.slot), Some(0));
    }

    #[test]
    fn the_oldest_send_to_a_rank_is_overdue_when_there_are_too_many() {
        let mut requests: Requests<u16> = Requests::default();
        requests.begin_send(9, 2);
        (100..100 + MOST as u16).for_each(|slot| requests.begin_send(slot, 1));
        assert!(requests.overdue().is_empty());
        requests.begin_send(99, 1);
        assert_eq!(requests.overdue(), [100]);
        let mut slots = Vec::new();
        assert!(requests.complete_one(&mut slots) && requests.complete_sends(&mut slots));
        assert_eq!((slots[0], slots[1], slots.len()), (9, 101, 1 + MOST));
        assert!(!requests.complete_one(&mut slots));
    }
}
