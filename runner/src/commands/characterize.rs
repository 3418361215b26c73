//! `phasecast characterize`: what messages, collectives and computation cost on this machine, as a file; and whether they
//! still cost what another file says.
use crate::exit::Refusal;
use crate::launch::{Launch, Launcher, POLL, catch_interrupts, interrupted};
use crate::output::{self, clean, note, seconds};
use crate::progress;
use crate::scratch::Scratch;
use anyhow::{Context, Result, bail};
use clap::Args;
use phasecast_trace::Nanos;
use phasecast_transform::characterize::{LIFE, PROGRESS, RESULT};
use phasecast_transform::machine::{Change, Life, Machine, Place, changes, ratio};
use serde_json::json;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A measurement in which nothing is finished for so long is ended.
const PATIENCE: Duration = Duration::from_secs(60);
/// So many launches tell what starting and ending a run takes.
const LAUNCHES: usize = 7;
/// How often progress is looked at.
/// Lengths of messages and of collectives in the summary.
const MESSAGES: [u64; 5] = [0, 1 << 10, 16 << 10, 256 << 10, 4 << 20];
const VECTORS: [u64; 4] = [8, 1 << 10, 256 << 10, 4 << 20];

/// Measure what messages, collectives and computation cost on this machine
///
/// Starts ranks under the machine's own launcher, which finds its own MPI library, and measures: the time in MPI_Send,
/// MPI_Recv, MPI_Isend, MPI_Irecv, MPI_Wait and of transfers for messages of 0 B to 4 MiB, with the step from eager
/// messages to those that wait for their receiver; eleven collectives; five kernels of computation; and when ranks are
/// stopped, where that is often, as under a quota of processor time. It takes half a minute. Where the ranks lie on two
/// nodes, messages within a node and between nodes are measured apart (that takes three ranks, two of them on one node).
/// Nothing else should run meanwhile.
///
/// With `--against`, says what has changed since another measurement: a table of costs has changed if most of its points
/// lie outside the spreads of both. The exit code is then 5.
#[derive(Debug, Args)]
pub struct CharacterizeArgs {
    /// Ranks, at least two
    #[arg(short = 'n', long = "ranks", value_name = "RANKS", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=1 << 20))]
    ranks: u32,
    /// Write the machine file here; one that exists is refused
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Say what has changed since this machine file was measured
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// How to start the ranks instead of with the mpirun found; `{n}` stands for the number of ranks
    #[arg(long, value_name = "COMMAND")]
    launcher: Option<String>,
    /// A first look: fewer repetitions, some seconds instead of half a minute, wider spreads
    #[arg(long)]
    quick: bool,
    /// Print one JSON object: the machine, and the changes if asked for
    #[arg(long)]
    json: bool,
}

/// Measures.
///
/// # Errors
/// If the measurement cannot be made, or the machine has changed.
pub fn run(args: &CharacterizeArgs) -> Result<()> {
    if let Some(path) = &args.output {
        output::refuse_existing(path)?;
    }
    let before = args.against.as_deref().map(Machine::read).transpose()?;
    catch_interrupts();
    let machine = measure(args)?;
    if let Some(path) = &args.output {
        output::save(path, machine.text().as_bytes())?;
    }
    let changes = before.as_ref().map(|before| changes(before, &machine));
    let ratio = before.as_ref().and_then(|before| ratio(before, &machine));
    let changed = changes.iter().flatten().filter(|change| change.changed).count();
    if args.json {
        let mut object = serde_json::to_value(&machine)?;
        if let (Some(fields), Some(changes)) = (object.as_object_mut(), &changes) {
            fields.insert("changes".into(), json!(changes));
            fields.insert("ratio".into(), json!(ratio));
        }
        output::json(&object)?;
    } else {
        let mut text = summary(&machine);
        if let Some(changes) = &changes {
            text.push_str(&told(changes));
        }
        if let Some(ratio) = &ratio {
            let _ = writeln!(text, "computation takes {:.3} times as long as then", ratio.k);
        }
        output::words(&text)?;
    }
    if let Some(path) = &args.output {
        note(&format!("the machine file is {}", path.display()));
    }
    match &args.against {
        Some(path) if changed > 0 => {
            let what = format!(
                "this machine is no longer that of {}: {changed} of {} tables and facts have changed. If nothing else was running, measure it anew with -o.",
                path.display(),
                changes.map_or(0, |changes| changes.len())
            );
            Err(Refusal::Changed(what).into())
        }
        _ => Ok(()),
    }
}

