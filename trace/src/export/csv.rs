//! CSV: a line of names, then one line a call.
use super::row::{columns, each_row};
use super::{Failure, Progress};
use crate::reader::Trace;
use std::io::Write;

pub(super) fn write(trace: &Trace, out: &mut impl Write, report: &dyn Fn(u64, u64)) -> Result<(), Failure> {
    let mut lines = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    lines.write_record(columns(trace).split(',')).map_err(failure)?;
    let counted = trace.counters().is_some();
    let mut progress = Progress::new(trace, report);
    for rank in trace.ranks() {
        each_row(trace, rank, |row| {
            progress.add(1 + row.parts.len() as u64);
            row.write_csv(counted, &mut lines).map_err(failure)
        })?;
    }
    lines.flush()?;
    progress.finish();
    Ok(())
}

fn failure(error: csv::Error) -> Failure {
    Failure::Out(error.into())
}
