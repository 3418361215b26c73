//! The signature of a program: its analysis and what is known of the base machine, in one file (`.phc`).
//!
//! A live signature holds no images: on the target the program is run under the tracer until its phases were seen. One
//! with images ends with them (crate `phasecast-image`, a packed set), so that they can be read where they are.
use crate::output::seconds;
use crate::restart::manifest::{FORMAT, Images};
use crate::restart::processor;
use anyhow::Result;
use phasecast_analyzer::Analysis;
use phasecast_image::ImageError;
use phasecast_prediction::Machine;
use phasecast_trace::atomic::AtomicFile;
use phasecast_trace::container::Container;
use phasecast_trace::{Trace, TraceError};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

/// Version of the signature's format.
pub const VERSION: u16 = 2;
const KIND: &str = "signature";
/// Base runs of which the longest is more than so many times the shortest are told of.
const ALIKE: f64 = 1.25;

/// What a signature says besides its phases.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// `live`: without images; `restart`: with images.
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
    /// From launch to the start of the first process, in seconds (mean of the base runs).
    pub startup_s: f64,
    /// From the end of the last process to the end of the launcher, in seconds (mean of the base runs).
    pub teardown_s: f64,
    /// The images, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<Images>,
}

impl Manifest {
    /// Mean wall time of the base runs in seconds.
    pub fn base_run_s(&self) -> f64 {
        self.aet_s.iter().sum::<f64>() / self.aet_s.len().max(1) as f64
    }

    /// What is to be told where base runs differ much.
    pub fn scatter_note(&self) -> Option<String> {
        let longest = self.aet_s.iter().copied().fold(0.0, f64::max);
        let shortest = self.aet_s.iter().copied().fold(longest, f64::min);
        (longest > ALIKE * shortest).then(|| {
            format!(
                "base runs took from {} to {}, so that the interval is wide: sign where nothing else runs",
                seconds(shortest),
                seconds(longest)
            )
        })
    }
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
    fn container(&self) -> Result<Container> {
        let phases = self.analysis.container();
        let readable = Readable { manifest: self.manifest.clone(), analysis: serde_json::from_str(&phases.manifest)? };
        let manifest = serde_json::to_string_pretty(&readable)?;
        Ok(Container { kind: KIND.into(), version: VERSION, manifest, sections: phases.sections })
    }

    /// Writes the signature under a name that is not taken, readable only by its owner; `images` is a packed set of
    /// them, which is copied to its end.
    ///
    /// # Errors
    /// If the name is taken or cannot be written; nothing of it is left then.
    pub fn save(&self, path: &Path, images: Option<&Path>) -> Result<()> {
        let head = self.container()?.to_bytes().map_err(anyhow::Error::msg)?;
        let mut file = AtomicFile::create_private(path)?;
        file.write_all(&head).map_err(TraceError::io(path, "write"))?;
        if let Some(images) = images {
            let copied = File::open(images).and_then(|mut images| std::io::copy(&mut images, &mut file));
            copied.map_err(TraceError::io(path, "write"))?;
        }
        Ok(file.finish()?)
    }

    /// Reads a signature, but not its images.
    ///
    /// # Errors
    /// If the file is none, of another version, or damaged.
    pub fn load(path: &Path) -> Result<Signature> {
        let (container, images) = container_of(path)?;
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
        match &manifest.images {
            Some(_) if images.is_none() => return Err(damaged("its images are missing: it is cut off".into()).into()),
            Some(own) if own.format != FORMAT => {
                let (path, found) = (path.to_owned(), own.format);
                return Err(TraceError::Version { path, found, supported: FORMAT }.into());
            }
            Some(own) => own.check(&analysis).map_err(damaged)?,
            None => {}
        }
        Ok(Signature { manifest, analysis })
    }
}

/// The container at the start of a signature, and the images at its end if there are any.
///
/// # Errors
/// If the file is no signature, of another version, or damaged.
pub fn container_of(path: &Path) -> Result<(Container, Option<phasecast_image::Images>)> {
    let read = TraceError::io(path, "read");
    // What is no container is not looked at further: a file of another kind may end like anything.
    if Container::kind_of(path).as_deref() != Some(KIND) {
        return Ok((Container::read(path, KIND, VERSION)?, None));
    }
    let images = match phasecast_image::Images::open(path) {
        Ok(images) => Some(images),
        Err(ImageError::Foreign { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let Some(images) = images else { return Ok((Container::read(path, KIND, VERSION)?, None)) };
    let head = (|| {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len().saturating_sub(images.bytes().map_err(std::io::Error::other)?);
        let mut head = Vec::new();
        Read::take(&mut file, length).read_to_end(&mut head)?;
        Ok(head)
    })();
    let container = Container::parse(path, &head.map_err(read)?)?;
    if container.version != VERSION {
        let (path, found) = (path.to_owned(), container.version);
        return Err(TraceError::Version { path, found, supported: VERSION }.into());
    }
    Ok((container, Some(images)))
}

/// This machine, with the MPI that a trace names.
pub fn this_machine(mpi: &str) -> Machine {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, v)| v));
    Machine {
        host: nix::unistd::gethostname().ok().and_then(|h| h.into_string().ok()).unwrap_or_default(),
        cpu: model.unwrap_or("unknown").to_string(),
        cores: processor::count(),
        mpi: mpi.to_string(),
    }
}

/// The MPI library of a traced run.
pub fn mpi_of(trace: &Trace) -> String {
    trace.ranks().find_map(|rank| trace.header(rank)).map_or_else(String::new, |header| header.mpi.clone())
}
