//! `phasecast stability`: whether a program does the same when its time is perturbed, or in two runs that were traced.
use crate::exit::Refusal;
use crate::launch::{Launcher, catch_interrupts};
use crate::output::{self, clean, count, note, percent, seconds};
use crate::perturb::{Experiment, Run};
use crate::progress;
use anyhow::Result;
use clap::{Args, ValueEnum};
use phasecast_trace::{EventKind, Trace};
use phasecast_transform::stability::design::{Effect, Kind};
use phasecast_transform::stability::tape::alike;
use phasecast_transform::stability::{
    Candidate, Comparison, Design, Effort, Names, Outcome, Reason, Regions, Symbol, Tape, Trouble, Verdict, by_regions,
    compare, judge, regions::Ends,
};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Places that a table names; JSON has all of them.
const MOST_PLACES: usize = 12;

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
    /// How many places are delayed [default: half as many as there are runs, or as many as race]
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
    /// Delay by this share of the block before each call instead [default: 0.5 where nothing races]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    share: Option<f64>,
    /// How to start the program instead of with the mpirun that fits it; the letter n in braces stands for the number
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
        runs.push(Run { levels: Vec::new(), time_s: trace.run_time().seconds(), compared });
    }
    let verdict = judge(&names, &comparisons(&runs));
    tell(args.json, &names, &verdict, &runs, None)
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
    catch_interrupts();
    let launcher = Launcher::find(args.launcher.as_deref(), ranks, Path::new(&args.command[0]))?;
    let mut experiment = Experiment::start(launcher, ranks, &args.command)?;
    let chosen = experiment.choose(args.at.as_slice(), args.factors.map(usize::from), args.runs.into())?;
    let design = match args.design {
        Some(design) => Design::of_kind(design.into(), chosen.len(), args.runs.into())?,
        None => Design::fitting(chosen.len(), args.runs.into())?,
    };
    experiment.delay(chosen, args.delay.map(|delay| delay.as_secs_f64()), args.share)?;
    let mut runs = Vec::new();
    for (number, levels) in design.runs.iter().enumerate() {
        let run = experiment.run(levels)?;
        let (run_is, set) = (&run.compared.0, levels.iter().filter(|set| **set).count());
        let all = design.runs.len();
        let distance = count(run_is.distance());
        note(&format!(
            "run {} of {all}, {set} places delayed: distance {distance} of {}",
            number + 1,
            count(run_is.events)
        ));
        runs.push(run);
    }
    let verdict = judge(experiment.names(), &comparisons(&runs));
    let told = Told { experiment: &experiment, design: &design };
    tell(args.json, experiment.names(), &verdict, &runs, Some(&told))
}

/// What there is to tell of an experiment.
struct Told<'a> {
    experiment: &'a Experiment,
    design: &'a Design,
}

impl Told<'_> {
    /// The effects on the distance and on the run time.
    fn effects(&self, runs: &[Run]) -> [Vec<Effect>; 2] {
        let of = |response: fn(&Run) -> f64| {
            let responses: Vec<f64> = runs.iter().map(response).collect();
            phasecast_transform::stability::design::effects(self.design, &responses)
        };
        [of(|run| run.compared.0.distance() as f64), of(|run| run.time_s)]
    }
}

fn tell(as_json: bool, names: &Names, verdict: &Verdict, runs: &[Run], told: Option<&Told<'_>>) -> Result<()> {
    if as_json {
        output::json(&object(names, verdict, runs, told))
    } else {
        output::words(&words(names, verdict, runs, told))
    }
}

fn reason(candidate: &Candidate) -> String {
    match candidate.reason {
        Reason::Race(receiver) => format!("its messages race for receives of rank {receiver}"),
        Reason::Block => format!("{} are computed before it", seconds(candidate.blocks_s)),
    }
}

fn object(names: &Names, verdict: &Verdict, runs: &[Run], told: Option<&Told<'_>>) -> Value {
    let place = |trouble: &Trouble| {
        let what = trouble.what.map(|symbol| symbol.map(|symbol| say(names, &symbol)));
        json!({
            "rank": trouble.place.task.0, "thread": trouble.place.task.1, "site": trouble.place.site,
            "procedure": trouble.place.procedure, "kind": trouble.kind(), "wildcard": trouble.place.wildcard,
            "events": trouble.events, "changed": trouble.changed, "runs": trouble.runs,
            "first": { "event": trouble.first, "was": what[0], "is": what[1] },
        })
    };
    let run = |run: &Run| {
        let (compared, regions) = &run.compared;
        json!({
            "delayed": run.levels, "time_s": run.time_s, "events": compared.events, "similarity": compared.similarity,
            "distance": compared.distance(), "regions": regions,
        })
    };
    let mut value = json!({
        "verdict": verdict.outcome, "similarity": verdict.similarity, "distance": verdict.events - verdict.similarity,
        "events": verdict.events, "exact": verdict.exact, "reason": verdict.reason,
        "places": verdict.places.iter().map(place).collect::<Vec<_>>(),
        "runs": runs.iter().map(run).collect::<Vec<_>>(),
    });
    if let Some(told) = told {
        let [distance, time] = told.effects(runs);
        let factors = told.experiment.factors();
        let effect = |(effect, time): (&Effect, &Effect)| {
            json!({
                "factors": effect.factors, "distance": effect.effect, "share": effect.share, "time_s": time.effect,
                "time_share": time.share, "mixed_with": effect.mixed_with,
            })
        };
        let factor = |(candidate, delay): &(Candidate, phasecast_trace::delays::Delay)| {
            json!({
                "rank": candidate.rank, "site": candidate.site, "procedure": candidate.procedure,
                "reason": reason(candidate), "calls": candidate.calls, "delay_s": delay.fixed_ns as f64 * 1e-9,
                "share": delay.share, "every": delay.every,
            })
        };
        value["design"] = told.design.words().into();
        value["factors"] = factors.iter().map(factor).collect();
        value["effects"] = distance.iter().zip(&time).map(effect).collect();
    }
    value
}

