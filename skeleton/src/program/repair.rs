//! From a plan to one that ends: calls that have no partner are made local, sends that cannot wait for their receive are
//! detached, and sizes that differ are settled (seed 002, section 4).
//!
//! The seed tells local from global calls on the text of one process (its Figure 3, [`super::figure3`]). Here all ranks
//! are known, so calls are matched one by one, and a call is local for just those ranks that have no partner for it.
use super::collective::Kind;
use super::error::ProgramError;
use super::plan::{MOST_BYTES, Plan, Side, StepId, ends};
use super::replay::{Outcome, Pending, Replay};
use crate::logical::Operation;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Local calls that are told one by one.
const TOLD: usize = 8;
/// Calls that are replayed at most while one call at a time is made local; after that, all that are stuck at once.
const GENTLE: u64 = 20_000_000;

/// Local calls in words, and how many sends were detached.
#[derive(Clone, Debug, Default)]
pub struct Repaired {
    /// Steps that are local for some ranks.
    pub local: usize,
    /// Sends that may not wait.
    pub detached: usize,
    /// Sends whose size was settled between their own and that of their receives.
    pub resized: usize,
    /// Steps that have a partner, but were made local, for some ranks, as the program would not end.
    pub cut: BTreeSet<StepId>,
    /// Collectives with more data on a rank than a skeleton moves.
    pub clipped: usize,
    /// Calls that the replay carried out, over all ranks.
    pub calls: u64,
}

/// Makes local what has no partner in the traced program, by counts alone.
pub fn unmatched(plan: &mut Plan) {
    nobody(plan);
    balance(plan);
}

/// What a reader should know of local calls, in sentences.
pub fn sentences(plan: &Plan, repaired: &Repaired) -> Vec<String> {
    let mut out = Vec::new();
    let mut told = 0;
    for (id, step) in plan.steps.iter().enumerate() {
        let ranks: BTreeSet<u32> = step.local.iter().flatten().copied().collect();
        let collective_outside = matches!(step.step.call, Operation::Collective { group, .. }
            if ranks.iter().all(|rank| plan.comm_of[usize::from(group)][*rank as usize].is_none()));
        let Some(first) = ranks.first().filter(|_| !collective_outside) else { continue };
        told += 1;
        if told <= TOLD {
            let (words, ranks) = (plan.words(id, *first), ranks.iter().copied().collect::<Vec<u32>>());
            let ranks = super::source::ranges(&ranks);
            out.push(match repaired.cut.contains(&id) {
                true => format!(
                    "{words} is made local on ranks {ranks} so that the skeleton ends: it is an exchange with itself there"
                ),
                false => format!(
                    "{words} has no partner on ranks {ranks}: it is a local call there, an exchange with itself"
                ),
            });
        }
    }
    if told > TOLD {
        out.push(format!("{} more calls are local", told - TOLD));
    }
    if repaired.detached > 0 {
        out.push(format!(
            "{} sends do not wait for their receives: the program relies on messages being buffered",
            repaired.detached
        ));
    }
    if repaired.resized > 0 {
        out.push(format!(
            "{} sends differ in size from the receives that take them: they have the median size",
            repaired.resized
        ));
    }
    if repaired.clipped > 0 {
        out.push(format!("{} collectives with more than 1 GiB of data on a rank move 1 GiB there", repaired.clipped));
    }
    let unknown: BTreeSet<&str> = plan
        .steps
        .iter()
        .filter_map(|step| match &step.step.call {
            Operation::Collective { name, .. } if Kind::known(name).is_none() => Some(name.as_str()),
            _ => None,
        })
        .collect();
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.into_iter().map(super::source::harmless).collect();
        out.push(format!("{} are written as MPI_Barrier", names.join(", ")));
    }
    let ready = |step: &&super::plan::PlanStep| {
        matches!(step.step.call, Operation::Send { mode: crate::logical::Mode::Ready, .. })
    };
    let ready = plan.steps.iter().filter(ready).count();
    if ready > 0 {
        out.push(format!("{ready} ready sends are written as standard ones"));
    }
    out
}

/// Makes a plan end.
///
/// # Errors
/// If it still would not, which names the rank and the call.
pub fn repair(plan: &mut Plan) -> Result<Repaired, ProgramError> {
    balance(plan);
    let locals = |plan: &Plan| plan.steps.iter().map(|step| step.local.iter().map(BTreeSet::len).sum()).collect();
    let without_partner: Vec<usize> = locals(plan);
    let mut replayed = 0;
    loop {
        let outcome = Replay::run(plan, false);
        if outcome.accepts() {
            break;
        }
        if !make_local(plan, &outcome, replayed > GENTLE) {
            return Err(hangs(plan, &outcome));
        }
        balance(plan);
        replayed += outcome.calls.max(u64::from(plan.ranks)) + 1000;
    }
    let after: Vec<usize> = locals(plan);
    let cut = (0..plan.steps.len()).filter(|step| after[*step] > without_partner[*step]).collect();
    let (outcome, detached) = Replay::detaching(plan);
    if !outcome.accepts() {
        return Err(hangs(plan, &outcome));
    }
    for step in detached {
        plan.steps[step].detached = true;
    }
    let outcome = Replay::run(plan, true);
    if !outcome.accepts() {
        return Err(hangs(plan, &outcome));
    }
    let (resized, clipped) = settle_sizes(plan, &outcome);
    let local = plan.steps.iter().filter(|step| step.local.iter().any(|ranks| !ranks.is_empty())).count();
    let detached = plan.steps.iter().filter(|step| step.detached).count();
    Ok(Repaired { local, detached, resized, cut, clipped, calls: outcome.calls })
}

