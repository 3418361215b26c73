//! What the runner asks of the hosts, one for each rank, and what they report: JSON files in a folder that all ranks reach.
use crate::moment::Moment;
use phasecast_mpi::{Refusal, Taken};
use phasecast_process::MadeAfter;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A program to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its file, absolute.
    pub path: PathBuf,
    /// Its arguments, without its name.
    pub args: Vec<String>,
}

/// A consistent cut: a position for each rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Its number within the signature.
    pub id: u32,
    /// For each rank, how many of its events (completed communications, or what the job counts) lie before the cut.
    pub events: Vec<u64>,
}

/// What a launch of hosts is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Job {
    /// Runs a program split and saves its state at each cut; the program runs on to its end.
    Checkpoint {
        /// The program. Its environment is that of the launcher.
        program: Program,
        /// The cuts, ascending on every rank.
        cuts: Vec<Cut>,
        /// For each rank, what it is to take where it would take whatever comes first; empty if it may.
        recorded: Vec<Vec<Taken>>,
        /// Whether only those collectives count as events that synchronise all ranks.
        collectives: bool,
        /// An existing folder for the images and the reports.
        images: PathBuf,
        /// How long a rank waits at a cut for the others before it refuses it, in seconds.
        patience_s: f64,
        /// The processor that the program is held to: `x86-64-v2`, `x86-64-v3`; none for this one.
        cpu: Option<String>,
    },
    /// Restarts images one after the other in one launch.
    Replay {
        /// The signature, a packed set of images, or a folder of them.
        images: PathBuf,
        /// What to restart and for how long, in this order.
        steps: Vec<Step>,
        /// As for [`Job::Checkpoint`].
        collectives: bool,
        /// What the base run made after a cut, on any rank.
        made: Vec<MadeAfter>,
        /// An existing folder for the reports.
        out: PathBuf,
        /// How long that may take; none if all steps are to be made.
        within: Option<Within>,
    },
}

/// The time that a launch of restarts has. Where it will not do for a step, that one and those after it are left out; what
/// is left over makes steps longer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Within {
    /// From the launch to the end of the last step, in seconds.
    pub seconds: f64,
    /// When it was launched.
    pub launched: Moment,
    /// How long it takes until a rank runs, in seconds, where a rank's clock cannot tell: on another machine.
    pub startup_s: f64,
    /// So many steps are made whatever they take.
    pub least: usize,
    /// The most by which a step is made longer than planned, in seconds.
    pub longest_s: f64,
    /// What the program ran in the launches before, in seconds: here, and what the base took for that.
    pub ran_s: (f64, f64),
    /// The steps.
    pub steps: Vec<StepTime>,
}

/// What a step takes. Each of its ranks watches as many positions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepTime {
    /// From its start to each position on the base, in seconds.
    pub base_s: Vec<f64>,
    /// So many positions are reached in any case, more if there is time. Where that is not all, each rank has events between
    /// this position and the one before.
    pub planned: usize,
    /// The earlier step that it repeats: it is as long as that one, so that they can be compared.
    pub repeats: Option<usize>,
}

/// One restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The cut that is restarted.
    pub cut: u32,
    /// For each rank, ascending: positions whose times are wanted, a position perhaps several times. The rank's replay stops
    /// at the last. Where all are empty the program runs to its end.
    pub watch: Vec<Vec<u64>>,
}

/// Where a rank writes where it stands ([`crate::Stand`], as JSON) when it is asked ([`crate::ask`]), in the folder of a
/// replay.
pub fn stand_file(rank: u32) -> String {
    format!("rank-{rank:05}.stand")
}

/// What a rank leaves, empty, as it begins a replay, in the same folder.
pub fn begun_file(rank: u32) -> String {
    format!("rank-{rank:05}.begun")
}

/// What a rank reports of a run that saved images: `rank-00000.json` in the folder of the images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointReport {
    /// The rank.
    pub rank: u32,
    /// Ranks of the run.
    pub size: u32,
    /// Events of this rank in the whole run.
    pub events: u64,
    /// The MPI library, in one line.
    pub mpi: String,
    /// Its binary interface.
    pub abi: String,
    /// Its cuts.
    pub cuts: Vec<CutReport>,
    /// Files that it opened for reading after it was first saved.
    pub later: Vec<PathBuf>,
    /// What it made after it was first saved.
    pub made: Vec<MadeAfter>,
}

/// How saving at a cut went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CutReport {
    /// The cut.
    pub id: u32,
    /// Whether its image is complete on this rank.
    pub saved: bool,
    /// Why it is not; none where another rank has the reason.
    pub reason: Option<String>,
    /// How long the program was stopped, in seconds.
    pub seconds: f64,
    /// New bytes in the rank's page store.
    pub bytes: u64,
    /// Files that a restart opens and that are not in the image.
    pub files: Vec<PathBuf>,
}

impl CutReport {
    /// A cut that is not saved.
    pub(crate) fn refused(id: u32, refusal: Refusal) -> CutReport {
        let reason = match refusal {
            Refusal::Own(reason) => Some(reason),
            Refusal::Of(_) => None,
        };
        CutReport { id, saved: false, reason, seconds: 0.0, bytes: 0, files: Vec::new() }
    }
}

/// What a rank reports of replays: `rank-00000.json` in the folder for reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayReport {
    /// The rank.
    pub rank: u32,
    /// Ranks of the launch.
    pub size: u32,
    /// The MPI library, in one line.
    pub mpi: String,
    /// The boot id of its host, which tells whose clock the times are of.
    pub boot_id: String,
    /// From the host's start to the end of `MPI_Init`, in seconds, without what a program does not do: see `read_s`.
    pub init_s: f64,
    /// How long it took before that to look through the images, in seconds.
    pub read_s: f64,
    /// How many processors the program was told of in the base run, and how many there are here, if it goes by that.
    pub processors: Option<[u32; 2]>,
    /// How it ended; none where the program went on to its own end.
    pub end: Option<End>,
    /// The steps that were made: all, or as many as there was time for.
    pub steps: Vec<StepReport>,
}

/// The end of a rank of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// How long `MPI_Finalize` took, in seconds, where all ranks called it at once.
    pub finalize_s: f64,
    /// The clock of the steps after it, in ns.
    pub at_ns: u64,
}

/// How a restart went on one rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// The cut.
    pub cut: u32,
    /// Reading, mapping and making objects again, until the program ran, in seconds.
    pub restart_s: f64,
    /// The clock when the program began to run, in ns.
    pub start_ns: u64,
    /// The same clock at each watched position, or at as many as there was time for: when the call that reached it returned.
    pub times_ns: Vec<u64>,
    /// What the fence has cost the main thread from the start to each of these, in ns.
    pub held_ns: Vec<u64>,
    /// Whether all positions (or the program's end) were reached.
    pub finished: bool,
}
