//! The first pass over a rank's file: what must be known before its first call can be written.
use super::line::{CommKey, Line};
use super::requests::{Effect, Requests, effect};
use crate::error::TraceError;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The longest line that is read: a bound on memory.
const MAX_LINE: u64 = 1 << 20;
/// The handle of `MPI_COMM_WORLD` in MPICH, by which it is told from Open MPI.
const MPICH_WORLD: i64 = 0x4400_0000;

/// A call of `MPI_Comm_split`.
#[derive(Clone, Debug)]
pub(super) struct Split {
    pub(super) line: u64,
    pub(super) parent: CommKey,
    pub(super) color: i64,
    pub(super) key: i64,
}

/// What the first pass finds.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) path: PathBuf,
    pub(super) host: String,
    /// Names of procedures, in the order of their first calls.
    pub(super) names: Vec<String>,
    /// Communicators with the line of their first use.
    pub(super) comms: Vec<(CommKey, u64)>,
    pub(super) splits: Vec<Split>,
    /// First and last time in ns on the rank's own clock.
    pub(super) first: Option<u64>,
    pub(super) last: u64,
    /// What must be added to the rank's clock to have that of rank 0, in ns, at the start and at the end.
    pub(super) offsets: [Option<f64>; 2],
    pub(super) finalized: bool,
    pub(super) mpich: bool,
    pub(super) late: BTreeMap<u64, Vec<u64>>,
    /// Whether the last line is cut off.
    pub(super) cut: bool,
    pub(super) bytes: u64,
}

/// Whether a file starts like liballprof's text.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(start).or_else(|e| std::str::from_utf8(&start[..e.valid_up_to()])) else {
        return false;
    };
    let mut lines = text.lines().filter(|line| !line.is_empty()).peekable();
    let named = text.starts_with('#');
    // The last line may be cut off by the reader.
    let first = lines.find(|line| !line.starts_with('#'));
    match first {
        Some(line) => line.starts_with("MPI_") && Line::parse(line).is_ok(),
        None => named && text.contains("clockdiff:"),
    }
}

/// Calls `each` with the number and text of each line of calls. A last line without its end is not handed on.
pub(super) fn lines(
    path: &Path,
    mut comment: impl FnMut(&str),
    mut each: impl FnMut(u64, &str) -> Result<(), TraceError>,
) -> Result<(u64, bool), TraceError> {
    let mut input = BufReader::new(File::open(path).map_err(TraceError::io(path, "open"))?);
    let (mut number, mut bytes, mut buffer) = (0, 0, Vec::new());
    loop {
        buffer.clear();
        number += 1;
        let read = (&mut input).take(MAX_LINE).read_until(b'\n', &mut buffer).map_err(TraceError::io(path, "read"))?;
        bytes += read as u64;
        if read == 0 {
            return Ok((bytes, false));
        }
        let whole = buffer.ends_with(b"\n");
        if !whole && read as u64 == MAX_LINE {
            return Err(failure(path, number, "the line is too long"));
        }
        let text = std::str::from_utf8(&buffer).map_err(|_| failure(path, number, "it is no text"))?.trim();
        if text.starts_with('#') {
            comment(text);
        } else if !whole && !text.is_empty() && Line::parse(text).is_err() {
            return Ok((bytes, true));
        } else if !text.is_empty() {
            each(number, text)?;
        }
    }
}

/// An error at a line.
pub(super) fn failure(path: &Path, line: u64, what: &str) -> TraceError {
    TraceError::Import { path: path.to_owned(), what: format!("line {line}: {what}. Export the trace again.") }
}

/// Reads a file once.
pub(super) fn scan(path: &Path) -> Result<Scan, TraceError> {
    let mut found = Scan { path: path.to_owned(), ..Scan::default() };
    let (mut names, mut keys) = (HashSet::new(), HashSet::new());
    let mut requests: Requests<()> = Requests::default();
    let (mut offsets, mut host) = ([None, None], String::new());
    let comment = |text: &str| {
        if let Some((label, value)) = text.split_once("clockdiff:") {
            let mut words = value.split_whitespace();
            let number: Option<f64> = words.next().and_then(|n| n.parse().ok());
            let unit = if words.next() == Some("s") { 1e9 } else { 1e3 };
            // A year is more than any clock may differ by.
            offsets[usize::from(label.contains("Finalize"))] =
                number.map(|n| n * unit).filter(|n| n.is_finite() && n.abs() < 3.2e16);
        } else if let Some((label, value)) = text.split_once(':')
            && matches!(label.trim_start_matches(['#', ' ']), "host" | "hostname")
        {
            host = value.trim().chars().take(255).collect();
        }
    };
    let (bytes, cut) = lines(path, comment, |number, text| {
        let line = Line::parse(text).map_err(|what| failure(path, number, &what))?;
        if !names.contains(line.name) {
            if names.len() == usize::from(u16::MAX) {
                return Err(failure(path, number, "the file names too many procedures"));
            }
            names.insert(line.name.to_string());
            found.names.push(line.name.to_string());
        }
        let enter = line.enter.or(line.exit).unwrap_or_default();
        found.first.get_or_insert(enter);
        found.last = found.last.max(line.exit.unwrap_or(enter));
        found.finalized |= line.name == "MPI_Finalize";
        if let Some(key) = line.comm() {
            found.mpich |= key.handle == MPICH_WORLD;
            requests.narrow |= found.mpich;
            if keys.insert(key) {
                found.comms.push((key, number));
            }
            if line.name == "MPI_Comm_split"
                && let (Some(color), Some(order)) = (line.int(1), line.int(2))
            {
                found.splits.push(Split { line: number, parent: key, color, key: order });
            }
        }
        match effect(&line) {
            Effect::None | Effect::Cancel { .. } => {}
            Effect::Make { address, persistent } => requests.make(address, persistent, ()),
            Effect::Start { base, count } => requests.covered(base, count).into_iter().for_each(|a| requests.start(a)),
            Effect::Free { address } => requests.free(address),
            Effect::Complete { base, count, certain } => {
                for address in requests.covered(base, count) {
                    if certain { requests.complete(address) } else { requests.maybe(address, number) }
                }
            }
        }
        Ok(())
    })?;
    requests.settle_all();
    found.late = requests.late;
    found.offsets = offsets;
    found.host = host;
    found.bytes = bytes;
    found.cut = cut;
    Ok(found)
}

impl Scan {
    /// A time of this rank's clock on that of rank 0, in ns; the difference is taken to change evenly.
    pub(super) fn aligned(&self, time: u64) -> i128 {
        let first = self.first.unwrap_or_default();
        let [start, end] = self.offsets;
        let start = start.or(end).unwrap_or_default();
        let end = end.unwrap_or(start);
        let share = match self.last.saturating_sub(first) {
            0 => 0.0,
            span => (time.saturating_sub(first) as f64 / span as f64).min(1.0),
        };
        i128::from(time) + (start + (end - start) * share) as i128
    }
}
