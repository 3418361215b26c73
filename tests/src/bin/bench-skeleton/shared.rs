//! What both measures of programs need: jobs, launches, and machines that are made slower.
use crate::Res;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A program under both MPIs.
pub struct Job {
    pub name: String,
    pub ranks: String,
    pub openmpi: String,
    pub mpich: Option<String>,
    pub args: Vec<String>,
}

impl Job {
    /// Reads `NAME:RANKS:OPENMPI[:MPICH[:ARGUMENTS]]`.
    pub fn parse(text: &str) -> Res<Job> {
        let parts: Vec<&str> = text.split(':').collect();
        let [name, ranks, openmpi, rest @ ..] = parts.as_slice() else {
            return Err(format!("'{text}' is not NAME:RANKS:OPENMPI[:MPICH[:ARGUMENTS]]").into());
        };
        let args = rest.get(1).map_or_else(Vec::new, |w| w.split_whitespace().map(str::to_owned).collect());
        let mpich = rest.first().filter(|path| !path.is_empty()).map(|path| (*path).to_owned());
        Ok(Job { name: (*name).into(), ranks: (*ranks).into(), openmpi: (*openmpi).into(), mpich, args })
    }

    /// The program built with one of the two.
    pub fn built(&self, mpich: bool) -> Res<&str> {
        let built = if mpich { self.mpich.as_deref() } else { Some(self.openmpi.as_str()) };
        built.ok_or_else(|| format!("{} has no build with MPICH: name one", self.name).into())
    }
}

/// The environment of launchers.
pub fn environment(command: &mut Command) -> &mut Command {
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1").env("OMPI_MCA_mpi_yield_when_idle", "1")
}

/// The command.
pub fn phasecast(args: &[&str]) -> Command {
    let mut command = Command::new(phasecast_tests::phasecast());
    environment(command.args(args));
    command
}

/// Runs a command to its end: its standard output, and its wall time in seconds.
pub fn done(command: &mut Command) -> Res<(String, f64)> {
    let begun = Instant::now();
    let output = command.output()?;
    let seconds = begun.elapsed().as_secs_f64();
    if output.status.success() {
        return Ok((String::from_utf8(output.stdout)?, seconds));
    }
    Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr)).into())
}

/// A program under a launcher (`{n}` stands for the ranks), traced by a clock if a trace is named.
pub fn launched(launcher: &str, ranks: &str, program: &str, args: &[String], trace: Option<(&Path, &str)>) -> Command {
    let launcher = launcher.replace("{n}", ranks);
    let mut words = launcher.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    if let Some((trace, clock)) = trace {
        command
            .arg(phasecast_tests::phasecast())
            .args(["trace", "--quiet", "--clock", clock, "-o"])
            .arg(trace)
            .arg("--");
    }
    command.arg(program).args(args);
    environment(&mut command);
    command
}

/// A process that only computes, on one processor, until it is dropped, or this one ends however.
pub struct Competitor(Child);

impl Competitor {
    /// Starts it.
    pub fn on(processor: u32) -> Res<Competitor> {
        let mut command = Command::new("taskset");
        command.args(["-c", &processor.to_string(), "setpriv", "--pdeathsig", "KILL"]);
        command.args(["sh", "-c", "while :; do :; done"]).stdin(Stdio::null());
        Ok(Competitor(command.spawn()?))
    }
}

impl Drop for Competitor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
