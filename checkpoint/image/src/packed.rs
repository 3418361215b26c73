//! The packed set: all images of a signature as one stretch of bytes, a file of its own or the end of another one.
//!
//! ```text
//! head     magic "PHCIMAGE" | version u16 | zeros, 6 bytes
//! blocks   64 pages each (the last fewer): a zstd block, or raw, which is told by its length
//! states   containers without hashes
//! directory  a frame (kind 5) of bincode: Directory
//! trailer  magic "PHCIMAGE" | version u16 | zeros, 6 bytes | length of all u64 | directory u64 | checksum u64
//! ```
//! Distances are from the head. The trailer's checksum is xxh3 of its first 32 bytes. Pages are numbered across all ranks;
//! a rank's own numbers are found by its runs.
use crate::fetch::{self, BLOCK, Piece, Prepare};
use crate::{Content, ImageError, PAGE, State, state::VERSION};
use phasecast_trace::codec::{self, Unpacker};
use phasecast_trace::frame::{Frame, HEAD as FRAME_HEAD};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

pub(crate) const MAGIC: &[u8; 8] = b"PHCIMAGE";
/// Length of the head in bytes.
pub const HEAD: usize = 16;
/// Length of the trailer in bytes.
pub const TRAILER: usize = 40;

/// What is where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    /// How many pages there are, each content once.
    pub pages: u64,
    /// The blocks, one after the other behind the head.
    pub blocks: Vec<Block>,
    /// For each rank, by ascending rank, where its pages are.
    pub ranks: Vec<RankPages>,
    /// The states, by ascending cut and rank.
    pub states: Vec<StateEntry>,
}

/// A block of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Its length in the file.
    pub stored: u32,
    /// xxh3 of these bytes.
    pub checksum: u64,
}

/// Where the pages of a rank are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankPages {
    /// The rank.
    pub rank: u32,
    /// By ascending number in the rank's store: first, how many, and the number of the first among all pages.
    pub runs: Vec<(u64, u64, u64)>,
}

/// Where a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateEntry {
    /// The cut.
    pub cut: u32,
    /// The rank.
    pub rank: u32,
    /// Distance from the head.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// The head's, and the trailer's, first bytes.
pub(crate) fn head() -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(MAGIC);
    head[8..10].copy_from_slice(&VERSION.to_le_bytes());
    head
}

/// The trailer of a set of `length` bytes (with it) whose directory is at `directory`.
pub(crate) fn trailer(length: u64, directory: u64) -> [u8; TRAILER] {
    let mut trailer = [0; TRAILER];
    trailer[..16].copy_from_slice(&head());
    trailer[16..24].copy_from_slice(&length.to_le_bytes());
    trailer[24..32].copy_from_slice(&directory.to_le_bytes());
    let checksum = xxh3_64(&trailer[..32]);
    trailer[32..].copy_from_slice(&checksum.to_le_bytes());
    trailer
}

/// An open packed set.
pub(crate) struct PackedSet {
    path: PathBuf,
    file: File,
    /// Where the head is in the file.
    start: u64,
    length: u64,
    pub(crate) directory: Directory,
    /// Distances of the blocks from the head, and the end of the last.
    offsets: Vec<u64>,
}

