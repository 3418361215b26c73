//! The subcommands, one file each.
pub mod analyze;
pub mod characterize;
pub mod compare;
pub mod completions;
pub mod dump;
pub mod export;
pub mod graph;
pub mod import;
pub mod inspect;
pub mod man;
pub mod measure;
pub mod model;
mod model_fit;
pub mod predict;
mod predict_skeleton;
pub mod preflight;
pub mod profile;
pub mod report;
pub mod scale;
pub mod sign;
pub mod skeleton;
pub mod stability;
mod stability_report;
pub mod stat;
pub mod transform;
pub mod verify;
pub mod verify_file;

use crate::cli::Command;
use anyhow::Result;

/// Runs a subcommand.
pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Trace(args) => crate::trace_launch::run(&args).map(drop),
        Command::Stat(args) => stat::run(&args),
        Command::Dump(args) => dump::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Analyze(args) => analyze::run(&args),
        Command::Sign(args) => sign::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Preflight(args) => preflight::run(&args),
        Command::VerifyFile(args) => verify_file::run(&args),
        Command::Graph(args) => graph::run(&args),
        Command::Stability(args) => stability::run(&args),
        Command::Characterize(args) => characterize::run(&args),
        Command::Measure(args) => measure::run(&args),
        Command::Transform(args) => transform::run(&args),
        Command::Profile(args) => profile::run(&args),
        Command::Scale(args) => scale::run(&args),
        Command::Model(args) => model::run(&args),
        Command::Skeleton(args) => skeleton::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Completions(args) => completions::run(&args),
    }
}
