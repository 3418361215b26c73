//! The signature of a program: its analysis and what is known of the base machine, in one file (`.phc`).
//!
//! A live signature holds no images: on the target the program is run under the tracer until its phases were seen.
use anyhow::Result;
use phasecast_analyzer::Analysis;
use phasecast_prediction::Machine;
use phasecast_trace::container::Container;
use phasecast_trace::{Trace, TraceError};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the signature's format.
pub const VERSION: u16 = 1;
const KIND: &str = "signature";

/// What a signature says besides its phases.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// `live`: without images.
    pub kind: String,
    /// Version of phasecast that made it.
    pub phasecast: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its ranks.
    pub ranks: u32,
    /// The base machine.
    pub machine: Machine,
    /// Wall times of the base runs from launch to the end of the launcher, in seconds.
    pub aet_s: Vec<f64>,
    /// From launch to the start of the last process, in seconds (mean of the base runs).
    pub startup_s: f64,
    /// From the end of the last process to the end of the launcher, in seconds (mean of the base runs).
    pub teardown_s: f64,
}

/// A signature, read or about to be written.
#[derive(Clone, Debug)]
pub struct Signature {
    /// What it says of program and base machine.
    pub manifest: Manifest,
    /// The phases and the pieces of the base run.
    pub analysis: Analysis,
}

/// The readable part of the file: [`Manifest`] and the manifest of the analysis.
#[derive(Serialize, Deserialize)]
struct Readable {
    #[serde(flatten)]
    manifest: Manifest,
    analysis: serde_json::Value,
}

impl Signature {
    /// Writes the signature under a name that is not taken.
    ///
    /// # Errors
    /// If it is taken or cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let phases = self.analysis.container();
        let readable = Readable { manifest: self.manifest.clone(), analysis: serde_json::from_str(&phases.manifest)? };
        let manifest = serde_json::to_string_pretty(&readable)?;
        let container = Container { kind: KIND.into(), version: VERSION, manifest, sections: phases.sections };
        Ok(container.write(path, false)?)
    }

    /// Reads a signature.
    ///
    /// # Errors
    /// If the file is none, of another version, or damaged.
    pub fn load(path: &Path) -> Result<Signature> {
        let container = Container::read(path, KIND, VERSION)?;
        let damaged = |what: String| TraceError::corrupt(path, 0, what);
        let readable: Readable = serde_json::from_str(&container.manifest)
            .map_err(|error| damaged(format!("its manifest cannot be read ({error})")))?;
        let phases = Container { manifest: readable.analysis.to_string(), ..container };
        let analysis = Analysis::from_container(&phases, path)?;
        let manifest = readable.manifest;
        if manifest.ranks != analysis.ranks || manifest.command.is_empty() {
            return Err(damaged(format!("{} ranks, but phases of {}", manifest.ranks, analysis.ranks)).into());
        }
        if analysis.pieces.iter().any(Vec::is_empty) {
            return Err(damaged("a rank has no pieces to follow".into()).into());
        }
        Ok(Signature { manifest, analysis })
    }
}

/// This machine, with the MPI that a trace names.
pub fn this_machine(mpi: &str) -> Machine {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, v)| v));
    Machine {
        host: nix::unistd::gethostname().ok().and_then(|h| h.into_string().ok()).unwrap_or_default(),
        cpu: model.unwrap_or("unknown").to_string(),
        cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        mpi: mpi.to_string(),
    }
}

/// The MPI library of a traced run.
pub fn mpi_of(trace: &Trace) -> String {
    trace.ranks().find_map(|rank| trace.header(rank)).map_or_else(String::new, |header| header.mpi.clone())
}
