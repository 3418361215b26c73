//! A restart over the image that ran before in the same process: where both have memory of the same kind in the same
//! place, its pages stay and get the next content. Making pages is the most of what a restart takes.
//!
//! What stays must be what a fresh restart would have made: pages of the same size, none where the image has none. So
//! pages that the image wants otherwise are given back to the kernel, and a huge page that is wanted where small ones
//! were needs a mapping of its own (the kernel makes none under a table of small pages).
use crate::memory::{self, HUGE, Mapping};
use crate::memory_kinds::{Kind, Kinds, Stretch};
use phasecast_image::{Content, Flags, PAGE, Protection, Region};
use phasecast_process::space::{self, gaps};
use std::ops::Range;

/// Mappings shorter than this, in bytes, are made again.
const WORTH: u64 = HUGE;
/// Images with fewer bytes too: to ask the kernel for its mappings takes 2 ms, to make as many pages 4 ms.
const IMAGE_WORTH: u64 = 16 << 20;
/// Marks with which a mapping may stay, if the image has the same.
const PLAIN: u16 = Flags::HUGE | Flags::NO_HUGE | Flags::NO_RESERVE | Flags::DONT_DUMP;
/// What their like may do: all that is kept is written at once.
const WRITABLE: Protection = Protection(Protection::READ | Protection::WRITE);

/// Mappings of an image that ran to its end, which the next one may take over. Nothing runs there any more.
#[derive(Debug, Default)]
pub struct Remains(Vec<Mapping>);

impl Remains {
    /// Unmaps the upper half but for what the image after one of so many bytes may take over. To be called as
    /// [`space::unmap_all_but`].
    pub(crate) fn leave(data: u64) -> Remains {
        let remains = if data < IMAGE_WORTH { Remains::default() } else { Remains::among(memory::ranges()) };
        let kept: Vec<Range<usize>> = remains.ranges().map(|range| range.start as usize..range.end as usize).collect();
        space::unmap_all_but(&kept);
        remains
    }

    /// Where they are, ascending.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().map(|m| m.start..m.end)
    }

    /// The mappings in these ranges that may be taken over.
    pub(crate) fn among(ranges: Vec<Range<u64>>) -> Remains {
        let mut mappings = memory::mappings(&ranges).unwrap_or_default();
        mappings.retain(|m| {
            let anonymous = m.inode == 0 && m.name.is_empty() && m.flags.0 & !PLAIN == 0;
            anonymous && m.end - m.start >= WORTH && m.protection == WRITABLE
        });
        Remains(mappings)
    }

    /// Fits what is left to these regions. Returns the ranges that stay, ascending, readable and writable; all else is
    /// unmapped.
    pub(crate) fn fit(self, regions: &[Region]) -> Vec<Range<u64>> {
        let Some(kinds) = (!self.0.is_empty()).then(|| Kinds::open().ok()).flatten() else {
            self.ranges().for_each(unmap);
            return Vec::new();
        };
        let mut places = self.places(regions, &kinds).into_iter().peekable();
        let mut kept = Vec::new();
        for mapping in &self.0 {
            let own: Vec<Place<'_>> =
                std::iter::from_fn(|| places.next_if(|place| place.part.start < mapping.end)).collect();
            gaps(mapping.start..mapping.end, own.iter().map(|place| place.part.clone())).for_each(unmap);
            // Only now: a huge page of which a part was unmapped is none any more.
            own.into_iter().for_each(|place| kept.extend(fit_part(place, mapping, &kinds)));
        }
        kept
    }

    /// Where which region may keep pages, ascending: those of one mapping, so that it stays one mapping itself.
    fn places<'a>(&self, regions: &'a [Region], kinds: &Kinds) -> Vec<Place<'a>> {
        let mut places: Vec<Place<'a>> = Vec::new();
        for mapping in &self.0 {
            let first = regions.partition_point(|region| region.end() <= mapping.start);
            for region in regions[first..].iter().take_while(|region| region.start < mapping.end) {
                let part = mapping.start.max(region.start)..mapping.end.min(region.end());
                if length(&part) < WORTH as usize || !suits(mapping, region, kinds) {
                    continue;
                }
                match places.last_mut().filter(|last| last.region.start == region.start) {
                    Some(last) if length(&last.part) < length(&part) => last.part = part,
                    Some(_) => {}
                    None => places.push(Place { part, region }),
                }
            }
        }
        places
    }
}

