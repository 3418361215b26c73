//! Signatures of all phases, and what follows from them for more processors (seed 003, section 3.1, Table 2).
use super::ScaleError;
use super::forms::Signature;
use super::runs::{Runs, ScaledPhase};
use crate::fit::bootstrap::quantile;
use crate::fit::{Choice, Draws, FitError, Fitted, Form, Point, Random, choose, fit, left_out};
use crate::phases::Kind;
use serde::Serialize;

/// From run to run a phase's time scatters by at least this share.
const FLOOR: f64 = 0.01;
/// Sets of points that a bootstrap draws.
const DRAWS: usize = 200;
/// Forms that foresee left-out points not much worse than the chosen one are possible, too.
const POSSIBLE: f64 = 2.0;

/// How signatures are fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The numbers of processors to foresee.
    pub to: Vec<u32>,
    /// The seed's forms only: a line for full utilisation, a constant for sequential phases, equation (1) for the rest.
    pub seed_forms: bool,
    /// Level of the intervals.
    pub confidence: f64,
    /// Where the drawing of random numbers begins.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { to: Vec::new(), seed_forms: false, confidence: 0.95, seed: 11_900 }
    }
}

/// What is foreseen of a phase or program at some number of processors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// The number.
    pub processors: u32,
    /// The time, in the unit of the runs.
    pub time: f64,
    /// Where it lies.
    pub interval: [f64; 2],
    /// The true time, where it is known.
    pub actual: Option<f64>,
}

impl Forecast {
    /// |foreseen - actual| / actual.
    pub fn error(&self) -> Option<f64> {
        self.actual.filter(|actual| *actual > 0.0).map(|actual| (self.time - actual).abs() / actual)
    }
}

/// A phase with its signature.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseSignature {
    /// The phase.
    #[serde(flatten)]
    pub phase: ScaledPhase,
    /// The form of its signature.
    pub form: Signature,
    /// k; k1 and k2; or k1, k2 and k3.
    pub parameters: Vec<f64>,
    /// Root of the mean square of the relative errors at the runs.
    pub fit_error: f64,
    /// The same at runs that were left out of the fit; none with too few runs.
    pub left_out_error: Option<f64>,
    /// What is foreseen.
    pub forecasts: Vec<Forecast>,
}

impl PhaseSignature {
    /// Its time at a number of processors, in the unit of the runs.
    pub fn time(&self, processors: f64, seed: bool) -> f64 {
        let form = self.form.form(seed);
        Fitted { parameters: self.parameters.clone(), error: 0.0 }.at(form.as_ref(), &[processors])
    }

    /// The most that it can be faster with any number of processors than at `processors`; none if there is no bound.
    pub fn bound(&self, processors: f64) -> Option<f64> {
        let here = self.time(processors, true);
        match self.form {
            Signature::Line | Signature::Root => None,
            Signature::Constant => Some(1.0),
            Signature::Hyperbola => (self.parameters[0] > 0.0).then(|| here / self.parameters[0]),
            // The least time is where p grows no further: the derivative of k log2 p + k2 / p is 0 at k2 ln 2 / k.
            Signature::Tree | Signature::Sum => {
                let k = self.parameters[if self.form == Signature::Tree { 0 } else { 2 }];
                let best = (self.parameters[1] * std::f64::consts::LN_2 / k).max(1.0);
                (k > 0.0).then(|| here / self.time(best, true).min(here))
            }
        }
    }
}

/// A program with the signatures of its phases.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaled {
    /// What they are fitted to.
    pub runs: Runs,
    /// The phases.
    pub phases: Vec<PhaseSignature>,
    /// The whole program.
    pub forecasts: Vec<Forecast>,
    /// For each forecast, half-widths by source: the scatter of the runs, and the reach of the extrapolation.
    pub halves: Vec<[f64; 2]>,
    /// Whether only the seed's forms were used.
    pub seed_forms: bool,
    /// The phase that holds the program back first: it takes the largest share of the time at the largest number of
    /// processors, of those that gain less than the others. By its place.
    pub holds_back: Option<usize>,
}