fn hangs(plan: &Plan, outcome: &Outcome) -> ProgramError {
    let pending = outcome.stuck.first().or(outcome.unreceived.first());
    pending.map_or(ProgramError::Inconsistent { what: "it cannot be replayed".into() }, |pending| ProgramError::Hangs {
        rank: pending.rank,
        call: plan.words(pending.step, pending.rank),
    })
}

/// Collectives of a communicator that a rank is not in are local to it.
fn nobody(plan: &mut Plan) {
    for step in &mut plan.steps {
        if let Operation::Collective { group, root, .. } = &step.step.call {
            let comm_of = &plan.comm_of[usize::from(*group)];
            let outside = |rank: &&u32| {
                let comm = comm_of[**rank as usize];
                comm.is_none_or(|comm| root.is_some_and(|root| root as usize >= plan.comms[comm as usize].len()))
            };
            let ranks = plan.classes[step.class].ranks.iter().filter(outside);
            step.local[0].extend(ranks);
        }
    }
}

/// Makes local what is stuck: the step on which the first rank waits, for all ranks that wait for the same.
fn make_local(plan: &mut Plan, outcome: &Outcome, all: bool) -> bool {
    // A receive that waits, before a collective that waits for the rank that waits to receive.
    let receive = outcome.stuck.iter().find(|pending| !pending.collective);
    let Some(first) = receive.or(outcome.stuck.first()).or(outcome.unreceived.first()).copied() else { return false };
    let same = |pending: &&Pending| all || pending.step == first.step && pending.side == first.side;
    let stuck: Vec<Pending> = outcome.stuck.iter().chain(&outcome.unreceived).filter(same).copied().collect();
    let mut changed = false;
    for pending in stuck {
        changed |= plan.steps[pending.step].local[pending.side as usize].insert(pending.rank);
    }
    changed
}

/// One side of a step, as one rank carries it out.
struct Use {
    channel: (u32, u32, i32),
    side: Side,
    step: StepId,
    rank: u32,
    times: u64,
}

/// Makes as many messages leave as arrive, for each source, destination and tag: what is too much is made local, the
/// rarest first and the last first, so that what repeats keeps its partner.
fn balance(plan: &mut Plan) {
    let times = plan.executions();
    let mut uses = Vec::new();
    for (step, of) in plan.steps.iter().enumerate() {
        for (side, end) in [Side::Out, Side::In].into_iter().zip(ends(&of.step.call)) {
            let Some(end) = end else { continue };
            for &rank in &plan.classes[of.class].ranks {
                let Some(peer) = plan.peer(&end, rank) else { continue };
                if times[step] == 0 || of.local[side as usize].contains(&rank) {
                    continue;
                }
                let channel = if side == Side::Out { (rank, peer, end.tag) } else { (peer, rank, end.tag) };
                uses.push(Use { channel, side, step, rank, times: times[step] });
            }
        }
    }
    uses.sort_by_key(|of| (of.channel, of.side, of.step));
    for of_channel in uses.chunk_by(|a, b| a.channel == b.channel) {
        let mut kept: [Vec<&Use>; 2] = [Vec::new(), Vec::new()];
        of_channel.iter().for_each(|of| kept[of.side as usize].push(of));
        loop {
            let [sent, received] = [0, 1].map(|side| kept[side].iter().map(|of| u128::from(of.times)).sum::<u128>());
            if sent == received {
                break;
            }
            let (more, excess) = if sent > received { (0, sent - received) } else { (1, received - sent) };
            let side = &mut kept[more];
            // The greatest that is not too much, the last of those; else the least.
            let fits = side.iter().enumerate().filter(|(_, of)| u128::from(of.times) <= excess);
            let best = fits.max_by_key(|(at, of)| (of.times, *at)).map(|(at, _)| at);
            let least =
                side.iter().enumerate().min_by_key(|(at, of)| (of.times, std::cmp::Reverse(*at))).map(|(at, _)| at);
            let Some(at) = best.or(least) else { break };
            let of = side.remove(at);
            plan.steps[of.step].local[of.side as usize].insert(of.rank);
        }
    }
}