/// Starts the ranks and waits for what rank 0 leaves.
fn measure(args: &CharacterizeArgs) -> Result<Machine> {
    let command = std::env::current_exe().context("cannot find out where the command phasecast is")?;
    let launcher = Launcher::find(args.launcher.as_deref(), args.ranks, &command)?;
    let scratch = Scratch::here()?;
    let folder = std::path::absolute(scratch.path())?;
    let life = life(&launcher, &command, &folder, args)?;
    let mut words: Vec<OsString> =
        vec![command.into(), "measure".into(), folder.clone().into(), args.ranks.to_string().into()];
    if args.quick {
        words.push("--quick".into());
    }
    note(&format!("measuring with {launcher}"));
    let mut launch = launcher.start(&words)?;
    let bar = progress::bar("measuring", "blocks");
    let (mut done, mut since) = (0, Instant::now());
    let status = loop {
        if let Some((status, _)) = launch.ended()? {
            break status;
        }
        if let Some((now, of)) = progress_of(&folder).filter(|&(now, _)| now != done) {
            (done, since) = (now, Instant::now());
            bar.set(now, of);
        }
        if interrupted() {
            launch.stop(&[]);
            bail!("interrupted; all processes were ended");
        }
        if since.elapsed() > PATIENCE {
            launch.stop(&[]);
            bail!(
                "the measurement stood still for {} s after {done} blocks and was ended. Does each rank have a processor, and does `{launcher}` belong to the MPI library that its ranks find?",
                PATIENCE.as_secs()
            );
        }
        launch.sleep(POLL);
    };
    bar.finish();
    if !status.success() {
        bail!("the measurement under `{launcher}` failed ({status}): {}", why(&launch));
    }
    let result = folder.join(RESULT);
    if !result.exists() {
        bail!("{}", nothing_left(&launcher, &folder));
    }
    let machine = Machine::read(&result)?;
    Ok(Machine { life: Some(life), ..machine })
}

/// Why a launch failed, as far as ranks have said.
fn why(launch: &Launch) -> String {
    let said = launch.said();
    if said.is_empty() { "its own words are above".into() } else { said }
}

/// A launch has ended well and has not done anything.
fn nothing_left(launcher: &Launcher, folder: &Path) -> String {
    let folder = folder.display();
    format!("rank 0 under `{launcher}` has left no result in {folder}. Do all nodes reach the working folder?")
}

