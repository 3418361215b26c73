//! Other tools' traces as ours: liballprof's text and OTF2 archives.
//!
//! What a format does not tell is not made up: it is left out of the trace, and a note says how often.
mod classify;
pub mod liballprof;
pub mod otf2;

use crate::error::TraceError;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A format that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// liballprof's text, one file a rank.
    Liballprof,
    /// The Open Trace Format 2: an anchor file `*.otf2` and the folder beside it.
    Otf2,
}

/// What came of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The format that was read.
    pub format: Format,
    /// Ranks.
    pub ranks: u32,
    /// Calls written.
    pub calls: u64,
    /// What the format did not tell, as sentences.
    pub notes: Vec<String>,
}

/// The format of a file, or of the files in a folder; none if it is none that can be imported.
pub fn detect(path: &Path) -> Option<Format> {
    if path.is_dir() {
        return files_of(path).ok()?.iter().find_map(|file| detect_file(file));
    }
    detect_file(path)
}

fn detect_file(path: &Path) -> Option<Format> {
    if path.extension().is_some_and(|e| e == "otf2") {
        return Some(Format::Otf2);
    }
    let mut start = Vec::new();
    File::open(path).ok()?.take(8192).read_to_end(&mut start).ok()?;
    liballprof::looks_like(&start).then_some(Format::Liballprof)
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(TraceError::io(folder, "list"))? {
        let path = entry.map_err(TraceError::io(folder, "list"))?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Imports the trace in `paths` (files of one run, or a folder of them) to a new trace folder `out`. `progress` is told
/// how much of how much is done.
///
/// # Errors
/// If the format is unknown, a file cannot be read or is damaged, or `out` exists or cannot be written.
pub fn import(paths: &[PathBuf], out: &Path, progress: &dyn Fn(u64, u64)) -> Result<Imported, TraceError> {
    let mut found: Option<Format> = None;
    let mut files = Vec::new();
    for path in paths {
        let unknown = || {
            TraceError::Import {
            path: path.clone(),
            what: "it is neither liballprof's text nor an OTF2 archive (*.otf2). Give the files of one run, or their folder."
                .into(),
        }
        };
        if !path.exists() {
            return Err(TraceError::Import { path: path.clone(), what: "there is nothing of that name".into() });
        }
        let format = detect(path).ok_or_else(unknown)?;
        if *found.get_or_insert(format) != format {
            return Err(TraceError::Import {
                path: path.clone(),
                what: "the files given are of several formats".into(),
            });
        }
        if path.is_dir() {
            files.extend(files_of(path)?.into_iter().filter(|file| detect_file(file) == Some(format)));
        } else {
            files.push(path.clone());
        }
    }
    match (found, files.as_slice()) {
        (Some(Format::Liballprof), files) => liballprof::import(files, out, progress),
        (Some(Format::Otf2), [anchor]) => otf2::import(anchor, out, progress),
        (Some(Format::Otf2), _) => {
            let path = paths.first().cloned().unwrap_or_default();
            Err(TraceError::Import { path, what: "it holds several archives; name the one anchor file *.otf2".into() })
        }
        (None, _) => Err(TraceError::Import { path: PathBuf::new(), what: "no file was given".into() }),
    }
}
