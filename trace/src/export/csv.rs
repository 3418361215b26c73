//! CSV: a line of names, then one line a call.
use super::row::{PartText, Row, each_row};
use super::{Failure, Progress};
use crate::reader::Trace;
use std::io::Write;

pub(super) fn write(trace: &Trace, out: &mut impl Write, report: &dyn Fn(u64, u64)) -> Result<(), Failure> {
    let mut lines = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    let names = "rank,thread,procedure,class,peer,tag,bytes,communicator,enter_ns,exit_ns,site,parts";
    lines.write_record(names.split(',')).map_err(failure)?;
    let mut progress = Progress::new(trace, report);
    for rank in trace.ranks() {
        each_row(trace, rank, |row| {
            progress.add(1 + row.parts.len() as u64);
            let Row { rank, thread, procedure, class, peer, tag, bytes, communicator, enter_ns, exit_ns, site, parts } =
                row;
            let parts = PartText(parts);
            let row =
                Row { rank, thread, procedure, class, peer, tag, bytes, communicator, enter_ns, exit_ns, site, parts };
            lines.serialize(row).map_err(failure)
        })?;
    }
    lines.flush()?;
    progress.finish();
    Ok(())
}

fn failure(error: csv::Error) -> Failure {
    Failure::Out(error.into())
}
