//! The program as it is worked on before it is written: the logical trace with its steps and loops numbered, so that a
//! loop can be shortened, and a call made local, without its text being rewritten.
use super::collective::Kind;
use super::error::ProgramError;
use crate::error::TooLong;
use crate::logical::{Direction, End, Group, LogicalTrace, Operation, Step};
use crate::nest::Node;
use std::collections::{BTreeMap, BTreeSet};

/// Loops within loops that are followed; C99 guarantees 127 levels of blocks.
const MOST_LEVELS: usize = 60;
/// The longest message that is written, and the most data of a collective on one rank; longer ones are cut to it.
pub const MOST_BYTES: u64 = 1 << 30;
/// Every MPI has at least the tags 0 to this.
const MOST_TAG: i32 = 32767;

/// The number of a step in [`Plan::steps`].
pub type StepId = usize;
/// The number of a loop in [`Plan::loops`].
pub type LoopId = usize;

/// One element of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// A step.
    Step(StepId),
    /// A loop.
    Loop(LoopId),
}

/// A loop of one class.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The class.
    pub class: usize,
    /// Iterations in the traced program.
    pub full: u64,
    /// Iterations in the skeleton, at least 1.
    pub count: u64,
    /// What is repeated.
    pub body: Vec<Block>,
}

/// One of the two sides of a call: messages go out, or come in. A collective has only the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// It is sent.
    Out,
    /// It is received.
    In,
}

/// A step of one class.
#[derive(Clone, Debug)]
pub struct PlanStep {
    /// The class.
    pub class: usize,
    /// What the logical trace says.
    pub step: Step,
    /// The ranks for which a side of the call is local (seed 002, section 4): it has no partner, and the rank exchanges
    /// with itself.
    pub local: [BTreeSet<u32>; 2],
    /// The send may not wait for its receive: the program relied on buffers.
    pub detached: bool,
    /// Bytes that are sent, after unbalanced sizes were resolved; of a collective, what each rank contributes to each.
    pub bytes: u64,
    /// The computation is done in so many parts, of which one is kept; 1 if it is kept whole.
    pub shorter: f64,
}

/// Ranks that do the same.
#[derive(Clone, Debug)]
pub struct Class {
    /// World ranks, ascending.
    pub ranks: Vec<u32>,
    /// What they do.
    pub body: Vec<Block>,
}

/// A program.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Ranks.
    pub ranks: u32,
    /// Where messages go.
    pub directions: Vec<Direction>,
    /// Communicators.
    pub groups: Vec<Group>,
    /// Classes.
    pub classes: Vec<Class>,
    /// The class of each rank.
    pub class_of: Vec<usize>,
    /// All loops.
    pub loops: Vec<Loop>,
    /// All steps.
    pub steps: Vec<PlanStep>,
    /// For each group and rank, the communicator that it is in; they are numbered through all groups.
    pub comm_of: Vec<Vec<Option<u32>>>,
    /// World ranks of each communicator.
    pub comms: Vec<Vec<u32>>,
    /// Slots of requests.
    pub slots: u32,
    /// What is left out, in sentences.
    pub left_out: Vec<String>,
}

/// The two ends of a call's messages.
pub fn ends(call: &Operation) -> [Option<End>; 2] {
    match call {
        Operation::Send { end, .. } => [Some(*end), None],
        Operation::Receive { end, .. } => [None, Some(*end)],
        Operation::SendReceive { send, receive } => [*send, *receive],
        _ => [None, None],
    }
}

