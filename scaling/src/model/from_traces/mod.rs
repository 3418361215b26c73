//! Formulae from traces: what PerPreT's users had to write follows from runs of the program at several sizes and numbers
//! of ranks. Computation is fitted in seconds, for each call site before which it lies; communication as calls of the
//! library, whose numbers and lengths are fitted for each call site. The forms are the normal form of Calotoiu, Hoefler,
//! Poke and Wolf, "Using automated performance modeling to find scalability bugs in complex codes" (SC'13, Extra-P),
//! chosen by cross-validation.
mod normal;
mod observe;
mod routines;

pub use normal::{Normal, Term, forms};
pub use observe::{Observed, Site, observe};

use super::error::ModelError;
use crate::fit::{Form, Point, choose};
use phasecast_analyzer::noise::quantile;
use routines::routines;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The fewest different points (size and ranks): a form of one parameter, and a check of its choice.
const FEWEST: usize = 3;
/// Computation that takes less than this share of all is put together with the rest.
const SMALL: f64 = 0.02;
/// A single term that foresees its points this well is not bettered by a second one: what is left is rounding.
const EXACT: f64 = 1e-6;
/// A form that foresees its points no better than this is noise; a constant stands in its place.
const POOR: f64 = 0.3;
/// What fitted times are off by at least.
const LEAST_UNCERTAINTY: f64 = 0.02;
/// Level of the interval that the uncertainty is half of.
const CONFIDENCE: f64 = 0.95;

/// A fitted formula.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Formula {
    /// What it is of: `computation before MPI_Allreduce at cg+0x1234`.
    pub of: String,
    /// The formula, in `p_size` and `n_procs`.
    pub formula: String,
    /// Points that it was fitted to.
    pub points: usize,
    /// Its parameters.
    #[serde(skip)]
    pub parameters: usize,
    /// Root of the mean square of (fitted - measured) / measured.
    pub error: f64,
    /// The same where each point is foreseen from the others; none where they are too few.
    pub left_out: Option<f64>,
}

/// One observed point beside what the formulae say there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Size of the problem.
    pub size: f64,
    /// Ranks.
    pub ranks: u32,
    /// Computation of the slowest rank, in seconds.
    pub computation_s: f64,
    /// The same by the formulae.
    pub fitted_s: f64,
}

/// An application that was derived.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Derivation {
    /// Computation, in seconds.
    pub computation: Vec<Formula>,
    /// Numbers and lengths of calls.
    pub communication: Vec<Formula>,
    /// Observed beside fitted.
    pub checks: Vec<Check>,
    /// Half the width of a 95 % interval of the computation, as a share.
    pub uncertainty: f64,
    /// The application file.
    #[serde(skip)]
    pub file: String,
}

/// Derives an application from what was observed; `name` is its name.
///
/// # Errors
/// If there are fewer than three different points, or nothing can be fitted to some of them.
pub fn derive(name: &str, observed: &[Observed]) -> Result<Derivation, ModelError> {
    let mut places: Vec<(u64, u32)> = observed.iter().map(|o| (o.size.to_bits(), o.ranks)).collect();
    places.sort_unstable();
    places.dedup();
    if places.len() < FEWEST {
        return Err(ModelError::Fit {
            of: name.to_owned(),
            what: format!(
                "{} different points (size and ranks) are fewer than the parameters of a formula and its check need. Give traces at {FEWEST} or more",
                places.len()
            ),
        });
    }
    let all = forms(observed);
    let mut text = String::new();
    let mut computation = Vec::new();
    let mut square = 0.0;
    let most = observed.iter().map(|o| o.computation_s()).fold(0.0, f64::max);
    let small =
        |site: &Site| observed.iter().all(|o| o.computing.get(site).is_none_or(|s| *s < SMALL * o.computation_s()));
    let mut sites: Vec<&Site> = observed.iter().flat_map(|o| o.computing.keys()).collect();
    sites.sort_unstable();
    sites.dedup();
    let (rest, sites): (Vec<&Site>, Vec<&Site>) = sites.into_iter().partition(|site| small(site));
    type Values<'a> = Box<dyn Fn(&Observed) -> f64 + 'a>;
    let mut parts: Vec<(String, Values)> = Vec::new();
    for site in sites {
        parts.push((format!("computation before {site}"), Box::new(|o| o.computing.get(site).copied().unwrap_or(0.0))));
    }
    if !rest.is_empty() {
        let sum = |o: &Observed| rest.iter().filter_map(|site| o.computing.get(*site)).sum();
        parts.push(("computation in other places".into(), Box::new(sum)));
    }
    for (of, values) in &parts {
        if let Some(formula) = fitted(of, observed, &all, values)? {
            let last = observed.iter().map(values).fold(0.0, f64::max);
            let freedom = formula.points.saturating_sub(formula.parameters) as f64;
            let error = quantile(freedom, CONFIDENCE) * formula.left_out.unwrap_or(formula.error);
            square += (error * last / most.max(f64::MIN_POSITIVE)).powi(2);
            let _ = writeln!(text, "# {}: {}", formula.of, quality(&formula));
            let _ = writeln!(text, "comp += {};", formula.formula);
            computation.push(formula);
        }
    }
    let (communication, calls) = communication_of(observed, &all)?;
    let checks = observed.iter().map(|o| Check {
        size: o.size,
        ranks: o.ranks,
        computation_s: o.computation_s(),
        fitted_s: computation.iter().map(|formula| value(&formula.formula, o)).sum(),
    });
    let checks: Vec<Check> = checks.collect();
    // A place that some runs do not pass is fitted to the others: only the whole shows by how much it is off there.
    let uncertainty = square.sqrt().clamp(LEAST_UNCERTAINTY, 1.0).max(missed(&checks));
    let file = file(name, observed, &text, &calls, uncertainty);
    Ok(Derivation { computation, communication, checks, uncertainty, file })
}

