//! Loops that belong together: what one sends, another receives, so they can be shortened only together, and only by so
//! many iterations of each that as many messages go missing on one side as on the other.
//!
//! The smallest such numbers are those of a data flow graph with fixed rates (the balance equations of Lee and
//! Messerschmitt's synchronous data flow): for each channel, iterations x sends per iteration on one side equal
//! iterations x receives per iteration on the other.
use super::plan::{Block, LoopId, Plan, ends};
use crate::logical::Operation;
use rustc_hash::{FxHashMap, FxHashSet};

/// Loops that can only be shortened together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// The loops, and how many iterations of each make one unit.
    pub loops: Vec<(LoopId, u64)>,
}

impl Family {
    /// Units that there are with the counts of the traced program.
    pub fn units(&self, plan: &Plan) -> u64 {
        self.loops.iter().map(|(id, unit)| plan.loops[*id].full / unit).min().unwrap_or(1)
    }

    /// Sets the counts of its loops to so many units; what is not a whole unit stays.
    pub fn set(&self, plan: &mut Plan, units: u64) {
        let gone = self.units(plan).saturating_sub(units.max(1));
        for (id, unit) in &self.loops {
            plan.loops[*id].count = plan.loops[*id].full - gone * unit;
        }
    }
}

/// Iterations of a unit within which loops are looked for.
const MOST_ROUNDS: u64 = 64;

/// Bodies that are looked at together, one for each class: how often each is carried out for the others' once.
pub type Context<'a> = Vec<(usize, &'a [Block], u64)>;

/// The whole program.
pub fn whole(plan: &Plan) -> Context<'_> {
    plan.classes.iter().enumerate().map(|(class, of)| (class, of.body.as_slice(), 1)).collect()
}

/// The bodies of a family's loops.
pub fn within<'a>(plan: &'a Plan, family: &Family) -> Context<'a> {
    family.loops.iter().map(|(id, unit)| (plan.loops[*id].class, plan.loops[*id].body.as_slice(), *unit)).collect()
}

/// A channel between two ranks: messages of a tag, or a communicator.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Channel {
    Message(u32, u32, i32),
    /// The first member's collectives beside another's.
    Meeting(u32, u32),
}

/// Stretches of a rank's use of a channel: in which loop (none: outside), and how often.
type Run = Vec<(Option<LoopId>, u64)>;

/// The families of the loops directly within the bodies of a context. Loops that cannot be shortened are in none.
pub fn families(plan: &Plan, context: &Context<'_>) -> Vec<Family> {
    let mut channels: FxHashMap<Channel, [Run; 2]> = FxHashMap::default();
    let mut loops: Vec<LoopId> = Vec::new();
    if context.iter().any(|(_, _, repeat)| *repeat > MOST_ROUNDS) {
        return Vec::new();
    }
    for (class, body, repeat) in context {
        loops.extend(body.iter().filter_map(|block| if let Block::Loop(id) = block { Some(*id) } else { None }));
        let uses: Vec<_> = body.iter().map(|block| (*block, uses(plan, std::slice::from_ref(block)))).collect();
        for &rank in &plan.classes[*class].ranks {
            // Followed one by one, so that what lies between the loops keeps its place.
            for _ in 0..*repeat {
                for (block, uses) in &uses {
                    let inside = if let Block::Loop(id) = block { Some(*id) } else { None };
                    let times = if let Block::Loop(id) = block { plan.loops[*id].count } else { 1 };
                    for (step, each) in uses {
                        add(plan, rank, *step, inside, each.saturating_mul(times), &mut channels);
                    }
                }
            }
        }
    }
    if loops.is_empty() {
        return Vec::new();
    }
    let per = |id: LoopId| plan.loops[id].count.max(1);
    let mut fixed: FxHashSet<LoopId> = FxHashSet::default();
    // For each pair of loops on a channel: iterations of one per iterations of the other, as (sent, received).
    let mut ties: FxHashMap<LoopId, Vec<(LoopId, u64, u64)>> = FxHashMap::default();
    for runs in channels.values() {
        for (id, other, mine, theirs) in pairs(runs) {
            match other {
                None => {
                    fixed.insert(id);
                }
                Some(other) => {
                    let rates = (mine / per(id), theirs / per(other));
                    ties.entry(id).or_default().push((other, rates.0, rates.1));
                    ties.entry(other).or_default().push((id, rates.1, rates.0));
                }
            }
        }
    }
    let mut found = Vec::new();
    let mut seen: FxHashSet<LoopId> = FxHashSet::default();
    for &start in &loops {
        if seen.contains(&start) {
            continue;
        }
        let (members, solved) = solve(start, &ties);
        seen.extend(members.iter().copied());
        if members.iter().any(|id| fixed.contains(id)) {
            continue;
        }
        if let Some(units) = solved {
            found.push(Family { loops: members.into_iter().zip(units).collect() });
        }
    }
    found.retain(|family| family.units(plan) > 1 && channels.values().all(|runs| balanced(plan, family, runs)));
    found
}

/// How often each step with a partner is carried out in the blocks; one loop iteration for a loop that stands alone.
fn uses(plan: &Plan, blocks: &[Block]) -> Vec<(usize, u64)> {
    fn walk(plan: &Plan, blocks: &[Block], times: u64, out: &mut Vec<(usize, u64)>) {
        for block in blocks {
            match *block {
                Block::Step(step) => out.push((step, times)),
                Block::Loop(id) => {
                    walk(plan, &plan.loops[id].body, times.saturating_mul(plan.loops[id].count), out);
                }
            }
        }
    }
    let mut out = Vec::new();
    match blocks {
        [Block::Loop(id)] => walk(plan, &plan.loops[*id].body, 1, &mut out),
        _ => walk(plan, blocks, 1, &mut out),
    }
    out
}

