//! The pages of one rank across its cuts: a file that only grows, in which each content stands once.
//!
//! ```text
//! 0     magic "PHCPAGES" | version u16 | page size u32 | rank u32 | zeros to 4096 | a hole
//! 1 MB  page 0 | page 1 | ...
//! ```
//! Pages are raw, so that a cut is saved at the speed of writing and restored at that of reading. Which pages mean
//! something, and their hashes, stand in the states: what no state names is ignored, so that a store is harmless at any
//! moment of its growth. Equal pages are recognised by the 128 bits of their hash alone.
use crate::{ImageError, PAGE, PageHash, State, state::VERSION};
use phasecast_trace::atomic::temporary;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasherDefault, Hasher};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

const MAGIC: &[u8; 8] = b"PHCPAGES";
/// Where page 0 is: bounds of large blocks, so that the kernel takes large writes whole.
const START: u64 = 1 << 20;
/// Pages that are hashed and then written while they are in the cache.
pub const CHUNK: usize = 256;
/// Pages after which the kernel is told to begin to write them: the disk works while further ones are hashed.
const BATCH: u64 = 2048;

/// Where a page is, if a file can be that long.
fn place(page: u64) -> Option<u64> {
    page.checked_mul(PAGE as u64)?.checked_add(START).filter(|&offset| offset < i64::MAX as u64)
}

/// The hash by which a page is known.
pub fn page_hash(page: &[u8]) -> PageHash {
    xxh3_128(page)
}

/// The name of a rank's store in a folder: `rank-00000.store`.
pub fn file_name(rank: u32) -> String {
    format!("rank-{rank:05}.store")
}

/// A map by page hash: the hash is one already.
pub(crate) type ByPage<T> = HashMap<PageHash, T, BuildHasherDefault<AsIs>>;

/// Takes the low half of a page's hash as it is.
#[derive(Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &byte| hash.rotate_left(8) ^ u64::from(byte));
    }
    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
}

/// The growing store of a rank.
pub struct Store {
    file: File,
    folder: PathBuf,
    path: PathBuf,
    pages: u64,
    /// So many pages the kernel has begun to write.
    begun: u64,
    known: ByPage<u64>,
}

impl Store {
    /// An empty store in an existing folder, readable by its owner only.
    ///
    /// # Errors
    /// If there is one of this rank, or it cannot be written.
    pub fn create(folder: &Path, rank: u32) -> Result<Store, ImageError> {
        let path = folder.join(file_name(rank));
        let mut head = [0; PAGE];
        head[..8].copy_from_slice(MAGIC);
        head[8..10].copy_from_slice(&VERSION.to_le_bytes());
        head[10..14].copy_from_slice(&(PAGE as u32).to_le_bytes());
        head[14..18].copy_from_slice(&rank.to_le_bytes());
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(ImageError::io(&path, "create"))?;
        file.write_all_at(&head, 0).map_err(ImageError::io(&path, "write"))?;
        Ok(Store { file, folder: folder.into(), path, pages: 0, begun: 0, known: ByPage::default() })
    }

    /// How many pages it holds.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Adds pages (a multiple of [`PAGE`] bytes). Appends to `runs` where they are now, as number of the first and count,
    /// and to `hashes` one for each page. If the file cannot be written it is as before.
    ///
    /// # Errors
    /// If the file cannot be written (the disk may be full).
    ///
    /// # Panics
    /// If `bytes` does not consist of whole pages.
    pub fn add(
        &mut self,
        bytes: &[u8],
        runs: &mut Vec<(u64, u64)>,
        hashes: &mut Vec<PageHash>,
    ) -> Result<(), ImageError> {
        assert!(bytes.len().is_multiple_of(PAGE), "only whole pages can be stored");
        for chunk in bytes.chunks(CHUNK * PAGE) {
            let first = hashes.len();
            hashes.extend(chunk.chunks_exact(PAGE).map(page_hash));
            self.add_hashed(chunk, &hashes[first..], runs)?;
        }
        Ok(())
    }

    /// As [`Store::add`], of pages whose hashes are known.
    ///
    /// # Errors
    /// As [`Store::add`].
    ///
    /// # Panics
    /// If there are not as many hashes as pages.
    pub fn add_hashed(
        &mut self,
        bytes: &[u8],
        hashes: &[PageHash],
        runs: &mut Vec<(u64, u64)>,
    ) -> Result<(), ImageError> {
        assert_eq!(bytes.len(), hashes.len() * PAGE, "each page has a hash");
        let pages = self.pages;
        self.append(bytes, hashes, runs).inspect_err(|_| {
            for hash in hashes {
                if self.known.get(hash).is_some_and(|&number| number >= pages) {
                    self.known.remove(hash);
                }
            }
            self.pages = pages;
            let _ = self.file.set_len(START + pages * PAGE as u64);
        })
    }

    fn append(&mut self, bytes: &[u8], hashes: &[PageHash], runs: &mut Vec<(u64, u64)>) -> Result<(), ImageError> {
        let mut fresh = 0..0;
        for (index, &hash) in hashes.iter().enumerate() {
            let number = *self.known.entry(hash).or_insert(self.pages);
            match runs.last_mut() {
                Some((first, count)) if *first + *count == number => *count += 1,
                _ => runs.push((number, 1)),
            }
            if number == self.pages {
                self.pages += 1;
                if fresh.end != index {
                    self.write(bytes, &fresh, 1)?;
                    fresh = index..index;
                }
                fresh.end = index + 1;
            }
        }
        self.write(bytes, &fresh, 0)?;
        self.begin();
        Ok(())
    }

