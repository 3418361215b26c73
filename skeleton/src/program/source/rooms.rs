//! The buffers of each rank: as many and as long as what it does needs, and no more.
use super::Writer;
use crate::logical::Operation;
use crate::program::collective::Kind;
use crate::program::plan::{Side, StepId};
use std::collections::BTreeMap;

/// Messages from this length on have several landings, ...
const LONG_MESSAGE: u64 = 16 << 10;
/// ... in so much memory of a rank: more than its share of the last cache.
const LANDINGS: u64 = 32 << 20;

/// Room at a place, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Room {
    /// For what goes out from there.
    pub(super) sent: u64,
    /// For what comes in.
    pub(super) received: u64,
    /// For the longest of the messages that come in by a receive of two ranks.
    message: u64,
}

impl Room {
    fn fits(&self, other: &Room) -> bool {
        self.sent >= other.sent && self.received >= other.received && self.message >= other.message
    }

    fn is_long(&self) -> bool {
        self.message >= LONG_MESSAGE
    }
}

/// The rooms of a rank by their places.
pub(super) type Rooms = BTreeMap<usize, Room>;

/// Room at a place, at least so much.
fn widen(rooms: &mut Rooms, at: usize, more: Room) {
    let room = rooms.entry(at).or_default();
    *room = Room {
        sent: room.sent.max(more.sent),
        received: room.received.max(more.received),
        message: room.message.max(more.message),
    };
}

/// For each place where messages land one after the other: how many landings there are, and how far apart.
pub(super) fn landings(rooms: &Rooms) -> BTreeMap<usize, (u64, u64)> {
    let long = rooms.values().filter(|room| room.is_long()).count() as u64;
    let of = |(at, room): (&usize, &Room)| {
        let apart = room.message.next_multiple_of(64);
        (*at, ((LANDINGS / long / apart).max(1), apart))
    };
    rooms.iter().filter(|(_, room)| room.is_long()).map(of).collect()
}

/// The buffers that ranks have: some have the same.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    /// Each kind's rooms.
    pub(super) all: Vec<Rooms>,
    /// The kind of each rank.
    pub(super) of: Vec<usize>,
}

impl Writer<'_> {
    /// As many slots as the source has: one where the program needs none.
    pub(super) fn slots(&self) -> usize {
        self.plan.slots.max(1) as usize
    }

    /// The place of a call's buffers: its slot, or that of calls that block. Sends that nobody waits for have the next.
    pub(super) fn place(&self, slot: Option<u16>) -> usize {
        slot.map_or(self.slots(), usize::from)
    }

    /// Room for a message that is sent and one that is received.
    pub(super) fn make_room(&mut self, class: usize, at: usize, sent: u64, received: u64) {
        widen(&mut self.rooms[class], at, Room { sent, received, message: received });
    }

    /// What a call without a partner moves goes to oneself, by a call that blocks.
    pub(super) fn room_of_oneself(&mut self, id: StepId, side: Side, bytes: u64) {
        let at = self.slots();
        for rank in &self.plan.steps[id].local[side as usize] {
            widen(self.own_rooms.entry(*rank).or_default(), at, Room { sent: bytes, received: bytes, message: 0 });
        }
    }

    /// The data of all lie with the root alone.
    pub(super) fn room_of_collective(&mut self, id: StepId, kind: Kind, bytes: u64) {
        let (plan, of) = (self.plan, &self.plan.steps[id]);
        let Operation::Collective { group, root, slot, .. } = &of.step.call else { return };
        let (at, members) = (self.place(*slot), plan.members(*group));
        let of_data = |[sent, received]: [u64; 2]| Room { sent, received, message: 0 };
        widen(&mut self.rooms[of.class], at, of_data(kind.data(bytes, members, !kind.rooted())));
        for rank in &of.local[0] {
            widen(self.own_rooms.entry(*rank).or_default(), at, of_data(kind.data(bytes, 1, true)));
        }
        if !kind.rooted() {
            return;
        }
        let mut comms: Vec<u32> = plan.comm_of[usize::from(*group)].iter().flatten().copied().collect();
        comms.sort_unstable();
        comms.dedup();
        for comm in comms {
            let all = &plan.comms[comm as usize];
            let root = all.get(root.unwrap_or(0) as usize).or(all.first());
            if let Some(rank) = root.filter(|rank| plan.class_of[**rank as usize] == of.class) {
                widen(self.own_rooms.entry(*rank).or_default(), at, of_data(kind.data(bytes, all.len() as u64, true)));
            }
        }
    }

    /// Ranks by the buffers that they have.
    pub(super) fn kinds(&self) -> Kinds {
        let mut numbers: BTreeMap<(usize, Option<&Rooms>), usize> = BTreeMap::new();
        let mut kinds = Kinds::default();
        for rank in 0..self.plan.ranks {
            let class = self.plan.class_of[rank as usize];
            let fits = |(at, own): (&usize, &Room)| self.rooms[class].get(at).is_some_and(|room| room.fits(own));
            let own = self.own_rooms.get(&rank).filter(|own| !own.iter().all(fits));
            let number = *numbers.entry((class, own)).or_insert_with(|| {
                let mut rooms = self.rooms[class].clone();
                own.into_iter().flatten().for_each(|(at, data)| widen(&mut rooms, *at, *data));
                kinds.all.push(rooms);
                kinds.all.len() - 1
            });
            kinds.of.push(number);
        }
        kinds
    }
}
