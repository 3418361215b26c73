//! From segments to phases: numbers, weights, relevance, plan, coverage, verdict. Both methods end here.
use crate::marker::{AIMS, PAYS, REPEATS, needed};
use crate::matching::FastMap;
use crate::model::{Phase, Verdict};
use crate::plan;
use phasecast_trace::PhaseId;

/// Phases that are kept apart; beyond that the irrelevant ones are put together.
pub const MOST_PHASES: usize = 2000;

/// The occurrences of a class.
#[derive(Clone, Debug, Default)]
pub struct Class {
    /// Their times on the slowest rank in seconds, in order.
    pub times: Vec<f64>,
    /// Their statistics, where `times` holds only the first.
    pub stats: Option<crate::marker::Times>,
    /// Events of an occurrence, all ranks together.
    pub events: u64,
    /// Its structure in short.
    pub structure: String,
    /// For each rank, the hash of its symbols, or 0.
    pub hashes: Vec<u64>,
    /// Whether it is relevant on any rank, where that is not judged by `times` alone.
    pub relevant: bool,
}

/// How the occurrences to be measured are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampling {
    /// As many as the error aimed at needs (a share of the run), spread over it; one-offs whole.
    Spread(f64),
    /// The first (seed 004).
    First,
}

/// Phases with what is said of all of them together.
pub struct Summary {
    /// The phases, by id.
    pub phases: Vec<Phase>,
    /// See [`crate::model::Analysis::explained_s`].
    pub explained_s: f64,
    /// See [`crate::model::Analysis::planned_s`].
    pub planned_s: f64,
    /// See [`crate::model::Analysis::coverage`].
    pub coverage: f64,
    /// See [`crate::model::Analysis::residual_s`].
    pub residual_s: f64,
    /// The verdict.
    pub verdict: Verdict,
}

/// Makes phases of classes, which are given in the order of their first occurrence.
pub fn summarise(classes: &[Class], run_s: f64, relevance: f64, sampling: Sampling) -> Summary {
    let stats: Vec<_> = classes.iter().map(|class| class.stats.unwrap_or_else(|| plan::times(&class.times))).collect();
    // Where classes come with their statistics, whoever made them has judged; many irrelevant ones may be put together.
    let heavy = |class: &Class, sum: f64| class.stats.is_none() && sum >= relevance * run_s;
    let relevant: Vec<bool> =
        classes.iter().zip(&stats).map(|(class, t)| class.relevant || heavy(class, t.sum)).collect();
    let all: f64 =
        stats.iter().zip(&relevant).filter(|(t, r)| **r && t.count >= REPEATS).map(|(t, _)| t.spread()).sum();
    let (mut phases, mut covered, mut estimated, mut planned_s) = (Vec::new(), 0.0, 0.0, 0.0);
    for (id, ((class, times), relevant)) in classes.iter().zip(&stats).zip(relevant).enumerate() {
        let mut planned = Vec::new();
        if relevant && !class.times.is_empty() {
            planned = match sampling {
                Sampling::First => vec![0],
                Sampling::Spread(_) if times.count < REPEATS => (0..times.count).collect(),
                Sampling::Spread(aim) => {
                    let aim_s = aim * run_s;
                    plan::choose(&class.times, needed(times, all, aim_s), 0.25 * aim_s)
                }
            };
            covered += times.sum;
            estimated += times.count as f64 * plan::mean(&class.times, &planned);
            planned_s += planned.iter().map(|&at| class.times[at as usize]).sum::<f64>();
        }
        phases.push(Phase {
            id: PhaseId(id as u32),
            weight: times.count,
            relevant,
            one_off: times.count == 1,
            time_s: times.mean(),
            sd_s: times.sd(),
            share: times.sum / run_s.max(1e-9),
            events: class.events,
            structure: class.structure.clone(),
            hashes: class.hashes.clone(),
            planned,
        });
    }
    let explained_s = if covered > 0.0 { estimated * run_s / covered } else { 0.0 };
    let coverage = covered / run_s.max(1e-9);
    let verdict = judge(&phases, coverage, planned_s / run_s.max(1e-9), sampling);
    Summary { phases, explained_s, planned_s, coverage, residual_s: (run_s - covered).max(0.0), verdict }
}

fn judge(phases: &[Phase], coverage: f64, planned: f64, sampling: Sampling) -> Verdict {
    let repeating: Vec<&Phase> = phases.iter().filter(|p| p.relevant && p.weight >= REPEATS).collect();
    let share: f64 = repeating.iter().map(|p| p.share).sum();
    let percent = |x: f64| format!("{:.0} %", 100.0 * x);
    let advice = "run it in full; a live prediction can still scale by its progress, with a wide interval";
    let (pays, reason) = if repeating.is_empty() {
        (
            false,
            format!("nothing in this program repeats often enough to be measured, so no signature pays here: {advice}"),
        )
    } else if coverage < 0.5 {
        let covered = percent(coverage);
        (
            false,
            format!(
                "what repeats, and what can be measured once, covers only {covered} of the run, so no signature pays here: {advice}"
            ),
        )
    } else if planned > PAYS {
        let planned = percent(planned);
        (false, format!("{planned} of the run would have to be measured, so no signature pays here: {advice}"))
    } else {
        let (count, share, planned) = (repeating.len(), percent(share), percent(planned));
        let phase = if count == 1 { "phase covers" } else { "phases cover" };
        let rough = match sampling {
            Sampling::Spread(aim) if aim > AIMS[0] => format!(" to {}: its times scatter", percent(aim)),
            _ => String::new(),
        };
        (true, format!("{count} repeating {phase} {share} of the run; measuring {planned} of it predicts it{rough}"))
    };
    Verdict { pays, reason, difference: None }
}

/// Numbers keys by their first occurrence; with too many of them, those for which `minor` holds share the number that
/// is returned beside.
pub fn number(keys: &[u64], minor: impl Fn(u64) -> bool) -> (Vec<u32>, usize, Option<u32>) {
    let mut different: FastMap<u64, ()> = FastMap::default();
    keys.iter().for_each(|&key| {
        different.insert(key, ());
    });
    let merge = different.len() > MOST_PHASES;
    let mut ids: FastMap<u64, u32> = FastMap::default();
    let (mut next, mut various) = (0, None);
    let numbered = keys
        .iter()
        .map(|&key| {
            if merge && minor(key) {
                return *various.get_or_insert_with(|| {
                    next += 1;
                    next - 1
                });
            }
            *ids.entry(key).or_insert_with(|| {
                next += 1;
                next - 1
            })
        })
        .collect();
    (numbered, next as usize, various)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks that whoever made the classes has put together, as each is too short to matter, are long together.
    #[test]
    fn what_is_put_together_is_not_relevant() {
        let of = |relevant| {
            let stats = plan::times(&[1e-3; 1000]);
            let (structure, hashes) = ("short blocks".into(), vec![0]);
            Class { times: vec![1e-3], stats: Some(stats), events: 1, structure, hashes, relevant }
        };
        let covered = |class| summarise(&[class], 1.0, 0.01, Sampling::First).coverage;
        assert!(covered(of(false)) == 0.0 && covered(of(true)) > 0.9);
    }
}
