//! How fast memory is saved and restored, against writing and reading the same bytes plainly.
use phasecast_checkpoint::restore_over::Remains;
use phasecast_checkpoint::{dump, restore};
use phasecast_image::{Images, PAGE, State, Store, pack_file};
use phasecast_process::space::{self, SpaceState};
use phasecast_tests::bench::{Bound, figure, median};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Instant;

const BASE: usize = 0x2000_0000_0000;
const BYTES: usize = 512 << 20;
const ROUNDS: usize = 5;
/// Speed in that of plain writing or reading.
const SHARE: f64 = 0.6;

/// Measures in memory (`/dev/shm`) and on disk (`/var/tmp`).
pub fn run() {
    phasecast_process::prepare(false).expect("the upper half has its place");
    for folder in ["/dev/shm", "/var/tmp"] {
        for huge in [false, true] {
            let folder = tempfile::tempdir_in(folder).expect("the folder can be written to");
            let pages = if huge { "2 MB pages" } else { "4 KB pages" };
            let place = if folder.path().starts_with("/dev/shm") { "tmpfs" } else { "disk" };
            measure(folder.path(), &format!("{} MB in {pages}, {place}", BYTES >> 20), huge)
                .expect("images can be written");
        }
    }
}

fn measure(folder: &Path, about: &str, huge: bool) -> Result<(), Box<dyn std::error::Error>> {
    fill(huge);
    occupy()?;
    // SAFETY: the memory that was just filled, read only.
    let plain = unsafe { std::slice::from_raw_parts(BASE as *const u8, BYTES) };
    let (set, file, packed) = (folder.join("set"), folder.join("plain"), folder.join("packed"));
    let (mut write, mut save) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let _ = fs::remove_dir_all(&set);
        fs::create_dir(&set)?;
        let _ = fs::remove_file(&file);
        write.push(time(|| writing(&file, plain))?);
        save.push(time(|| saving(&set))?);
    }
    share(&format!("{about}: saving / dd conv=fsync"), &write, &save);
    let start = Instant::now();
    let shipped = pack_file(&set, &packed)?.bytes as f64 / BYTES as f64;
    let what = format!("{about}: packing, to {:.0} % of the bytes", 100.0 * shipped);
    figure(&what, BYTES as f64 / start.elapsed().as_secs_f64() / 1e9, "GB/s", Bound::None);

    let (mut read, mut passed, mut folders, mut packs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        read.push(time(|| reading(&file))?);
        passed.push(time(|| passing(&file))?);
        folders.push(time(|| restoring(&set))?);
        packs.push(time(|| restoring(&packed))?);
    }
    let what = format!("{about}: dd of=/dev/null, nothing kept");
    figure(&what, BYTES as f64 / median(&passed) / 1e9, "GB/s", Bound::None);
    share(&format!("{about}: restoring from a folder / reading"), &read, &folders);
    share(&format!("{about}: restoring from a packed file / reading"), &read, &packs);
    space::unmap_all();
    Ok(())
}

fn share(what: &str, plain: &[f64], ours: &[f64]) {
    let what = format!("{what} at {:.2} GB/s", BYTES as f64 / median(plain) / 1e9);
    figure(&what, median(plain) / median(ours), "", Bound::Least(SHARE));
}

fn time<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<f64, E> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

/// Like fields of a simulation: doubles whose leading digits repeat.
fn fill(huge: bool) {
    let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: a new mapping at a free place, filled within its length.
    let memory = unsafe {
        let at = libc::mmap(BASE as _, BYTES, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        assert_eq!(at as usize, BASE, "the place is taken");
        libc::madvise(at, BYTES, advice);
        std::slice::from_raw_parts_mut(at as *mut u64, BYTES / 8)
    };
    let mut random = 1u64;
    for (index, word) in memory.iter_mut().enumerate() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *word = (1.0 + (index % 4096) as f64 / 4096.0 + (random >> 44) as f64 * 1e-12).to_bits();
    }
}

/// Declares the memory the upper half's.
fn occupy() -> Result<(), Box<dyn std::error::Error>> {
    Ok(space::set_state(&SpaceState { occupied: vec![(BASE, BASE + BYTES)], ..SpaceState::default() })?)
}

/// As `dd bs=1M conv=fsync` does.
fn writing(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    bytes.chunks(1 << 20).try_for_each(|block| file.write_all(block))?;
    file.sync_all()
}

fn saving(set: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut store = Store::create(set, 0)?;
    let mut state = State { size: 1, ..State::default() };
    dump::memory(&mut store, &mut state, &[])?;
    store.save(&state)?;
    Ok(())
}

/// To memory that was never touched, as a restart must.
fn reading(path: &Path) -> io::Result<()> {
    let mut all = Vec::with_capacity(BYTES + PAGE);
    File::open(path)?.read_to_end(&mut all)?;
    Ok(())
}

/// As `dd bs=1M of=/dev/null` does.
fn passing(path: &Path) -> io::Result<()> {
    let (mut file, mut block) = (File::open(path)?, vec![0; 1 << 20]);
    while file.read(&mut block)? > 0 {}
    Ok(())
}

fn restoring(set: &Path) -> Result<(), Box<dyn std::error::Error>> {
    space::unmap_all();
    let images = Images::open(set)?;
    let stats = restore::memory(&images, &images.state(0, 0)?, Remains::default())?;
    assert_eq!(stats.huge_refused, 0);
    occupy()
}