/// An event in words.
fn say(names: &Names, symbol: &Symbol) -> String {
    let Symbol { peer, tag, bytes, .. } = symbol;
    match symbol.kind {
        EventKind::Send => format!("{bytes} bytes to rank {peer}, tag {tag}"),
        EventKind::Recv => format!("{bytes} bytes from rank {peer}, tag {tag}"),
        EventKind::Collective => {
            let name = names.procedures.get(symbol.procedure).map_or("a collective", String::as_str);
            format!("{} with {bytes} bytes", clean(name))
        }
    }
}

fn words(names: &Names, verdict: &Verdict, runs: &[Run], told: Option<&Told<'_>>) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12} {value}");
    };
    let outcome = match verdict.outcome {
        Outcome::Stable => "stable",
        Outcome::Unstable => "unstable",
        Outcome::Partly => "stable but for the places below",
    };
    line("verdict", format!("{outcome}: {}", verdict.reason));
    let (events, distance) = (verdict.events, verdict.events - verdict.similarity);
    let of_all = percent(distance as f64 / events.max(1) as f64);
    line("distance", format!("{} of {} events ({of_all}) at most", count(distance), count(events)));
    if !verdict.exact {
        line("", "(an upper bound: the runs differ so much that the search was given up)".into());
    }
    let regions = runs.iter().filter_map(|run| run.compared.1.as_ref()).max_by_key(|regions| regions.distance);
    if let Some(r) = regions {
        let how = format!("{} searched, {} approximated", count(r.searched), count(r.approximated));
        line(
            "by regions",
            format!(
                "{} at most; {} of {} regions the same, of others {how}",
                count(r.distance),
                count(r.same),
                count(r.regions[0])
            ),
        );
    }
    if let Some(told) = told {
        line("experiment", format!("{} runs: {}", runs.len(), told.design.words()));
        let [distance, time] = told.effects(runs);
        let headers = ["delayed", "rank", "site", "calls", "delay", "distance", "share", "time"];
        let mut table = output::table(&headers, &[0, 1, 3, 4, 5, 6, 7]);
        for (number, (candidate, delay)) in told.experiment.factors().iter().enumerate() {
            let length = match delay.share {
                0.0 => seconds(delay.fixed_ns as f64 * 1e-9),
                share => format!("{} of block", percent(share)),
            };
            let every = if delay.every > 1 { format!("{length}, 1 in {}", delay.every) } else { length };
            table.add_row([
                (number + 1).to_string(),
                candidate.rank.to_string(),
                format!("{} {}", clean(&candidate.procedure), clean(&candidate.site)),
                count(candidate.calls),
                every,
                format!("{:+.1}", distance[number].effect),
                percent(distance[number].share),
                format!("{}{}", if time[number].effect < 0.0 { "" } else { "+" }, seconds(time[number].effect)),
            ]);
        }
        let _ = writeln!(text, "\n{table}");
        for pair in distance.iter().filter(|effect| effect.factors.len() == 2 && effect.share >= 0.05) {
            let both: Vec<String> = pair.factors.iter().map(|factor| (factor + 1).to_string()).collect();
            let _ = writeln!(text, "{} together: {:+.1} ({})", both.join(" and "), pair.effect, percent(pair.share));
        }
    }
    if !verdict.places.is_empty() {
        let mut table =
            output::table(&["rank", "place", "what", "changed", "of", "runs", "first", "was", "is"], &[0, 3, 4, 5, 6]);
        for trouble in verdict.places.iter().take(MOST_PLACES) {
            let what = trouble.what.map(|symbol| symbol.map_or_else(|| "-".into(), |symbol| say(names, &symbol)));
            let [was, is] = what;
            table.add_row([
                trouble.place.task.0.to_string(),
                format!("{} {}", clean(&trouble.place.procedure), clean(&trouble.place.site)),
                trouble.kind().into(),
                count(trouble.changed),
                count(trouble.events),
                trouble.runs.to_string(),
                trouble.first.to_string(),
                was,
                is,
            ]);
        }
        let _ = writeln!(text, "\n{table}");
        if verdict.places.len() > MOST_PLACES {
            let _ = writeln!(text, "and {} more places; --json has all", verdict.places.len() - MOST_PLACES);
        }
    }
    text
}
