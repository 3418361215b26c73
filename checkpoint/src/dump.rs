//! Saves the upper half's memory at a cut, while all its threads stand still.
//!
//! Runs in the host, perhaps on the program's own stack: what lies below the program's frame there may change meanwhile and
//! means nothing. The kinds of pages are kept apart, because a program on pages of another kind runs at another speed.
use crate::memory::{self, Mapping, MemoryError};
use crate::memory_kinds::{Kind, Kinds, Stretch};
use crate::sharing::{Sharing, Shown};
use crossbeam_channel::bounded;
use phasecast_image::store::page_hash;
use phasecast_image::{Backing, Content, Flags, HUGE_PAGES, PAGE, PageHash, Protection, Region, Run, State, Store};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::thread;

/// Pages that are looked at and then stored while they are in the cache.
const CHUNK: u64 = phasecast_image::store::CHUNK as u64;
/// Fewer bytes than this are looked at by the thread that writes them.
const ALONE: usize = 4 << 20;
/// So many chunks a second thread may be ahead of the one that writes.
const AHEAD: usize = 4;

/// What a dump found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpStats {
    /// Mappings.
    pub regions: usize,
    /// Bytes with content.
    pub data: u64,
    /// Bytes of these that were not in the store yet.
    pub fresh: u64,
    /// Bytes of pages that are there but zero.
    pub zero: u64,
}

/// Saves the memory of the upper half: pages to `store`, their places to `state`. [`Store::save`] then makes the cut durable.
/// `shared`: memory that ranks share through MPI, and what of it is this rank's to save.
///
/// # Errors
/// If some of it cannot be saved (devices that are mapped for writing), or the store cannot be written; the program is unharmed.
pub fn memory(
    store: &mut Store,
    state: &mut State,
    shared: &[(Range<usize>, Range<usize>)],
) -> Result<DumpStats, MemoryError> {
    memory_in(&memory::ranges(), Kinds::open()?, store, state, shared)
}

/// As [`memory`], of these ranges of addresses, as `kinds` shows them.
pub(crate) fn memory_in(
    ranges: &[Range<u64>],
    kinds: Kinds,
    store: &mut Store,
    state: &mut State,
    shared: &[(Range<usize>, Range<usize>)],
) -> Result<DumpStats, MemoryError> {
    let path = "/proc/self/mem";
    let mem = File::open(path).map_err(|source| MemoryError::Proc { path, action: "open", source })?;
    let before = store.pages();
    let mut mappings = memory::mappings(ranges)?;
    let sharing = Sharing::among(&mut mappings);
    let mut dump = Dump { store, mem, kinds, sharing, space: Vec::new(), hashes: Vec::new() };
    let regions = mappings
        .iter_mut()
        .map(|mapping| {
            let within = |whole: &Range<usize>| whole.start as u64 <= mapping.start && mapping.end <= whole.end as u64;
            let own = shared.iter().find(|(whole, _)| within(whole)).map(|(_, own)| own.start as u64..own.end as u64);
            if own.is_some() {
                // Its file is nobody's but the window's.
                (mapping.inode, mapping.name) = (0, String::new());
            }
            dump.region(mapping, own.unwrap_or(0..u64::MAX))
        })
        .collect::<Result<Vec<_>, _>>()?;
    (state.regions, state.hashes) = (regions, dump.hashes);
    state.huge_policy = memory::huge_policy();
    let runs = state.regions.iter().flat_map(|region| &region.runs);
    let zero: u64 = runs.filter(|run| matches!(run.content, Content::PrivateZero)).map(|run| run.pages).sum();
    Ok(DumpStats {
        regions: state.regions.len(),
        data: state.data_pages() * PAGE as u64,
        fresh: (store.pages() - before) * PAGE as u64,
        zero: zero * PAGE as u64,
    })
}

struct Dump<'a> {
    store: &'a mut Store,
    mem: File,
    kinds: Kinds,
    sharing: Sharing,
    /// Where pages are copied that cannot be used where they are.
    space: Vec<u8>,
    hashes: Vec<u128>,
}

