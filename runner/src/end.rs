//! The end of a child process, without looking for it again and again.
use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use phasecast_checkpoint::moment::monotonic_ns;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// When a process has ended, as a thread that waits for nothing else tells.
#[derive(Debug, Default)]
pub struct End {
    at_ns: Mutex<Option<u64>>,
    told: Condvar,
}

impl End {
    /// Watches a child.
    ///
    /// # Errors
    /// If there can be no thread for it.
    pub fn of(child: &Child) -> Result<Arc<End>> {
        let end = Arc::new(End::default());
        let (pid, tells) = (Pid::from_raw(child.id() as i32), end.clone());
        // The process stays to be asked for.
        let how = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        let waits = move || {
            while waitid(Id::Pid(pid), how) == Err(Errno::EINTR) {}
            tells.at_ns.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(monotonic_ns);
            tells.told.notify_all();
        };
        std::thread::Builder::new().spawn(waits).context("cannot watch the launcher")?;
        Ok(end)
    }

    /// Sleeps for so long, or until it ends: CLOCK_MONOTONIC in ns then.
    pub fn sleep(&self, most: Duration) -> Option<u64> {
        let at_ns = self.at_ns.lock().unwrap_or_else(PoisonError::into_inner);
        *self.told.wait_timeout_while(at_ns, most, |at_ns| at_ns.is_none()).unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    #[test]
    fn whoever_sleeps_wakes_at_the_end_and_the_child_is_still_there_to_be_asked() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a child");
        let end = End::of(&child).expect("a thread");
        assert_eq!(end.sleep(Duration::from_millis(1)), None);
        let (begun, before) = (Instant::now(), monotonic_ns());
        drop(child.stdin.take());
        let at_ns = end.sleep(Duration::from_secs(600)).expect("it ends");
        assert!((before..=monotonic_ns()).contains(&at_ns) && begun.elapsed() < Duration::from_secs(600));
        assert_eq!(end.sleep(Duration::from_secs(600)), Some(at_ns));
        assert!(child.wait().expect("it can be asked").success());
    }
}
