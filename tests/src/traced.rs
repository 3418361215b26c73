//! Running a program under `phasecast trace`, and asking the trace what was recorded.

use crate::mpi::Mpi;
use crate::phasecast;
use crate::process::{Outcome, Running, run, start};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Calls by procedure, over all ranks.
pub type Counts = BTreeMap<String, u64>;

/// Procedures that only this rank's MPI library hears of: a tracer need not record them, as no time passes in them that
/// depends on another rank. If it does record them, it must record each call.
pub const LOCAL: [&str; 25] = [
    "MPI_Buffer_attach",
    "MPI_Buffer_detach",
    "MPI_Cart_shift",
    "MPI_Comm_group",
    "MPI_Comm_rank",
    "MPI_Comm_size",
    "MPI_File_delete",
    "MPI_File_get_position",
    "MPI_File_get_size",
    "MPI_File_seek",
    "MPI_Get_count",
    "MPI_Group_free",
    "MPI_Group_incl",
    "MPI_Group_range_incl",
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Pcontrol",
    "MPI_Reduce_local",
    "MPI_Test_cancelled",
    "MPI_Type_commit",
    "MPI_Type_free",
    "MPI_Type_vector",
    "MPI_Win_attach",
    "MPI_Win_detach",
    "MPI_Wtime",
];

/// A program with its arguments, to be traced in a folder of its own.
pub struct Job {
    folder: TempDir,
    command: Command,
}

/// A run that ended.
pub struct Traced {
    /// The trace.
    pub trace: PathBuf,
    /// What the run printed and how it ended.
    pub outcome: Outcome,
    /// What the program says that it called.
    pub told: Counts,
    /// Removed with this.
    _folder: TempDir,
}

impl Job {
    /// `PROGRAM ARGUMENTS` on `ranks` ranks. The argument `@` stands for a folder to write in.
    ///
    /// # Panics
    /// Where there is no room for temporary files.
    pub fn new<S: AsRef<std::ffi::OsStr>>(mpi: Mpi, ranks: u32, program: &[S]) -> Job {
        Job::with(mpi, ranks, program, &[])
    }

    /// The same with computation counted, by the `hardware` or by `software` events in its place.
    ///
    /// # Panics
    /// As [`Job::new`].
    pub fn counted<S: AsRef<std::ffi::OsStr>>(mpi: Mpi, ranks: u32, program: &[S], events: &str) -> Job {
        let mut job = Job::with(mpi, ranks, program, &["--counters"]);
        job.command.env("PHASECAST_COUNTERS", events);
        job
    }

    fn with<S: AsRef<std::ffi::OsStr>>(mpi: Mpi, ranks: u32, program: &[S], options: &[&str]) -> Job {
        let folder = tempfile::tempdir().expect("the folder for temporary files can be written to");
        let mut command = mpi.launcher(ranks);
        command.arg(phasecast()).arg("trace").args(options);
        command.arg("-o").arg(folder.path().join("run.trace")).arg("--");
        for word in program {
            if word.as_ref() == "@" {
                command.arg(folder.path())
            } else {
                command.arg(word)
            };
        }
        command.env("COUNT_FILE", folder.path().join("counts"));
        Job { folder, command }
    }

    /// The command, to add to its environment.
    pub fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Starts it, for a test that interferes; [`Job::ended`] goes on from there.
    pub fn start(&mut self) -> Running {
        start(&mut self.command)
    }

    /// Runs it to its end, whatever that is.
    pub fn run(mut self) -> Traced {
        let outcome = run(&mut self.command);
        self.ended(outcome)
    }

    /// Takes up what the run left.
    pub fn ended(self, outcome: Outcome) -> Traced {
        let file = fs::read_to_string(self.folder.path().join("counts")).unwrap_or_default();
        let told = counts(file.lines().chain(outcome.stdout.lines()));
        Traced { trace: self.folder.path().join("run.trace"), outcome, told, _folder: self.folder }
    }
}

/// Adds up the lines `COUNT rank procedure calls`.
fn counts<'a>(lines: impl Iterator<Item = &'a str>) -> Counts {
    let mut sums = Counts::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["COUNT", _, procedure, calls] = words[..] {
            let calls: u64 = calls.parse().unwrap_or_else(|_| panic!("not a count: {line}"));
            *sums.entry(procedure.to_owned()).or_default() += calls;
        }
    }
    sums
}

impl Traced {
    /// `phasecast stat --json` of the trace.
    ///
    /// # Panics
    /// Where the command fails or prints anything but one object.
    pub fn stat(&self) -> Value {
        let out = run(Command::new(phasecast()).arg("stat").arg(&self.trace).arg("--json")).succeeded();
        serde_json::from_str(&out.stdout).unwrap_or_else(|error| panic!("{error} in\n{}", out.stdout))
    }

    /// The lines of `phasecast dump --format csv`, each as its fields by column name.
    ///
    /// # Panics
    /// Where the command fails or a line has not as many fields as the first.
    pub fn dump(&self) -> Vec<BTreeMap<String, String>> {
        let out = run(Command::new(phasecast()).arg("dump").arg(&self.trace).args(["--format", "csv"])).succeeded();
        let mut lines = out.stdout.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let names = lines.next().expect("a dump has a line of column names");
        lines
            .map(|fields| {
                assert_eq!(fields.len(), names.len(), "{fields:?}");
                names.iter().cloned().zip(fields).collect()
            })
            .collect()
    }

    /// Asserts that what was recorded is what the program says that it called, call for call.
    ///
    /// # Panics
    /// With every difference.
    pub fn assert_counts(&self) {
        assert!(self.told.len() > 3, "the program told too little:\n{:?}", self.outcome);
        self.assert_counts_of(&calls(&self.stat()), &self.told);
    }

    /// As [`Traced::assert_counts`], for recorded and told calls that were made comparable before.
    ///
    /// # Panics
    /// With every difference.
    pub fn assert_counts_of(&self, recorded: &Counts, told: &Counts) {
        let names: BTreeSet<&String> = recorded.keys().chain(told.keys()).collect();
        let of = |counts: &Counts, name: &String| counts.get(name).copied().unwrap_or(0);
        let wrong: Vec<String> = names
            .into_iter()
            .filter(|name| of(recorded, name) != of(told, name))
            .filter(|name| recorded.contains_key(*name) || !LOCAL.contains(&name.as_str()))
            .map(|name| format!("{name}: called {}, recorded {}", of(told, name), of(recorded, name)))
            .collect();
        assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), self.outcome.stderr);
    }
}

/// The calls by procedure in an answer of `stat`.
///
/// # Panics
/// Where the answer has none.
pub fn calls(stat: &Value) -> Counts {
    let calls = stat["calls"].as_object().unwrap_or_else(|| panic!("no calls in {stat}"));
    calls.iter().map(|(name, n)| (name.clone(), n.as_u64().expect("a count is a whole number"))).collect()
}

/// The ranks whose recording breaks off, in an answer of `stat`.
///
/// # Panics
/// Where the answer does not say.
pub fn truncated(stat: &Value) -> Vec<u64> {
    let ranks = stat["truncated_ranks"].as_array().unwrap_or_else(|| panic!("no truncated_ranks in {stat}"));
    ranks.iter().map(|rank| rank.as_u64().or_else(|| rank["rank"].as_u64()).expect("a rank is a number")).collect()
}