impl Dump<'_> {
    /// Saves a mapping, of which the pages in `own` are this rank's.
    fn region(&mut self, mapping: &Mapping, own: Range<u64>) -> Result<Region, MemoryError> {
        let mut flags = mapping.flags;
        let shown = self.sharing.of(mapping)?;
        if mapping.is_file() && shown == Shown::Alone {
            // A file that nobody writes is as good in memory of its own.
            flags.0 &= !Flags::SHARED;
        }
        let kinds = self.kinds.of(mapping)?;
        let mut runs = Vec::new();
        let mut at = mapping.start;
        for (pages, kind) in only(mapping.start, self.refine(mapping, kinds)?, own) {
            let end = at + pages * PAGE as u64;
            match kind {
                Kind::Absent if !mapping.is_file() || mapping.protection.0 == 0 => {
                    push(&mut runs, pages, false, Content::Untouched);
                }
                Kind::Zero { huge } => push(&mut runs, pages, huge, Content::SharedZero),
                Kind::Own { huge } => self.pages(mapping, at..end, huge, true, &mut runs)?,
                Kind::File => self.pages(mapping, at..end, false, true, &mut runs)?,
                Kind::Absent => self.pages(mapping, at..end, false, false, &mut runs)?,
            }
            at = end;
        }
        let name = if mapping.is_file() { String::new() } else { mapping.name.clone() };
        let shared = if let Shown::Shared(shared) = shown { Some(shared) } else { None };
        let (path, offset) = (mapping.name.clone(), mapping.offset);
        let backing = (mapping.is_file() || shared.is_some()).then_some(Backing { path, offset, shared });
        let (start, length) = (mapping.start, mapping.end - mapping.start);
        Ok(Region { start, length, protection: mapping.protection, flags, backing, name, runs })
    }

    /// Tells pages of zeros that all share from pages of one's own where the kernel's word is not enough: only what belongs to
    /// others too *and* is zero is shared.
    fn refine(&self, mapping: &Mapping, kinds: Vec<Stretch>) -> Result<Vec<Stretch>, MemoryError> {
        let readable = mapping.protection.allows(Protection::READ);
        let mut refined = Vec::with_capacity(kinds.len());
        let mut at = mapping.start;
        for (pages, kind) in kinds {
            let step = match kind {
                Kind::Own { huge: true } => HUGE_PAGES,
                Kind::Zero { huge: false } if !self.kinds.sure() => 1,
                _ => pages,
            };
            let end = at + pages * PAGE as u64;
            while step != pages && at < end {
                // The kernel maps huge pages whole; one that does not fit is not taken for one.
                let pages = step.min((end - at) / PAGE as u64);
                let zero = readable && pages == step && !self.kinds.is_exclusive(at)? && {
                    // SAFETY: the mapping is there and may be read, and belongs to the upper half, which stands still.
                    is_zero(unsafe { std::slice::from_raw_parts(at as *const u8, step as usize * PAGE) })
                };
                let huge = step == HUGE_PAGES;
                let whole = if zero { Kind::Zero { huge } } else { Kind::Own { huge } };
                refined.push((pages, if pages == step { whole } else { Kind::Own { huge: false } }));
                at += pages * PAGE as u64;
            }
            if at < end {
                refined.push(((end - at) / PAGE as u64, kind));
                at = end;
            }
        }
        Ok(refined)
    }

    /// Saves pages; those that are not `present` may lie behind the end of their file.
    fn pages(
        &mut self,
        mapping: &Mapping,
        range: Range<u64>,
        huge: bool,
        present: bool,
        runs: &mut Vec<Run>,
    ) -> Result<(), MemoryError> {
        let mut space = std::mem::take(&mut self.space);
        space.resize(CHUNK as usize * PAGE, 0);
        let here = (&raw const space) as u64;
        let own_stack = (mapping.start..mapping.end).contains(&here);
        let direct = !own_stack && !mapping.is_file() && mapping.protection.allows(Protection::READ);
        if direct {
            let length = (range.end - range.start) as usize;
            // SAFETY: the mapping is there and may be read, no file that could be cut stands behind it, and the upper half,
            // whose memory it is, stands still. It is not the stack that this function runs on.
            let bytes = unsafe { std::slice::from_raw_parts(range.start as *const u8, length) };
            self.space = space;
            return self.direct(bytes, huge, runs);
        }
        let mut at = range.start;
        while at < range.end {
            let length = (range.end - at).min(CHUNK * PAGE as u64) as usize;
            let read = read_pages(&self.mem, &mut space[..length], at);
            let got = match read {
                Ok(got) => got,
                Err(source) if present => return Err(MemoryError::Read { address: at, source }),
                Err(_) => 0,
            };
            self.store_pages(&space[..got], &sums(&space[..got]), huge, runs)?;
            if got == 0 {
                push(runs, 1, false, Content::Untouched);
            }
            at += got.max(PAGE) as u64;
        }
        self.space = space;
        Ok(())
    }

    /// Saves memory that can be used where it is. A second thread looks at the pages while this one writes those before.
    fn direct(&mut self, bytes: &[u8], huge: bool, runs: &mut Vec<Run>) -> Result<(), MemoryError> {
        let mut chunks = bytes.chunks(CHUNK as usize * PAGE);
        if bytes.len() < ALONE {
            return chunks.try_for_each(|chunk| self.store_pages(chunk, &sums(chunk), huge, runs));
        }
        thread::scope(|scope| {
            let (send, ready) = bounded(AHEAD);
            let mut ahead = chunks.clone();
            let look = move || ahead.all(|chunk| send.send(sums(chunk)).is_ok());
            // If no thread can be made, `send` is gone, and this one does it all.
            let _ = phasecast_process::threads::without_signals(|| thread::Builder::new().spawn_scoped(scope, look));
            chunks.try_for_each(|chunk| {
                let sums = ready.recv().unwrap_or_else(|_| sums(chunk));
                self.store_pages(chunk, &sums, huge, runs)
            })
        })
    }

    fn store_pages(
        &mut self,
        bytes: &[u8],
        sums: &[Option<PageHash>],
        huge: bool,
        runs: &mut Vec<Run>,
    ) -> Result<(), MemoryError> {
        let mut places = Vec::new();
        let mut at = 0;
        for same in sums.chunk_by(|a, b| a.is_some() == b.is_some()) {
            let stretch = &bytes[at..at + same.len() * PAGE];
            at += stretch.len();
            if same[0].is_none() {
                push(runs, same.len() as u64, huge, Content::PrivateZero);
                continue;
            }
            places.clear();
            let first = self.hashes.len();
            self.hashes.extend(same.iter().flatten());
            self.store.add_hashed(stretch, &self.hashes[first..], &mut places)?;
            places.iter().for_each(|&(first, count)| push(runs, count, huge, Content::Data(first)));
        }
        Ok(())
    }
}

