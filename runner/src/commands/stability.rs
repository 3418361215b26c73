//! `phasecast stability`: whether a program does the same when its time is perturbed, or in two runs that were traced.
use crate::commands::stability_report::{Told, tell};
use crate::exit::Refusal;
use crate::launch::{Launcher, catch_interrupts};
use crate::output::{clean, count, note};
use crate::perturb::{Experiment, Run};
use crate::progress;
use anyhow::Result;
use clap::{Args, ValueEnum};
use phasecast_trace::model::file_name;
use phasecast_trace::{Rank, Trace};
use phasecast_transform::stability::design::Kind;
use phasecast_transform::stability::tape::alike;
use phasecast_transform::stability::{
    Comparison, Design, Effort, Names, Regions, Tape, by_regions, compare, judge, regions::Ends,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tell whether a program does the same when its time is perturbed, so that a trace of it can stand for other machines
///
/// The program is run once as it is and then again and again under the tracer, with delays before calls at chosen
/// places on chosen ranks. Each run's execution graph is compared with that of the first: who sends what to whom, and
/// in which order it is received. The verdict is stable, unstable, or stable but for some places (partly). Places are
/// chosen from the first run: before sends that race for a receive from any source, then before the calls that end the
/// biggest blocks. With traces instead of a program, the traces are compared with the first.
#[derive(Debug, Args)]
pub struct StabilityArgs {
    /// Traces to compare with the first of them, instead of running a program
    #[arg(value_name = "TRACE", conflicts_with = "command", required_unless_present = "command")]
    traces: Vec<PathBuf>,
    /// Number of ranks
    #[arg(short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "command")]
    n: Option<u32>,
    /// Perturbed runs, at most
    #[arg(long, value_name = "R", default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=256))]
    runs: u16,
    /// How many places are delayed [default: half as many as there are
    /// runs, or what fits the design]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u16).range(1..=31), conflicts_with = "at")]
    factors: Option<u16>,
    /// A place to delay, as in 2:solver+0x1a2b (the call's return address, as `phasecast dump` has it); give it several
    /// times to choose all places yourself
    #[arg(long, value_name = "RANK:SITE", value_parser = place)]
    at: Vec<(u32, String)>,
    /// Which places are delayed in which runs [default: full where that fits, else the fraction that mixes up least]
    #[arg(long, value_enum)]
    design: Option<DesignArg>,
    /// The delay before each call, as in 50ms or 0.2s [default: enough to change the order of messages that race]
    #[arg(long, value_name = "TIME", value_parser = time)]
    delay: Option<Duration>,
    /// Delay by this share of the block before each call, beside what --delay says [default: 0.5 where nothing races]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    share: Option<f64>,
    /// How to start the program instead of with the mpirun that fits it; `{n}` stands for the number
    /// of ranks
    #[arg(long, value_name = "COMMAND", requires = "command")]
    launcher: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DesignArg {
    /// All combinations of places
    Full,
    /// A power of two of them
    Fractional,
    /// 12, 20 or 24 of them
    PlackettBurman,
}

impl From<DesignArg> for Kind {
    fn from(design: DesignArg) -> Kind {
        match design {
            DesignArg::Full => Kind::Full,
            DesignArg::Fractional => Kind::Fractional,
            DesignArg::PlackettBurman => Kind::PlackettBurman,
        }
    }
}

fn place(text: &str) -> Result<(u32, String), String> {
    let parsed = text.split_once(':').and_then(|(rank, site)| Some((rank.parse().ok()?, site.to_owned())));
    let known = |site: &str| phasecast_trace::delays::parse_site(site).is_some();
    parsed.filter(|(_, site)| known(site)).ok_or_else(|| "a rank and a call site, as in 2:solver+0x1a2b".into())
}

fn time(text: &str) -> Result<Duration, String> {
    let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let found = units.iter().find_map(|(unit, s)| Some((text.strip_suffix(unit)?.trim().parse::<f64>().ok()?, *s)));
    let s = found.map(|(number, unit)| number * unit).filter(|s| (0.0..=3600.0).contains(s));
    s.map(Duration::from_secs_f64).ok_or_else(|| "a time up to an hour, as in 50ms or 0.2s".into())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1000.0).contains(share));
    share.ok_or_else(|| "a share of the block, 0 to 1000".into())
}

/// Judges.
///
/// # Errors
/// If the program fails or cannot be traced, or traces cannot be compared.
pub fn run(args: &StabilityArgs) -> Result<()> {
    if args.command.is_empty() { of_traces(args) } else { of_program(args) }
}

