//! How many iterations of each loop are kept, so that the skeleton takes a given part of the program's time.
//!
//! The loops of the outermost level first, all families by the same factor; where whole iterations are too coarse, or one
//! of the main loop is too long, the loops within them too. What lies outside loops is kept once; its computation is
//! done in part if it is too long, and in that part with which the whole takes its time, as iterations are whole ones.
//! Each part is timed apart and stands for what was left of it, so that a factor need not be the same everywhere.
use super::families::{Family, families, whole, within};
use super::plan::{Block, LoopId, Plan, StepId};

/// How far the estimate may lie from the ratio asked for before inner loops are shortened too.
const NEAR: f64 = 0.04;
/// Levels of loops that are shortened.
const LEVELS: usize = 4;
/// What lies outside loops is kept whole while it takes at most this share of the skeleton.
const WHOLE: f64 = 0.03;
/// Computation outside loops is shortened by at most so many times the ratio asked for.
const SHORTEST: f64 = 4.0;
/// Computation outside loops that is shorter is never shortened, in ns.
const SHORT_NS: f64 = 20_000.0;
/// With so many iterations or more, the first one stands for itself alone.
pub(super) const LEAD: u64 = 3;

/// What was chosen.
#[derive(Clone, Debug, Default)]
pub struct Scaling {
    /// Time of the traced program as the logical trace has it, in ns: the mean over ranks.
    pub base_ns: f64,
    /// Estimated time of the skeleton on the base, in ns.
    pub estimate_ns: f64,
    /// Estimated time of one iteration of all main loops with what lies outside, in ns: the lower bound.
    pub least_ns: f64,
    /// The longest loops' iterations: in the program, and kept.
    pub main: Option<(u64, u64)>,
}

impl Scaling {
    /// The ratio that is expected.
    pub fn ratio(&self) -> f64 {
        if self.estimate_ns > 0.0 { self.base_ns / self.estimate_ns } else { 1.0 }
    }

    /// The greatest ratio with whole iterations of the main loop.
    pub fn most(&self) -> f64 {
        if self.least_ns > 0.0 { self.base_ns / self.least_ns } else { 1.0 }
    }
}

/// Time of the blocks in ns, on one rank.
fn cost(plan: &Plan, blocks: &[Block], times: f64) -> f64 {
    let of = |block: &Block| match *block {
        Block::Step(id) => {
            let step = &plan.steps[id];
            times * (step.step.compute.mean_ns / step.shorter + step.step.call_ns)
        }
        Block::Loop(id) => cost(plan, &plan.loops[id].body, times * plan.loops[id].count as f64),
    };
    blocks.iter().map(of).sum()
}

/// Estimated time of the plan in ns: the mean over ranks.
pub fn estimate(plan: &Plan) -> f64 {
    let of = |class: &super::plan::Class| class.ranks.len() as f64 * cost(plan, &class.body, 1.0);
    plan.classes.iter().map(of).sum::<f64>() / f64::from(plan.ranks)
}

/// Shortens a plan to 1/`ratio` of its time.
pub fn scale(plan: &mut Plan, ratio: f64) -> Scaling {
    let base_ns = estimate(plan);
    let target = base_ns / ratio.max(1.0);
    let mut scaling = Scaling { base_ns, estimate_ns: base_ns, least_ns: base_ns, main: None };
    let main = families(plan, &whole(plan));
    let rest = if ratio > 1.0 { long_rest(plan, &main, target) } else { Vec::new() };
    fit_rest(plan, &rest, target, ratio);
    let (mut level, mut longest) = (main.clone(), None);
    for depth in 0..LEVELS {
        if level.is_empty() {
            break;
        }
        shorten(plan, &rest, ratio);
        let last = choose(plan, &level, target);
        if depth == 0 {
            scaling.least_ns = least(plan, &level);
            let family = level.iter().max_by(|a, b| unit_cost(plan, a, true).total_cmp(&unit_cost(plan, b, true)));
            longest = family.and_then(|family| family.loops.first()).map(|(id, _)| *id);
        }
        let short = estimate(plan) < target;
        fit_rest(plan, &rest, target, ratio);
        if (estimate(plan) / target - 1.0).abs() <= NEAR {
            break;
        }
        let inner: Vec<Family> = level.iter().flat_map(|family| families(plan, &within(plan, family))).collect();
        // Whole iterations upwards, so that the inner loops can take away what is too much.
        if let Some((family, units)) = last.filter(|_| !inner.is_empty() && short) {
            level[family].set(plan, units + 1);
        }
        level = inner;
    }
    scaling.main = longest.map(|id| (plan.loops[id].full, plan.loops[id].count));
    scaling.estimate_ns = estimate(plan);
    scaling
}