impl PackedSet {
    /// Opens the set that ends at byte `end` of a file.
    pub(crate) fn open(path: &Path, file: File, end: u64) -> Result<PackedSet, ImageError> {
        let damaged = |what: &str| ImageError::corrupt(path, what);
        let foreign = |found: &str| ImageError::Foreign { path: path.into(), found: found.into() };
        let at = end.checked_sub(TRAILER as u64).ok_or_else(|| foreign("it is too short"))?;
        let mut bytes = [0; TRAILER];
        file.read_exact_at(&mut bytes, at).map_err(read_error(path))?;
        if bytes[..8] != *MAGIC {
            return Err(foreign("it does not end like a set of images"));
        }
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let found = u16::from_le_bytes([bytes[8], bytes[9]]);
        if found != VERSION {
            return Err(ImageError::Version { path: path.into(), found, supported: VERSION });
        }
        let (length, place) = (number(16), number(24));
        if trailer(length, place) != bytes {
            return Err(damaged("the checksum of its trailer is wrong"));
        }
        let start = end.checked_sub(length).ok_or_else(|| damaged("its beginning is missing"))?;
        let mut first = [0; HEAD];
        file.read_exact_at(&mut first, start).map_err(read_error(path))?;
        let space = length.checked_sub((TRAILER + FRAME_HEAD) as u64).and_then(|top| top.checked_sub(place));
        if first != head() || space.is_none() {
            return Err(damaged("its head and its trailer do not fit together"));
        }
        let mut frame = [0; FRAME_HEAD];
        file.read_exact_at(&mut frame, start + place).map_err(read_error(path))?;
        let frame = Frame::parse(&frame).map_err(|what| ImageError::corrupt(path, what))?;
        if space != Some(u64::from(frame.stored_len)) {
            return Err(damaged("its directory has another length"));
        }
        let mut stored = vec![0; frame.stored_len as usize];
        file.read_exact_at(&mut stored, start + place + FRAME_HEAD as u64).map_err(read_error(path))?;
        let directory = frame.open(stored).and_then(|bytes| codec::from_bytes::<Directory>(&bytes));
        let directory = directory.map_err(|what| ImageError::corrupt(path, what))?;
        let offsets = check(&directory, place).map_err(|what| ImageError::corrupt(path, what))?;
        Ok(PackedSet { path: path.into(), file, start, length, directory, offsets })
    }

    pub(crate) fn state(&self, cut: u32, rank: u32) -> Result<State, ImageError> {
        let found = self.directory.states.binary_search_by_key(&(cut, rank), |entry| (entry.cut, entry.rank));
        let missing = |_| ImageError::Missing { path: self.path.clone(), rank, cut };
        let entry = self.directory.states[found.map_err(missing)?];
        let mut bytes = vec![0; entry.length as usize];
        self.read(&mut bytes, entry.offset)?;
        let state = State::parse(&self.path, &bytes)?;
        let pages = self.runs(rank);
        for run in state.regions.iter().flat_map(|region| &region.runs) {
            let Content::Data(mut page) = run.content else { continue };
            let end = page.saturating_add(run.pages);
            while page < end {
                let (first, count, _) = self.run_of(rank, pages, page)?;
                page = first + count;
            }
        }
        Ok(state)
    }

    fn read(&self, out: &mut [u8], offset: u64) -> Result<(), ImageError> {
        self.file.read_exact_at(out, self.start + offset).map_err(read_error(&self.path))
    }

    /// Reads pages of a rank.
    pub(crate) fn fetch(&self, rank: u32, pieces: Vec<Piece<'_>>, prepare: &Prepare<'_>) -> Result<(), ImageError> {
        let runs = self.runs(rank);
        let bytes = pieces.iter().map(|piece| piece.out.len()).sum();
        let mut found = Vec::with_capacity(pieces.len());
        for mut rest in pieces {
            while !rest.out.is_empty() {
                let (first, count, all) = self.run_of(rank, runs, rest.page)?;
                let inside = rest.page - first;
                let (mut part, other) = rest.split(count - inside);
                part.page = all + inside;
                found.push(part);
                rest = other;
            }
        }
        let state = || (Unpacker::default(), Vec::new(), Vec::new());
        fetch::on_all_cores(fetch::groups(found), bytes, state, |(unpacker, stored, raw), mut group| {
            let first = group[0].page / BLOCK * BLOCK;
            let index = (first / BLOCK) as usize;
            if let [part] = &mut group[..]
                && part.pages() == block_pages(self.directory.pages, index)
            {
                prepare(part.out);
                return self.block_to(index, unpacker, stored, part.out);
            }
            self.block(index, unpacker, stored, raw)?;
            for part in group {
                prepare(part.out);
                let at = (part.page - first) as usize * PAGE;
                part.out.copy_from_slice(&raw[at..at + part.out.len()]);
            }
            Ok(())
        })
    }

    fn runs(&self, rank: u32) -> &[(u64, u64, u64)] {
        let ranks = &self.directory.ranks;
        ranks.binary_search_by_key(&rank, |pages| pages.rank).map_or(&[], |at| &ranks[at].runs)
    }

    /// The run in which a page is.
    fn run_of(&self, rank: u32, runs: &[(u64, u64, u64)], page: u64) -> Result<(u64, u64, u64), ImageError> {
        let run = runs.partition_point(|run| run.0 <= page).checked_sub(1).map(|at| runs[at]);
        let missing = || ImageError::corrupt(&self.path, format!("page {page} of rank {rank} is not in it"));
        run.filter(|run| page - run.0 < run.1).ok_or_else(missing)
    }

