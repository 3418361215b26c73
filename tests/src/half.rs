//! Half of the processors' time for a program, by cgroup quotas (versions 1 and 2 of cgroups).

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread::available_parallelism;
use std::{fs, process};

/// A script that gives each process that is started through it, and what that starts, a cgroup with half of the time.
pub struct Halves {
    name: String,
    root: PathBuf,
    script: PathBuf,
    _scratch: tempfile::TempDir,
}

impl Halves {
    /// Half of all processors' time for what is started, a whole launch, in a period of so many microseconds, at least 1000
    /// on two processors. With the 100 ms by which containers and batch systems limit jobs all ranks run and stand still at
    /// about the same times; with 1 ms one rank takes the whole quota in a slice, and the ranks run in turns.
    ///
    /// # Errors
    /// If there can be none here.
    pub fn of_job(period: u32) -> io::Result<Halves> {
        let processors = u32::try_from(available_parallelism()?.get()).unwrap_or(1);
        Halves::new(&format!("job{period}"), period, processors * period / 2)
    }

    /// Half of one processor's time for what is started, a single rank, in a period of 2 ms: the shortest whose half the
    /// kernel allows as a quota. Ranks stand still at times of their own.
    ///
    /// # Errors
    /// If there can be none here.
    pub fn of_rank() -> io::Result<Halves> {
        Halves::new("rank", 2000, 1000)
    }

    /// Groups with a period and a quota in microseconds.
    fn new(kind: &str, period: u32, quota: u32) -> io::Result<Halves> {
        let name = format!("phasecast-{kind}-{}", process::id());
        let one = PathBuf::from("/sys/fs/cgroup/cpu");
        let first = one.join("cpu.cfs_quota_us").exists();
        let root = if first { one } else { PathBuf::from("/sys/fs/cgroup") };
        let group = format!("{}/{name}-$$", root.display());
        let limit = if first {
            format!("echo {period} > {group}/cpu.cfs_period_us && echo {quota} > {group}/cpu.cfs_quota_us")
        } else {
            format!("echo '{quota} {period}' > {group}/cpu.max")
        };
        let scratch = tempfile::tempdir()?;
        let script = scratch.path().join("half");
        let text =
            format!("#!/bin/sh\nmkdir {group} && {limit} && echo $$ > {group}/cgroup.procs || exit 1\nexec \"$@\"\n");
        fs::write(&script, text)?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        let halves = Halves { name, root, script, _scratch: scratch };
        let tried = Command::new(&halves.script).arg("true").output()?;
        if tried.status.success() {
            return Ok(halves);
        }
        Err(io::Error::other(String::from_utf8_lossy(&tried.stderr).trim().to_owned()))
    }

    /// The script: it runs the command after it in a group of its own.
    pub fn script(&self) -> String {
        self.script.display().to_string()
    }
}

impl Drop for Halves {
    fn drop(&mut self) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&self.name) {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}
