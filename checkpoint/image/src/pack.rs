//! Packs a folder of images for shipping: pages that states name, each content once across all ranks and cuts, in blocks that
//! are compressed on all cores where that costs a restart next to nothing.
use crate::fetch::BLOCK;
use crate::named::{Named, pieces};
use crate::packed::{Block, Directory, HEAD, RankPages, StateEntry, TRAILER, head, trailer};
use crate::store::{ByPage, StoreFile};
use crate::{ImageError, Images, PAGE, PageHash};
use crossbeam_channel::{Receiver, Sender, bounded};
use phasecast_trace::codec;
use phasecast_trace::frame::{Frame, Kind};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZero;
use std::path::Path;
use std::thread;
use xxhash_rust::xxh3::xxh3_64;

/// Strength of compression of the directory: as traces have it.
const LEVEL: i32 = phasecast_trace::writer::LEVEL;
/// Strength of compression of pages. What zstd makes at negative levels has only repeats and plain bytes in it, which unpack
/// four times as fast as codes of varying length. These save a tenth of floating-point numbers, and a restart would wait for it.
const PAGES_LEVEL: i32 = -1;
/// A block is compressed if that saves at least one byte in so many: raw ones are read straight to where they belong.
const WORTH: usize = 16;

/// What was packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Length of the packed set in bytes.
    pub bytes: u64,
    /// Pages in it, each content once.
    pub pages: u64,
    /// Pages that the states of all ranks name.
    pub named: u64,
    /// States in it.
    pub states: usize,
}

/// Pages of one rank that follow one another in the packed set.
struct Source {
    store: usize,
    numbers: Vec<u64>,
    hashes: Vec<PageHash>,
}

/// Writes all images of `folder` as one packed set to `out`, which may stand behind something else ([`Images::open`] finds a
/// set at the end of a file). `path` names the output in messages.
///
/// # Errors
/// If the set is incomplete or damaged, or cannot be read or written.
pub fn pack(folder: &Path, path: &Path, out: &mut dyn Write) -> Result<Packed, ImageError> {
    let images = Images::open(folder)?;
    if images.packed().is_some() {
        return Err(ImageError::Foreign { path: folder.into(), found: "it is packed already".into() });
    }
    images.complete()?;
    let mut ranks: BTreeMap<u32, Named> = BTreeMap::new();
    for (cut, rank) in images.list()? {
        let state = images.state(cut, rank)?;
        ranks.entry(rank).or_default().add(&state).map_err(|what| ImageError::corrupt(folder, what))?;
    }
    let mut packed =
        Packed { named: ranks.values().map(|named| named.numbers.len() as u64).sum(), ..Packed::default() };
    let stores = ranks.keys().map(|&rank| StoreFile::open(folder, rank)).collect::<Result<Vec<_>, _>>()?;
    let (mut directory, batches) = plan(&ranks);
    drop(ranks);
    let write_error = || ImageError::io(path, "write");
    out.write_all(&head()).map_err(write_error())?;
    let mut at = HEAD as u64;
    compress(&stores, batches, |stored| {
        directory.blocks.push(Block { stored: stored.len() as u32, checksum: xxh3_64(stored) });
        at += stored.len() as u64;
        out.write_all(stored).map_err(write_error())
    })?;
    for (cut, rank) in images.list()? {
        let bytes = images.state(cut, rank)?.to_bytes(false)?;
        out.write_all(&bytes).map_err(write_error())?;
        directory.states.push(StateEntry { cut, rank, offset: at, length: bytes.len() as u64 });
        at += bytes.len() as u64;
    }
    (packed.states, packed.pages) = (directory.states.len(), directory.pages);
    let frame = Frame::new(Kind::Section).with_payload(&codec::to_bytes(&directory), Some(LEVEL));
    packed.bytes = at + (frame.len() + TRAILER) as u64;
    let written = out.write_all(&frame).and_then(|()| out.write_all(&trailer(packed.bytes, at)));
    written.and_then(|()| out.flush()).map_err(write_error())?;
    Ok(packed)
}

