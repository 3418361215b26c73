//! Half of a processor's time for each rank, by cgroup quotas with a period of 2 ms (versions 1 and 2 of cgroups). Each
//! rank has a group of its own: in a common one, one rank takes the whole quota in a slice, and the ranks run in turns.
use crate::Res;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The period in microseconds: the shortest whose half the kernel allows.
const PERIOD: u32 = 2000;

/// A group for each rank, with half of a processor's time. They go when it is dropped.
pub struct Half {
    folders: Vec<PathBuf>,
    script: PathBuf,
    _scratch: tempfile::TempDir,
}

impl Half {
    /// New groups, or why there can be none.
    pub fn new(ranks: usize) -> Res<Half> {
        let (one, two) = (Path::new("/sys/fs/cgroup/cpu"), Path::new("/sys/fs/cgroup"));
        let first = one.join("cpu.cfs_quota_us").exists();
        let stem = if first { one } else { two }.join(format!("phasecast-{}", std::process::id()));
        let scratch = tempfile::tempdir()?;
        let script = scratch.path().join("half");
        let mut half = Half { folders: Vec::new(), script, _scratch: scratch };
        for rank in 0..ranks {
            let folder = PathBuf::from(format!("{}-{rank}", stem.display()));
            fs::create_dir(&folder)?;
            half.folders.push(folder.clone());
            if first {
                fs::write(folder.join("cpu.cfs_period_us"), PERIOD.to_string())?;
                fs::write(folder.join("cpu.cfs_quota_us"), (PERIOD / 2).to_string())?;
            } else {
                fs::write(folder.join("cpu.max"), format!("{} {PERIOD}", PERIOD / 2))?;
            }
        }
        let rank = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}";
        let text = format!("#!/bin/sh\necho $$ > {}-{rank}/cgroup.procs || exit 1\nexec \"$@\"\n", stem.display());
        fs::write(&half.script, text)?;
        fs::set_permissions(&half.script, fs::Permissions::from_mode(0o755))?;
        Ok(half)
    }

    /// A command that a launcher starts for each rank: it runs the one after it in the rank's group.
    pub fn command(&self) -> String {
        self.script.display().to_string()
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        for folder in &self.folders {
            let _ = fs::remove_dir(folder);
        }
    }
}