/// A send whose size differs from that of a receive that takes it gets the median of its own and theirs; what
/// collectives contribute becomes the same for all who take part. Returns how many sends and collectives that changes.
fn settle_sizes(plan: &mut Plan, outcome: &Outcome) -> (usize, usize) {
    let mut sizes: BTreeMap<StepId, Vec<u64>> = BTreeMap::new();
    for &(send, receive) in outcome.matches.keys() {
        let [Some(sent), Some(received)] =
            [ends(&plan.steps[send].step.call)[0], ends(&plan.steps[receive].step.call)[1]]
        else {
            continue;
        };
        let of = sizes.entry(send).or_insert_with(|| vec![sent.bytes]);
        of.push(received.bytes);
    }
    let mut resized = 0;
    for (step, mut sizes) in sizes {
        sizes.sort_unstable();
        let middle = (sizes[(sizes.len() - 1) / 2], sizes[sizes.len() / 2]);
        let median = middle.0 + (middle.1 - middle.0) / 2;
        resized += usize::from(median != plan.steps[step].bytes);
        plan.steps[step].bytes = median;
    }
    // Steps that ever meet share one size, so that no two ranks can disagree.
    let mut set: Vec<StepId> = (0..plan.steps.len()).collect();
    fn root(set: &mut [StepId], mut of: StepId) -> StepId {
        while set[of] != of {
            set[of] = set[set[of]];
            of = set[of];
        }
        of
    }
    for &(a, b) in outcome.together.keys() {
        let (a, b) = (root(&mut set, a), root(&mut set, b));
        set[a.max(b)] = a.min(b);
    }
    let mut shares: FxHashMap<StepId, Share> = FxHashMap::default();
    for step in 0..plan.steps.len() {
        if let Some((part, ranks)) = contribution(plan, step) {
            shares.entry(root(&mut set, step)).or_default().add(plan, step, part, ranks);
        }
    }
    let mut clipped = 0;
    for step in 0..plan.steps.len() {
        if let Some(share) = shares.get(&root(&mut set, step))
            && matches!(plan.steps[step].step.call, Operation::Collective { .. })
        {
            clipped += usize::from(share.bytes() > share.most);
            plan.steps[step].bytes = share.bytes().min(share.most);
        }
    }
    (resized, clipped)
}

/// What each rank contributes to collectives that meet.
struct Share {
    sum: f64,
    ranks: f64,
    /// The sizes that were said are multiples of it.
    unit: u64,
    /// It may be so many bytes.
    most: u64,
}

impl Default for Share {
    fn default() -> Share {
        Share { sum: 0.0, ranks: 0.0, unit: 8, most: MOST_BYTES }
    }
}

impl Share {
    fn add(&mut self, plan: &Plan, step: StepId, part: f64, ranks: f64) {
        self.sum += part * ranks;
        self.ranks += ranks;
        self.most = self.most.min(plan.most_bytes(step) / 8 * 8);
        if let Operation::Collective { name, bytes, .. } = &plan.steps[step].step.call {
            let unit = if Kind::of(name).reduces() { 1 << bytes.trailing_zeros().min(3) } else { 1 };
            // Less than a number of four bytes is reduced byte by byte in the program, too.
            self.unit = self.unit.min(if unit < 4 { 1 } else { unit });
        }
    }

    /// The mean, of whole numbers if the program's is.
    fn bytes(&self) -> u64 {
        let mean = self.sum / self.ranks.max(1.0);
        let units = (mean / self.unit as f64).round() as u64;
        units.max(u64::from(mean > 0.0 && self.unit > 1)).saturating_mul(self.unit)
    }
}

/// What a rank contributes to each other in a collective, in bytes, and by how many ranks that is said; none if the
/// step is no collective or says nothing.
fn contribution(plan: &Plan, step: StepId) -> Option<(f64, f64)> {
    let of = &plan.steps[step];
    let Operation::Collective { name, group, bytes, root, .. } = &of.step.call else { return None };
    let ranks = &plan.classes[of.class].ranks;
    let comm_of = &plan.comm_of[usize::from(*group)];
    let comm = ranks.iter().find_map(|rank| comm_of[*rank as usize]);
    let members = comm.map_or(1, |comm| plan.comms[comm as usize].len()).max(1) as f64;
    let is_root = |rank: &u32| {
        let comm = comm_of[*rank as usize].map(|comm| &plan.comms[comm as usize]);
        root.is_some_and(|root| comm.is_some_and(|comm| comm.get(root as usize) == Some(rank)))
    };
    let roots = ranks.iter().filter(|rank| is_root(rank)).count() as f64;
    let bytes = *bytes as f64;
    Some(match Kind::of(name) {
        // The root says the sum of what it sends.
        Kind::Scatter if roots > 0.0 && ranks.len() == 1 => (bytes / members, roots),
        Kind::Scatter if roots > 0.0 => (bytes, ranks.len() as f64 - roots),
        Kind::Alltoall | Kind::ReduceScatter => (bytes / members, ranks.len() as f64),
        _ => (bytes, ranks.len() as f64),
    })
}
