//! Starts a parallel program with the machine's launcher, watches it, and ends it without leaving a process behind.
use crate::end::End;
use crate::exit::Refusal;
use crate::orphans;
use crate::output::{note, shell};
use anyhow::{Context, Result, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{AccessFlags, Pid, access};
use phasecast_checkpoint::COMPLAINT;
use phasecast_checkpoint::moment::monotonic_ns;
use phasecast_trace::Nanos;
use std::ffi::{OsStr, OsString};
use std::fs::{File, FileType};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// So often it is looked at how a launch stands.
pub const POLL: Duration = Duration::from_millis(100);
/// So many complaints are told, and so many bytes of output are kept to find them in.
const COMPLAINTS: usize = 3;
const KEPT: usize = 16 << 10;

/// The library families whose launchers have names of their own where several are installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Open MPI.
    OpenMpi,
    /// MPICH, and all that have its binary interface.
    Mpich,
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Family::OpenMpi => "Open MPI",
            Family::Mpich => "MPICH or one like it",
        })
    }
}

/// How a program is started: words that stand before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    words: Vec<OsString>,
}

impl Launcher {
    /// The launcher given by the user, in words as a shell splits them, `{n}` standing for the number of ranks; else the `mpirun` that fits the MPI
    /// library which the program needs; else the first of `mpirun`, `mpiexec` and `srun` in PATH.
    ///
    /// # Errors
    /// If the template is empty or no words, or there is no such launcher.
    pub fn find(template: Option<&str>, ranks: u32, program: &Path) -> Result<Launcher> {
        if let Some(template) = template {
            let usage = |what: String| Refusal::Usage(what);
            let words = shlex::split(template);
            let words = words.ok_or_else(|| usage(format!("--launcher {template:?} ends within quotes")))?;
            if words.is_empty() {
                return Err(usage("--launcher is empty: give a command such as 'srun -n {n}'".into()).into());
            }
            if !template.contains("{n}") && ["{n", "{N", "{}"].iter().any(|like| template.contains(like)) {
                let what = format!("--launcher {template:?} has no {{n}}, which stands for the number of ranks");
                return Err(usage(what).into());
            }
            let filled = |word: String| word.replace("{n}", &ranks.to_string()).into();
            let words: Vec<OsString> = words.into_iter().map(filled).collect();
            if in_path(&words[0]).is_none() {
                return Err(Refusal::Unfit(format!("there is no launcher {}", words[0].display())).into());
            }
            return Ok(Launcher { words });
        }
        let names: &[&str] = match family(program) {
            Some(Family::OpenMpi) => &["mpirun.openmpi", "mpirun", "mpiexec", "srun"],
            Some(Family::Mpich) => &["mpirun.mpich", "mpiexec.hydra", "mpirun", "mpiexec", "srun"],
            None => &["mpirun", "mpiexec", "srun"],
        };
        let found = names.iter().find(|name| in_path(OsStr::new(name)).is_some());
        let none = "no mpirun, mpiexec or srun is in PATH. Install an MPI, or name one with --launcher.";
        let found = found.ok_or_else(|| Refusal::Unfit(none.into()))?;
        // By its name alone: one with a path means `--prefix` to Open MPI's, which puts its folders before all others of PATH.
        Ok(Launcher { words: vec![found.into(), "-n".into(), ranks.to_string().into()] })
    }

    /// Starts `command` under the launcher, in a process group of its own. Its output goes to our standard error, so
    /// that ours stays free for results.
    ///
    /// # Errors
    /// If the launcher cannot be started.
    pub fn start(&self, command: &[OsString]) -> Result<Launch> {
        let started_ns = monotonic_ns();
        let mut launcher = Command::new(&self.words[0]);
        let mut child = orphans::keep(launcher.args(&self.words[1..]).args(command))
            .stdin(input()?)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start the launcher {}", self.words[0].display()))?;
        let end = End::of(&child).inspect_err(|_| _ = child.kill())?;
        let (quiet, said) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let pipes = [
            child.stdout.take().map(|pipe| forward(pipe, quiet.clone(), said.clone())),
            child.stderr.take().map(|pipe| forward(pipe, quiet.clone(), said.clone())),
        ];
        Ok(Launch { child, started_ns, end, quiet, said, pipes: pipes.into_iter().flatten().collect(), ended: None })
    }

    /// Runs `command` to its end as [`Launcher::start`] starts it: how it ended, and the time from launch to the end of the
    /// launcher in seconds.
    ///
    /// # Errors
    /// If the launcher cannot be started, or the user interrupts.
    pub fn run(&self, command: &[OsString]) -> Result<(ExitStatus, f64)> {
        let mut launch = self.start(command)?;
        let (status, ended) = launch.wait()?;
        Ok((status, Nanos(ended).since(Nanos(launch.started_ns())).seconds()))
    }
}

impl std::fmt::Display for Launcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<_> = self.words.iter().map(|w| w.to_string_lossy()).collect();
        f.write_str(&shell(&words))
    }
}

