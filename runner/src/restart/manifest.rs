//! What a signature says of its images: the program's file, the machine they need, the cuts, what is measured from
//! each, and how it was verified. Part of the signature's manifest (docs/src/formats/signature.md).
use crate::restart::windows::Window;
use phasecast_analyzer::{Analysis, Edge};
use phasecast_checkpoint::MadeAfter;
use phasecast_trace::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Version of this part.
pub const FORMAT: u16 = 25;

/// The images of a signature.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Images {
    /// [`FORMAT`].
    pub format: u16,
    /// When they were made, in seconds since 1970.
    pub created: u64,
    /// Who made them.
    pub user: String,
    /// The program's file.
    pub program: ProgramFile,
    /// The folder in which it ran.
    pub folder: PathBuf,
    /// What they need of a processor and a kernel.
    pub needs: Needs,
    /// The cuts, ascending: where the state of all ranks was saved.
    pub cuts: Vec<SavedCut>,
    /// Files that the base run opened for reading after its first cut: a restart may open them, too.
    pub later: BTreeSet<PathBuf>,
    /// What the base run made after a cut: restarts of that one and earlier ones do not find it.
    pub made: BTreeSet<MadeAfter>,
    /// Whether the program takes whatever comes first: restarts take what the first base run took ([`super::recorded`]).
    pub recorded: bool,
    /// What is measured.
    pub windows: Vec<Window>,
    /// For each rank, what no restart can show.
    pub edges: Vec<EdgeTimes>,
    /// The result of `verify` on the base machine.
    #[serde(default)]
    pub verified: Option<Verified>,
}

/// The program that was signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFile {
    /// Its path on the base machine.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// The SHA-256 of its contents, in hexadecimal digits.
    pub sha256: String,
}

/// What images need of the machine that they are restarted on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    /// `x86_64`.
    pub architecture: String,
    /// The processor that the program was held to: `x86-64-v2`, `x86-64-v3` or `native`.
    pub cpu_baseline: String,
    /// The processor features that must be there, by their names in `/proc/cpuinfo`.
    pub cpu_features: Vec<String>,
    /// Bytes of a page of memory.
    pub page_size: u64,
    /// Memory of the largest rank, in bytes.
    pub rank_bytes: u64,
}

/// A cut at which images were saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedCut {
    /// Its number.
    pub id: u32,
    /// It lies after the piece of this number.
    pub after: usize,
    /// For each rank, its events before the cut.
    pub events: Vec<u64>,
    /// How long saving stopped the program, in seconds.
    pub seconds: f64,
    /// Bytes that it added to the images of all ranks, before compression.
    pub bytes: u64,
    /// Files of the base machine that ranks had open for reading and that are not in the images: a restart opens them.
    pub files: BTreeSet<PathBuf>,
}

/// Times of a rank in the base run that no restart can show, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeTimes {
    /// How long MPI_Init took.
    pub init_s: f64,
    /// From its last event to its end, MPI_Finalize included.
    pub tail_s: f64,
    /// How long MPI_Finalize took.
    #[serde(default)]
    pub finalize_s: f64,
}

impl EdgeTimes {
    /// With what the launch of the restarts shows.
    pub fn with_launch(&self, init_s: f64, finalize_s: f64) -> Edge {
        let nanos = |seconds: f64| Nanos((seconds.clamp(0.0, 1e9) * 1e9) as u64);
        Edge {
            init_base: nanos(self.init_s),
            init_target: nanos(init_s),
            tail_base: nanos(self.tail_s - self.finalize_s),
            finalize_base: nanos(self.finalize_s),
            finalize_target: nanos(finalize_s),
        }
    }
}

/// A prediction on the base machine beside the truth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verified {
    /// Predicted execution time in seconds.
    pub pet_s: f64,
    /// True execution time in seconds (median of the runs it was compared with).
    pub aet_s: f64,
    /// |PET - AET| / AET.
    pub pete: f64,
    /// Mean time of a restart in seconds.
    pub restart_s: f64,
}

impl Images {
    /// What of it does not fit the analysis, in words.
    ///
    /// # Errors
    /// If something does not fit.
    pub fn check(&self, analysis: &Analysis) -> Result<(), String> {
        let segments = analysis.segments().ok_or("its pieces are no cuts of all ranks")?;
        for (at, cut) in self.cuts.iter().enumerate() {
            if analysis.cut(cut.after).as_ref() != Some(&cut.events) {
                return Err(format!("cut {} does not lie after piece {}", cut.id, cut.after));
            }
            if at > 0 && self.cuts[at - 1].id >= cut.id {
                return Err("its cuts are out of order".into());
            }
        }
        for window in &self.windows {
            let end =
                [window.warm, window.measured, 1].iter().try_fold(window.after, |sum, &more| sum.checked_add(more));
            if window.measured == 0 || end.is_none_or(|end| end > segments) {
                return Err(format!("what is to be measured after piece {} is not there", window.after));
            }
            if self.cut_of(window).is_none() {
                return Err(format!("there is no image after piece {}", window.after));
            }
        }
        if self.windows.is_empty() || self.edges.len() != analysis.ranks as usize {
            return Err("it does not say what is to be measured".into());
        }
        let sound = |x: f64| x.is_finite() && x >= 0.0;
        if !self.edges.iter().all(|e| sound(e.init_s) && sound(e.tail_s) && sound(e.finalize_s)) {
            return Err("the times of its ranks' ends are no numbers".into());
        }
        Ok(())
    }

    /// Where a restart that is started in this folder looks for a file of the base machine: where the folder of the base run
    /// is missing, this one stands for it.
    pub fn here(&self, path: &Path) -> PathBuf {
        let within = path.strip_prefix(&self.folder).ok().filter(|_| !self.is_entered());
        within.map_or(path.to_owned(), |rest| Path::new(".").join(rest))
    }

    /// Whether the folder of the base run is there, and may be entered.
    pub fn is_entered(&self) -> bool {
        self.folder.join(".").is_dir()
    }

    /// The files that the machine of a restart must have.
    pub fn files(&self) -> BTreeSet<&Path> {
        self.cuts.iter().flat_map(|cut| &cut.files).map(PathBuf::as_path).collect()
    }

    /// The cut from which a window starts.
    pub fn cut_of(&self, window: &Window) -> Option<&SavedCut> {
        self.cuts.iter().find(|cut| cut.after == window.after)
    }
}