    /// Lets the kernel begin to write what it holds, once there is enough of it. Where it cannot, that is done at the end.
    fn begin(&mut self) {
        self.begun = self.begun.min(self.pages);
        let pages = self.pages - self.begun;
        let Some(offset) = place(self.begun).filter(|_| pages >= BATCH) else { return };
        let (offset, bytes, flags) = (offset as i64, (pages * PAGE as u64) as i64, libc::SYNC_FILE_RANGE_WRITE);
        // SAFETY: the store's own descriptor; no memory is named.
        unsafe { libc::sync_file_range(self.file.as_raw_fd(), offset, bytes, flags) };
        self.begun = self.pages;
    }

    /// Writes pages of a chunk: the last that have numbers, but for `later` ones.
    fn write(&self, chunk: &[u8], pages: &std::ops::Range<usize>, later: u64) -> Result<(), ImageError> {
        let first = self.pages - later - pages.len() as u64;
        let bytes = &chunk[pages.start * PAGE..pages.end * PAGE];
        let offset = place(first);
        let offset = offset.ok_or_else(|| ImageError::corrupt(&self.path, format!("there is no page {first}")))?;
        self.file.write_all_at(bytes, offset).map_err(ImageError::io(&self.path, "write"))
    }

    /// Makes a cut durable: the pages first, then the state that names them, whole or not at all. Returns the state's size
    /// in bytes.
    ///
    /// # Errors
    /// If it cannot be written, or the state is inconsistent; no state is left then.
    pub fn save(&mut self, state: &State) -> Result<u64, ImageError> {
        let bytes = state.to_bytes(true)?;
        self.file.sync_data().map_err(ImageError::io(&self.path, "write"))?;
        write_private(&self.folder.join(State::file_name(state.cut, state.rank)), &bytes)?;
        Ok(bytes.len() as u64)
    }
}

/// A store that is read.
pub(crate) struct StoreFile {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
}

impl StoreFile {
    pub(crate) fn open(folder: &Path, rank: u32) -> Result<StoreFile, ImageError> {
        let path = folder.join(file_name(rank));
        let file = File::open(&path).map_err(ImageError::io(&path, "open"))?;
        let mut head = [0; 18];
        file.read_exact_at(&mut head, 0).map_err(|_| ImageError::corrupt(&path, "its head is cut off"))?;
        if head[..8] != *MAGIC {
            return Err(ImageError::Foreign { path, found: "it is no store of pages".into() });
        }
        let found = u16::from_le_bytes([head[8], head[9]]);
        if found != VERSION {
            return Err(ImageError::Version { path, found, supported: VERSION });
        }
        if head[10..14] != (PAGE as u32).to_le_bytes() || head[14..18] != rank.to_le_bytes() {
            return Err(ImageError::corrupt(&path, "it is the store of another rank or machine"));
        }
        Ok(StoreFile { file, path })
    }

    /// Reads pages and compares them with their hashes.
    pub(crate) fn read(&self, page: u64, hashes: &[PageHash], out: &mut [u8]) -> Result<(), ImageError> {
        let damaged = |what| ImageError::corrupt(&self.path, what);
        let offset = place(page).filter(|_| page.checked_add(out.len() as u64 / PAGE as u64).and_then(place).is_some());
        let offset = offset.ok_or_else(|| damaged(format!("there is no page {page}")))?;
        self.file.read_exact_at(out, offset).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => damaged(format!("it is cut off before page {page} ends")),
            _ => ImageError::io(&self.path, "read")(error),
        })?;
        check_pages(out, hashes).map_err(|at| damaged(format!("page {} has another content", page + at)))
    }
}

/// Compares pages with their hashes; the error is the index of the first that differs.
pub(crate) fn check_pages(bytes: &[u8], hashes: &[PageHash]) -> Result<(), u64> {
    let pages = bytes.chunks_exact(PAGE).zip(hashes);
    match pages.enumerate().find(|(_, (page, hash))| page_hash(page) != **hash) {
        Some((index, _)) => Err(index as u64),
        None => Ok(()),
    }
}

/// Writes a file whole or not at all, readable by its owner only: temporary name in the same folder, fsync, rename.
///
/// # Errors
/// If it cannot be written; nothing of it is left then.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), ImageError> {
    create_private(path, |file| file.write_all(bytes).map_err(ImageError::io(path, "write")))
}

/// Creates a file whole or not at all, readable by its owner only; `fill` writes it.
///
/// # Errors
/// If it cannot be written, or `fill` fails; nothing of it is left then.
pub fn create_private<T>(path: &Path, fill: impl FnOnce(&mut File) -> Result<T, ImageError>) -> Result<T, ImageError> {
    let temporary = temporary(path);
    let io = || ImageError::io(path, "write");
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&temporary);
    let written = file.map_err(io()).and_then(|mut file| {
        let result = fill(&mut file)?;
        file.sync_all().map_err(io())?;
        fs::rename(&temporary, path).map_err(io())?;
        Ok(result)
    });
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    } else if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        // A folder that cannot be synced (some network file systems) does not make the file less whole.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    written
}