/// Estimated time with one unit of each family, in ns.
fn least(plan: &Plan, level: &[Family]) -> f64 {
    let mut one = plan.clone();
    level.iter().for_each(|family| family.set(&mut one, 1));
    estimate(&one)
}

/// Time that a unit of a family takes, or all of its units, in ns: the mean over ranks.
fn unit_cost(plan: &Plan, family: &Family, all: bool) -> f64 {
    let of = |(id, unit): &(LoopId, u64)| {
        let of = &plan.loops[*id];
        let times = if all { of.full } else { *unit };
        plan.classes[of.class].ranks.len() as f64 * cost(plan, &of.body, times as f64)
    };
    family.loops.iter().map(of).sum::<f64>() / f64::from(plan.ranks)
}

/// Sets the families' counts so that the plan comes near the target; of the longest one the units, as (family, units),
/// if it has more.
fn choose(plan: &mut Plan, level: &[Family], target: f64) -> Option<(usize, u64)> {
    let units: Vec<u64> = level.iter().map(|family| family.units(plan)).collect();
    let set = |plan: &mut Plan, factor: f64| {
        for (family, all) in level.iter().zip(&units) {
            family.set(plan, ((*all as f64 * factor).round() as u64).clamp(1, *all));
        }
    };
    let (mut low, mut high) = (0.0, 1.0);
    set(plan, high);
    if estimate(plan) <= target {
        return None;
    }
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        set(plan, middle);
        if estimate(plan) <= target { low = middle } else { high = middle }
    }
    // Above or below, whichever is nearer.
    set(plan, high);
    let above = estimate(plan) - target;
    set(plan, low);
    if target - estimate(plan) > above.abs() {
        set(plan, high);
    }
    let longest = (0..level.len())
        .max_by(|a, b| unit_cost(plan, &level[*a], false).total_cmp(&unit_cost(plan, &level[*b], false)))?;
    let (id, unit) = level[longest].loops[0];
    let kept = units[longest] - (plan.loops[id].full - plan.loops[id].count) / unit;
    (kept < units[longest]).then_some((longest, kept))
}

/// The steps whose computation lies outside the families' loops and is done in part: none if all that lies outside is
/// short enough to be kept whole.
fn long_rest(plan: &Plan, main: &[Family], target: f64) -> Vec<StepId> {
    let inside: f64 = main.iter().map(|family| unit_cost(plan, family, true)).sum();
    if estimate(plan) - inside <= WHOLE * target {
        return Vec::new();
    }
    let reduced: Vec<LoopId> = main.iter().flat_map(|family| family.loops.iter().map(|(id, _)| *id)).collect();
    let times = plan.executions();
    let mut outside = Vec::new();
    fn steps(plan: &Plan, blocks: &[Block], reduced: &[LoopId], out: &mut Vec<StepId>) {
        for block in blocks {
            match *block {
                Block::Step(id) => out.push(id),
                Block::Loop(id) if !reduced.contains(&id) => steps(plan, &plan.loops[id].body, reduced, out),
                Block::Loop(_) => {}
            }
        }
    }
    plan.classes.iter().for_each(|class| steps(plan, &class.body, &reduced, &mut outside));
    outside.retain(|id| plan.steps[*id].step.compute.mean_ns >= SHORT_NS && times[*id] > 0);
    outside
}

/// Does as much of the computation in these steps as what the loops take leaves of the target.
fn fit_rest(plan: &mut Plan, rest: &[StepId], target: f64, ratio: f64) {
    shorten(plan, rest, 1.0);
    let whole = estimate(plan);
    shorten(plan, rest, 2.0);
    // A time is `whole` - `computed` + `computed` / shorter.
    let computed = 2.0 * (whole - estimate(plan));
    let left = target - (whole - computed);
    let shorter = if left > 0.0 { (computed / left).clamp(1.0, SHORTEST * ratio) } else { SHORTEST * ratio };
    shorten(plan, rest, shorter);
}

/// Divides the computation in these steps.
fn shorten(plan: &mut Plan, steps: &[StepId], by: f64) {
    steps.iter().for_each(|id| plan.steps[*id].shorter = by);
}

/// What the iterations of a loop that was shortened stand for: the first one, and each other.
pub fn weights(full: u64, count: u64) -> (f64, f64) {
    if count >= LEAD {
        (1.0, (full - 1) as f64 / (count - 1) as f64)
    } else {
        let each = full as f64 / count.max(1) as f64;
        (each, each)
    }
}
