//! Another release of Debian in a folder: another C library, other MPIs. It is made once, in the target folder, from
//! Debian's registry, which takes root, some two minutes and 600 MB.

use crate::place::Place;
use crate::process::start;
use crate::target;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The release, and where it comes from.
const RELEASE: [&str; 2] = ["trixie", "http://deb.debian.org/debian"];
/// What is installed there beside the smallest system.
const PACKAGES: &str = "mpich openmpi-bin";
/// How long it may take to make it, on a slow network.
const LIMIT: Duration = Duration::from_secs(900);

/// The root folder of the release, made if it is not there.
///
/// # Panics
/// If it cannot be made.
pub fn root() -> PathBuf {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let [release, mirror] = RELEASE;
    let folder = target().join("releases");
    // The name tells what is in it: with other packages it is another one. It has that name only when it is complete.
    let complete = folder.join(format!("{release}-{}", PACKAGES.replace(' ', "-")));
    if complete.exists() {
        return complete;
    }
    fs::create_dir_all(&folder).expect("the target folder can be written to");
    let fresh = folder.join("unfinished");
    let script = "set -e; rm -rf --one-file-system \"$0\"; debootstrap --variant=minbase \"$1\" \"$0\" \"$2\"
        export DEBIAN_FRONTEND=noninteractive
        chroot \"$0\" apt-get install -y -q --no-install-recommends $3
        chroot \"$0\" apt-get clean; rm -rf \"$0\"/var/lib/apt/lists/*";
    // What it mounts goes with its namespace, however it ends.
    let mut make = Command::new("unshare");
    make.args(["--mount", "--propagation", "private", "sh", "-c", script]).arg(&fresh);
    let outcome = start(make.args([release, mirror, PACKAGES])).finish_within(LIMIT);
    let outcome = outcome.unwrap_or_else(|slow| panic!("making {release} took more than {LIMIT:?}: {slow:?}"));
    outcome.succeeded();
    fs::rename(&fresh, &complete).expect("a folder can be renamed");
    complete
}

/// A command to run in that release, with the folder of `place` at its own path as the working folder, and nothing else of
/// this system. Its processes and mounts end with it.
pub fn command(place: &Place, words: &[impl AsRef<OsStr>]) -> Command {
    let script = "set -e; mount -t proc none \"$0/proc\"; mount --rbind /sys \"$0/sys\"; mount --rbind /dev \"$0/dev\"
        mount -t tmpfs none \"$0/tmp\"; mkdir -p \"$0$1\"; mount --bind \"$1\" \"$0$1\"; cd \"$0\"
        exec chroot \"$0\" /bin/sh -c 'cd \"$0\" && exec \"$@\"' \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "sh", "-c", script]);
    command.arg(root()).arg(place.path()).args(words);
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env_remove("LD_LIBRARY_PATH").env_remove("TMPDIR");
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe").env("OMPI_MCA_mpi_yield_when_idle", "1");
    command
}