/// How far the formulae are off the observed computation: the root of the mean square of the relative errors.
fn missed(checks: &[Check]) -> f64 {
    let known = checks.iter().filter(|check| check.computation_s > 0.0);
    let squares: Vec<f64> = known.map(|check| (check.fitted_s / check.computation_s - 1.0).powi(2)).collect();
    (squares.iter().sum::<f64>() / squares.len().max(1) as f64).sqrt()
}

/// The value of a fitted formula at an observed point.
fn value(formula: &str, at: &Observed) -> f64 {
    use super::formula::{Scope, evaluate, single};
    let values = [("p_size".to_owned(), at.size), ("n_procs".to_owned(), f64::from(at.ranks))].into();
    let scope = Scope { values, type_bytes: 8.0, costs: None };
    single(formula).ok().and_then(|formula| evaluate(&formula, &scope).ok()).unwrap_or(f64::NAN)
}

fn quality(formula: &Formula) -> String {
    let left_out = formula
        .left_out
        .map_or_else(String::new, |error| format!(", {:.1} % foreseeing a point from the others", 100.0 * error));
    format!("{} points, off by {:.1} %{left_out}", formula.points, 100.0 * formula.error)
}

/// The best form for the points at which a value is above 0; none if there is no such point.
fn fitted(
    of: &str,
    observed: &[Observed],
    forms: &[Normal],
    value: &dyn Fn(&Observed) -> f64,
) -> Result<Option<Formula>, ModelError> {
    let points: Vec<Point> = observed
        .iter()
        .map(|o| Point { at: vec![o.size, f64::from(o.ranks)], value: value(o) })
        .filter(|point| point.value > 0.0)
        .collect();
    if points.is_empty() {
        return Ok(None);
    }
    let among = |candidates: &[&dyn Form]| {
        choose(candidates, &points).map_err(|error| ModelError::Fit { of: of.to_owned(), what: error.to_string() })
    };
    // Forms of one term come first, the constant before all.
    let all: Vec<&dyn Form> = forms.iter().map(|form| form as &dyn Form).collect();
    let single = forms.iter().take_while(|form| form.0.len() == 1).count();
    let mut choice = among(&all[..single])?;
    if choice.left_out > EXACT {
        choice = among(&all)?;
    }
    if choice.left_out > POOR && choice.left_out.is_finite() {
        choice = among(&all[..1])?;
    }
    Ok(Some(Formula {
        of: of.to_owned(),
        formula: forms[choice.form].formula(&choice.fitted.parameters),
        points: points.len(),
        parameters: choice.fitted.parameters.len(),
        error: choice.fitted.error,
        left_out: choice.left_out.is_finite().then_some(choice.left_out),
    }))
}

