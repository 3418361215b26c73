//! Skeletons at work: built with the MPI that is here, run under its launcher, and read.
use crate::launch::Launcher;
use anyhow::{Context, Result, anyhow, bail};
use phasecast_skeleton::program::calibrate::compile;
use phasecast_skeleton::program::manifest::Run;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The compiler: the one given; else the `mpicc` that goes by the name of the launcher given (`mpirun.mpich` has
/// `mpicc.mpich`), or of the MPI of a trace; else `mpicc`.
pub fn compiler(given: Option<&str>, launcher: Option<&str>, abi: Option<&str>) -> String {
    if let Some(given) = given {
        return given.to_owned();
    }
    let first = launcher.and_then(|words| words.split_whitespace().next()).map(Path::new);
    let beside = first.and_then(|program| {
        let (folder, name) = (program.parent()?, program.file_name()?.to_str()?);
        let suffix = ["mpirun", "mpiexec"].iter().find_map(|stem| name.strip_prefix(stem))?;
        let compiler = folder.join(format!("mpicc{suffix}"));
        Some(compiler.to_string_lossy().into_owned())
    });
    let by_abi = abi.filter(|_| launcher.is_none()).map(|abi| format!("mpicc.{abi}"));
    let names = [beside, by_abi].into_iter().flatten();
    let found = |name: &String| crate::launch::in_path(OsStr::new(name)).is_some();
    names.into_iter().find(found).unwrap_or_else(|| "mpicc".into())
}

/// A skeleton that was built, and how it is started.
pub struct Built {
    program: PathBuf,
    launcher: Launcher,
    result: PathBuf,
    ranks: u32,
}

impl Built {
    /// Builds the source in a folder that all ranks reach.
    ///
    /// # Errors
    /// If there is no compiler or launcher, or the source cannot be built.
    pub fn new(source: &[u8], compiler: &str, launcher: Option<&str>, ranks: u32, folder: &Path) -> Result<Built> {
        let folder = folder.canonicalize()?;
        let (text, program) = (folder.join("skeleton.c"), folder.join("skeleton"));
        std::fs::write(&text, source).with_context(|| format!("cannot write {}", text.display()))?;
        compile(compiler, &text, &program)?;
        let launcher = Launcher::find(launcher, ranks, &program)?;
        Ok(Built { program, launcher, result: folder.join("result.json"), ranks })
    }

    /// The launcher.
    pub fn launcher(&self) -> &Launcher {
        &self.launcher
    }

    /// Runs it once, with so many rounds.
    ///
    /// # Errors
    /// If it fails, or leaves no result.
    pub fn run(&self, rounds: u64) -> Result<Run> {
        let _ = std::fs::remove_file(&self.result);
        let words = [self.program.clone().into(), self.result.clone().into(), rounds.to_string().into()];
        let (status, wall_s) = self.launcher.run(&words)?;
        if !status.success() {
            bail!(
                "the skeleton failed under `{}` ({status}). Does the launcher belong to the compiler's MPI, and can it start {} ranks?",
                self.launcher,
                self.ranks
            );
        }
        let text = std::fs::read_to_string(&self.result).map_err(|error| {
            anyhow!("the skeleton left no result ({error}): do all ranks reach the working folder?")
        })?;
        Run::parse(&text, wall_s).context("the skeleton left a result that cannot be read")
    }

    /// Runs the program that it stands for under the same launcher: from launch to the end of the launcher, in seconds.
    ///
    /// # Errors
    /// If it fails.
    pub fn run_program(&self, command: &[String]) -> Result<f64> {
        let words: Vec<OsString> = command.iter().map(OsString::from).collect();
        let (status, wall_s) = self.launcher.run(&words)?;
        if !status.success() {
            bail!("the program failed under `{}` ({status}): it must run as it did when it was traced", self.launcher);
        }
        Ok(wall_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_goes_with_the_launcher() {
        assert_eq!(compiler(Some("icx -cc"), Some("mpirun.mpich -n 4"), None), "icx -cc");
        assert_eq!(compiler(None, Some("mpirun.nowhere -n 4"), None), "mpicc");
        assert_eq!(compiler(None, None, Some("nowhere")), "mpicc");
        assert_eq!(compiler(None, Some("srun -n {n}"), None), "mpicc");
    }
}