/// A running launcher with the program under it. Ended when dropped.
#[derive(Debug)]
pub struct Launch {
    child: Child,
    started_ns: u64,
    end: Arc<End>,
    quiet: Arc<AtomicBool>,
    said: Arc<Mutex<Vec<u8>>>,
    pipes: Vec<JoinHandle<()>>,
    ended: Option<(ExitStatus, u64)>,
}

impl Launch {
    /// CLOCK_MONOTONIC when it was started, in ns.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// How it ended and CLOCK_MONOTONIC (ns) at that moment, if it has.
    ///
    /// # Errors
    /// If the system cannot say.
    pub fn ended(&mut self) -> Result<Option<(ExitStatus, u64)>> {
        if self.ended.is_none()
            && let Some(status) = self.child.try_wait()?
        {
            self.ended = Some((status, self.end.sleep(Duration::ZERO).unwrap_or_else(monotonic_ns)));
            // A rank that outlives the launcher may hold a pipe open: what it says is not waited for.
            let patience = Instant::now() + Duration::from_millis(500);
            while Instant::now() < patience && self.pipes.iter().any(|pipe| !pipe.is_finished()) {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.pipes.clear();
        }
        Ok(self.ended)
    }

    /// What our own processes under it have complained of, without their name; empty if nothing.
    pub fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&said);
        let complaints = text.lines().filter_map(|line| line.rsplit_once(COMPLAINT).map(|(_, words)| words.trim()));
        let mut complaints: Vec<&str> = complaints.take(COMPLAINTS).collect();
        complaints.dedup();
        complaints.join("; ")
    }

    /// Sleeps for so long, or until it ends. Whoever wakes up often takes time from ranks that have no processor to spare.
    pub fn sleep(&self, most: Duration) {
        self.end.sleep(most);
    }

    /// Waits until it ends or the user interrupts.
    ///
    /// # Errors
    /// If the user interrupts: then it is ended.
    pub fn wait(&mut self) -> Result<(ExitStatus, u64)> {
        loop {
            if let Some(end) = self.wait_for(Duration::from_secs(3600))? {
                return Ok(end);
            }
        }
    }

    /// The same for so long at most: none if it still runs then.
    ///
    /// # Errors
    /// If the user interrupts: then it is ended.
    pub fn wait_for(&mut self, patience: Duration) -> Result<Option<(ExitStatus, u64)>> {
        let begun = Instant::now();
        loop {
            if let Some(end) = self.ended()? {
                return Ok(Some(end));
            }
            if interrupted() {
                self.stop(&[]);
                bail!("interrupted; the program was ended");
            }
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            self.sleep(left.min(POLL));
        }
    }

    /// Ends the program: the launcher is asked to, the ranks on this host (`pids`) are killed, and what is left of
    /// its process group after three seconds too. What it has left behind is ended in any case, unless it has ended well.
    pub fn stop(&mut self, pids: &[u32]) {
        self.quiet.store(true, Ordering::Relaxed);
        let ended = matches!(self.ended(), Ok(Some(_)));
        let group = Pid::from_raw(self.child.id() as i32);
        if !ended {
            let _ = kill(group, Signal::SIGTERM);
        }
        for &pid in pids {
            let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
        }
        if ended {
            // One that failed, or was killed, may have left its ranks behind.
            if self.ended.is_some_and(|(status, _)| !status.success()) {
                orphans::end();
            }
            return;
        }
        let patience = Instant::now() + Duration::from_secs(3);
        while Instant::now() < patience && !matches!(self.ended(), Ok(Some(_))) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = killpg(group, Signal::SIGKILL);
        if let Ok(status) = self.child.wait() {
            self.ended.get_or_insert((status, monotonic_ns()));
        }
        orphans::end();
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        self.stop(&[]);
    }
}

/// What the launcher gets as its input, which it hands to a rank: a file is read from its start by each run; a terminal or a
/// pipe, which only one run could read, is not passed on. That something waits in a pipe is told, once.
fn input() -> Result<Stdio> {
    static TOLD: Once = Once::new();
    let kind = std::fs::metadata("/dev/stdin").map(|data| data.file_type());
    if kind.as_ref().is_ok_and(FileType::is_file) {
        return Ok(File::open("/dev/stdin").context("cannot read the standard input again")?.into());
    }
    let stdin = std::io::stdin();
    let mut waits = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    if kind.is_ok_and(|kind| kind.is_fifo())
        && poll(&mut waits, PollTimeout::ZERO).is_ok()
        && waits[0].revents().is_some_and(|events| events.contains(PollFlags::POLLIN))
    {
        TOLD.call_once(|| {
            note("the program gets no input: a pipe could be read by one run only. Give it a file, `< FILE`")
        });
    }
    Ok(Stdio::null())
}

