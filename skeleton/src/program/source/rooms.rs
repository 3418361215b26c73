//! The buffers of each rank: as many and as long as what it does needs, and no more.
use super::Writer;
use crate::logical::Operation;
use crate::program::collective::Kind;
use crate::program::plan::{Side, StepId};
use std::collections::BTreeMap;

/// Places of buffers, with bytes that go out from there and come in.
pub(super) type Rooms = BTreeMap<usize, [u64; 2]>;

/// Room at a place, at least so much.
fn widen(rooms: &mut Rooms, at: usize, data: [u64; 2]) {
    let room = rooms.entry(at).or_default();
    *room = [room[0].max(data[0]), room[1].max(data[1])];
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

    pub(super) fn make_room(&mut self, class: usize, at: usize, sent: u64, received: u64) {
        widen(&mut self.rooms[class], at, [sent, received]);
    }

    /// What a call without a partner moves goes to oneself, by a call that blocks.
    pub(super) fn room_of_oneself(&mut self, id: StepId, side: Side, bytes: u64) {
        let at = self.slots();
        for rank in &self.plan.steps[id].local[side as usize] {
            widen(self.own_rooms.entry(*rank).or_default(), at, [bytes, bytes]);
        }
    }

    /// The data of all lie with the root alone.
    pub(super) fn room_of_collective(&mut self, id: StepId, kind: Kind, bytes: u64) {
        let (plan, of) = (self.plan, &self.plan.steps[id]);
        let Operation::Collective { group, root, slot, .. } = &of.step.call else { return };
        let (at, members) = (self.place(*slot), plan.members(*group));
        let [sent, received] = kind.data(bytes, members, !kind.rooted());
        self.make_room(of.class, at, sent, received);
        for rank in &of.local[0] {
            widen(self.own_rooms.entry(*rank).or_default(), at, kind.data(bytes, 1, true));
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
                widen(self.own_rooms.entry(*rank).or_default(), at, kind.data(bytes, all.len() as u64, true));
            }
        }
    }

    /// Ranks by the buffers that they have.
    pub(super) fn kinds(&self) -> Kinds {
        let mut numbers: BTreeMap<(usize, Option<&Rooms>), usize> = BTreeMap::new();
        let mut kinds = Kinds::default();
        for rank in 0..self.plan.ranks {
            let class = self.plan.class_of[rank as usize];
            let fits = |(at, data): (&usize, &[u64; 2])| {
                self.rooms[class].get(at).is_some_and(|room| room[0] >= data[0] && room[1] >= data[1])
            };
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
