//! Running a command to its end, or to the end of its time.

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a command may take before it is ended and the test fails.
pub const LIMIT: Duration = Duration::from_secs(300);

/// What a command left.
#[derive(Debug)]
pub struct Outcome {
    /// Exit code; 128 + signal for one that a signal ended.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Outcome {
    /// This outcome, if the command succeeded.
    ///
    /// # Panics
    /// With both outputs where it did not.
    pub fn succeeded(self) -> Outcome {
        assert_eq!(self.code, 0, "exit code\n--- stdout\n{}\n--- stderr\n{}", self.stdout, self.stderr);
        self
    }
}

/// A command under way, which ends with this value. Its outputs go to files, so that no child of it can hold up the test by a
/// pipe.
pub struct Running {
    child: Child,
    stdout: File,
    stderr: File,
    words: String,
    until: Instant,
}

/// Starts a command in a process group of its own, with nothing to read. It is asked to end when the thread that has
/// started it does: what is killed leaves no launch behind.
///
/// # Panics
/// Where it cannot be started.
pub fn start(command: &mut Command) -> Running {
    let words = format!("{command:?}");
    let (stdout, stderr) = (scratch(), scratch());
    let (out, err) = (stdout.try_clone(), stderr.try_clone());
    command.stdin(Stdio::null()).stdout(out.expect("a file can be shared")).stderr(err.expect("a file can be shared"));
    // SAFETY: one system call between fork and exec.
    unsafe { command.pre_exec(|| set_pdeathsig(Signal::SIGTERM).map_err(Into::into)) };
    let child = command.process_group(0).spawn().unwrap_or_else(|error| panic!("{words}: {error}"));
    Running { child, stdout, stderr, words, until: Instant::now() + LIMIT }
}

/// Runs a command to its end.
///
/// # Panics
/// Where it cannot be started or takes longer than [`LIMIT`]; then it is ended first.
pub fn run(command: &mut Command) -> Outcome {
    start(command).finish()
}

impl Running {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Standard output so far.
    pub fn stdout(&self) -> String {
        text(&self.stdout)
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_some()
    }

    /// Waits until `found` is in standard output, and returns it all.
    ///
    /// # Panics
    /// Where the command ends or its time runs out before that.
    pub fn wait_for(&mut self, found: impl Fn(&str) -> bool) -> String {
        loop {
            let output = self.stdout();
            if found(&output) {
                return output;
            }
            if self.has_ended() || Instant::now() > self.until {
                self.end();
                panic!("{}: not seen what was waited for\n{output}\n{}", self.words, text(&self.stderr));
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// Where the time runs out first; then the command and its group are ended.
    pub fn finish(self) -> Outcome {
        let words = self.words.clone();
        self.finish_until(None).unwrap_or_else(|Outcome { stdout, stderr, .. }| {
            panic!("{words} took more than {LIMIT:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
        })
    }

    /// Waits for the end, but not for longer than `limit`.
    ///
    /// # Errors
    /// What the command has left so far, where the time ran out first; the command and its group are ended then.
    pub fn finish_within(self, limit: Duration) -> Result<Outcome, Outcome> {
        self.finish_until(Some(Instant::now() + limit))
    }

    fn finish_until(mut self, until: Option<Instant>) -> Result<Outcome, Outcome> {
        let until = until.unwrap_or(self.until);
        loop {
            let ended = self.child.try_wait().expect("a child can be waited for");
            if ended.is_none() && Instant::now() <= until {
                sleep(Duration::from_millis(5));
                continue;
            }
            let code = ended.and_then(|status| status.code().or_else(|| status.signal().map(|s| 128 + s)));
            if ended.is_none() {
                self.end();
            }
            let outcome = Outcome { code: code.unwrap_or(-1), stdout: text(&self.stdout), stderr: text(&self.stderr) };
            return if ended.is_some() { Ok(outcome) } else { Err(outcome) };
        }
    }

    /// Asks a launcher to end its ranks, and after a while ends what is left.
    fn end(&mut self) {
        let group = Pid::from_raw(self.child.id().cast_signed());
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            let patience = Instant::now() + Duration::from_secs(3);
            while Instant::now() < patience
                && killpg(group, signal).is_ok()
                && matches!(self.child.try_wait(), Ok(None))
            {
                sleep(Duration::from_millis(100));
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
    }
}

fn scratch() -> File {
    tempfile::tempfile().expect("the folder for temporary files can be written to")
}

/// All that is in the file, read by position: its offset is shared with the child that writes to it.
fn text(file: &File) -> String {
    let length = file.metadata().expect("an open file has a length").len();
    let mut bytes = vec![0; usize::try_from(length).expect("an output fits in memory")];
    file.read_exact_at(&mut bytes, 0).expect("a file can be read");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_does_not_outlive_its_test() {
        let mut command = Command::new("sleep");
        let running = start(command.arg("1000"));
        let process = Pid::from_raw(running.id().cast_signed());
        drop(running);
        assert!(nix::sys::signal::kill(process, None).is_err(), "{process} is there");
    }
}