/// What it takes to start and to end a run: some launches of ranks that do nothing else.
fn life(launcher: &Launcher, command: &Path, folder: &Path, args: &CharacterizeArgs) -> Result<Life> {
    let words: Vec<OsString> =
        vec![command.into(), "measure".into(), folder.into(), args.ranks.to_string().into(), "--life".into()];
    let (mut launches, mut inits, mut ends, mut wholes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..if args.quick { 3 } else { LAUNCHES } {
        let mut launch = launcher.start(&words)?;
        let begun = Nanos(launch.started_ns());
        let Some((status, ended)) = launch.wait_for(PATIENCE)? else {
            launch.stop(&[]);
            bail!(
                "ranks that start and end MPI under `{launcher}` had not ended after {} s and were ended. Does it belong to the MPI library that its ranks find?",
                PATIENCE.as_secs()
            );
        };
        // Each launch leaves its own.
        let told = folder.join(LIFE);
        let text = fs::read_to_string(&told).unwrap_or_default();
        let _ = fs::remove_file(&told);
        let times: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        if !status.success() {
            bail!("starting and ending MPI under `{launcher}` failed ({status}): {}", why(&launch));
        }
        let [init, end, process] = &times[..] else { bail!("{}", nothing_left(launcher, folder)) };
        let wall = Nanos(ended).since(begun).seconds();
        launches.push((wall - process).max(0.0));
        inits.push(*init);
        ends.push(*end);
        wholes.push(wall);
    }
    let quartile = |times: &mut Vec<f64>, at: f64| {
        times.sort_by(f64::total_cmp);
        times[((times.len() - 1) as f64 * at).round() as usize]
    };
    Ok(Life {
        launch_s: quartile(&mut launches, 0.5),
        init_s: quartile(&mut inits, 0.5),
        finalize_s: quartile(&mut ends, 0.5),
        spread_s: 0.5 * (quartile(&mut wholes, 0.75) - quartile(&mut wholes, 0.25)),
    })
}

/// Blocks done and to do.
fn progress_of(folder: &Path) -> Option<(u64, u64)> {
    let text = fs::read_to_string(folder.join(PROGRESS)).ok()?;
    let (done, of) = text.strip_suffix('\n')?.split_once(' ')?;
    Some((done.parse().ok()?, of.parse().ok()?))
}

/// A machine in some lines.
fn summary(machine: &Machine) -> String {
    let mut text = String::new();
    let identity = &machine.identity;
    let _ = writeln!(text, "{}, {} processors, {}", clean(&identity.cpu), identity.cores, clean(&identity.mpi));
    for link in &machine.links {
        let place = match link.place {
            Place::Within => "within a node",
            Place::Between => "between nodes",
        };
        let eager = link.eager_bytes.map_or("no eager limit".into(), |bytes| format!("eager to {bytes} B"));
        let (latency, bandwidth) = (seconds(link.latency_s), output::bytes(link.bandwidth as u64));
        let overlap = link.overlap * 100.0;
        let _ = writeln!(text, "\nmessages {place}: {latency}, {bandwidth}/s, {eager}, overlap {overlap:.0} %");
        let columns = link.columns();
        let names: Vec<&str> = ["bytes"].into_iter().chain(columns.map(|(name, _)| name)).collect();
        let mut table = output::table(&names, &[0, 1, 2, 3, 4, 5, 6, 7]);
        for bytes in MESSAGES {
            let costs = columns.map(|(_, costs)| costs.seconds(bytes).map_or("-".into(), seconds));
            table.add_row([output::count(bytes)].into_iter().chain(costs));
        }
        let _ = writeln!(text, "{table}");
    }
    let mut table = output::table(&["collective", "ranks", "8 B", "1 KiB", "256 KiB", "4 MiB"], &[1, 2, 3, 4, 5]);
    for collective in &machine.collectives {
        let lengths = if collective.costs.0.len() > 1 { &VECTORS[..] } else { &VECTORS[..1] };
        let mut row = vec![clean(&collective.name), collective.ranks.to_string()];
        row.extend(lengths.iter().map(|&bytes| collective.costs.seconds(bytes).map_or("-".into(), seconds)));
        table.add_row(row);
    }
    let _ = writeln!(text, "\n{table}");
    let pass =
        |kernel: &phasecast_transform::machine::Kernel| format!("{} {}", clean(&kernel.name), seconds(kernel.seconds));
    let kernels: Vec<String> = machine.kernels.iter().map(pass).collect();
    let _ = writeln!(text, "\nkernels: {}", kernels.join(", "));
    if let Some(stops) = &machine.stops {
        let share = output::percent(stops.share());
        let _ =
            writeln!(text, "ranks were stopped for {share} of {} in which they were watched", seconds(stops.span_s));
    }
    text
}

/// Changes in words.
fn told(changes: &[Change]) -> String {
    let changed: Vec<&Change> = changes.iter().filter(|change| change.changed).collect();
    if changed.is_empty() {
        return format!("\nunchanged: most points of each of {} tables lie within the spreads\n", changes.len());
    }
    let mut table = output::table(&["changed", "outside", "of", "now by then"], &[1, 2, 3]);
    for change in changed {
        match &change.facts {
            Some((before, now)) => {
                let words = format!("{}: {}, was {}", clean(&change.what), clean(now), clean(before));
                table.add_row([words, String::new(), String::new(), String::new()]);
            }
            None => {
                let times = format!("{:.3}", change.times);
                table.add_row([clean(&change.what), change.outside.to_string(), change.of.to_string(), times]);
            }
        }
    }
    format!("\n{table}\n")
}
