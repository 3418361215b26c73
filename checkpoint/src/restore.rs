//! Maps a saved memory back, with pages of the same kind in the same places: a program on pages of another kind runs at
//! another speed (up to 19 % faster or 14 % slower).
//!
//! The order matters. Huge pages come first, each by its first touch; then huge pages are switched off for the process, so that
//! all the rest becomes pages of 4 KB, whatever a region's marks ask for; then the contents; the protection of each region last.
use crate::memory::MemoryError;
use crate::restore_huge as huge;
use crate::restore_over::Remains;
use crate::touches::Interleaved;
use phasecast_image::{Content, Flags, Images, PAGE, Piece, Protection, Region, State};
use phasecast_process::space::gaps;
use std::io;
use std::ops::Range;

/// What a restore did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoreStats {
    /// Bytes read from the images.
    pub data: u64,
    /// Bytes that stand in huge pages as on the base.
    pub huge: u64,
    /// Bytes for which the kernel had no huge page: the program may run slower there.
    pub huge_refused: u64,
    /// Bytes of mappings that were taken over from the image before.
    pub kept: u64,
}

/// Maps the memory of `state` back, over what the image before has left. The table of addresses
/// ([`phasecast_process::space`]) is the caller's to set.
///
/// # Errors
/// If its place is taken, memory is short, or the images are damaged; nothing of it is mapped then.
pub fn memory(images: &Images, state: &State, remains: Remains) -> Result<RestoreStats, MemoryError> {
    let regions = huge::as_here(state);
    let kept = remains.fit(&regions);
    let mut stats = RestoreStats { kept: kept.iter().map(|range| range.end - range.start).sum(), ..Default::default() };
    let mut mapped = Mapped(kept.clone());
    let order = Interleaved::of(state)?;
    let there = |region: &Region| -> Vec<Range<u64>> {
        let first = kept.partition_point(|range| range.end <= region.start);
        kept[first..].iter().take_while(|range| range.start < region.end()).cloned().collect()
    };
    // Regions of which a part is there come first: the kernel would join what they lack to a neighbour that is writable
    // until the end of this restore.
    let (joined, alone): (Vec<_>, Vec<_>) =
        regions.iter().map(|region| (region, there(region))).partition(|(_, parts)| !parts.is_empty());
    for (region, parts) in joined.into_iter().chain(alone) {
        let joined = !parts.is_empty();
        gaps(region.start..region.end(), parts).try_for_each(|gap| map(region, gap, joined, &mut mapped))?;
    }
    let switch = huge::Switch::take();
    switch.set_off(false);
    regions.iter().for_each(huge::make);
    switch.set_off(true);
    let mut pieces = Vec::new();
    let mut hashes = &state.hashes[..];
    for region in &regions {
        stats.data += fill(region, &order, &mut hashes, &mut pieces);
    }
    images.fetch_prepared(state.rank, pieces, &|part| {
        let start = part.as_mut_ptr() as u64;
        order.touch(start..start + part.len() as u64);
    })?;
    (stats.huge, stats.huge_refused) = huge::count(&regions)?;
    regions.iter().try_for_each(finish)?;
    mapped.0.clear();
    Ok(stats)
}

/// Mappings that go again if a restore fails.
struct Mapped(Vec<Range<u64>>);

impl Drop for Mapped {
    fn drop(&mut self) {
        for range in &self.0 {
            // SAFETY: a mapping of this restore; nothing runs there.
            unsafe { libc::munmap(range.start as *mut _, (range.end - range.start) as usize) };
        }
    }
}

fn checked(result: libc::c_int, action: &'static str, start: u64, length: u64) -> Result<(), MemoryError> {
    if result == 0 {
        return Ok(());
    }
    Err(MemoryError::Map { action, start, length, source: io::Error::last_os_error() })
}

/// Whether nothing of a region needs to be written, so that it gets its protection at once.
fn is_bare(region: &Region) -> bool {
    region.runs.iter().all(|run| run.content == Content::Untouched)
}

