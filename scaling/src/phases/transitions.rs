//! Where phases may begin: peaks and troughs of the smoothed profile, ranked by the average difference between each of
//! them and the points of its neighbourhood (seed 003, section 3). A phase may also follow another on a level of its own
//! with neither peak nor trough between them: such steps are ranked by the difference of the means on both sides.
use super::Stretch;
use serde::Serialize;

/// What a transition looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// More processors are busy than before and after.
    Peak,
    /// Fewer are: a barrier, say.
    Trough,
    /// Another level.
    Step,
}

/// A place at which a phase may begin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Transition {
    /// The point.
    pub at: usize,
    /// Its shape.
    pub shape: Shape,
    /// Its rank: an average difference in processors.
    pub rank: f64,
    /// Where the profile begins to leave the level before it.
    pub from: usize,
    /// The point behind that at which the level after it is reached.
    pub to: usize,
}

/// The most transitions that are looked at.
const MOST: usize = 160;

/// The transitions outside of `fixed` stretches, in order of place: of the peaks and troughs, and
/// of the steps, within a neighbourhood of one another the one with the highest rank, and of all the ones with the highest ranks. Beside them all peaks and troughs.
pub(super) fn find(
    smooth: &[f64],
    values: &[f64],
    radius: usize,
    fixed: &[Stretch],
) -> (Vec<Transition>, Vec<Transition>) {
    let mut all = extrema(smooth, radius);
    let near = all.clone();
    all.extend(steps(values, radius));
    let count = smooth.len();
    let free = |at: usize| {
        at >= radius && at + radius <= count && fixed.iter().all(|s| at + radius <= s.start || at >= s.end + radius)
    };
    all.retain(|transition| transition.rank > 0.0 && free(transition.at));
    all.sort_by(|a, b| b.rank.total_cmp(&a.rank).then(a.at.cmp(&b.at)));
    let mut kept: Vec<Transition> = Vec::new();
    for transition in all {
        let mut same = false;
        for other in kept.iter_mut().filter(|other| other.at.abs_diff(transition.at) <= radius) {
            // Both are one transition: a trough at a step, say. The step may be where the phase begins all the same.
            other.from = other.from.min(transition.from);
            other.to = other.to.max(transition.to);
            same |= (other.shape == Shape::Step) == (transition.shape == Shape::Step);
        }
        if !same && kept.len() < MOST {
            kept.push(transition);
        }
    }
    kept.sort_by_key(|transition| transition.at);
    (kept, near)
}

/// Local minima and maxima; a flat one counts once, at its middle, and the ends of the run count as well.
fn extrema(smooth: &[f64], radius: usize) -> Vec<Transition> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < smooth.len() {
        let here = smooth[start];
        let end = (start + 1..smooth.len()).find(|&at| smooth[at] != here).unwrap_or(smooth.len());
        let sides = [start.checked_sub(1), Some(end)].map(|at| at.and_then(|at| smooth.get(at)));
        let all = |is: fn(&f64, &f64) -> bool| sides.iter().flatten().all(|side| is(&here, side));
        match sides {
            [None, None] => {}
            _ if all(f64::gt) => found.push(extremum(smooth, (start + end - 1) / 2, Shape::Peak, radius)),
            _ if all(f64::lt) => found.push(extremum(smooth, (start + end - 1) / 2, Shape::Trough, radius)),
            _ => {}
        }
        start = end;
    }
    found
}

fn extremum(smooth: &[f64], at: usize, shape: Shape, radius: usize) -> Transition {
    let sign = if shape == Shape::Peak { 1.0 } else { -1.0 };
    let (low, high) = (at.saturating_sub(radius), (at + radius + 1).min(smooth.len()));
    let others = (high - low - 1).max(1) as f64;
    let rank = smooth[low..high].iter().map(|value| sign * (smooth[at] - value)).sum::<f64>() / others;
    // Downhill from it on both sides.
    let (mut from, mut to) = (at, at + 1);
    while from > low && sign * (smooth[from - 1] - smooth[from]) <= 0.0 {
        from -= 1;
    }
    while to < high && sign * (smooth[to] - smooth[to - 1]) <= 0.0 {
        to += 1;
    }
    Transition { at, shape, rank, from, to }
}

/// Places where the neighbourhoods before and after differ more than at all others near by: in their means, and in their
/// medians, which a trough that is shorter than half of a neighbourhood leaves alone.
fn steps(values: &[f64], radius: usize) -> Vec<Transition> {
    let (count, wide) = (values.len(), 2 * radius + 1);
    if count < 2 * wide {
        return Vec::new();
    }
    let mut sums = vec![0.0; count + 1];
    for (at, value) in values.iter().enumerate() {
        sums[at + 1] = sums[at] + value;
    }
    let mean = |from: usize| (sums[from + wide] - sums[from]) / wide as f64;
    let medians: Vec<f64> = values
        .windows(wide)
        .map(|near| {
            let mut near = near.to_vec();
            *near.select_nth_unstable_by(radius, f64::total_cmp).1
        })
        .collect();
    let height: Vec<f64> = (0..=count)
        .map(|at| match at >= wide && at + wide <= count {
            true => (mean(at) - mean(at - wide)).abs().min((medians[at] - medians[at - wide]).abs()),
            false => 0.0,
        })
        .collect();
    (wide..=count - wide)
        .filter(|&at| {
            let near = &height[at - radius..=(at + radius).min(count)];
            height[at] > 0.0 && near.iter().all(|other| *other <= height[at])
        })
        .map(|at| Transition { at, shape: Shape::Step, rank: 0.5 * height[at], from: at, to: at })
        .collect()
}
