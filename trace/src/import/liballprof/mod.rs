//! liballprof's text (one file a rank) as a trace. The form of a line is described in [`line`], what is known of
//! communicators in [`comms`].
//!
//! Three things are not in this text. The source of a receive from `MPI_ANY_SOURCE` (and the tag of `MPI_ANY_TAG`):
//! such a receive is no event of the trace. Which call completed a request that Test*, Waitany or Waitsome named: it is
//! the last such call before the request's variable is used anew. The size of a received message: the receive's buffer.
mod comms;
mod line;
mod rank;
mod requests;
mod scan;

pub(crate) use scan::looks_like;

use super::{Format, Imported};
use crate::error::TraceError;
use crate::writer::TraceWriter;
use scan::Scan;
use std::path::{Path, PathBuf};

/// Imports the files of all ranks of one run to a new trace folder `out`. `progress` is told bytes of bytes.
///
/// # Errors
/// If a file cannot be read or is no such text, ranks are missing, or `out` exists or cannot be written.
pub fn import(files: &[PathBuf], out: &Path, progress: &dyn Fn(u64, u64)) -> Result<Imported, TraceError> {
    if files.len() > 1 << 20 {
        return Err(failure(&files[0], "there are too many files".into()));
    }
    let writer = TraceWriter::create(out)?;
    let total: u64 = files.iter().map(|f| f.metadata().map_or(0, |m| m.len())).sum::<u64>() * 2;
    let mut done = 0;
    let mut scans = Vec::new();
    for file in files {
        let scan = scan::scan(file)?;
        done += scan.bytes;
        progress(done.min(total), total);
        scans.push(scan);
    }
    let scans = by_rank(scans)?;
    let known = comms::resolve(&scans);
    let origin = scans.iter().filter_map(|s| Some(s.aligned(s.first?))).min().unwrap_or(0);
    let (mut calls, mut missing) = (0, rank::Missing::default());
    for (number, (scan, known)) in (0u32..).zip(scans.iter().zip(&known)) {
        calls += rank::Conversion::new(scan, known, number, scans.len() as u32, origin, &mut missing).run(&writer)?;
        done += scan.bytes;
        progress(done.min(total), total);
    }
    writer.finish()?;
    Ok(Imported { format: Format::Liballprof, ranks: scans.len() as u32, calls, notes: missing.notes() })
}

/// Orders the files by rank: what the world says in them, else the last number in their names.
fn by_rank(scans: Vec<Scan>) -> Result<Vec<Scan>, TraceError> {
    let size = scans.len() as u32;
    let mut places: Vec<Option<Scan>> = scans.iter().map(|_| None).collect();
    for scan in scans {
        if let Some((key, _)) = scan.comms.iter().max_by_key(|(key, _)| key.size).filter(|(key, _)| key.size > size) {
            let what = format!(
                "it names a communicator of {} ranks, but {size} files were given. Name the files of all ranks, or their folder.",
                key.size
            );
            return Err(failure(&scan.path, what));
        }
        let world = scan.comms.iter().find(|(key, _)| key.size == size).map(|(key, _)| key.rank);
        let rank = world.or_else(|| last_number(&scan.path)).filter(|&rank| rank < size).ok_or_else(|| {
            failure(&scan.path, format!("neither its lines nor its name tell which of {size} ranks it is"))
        })?;
        if let Some(other) = &places[rank as usize] {
            let what = format!("it and {} are both of rank {rank}. Give the files of one run.", other.path.display());
            return Err(failure(&scan.path, what));
        }
        places[rank as usize] = Some(scan);
    }
    Ok(places.into_iter().flatten().collect())
}

fn last_number(path: &Path) -> Option<u32> {
    let stem = path.file_stem()?.to_str()?;
    let end = stem.trim_end_matches(|c: char| !c.is_ascii_digit());
    let start = end.trim_end_matches(|c: char| c.is_ascii_digit());
    end[start.len()..].parse().ok()
}

fn failure(path: &Path, what: String) -> TraceError {
    TraceError::Import { path: path.to_owned(), what }
}
