//! A predicted run time with its interval, and the parts it is made of: the type in which every method ends.
use serde::{Deserialize, Serialize};

/// Version of the JSON form of a [`Prediction`].
pub const VERSION: u32 = 1;

/// A predicted run time. As JSON it is what `phasecast predict --json` prints and `phasecast compare` reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// [`VERSION`].
    pub version: u32,
    /// How it was made: `live`, `restart`, `transform`, `skeleton`, `scale`, `model`.
    pub method: String,
    /// The program and its arguments, with blanks between them.
    pub program: String,
    /// Its ranks.
    pub ranks: u32,
    /// The machine it is for.
    pub target: Machine,
    /// The machine it was made from.
    pub base: Machine,
    /// Predicted execution time (PET) in seconds: wall time from launch to the end of the launcher.
    pub pet_s: f64,
    /// Where the mean of many runs lies, in seconds.
    pub interval_s: [f64; 2],
    /// Where another single run lies, in seconds: the interval widened by the noise of the machine.
    pub run_interval_s: [f64; 2],
    /// The level of both intervals, 0 to 1.
    pub confidence: f64,
    /// Signature execution time (SET) in seconds: all that predicting took on the target.
    pub set_s: f64,
    /// Share of the base run's time that was measured on the target, 0 to 1; with `restart`, that lies in phases of
    /// which occurrences were measured.
    pub coverage: f64,
    /// From launch to the start of the first rank's process, in seconds.
    pub startup_s: f64,
    /// Time predicted for what was not measured, in seconds.
    pub residual_s: f64,
    /// How often an image was restarted.
    #[serde(default)]
    pub restarts: u64,
    /// Time spent restarting, in seconds (0 where nothing is restarted).
    pub restart_s: f64,
    /// Time spent warming up, in seconds.
    pub warmup_s: f64,
    /// Time measured, in seconds.
    pub measured_s: f64,
    /// The uncertainty by its sources: half-widths in seconds.
    pub uncertainty: Uncertainty,
    /// Run time on the base machine in seconds.
    pub base_run_s: f64,
    /// What a naive estimate would say: the first 5 % of the iterations, times twenty, in seconds.
    #[serde(default)]
    pub naive_s: Option<f64>,
    /// The phases.
    pub phases: Vec<PhasePrediction>,
    /// Sentences that the user should read: a run to the end, a stream that differs.
    pub notes: Vec<String>,
    /// The true time in seconds, where it is known.
    pub aet_s: Option<f64>,
    /// |PET - AET| / AET, where it is known.
    pub pete: Option<f64>,
    /// Pieces of the ranks' runs on the target, for the report; at most a few thousand.
    #[serde(default)]
    pub timeline: Vec<TimelinePiece>,
}

impl Prediction {
    /// The program's name, without folders and arguments.
    pub fn name(&self) -> &str {
        name_of(self.program.split_whitespace())
    }
}

/// Programs whose first argument that is no option is the program; so are all whose name begins with `python`.
const INTERPRETERS: [&str; 6] = ["perl", "ruby", "julia", "bash", "sh", "Rscript"];

/// The name of a program by its words, that of a script where they are an interpreter's; without folders.
pub fn name_of<'a>(words: impl IntoIterator<Item = &'a str>) -> &'a str {
    let last = |path: &'a str| path.rsplit('/').next().unwrap_or(path);
    let mut words = words.into_iter();
    match last(words.next().unwrap_or_default()) {
        "" => "a program without a name",
        name if name.starts_with("python") || INTERPRETERS.contains(&name) => {
            words.find(|word| !word.starts_with('-')).map_or(name, last)
        }
        name => name,
    }
}

/// A machine, as far as a prediction needs it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Host name.
    pub host: String,
    /// Processor model.
    pub cpu: String,
    /// Logical processors.
    pub cores: u32,
    /// MPI library.
    pub mpi: String,
}

/// Half-widths of the interval by source, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Uncertainty {
    /// Sampling error of the measured phases.
    pub sampling_s: f64,
    /// Error of what was not measured.
    pub unmeasured_s: f64,
    /// Noise of the machine from run to run.
    pub machine_s: f64,
}

/// One phase on both machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhasePrediction {
    /// Its number.
    pub id: u32,
    /// Occurrences in the full run.
    pub weight: u64,
    /// Occurrences measured on the target.
    pub measured: u64,
    /// Mean time on the base in seconds.
    pub base_s: f64,
    /// Mean time on the target in seconds; none where it was not measured.
    pub target_s: Option<f64>,
    /// weight x time on the target (measured or scaled) in seconds.
    pub total_s: f64,
    /// |total - base| / base of weight x time, where target and base are one machine (`verify`).
    #[serde(default)]
    pub pete: Option<f64>,
    /// Its structure in short.
    pub structure: String,
}

/// A stretch of one rank's time that belongs to a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelinePiece {
    /// The rank.
    pub rank: u32,
    /// The phase.
    pub phase: u32,
    /// Start in seconds.
    pub start_s: f64,
    /// End in seconds.
    pub end_s: f64,
}

impl Prediction {
    /// A prediction by this method in which nothing was measured yet: every number is 0, every list empty.
    pub fn blank(method: &str) -> Prediction {
        Prediction { version: VERSION, method: method.into(), ..Prediction::default() }
    }

    /// Sets the true time, and with it PETE.
    pub fn with_true_time(&mut self, aet_s: f64) {
        self.aet_s = Some(aet_s);
        self.pete = (aet_s > 0.0).then(|| (self.pet_s - aet_s).abs() / aet_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_its_own_name() {
        let name =
            |program: &str| Prediction { program: program.into(), ..Prediction::blank("live") }.name().to_owned();
        assert_eq!((name("/opt/bin/cg 1000"), name("cg")), ("cg".into(), "cg".into()));
        assert_eq!(name("/usr/bin/python3.11 -u ./solvers/heat.py 64"), "heat.py");
        assert_eq!(
            (name("bash -e run.sh"), name("python3"), name("shallow x")),
            ("run.sh".into(), "python3".into(), "shallow".into())
        );
        assert_eq!(name(""), "a program without a name");
        assert_eq!(name_of(["/opt/my solver", "64"]), "my solver");
    }
}
