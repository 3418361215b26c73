//! Times of phases from runs: of traces by the phases of their profiles, of analyses by the phases of PAS2P.
//!
//! Phases of a profile are matched by their order, as each run has as many of them: as many as foresee the program best. Phases of PAS2P are matched by their
//! structure, in the order of their first occurrence: the same kinds of communication in about as many occurrences,
//! whatever the directions, which depend on the number of ranks. What is in no matched phase is a part of its own.
//! A run of one rank shows neither: its time is shared out by the busy time of the phases in the smallest run that does.
use super::ScaleError;
use super::runs::{Runs, ScaledPhase};
use super::scale::foresight;
use crate::phases::{self, Kind, Phase, matching};
use crate::profile::Profile;
use phasecast_analyzer::Analysis;
use phasecast_trace::model::file_name;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The profile of one run, with its phases.
#[derive(Debug)]
pub struct ProfiledRun {
    /// The trace.
    pub path: PathBuf,
    /// Its program.
    pub program: String,
    /// The profile.
    pub profile: Profile,
}

/// Name of what is in no phase.
const REST: &str = "rest";

fn alike<'a>(runs: impl Iterator<Item = (&'a PathBuf, &'a str)>) -> Result<String, ScaleError> {
    let mut program: Option<&str> = None;
    for (path, name) in runs {
        let first = *program.get_or_insert(name);
        // NPB and its like have the class or the number of ranks in their names; only what is before the first dot counts.
        let stem = |name: &'a str| file_name(name).split('.').next().unwrap_or_default();
        if stem(first) != stem(name) {
            return Err(ScaleError::Program { path: path.clone(), other: name.into(), program: first.into() });
        }
    }
    Ok(program.unwrap_or_default().to_owned())
}

/// The most phases among which the number is chosen.
const MOST: usize = 24;
/// More phases must make the whole program foreseen so much better, and each of them by `EACH` more: of many ways to cut a
/// run, one foresees the others well by chance.
const WORTH: f64 = 0.8;
const EACH: f64 = 0.1;

/// The phases of profiles. Without `settings.count` there are as many as let the signatures foresee best the runs that
/// are left out (see [`foresight`]), or, with fewer than three runs, as fit the profiles best.
///
/// # Errors
/// If the runs are of different programs, cannot be cut into `settings.count` phases each, or as [`Runs::checked`].
pub fn of_profiles(runs: &[ProfiledRun], settings: &phases::Settings, seed_forms: bool) -> Result<Runs, ScaleError> {
    let program = alike(runs.iter().map(|run| (&run.path, run.program.as_str())))?;
    // A run of one rank is busy or in MPI: it has no phases that could be those of the others.
    let seen: Vec<&ProfiledRun> = runs.iter().filter(|run| run.profile.ranks > 1).collect();
    let found: Vec<phases::Found> = seen.iter().map(|run| phases::find(&run.profile.series, settings)).collect();
    let made = |matched: &[&[Phase]]| matched_runs(program.clone(), runs, &seen, matched).checked();
    let whole = made(&[])?;
    if let Some(count) = settings.count {
        return match matching::across(&found, Some(count)) {
            Some(matched) => made(&matched),
            None if count > 1 => Err(ScaleError::Phases(count)),
            None => Ok(whole),
        };
    }
    let Some(mut least) = foresight(&whole, seed_forms) else {
        return matching::across(&found, None).map_or(Ok(whole), |matched| made(&matched));
    };
    let mut best = whole;
    for matched in matching::every(&found, MOST) {
        // A number of phases of which some run has one of no time is none.
        let Ok(candidate) = made(&matched) else { continue };
        let charge = 1.0 + EACH * (candidate.phases.len() - 1) as f64;
        let error = charge * foresight(&candidate, seed_forms).unwrap_or(f64::INFINITY);
        if error < WORTH * least {
            (best, least) = (candidate, error);
        }
    }
    Ok(best)
}

