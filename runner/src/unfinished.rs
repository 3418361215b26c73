//! Outputs that are not whole yet: what there is of them goes when the user ends a command that does not catch this itself.
use crate::launch::on_interrupts;
use nix::sys::signal::{SigHandler, Signal, raise, signal};
use phasecast_trace::atomic::temporary;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, openat, rmdir, unlink, unlinkat};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::{Once, OnceLock};

/// More outputs than any command has.
const MOST: usize = 4;

/// A folder is listed so often, as what is removed or made meanwhile may be missed.
const TRIES: usize = 8;

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
        remove(part);
    }
    let Ok(number) = Signal::try_from(number) else { return };
    // SAFETY: no handler.
    let _ = unsafe { signal(number, SigHandler::SigDfl) };
    let _ = raise(number);
}

/// Removes a file, or a folder with nothing but files in it, as a trace is.
fn remove(path: &CStr) {
    if unlink(path) != Err(Errno::ISDIR) {
        return;
    }
    let mut buffer = [MaybeUninit::uninit(); 4096];
    for _ in 0..TRIES {
        let Ok(folder) = openat(CWD, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else { return };
        let mut entries = RawDir::new(&folder, &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            let _ = unlinkat(&folder, entry.file_name(), AtFlags::empty());
        }
        if rmdir(path).is_ok() {
            return;
        }
    }
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

    #[test]
    fn a_trace_that_is_written_goes_as_a_whole() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("out.trace.part1");
        std::fs::create_dir(&path).expect("a folder");
        (0..1000).for_each(|rank| std::fs::write(path.join(format!("rank-{rank:05}.pct")), "calls").expect("a file"));
        remove(&CString::new(path.clone().into_os_string().into_vec()).expect("a path"));
        assert!(!path.exists());
    }
}