impl Plan {
    /// The plan of a logical trace, all loops with the counts of the traced program.
    ///
    /// # Errors
    /// If the logical trace contradicts itself, or is too long to be written as a program.
    pub fn new(trace: &LogicalTrace) -> Result<Plan, ProgramError> {
        let ranks = trace.ranks;
        let wrong = |what: String| ProgramError::Inconsistent { what };
        if ranks == 0 || ranks > 1 << 20 {
            return Err(wrong(format!("it has {ranks} ranks")));
        }
        for direction in &trace.directions {
            let name = &direction.name;
            if direction.peer.len() != ranks as usize {
                return Err(wrong(format!("direction {name} has {} peers for {ranks} ranks", direction.peer.len())));
            }
            if let Some(peer) = direction.peer.iter().flatten().find(|peer| **peer >= ranks) {
                return Err(wrong(format!("direction {name} leads to rank {peer} of {ranks}")));
            }
        }
        let mut class_of = vec![usize::MAX; ranks as usize];
        for (at, class) in trace.classes.iter().enumerate() {
            for &rank in &class.ranks {
                match class_of.get_mut(rank as usize) {
                    Some(of) if *of == usize::MAX => *of = at,
                    Some(_) => return Err(wrong(format!("rank {rank} is in two classes"))),
                    None => return Err(wrong(format!("class {at} has rank {rank} of {ranks}"))),
                }
            }
        }
        if let Some(rank) = class_of.iter().position(|of| *of == usize::MAX) {
            return Err(wrong(format!("rank {rank} is in no class")));
        }
        let (comm_of, comms) = communicators(&trace.groups, ranks)?;
        TooLong::refuse(trace.classes.iter().map(|class| class.body.iter().map(Node::written).sum()))
            .map_err(ProgramError::TooLong)?;
        let mut plan = Plan {
            ranks,
            directions: trace.directions.clone(),
            groups: trace.groups.clone(),
            classes: Vec::new(),
            class_of,
            loops: Vec::new(),
            steps: Vec::new(),
            comm_of,
            comms,
            slots: 0,
            left_out: trace.left_out.clone(),
        };
        for (at, class) in trace.classes.iter().enumerate() {
            let body = plan.number(at, &class.body, 0)?;
            plan.classes.push(Class { ranks: class.ranks.clone(), body });
        }
        plan.tags();
        plan.clip();
        Ok(plan)
    }

    fn number(&mut self, class: usize, nodes: &[Node<Step>], level: usize) -> Result<Vec<Block>, ProgramError> {
        if level > MOST_LEVELS {
            return Err(ProgramError::Inconsistent {
                what: format!("more than {MOST_LEVELS} loops lie in each other"),
            });
        }
        let mut body = Vec::new();
        for node in nodes {
            match node {
                Node::Item(step) => {
                    self.check(class, step)?;
                    body.push(Block::Step(self.steps.len()));
                    let bytes = ends(&step.call)[0].map_or(0, |end| end.bytes);
                    self.steps.push(PlanStep {
                        class,
                        step: step.clone(),
                        local: [BTreeSet::new(), BTreeSet::new()],
                        detached: false,
                        bytes,
                        shorter: 1.0,
                    });
                }
                Node::Loop { count, body: inner } => {
                    let inner = self.number(class, inner, level + 1)?;
                    if inner.is_empty() || *count == 0 {
                        continue;
                    }
                    body.push(Block::Loop(self.loops.len()));
                    self.loops.push(Loop { class, full: *count, count: *count, body: inner });
                }
            }
        }
        Ok(body)
    }

    fn check(&mut self, class: usize, step: &Step) -> Result<(), ProgramError> {
        let wrong = |what: String| Err(ProgramError::Inconsistent { what: format!("in class {class}, {what}") });
        let times = [step.compute.mean_ns, step.compute.deviation_ns, step.call_ns];
        let known = step.compute.quantiles_ns.iter().chain(&times);
        if known.clone().any(|ns| !ns.is_finite() || *ns < 0.0 || *ns > 1e18) {
            return wrong("a time is not one".into());
        }
        for end in ends(&step.call).into_iter().flatten() {
            if usize::from(end.direction) >= self.directions.len() {
                return wrong(format!("a message goes in direction {} of {}", end.direction, self.directions.len()));
            }
        }
        let slots: &[u16] = match &step.call {
            Operation::Send { slot, .. } | Operation::Receive { slot, .. } => slot.as_slice(),
            Operation::Collective { slot, group, .. } => {
                if usize::from(*group) >= self.groups.len() {
                    return wrong(format!("a collective is of group {group} of {}", self.groups.len()));
                }
                slot.as_slice()
            }
            Operation::Wait { slots } => slots,
            _ => &[],
        };
        self.slots = self.slots.max(slots.iter().max().map_or(0, |slot| u32::from(*slot) + 1));
        Ok(())
    }

    /// Tags that not every MPI has become others; those that are equal stay equal.
    fn tags(&mut self) {
        let call_tags = |call: &Operation| ends(call).into_iter().flatten().map(|end| end.tag);
        let all: BTreeSet<i32> = self.steps.iter().flat_map(|s| call_tags(&s.step.call).collect::<Vec<_>>()).collect();
        if all.iter().all(|tag| (0..=MOST_TAG).contains(tag)) {
            return;
        }
        let new: BTreeMap<i32, i32> =
            all.iter().enumerate().map(|(at, tag)| (*tag, (at % (MOST_TAG as usize + 1)) as i32)).collect();
        for step in &mut self.steps {
            for end in ends_mut(&mut step.step.call).into_iter().flatten() {
                end.tag = new.get(&end.tag).copied().unwrap_or(0);
            }
        }
        self.left_out
            .push(format!("{} tags were numbered anew, as not every MPI has tags above {MOST_TAG}", new.len()));
    }

