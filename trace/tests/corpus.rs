//! What coverage-guided fuzzing found worth keeping (see `fuzz/README.md`) is read or refused, and takes little memory.
mod common;
use common::inputs;
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The most memory that reading one input of a few kilobytes may take at a time, in bytes.
const MOST: usize = 256 << 20;

/// The system's allocator, with an account.
struct Counted;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(now, Relaxed);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;
/// One test at a time: the account is of the whole process.
static ALONE: Mutex<()> = Mutex::new(());

fn replay(target: &str, each: impl Fn(&[u8])) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(target);
    let mut inputs: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{} is empty", folder.display());
    for path in inputs {
        let input = std::fs::read(&path).unwrap();
        PEAK.store(NOW.load(Relaxed), Relaxed);
        let before = NOW.load(Relaxed);
        println!("{}", path.display());
        each(&input);
        let taken = PEAK.load(Relaxed).saturating_sub(before);
        assert!(taken < MOST, "{} takes {taken} bytes", path.display());
    }
}

#[test]
fn rank_files() {
    replay("rank_file", inputs::rank_file);
}

#[test]
fn files_that_grow() {
    replay("follow", inputs::follow);
}

#[test]
fn containers() {
    replay("container", inputs::container);
}

#[test]
fn liballprof() {
    replay("liballprof", inputs::liballprof);
}