/// Fits signatures to all phases and foresees the program at other numbers of processors. `actual` knows true times: of a
/// phase (by its place) at a number of processors.
///
/// # Errors
/// If a form cannot be fitted, or a number of processors is 0.
pub fn scale(
    mut runs: Runs,
    settings: &Settings,
    actual: &dyn Fn(usize, u32) -> Option<f64>,
) -> Result<Scaled, ScaleError> {
    if settings.to.contains(&0) {
        return Err(ScaleError::Processors("0".into()));
    }
    let mut random = Random::new(settings.seed);
    let (mut phases, mut draws) = (Vec::new(), vec![vec![0.0; DRAWS]; settings.to.len()]);
    let mut notes = Vec::new();
    for (at, phase) in runs.phases.iter().enumerate() {
        let known = |processors| actual(at, processors);
        phases.push(one(phase, &runs.processors, settings, &known, &mut random, &mut draws, &mut notes)?);
    }
    runs.notes.append(&mut notes);
    let (mut forecasts, mut halves) = (Vec::new(), Vec::new());
    let reach = reach(&runs, settings);
    for (at, (&processors, mut draws)) in settings.to.iter().zip(draws).enumerate() {
        let time: f64 = phases.iter().map(|phase| phase.forecasts[at].time).sum();
        let actual = phases.iter().map(|phase| phase.forecasts[at].actual).sum::<Option<f64>>();
        draws.sort_by(f64::total_cmp);
        let tail = 0.5 * (1.0 - settings.confidence);
        let (low, high) = (quantile(&draws, tail), quantile(&draws, 1.0 - tail));
        // How far the largest run was missed from the others grows with every doubling beyond it.
        let largest = f64::from(runs.processors[runs.processors.len() - 1]);
        let doublings = (f64::from(processors) / largest).log2().max(0.0);
        let wide = reach * doublings * time;
        let interval = [(time - (time - low).max(0.0).hypot(wide)).max(0.0), time + (high - time).max(0.0).hypot(wide)];
        forecasts.push(Forecast { processors, time, interval, actual });
        halves.push([0.5 * (high - low).max(0.0), wide]);
    }
    let holds_back = holds_back(&phases, &runs, settings);
    Ok(Scaled { runs, phases, forecasts, halves, seed_forms: settings.seed_forms, holds_back })
}

/// The forms that a phase may have.
fn forms(kind: Kind, seed: bool) -> Vec<Signature> {
    match (kind, seed) {
        (Kind::Full, true) => vec![Signature::Line],
        (Kind::Sequential, true) => vec![Signature::Constant],
        (Kind::Other, true) => vec![Signature::Hyperbola],
        (Kind::Full, false) => vec![Signature::Line, Signature::Hyperbola],
        (Kind::Sequential, false) => vec![Signature::Constant, Signature::Hyperbola],
        (Kind::Other, false) => Signature::ALL.to_vec(),
    }
}

/// The form that foresees left-out points best. Of two points none can be left out for the seed's form of two parameters:
/// it is taken where none of a single parameter is as near to both.
fn chosen(kind: Kind, names: &[Signature], all: &[&dyn Form], points: &[Point]) -> Result<Choice, FitError> {
    let choice = choose(all, points)?;
    let seeds = names.iter().position(|name| *name == Signature::Hyperbola);
    let Some(form) = seeds.filter(|_| kind == Kind::Other && points.len() == 2 && choice.fitted.error > FLOOR) else {
        return Ok(choice);
    };
    let nearer = fit(all[form], points).ok().filter(|fitted| fitted.error < choice.fitted.error);
    Ok(nearer.map_or(choice, |fitted| Choice { form, fitted, left_out: f64::INFINITY }))
}

fn one(
    phase: &ScaledPhase,
    processors: &[u32],
    settings: &Settings,
    actual: &dyn Fn(u32) -> Option<f64>,
    random: &mut Random,
    totals: &mut [Vec<f64>],
    notes: &mut Vec<String>,
) -> Result<PhaseSignature, ScaleError> {
    let failed = |source| ScaleError::Fit { phase: phase.name.clone(), source };
    let points: Vec<Point> =
        processors.iter().zip(&phase.times).map(|(p, time)| Point::new(f64::from(*p), *time)).collect();
    let names = forms(phase.kind, settings.seed_forms);
    let mut owned: Vec<Box<dyn Form>> = names.iter().map(|name| name.form(settings.seed_forms)).collect();
    let mut all: Vec<&dyn Form> = owned.iter().map(AsRef::as_ref).collect();
    let mut choice = chosen(phase.kind, &names, &all, &points).map_err(failed)?;
    let time = |p: &u32| choice.fitted.at(all[choice.form], &[f64::from(*p)]);
    if let Some(p) = processors.iter().chain(&settings.to).find(|p| time(p) <= 0.0) {
        notes.push(format!(
            "the signature of phase {} gave no time above 0 at {p} processors: it was fitted again without negative parameters",
            phase.name
        ));
        owned = names.iter().map(|name| name.form(false)).collect();
        all = owned.iter().map(AsRef::as_ref).collect();
        choice = chosen(phase.kind, &names, &all, &points).map_err(failed)?;
    }
    let Choice { form, fitted, left_out: error } = choice;
    // Forms that are about as good may be the right ones: a bootstrap takes one of them each time.
    let possible: Vec<&dyn Form> = all
        .iter()
        .copied()
        .filter(|other| left_out(*other, &points) <= (POSSIBLE * error).max(FLOOR))
        .chain([all[form]])
        .collect();
    let values: Vec<f64> = points.iter().map(|point| fitted.at(all[form], &point.at)).collect();
    let source = Draws::new(&points, &values, all[form].parameters(), FLOOR);
    let mut drawn = vec![Vec::with_capacity(DRAWS); settings.to.len()];
    for draw in 0..DRAWS {
        let other = possible[random.below(possible.len())];
        let again = fit(other, &source.points(random)).ok();
        let (form, fitted) = again.as_ref().map_or((all[form], &fitted), |fitted| (other, fitted));
        for ((to, drawn), totals) in settings.to.iter().zip(&mut drawn).zip(totals.iter_mut()) {
            let time = fitted.at(form, &[f64::from(*to)]) * (1.0 + source.residual(random));
            let time = if time.is_finite() { time.max(0.0) } else { 0.0 };
            drawn.push(time);
            totals[draw] += time;
        }
    }
    let tail = 0.5 * (1.0 - settings.confidence);
    let forecasts = settings
        .to
        .iter()
        .zip(drawn)
        .map(|(&to, mut drawn)| {
            drawn.sort_by(f64::total_cmp);
            let time = fitted.at(all[form], &[f64::from(to)]);
            let interval = [quantile(&drawn, tail).min(time), quantile(&drawn, 1.0 - tail).max(time)];
            Forecast { processors: to, time, interval, actual: actual(to) }
        })
        .collect();
    Ok(PhaseSignature {
        phase: phase.clone(),
        form: names[form],
        parameters: fitted.parameters,
        fit_error: fitted.error,
        left_out_error: error.is_finite().then_some(error),
        forecasts,
    })
}