/// The stretches from `start` on, with what lies outside of `own` as if nothing were there.
fn only(start: u64, kinds: Vec<Stretch>, own: Range<u64>) -> Vec<Stretch> {
    let (mut kept, mut at) = (Vec::with_capacity(kinds.len()), start);
    for (pages, kind) in kinds {
        let end = at + pages * PAGE as u64;
        let (first, last) = (own.start.clamp(at, end), own.end.clamp(at, end));
        for (bytes, kind) in
            [(first - at, Kind::Absent), (last.max(first) - first, kind), (end - last.max(first), Kind::Absent)]
        {
            if bytes > 0 {
                kept.push((bytes / PAGE as u64, kind));
            }
        }
        at = end;
    }
    kept
}

/// The hash of each page, none for one that is zero.
fn sums(bytes: &[u8]) -> Vec<Option<PageHash>> {
    bytes.chunks_exact(PAGE).map(|page| (!is_zero(page)).then(|| page_hash(page))).collect()
}

/// Reads pages of this process, whatever their protection, up to the first that cannot be read; returns how many bytes.
fn read_pages(mem: &File, out: &mut [u8], address: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < out.len() {
        match mem.read_at(&mut out[got..], address + got as u64) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if got < PAGE => return Err(error),
            Err(_) => break,
        }
    }
    if got < PAGE { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(got / PAGE * PAGE) }
}

/// Whether all is zero.
fn is_zero(bytes: &[u8]) -> bool {
    let (words, _) = bytes.as_chunks::<64>();
    words.iter().all(|block| *block == [0; 64])
}

/// Appends to the runs of a region; what continues the last run becomes part of it.
fn push(runs: &mut Vec<Run>, pages: u64, huge: bool, content: Content) {
    if let Some(last) = runs.last_mut().filter(|last| last.huge == huge) {
        let continues = match (last.content, content) {
            (Content::Data(first), Content::Data(next)) => first + last.pages == next,
            (last, content) => last == content,
        };
        if continues {
            last.pages += pages;
            return;
        }
    }
    if pages > 0 {
        runs.push(Run { pages, huge, content });
    }
}
