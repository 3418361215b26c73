//! The command line, defined once: usage, help, man pages and completions all come from here.
use crate::commands;
use clap::builder::StyledStr;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use phasecast_analyzer::{ClockKind, Method};

/// Appended to every long help: the exit codes.
macro_rules! exit_codes {
    () => {
        "Exit codes:
  0  done
  1  the work failed (a full disk, a program that failed)
  2  the command line is wrong
  3  the input is refused (missing, damaged, foreign, of another version), or the output exists already
  4  not here: no signature or skeleton pays for this program, this machine cannot restart the images, or there is no
     launcher or compiler
  5  the machine has changed since it was measured (characterize --against)"
    };
}

/// Examples, and after them the exit codes.
macro_rules! examples {
    ($text:literal) => {
        concat!("Examples:\n", $text, "\n\n", exit_codes!())
    };
}

/// Predicts how long an MPI program will run on another machine.
///
/// phasecast traces the program on one machine, finds the few phases that repeat, and measures each of them briefly on
/// the target machine; weight x time, added up, is the predicted run time.
#[derive(Debug, Parser)]
#[command(name = "phasecast", version, propagate_version = true, max_term_width = 100)]
#[command(arg_required_else_help = true, subcommand_required = true)]
#[command(after_long_help = examples!("  mpirun -n 4 phasecast trace -o cg.trace ./cg    record a run
  phasecast stat cg.trace                         what is in it
  phasecast analyze cg.trace -o cg.phases         its phases and their weights
  phasecast report cg.phases -o cg.html           the same, to look at
  phasecast sign -n 4 -o cg.phc -- ./cg 1000      its signature, with images
  phasecast predict cg.phc                        on another machine: how long it will run there

