//! Bytes as the records of an archive, for fuzzing: the callbacks are called with them as the OTF2 library would, so that
//! what is behind that library can be tested without it.
use super::definitions::{self, Definitions};
use super::{convert, events};
use crate::error::TraceError;
use crate::varint;
use crate::writer::TraceWriter;
use std::ffi::{CString, c_void};
use std::path::Path;
use std::ptr::null_mut;

/// Arguments, one after the other; 0 at the end of the bytes.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u64 {
        let value = varint::get(&mut self.0);
        if value.is_none() {
            self.0 = &[];
        }
        value.unwrap_or(0)
    }

    /// Mostly small, at times as large as can be: one more than the largest stands for 255.
    fn small(&mut self) -> u32 {
        match self.next() {
            255 => u32::MAX,
            n => n as u32,
        }
    }

    fn text(&mut self) -> CString {
        let length = (self.next() as usize % 80).min(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        CString::new(text.split(|byte| *byte == 0).next().unwrap_or_default()).unwrap_or_default()
    }
}

/// Imports made records to the new trace `out`: definitions up to a record 0, then the events of each location, with a
/// record 0 after those of each.
///
/// # Errors
/// As of an archive with these records.
pub fn import(data: &[u8], out: &Path) -> Result<(), TraceError> {
    let mut bytes = Bytes(data);
    let mut found = Definitions::default();
    let user = (&raw mut found).cast::<c_void>();
    loop {
        // SAFETY: `found` is used by nobody else, texts end with a zero and lists are as long as is said.
        unsafe {
            match bytes.next() {
                0 => break,
                1 => definitions::clock(user, bytes.next(), bytes.next(), 0, 0),
                2 => definitions::string(user, bytes.small(), bytes.text().as_ptr()),
                3 => {
                    let (id, kind, events, process) = (bytes.next(), bytes.small(), bytes.next(), bytes.small());
                    definitions::location(user, id, 0, kind as u8, events, process)
                }
                4 => definitions::region(user, bytes.small(), bytes.small(), bytes.small(), 0, 0, 0, 0, 0, 0, 0),
                5 => {
                    let (id, kind, paradigm) = (bytes.small(), bytes.small() as u8, bytes.small() as u8);
                    let count = bytes.next() % 64;
                    let members: Vec<u64> = (0..count).map(|_| bytes.next()).collect();
                    definitions::group(user, id, 0, kind, paradigm, 0, count as u32, members.as_ptr())
                }
                _ => definitions::comm(user, bytes.small(), 0, bytes.small(), 0),
            };
        }
    }
    let failed = |what| TraceError::Import { path: out.to_owned(), what };
    let world = found.world().map_err(failed)?;
    let writer = TraceWriter::create(out)?;
    let mut time = 0u64;
    convert(&world, &writer, |_, lane| {
        loop {
            let user = (&raw mut *lane).cast::<c_void>();
            let (op, gap) = match bytes.next() {
                0 => return Ok(()),
                op => (op, bytes.next()),
            };
            time = time.wrapping_add(gap);
            let mut message = || (bytes.small(), bytes.small(), bytes.small(), bytes.next(), bytes.next());
            // SAFETY: `lane` is used by nobody else.
            let verdict = unsafe {
                match op {
                    1 => events::enter(0, time, 0, user, null_mut(), bytes.small()),
                    2 => events::leave(0, time, 0, user, null_mut(), bytes.small()),
                    3 => {
                        let (peer, comm, tag, size, _) = message();
                        events::send(0, time, 0, user, null_mut(), peer, comm, tag, size)
                    }
                    4 => {
                        let (peer, comm, tag, size, request) = message();
                        events::isend(0, time, 0, user, null_mut(), peer, comm, tag, size, request)
                    }
                    5 => events::irecv_request(0, time, 0, user, null_mut(), bytes.next()),
                    6 => {
                        let (peer, comm, tag, size, _) = message();
                        events::recv(0, time, 0, user, null_mut(), peer, comm, tag, size)
                    }
                    7 => {
                        let (peer, comm, tag, size, request) = message();
                        events::irecv(0, time, 0, user, null_mut(), peer, comm, tag, size, request)
                    }
                    8 => events::cancelled(0, time, 0, user, null_mut(), bytes.next()),
                    _ => {
                        let (root, comm, kind, sent, received) = message();
                        events::collective_end(0, time, 0, user, null_mut(), kind as u8, comm, root, sent, received)
                    }
                }
            };
            if verdict != super::library::CONTINUE {
                return Err(lane.error.take().unwrap_or_else(|| failed("reading was given up".into())));
            }
        }
    })?;
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rank, Trace};

    /// Two ranks, `MPI_Send` and `MPI_Recv`, the world; a message from rank 0 to rank 1.
    const MADE: &[u8] =
        b"\x01\x80\x94\xeb\xdc\x03\x00\x02\x01\x08MPI_Send\x02\x02\x08MPI_Recv\x03\x00\x01\x05\x00\x03\x01\x01\x05\x01\
        \x04\x01\x01\x01\x04\x02\x02\x02\x05\x01\x04\x04\x02\x00\x01\x05\x02\x05\x04\x02\x00\x01\x06\x00\x02\x00\
        \x01\x05\x01\x03\x01\x01\x00\x07\x08\x00\x02\x01\x01\x00\
        \x01\x05\x02\x06\x01\x00\x00\x07\x08\x00\x02\x01\x02\x00";

    /// What fuzzing found worth keeping (the other targets: `tests/corpus.rs`).
    #[test]
    fn the_corpus_is_imported_or_refused() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/otf2");
        let mut imported = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let folder = tempfile::tempdir().unwrap();
            let out = folder.path().join("t.trace");
            match import(&std::fs::read(&path).unwrap(), &out) {
                Ok(()) => {
                    let trace = Trace::open(&out).unwrap();
                    trace.ranks().for_each(|rank| trace.for_each_event(rank, |_| {}).unwrap());
                    imported += 1;
                }
                Err(error) => assert!(error.is_input() && !out.exists(), "{}: {error}", path.display()),
            }
        }
        assert!(imported > 0);
    }

    #[test]
    fn made_records_are_imported() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("t.trace");
        import(MADE, &out).unwrap();
        let trace = Trace::open(&out).unwrap();
        let mut seen = Vec::new();
        for rank in [0, 1] {
            let each = |event: crate::Event| seen.push((event.kind as u8, event.peer, event.tag, event.bytes));
            trace.for_each_event(Rank(rank), each).unwrap();
        }
        assert_eq!(seen, [(0, 1, 7, 8), (1, 0, 7, 8)]);
    }
}
