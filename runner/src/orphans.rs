//! Processes that a launcher leaves behind: one that is killed cannot end its ranks. So this process becomes the parent of
//! what its launchers leave (they are its "subreaper"), finds its descendants, and ends them.
use crate::files;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use phasecast_checkpoint::state_and_parent;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// So long descendants may take to die.
const PATIENCE: Duration = Duration::from_secs(2);

/// From now on what a child of this process leaves behind becomes a child of this process; and the child is told to end
/// if this process is killed, and may open as many files as this process might at its start.
pub fn keep(command: &mut Command) -> &mut Command {
    // Kernels before 3.4 cannot: what is left behind is then not seen.
    let _ = prctl::set_child_subreaper(true);
    let us = Pid::this();
    let with_us = move || {
        files::restore();
        prctl::set_pdeathsig(Signal::SIGTERM)?;
        if Pid::parent() == us { Ok(()) } else { Err(std::io::ErrorKind::Interrupted.into()) }
    };
    // SAFETY: system calls only, which may be made between fork and exec.
    unsafe { command.pre_exec(with_us) }
}

/// Ends all descendants of this process.
pub fn end() {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = descendants();
        if left.is_empty() || Instant::now() > until {
            return;
        }
        for pid in left {
            let _ = kill(pid, Signal::SIGKILL);
            // Only what is a child by now can be waited for; the rest becomes one.
            let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Children of this process, their children, and so on.
fn descendants() -> Vec<Pid> {
    let parents = parents();
    let mut found = vec![std::process::id()];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    found.into_iter().skip(1).map(|pid| Pid::from_raw(pid as i32)).collect()
}

/// All processes with their parents.
fn parents() -> Vec<(u32, u32)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, state_and_parent(pid)?.1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::resource::{Resource, getrlimit};
    use std::sync::{Mutex, PoisonError};

    /// Tests count the children of their process.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    #[test]
    fn this_process_may_open_more_files_but_not_its_children() {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = || getrlimit(Resource::RLIMIT_NOFILE).expect("it has one");
        let (soft, hard) = limit();
        files::raise();
        assert_eq!(limit(), (hard, hard));
        let told = keep(Command::new("sh").args(["-c", "ulimit -n"])).output().expect("there is a shell");
        assert_eq!(String::from_utf8_lossy(&told.stdout).trim(), soft.to_string());
    }

    #[test]
    fn what_a_killed_child_leaves_behind_is_ended() {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shell = Command::new("sh");
        keep(shell.args(["-c", "setsid sleep 1000 & setsid sh -c 'sleep 1000; true' & sleep 1000; true"]));
        let mut child = shell.spawn().expect("there is a shell");
        let until = Instant::now() + Duration::from_secs(10);
        while descendants().len() < 5 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(descendants().len(), 5, "a shell with three children, one of which has one");
        child.kill().expect("it runs");
        child.wait().expect("it was ours");
        assert_eq!(descendants().len(), 4);
        end();
        assert_eq!(descendants(), []);
    }
}
