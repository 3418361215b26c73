//! Traces for other tools: one line a call as CSV, and the JSON of Perfetto and Chrome's trace viewer.
//!
//! Both are written as the trace is read, in memory that does not grow with it, and whole or not at all.
mod csv;
mod perfetto;
mod row;

pub use row::{PartRow, PartText, Peer, Row, Tag, columns, each_row};

use crate::atomic::AtomicFile;
use crate::error::TraceError;
use crate::reader::Trace;
use std::path::Path;

/// A format that can be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One line a call: the columns of [`Row`].
    Csv,
    /// The trace-event JSON of <https://ui.perfetto.dev> and `chrome://tracing`.
    Perfetto,
}

/// Writes a trace to the new file `out`. `progress` is told items of items.
///
/// # Errors
/// If there is a file of that name, it cannot be written, or the trace is damaged.
pub fn export(trace: &Trace, format: Format, out: &Path, progress: &dyn Fn(u64, u64)) -> Result<(), TraceError> {
    let mut file = AtomicFile::create(out)?;
    let written = match format {
        Format::Csv => csv::write(trace, &mut file, progress),
        Format::Perfetto => perfetto::write(trace, &mut file, progress),
    };
    match written {
        Ok(()) => file.finish(),
        Err(Failure::Trace(error)) => Err(error),
        Err(Failure::Out(error)) => Err(TraceError::io(out, "write")(error)),
    }
}

/// What may fail while a trace is written as something else.
enum Failure {
    /// The trace is damaged.
    Trace(TraceError),
    /// The output cannot be written.
    Out(std::io::Error),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::Out(error)
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Failure {
        Failure::Trace(error)
    }
}

/// Reports progress every so many items.
struct Progress<'a> {
    report: &'a dyn Fn(u64, u64),
    total: u64,
    done: u64,
}

impl<'a> Progress<'a> {
    fn new(trace: &Trace, report: &'a dyn Fn(u64, u64)) -> Progress<'a> {
        Progress { report, total: trace.items(), done: 0 }
    }

    fn add(&mut self, items: u64) {
        let before = self.done >> 16;
        self.done += items;
        if self.done >> 16 != before {
            (self.report)(self.done.min(self.total), self.total);
        }
    }

    fn finish(self) {
        (self.report)(self.total, self.total);
    }
}
