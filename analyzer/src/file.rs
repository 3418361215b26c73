//! How an analysis is kept: a container of kind `phases`. The manifest is the analysis as JSON without its pieces; the
//! section `pieces` holds them in columns of varints. The byte format is described in `docs/src/formats/phases.md`.
//!
//! ```text
//! varint ranks; for each rank: varint pieces, u8 flags (bit 0: times of a second base run)
//!   phases   : zigzag varint, the difference to the phase before
//!   ends     : varint, the difference to the end before
//!   times    : varint, ns
//!   again    : varint, ns (if flagged)
//! ```
use crate::error::AnalyzeError;
use crate::model::{Analysis, Piece};
use phasecast_trace::container::Container;
use phasecast_trace::varint::{MAX, get, put, unzigzag, zigzag};
use phasecast_trace::{Nanos, PhaseId};
use std::path::Path;

/// The kind of the container.
pub const KIND: &str = "phases";
/// Version of the format.
pub const VERSION: u16 = 2;
const PIECES: &str = "pieces";

impl Analysis {
    /// The analysis as a container, to be written or to be put into a signature.
    ///
    /// # Panics
    /// Never: all of an analysis can be written as JSON.
    pub fn container(&self) -> Container {
        Container {
            kind: KIND.into(),
            version: VERSION,
            manifest: serde_json::to_string_pretty(self).expect("an analysis can be written as JSON"),
            sections: vec![(PIECES.into(), encode(&self.pieces))],
        }
    }

    /// Writes the analysis to a new file.
    ///
    /// # Errors
    /// If there is a file of that name, or it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), AnalyzeError> {
        Ok(self.container().write(path, false)?)
    }

    /// Reads an analysis.
    ///
    /// # Errors
    /// If it is no file of phases, of another version, or damaged.
    pub fn load(path: &Path) -> Result<Analysis, AnalyzeError> {
        Analysis::from_container(&Container::read(path, KIND, VERSION)?, path)
    }

    /// The analysis in a container; `path` is for messages.
    ///
    /// # Errors
    /// If what it says makes no sense.
    pub fn from_container(container: &Container, path: &Path) -> Result<Analysis, AnalyzeError> {
        let corrupt = |what: String| AnalyzeError::Corrupt { path: path.to_owned(), what };
        let mut analysis: Analysis = serde_json::from_str(&container.manifest)
            .map_err(|error| corrupt(format!("its manifest cannot be read ({error})")))?;
        let bytes = container.section(PIECES).ok_or_else(|| corrupt("it has no pieces".into()))?;
        analysis.pieces = decode(bytes).ok_or_else(|| corrupt("its pieces cannot be read".into()))?;
        check(&analysis).map_err(corrupt)?;
        Ok(analysis)
    }
}

fn encode(pieces: &[Vec<Piece>]) -> Vec<u8> {
    let mut out = Vec::new();
    let number = |out: &mut Vec<u8>, value: u64| {
        let mut buffer = [0; MAX];
        let used = put(&mut buffer, value);
        out.extend_from_slice(&buffer[..used]);
    };
    number(&mut out, pieces.len() as u64);
    for rank in pieces {
        let again = !rank.is_empty() && rank.iter().all(|p| p.again.is_some());
        number(&mut out, rank.len() as u64);
        out.push(u8::from(again));
        let mut before = 0;
        for piece in rank {
            let phase = i64::from(piece.phase.0);
            number(&mut out, zigzag(phase - std::mem::replace(&mut before, phase)));
        }
        let mut before = 0;
        for piece in rank {
            number(&mut out, piece.end.wrapping_sub(std::mem::replace(&mut before, piece.end)));
        }
        rank.iter().for_each(|piece| number(&mut out, piece.time.0));
        if again {
            rank.iter().filter_map(|piece| piece.again).for_each(|time| number(&mut out, time.0));
        }
    }
    out
}

fn decode(mut bytes: &[u8]) -> Option<Vec<Vec<Piece>>> {
    let input = &mut bytes;
    let count = |input: &mut &[u8]| get(input).and_then(|n| usize::try_from(n).ok()).filter(|&n| n <= input.len());
    let ranks = count(input)?;
    let mut pieces = Vec::new();
    for _ in 0..ranks {
        let length = count(input)?;
        let (&flags, rest) = input.split_first()?;
        *input = rest;
        let blank = Piece { phase: PhaseId(0), end: 0, time: Nanos(0), again: None };
        let mut rank = vec![blank; length.min(input.len())];
        if rank.len() != length || flags > 1 {
            return None;
        }
        let mut before = 0i64;
        for piece in &mut rank {
            before = before.checked_add(unzigzag(get(input)?))?;
            piece.phase = PhaseId(u32::try_from(before).ok()?);
        }
        let mut before = 0u64;
        for piece in &mut rank {
            before = before.checked_add(get(input)?)?;
            piece.end = before;
        }
        for piece in &mut rank {
            piece.time = Nanos(get(input)?);
        }
        if flags & 1 != 0 {
            for piece in &mut rank {
                piece.again = Some(Nanos(get(input)?));
            }
        }
        pieces.push(rank);
    }
    input.is_empty().then_some(pieces)
}

/// Refuses what no analysis says: numbers out of range, pieces that do not fit the manifest.
fn check(analysis: &Analysis) -> Result<(), String> {
    let ranks = analysis.ranks as usize;
    if ranks == 0 || analysis.events.len() != ranks || analysis.pieces.len() != ranks {
        return Err(format!("it tells of {} and {} of {ranks} ranks", analysis.events.len(), analysis.pieces.len()));
    }
    for (at, phase) in analysis.phases.iter().enumerate() {
        if phase.id.index() != at {
            return Err(format!("phase {at} is numbered {}", phase.id));
        }
        if !phase.hashes.is_empty() && phase.hashes.len() != ranks {
            return Err(format!("phase {at} has hashes of {} ranks", phase.hashes.len()));
        }
        if phase.planned.iter().any(|&occurrence| occurrence >= phase.weight) {
            return Err(format!("an occurrence is planned that phase {at} does not have"));
        }
        if ![phase.time_s, phase.sd_s, phase.share].iter().all(|x| x.is_finite() && *x >= 0.0) {
            return Err(format!("the times of phase {at} are no numbers"));
        }
    }
    let totals =
        [analysis.run_time_s, analysis.explained_s, analysis.planned_s, analysis.coverage, analysis.residual_s];
    if !totals.iter().chain(&analysis.base_runs_s).all(|x| x.is_finite() && *x >= 0.0) {
        return Err("its totals are no numbers".into());
    }
    if !analysis.volume_classes.is_sorted() {
        return Err("its classes of volumes are out of order".into());
    }
    for (rank, (pieces, &events)) in analysis.pieces.iter().zip(&analysis.events).enumerate() {
        if let Some(piece) = pieces.iter().find(|piece| piece.phase.index() >= analysis.phases.len()) {
            return Err(format!("a piece of rank {rank} is of phase {}, which there is not", piece.phase));
        }
        if pieces.last().is_some_and(|last| last.end != events) {
            return Err(format!("the pieces of rank {rank} do not end at its last event"));
        }
        let time = |of: fn(&Piece) -> u64| pieces.iter().try_fold(0u64, |sum, piece| sum.checked_add(of(piece)));
        if time(|p| p.time.0).is_none() || time(|p| p.again.map_or(0, |t| t.0)).is_none() {
            return Err(format!("the times of rank {rank} are out of range"));
        }
    }
    Ok(())
}