All commands take `--json` where they have an answer: one object on standard output, words on standard error."))]
#[command(after_help = exit_codes!())]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// The command line, for parsing, manual pages and completions. In texts of help clap takes `{n}` for the end of a line,
/// but for a launcher it stands for the number of ranks: a style without effect, which clap leaves out where nothing has
/// styles, keeps the two apart.
pub fn command() -> clap::Command {
    fn kept(text: &StyledStr) -> StyledStr {
        text.ansi().to_string().replace("{n}", "{\u{1b}[0mn}").into()
    }
    fn of(mut command: clap::Command) -> clap::Command {
        if let Some(text) = command.get_after_long_help().map(kept) {
            command = command.after_long_help(text);
        }
        let command = command.mut_args(|mut arg| {
            if let Some(text) = arg.get_help().map(kept) {
                arg = arg.help(text);
            }
            if let Some(text) = arg.get_long_help().map(kept) {
                arg = arg.long_help(text);
            }
            // That a number is too small is for what reads it to say.
            let valued = arg.get_action().takes_values() && !arg.is_positional();
            arg.allow_negative_numbers(valued)
        });
        command.mut_subcommands(of)
    }
    of(Cli::command())
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[command(after_long_help = examples!("  mpirun -n 4 phasecast trace -o cg.trace ./cg 1000
  srun -n 64 phasecast trace -o cg.trace python3 app.py"))]
    Trace(crate::trace_launch::TraceArgs),
    #[command(after_long_help = examples!("  phasecast stat cg.trace
  phasecast stat cg.trace --summary
  phasecast stat cg.trace --json | jq .events"))]
    Stat(commands::stat::StatArgs),
    #[command(after_long_help = examples!("  phasecast dump cg.trace --format csv > cg.csv
  phasecast dump cg.trace --format json --rank 0 | head"))]
    Dump(commands::dump::DumpArgs),
    #[command(after_long_help = examples!("  phasecast inspect cg.trace
  phasecast inspect cg.trace/rank-00000.pct
  phasecast inspect cg.phases --json"))]
    Inspect(commands::inspect::InspectArgs),
    #[command(after_long_help = examples!("  phasecast import run/*.txt -o run.trace
  phasecast import scorep-run/traces.otf2 -o run.trace"))]
    Import(commands::import::ImportArgs),
    #[command(after_long_help = examples!("  phasecast export cg.trace --format perfetto -o cg.json
  phasecast export cg.trace --format csv -o cg.csv"))]
    Export(commands::export::ExportArgs),
    #[command(after_long_help = examples!("  phasecast analyze cg.trace
  phasecast analyze first.trace second.trace -o cg.phases
  phasecast analyze cg.trace --method pbb --json | jq .phases"))]
    Analyze(commands::analyze::AnalyzeArgs),
    #[command(after_long_help = examples!("  phasecast sign -n 4 -o cg.phc -- ./cg 1000
  phasecast sign -n 64 --launcher 'srun -n {n}' --size-budget 2G -o cg.phc -- ./cg 1000
  phasecast sign --live -n 4 -o cg.phc -- ./cg 1000"))]
    Sign(commands::sign::SignArgs),
    #[command(after_long_help = examples!("  phasecast predict cg.phc
  phasecast predict cg.phc --launcher 'mpirun.mpich -n {n}' --budget 60s -o here.json
  phasecast predict cg.phc --live --share 0.2 --json -- ./cg-built-here 1000
  phasecast predict --skeleton cg.skeleton --launcher 'mpirun.mpich -n {n}'"))]
    Predict(commands::predict::PredictArgs),
    #[command(after_long_help = examples!("  phasecast verify cg.phc
  phasecast verify cg.phc --runs 5 --json | jq .pete"))]
    Verify(commands::verify::VerifyArgs),
    #[command(after_long_help = examples!("  phasecast preflight cg.phc
  phasecast preflight cg.phc --launcher 'srun -n {n}' --json | jq '.checks[] | select(.ok | not)'"))]
    Preflight(commands::preflight::PreflightArgs),
    #[command(after_long_help = examples!("  phasecast verify-file cg.phc
  phasecast verify-file cg.phc --json | jq -r .sha256"))]
    VerifyFile(commands::verify_file::VerifyFileArgs),
    #[command(after_long_help = examples!("  phasecast graph cg.trace
  phasecast graph cg.trace --format dot --events 0..40 | dot -Tsvg > cg.svg
  phasecast graph cg.trace --from 0:12 --to 3:40 --json | jq -r .order"))]
    Graph(commands::graph::GraphArgs),
    #[command(after_long_help = examples!("  phasecast stability -n 4 -- ./cg 1000
  phasecast stability -n 64 --launcher 'srun -n {n}' --runs 16 --factors 8 --json -- ./cg 1000 | jq .verdict
  phasecast stability monday.trace tuesday.trace"))]
    Stability(commands::stability::StabilityArgs),
    #[command(after_long_help = examples!("  phasecast characterize -n 2 -o machine.toml
  phasecast characterize -n 4 --launcher 'srun -N 2 -n {n}' -o cluster.toml
  phasecast characterize -n 2 --against machine.toml
  phasecast characterize --quick --json | jq '.links[0].latency_s'"))]
    Characterize(commands::characterize::CharacterizeArgs),
    #[command(hide = true)]
    Measure(commands::measure::MeasureArgs),
    #[command(after_long_help = examples!("  phasecast transform cg.trace --base here.toml --target there.toml -o there.trace
  phasecast transform cg.trace --base here.toml --target there.toml -o there.trace --ratio 1.7 --prediction there.json
  phasecast transform big.trace --base here.toml --target there.toml -o there.trace --ratios-from here/small.trace there/small.trace
  phasecast transform cg.trace --base here.toml --target there.toml -o predicted.trace --observed seen.trace"))]
    Transform(commands::transform::TransformArgs),
    #[command(after_long_help = examples!("  phasecast profile cg.trace
  phasecast profile cg.trace --smooth moving:3:21+round:0.5 --svg cg.svg --csv cg.csv
  phasecast profile cg.trace --smooth segments:auto --count 9 --json | jq .phases"))]
    Profile(commands::profile::ProfileArgs),
    #[command(after_long_help = examples!("  phasecast scale cg2.trace cg4.trace cg8.trace --to 64
  phasecast scale cg2.phases cg4.phases cg8.phases --to 64,256,4096 --svg speedup.svg --prediction cg64.json
  phasecast scale table.csv --to 64 --seed-forms --unit 0.0005"))]
    Scale(commands::scale::ScaleArgs),
    #[command(after_long_help = examples!("  phasecast model cg.toml paragon.toml -p 1..512 --size 1024 --plot cg.svg
  phasecast model cg.toml paragon.toml ncube2.toml --strategy CG-Tree --strategy CG-Simple --size 512
  phasecast model cg.toml paragon.toml --strategy CG-Tree -p 512 --size 512..16384
  phasecast model cg.toml machine.toml -p 64 --strategy CG-Tree --prediction cg.json
  phasecast model fit heat-*.trace --sizes 256,256,512,512 -o heat.toml"))]
    Model(commands::model::ModelArgs),
    #[command(after_long_help = examples!("  phasecast skeleton cg.trace -o cg.skeleton
  phasecast skeleton cg.trace -o cg.skeleton --ratio 10 --launcher 'mpirun.mpich -n {n}'
  phasecast skeleton cg.trace -o cg.skeleton --mix 0.8 --working-set 64M --json | jq .left_out"))]
    Skeleton(commands::skeleton::SkeletonArgs),
    #[command(after_long_help = examples!("  phasecast compare old.json new.json
  phasecast compare old.json new.json --aet 121.3,88.0
  phasecast compare *.json --json"))]
    Compare(commands::compare::CompareArgs),
    #[command(after_long_help = examples!("  phasecast report cg.phases -o cg.html
  phasecast report prediction.json -o prediction.html"))]
    Report(commands::report::ReportArgs),
    #[command(after_long_help = examples!("  phasecast man /usr/local/share/man/man1"))]
    Man(commands::man::ManArgs),
    #[command(after_long_help = examples!("  phasecast completions bash > /etc/bash_completion.d/phasecast
  phasecast completions zsh > ~/.zfunc/_phasecast"))]
    Completions(commands::completions::CompletionsArgs),
}

/// The end of the help of `model fit`.
pub const MODEL_FIT_HELP: &str = examples!(
    "  phasecast model fit 1.trace 2.trace 4.trace -o app.toml
  phasecast model fit small-*.trace large-*.trace --sizes 256,256,256,512,512,512 -o app.toml
  phasecast model app.toml machine.toml -p 1..1024"
);

/// How to find phases.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum MethodArg {
    /// Sequences between recurring patterns of communication
    Marker,
    /// Similar parallel basic blocks, as the paper on PAS2P has it
    Pbb,
}

impl From<MethodArg> for Method {
    fn from(method: MethodArg) -> Method {
        match method {
            MethodArg::Marker => Method::Marker,
            MethodArg::Pbb => Method::Pbb,
        }
    }
}

/// The logical clock.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ClockArg {
    /// A message that is sent at a logical time is received at the next
    Pas2p,
    /// Lamport's, for comparison
    Lamport,
}

impl From<ClockArg> for ClockKind {
    fn from(clock: ClockArg) -> ClockKind {
        match clock {
            ClockArg::Pas2p => ClockKind::Pas2p,
            ClockArg::Lamport => ClockKind::Lamport,
        }
    }
}

/// A number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("it is not a number above 0".into()),
    }
}

/// A number of bytes with an optional K, M, G or T.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_uppercase().trim_end_matches("IB").trim_end_matches('B') {
        "" => 1,
        "K" => 1u64 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => return Err("a number of bytes, with K, M, G or T if you like".into()),
    };
    let number = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(factor)).filter(|n| *n > 0);
    number.ok_or_else(|| "a number of bytes above 0, with K, M, G or T if you like".into())
}

#[cfg(test)]
mod tests {
    use super::{command, size};

    #[test]
    fn negative_numbers_are_refused_as_numbers() {
        for given in [&["compare", "a", "--aet", "-1"][..], &["predict", "a", "--precision", "-0.1"]] {
            let error = command().try_get_matches_from([&["phasecast"], given].concat()).expect_err("it is refused");
            assert_eq!(error.kind(), clap::error::ErrorKind::ValueValidation, "{error}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!((size("500"), size("2K"), size("3GiB"), size("1tb")), (Ok(500), Ok(2048), Ok(3 << 30), Ok(1 << 40)));
        assert!(size("0").is_err() && size("x").is_err() && size("5Q").is_err() && size("99999999T").is_err());
    }
}