    /// Its length in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Reads all blocks, to check them.
    pub(crate) fn check_blocks(&self) -> Result<(), ImageError> {
        let blocks: Vec<usize> = (0..self.directory.blocks.len()).collect();
        let state = || (Unpacker::default(), Vec::new(), Vec::new());
        let bytes = blocks.len().saturating_mul(BLOCK as usize * PAGE);
        fetch::on_all_cores(blocks, bytes, state, |(unpacker, stored, raw), index| {
            self.block(index, unpacker, stored, raw)
        })
    }

    /// Reads and unpacks a block to `raw`.
    fn block(
        &self,
        index: usize,
        unpacker: &mut Unpacker,
        stored: &mut Vec<u8>,
        raw: &mut Vec<u8>,
    ) -> Result<(), ImageError> {
        raw.resize(block_pages(self.directory.pages, index) as usize * PAGE, 0);
        self.block_to(index, unpacker, stored, raw)
    }

    /// Reads and unpacks a block to where it belongs, which is as long as it.
    fn block_to(
        &self,
        index: usize,
        unpacker: &mut Unpacker,
        stored: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<(), ImageError> {
        let damaged = |what: String| ImageError::corrupt(&self.path, format!("block {index}: {what}"));
        let block = self.directory.blocks[index];
        let wrong = |bytes: &[u8]| xxh3_64(bytes) != block.checksum;
        if block.stored as usize == out.len() {
            self.read(out, self.offsets[index])?;
            return if wrong(out) { Err(damaged("its checksum is wrong".into())) } else { Ok(()) };
        }
        stored.resize(block.stored as usize, 0);
        self.read(stored, self.offsets[index])?;
        if wrong(stored) {
            return Err(damaged("its checksum is wrong".into()));
        }
        unpacker.unpack_to(stored, out).map_err(damaged)
    }
}

/// How many pages block `index` has.
pub(crate) fn block_pages(pages: u64, index: usize) -> u64 {
    pages.saturating_sub(index as u64 * BLOCK).min(BLOCK)
}

/// Checks a directory whose place is `place`; returns the distances of the blocks.
fn check(directory: &Directory, place: u64) -> Result<Vec<u64>, String> {
    let Directory { pages, blocks, ranks, states } = directory;
    if blocks.len() as u64 != pages.div_ceil(BLOCK) {
        return Err(format!("it has {} blocks for {pages} pages", blocks.len()));
    }
    let mut offsets = vec![HEAD as u64];
    let mut at = HEAD as u64;
    for (index, block) in blocks.iter().enumerate() {
        if u64::from(block.stored) > block_pages(*pages, index) * PAGE as u64 {
            return Err(format!("block {index} is too long"));
        }
        at += u64::from(block.stored);
        offsets.push(at);
    }
    if at > place {
        return Err("its blocks are longer than the file".into());
    }
    if !ranks.is_sorted_by(|a, b| a.rank < b.rank) {
        return Err("its ranks are out of order".into());
    }
    for rank in ranks {
        // A rank has each content once.
        let sum = rank.runs.iter().try_fold(0u64, |sum, run| sum.checked_add(run.1));
        if sum.is_none_or(|sum| sum > *pages) {
            return Err(format!("rank {} has more pages than there are", rank.rank));
        }
        let mut last = 0;
        for &(first, count, all) in &rank.runs {
            let end = first.checked_add(count).filter(|_| first >= last && count > 0);
            let inside = all.checked_add(count).is_some_and(|end| end <= *pages);
            last = end.filter(|_| inside).ok_or_else(|| format!("the pages of rank {} are in disorder", rank.rank))?;
        }
    }
    if !states.is_sorted_by(|a, b| (a.cut, a.rank) < (b.cut, b.rank)) {
        return Err("its states are out of order".into());
    }
    let inside = |entry: &StateEntry| entry.offset.checked_add(entry.length).is_some_and(|end| end <= place);
    if !states.iter().all(inside) {
        return Err("a state lies outside".into());
    }
    Ok(offsets)
}

fn read_error(path: &Path) -> impl Fn(io::Error) -> ImageError {
    let path = path.to_owned();
    move |error| match error.kind() {
        io::ErrorKind::UnexpectedEof => ImageError::corrupt(&path, "it is cut off"),
        _ => ImageError::io(&path, "read")(error),
    }
}
