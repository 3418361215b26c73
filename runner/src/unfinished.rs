//! Outputs that are not whole yet: what there is of them goes when the user ends a command that does not catch this itself.
use crate::launch::on_interrupts;
use nix::sys::signal::{SigHandler, Signal, raise, signal};
use phasecast_trace::atomic::temporary;
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::{Once, OnceLock};

/// More outputs than any command has.
const MOST: usize = 4;

/// The names under which they are written.
static PARTS: [OnceLock<CString>; MOST] = [const { OnceLock::new() }; MOST];
static CAUGHT: Once = Once::new();

/// The output `path` is going to be written.
pub fn expect(path: &Path) {
    let Ok(mut part) = CString::new(temporary(path).into_os_string().into_vec()) else { return };
    for slot in &PARTS {
        match slot.set(part) {
            Ok(()) => break,
            Err(other) => part = other,
        }
    }
    CAUGHT.call_once(|| on_interrupts(remove_and_end));
}

/// System calls only, and reads of what was set before.
extern "C" fn remove_and_end(number: i32) {
    for part in PARTS.iter().filter_map(OnceLock::get) {
        let part: &CStr = part;
        let _ = nix::unistd::unlink(part);
    }
    let Ok(number) = Signal::try_from(number) else { return };
    // SAFETY: no handler.
    let _ = unsafe { signal(number, SigHandler::SigDfl) };
    let _ = raise(number);
}

#[cfg(test)]
mod tests {
    use super::*;
    use phasecast_trace::atomic::AtomicFile;

    #[test]
    fn the_name_is_that_of_a_file_that_is_written() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("out.csv");
        let file = AtomicFile::create(&path).expect("a file");
        expect(&path);
        let known = |name: &Path| {
            PARTS.iter().filter_map(OnceLock::get).any(|part| part.to_bytes() == name.as_os_str().as_encoded_bytes())
        };
        let there = std::fs::read_dir(place.path()).expect("a folder").map(|entry| entry.expect("an entry").path());
        assert!(there.into_iter().all(|name| known(&name)));
        drop(file);
    }
}