/// Gives every content a number: the directory, but for blocks and states, and the pages of each block in order.
fn plan(ranks: &BTreeMap<u32, Named>) -> (Directory, Vec<Vec<Source>>) {
    let mut directory = Directory::default();
    let mut known: ByPage<u64> = ByPage::default();
    let mut batches: Vec<Vec<Source>> = Vec::new();
    for (store, (&rank, named)) in ranks.iter().enumerate() {
        let mut runs: Vec<(u64, u64, u64)> = Vec::new();
        for (&number, &hash) in named.numbers.iter().zip(&named.hashes) {
            let all = *known.entry(hash).or_insert(directory.pages);
            match runs.last_mut() {
                Some((first, count, start)) if *first + *count == number && *start + *count == all => *count += 1,
                _ => runs.push((number, 1, all)),
            }
            if all == directory.pages {
                if directory.pages.is_multiple_of(BLOCK) {
                    batches.push(Vec::new());
                }
                directory.pages += 1;
                let batch = batches.last_mut().expect("page 0 begins a block");
                match batch.last_mut() {
                    Some(source) if source.store == store => {
                        source.numbers.push(number);
                        source.hashes.push(hash);
                    }
                    _ => batch.push(Source { store, numbers: vec![number], hashes: vec![hash] }),
                }
            }
        }
        directory.ranks.push(RankPages { rank, runs });
    }
    (directory, batches)
}

/// Reads, checks and compresses blocks on all cores; `write` gets them in order.
fn compress(
    stores: &[StoreFile],
    batches: Vec<Vec<Source>>,
    mut write: impl FnMut(&[u8]) -> Result<(), ImageError>,
) -> Result<(), ImageError> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        // What waits in the channels is bounded; they end when either side is gone.
        let (work, todo) = bounded::<(Vec<Source>, Sender<Result<Vec<u8>, ImageError>>)>(2 * cores);
        let (in_order, results) = bounded::<Receiver<Result<Vec<u8>, ImageError>>>(4 * cores);
        for _ in 0..cores {
            let todo = todo.clone();
            let run = move || todo.into_iter().for_each(|(batch, reply)| drop(reply.send(block(stores, &batch))));
            let started = thread::Builder::new().spawn_scoped(scope, run);
            started.map_err(ImageError::io(Path::new("a thread"), "start"))?;
        }
        drop(todo);
        let feed = move || {
            for batch in batches {
                let (reply, result) = bounded(1);
                if in_order.send(result).is_err() || work.send((batch, reply)).is_err() {
                    return;
                }
            }
        };
        let started = thread::Builder::new().spawn_scoped(scope, feed);
        started.map_err(ImageError::io(Path::new("a thread"), "start"))?;
        for result in results {
            // A sender without a word means that its thread is gone: the scope then hands on its panic.
            match result.recv() {
                Ok(stored) => write(&stored?)?,
                Err(_) => break,
            }
        }
        Ok(())
    })
}

fn block(stores: &[StoreFile], batch: &[Source]) -> Result<Vec<u8>, ImageError> {
    let mut raw = vec![0; batch.iter().map(|source| source.numbers.len() * PAGE).sum()];
    let mut rest = &mut raw[..];
    for source in batch {
        let (space, other) = rest.split_at_mut(source.numbers.len() * PAGE);
        for piece in pieces(&source.numbers, &source.hashes, space) {
            stores[source.store].read(piece.page, piece.hashes, piece.out)?;
        }
        rest = other;
    }
    let packed = codec::pack(&raw, PAGES_LEVEL);
    Ok(if packed.len() + raw.len() / WORTH <= raw.len() { packed } else { raw })
}

/// Packs a folder into a file, whole or not at all, readable by its owner only.
///
/// # Errors
/// As [`pack`].
pub fn pack_file(folder: &Path, path: &Path) -> Result<Packed, ImageError> {
    crate::store::create_private(path, |file| {
        let mut out = io::BufWriter::with_capacity(1 << 20, file);
        let packed = pack(folder, path, &mut out)?;
        out.flush().map_err(ImageError::io(path, "write"))?;
        Ok(packed)
    })
}