/// A part of a mapping that may stay, for this region.
struct Place<'a> {
    part: Range<u64>,
    region: &'a Region,
}

/// Whether pages of a mapping can be those of a region.
fn suits(mapping: &Mapping, region: &Region, kinds: &Kinds) -> bool {
    let data = || region.runs.iter().any(|run| matches!(run.content, Content::Data(_)));
    // Older kernels do not tell for sure which pages are huge where there are some.
    let sure = kinds.sure() || mapping.huge == 0 && region.runs.iter().all(|run| !run.huge);
    let like = region.flags == mapping.flags && region.protection == WRITABLE;
    sure && region.backing.is_none() && like && data()
}

/// Fits a part of a mapping to its region; the ranges that stay.
fn fit_part(Place { part, region }: Place<'_>, mapping: &Mapping, kinds: &Kinds) -> Vec<Range<u64>> {
    let found = kinds.of(&Mapping { start: part.start, end: part.end, ..mapping.clone() });
    let Ok(found) = found else {
        unmap(part);
        return Vec::new();
    };
    let Changes { discard, zero, mut remap } = changes(&part, &found, region);
    for range in discard {
        // SAFETY: memory of the image before, in which nothing runs any more. Through the C library, so that caches of registered memory see it.
        if unsafe { libc::madvise(range.start as *mut _, length(&range), libc::MADV_DONTNEED) } != 0 {
            remap.push(range);
        }
    }
    for range in zero {
        // SAFETY: as for what is discarded: pages that are there and may be written.
        unsafe { std::ptr::write_bytes(range.start as *mut u8, 0, length(&range)) };
    }
    remap.sort_by_key(|range| range.start);
    remap.iter().cloned().for_each(unmap);
    gaps(part, remap).collect()
}

/// What must happen to pages before they can be written over.
#[derive(Debug, Default, PartialEq)]
struct Changes {
    /// To be given back to the kernel.
    discard: Vec<Range<u64>>,
    /// Parts of huge pages, to be zeroed.
    zero: Vec<Range<u64>>,
    /// Whole huge pages that need a mapping of their own.
    remap: Vec<Range<u64>>,
}

/// Compares the pages that were found in a part of a region with those that it wants.
fn changes(part: &Range<u64>, found: &[Stretch], region: &Region) -> Changes {
    let mut changes = Changes::default();
    let mut wanted = region.runs.iter();
    let mut run_end = region.start;
    let mut run = None;
    let mut at = part.start;
    for &(pages, kind) in found {
        let end = at + pages * PAGE as u64;
        while at < end {
            while run_end <= at {
                run = wanted.next();
                run_end += run.map_or(region.length, |run| run.pages * PAGE as u64);
            }
            let Some(run) = run else { return changes };
            let next = end.min(run_end);
            let data = matches!(run.content, Content::Data(_));
            match kind {
                Kind::Own { huge } if huge == run.huge && data => {}
                Kind::Own { huge: true } if run.huge && run.content == Content::PrivateZero => {
                    push(&mut changes.zero, at..next);
                }
                Kind::Absent if !run.huge => {}
                Kind::Own { huge: true } | Kind::Zero { huge: true } => push(&mut changes.discard, at..next),
                _ if run.huge => push(&mut changes.remap, at / HUGE * HUGE..next.next_multiple_of(HUGE)),
                _ => push(&mut changes.discard, at..next),
            }
            at = next;
        }
    }
    for range in &mut changes.remap {
        *range = range.start.max(part.start)..range.end.min(part.end);
    }
    changes
}

/// Adds a range, joined with the last if they touch.
fn push(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
        _ => ranges.push(range),
    }
}

fn length(range: &Range<u64>) -> usize {
    (range.end - range.start) as usize
}

fn unmap(range: Range<u64>) {
    // SAFETY: a mapping of the image before, in which nothing runs any more.
    unsafe { libc::munmap(range.start as *mut _, length(&range)) };
}