/// The whole program at the run of this number, foreseen from the other runs, over what it takes there, minus 1.
fn missed(runs: &Runs, at: usize, seed_forms: bool) -> f64 {
    let mut sum = 0.0;
    for phase in &runs.phases {
        let others = runs.processors.iter().zip(&phase.times).enumerate().filter(|(other, _)| *other != at);
        let points: Vec<Point> = others.map(|(_, (p, time))| Point::new(f64::from(*p), *time)).collect();
        let names = forms(phase.kind, seed_forms);
        let owned: Vec<Box<dyn Form>> = names.iter().map(|name| name.form(seed_forms)).collect();
        let all: Vec<&dyn Form> = owned.iter().map(AsRef::as_ref).collect();
        let place = [f64::from(runs.processors[at])];
        sum += chosen(phase.kind, &names, &all, &points).map_or(phase.times[at], |c| c.fitted.at(all[c.form], &place));
    }
    sum / runs.total(at) - 1.0
}

/// How badly the signatures of some phases foresee the whole program at runs that are left out: the root mean square of
/// relative errors. The largest run counts twice, as signatures are there to be extrapolated. None with fewer than 3 runs.
pub fn foresight(runs: &Runs, seed_forms: bool) -> Option<f64> {
    let count = runs.processors.len();
    if count < 3 {
        return None;
    }
    let errors = (0..count).chain([count - 1]).map(|at| missed(runs, at, seed_forms).powi(2));
    Some((errors.sum::<f64>() / (count + 1) as f64).sqrt())
}

/// By how much the whole program is missed at the largest run if that is foreseen from the others, as a share for each
/// doubling; at least by how much runs are missed on the whole.
fn reach(runs: &Runs, settings: &Settings) -> f64 {
    let count = runs.processors.len();
    // A form with two parameters goes through two points: nothing is left to tell how good it is.
    let Some(foresight) = foresight(runs, settings.seed_forms) else { return 0.1 };
    let (largest, before) = (f64::from(runs.processors[count - 1]), f64::from(runs.processors[count - 2]));
    let last = missed(runs, count - 1, settings.seed_forms).abs() / (largest / before).log2().max(0.5);
    last.max(foresight)
}

/// The phase that takes the largest share at the largest number of processors, of those that gain less from them than
/// the program as a whole.
fn holds_back(phases: &[PhaseSignature], runs: &Runs, settings: &Settings) -> Option<usize> {
    let last = settings.to.iter().enumerate().max_by_key(|(_, p)| **p)?.0;
    let first: f64 = runs.total(0);
    let then: f64 = phases.iter().map(|phase| phase.forecasts[last].time).sum();
    let gain = |phase: &PhaseSignature| phase.phase.times[0] / phase.forecasts[last].time.max(1e-300);
    phases
        .iter()
        .enumerate()
        .filter(|(_, phase)| phases.len() == 1 || gain(phase) <= first / then)
        .max_by(|a, b| a.1.forecasts[last].time.total_cmp(&b.1.forecasts[last].time))
        .map(|(at, _)| at)
}
