//! `cargo xtask`: set-up, demo, tests, benchmarks and code generation of this workspace.
//! It uses nothing but the standard library, so that it builds and runs on a bare machine with only Rust.

mod bench;
mod codegen;
mod demo;
mod setup;
mod shell;
mod test;

use std::process::ExitCode;

const HELP: &str = "\
Set-up, demo, tests and benchmarks of phasecast

Usage: cargo xtask <COMMAND>

Commands:
  setup    install what the demo and the tests need and the machine lacks
  demo     predict the run time of an example program and compare it with the true one
  test     format, lints, builds and every test
  bench    measure any part: tracer, analyzer, predictions, split process, transformation, skeletons, scaling
  codegen  make the table of MPI procedures and the wrappers anew from the standard's data

`cargo xtask <COMMAND> --help` says more about one of them.
Exit codes: 0 ok, 1 the work failed, 2 usage.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (Some(command), rest) = (args.first().map(String::as_str), args.get(1..).unwrap_or_default()) else {
        eprintln!("{HELP}");
        return ExitCode::from(2);
    };
    let (help, work): (&str, fn(&[String]) -> shell::Done) = match command {
        "setup" => (setup::HELP, setup::run),
        "demo" => (demo::HELP, demo::run),
        "test" => (test::HELP, test::run),
        "bench" => (bench::HELP, bench::run),
        "codegen" => (codegen::HELP, codegen::run),
        "-h" | "--help" | "help" => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        other => {
            eprintln!("xtask: there is no command '{other}'\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    if rest.first().is_some_and(|a| a == "-h" || a == "--help") {
        println!("{help}");
        return ExitCode::SUCCESS;
    }
    match work(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(shell::Failure::Usage(reason)) => {
            eprintln!("xtask {command}: {reason}\n\n{help}");
            ExitCode::from(2)
        }
        Err(shell::Failure::Work(reason)) => {
            eprintln!("xtask {command}: {reason}");
            ExitCode::FAILURE
        }
    }
}