fn add(
    plan: &Plan,
    rank: u32,
    step: usize,
    inside: Option<LoopId>,
    times: u64,
    channels: &mut FxHashMap<Channel, [Run; 2]>,
) {
    let of = &plan.steps[step];
    let mut push = |channel: Channel, side: usize| {
        let run = &mut channels.entry(channel).or_default()[side];
        match run.last_mut() {
            Some((last, count)) if *last == inside => *count = count.saturating_add(times),
            _ => run.push((inside, times)),
        }
    };
    for (side, end) in ends(&of.step.call).into_iter().enumerate() {
        if let Some(end) = end
            && let Some(peer) = plan.peer(&end, rank)
            && !of.local[side].contains(&rank)
        {
            push(
                if side == 0 { Channel::Message(rank, peer, end.tag) } else { Channel::Message(peer, rank, end.tag) },
                side,
            );
        }
    }
    if let Operation::Collective { group, .. } = &of.step.call
        && let Some(comm) = plan.comm_of[usize::from(*group)][rank as usize]
        && !of.local[0].contains(&rank)
    {
        let members = &plan.comms[comm as usize];
        if members.first() == Some(&rank) {
            members.iter().skip(1).for_each(|other| push(Channel::Meeting(comm, *other), 0));
        } else {
            push(Channel::Meeting(comm, rank), 1);
        }
    }
}

/// Matches both sides of a channel in their order; for each loop on it the loop with which it shares most messages, if that
/// holds for both, with the messages of both.
fn pairs(runs: &[Run; 2]) -> Vec<(LoopId, Option<LoopId>, u64, u64)> {
    let mut mass: [FxHashMap<(LoopId, Option<LoopId>), u64>; 2] = Default::default();
    let mut total: [FxHashMap<LoopId, u64>; 2] = Default::default();
    for side in 0..2 {
        for (inside, count) in &runs[side] {
            if let Some(id) = inside {
                *total[side].entry(*id).or_default() += count;
            }
        }
    }
    let mut sides = [runs[0].iter().copied(), runs[1].iter().copied()];
    let mut heads = [sides[0].next(), sides[1].next()];
    while let (Some((sender, sent)), Some((receiver, received))) = (heads[0], heads[1]) {
        let both = sent.min(received);
        if let Some(id) = sender {
            *mass[0].entry((id, receiver)).or_default() += both;
        }
        if let Some(id) = receiver {
            *mass[1].entry((id, sender)).or_default() += both;
        }
        heads[0] = if sent == both { sides[0].next() } else { Some((sender, sent - both)) };
        heads[1] = if received == both { sides[1].next() } else { Some((receiver, received - both)) };
    }
    let best = |side: usize, id: LoopId| {
        let of = mass[side].iter().filter(|((loop_id, _), _)| *loop_id == id);
        of.max_by_key(|((_, other), count)| (**count, other.is_some(), *other)).and_then(|((_, other), _)| *other)
    };
    let mut out = Vec::new();
    for side in 0..2 {
        for (&id, &mine) in &total[side] {
            // Only if it is the other's most too: an iteration that stands apart does not tie the loop that it is of.
            let other = best(side, id).filter(|other| best(1 - side, *other) == Some(id));
            out.push((id, other, mine, other.map_or(0, |other| total[1 - side][&other])));
        }
    }
    out
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The loops tied to one, and the least whole numbers of iterations that satisfy all ties; none if there are none.
fn solve(start: LoopId, ties: &FxHashMap<LoopId, Vec<(LoopId, u64, u64)>>) -> (Vec<LoopId>, Option<Vec<u64>>) {
    let mut order = vec![start];
    let mut of: FxHashMap<LoopId, (u128, u128)> = FxHashMap::from_iter([(start, (1, 1))]);
    let mut holds = true;
    let mut at = 0;
    while let Some(&id) = order.get(at) {
        at += 1;
        let (up, down) = of[&id];
        for &(other, mine, theirs) in ties.get(&id).map_or(&[][..], Vec::as_slice) {
            // iterations(id) x mine = iterations(other) x theirs
            let (a, b) = (up.saturating_mul(mine.into()), down.saturating_mul(theirs.into()));
            let common = gcd(a, b).max(1);
            let want = (a / common, b / common);
            holds &= want.0 > 0 && want.1 > 0 && want.0 < 1 << 40 && want.1 < 1 << 40;
            match of.get(&other) {
                Some(have) => holds &= *have == want,
                None => {
                    of.insert(other, want);
                    order.push(other);
                }
            }
        }
    }
    if !holds {
        return (order, None);
    }
    let mut denominator: u128 = 1;
    for id in &order {
        let down = of[id].1;
        denominator = denominator / gcd(denominator, down) * down;
        if denominator > 1 << 40 {
            return (order, None);
        }
    }
    let whole: Vec<u128> = order.iter().map(|id| of[id].0 * (denominator / of[id].1)).collect();
    let common = whole.iter().copied().fold(0, gcd).max(1);
    let units = whole.into_iter().map(|n| u64::try_from(n / common).unwrap_or(u64::MAX)).collect();
    (order, Some(units))
}

/// Whether as many messages are sent as received on a channel in one unit of a family.
fn balanced(plan: &Plan, family: &Family, runs: &[Run; 2]) -> bool {
    let side = |run: &Run| {
        let in_loop =
            |id: LoopId| run.iter().filter(|(l, _)| *l == Some(id)).map(|(_, n)| u128::from(*n)).sum::<u128>();
        let of =
            |(id, unit): &(LoopId, u64)| in_loop(*id) * u128::from(*unit) / u128::from(plan.loops[*id].count.max(1));
        family.loops.iter().map(of).sum::<u128>()
    };
    side(&runs[0]) == side(&runs[1])
}
