//! Skeletons at work: built with the MPI that is here, run under its launcher, and read.
use crate::exit::Refusal;
use crate::launch::{Launcher, family};
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

    /// Refuses a program of another MPI library's: under the skeleton's launcher it would start as so many single ranks, or
    /// not at all.
    ///
    /// # Errors
    /// If it is linked with another, as far as both are known.
    pub fn refuse_foreign(&self, command: &[String]) -> Result<()> {
        let program = command.first().and_then(|program| family(Path::new(program)));
        if let (Some(program), Some(own)) = (program, family(&self.program))
            && program != own
        {
            return Err(Refusal::Unfit(format!(
                "{} is linked with {program}, and the skeleton was built with {own}. Name compiler and launcher of the program's MPI with --cc and --launcher.",
                command[0]
            ))
            .into());
        }
        Ok(())
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

/// A sentence if a skeleton ran with another MPI library, or version of it, than its program when it was traced.
pub fn other_mpi(traced: &str, run: &str) -> Option<String> {
    // The first line says which; what comes after a comma is how it was built.
    let short = |text: &str| {
        let line = text.lines().next().unwrap_or_default();
        line.split(',').next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (traced, run) = (short(traced), short(run));
    let known = |text: &str| text.contains("MPI") && !text.starts_with("not told");
    (known(&traced) && known(&run) && traced != run).then(|| {
        format!(
            "the trace is of a run with {traced}, and on the base the skeleton ran with {run}: what differs between them counts as what it cannot imitate"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_mpi_than_the_traced_one_is_told() {
        let open = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022";
        let mpich = "MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022";
        assert_eq!(other_mpi(open, "Open MPI v4.1.4, package: another, ident: 4.1.4"), None);
        assert_eq!(other_mpi(mpich, "MPICH Version:      4.0.2"), None);
        assert_eq!(other_mpi("not told (OTF2)", open), None);
        assert_eq!(other_mpi("", open), None);
        let told = other_mpi(open, "MPICH Version:      4.0.2").expect("another");
        assert!(told.contains("Open MPI v4.1.4, and") && told.contains("MPICH Version: 4.0.2"), "{told}");
        assert!(other_mpi(open, "Open MPI v5.0.1, package: Debian").is_some());
    }

    #[test]
    fn the_compiler_goes_with_the_launcher() {
        assert_eq!(compiler(Some("icx -cc"), Some("mpirun.mpich -n 4"), None), "icx -cc");
        assert_eq!(compiler(None, Some("mpirun.nowhere -n 4"), None), "mpicc");
        assert_eq!(compiler(None, None, Some("nowhere")), "mpicc");
        assert_eq!(compiler(None, Some("srun -n {n}"), None), "mpicc");
    }
}