    fn clip(&mut self) {
        let mut clipped = 0;
        for step in &mut self.steps {
            let mut over = false;
            for end in ends_mut(&mut step.step.call).into_iter().flatten() {
                over |= end.bytes > MOST_BYTES;
                end.bytes = end.bytes.min(MOST_BYTES);
            }
            step.bytes = step.bytes.min(MOST_BYTES);
            clipped += usize::from(over);
        }
        if clipped > 0 {
            self.left_out.push(format!("{clipped} calls with messages of more than 1 GiB send 1 GiB"));
        }
    }

    /// The other end of a step's message, for a rank; none at an edge.
    pub fn peer(&self, end: &End, rank: u32) -> Option<u32> {
        self.directions[usize::from(end.direction)].peer[rank as usize]
    }

    /// The most members of a group's communicators, at least 1.
    pub fn members(&self, group: u16) -> u64 {
        let comms = self.comm_of[usize::from(group)].iter().flatten();
        comms.map(|comm| self.comms[*comm as usize].len()).max().unwrap_or(1).max(1) as u64
    }

    /// The most bytes that a step can have, if it is a collective.
    pub fn most_bytes(&self, step: StepId) -> u64 {
        match &self.steps[step].step.call {
            Operation::Collective { name, group, .. } if Kind::of(name).gathers() => MOST_BYTES / self.members(*group),
            _ => MOST_BYTES,
        }
    }

    /// How often each step is carried out by a rank of its class.
    pub fn executions(&self) -> Vec<u64> {
        let mut times = vec![0; self.steps.len()];
        for class in &self.classes {
            self.count(&class.body, 1, &mut times);
        }
        times
    }

    fn count(&self, body: &[Block], times: u64, out: &mut [u64]) {
        for block in body {
            match *block {
                Block::Step(step) => out[step] = times,
                Block::Loop(id) => self.count(&self.loops[id].body, times.saturating_mul(self.loops[id].count), out),
            }
        }
    }

    /// A step and its rank in words.
    pub fn words(&self, step: StepId, rank: u32) -> String {
        let of = &self.steps[step];
        let lies = |end: &End| match self.peer(end, rank) {
            Some(peer) => {
                format!("{} (rank {peer}), tag {}", self.directions[usize::from(end.direction)].name, end.tag)
            }
            None => format!("{} (nobody)", self.directions[usize::from(end.direction)].name),
        };
        match &of.step.call {
            Operation::Send { end, slot, .. } => {
                format!("{} to {}", if slot.is_some() { "MPI_Isend" } else { "MPI_Send" }, lies(end))
            }
            Operation::Receive { end, slot, .. } => {
                format!("{} from {}", if slot.is_some() { "MPI_Irecv" } else { "MPI_Recv" }, lies(end))
            }
            Operation::SendReceive { send, receive } => {
                let side = |end: &Option<End>| end.as_ref().map_or("nobody".into(), lies);
                format!("MPI_Sendrecv to {} and from {}", side(send), side(receive))
            }
            Operation::Wait { .. } => "MPI_Wait".into(),
            Operation::Collective { name, group, .. } => format!("{name} on {}", self.groups[usize::from(*group)].name),
            Operation::Nothing => "computation".into(),
        }
    }
}

fn ends_mut(call: &mut Operation) -> [Option<&mut End>; 2] {
    match call {
        Operation::Send { end, .. } => [Some(end), None],
        Operation::Receive { end, .. } => [None, Some(end)],
        Operation::SendReceive { send, receive } => [send.as_mut(), receive.as_mut()],
        _ => [None, None],
    }
}

type Communicators = (Vec<Vec<Option<u32>>>, Vec<Vec<u32>>);

fn communicators(groups: &[Group], ranks: u32) -> Result<Communicators, ProgramError> {
    let (mut of, mut comms) = (Vec::new(), Vec::new());
    for group in groups {
        let mut mine = vec![None; ranks as usize];
        for members in &group.members {
            for &member in members {
                let name = &group.name;
                let wrong =
                    |what: &str| ProgramError::Inconsistent { what: format!("group {name} has rank {member} {what}") };
                let place = mine.get_mut(member as usize).ok_or_else(|| wrong(&format!("of {ranks}")))?;
                if place.replace(comms.len() as u32).is_some() {
                    return Err(wrong("twice"));
                }
            }
            comms.push(members.clone());
        }
        of.push(mine);
    }
    Ok((of, comms))
}