/// Maps a part of a region, with its marks. If it is to be `joined` with another part that is there, the kernel must not
/// take it for a part of a neighbour before it has these.
fn map(region: &Region, part: Range<u64>, joined: bool, mapped: &mut Mapped) -> Result<(), MemoryError> {
    let (start, length) = (part.start, part.end - part.start);
    let has = |flag| region.flags.has(flag);
    let mut flags = libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    flags |= if has(Flags::SHARED) { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
    flags |= if has(Flags::NO_RESERVE) { libc::MAP_NORESERVE } else { 0 };
    flags |= if has(Flags::STACK) { libc::MAP_GROWSDOWN } else { 0 };
    let writable = libc::PROT_READ | libc::PROT_WRITE;
    let protection = match is_bare(region) {
        true => protection(region),
        false if joined => libc::PROT_READ,
        false => writable,
    };
    // SAFETY: an anonymous mapping that replaces none.
    let at = unsafe { libc::mmap(start as *mut _, length as usize, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        let source = io::Error::last_os_error();
        if source.raw_os_error() == Some(libc::EEXIST) {
            return Err(MemoryError::Taken { start, length });
        }
        return Err(MemoryError::Map { action: "map", start, length, source });
    }
    if at as u64 != start {
        // Kernels before 4.17 take the address for a wish.
        // SAFETY: the mapping that was just made.
        unsafe { libc::munmap(at, length as usize) };
        return Err(MemoryError::Taken { start, length });
    }
    mapped.0.push(part);
    let advice = [
        (Flags::HUGE, libc::MADV_HUGEPAGE),
        (Flags::NO_HUGE, libc::MADV_NOHUGEPAGE),
        (Flags::DONT_FORK, libc::MADV_DONTFORK),
        (Flags::WIPE_ON_FORK, libc::MADV_WIPEONFORK),
        (Flags::DONT_DUMP, libc::MADV_DONTDUMP),
    ];
    for (_, advice) in advice.iter().filter(|(flag, _)| region.flags.has(*flag)) {
        // SAFETY: marks on a mapping of our own. A kernel that lacks one runs the program without.
        unsafe { libc::madvise(start as *mut _, length as usize, *advice) };
    }
    if joined {
        // SAFETY: the mapping that was just made.
        checked(unsafe { libc::mprotect(at, length as usize, writable) }, "protect", start, length)?;
    }
    Ok(())
}

pub(crate) fn protection(region: &Region) -> libc::c_int {
    let pairs = [
        (Protection::READ, libc::PROT_READ),
        (Protection::WRITE, libc::PROT_WRITE),
        (Protection::EXECUTE, libc::PROT_EXEC),
    ];
    pairs
        .iter()
        .filter(|(ours, _)| region.protection.allows(*ours))
        .fold(libc::PROT_NONE, |sum, (_, theirs)| sum | theirs)
}

/// Touches the pages of a region that hold zeros and lists those with content; returns the bytes of these.
fn fill<'a>(region: &Region, order: &Interleaved, hashes: &mut &'a [u128], pieces: &mut Vec<Piece<'a>>) -> u64 {
    let mut at = region.start;
    let mut data = 0;
    for run in &region.runs {
        let length = run.pages as usize * PAGE;
        match run.content {
            Content::Untouched => {}
            Content::SharedZero => huge::touch(at, length as u64, false),
            Content::PrivateZero => order.touch(at..at + length as u64),
            Content::Data(page) => {
                let (own, rest) = hashes.split_at(hashes.len().min(run.pages as usize));
                *hashes = rest;
                // SAFETY: a part of the mapping that was just made, which nobody else knows; the runs do not overlap.
                let out = unsafe { std::slice::from_raw_parts_mut(at as *mut u8, length) };
                pieces.push(Piece { page, hashes: own, out });
                data += length as u64;
            }
        }
        at += length as u64;
    }
    data
}

/// Gives a region its protection, and locks it where it was.
fn finish(region: &Region) -> Result<(), MemoryError> {
    let Region { start, length, .. } = *region;
    if region.flags.has(Flags::LOCKED) {
        // What was never touched stays so. If the limit is too low here, the memory can be swapped, which is no other result.
        // SAFETY: a mapping of our own.
        unsafe { libc::syscall(libc::SYS_mlock2, start, length, libc::MLOCK_ONFAULT) };
    }
    if is_bare(region) {
        return Ok(());
    }
    // SAFETY: a mapping of our own, into which nothing points but `state`'s numbers.
    let result = unsafe { libc::mprotect(start as *mut _, length as usize, protection(region)) };
    checked(result, "protect", start, length)
}
