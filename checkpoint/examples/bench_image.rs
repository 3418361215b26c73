//! How fast memory is saved and restored, against writing and reading the same bytes plainly:
//! `cargo run --release -p phasecast-checkpoint --example bench_image [MB] [FOLDER ...]` (default 512 /dev/shm /var/tmp).
use phasecast_checkpoint::{dump, restore};
use phasecast_image::{Images, PAGE, State, Store, pack_file};
use phasecast_process::space::{self, SpaceState};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

const BASE: usize = 0x2000_0000_0000;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let bytes = arguments.next().map_or(Ok(512), |mb| mb.parse::<usize>())? << 20;
    let mut folders: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    if folders.is_empty() {
        folders = vec!["/dev/shm".into(), "/var/tmp".into()];
    }
    for folder in &folders {
        for huge in [false, true] {
            let pages = if huge { "2 MB pages" } else { "4 KB pages" };
            println!("{} MB in {pages}, {}", bytes >> 20, folder.display());
            let folder = tempfile::tempdir_in(folder)?;
            measure(folder.path(), bytes, huge)?;
        }
    }
    Ok(())
}

fn measure(folder: &Path, bytes: usize, huge: bool) -> Outcome {
    let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: a new mapping at a free place, filled within its length.
    let memory = unsafe {
        let at = libc::mmap(BASE as _, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        assert_eq!(at as usize, BASE, "the place is taken");
        libc::madvise(at, bytes, advice);
        std::slice::from_raw_parts_mut(at as *mut u64, bytes / 8)
    };
    // Like fields of a simulation: doubles whose leading digits repeat.
    let mut random = 1u64;
    for (index, word) in memory.iter_mut().enumerate() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *word = (1.0 + (index % 4096) as f64 / 4096.0 + (random >> 44) as f64 * 1e-12).to_bits();
    }
    space::set_state(&SpaceState { occupied: vec![(BASE, BASE + bytes)], ..SpaceState::default() })?;
    // SAFETY: the same bytes, read only.
    let plain = unsafe { std::slice::from_raw_parts(BASE as *const u8, bytes) };

    let (mut write, mut write_sync, mut dump, mut dump_sync) = (f64::MAX, f64::MAX, f64::MAX, f64::MAX);
    let set = folder.join("set");
    for _ in 0..5 {
        let (unsynced, synced) = writing(folder, plain)?;
        (write, write_sync) = (write.min(unsynced), write_sync.min(synced));
        let _ = fs::remove_dir_all(&set);
        fs::create_dir(&set)?;
        let start = Clock::start();
        let mut store = Store::create(&set, 0)?;
        let mut state = State { size: 1, ..State::default() };
        dump::memory(&mut store, &mut state)?;
        dump = dump.min(start.read());
        store.save(&state)?;
        dump_sync = dump_sync.min(start.read());
    }
    row("write()", bytes, write, None);
    row("dump", bytes, dump, Some(write));
    row("write() + fsync", bytes, write_sync, None);
    row("dump + save (fsync)", bytes, dump_sync, Some(write_sync));

    let packed = folder.join("packed");
    let start = Clock::start();
    let about = pack_file(&set, &packed)?;
    row("pack", bytes, start.read(), None);
    println!("    packed to {:.1} %", about.bytes as f64 / bytes as f64 * 100.0);

    let path = folder.join("plain");
    let best = |measure: &dyn Fn() -> f64| (0..5).map(|_| measure()).fold(f64::MAX, f64::min);
    row("read() to one buffer", bytes, best(&|| reading(&path)), None);
    let fresh = best(&|| reading_fresh(&path, bytes));
    row("read() to new memory", bytes, fresh, None);
    for (name, path) in [("restore from folder", &set), ("restore from packed", &packed)] {
        let images = Images::open(path)?;
        let mut best = f64::MAX;
        for _ in 0..3 {
            restore::clear();
            let start = Clock::start();
            let stats = restore::memory(&images, &images.state(0, 0)?)?;
            best = best.min(start.read());
            assert_eq!(stats.huge_refused, 0);
            space::set_state(&SpaceState { occupied: vec![(BASE, BASE + bytes)], ..SpaceState::default() })?;
        }
        row(name, bytes, best, Some(fresh));
    }
    restore::clear();
    Ok(())
}

/// Seconds on the wall, or with PHASECAST_BENCH_CPU set of this process's processors (for a machine that is not quiet).
struct Clock(f64);

impl Clock {
    fn start() -> Clock {
        Clock(Clock::now())
    }

    fn now() -> f64 {
        let cpu = std::env::var_os("PHASECAST_BENCH_CPU").is_some();
        let clock = if cpu { libc::CLOCK_PROCESS_CPUTIME_ID } else { libc::CLOCK_MONOTONIC };
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the structure is there to be written.
        unsafe { libc::clock_gettime(clock, &mut now) };
        now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
    }

    fn read(&self) -> f64 {
        Clock::now() - self.0
    }
}

fn row(name: &str, bytes: usize, seconds: f64, against: Option<f64>) {
    let share = against.map_or(String::new(), |other| format!("  {:3.0} %", other / seconds * 100.0));
    println!("    {name:42} {:6.2} GB/s{share}", bytes as f64 / seconds / 1e9);
}

/// Writes as `dd bs=1M` does: seconds without and with fsync.
fn writing(folder: &Path, bytes: &[u8]) -> std::io::Result<(f64, f64)> {
    let path = folder.join("plain");
    let _ = fs::remove_file(&path);
    let start = Clock::start();
    let mut file = File::create(&path)?;
    for block in bytes.chunks(1 << 20) {
        file.write_all(block)?;
    }
    let unsynced = start.read();
    file.sync_all()?;
    Ok((unsynced, start.read()))
}

/// Reads as `dd bs=1M of=/dev/null` does.
fn reading(path: &Path) -> f64 {
    let start = Clock::start();
    let mut block = vec![0; 1 << 20];
    let read = File::open(path).and_then(|mut file| {
        while file.read(&mut block)? > 0 {}
        Ok(())
    });
    assert!(read.is_ok(), "{read:?}");
    start.read()
}

/// Reads to memory that was never touched.
fn reading_fresh(path: &Path, bytes: usize) -> f64 {
    let start = Clock::start();
    let mut all = Vec::with_capacity(bytes + PAGE);
    let read = File::open(path).and_then(|mut file| file.read_to_end(&mut all));
    assert!(read.is_ok_and(|read| read >= bytes));
    start.read()
}