fn of_traces(args: &StabilityArgs) -> Result<()> {
    let [first, others @ ..] = args.traces.as_slice() else { return Ok(()) };
    if others.is_empty() {
        return Err(Refusal::Usage(
            "one trace has nothing to be compared with: give two, or a program after --".into(),
        )
        .into());
    }
    let mut names = Names::default();
    let first = Trace::open(first)?;
    let reference = Tape::read(&first, &mut names)?;
    let (mut runs, mut ends) = (Vec::new(), None);
    for path in others {
        let trace = Trace::open(path)?;
        alike(&first, &trace)?;
        let compared = against(&mut names, (&first, &reference), &mut ends, &trace)?;
        runs.push(Run { levels: Vec::new(), time_s: trace.run_time().seconds(), compared, broken: None });
    }
    let verdict = judge(&names, &comparisons(&runs), &[]);
    let mut notes = notes(&reference);
    let program = |path: &PathBuf| -> Result<String> {
        let trace = Trace::open(path)?;
        let program = trace.header(Rank(0)).map(|header| header.program.clone()).unwrap_or_default();
        Ok(file_name(&program).to_owned())
    };
    let programs: BTreeSet<String> = args.traces.iter().map(program).collect::<Result<_>>()?;
    if programs.len() > 1 {
        let names: Vec<String> = programs.iter().map(|name| clean(name)).collect();
        notes.push(format!("the traces are of programs of different names: {}", names.join(", ")));
    }
    tell(args.json, &Told { names: &names, verdict: &verdict, runs: &runs, experiment: None, notes: &notes })
}

/// What was taken for granted.
fn notes(reference: &Tape) -> Vec<String> {
    let mut notes = Vec::new();
    if !reference.single_threaded() {
        let what = "ranks have several threads: each thread is compared for itself, with the one that made its first call \
                    of MPI in the same turn; regions are not compared";
        notes.push(what.into());
    }
    notes
}

fn comparisons(runs: &[Run]) -> Vec<Comparison> {
    runs.iter().map(|run| run.compared.0.clone()).collect()
}

/// Compares a run with the reference; where they differ, by regions too.
pub fn against(
    names: &mut Names,
    (first, reference): (&Trace, &Tape),
    ends: &mut Option<Option<Ends>>,
    trace: &Trace,
) -> Result<(Comparison, Option<Regions>)> {
    let tape = Tape::read(trace, names)?;
    let comparison = compare(names, reference, &tape, Effort::default());
    if comparison.distance() == 0 {
        return Ok((comparison, None));
    }
    let bar = progress::bar("looking for regions", "items");
    let find = |trace: &Trace| Ends::of(trace, &|done, of| bar.set(done, of));
    if ends.is_none() {
        *ends = Some(find(first)?);
    }
    let own = find(trace)?;
    let both = ends.as_ref().and_then(Option::as_ref).zip(own.as_ref());
    let regions = both.and_then(|(a, b)| by_regions(names, (reference, a), (&tape, b)));
    Ok((comparison, regions))
}

fn of_program(args: &StabilityArgs) -> Result<()> {
    let Some(ranks) = args.n else {
        return Err(Refusal::Usage("say with -n how many ranks the program is to have".into()).into());
    };
    let (kind, most) = (args.design.map(Kind::from), usize::from(args.runs));
    let designed = |factors| {
        let design = kind.map_or_else(|| Design::fitting(factors, most), |kind| Design::of_kind(kind, factors, most));
        design.map_err(|error| Refusal::Usage(error.to_string()))
    };
    let asked = args.factors.map(usize::from).or((!args.at.is_empty()).then_some(args.at.len()));
    let factors = asked.unwrap_or_else(|| Design::usual_factors(kind, most));
    // Refused before the program runs; it may have fewer places.
    designed(factors)?;
    catch_interrupts();
    let launcher = Launcher::find(args.launcher.as_deref(), ranks, Path::new(&args.command[0]))?;
    let mut experiment = Experiment::start(launcher, ranks, &args.command)?;
    let chosen = experiment.choose(args.at.as_slice(), factors)?;
    let design = designed(chosen.len())?;
    experiment.delay(chosen, args.delay.map(|delay| delay.as_secs_f64()), args.share)?;
    let mut runs = Vec::new();
    for (number, levels) in design.runs.iter().enumerate() {
        let run = experiment.run(levels)?;
        let (run_is, set) = (&run.compared.0, levels.iter().filter(|set| **set).count());
        let all = design.runs.len();
        let (distance, events) = (count(run_is.distance()), count(run_is.events));
        let what = run.broken.clone().unwrap_or_else(|| format!("distance {distance} of {events}"));
        note(&format!("run {} of {all}, {set} places delayed: {what}", number + 1));
        runs.push(run);
    }
    let broken: Vec<String> = runs.iter().filter_map(|run| run.broken.clone()).collect();
    let verdict = judge(experiment.names(), &comparisons(&runs), &broken);
    let (names, notes) = (experiment.names(), notes(experiment.reference()));
    let both = Some((&experiment, &design));
    tell(args.json, &Told { names, verdict: &verdict, runs: &runs, experiment: both, notes: &notes })
}
