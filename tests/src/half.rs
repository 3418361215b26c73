//! Half of a processor's time for each rank of a program, by cgroup quotas (versions 1 and 2 of cgroups).

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::{fs, process};

/// The period in microseconds: the shortest whose half the kernel allows as a quota.
const PERIOD: u32 = 2000;

/// A script that gives each process that is started through it a cgroup of its own, with half of a processor's time. In a
/// common group one rank would take the whole quota in a slice, and the ranks would run in turns.
pub struct Halves {
    name: String,
    root: PathBuf,
    script: PathBuf,
    _scratch: tempfile::TempDir,
}

impl Halves {
    /// The script.
    ///
    /// # Errors
    /// If there can be none here.
    pub fn new() -> io::Result<Halves> {
        let name = format!("phasecast-{}", process::id());
        let one = PathBuf::from("/sys/fs/cgroup/cpu");
        let first = one.join("cpu.cfs_quota_us").exists();
        let root = if first { one } else { PathBuf::from("/sys/fs/cgroup") };
        let (group, quota) = (format!("{}/{name}-$$", root.display()), PERIOD / 2);
        let limit = if first {
            format!("echo {PERIOD} > {group}/cpu.cfs_period_us && echo {quota} > {group}/cpu.cfs_quota_us")
        } else {
            format!("echo '{quota} {PERIOD}' > {group}/cpu.max")
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

    /// What a launcher starts for each rank: it runs the command after it in a group of its own.
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
