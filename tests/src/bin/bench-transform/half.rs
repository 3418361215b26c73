//! Half of the processors' time for a command, by a cgroup quota with a period of 1 ms (versions 1 and 2 of cgroups).
use crate::Res;
use std::fs;
use std::path::PathBuf;

/// The period in microseconds: the shortest that the kernel allows.
const PERIOD: u32 = 1000;

/// A group that has half of the time of some processors. It goes when it is dropped.
pub struct Half {
    folder: PathBuf,
    script: PathBuf,
    _scratch: tempfile::TempDir,
}

impl Half {
    /// A new group, or why there can be none.
    pub fn new(processors: u32) -> Res<Half> {
        let name = format!("phasecast-{}", std::process::id());
        let quota = PERIOD * processors / 2;
        let (one, two) = (PathBuf::from("/sys/fs/cgroup/cpu"), PathBuf::from("/sys/fs/cgroup"));
        let folder = if one.join("cpu.cfs_quota_us").exists() {
            let folder = one.join(name);
            fs::create_dir(&folder)?;
            fs::write(folder.join("cpu.cfs_period_us"), PERIOD.to_string())?;
            fs::write(folder.join("cpu.cfs_quota_us"), quota.to_string())?;
            folder
        } else {
            let folder = two.join(name);
            fs::create_dir(&folder)?;
            fs::write(folder.join("cpu.max"), format!("{quota} {PERIOD}"))?;
            folder
        };
        let scratch = tempfile::tempdir()?;
        let script = scratch.path().join("half");
        let procs = folder.join("cgroup.procs");
        fs::write(&script, format!("#!/bin/sh\necho $$ > {} || exit 1\nexec \"$@\"\n", procs.display()))?;
        let mut mode = fs::metadata(&script)?.permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
        fs::set_permissions(&script, mode)?;
        Ok(Half { folder, script, _scratch: scratch })
    }

    /// A command that runs the one after it in the group.
    pub fn command(&self) -> String {
        self.script.display().to_string()
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}