fn forward(mut pipe: impl Read + Send + 'static, quiet: Arc<AtomicBool>, said: Arc<Mutex<Vec<u8>>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = pipe.read(&mut buffer) {
            if let Ok(mut said) = said.lock() {
                said.extend_from_slice(&buffer[..length]);
                let old = said.len().saturating_sub(KEPT);
                said.drain(..old);
            }
            if !quiet.load(Ordering::Relaxed) {
                let _ = std::io::stderr().write_all(&buffer[..length]);
            }
        }
    })
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether the user has asked to stop since [`catch_interrupts`].
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// From now on SIGINT, SIGTERM and SIGHUP set a flag, so that the program is ended before we are.
pub fn catch_interrupts() {
    extern "C" fn note(_: i32) {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }
    on_interrupts(note);
}

/// From now on `handler`, which makes nothing but system calls and reads and writes of atomics, is called on SIGINT, SIGTERM
/// and SIGHUP; on SIGHUP not where it is ignored, as `nohup` has it.
pub fn on_interrupts(handler: extern "C" fn(i32)) {
    use nix::sys::signal::{SigHandler, signal};
    for number in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: such a handler is safe wherever a signal comes.
        let before = unsafe { signal(number, SigHandler::Handler(handler)) };
        if number == Signal::SIGHUP && before == Ok(SigHandler::SigIgn) {
            // SAFETY: no handler.
            let _ = unsafe { signal(number, SigHandler::SigIgn) };
        }
    }
}

/// What is told where another number of ranks was started than a launcher was asked for; `mpi` is what it should belong to.
pub fn other_number(started: u32, ranks: u32, mpi: &str) -> String {
    format!(
        "{started} ranks were started instead of {ranks}: does the launcher belong to {mpi}? In --launcher, {{n}} stands for the number"
    )
}

/// Between two stages of long work: nothing more is begun once the user has asked to stop.
///
/// # Errors
/// If so.
pub fn go_on() -> Result<()> {
    if interrupted() {
        bail!("interrupted");
    }
    Ok(())
}

/// The file that a command names: with a slash as it stands, else found in PATH.
pub fn in_path(name: &OsStr) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return path.is_file().then_some(path);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The path of a program of a command.
///
/// # Errors
/// If it is not here, or may not be executed.
pub fn program_path(program: &str) -> Result<PathBuf> {
    let missing = || Refusal::Input(format!("there is no program {program}. Check the path."));
    let path = in_path(OsStr::new(program)).ok_or_else(missing)?;
    if access(&path, AccessFlags::X_OK).is_err() {
        let what = format!("{program} is no program: it may not be executed. Set its execute permission.");
        return Err(Refusal::Input(what).into());
    }
    Ok(path)
}

/// The family of the MPI library that a program was linked with, by the names in its dynamic section.
pub fn family(program: &Path) -> Option<Family> {
    use object::read::elf::{Dyn, ElfFile64, FileHeader};
    let bytes = std::fs::read(in_path(program.as_os_str())?).ok()?;
    let file = ElfFile64::<object::Endianness>::parse(&*bytes).ok()?;
    let endian = file.endian();
    let sections = file.elf_header().sections(endian, &*bytes).ok()?;
    let (dynamic, strings) = sections.dynamic(endian, &*bytes).ok()??;
    let strings = sections.strings(endian, &*bytes, strings).ok()?;
    dynamic.iter().filter(|entry| entry.tag(endian) == object::elf::DT_NEEDED).find_map(|entry| {
        let name = entry.string(endian, strings).ok()?;
        match std::str::from_utf8(name).ok()? {
            // Cray's are called libmpi_cray.so.12, libmpi_gnu_91.so.12.
            name if name.starts_with("libmpich") => Some(Family::Mpich),
            name if name.starts_with("libmpi") && name.contains(".so.12") => Some(Family::Mpich),
            name if name.starts_with("libmpi_abi") => None,
            name if name.starts_with("libmpi.so") || name.starts_with("libmpi_") => Some(Family::OpenMpi),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_is_a_command_that_is_there() {
        let find = |template| Launcher::find(Some(template), 4, Path::new("app"));
        assert_eq!(find("env -n {n} 'a b'").expect("it is there").to_string(), "env -n 4 'a b'");
        let refused = |template| find(template).expect_err("it is refused").to_string();
        assert_eq!(
            refused(" "),
            "--launcher is empty: give a command such as 'srun -n {n}'. `phasecast help` has the usage."
        );
        assert!(refused("'env").contains("within quotes"));
        assert!(refused("env -n {n").contains("has no {n}") && find("env -n 4").is_ok());
        assert!(find("env -n 4 A=${A}").is_ok());
        assert_eq!(refused("no-such-launcher -n {n}"), "there is no launcher no-such-launcher");
    }

    #[test]
    fn a_program_is_a_file_that_may_be_executed() {
        let refused = |name: &str| program_path(name).expect_err("it is refused").to_string();
        assert!(refused("/no/such/program").contains("there is no program /no/such/program"));
        let script = tempfile::NamedTempFile::new().expect("a temporary file");
        assert!(refused(&script.path().to_string_lossy()).contains("Set its execute permission"));
        assert!(program_path("sh").is_ok());
    }
}