/// Formulae of the numbers and lengths of calls, and the text of the communication.
fn communication_of(observed: &[Observed], forms: &[Normal]) -> Result<(Vec<Formula>, String), ModelError> {
    let mut formulae = Vec::new();
    let mut text = String::new();
    let mut sites: BTreeMap<&Site, ()> = BTreeMap::new();
    for o in observed {
        sites.extend(o.calling.keys().map(|site| (site, ())));
    }
    for (number, site) in sites.into_keys().enumerate() {
        let calls = |o: &Observed| o.calling.get(site).map_or(0.0, |calls| calls.number);
        let bytes = |o: &Observed| o.calling.get(site).map_or(0.0, |calls| calls.bytes / calls.number.max(1.0));
        // A single rank has nobody to communicate with: its calls say nothing.
        let several: Vec<Observed> = observed.iter().filter(|o| o.ranks > 1).cloned().collect();
        let Some(count) = fitted(&format!("calls of {site}"), &several, forms, &calls)? else { continue };
        let length = fitted(&format!("bytes of {site}"), &several, forms, &bytes)?;
        let bytes = length.as_ref().map_or("0".to_owned(), |length| length.formula.clone());
        let _ = writeln!(text, "# {site}: {}", quality(&count));
        let _ = writeln!(text, "calls{number} = {}; bytes{number} = {bytes};", count.formula);
        for routine in routines(&site.procedure) {
            let _ =
                writeln!(text, "comm_time += calls{number} * {};", routine.replace("BYTES", &format!("bytes{number}")));
        }
        formulae.push(count);
        formulae.extend(length);
    }
    Ok((formulae, text))
}

/// The application file.
fn file(name: &str, observed: &[Observed], computation: &str, communication: &str, uncertainty: f64) -> String {
    let largest = observed.iter().map(|o| o.size).fold(0.0, f64::max);
    let host = observed.first().map(|o| o.host.clone()).unwrap_or_default();
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let mut text = format!(
        "# Derived by `phasecast model fit` from {} traces. Computation is in seconds on the machine where they were made.\n",
        observed.len()
    );
    let _ = writeln!(text, "format = {}", super::application::FORMAT);
    let _ = writeln!(text, "application = {}", quoted(name));
    let _ = writeln!(text, "type = \"double\"\nunit = \"seconds\"\nsize = {largest:?}");
    let _ = writeln!(text, "measured_on = {}\nuncertainty = {uncertainty:.4}\n", quoted(&host));
    let plain = |text: &str| text.replace("'''", "\"");
    let _ = writeln!(text, "computation = '''\ncomp = 0;\n{}'''\n", plain(computation));
    let _ = writeln!(text, "communication = '''\ncomm_time = 0;\n{}'''", plain(communication));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of size 1 with these ranks, and what they compute before two sites.
    fn runs(computing: [(u32, f64, Option<f64>); 4]) -> Vec<Observed> {
        let site = |at: &str| Site { procedure: "MPI_Barrier".into(), at: at.into() };
        let run = |(ranks, one, other): (u32, f64, Option<f64>)| Observed {
            size: 1.0,
            ranks,
            computing: [Some((site("one"), one)), other.map(|s| (site("other"), s))].into_iter().flatten().collect(),
            ..Observed::default()
        };
        computing.map(run).to_vec()
    }

    #[test]
    fn a_place_that_some_runs_do_not_pass_makes_the_formulae_uncertain() {
        let runs = runs([(1, 4.0, Some(1.0)), (2, 2.0, Some(1.0)), (4, 1.0, None), (8, 0.5, None)]);
        let derived = derive("heat", &runs).expect("formulae");
        assert!((missed(&derived.checks) - (5f64 / 4.0).sqrt()).abs() < 1e-6, "{:?}", derived.checks);
        assert_eq!(derived.uncertainty, missed(&derived.checks));
    }

    #[test]
    fn few_points_make_a_formula_the_more_uncertain() {
        let derived = derive("heat", &runs([(1, 1.0, None), (2, 1.03, None), (4, 0.98, None), (4, 0.98, None)]));
        let derived = derived.expect("formulae");
        let [Formula { points: 4, left_out: Some(error), .. }] = derived.computation[..] else {
            panic!("{:?}", derived.computation)
        };
        // Student's distribution with at most 3 degrees of freedom.
        assert!(derived.uncertainty >= 3.18 * error && error > 0.005, "{derived:?}");
    }
}
