//! A working folder for `phasecast`, in which programs have names of their own, so that their processes can be told from
//! all others; and what may not be left behind.

use crate::example::compiled;
use crate::mpi::{Language, Mpi};
use crate::phasecast;
use crate::process::{Outcome, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Launchers of both of Debian's MPIs.
pub const LAUNCHERS: [&str; 2] = ["mpirun.openmpi -n {n}", "mpirun.mpich -n {n}"];
/// Steps of the stencil that are worth a signature with images: some three seconds on an idle machine.
pub const STEPS: [&str; 2] = ["512", "7000"];

/// Held by tests that may not run beside others.
static ALONE: Mutex<()> = Mutex::new(());

/// A temporary folder.
pub struct Place {
    folder: tempfile::TempDir,
    /// For the memory that Open MPI's ranks share, which those that are killed leave behind.
    shared: tempfile::TempDir,
    _alone: Option<MutexGuard<'static, ()>>,
}

impl Place {
    /// A new folder.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Place {
        let shared = tempfile::tempdir_in("/dev/shm").expect("a temporary folder in memory");
        Place { folder: tempfile::tempdir().expect("a temporary folder"), shared, _alone: None }
    }

    /// A new folder, for one test of a file at a time: tests that measure time, or have as many ranks as there may be
    /// processors.
    pub fn alone() -> Place {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Place { _alone: Some(alone), ..Place::new() }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// An example in this folder, by the name of its MPI and its own, as in `mpich-stencil`.
    pub fn program(&self, mpi: Mpi, source: &str) -> PathBuf {
        let copy = self.path().join(format!("{}-{}", mpi.name(), source.trim_end_matches(".c")));
        if !copy.exists() {
            fs::copy(compiled(mpi, source), &copy).expect("the program can be copied");
        }
        copy
    }

    /// Writes a C program to this folder, as `NAME.c`, and builds it there.
    ///
    /// # Panics
    /// Where it does not compile, with the compiler's words.
    pub fn built(&self, mpi: Mpi, name: &str, source: &str) {
        let path = self.path().join(format!("{name}.c"));
        fs::write(&path, source).expect("a source can be written");
        let mut compiler = Command::new(mpi.compiler(Language::C));
        run(compiler.arg("-O1").arg("-o").arg(path.with_extension("")).arg(&path)).succeeded();
    }

    /// The command, in this folder.
    pub fn phasecast(&self, words: &[&str]) -> Command {
        let mut command = Command::new(phasecast());
        command.args(words).current_dir(self.path());
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_rmaps_base_oversubscribe", "1").env("OMPI_MCA_mpi_yield_when_idle", "1");
        command.env("OMPI_MCA_btl_vader_backing_directory", self.shared.path());
        command
    }

    /// The command that signs the stencil of an MPI, 2 ranks, to `app.phc`.
    pub fn sign(&self, mpi: Mpi, more: &[&str]) -> Command {
        let mut command = self.phasecast(&["sign", "-n", "2", "-o", "app.phc", "--json"]);
        command.args(more).arg("--").arg(self.program(mpi, "stencil.c")).args(STEPS);
        command
    }

    /// Signs the stencil of an MPI without the test at the end.
    pub fn signed(&self, mpi: Mpi, more: &[&str]) -> Outcome {
        until_it_pays(|| run(&mut self.sign(mpi, &[&["--no-verify"], more].concat()))).succeeded()
    }

    /// Puts a signature of the stencil of an MPI here that is made once for all tests of a file. Its program is gone.
    pub fn given(&self, mpi: Mpi) {
        static MADE: Mutex<BTreeMap<Mpi, Vec<u8>>> = Mutex::new(BTreeMap::new());
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = made.entry(mpi).or_insert_with(|| {
            let elsewhere = Place::new();
            elsewhere.signed(mpi, &[]);
            fs::read(elsewhere.path().join("app.phc")).expect("it was written")
        });
        fs::write(self.path().join("app.phc"), bytes).expect("the folder for temporary files can be written to");
    }

    /// The command that predicts by `app.phc`.
    pub fn predict(&self, launcher: &str, more: &[&str]) -> Command {
        let mut command = self.phasecast(&["predict", "app.phc", "--json", "--launcher", launcher]);
        command.args(more);
        command
    }

    /// Processes that have something of this folder on their command line, or run a program of it.
    pub fn processes(&self) -> Vec<i32> {
        let folder = self.path().as_os_str().as_bytes();
        let ours = |pid: &i32| holds(&file_of(*pid, "cmdline"), folder) || exe(*pid).starts_with(self.path());
        let entries = fs::read_dir("/proc").expect("/proc is there").flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(ours).collect()
    }

    /// The ranks among them: hosts, and programs of this folder.
    pub fn ranks(&self) -> Vec<i32> {
        let is_host = |pid: i32| file_of(pid, "cmdline").split(|byte| *byte == 0).nth(1) == Some(b"host");
        self.processes().into_iter().filter(|&pid| is_host(pid) || exe(pid).starts_with(self.path())).collect()
    }

    /// Whether a file of this name is anywhere in the folder.
    pub fn has(&self, name: &str) -> bool {
        fn within(folder: &Path, name: &str) -> bool {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let is_it = |entry: fs::DirEntry| entry.file_name() == name || within(&entry.path(), name);
            entries.into_iter().any(is_it)
        }
        within(self.path(), name)
    }

    /// The ranks of which command line or environment holds this, if there are two of them.
    pub fn two_ranks(&self, with: &str) -> Option<Vec<i32>> {
        let told = |pid: &i32| ["cmdline", "environ"].iter().any(|of| holds(&file_of(*pid, of), with.as_bytes()));
        let found: Vec<i32> = self.ranks().into_iter().filter(told).collect();
        (found.len() == 2).then_some(found)
    }

    /// The same, once there are two.
    ///
    /// # Panics
    /// If they do not come.
    pub fn wait_for_ranks(&self, with: &str) -> Vec<i32> {
        let patience = Instant::now() + Duration::from_secs(180);
        loop {
            if let Some(found) = self.two_ranks(with) {
                return found;
            }
            assert!(Instant::now() < patience, "the ranks of {with:?} did not start");
            sleep(Duration::from_millis(5));
        }
    }

    /// Of a command nothing is left but the files that it was asked for: no process, and nothing in the folder but
    /// programs and files of these names.
    ///
    /// # Panics
    /// If something is left.
    pub fn assert_clean(&self, files: &[&str]) {
        let patience = Instant::now() + Duration::from_secs(5);
        while !self.processes().is_empty() && Instant::now() < patience {
            sleep(Duration::from_millis(20));
        }
        let lines: Vec<String> = self.processes().iter().map(|&pid| words(pid)).collect();
        assert_eq!(lines, [""; 0], "processes are left");
        let names = fs::read_dir(self.path()).expect("the folder is there").flatten().map(|e| e.file_name());
        let known = |name: &str| files.contains(&name) || Mpi::ALL.iter().any(|mpi| name.starts_with(mpi.name()));
        let left: Vec<_> = names.filter(|name| !name.to_str().is_some_and(known)).collect();
        assert!(left.is_empty(), "{left:?} are left");
    }
}

/// How an attempt at a signature ends: where other work disturbs both base runs, none may seem to pay (exit code 4), and
/// it is tried again.
pub fn until_it_pays(mut attempt: impl FnMut() -> Outcome) -> Outcome {
    let tries = (0..3).map(|_| attempt()).find(|outcome| outcome.code != 4);
    tries.unwrap_or_else(attempt)
}

/// What a command printed as JSON.
///
/// # Panics
/// If it is none.
pub fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}\n{outcome:?}"))
}

/// Sends a signal to a process; false if it is gone.
#[must_use]
pub fn send(pid: i32, signal: Signal) -> bool {
    kill(Pid::from_raw(pid), signal).is_ok()
}

/// The parent of a process, if there is such a process.
pub fn parent(pid: i32) -> Option<i32> {
    let status = String::from_utf8_lossy(&file_of(pid, "status")).into_owned();
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}

fn words(pid: i32) -> String {
    String::from_utf8_lossy(&file_of(pid, "cmdline")).replace('\0', " ")
}

/// A file of /proc; empty where the process is gone.
fn file_of(pid: i32, name: &str) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default()
}

fn exe(pid: i32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default()
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len().max(1)).any(|window| window == part)
}