/// The runs with the phases that were matched in those `seen`; the whole run is one phase if there are none.
fn matched_runs(program: String, runs: &[ProfiledRun], seen: &[&ProfiledRun], matched: &[&[Phase]]) -> Runs {
    let count = matched.first().map_or(1, |phases| phases.len());
    let busy = |run: &ProfiledRun, phase: &Phase| -> f64 {
        run.profile.series.points[phase.start..phase.end].iter().map(|point| point.busy_ns as f64).sum()
    };
    let smallest = (0..matched.len()).min_by_key(|&at| seen[at].profile.ranks);
    let shares: Vec<f64> = match smallest {
        Some(at) => {
            let all: f64 = matched[at].iter().map(|phase| busy(seen[at], phase)).sum();
            matched[at].iter().map(|phase| (busy(seen[at], phase) / all.max(1.0)).max(1e-6)).collect()
        }
        None => vec![1.0],
    };
    let mut shared_out = Vec::new();
    let mut times: Vec<Vec<f64>> = Vec::new();
    for run in runs {
        let own = seen.iter().position(|other| std::ptr::eq(*other, run)).and_then(|at| matched.get(at));
        times.push(match own {
            Some(phases) => phases.iter().map(|phase| phase.time_s).collect(),
            None => {
                if count > 1 {
                    shared_out.push(run.profile.ranks);
                }
                shares.iter().map(|share| share * run.profile.length_s()).collect()
            }
        });
    }
    let phases = (0..count).map(|at| ScaledPhase {
        name: format!("P{}", at + 1),
        kind: if matched.is_empty() { Kind::Other } else { matching::kind_of(matched, at) },
        times: times.iter().map(|times| times[at]).collect(),
        weight: 1,
    });
    Runs {
        program,
        processors: runs.iter().map(|run| run.profile.ranks).collect(),
        names: runs.iter().map(|run| run.path.display().to_string()).collect(),
        phases: phases.collect(),
        shared_out,
        notes: Vec::new(),
        unit_s: 1.0,
    }
}

/// The phases of analyses.
///
/// # Errors
/// If the runs are of different programs, or as [`Runs::checked`].
pub fn of_analyses(runs: &[(PathBuf, Analysis)]) -> Result<Runs, ScaleError> {
    let program = alike(runs.iter().map(|(path, analysis)| (path, analysis.program.as_str())))?;
    let parts: Vec<Vec<Part>> = runs.iter().map(|(_, analysis)| relevant(analysis)).collect();
    let with: Vec<usize> = (0..runs.len()).filter(|&at| runs[at].1.ranks > 1 && !parts[at].is_empty()).collect();
    let reference = with.iter().copied().max_by_key(|&at| runs[at].1.ranks);
    // For each phase of the reference its partner in each run that has phases.
    let mut kept: Vec<(usize, Vec<Option<usize>>)> = Vec::new();
    if let Some(reference) = reference {
        let pairs: Vec<Vec<Option<usize>>> = (0..runs.len())
            .map(|at| match with.contains(&at) {
                true => align(&parts[reference], &parts[at]),
                false => vec![None; parts[reference].len()],
            })
            .collect();
        for at in 0..parts[reference].len() {
            let partners: Vec<Option<usize>> = pairs.iter().map(|pairs| pairs[at]).collect();
            if with.iter().all(|&run| partners[run].is_some()) {
                kept.push((at, partners));
            }
        }
    }
    let mut notes = Vec::new();
    let left = reference.map_or(0, |reference| parts[reference].len()) - kept.len();
    if left > 0 {
        notes.push(format!("{left} phases have no partner in every run: their time is in the {REST}"));
    }
    let shared_out: Vec<u32> = (0..runs.len()).filter(|at| !with.contains(at)).map(|at| runs[at].1.ranks).collect();
    let smallest = with.iter().copied().min_by_key(|&at| runs[at].1.ranks);
    let mut phases: Vec<ScaledPhase> = kept
        .iter()
        .map(|(at, partners)| {
            let of = |run: usize, partner: usize| parts[run][partner].time_s;
            let time = |run: usize| match (partners[run], smallest) {
                (Some(partner), _) => of(run, partner),
                // A run without phases has the shares of the smallest one that has them.
                (None, Some(small)) => {
                    let share = partners[small].map_or(0.0, |partner| of(small, partner)) / runs[small].1.run_time_s;
                    share * runs[run].1.run_time_s
                }
                (None, None) => 0.0,
            };
            let part = reference.map(|reference| &parts[reference][*at]);
            ScaledPhase {
                name: part.map_or_else(String::new, |part| part.structure.clone()),
                kind: Kind::Other,
                times: (0..runs.len()).map(time).collect(),
                weight: part.map_or(1, |part| part.weight),
            }
        })
        .collect();
    let rest = |run: usize| {
        let whole = runs[run].1.run_time_s;
        (whole - phases.iter().map(|phase| phase.times[run]).sum::<f64>()).max(1e-6 * whole)
    };
    let times = (0..runs.len()).map(rest).collect();
    phases.push(ScaledPhase { name: REST.into(), kind: Kind::Other, times, weight: 1 });
    Runs {
        program,
        processors: runs.iter().map(|(_, analysis)| analysis.ranks).collect(),
        names: runs.iter().map(|(path, _)| path.display().to_string()).collect(),
        phases,
        shared_out,
        notes,
        unit_s: 1.0,
    }
    .checked()
}

