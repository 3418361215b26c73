//! Whether a machine has changed since it was measured: which costs lie outside the spreads of both measurements.
use super::{Cost, Costs, Kernel, Machine, Place};
use serde::Serialize;

/// Two medians differ if they lie further apart than so many times the sum of their spreads...
const SPREADS: f64 = 3.0;
/// ... and, beyond that, further than this share of the earlier one...
const SHARE: f64 = 0.1;
/// ... and this many seconds, what clocks can tell.
const CLOCK_S: f64 = 20e-9;
/// A table has changed if more than this share of its points differ in the same direction.
const POINTS: f64 = 0.5;

/// One thing of a machine, before and now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// What: `within.send`, `MPI_Allreduce (2)`, `kernel dense`, `mpi`.
    pub what: String,
    /// Before and now in words, where it is no table of costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<(String, String)>,
    /// Points outside the spreads, in the direction in which more of them lie.
    pub outside: usize,
    /// Points compared.
    pub of: usize,
    /// Median over the points of the cost now by the cost before.
    pub times: f64,
    /// Whether this counts as a change.
    pub changed: bool,
}

/// All that can be compared of two measurements of a machine. It has changed if any of them has; the names of its hosts and
/// the time of the measurement do not count.
pub fn changes(before: &Machine, now: &Machine) -> Vec<Change> {
    let mut all = Vec::new();
    let facts = |machine: &Machine| {
        let identity = &machine.identity;
        let places: Vec<String> = machine.links.iter().map(|link| format!("{:?}", link.place).to_lowercase()).collect();
        [
            ("cpu", identity.cpu.clone()),
            ("cores", identity.cores.to_string()),
            ("mpi", identity.mpi.clone()),
            ("ranks", identity.ranks.to_string()),
            ("places of messages", places.join(" and ")),
            ("ranks are stopped", machine.stops.as_ref().map_or("no", |_| "yes").to_owned()),
        ]
    };
    for ((what, old), (_, new)) in facts(before).into_iter().zip(facts(now)) {
        // A machine file that was written by hand need not say.
        if old != new && !old.is_empty() && old != "0" {
            all.push(fact(what, old, new));
        }
    }
    for old in &before.links {
        let place = match old.place {
            Place::Within => "within",
            Place::Between => "between",
        };
        let Some(new) = now.link(old.place) else { continue };
        let (before, after) = (old.eager_bytes, new.eager_bytes);
        let apart = |a: u64, b: u64| a.abs_diff(b) as f64 > SHARE * a as f64;
        if before.is_some() != after.is_some() || before.zip(after).is_some_and(|(a, b)| apart(a, b)) {
            let words = |bytes: Option<u64>| bytes.map_or("none".into(), |bytes| bytes.to_string());
            all.push(fact(&format!("{place}.eager_bytes"), words(before), words(after)));
        }
        for ((name, before), (_, after)) in old.columns().into_iter().zip(new.columns()) {
            all.extend(tables(format!("{place}.{name}"), before, after));
        }
    }
    for old in &before.collectives {
        let new = now.collectives.iter().find(|new| (&new.name, new.ranks) == (&old.name, old.ranks));
        all.extend(new.and_then(|new| tables(format!("{} ({})", old.name, old.ranks), &old.costs, &new.costs)));
    }
    for old in &before.kernels {
        let point = |kernel: &Kernel| Costs(vec![Cost { bytes: 0, seconds: kernel.seconds, spread: kernel.spread }]);
        let new = now.kernels.iter().find(|new| new.name == old.name);
        all.extend(new.and_then(|new| tables(format!("kernel {}", old.name), &point(old), &point(new))));
    }
    all
}

fn fact(what: &str, before: String, now: String) -> Change {
    Change { what: what.into(), facts: Some((before, now)), outside: 1, of: 1, times: 1.0, changed: true }
}

/// Two tables, at the points of the first that the second reaches; none where there are none.
fn tables(what: String, before: &Costs, now: &Costs) -> Option<Change> {
    let reach = now.0.last()?.bytes;
    let (mut slower, mut faster, mut times) = (0, 0, Vec::new());
    for old in before.0.iter().filter(|old| old.bytes <= reach) {
        let seconds = now.seconds(old.bytes)?;
        let nearest = now.0.iter().min_by_key(|cost| cost.bytes.abs_diff(old.bytes))?;
        let room = SPREADS * (old.spread + nearest.spread) + SHARE * old.seconds + CLOCK_S;
        slower += usize::from(seconds > old.seconds + room);
        faster += usize::from(seconds < old.seconds - room);
        times.push(if old.seconds > 0.0 { seconds / old.seconds } else { 1.0 });
    }
    times.sort_by(f64::total_cmp);
    let (outside, of) = (slower.max(faster), times.len());
    let times = *times.get(of / 2)?;
    Some(Change { what, facts: None, outside, of, times, changed: outside as f64 > POINTS * of as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Collective;

    fn machine(seconds: &[f64]) -> Machine {
        let points = seconds.iter().zip([0u64, 8, 64, 512]);
        let costs = Costs(points.map(|(&seconds, bytes)| Cost { bytes, seconds, spread: 1e-7 }).collect());
        let empty = Costs::default();
        let all = Collective { name: "MPI_Bcast".into(), ranks: 2, costs, root: empty.clone(), others: empty };
        Machine { collectives: vec![all], ..Machine::empty() }
    }

    fn changed(before: &Machine, now: &Machine) -> Vec<String> {
        changes(before, now).into_iter().filter(|change| change.changed).map(|change| change.what).collect()
    }

    #[test]
    fn a_table_has_changed_where_most_of_it_lies_outside_the_spreads() {
        let old = machine(&[1e-6, 1e-6, 2e-6, 4e-6]);
        assert!(changed(&old, &old).is_empty());
        // 3 * 0.2 us + 10 % + 20 ns: 0.72 us apart is still inside.
        assert!(changed(&old, &machine(&[1.7e-6, 1.7e-6, 2.8e-6, 5e-6])).is_empty());
        assert_eq!(changed(&old, &machine(&[1.8e-6, 1.8e-6, 3e-6, 5e-6])), ["MPI_Bcast (2)"]);
        // Half of the points is no change, nor are as many slower as faster.
        assert!(changed(&old, &machine(&[1.8e-6, 1.8e-6, 2e-6, 4e-6])).is_empty());
        assert!(changed(&old, &machine(&[9e-6, 9e-6, 0.1e-6, 0.1e-6])).is_empty());
        let found = changes(&old, &machine(&[3e-6, 3e-6, 6e-6, 12e-6]));
        assert_eq!((found.len(), found[0].outside, found[0].of), (1, 4, 4));
        assert!((found[0].times - 3.0).abs() < 1e-9);
    }

    #[test]
    fn facts_are_compared_and_hosts_are_not() {
        let mut old = machine(&[1e-6]);
        old.identity.mpi = "Open MPI 4.1".into();
        let mut new = old.clone();
        new.identity.hosts = vec!["elsewhere".into()];
        assert!(changed(&old, &new).is_empty());
        new.identity.mpi = "MPICH 4.0".into();
        assert_eq!(changed(&old, &new), ["mpi"]);
    }
}
