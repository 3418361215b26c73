//! Running other programs, and where things are in the workspace.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why a subcommand did not do its work.
pub enum Failure {
    /// The command line makes no sense (exit code 2).
    Usage(String),
    /// A step failed (exit code 1).
    Work(String),
}

/// The result of a subcommand or a step of one.
pub type Done<T = ()> = Result<T, Failure>;

/// A failed step with its reason.
pub fn failed<T>(reason: impl Into<String>) -> Done<T> {
    Err(Failure::Work(reason.into()))
}

/// Refuses any argument, for the subcommands that take none.
pub fn no_arguments(args: &[String]) -> Done {
    match args.first() {
        None => Ok(()),
        Some(extra) => Err(Failure::Usage(format!("unexpected argument '{extra}'"))),
    }
}

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// A private Python environment of the workspace.
pub fn venv(name: &str) -> PathBuf {
    root().join(".phasecast/venvs").join(name)
}

/// The cargo that runs this xtask.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Adds what lets every MPI launcher run as root and with more ranks than processors.
pub fn mpi_environment(command: &mut Command) -> &mut Command {
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
}

/// The command as one would type it.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let quoted = words.map(|word| {
        let word = word.to_string_lossy();
        if word.is_empty() || word.contains([' ', '{', '*', '\'']) { format!("'{word}'") } else { word.into_owned() }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// Runs a command with its output on the terminal, after printing it.
///
/// # Errors
/// Where it cannot be started or does not exit with 0.
pub fn step(command: &mut Command) -> Done {
    eprintln!("+ {}", shown(command));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => failed(format!("`{}` ended with {status}", shown(command))),
        Err(error) => failed(format!("`{}` could not be started: {error}", shown(command))),
    }
}

/// Runs a command silently and says whether it exited with 0.
pub fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}