/// A phase of PAS2P as matching sees it.
struct Part {
    structure: String,
    words: BTreeSet<String>,
    weight: u64,
    time_s: f64,
}

fn relevant(analysis: &Analysis) -> Vec<Part> {
    let part = |phase: &phasecast_analyzer::Phase| Part {
        words: words(&phase.structure),
        structure: phase.structure.clone(),
        weight: phase.weight,
        time_s: phase.weight as f64 * phase.time_s,
    };
    analysis.phases.iter().filter(|phase| phase.relevant && phase.weight > 1).map(part).collect()
}

/// The kinds of communication in a structure: without directions, repetitions and order.
fn words(structure: &str) -> BTreeSet<String> {
    let mut depth_of_direction = 0;
    let mut words = BTreeSet::new();
    let mut word = String::new();
    for c in structure.chars().chain([' ']) {
        if depth_of_direction > 0 {
            depth_of_direction += i32::from(c == '(') - i32::from(c == ')');
        } else if c.is_alphabetic() || c == '_' {
            word.push(c);
        } else {
            // What stands in parentheses right behind a word are directions.
            if c == '(' && !word.is_empty() {
                depth_of_direction = 1;
            }
            if !word.is_empty() {
                words.insert(std::mem::take(&mut word));
            }
        }
    }
    words
}

/// How alike two phases are, 0 to 1.
fn similarity(a: &Part, b: &Part) -> f64 {
    let common = a.words.intersection(&b.words).count() as f64;
    let all = a.words.union(&b.words).count().max(1) as f64;
    let (few, many) = (a.weight.min(b.weight) as f64, a.weight.max(b.weight).max(1) as f64);
    (common / all) * (few / many).sqrt()
}

/// Phases less alike than this are not the same.
const ALIKE: f64 = 0.3;

/// For each of `ours` its partner in `theirs`, in the same order, so that all together are most alike.
fn align(ours: &[Part], theirs: &[Part]) -> Vec<Option<usize>> {
    let (n, m) = (ours.len(), theirs.len());
    let mut best = vec![0.0; (n + 1) * (m + 1)];
    let at = |i: usize, j: usize| i * (m + 1) + j;
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            let alike = similarity(&ours[i], &theirs[j]);
            let paired = if alike >= ALIKE { alike + best[at(i + 1, j + 1)] } else { 0.0 };
            best[at(i, j)] = paired.max(best[at(i + 1, j)]).max(best[at(i, j + 1)]);
        }
    }
    let (mut i, mut j, mut partners) = (0, 0, vec![None; n]);
    while i < n && j < m {
        let here = best[at(i, j)];
        if here == best[at(i + 1, j)] {
            i += 1;
        } else if here == best[at(i, j + 1)] {
            j += 1;
        } else {
            partners[i] = Some(j);
            (i, j) = (i + 1, j + 1);
        }
    }
    partners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_alike_whatever_their_directions() {
        let of = |text: &str| words(text).into_iter().collect::<Vec<_>>();
        assert_eq!(of("(send(E) recv(W))^160 allreduce"), ["allreduce", "recv", "send"]);
        assert_eq!(of("send(N) recv(+3)^2 bcast"), ["bcast", "recv", "send"]);
        assert!(of("").is_empty());
    }

    #[test]
    fn phases_are_paired_in_order() {
        let part = |text: &str, weight| Part { structure: text.into(), words: words(text), weight, time_s: 1.0 };
        let ours = [part("send recv", 10), part("allreduce", 5), part("send recv", 20)];
        let theirs = [part("send(E) recv(W)", 10), part("bcast", 2), part("send recv", 20)];
        assert_eq!(align(&ours, &theirs), [Some(0), None, Some(2)]);
    }
}
