//! Collectives: a rank's part ends when all those have come that it waits for, plus what the collective costs. So the
//! skew with which ranks arrive is kept.
use super::{Begun, Given, State, Walk};
use crate::transform::error::TransformError;
use crate::transform::output::Output;
use crate::transform::roles::Waits;
use crate::transform::rules::{Carry, Constraint};
use crate::transform::survey::Balance;
use crate::transform::tariff::Together;
use phasecast_analyzer::matching::FastMap;
use std::collections::VecDeque;

/// The collectives of one communicator.
pub struct CommState {
    members: u32,
    /// Whether they can be matched by their order.
    balance: Balance,
    done: FastMap<u32, u64>,
    /// Ranks that take part no more, by how many they took part in.
    gone: Vec<(u32, u64)>,
    open: VecDeque<Instance>,
    /// The number of the first open one.
    first: u64,
}

/// One collective that not all ranks have left.
#[derive(Default)]
struct Instance {
    /// When the ranks came, on base and target.
    arrivals: Vec<(u32, f64, f64)>,
    missing: u32,
    left: u32,
    last: (f64, f64),
    root: Option<(f64, f64)>,
    waiting: Vec<(u32, Part)>,
}

/// A rank's part in a collective.
#[derive(Clone, Copy)]
pub struct Part {
    comm: u32,
    number: u64,
    rank: u32,
    waits: Waits,
    is_root: bool,
    costs: (f64, f64),
    carry: Carry,
    /// It is waited for by a call other than its own: an assumption.
    pub(super) assumed: bool,
}

/// The states of all communicators; after them those of `MPI_Init` and `MPI_Finalize`.
pub fn states(given: &Given<'_>) -> Vec<CommState> {
    let comms = given.trace.comms();
    let state = |members: usize, balance: Balance| CommState {
        members: members as u32,
        balance,
        done: FastMap::default(),
        gone: Vec::new(),
        open: VecDeque::new(),
        first: 0,
    };
    let balance = |id: usize| given.survey.balance.get(id).copied().unwrap_or_default();
    let own = comms.iter().enumerate().map(|(id, c)| state(c.members.len() + c.remote.len(), balance(id)));
    let all = |all: bool| if all { Balance::Even } else { Balance::Uneven };
    let life = given.survey.life.map(|called| state(given.trace.size() as usize, all(called)));
    own.chain(life).collect()
}

impl Walk<'_, '_> {
    /// A rank takes part in a collective of a communicator, as `proc` has it.
    #[expect(clippy::too_many_arguments, reason = "they are what a trace says of it")]
    pub(super) fn collective(
        &mut self,
        id: u32,
        proc: u16,
        comm: u32,
        root: i32,
        bytes: u64,
        nonblocking: bool,
        output: &mut Output<'_>,
    ) -> Result<(), TransformError> {
        let rank = self.lanes[id as usize].rank;
        let role = &self.given.roles[usize::from(proc)];
        let Some(state) = self.comms.get(comm as usize) else { return Ok(()) };
        let is_root = root == rank as i32;
        // The root's event has all blocks, the tables have one.
        let blocks = if is_root && role.scatters { u64::from(state.members.max(1)) } else { 1 };
        let (one, other) = self.tariff.collective(proc, role, state.members, bytes / blocks);
        let waits =
            if root < 0 && matches!(role.waits, Waits::ForRoot | Waits::IfRoot) { Waits::ForAll } else { role.waits };
        self.lanes[id as usize].spread += other.spread;
        self.arrive(id, comm as usize, waits, is_root, one, other, nonblocking, output)
    }

    /// A rank comes to the next collective of `state`.
    #[expect(clippy::too_many_arguments, reason = "they are what a part in a collective is")]
    pub(super) fn arrive(
        &mut self,
        id: u32,
        state: usize,
        waits: Waits,
        is_root: bool,
        one: Together,
        other: Together,
        nonblocking: bool,
        output: &mut Output<'_>,
    ) -> Result<(), TransformError> {
        let of = |t: &Together| match waits {
            Waits::ForRoot | Waits::IfRoot => {
                if is_root {
                    t.root
                } else {
                    t.others
                }
            }
            Waits::ForAll | Waits::ForLower | Waits::ForNobody => t.all,
        };
        let costs = (of(&one), of(&other));
        let carry = if one.guessed || other.guessed { Carry::Share } else { Carry::Add };
        let lane = &mut self.lanes[id as usize];
        let rank = lane.rank;
        let when = (lane.call.enter.0 as f64, lane.enter2);
        if !nonblocking {
            lane.own1 = lane.own1.max(costs.0);
            lane.own2 = lane.own2.max(costs.1);
            lane.carry = carry;
        }
        let comm = &mut self.comms[state];
        if comm.balance == Balance::Uneven {
            return Ok(());
        }
        let done = comm.done.entry(rank).or_default();
        let number = *done;
        *done += 1;
        if number < comm.first {
            return Ok(());
        }
        while number >= comm.first + comm.open.len() as u64 {
            let next = comm.first + comm.open.len() as u64;
            let gone = comm.gone.iter().filter(|(_, took)| *took <= next).count() as u32;
            let left = comm.members.saturating_sub(gone);
            self.counted.gone += u64::from(gone);
            comm.open.push_back(Instance { missing: left, left, ..Instance::default() });
        }
        let instance = &mut comm.open[(number - comm.first) as usize];
        instance.missing = instance.missing.saturating_sub(1);
        instance.last = (instance.last.0.max(when.0), instance.last.1.max(when.1));
        if is_root {
            instance.root = Some(when);
        }
        if waits == Waits::ForLower {
            instance.arrivals.push((rank, when.0, when.1));
        }
        let part = Part { comm: state as u32, number, rank, waits, is_root, costs, carry, assumed: nonblocking };
        if nonblocking {
            self.remember(rank as usize, Begun::Collective(part));
        } else {
            self.wait_for_collective(id, part);
        }
        self.told(state, number, output)
    }

