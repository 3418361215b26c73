//! `phasecast sign`: base runs under the tracer, their analysis, and the signature file; with images (the usual case) a
//! third run saves them, and a prediction on this machine verifies them.
use crate::base::{self, BaseRun};
use crate::cli;
use crate::commands::analyze;
use crate::exit::Refusal;
use crate::launch::{Launcher, catch_interrupts, go_on, program_path};
use crate::output::{self, note, percent, seconds, shell, shell_with};
use crate::restart::plan::{self, plan};
use crate::restart::predict::Wish;
use crate::restart::preflight::fit_launcher;
use crate::restart::processor::{self, Baseline};
use crate::restart::recorded::recorded;
use crate::restart::save::{Saving, digest};
use crate::restart::verify::{mark, verify};
use crate::restart::windows::Profile;
use crate::scratch::Scratch;
use crate::signature::{Manifest, Signature, VERSION, mpi_of, this_machine};
use anyhow::{Context, Result, bail};
use clap::Args;
use phasecast_analyzer::{Analysis, Method, Order, Settings};
use phasecast_checkpoint::Taken;
use phasecast_prediction::Prediction;
use phasecast_trace::Trace;
use phasecast_trace::awaited::Ran;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Make the signature of a program: trace it on this (base) machine, find its phases, save its state before them
///
/// The program is run twice under the tracer: the second run tells levels of time from noise, and shows whether the
/// program does the same each time. A third run saves images: the program's memory at a few places, from which it can
/// be restarted under any MPI on any machine of this kind. Then the signature predicts this machine, as a test. The
/// file holds the program's memory, and what is secret in it: it can be read by its owner only.
#[derive(Args, Debug)]
pub struct SignArgs {
    /// Make a signature without images: on the target the program itself is run until its phases were seen
    #[arg(long)]
    live: bool,
    /// Number of ranks
    #[arg(short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    n: u32,
    /// The signature to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// How to start the program instead of with the mpirun that fits it; `{n}` stands for the number
    /// of ranks
    #[arg(long, value_name = "COMMAND")]
    launcher: Option<String>,
    /// How to find phases; images need the marker method
    #[arg(long, value_enum, default_value_t = crate::cli::MethodArg::Marker)]
    method: crate::cli::MethodArg,
    /// Base runs, 1 or 2: one tells no levels of time from noise
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    runs: u8,
    /// At most N images [default: as many as the phases need, up to 18]
    #[arg(long, value_name = "N", conflicts_with = "live", value_parser = clap::value_parser!(u16).range(1..=1000))]
    images: Option<u16>,
    /// At most this many bytes of images before compression (as in 500M or 2G)
    #[arg(long, value_name = "BYTES", conflicts_with = "live", value_parser = cli::size)]
    size_budget: Option<u64>,
    /// Hold the program's C library to what processors of this kind can do, so that images move to them [default:
    /// x86-64-v3 where this processor is one]
    #[arg(long, value_name = "PROCESSOR", value_enum, conflicts_with = "live")]
    cpu_baseline: Option<Baseline>,
    /// Do not predict this machine at the end
    #[arg(long, conflicts_with = "live")]
    no_verify: bool,
    /// Print the analysis as one JSON object
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    command: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// If the program fails or cannot be traced or saved, no signature pays, or the signature cannot be written.
pub fn run(args: &SignArgs) -> Result<()> {
    output::refuse_existing(&args.output)?;
    if !args.live && Method::from(args.method) != Method::Marker {
        let what = "images are saved at cuts, which only --method marker finds; with --method pbb use --live";
        return Err(Refusal::Usage(what.into()).into());
    }
    if let Some(baseline) = args.cpu_baseline {
        let lacking = baseline.lacking(&processor::flags());
        if !lacking.is_empty() {
            let what = format!("--cpu-baseline {}: this processor lacks {}", baseline.name(), lacking.join(", "));
            return Err(Refusal::Usage(what).into());
        }
    }
    let program = &args.command[0];
    // A launcher of the user's may start it elsewhere; images want to know its file.
    if !args.live || args.launcher.is_none() {
        program_path(program)?;
    }
    catch_interrupts();
    let launcher = Launcher::find(args.launcher.as_deref(), args.n, Path::new(program))?;
    let scratch = Scratch::here()?;
    let mut runs: Vec<BaseRun> = Vec::new();
    for number in 1..=args.runs {
        note(&format!("base run {number} of {}: {launcher} {}", args.runs, shell(&args.command)));
        let folder = scratch.path().join(format!("base{number}.trace"));
        runs.push(base::run(&launcher, &folder, args.n, &args.command)?);
    }
    let settings = Settings { method: args.method.into(), collectives: !args.live, ..Settings::default() };
    let bar = crate::progress::bar("analysing", "events");
    let times: Vec<[f64; 3]> = runs.iter().map(|r| [r.aet_s, r.startup_s, r.teardown_s]).collect();
    let traces: Vec<Trace> = runs.into_iter().map(|r| r.trace).collect();
    let mut analysis = phasecast_analyzer::analyze(&traces, &settings, &|done, of| bar.set(done, of))?;
    // Where only collectives count, messages are left as they come.
    let differs = analysis.verdict.difference.is_some() && analysis.order != Order::Collectives;
    let taken = if differs && !args.live { recorded(&traces[0])? } else { None };
    if taken.is_some() && analysis.verdict.refuses() {
        // Images and restarts take what the first run took: it is that run that they continue.
        let settings = Settings { first_come: true, ..settings };
        let difference = analysis.verdict.difference.unwrap_or_default();
        analysis = phasecast_analyzer::analyze(&traces[..1], &settings, &|done, of| bar.set(done, of))?;
        note(&format!(
            "the program goes by what comes first ({difference}): images and restarts take the same as the first run"
        ));
    }
    bar.finish();
    go_on()?;
    if analysis.order == Order::Collectives || analysis.verdict.pays && analysis.verdict.difference.is_some() {
        note(&analysis.verdict.reason);
    }
    if analysis.pieces.iter().any(Vec::is_empty) {
        bail!("the run is too long for the method pbb to keep what a prediction follows. Use --method marker.");
    }
    let mean = |which: usize| times.iter().map(|t| t[which]).sum::<f64>() / times.len() as f64;
    let manifest = Manifest {
        kind: if args.live { "live" } else { "restart" }.into(),
        phasecast: env!("CARGO_PKG_VERSION").into(),
        command: args.command.clone(),
        ranks: args.n,
        machine: this_machine(&mpi_of(&traces[0])),
        aet_s: times.iter().map(|t| t[0]).collect(),
        startup_s: mean(1),
        teardown_s: mean(2),
        images: None,
    };
    manifest.scatter_note().iter().for_each(|words| note(words));
    let signature = Signature { manifest, analysis };
    if !args.live {
        return with_images(args, &launcher, signature, &traces, taken.unwrap_or_default());
    }
    signature.save(&args.output, None)?;
    let analysis = &signature.analysis;
    if args.json {
        return output::json(&answer(args, &signature));
    }
    output::words(&format!("{}\n{}", analyze::table(analysis), written(&args.output)))
}

/// What is told of a signature at the end.
fn written(path: &Path) -> String {
    format!("{} written. Predict with: {}\n", path.display(), shell_with("phasecast predict", path))
}

/// What `--json` prints of any signature.
fn answer(args: &SignArgs, signature: &Signature) -> Value {
    let mut object = analyze::json(&signature.analysis);
    let kind = &signature.manifest.kind;
    object["signature"] = json!({ "file": args.output, "version": VERSION, "kind": kind });
    object["aet_s"] = json!(signature.manifest.aet_s);
    object
}

fn with_images(
    args: &SignArgs,
    launcher: &Launcher,
    mut signature: Signature,
    traces: &[Trace],
    recorded: Vec<Vec<Taken>>,
) -> Result<()> {
    let analysis = signature.analysis.clone();
    let Some(profile) = Profile::of(&analysis) else {
        return Err(does_not_pay(args, &signature, "nothing in this program repeats"));
    };
    let restart_s = plan::restart_s(largest_child(), args.n);
    let windows = plan(&analysis, &profile, args.images.map(usize::from), restart_s);
    if let Some(objection) = plan::objection(&analysis, &profile, &windows) {
        return Err(does_not_pay(args, &signature, &objection));
    }
    // Images can be large: they are made where the signature will be.
    let place = args.output.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let scratch = Scratch::beside(place);
    let scratch = scratch.with_context(|| format!("cannot make a folder for images in {}", place.display()))?;
    let flags = processor::flags();
    let baseline = args.cpu_baseline.unwrap_or_else(|| Baseline::usual(&flags));
    let saving = Saving {
        launcher,
        command: &args.command,
        ran: Ran::in_all(traces),
        analysis: &analysis,
        profile: &profile,
        baseline,
        base_s: signature.manifest.base_run_s(),
        recorded,
        scratch: scratch.path(),
    };
    if baseline != Baseline::Native && flags.iter().any(|flag| flag == "avx512f") {
        let held = baseline.name();
        note(&format!("images are held to {held}, without this processor's AVX-512; --cpu-baseline native keeps it"));
    }
    note(&format!("saving {} images: {launcher} {}", plan::cuts(&windows).len(), shell(&args.command)));
    let mut saved = saving.save(windows)?;
    if let Some(budget) = args.size_budget {
        saved.fit(budget, args.n)?;
    }
    saved.notes.iter().for_each(|words| note(words));
    let images = saving.describe(&saved, base::edges(&traces[0])?)?;
    let files: Vec<String> = images.files().iter().map(|path| path.display().to_string()).collect();
    if !files.is_empty() {
        note(&format!("a target must have {}: the program has it open for reading", files.join(", ")));
    }
    let later: Vec<String> = images.later.iter().map(|path| path.display().to_string()).collect();
    if let Some(first) = later.first() {
        let count = later.len();
        note(&format!(
            "after the first image the program opened {count} files for reading ({first} ...): a target may need them, too"
        ));
    }
    signature.manifest.images = Some(images);
    let packed = scratch.path().join("images.packed");
    phasecast_image::pack::pack_file(&saved.folder, &packed)?;
    let _ = std::fs::remove_dir_all(&saved.folder);
    go_on()?;
    let tested = if args.no_verify { Ok(None) } else { test(args, &mut signature, &packed).map(Some) };
    signature.save(&args.output, Some(&packed))?;
    let verified = tested.with_context(|| {
        let (name, again) = (args.output.display(), shell_with("phasecast verify", &args.output));
        format!("{name} is written, but its test on this machine failed (`{again}` tests it again)")
    })?;
    let (sha256, bytes) = digest(&args.output)?;
    if args.json {
        let mut object = answer(args, &signature);
        object["images"] = json!(saved.cuts.len());
        object["bytes"] = json!(bytes);
        object["files"] = json!(files);
        object["later_files"] = json!(later);
        object["sha256"] = json!(sha256);
        object["verified"] = json!(verified);
        return output::json(&object);
    }
    let mut text = analyze::phases(&analysis);
    text.push_str(&format!("\n{} images, {}; sha256:{sha256}\n", saved.cuts.len(), output::bytes(bytes)));
    if let Some(p) = verified {
        let (pet, pete) = (seconds(p.pet_s), percent(p.pete.unwrap_or(0.0)));
        text.push_str(&format!(
            "verified on this machine: {pet} predicted in {}, {pete} off the base runs\n",
            seconds(p.set_s)
        ));
    }
    text.push_str(&written(&args.output));
    output::words(&text)
}

/// Predicts this machine by a signature whose images are at `packed`, and marks it with the result.
fn test(args: &SignArgs, signature: &mut Signature, packed: &Path) -> Result<Prediction> {
    note("verifying: predicting this machine");
    let launcher = fit_launcher(args.launcher.as_deref(), &signature.manifest)?;
    let wish = Wish { launcher: &launcher, budget_s: None, precision: crate::commands::predict::PRECISION };
    let prediction = verify(signature, packed, &wish, &signature.manifest.aet_s)?;
    if let Some(images) = &mut signature.manifest.images {
        images.verified = Some(mark(&prediction));
    }
    let told = signature.manifest.scatter_note();
    let untold = prediction.notes.iter().filter(|words| Some(*words) != told.as_ref());
    untold.chain(&doubt(&prediction)).for_each(|words| note(words));
    Ok(prediction)
}

/// What a signature that misses its own base by more than its interval should be told of, in words.
fn doubt(prediction: &Prediction) -> Option<String> {
    let (aet_s, [low, high]) = (prediction.aet_s?, prediction.run_interval_s);
    (!(low..=high).contains(&aet_s)).then(|| {
        format!(
            "the base runs took {}, and the signature predicts {} to {} for a run: this machine was disturbed meanwhile, or the phases do not stand for the run. `phasecast verify` tries again.",
            seconds(aet_s),
            seconds(low),
            seconds(high)
        )
    })
}

/// The most memory that a process of the base runs had on this node, in bytes: an image takes about as much.
fn largest_child() -> u64 {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN);
    usage.map_or(0, |usage| usage.max_rss().unsigned_abs() << 10)
}

/// The plain answer for programs in which nothing repeats, with what measuring them would cost.
fn does_not_pay(args: &SignArgs, signature: &Signature, why: &str) -> anyhow::Error {
    let analysis: &Analysis = &signature.analysis;
    if args.json
        && let Err(error) = output::json(&analyze::json(analysis))
    {
        return error;
    }
    let run = seconds(signature.manifest.base_run_s());
    let planned = percent(analysis.planned_s / analysis.run_time_s.max(1e-9));
    Refusal::Unfit(format!(
        "no signature pays here: {why}. Measuring its phases as an analysis plans would take {planned} of the {run} that it runs. `phasecast sign --live` makes a signature without images.",
    ))
    .into()
}