    /// A call waits for its rank's part in a collective.
    pub(super) fn wait_for_collective(&mut self, id: u32, part: Part) {
        match self.instance(&part).map(|instance| ready(instance, &part)) {
            None => {}
            Some(true) => self.settle_collective(id, &part),
            Some(false) => {
                self.lanes[id as usize].need += 1;
                if let Some(instance) = self.instance(&part) {
                    instance.waiting.push((id, part));
                }
            }
        }
    }

    fn instance(&mut self, part: &Part) -> Option<&mut Instance> {
        let comm = &mut self.comms[part.comm as usize];
        comm.open.get_mut(usize::try_from(part.number.checked_sub(comm.first)?).ok()?)
    }

    /// Something new is known of a collective: tells those who wait for it.
    fn told(&mut self, state: usize, number: u64, output: &mut Output<'_>) -> Result<(), TransformError> {
        let comm = &mut self.comms[state];
        let Some(at) = number.checked_sub(comm.first) else { return Ok(()) };
        let Some(instance) = comm.open.get_mut(at as usize) else { return Ok(()) };
        if instance.waiting.is_empty() || instance.missing > 0 && instance.root.is_none() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut instance.waiting);
        let (now, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(_, part)| ready(instance, part));
        instance.waiting = later;
        for (id, part) in now {
            self.settle_collective(id, &part);
            self.met(id, output)?;
        }
        Ok(())
    }

    /// All that a part waits for is known.
    fn settle_collective(&mut self, id: u32, part: &Part) {
        let Some(instance) = self.instance(part) else { return };
        let start = match part.waits {
            Waits::ForAll => Some(instance.last),
            Waits::ForRoot => instance.root.filter(|_| !part.is_root),
            Waits::IfRoot => Some(instance.last).filter(|_| part.is_root),
            Waits::ForNobody => None,
            Waits::ForLower => {
                let latest = |all: (f64, f64), a: &(u32, f64, f64)| (all.0.max(a.1), all.1.max(a.2));
                let lower = lower_ranks(instance, part);
                Some(lower.iter().fold((0.0, 0.0), latest)).filter(|_| !lower.is_empty())
            }
        };
        let one_clock = self.given.one_clock;
        let lane = &mut self.lanes[id as usize];
        let exit1 = lane.call.exit.0 as f64;
        // One that had left before the last came did not wait for it.
        if let Some((start1, start2)) = start.filter(|start| exit1 >= start.0 || !one_clock) {
            let (model1, model2) = part.costs;
            lane.constraints.push(Constraint { start1, model1, start2, model2, carry: part.carry });
        }
        self.leave(part);
    }

    /// A rank's part in a collective is over.
    pub(super) fn leave(&mut self, part: &Part) {
        if let Some(instance) = self.instance(part) {
            instance.left = instance.left.saturating_sub(1);
        }
        let comm = &mut self.comms[part.comm as usize];
        while comm.open.front().is_some_and(|first| first.left == 0 && first.missing == 0) {
            comm.open.pop_front();
            comm.first += 1;
        }
    }

    /// A rank has ended: nobody waits for it any more.
    pub(super) fn leaves_all(&mut self, rank: u32, output: &mut Output<'_>) -> Result<(), TransformError> {
        let comms = self.given.trace.comms();
        for state in 0..self.comms.len() {
            let member = comms.get(state).is_none_or(|c| c.members.contains(&rank) || c.remote.contains(&rank));
            let comm = &mut self.comms[state];
            if !member || comm.balance == Balance::Uneven {
                continue;
            }
            let took = comm.done.get(&rank).copied().unwrap_or(0);
            comm.gone.push((rank, took));
            let (first, open) = (comm.first, comm.open.len() as u64);
            for number in took.max(first)..first + open {
                let instance = &mut self.comms[state].open[(number - first) as usize];
                instance.missing = instance.missing.saturating_sub(1);
                instance.left = instance.left.saturating_sub(1);
                self.counted.gone += 1;
            }
            for number in took.max(first)..first + open {
                self.told(state, number, output)?;
            }
        }
        Ok(())
    }

    /// Gives up one wait for a collective that was only assumed, or that others do not come to as they were cut off; whether
    /// there was one.
    pub(super) fn give_up_collective(&mut self, output: &mut Output<'_>) -> Result<bool, TransformError> {
        let waits = self.comms.iter_mut().find_map(|comm| {
            let cut = comm.balance == Balance::Cut;
            comm.open.iter_mut().find_map(|instance| {
                let at = instance.waiting.iter().position(|(_, part)| part.assumed || cut)?;
                Some(instance.waiting.swap_remove(at))
            })
        });
        let Some((id, part)) = waits else { return Ok(false) };
        self.leave(&part);
        debug_assert_eq!(self.lanes[id as usize].state, State::Waiting);
        self.met(id, output)?;
        Ok(true)
    }
}

fn ready(instance: &Instance, part: &Part) -> bool {
    match part.waits {
        Waits::ForAll => instance.missing == 0,
        Waits::ForNobody => true,
        Waits::ForRoot => part.is_root || instance.root.is_some() || instance.missing == 0,
        Waits::IfRoot => !part.is_root || instance.missing == 0,
        // World ranks stand for ranks in the communicator: their order is nearly always the same.
        Waits::ForLower => instance.missing == 0,
    }
}

fn lower_ranks(instance: &Instance, part: &Part) -> Vec<(u32, f64, f64)> {
    instance.arrivals.iter().filter(|a| a.0 < part.rank).copied().collect()
}
