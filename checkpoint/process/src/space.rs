//! The upper half's addresses: which are taken, where a new mapping goes, the emulated break. Mappings are placed as
//! the kernel places them (top-down, packed, huge-page bounds by its own rule), since a program's speed depends on it.
//! The table is usable from the trap handler: no allocation, no thread-local storage.
use crate::own::Guarded;
use crate::sys::{failed, syscall};
use crate::{Error, late_binding};
use libc::c_int;
use serde::{Deserialize, Serialize};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The addresses reserved for the upper half. A program that is not position-independent has its own low ones besides.
pub const RANGE: Range<usize> = 0x2000_0000_0000..0x2800_0000_0000;

/// Addresses below programs, for what must lie below 4 GiB ([`crate::segments`]).
pub(crate) const LOW: Range<usize> = 0x8_0000..0x20_0000;

pub(crate) const PAGE: usize = 4096;
pub(crate) const HUGE: usize = 2 << 20;
/// As many mappings as the kernel grants a process by default.
const SPANS: usize = 65_536;

/// What an image must hold of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceState {
    /// Ranges that the upper half has mapped: first address and the one after the last, ascending.
    pub occupied: Vec<(usize, usize)>,
    /// Where the break began.
    pub brk_start: usize,
    /// Where it is.
    pub brk: usize,
    /// The main thread's stack: first usable address and the one after the last.
    pub stack: (usize, usize),
    /// Addresses that reissued system calls return to and the calls' numbers, in the order of their stubs.
    pub stubs: Vec<(usize, usize)>,
    /// Segments of System V that are attached: address and length.
    pub attached: Vec<(usize, usize)>,
    /// Where its dynamic linker holds how much room on the stack it takes for the registers of a processor.
    pub rooms: Vec<usize>,
}

pub(crate) struct Table {
    count: usize,
    spans: [(usize, usize); SPANS],
    pub(crate) brk_start: usize,
    pub(crate) brk: usize,
    pub(crate) stack: (usize, usize),
}

pub(crate) static TABLE: Guarded<Table> =
    Guarded::new(Table { count: 0, spans: [(0, 0); SPANS], brk_start: 0, brk: 0, stack: (0, 0) });

/// The kernel's rule for huge-page bounds, found by [`prepare`]: 0 none, 1 whole multiples, 2 every large mapping.
static HUGE_RULE: AtomicU32 = AtomicU32::new(1);

pub(crate) const fn page_up(address: usize) -> Option<usize> {
    match address.checked_add(PAGE - 1) {
        Some(up) => Some(up & !(PAGE - 1)),
        None => None,
    }
}

impl Table {
    pub(crate) fn spans(&self) -> &[(usize, usize)] {
        self.spans.get(..self.count).unwrap_or(&[])
    }

    /// Records `start..end`, merged with what touches it. False if the table is full.
    pub(crate) fn insert(&mut self, start: usize, end: usize) -> bool {
        let first = self.spans().partition_point(|s| s.1 < start);
        let last = self.spans().partition_point(|s| s.0 <= end);
        if first == last {
            return self.open(first, (start, end));
        }
        let merged = (start.min(self.spans[first].0), end.max(self.spans[last - 1].1));
        self.spans[first] = merged;
        self.spans.copy_within(last..self.count, first + 1);
        self.count -= last - first - 1;
        true
    }

    pub(crate) fn open(&mut self, at: usize, span: (usize, usize)) -> bool {
        if self.count == SPANS {
            return false;
        }
        self.spans.copy_within(at..self.count, at + 1);
        self.spans[at] = span;
        self.count += 1;
        true
    }

    /// Forgets `start..end`, which may be empty. False if a split finds the table full.
    pub(crate) fn remove(&mut self, start: usize, end: usize) -> bool {
        if start == end {
            return true;
        }
        let mut i = self.spans().partition_point(|s| s.1 <= start);
        while i < self.count && self.spans[i].0 < end {
            let (from, to) = self.spans[i];
            if from < start && to > end {
                if !self.open(i + 1, (end, to)) {
                    return false;
                }
                self.spans[i].1 = start;
                return true;
            } else if from < start {
                self.spans[i].1 = start;
                i += 1;
            } else if to > end {
                self.spans[i].0 = end;
                i += 1;
            } else {
                self.spans.copy_within(i + 1..self.count, i);
                self.count -= 1;
            }
        }
        true
    }

    pub(crate) fn is_free(&self, start: usize, end: usize) -> bool {
        let i = self.spans().partition_point(|s| s.1 <= start);
        self.spans().get(i).is_none_or(|s| s.0 >= end)
    }

    pub(crate) fn is_taken(&self, start: usize, end: usize) -> bool {
        let i = self.spans().partition_point(|s| s.1 <= start);
        self.spans().get(i).is_some_and(|s| s.0 <= start && s.1 >= end)
    }

    /// The highest free place in the range for `len` bytes.
    pub(crate) fn find(&self, len: usize, align: usize) -> Option<usize> {
        self.find_in(RANGE, len, align)
    }

    /// The same in another range.
    pub(crate) fn find_in(&self, within: Range<usize>, len: usize, align: usize) -> Option<usize> {
        let room = if align > PAGE { len.checked_add(align)? } else { len };
        let mut end = within.end;
        for &(from, to) in self.spans().iter().rev() {
            let bottom = to.max(within.start);
            if end.checked_sub(bottom).is_some_and(|gap| gap >= room) {
                return Some((end - len) & !(align - 1));
            }
            if from <= within.start {
                return None;
            }
            end = end.min(from);
        }
        (end - within.start >= room).then(|| (end - len) & !(align - 1))
    }

    pub(crate) fn anonymous_align(len: usize) -> usize {
        match HUGE_RULE.load(Relaxed) {
            1 if len >= HUGE && len.is_multiple_of(HUGE) => HUGE,
            2 if len >= HUGE => HUGE,
            _ => PAGE,
        }
    }
}

/// Finds the kernel's rule for placing large mappings.
pub(crate) fn prepare() {
    let aligned = |len: usize| {
        (0..3).all(|_| {
            // SAFETY: new mappings, gone again at the end; the small one keeps the large one off a bound by chance.
            unsafe {
                let map = |len| {
                    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
                    libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0)
                };
                let (small, large) = (map(3 * PAGE), map(len));
                libc::munmap(large, len);
                libc::munmap(small, 3 * PAGE);
                (large as usize).is_multiple_of(HUGE)
            }
        })
    };
    HUGE_RULE.store(if aligned(64 * HUGE + PAGE) { 2 } else { u32::from(aligned(64 * HUGE)) }, Relaxed);
}

/// Whether an address lies in the reserved range.
#[inline(always)]
pub const fn in_range(address: usize) -> bool {
    address >= RANGE.start && address < RANGE.end
}

/// Whether a thread pointer is one of the upper half.
#[inline(always)]
pub(crate) fn is_upper_pointer(pointer: usize) -> bool {
    in_range(pointer) || LOW.contains(&pointer)
}

/// Whether an address is the upper half's, mapped in the range or below.
pub fn contains(address: usize) -> bool {
    TABLE.lock().is_taken(address, address.saturating_add(1))
}

/// The same for a handler that runs with all signals blocked.
pub(crate) fn contains_blocked(address: usize) -> bool {
    TABLE.lock_blocked().is_taken(address, address.saturating_add(1))
}

/// What the upper half has mapped: first address and the one after the last of each range, ascending.
pub fn ranges() -> Vec<(usize, usize)> {
    // The allocation comes before the lock.
    let mut spans = Vec::with_capacity(SPANS);
    spans.extend_from_slice(TABLE.lock().spans());
    spans.shrink_to_fit();
    spans
}

/// The table, for an image.
pub fn state() -> Result<SpaceState, Error> {
    crate::system_v::none_stays()?;
    let occupied = ranges();
    let table = TABLE.lock();
    let (brk_start, brk, stack) = (table.brk_start, table.brk, table.stack);
    drop(table);
    let (stubs, attached) = (crate::stub::list(), crate::system_v::attached());
    Ok(SpaceState { occupied, brk_start, brk, stack, stubs, attached, rooms: late_binding::rooms() })
}

impl SpaceState {
    /// Whether a program of this table has code below 4 GiB, beside what the range's calls reach there.
    pub fn has_low_code(&self) -> bool {
        self.occupied.iter().any(|span| span.1 >> 32 == 0 && !LOW.contains(&span.0))
    }
}

/// Takes the table over from an image; the mappings themselves are the caller's to make.
///
/// # Errors
/// If the state is not one that [`state`] can return, or the stubs' page cannot be mapped.
pub fn set_state(state: &SpaceState) -> Result<(), Error> {
    let ascending = state.occupied.windows(2).all(|w| w[0].1 < w[1].0);
    let sound = state.occupied.iter().all(|s| s.0 < s.1 && s.0 % PAGE == 0 && s.1 % PAGE == 0 && s.1 <= RANGE.end);
    let brk = state.brk_start <= state.brk && state.brk < RANGE.end;
    if !ascending || !sound || !brk || state.occupied.len() > SPANS {
        return Err(Error::Obstacle("its table of addresses is not sound".into()));
    }
    crate::stub::set(&state.stubs)?;
    crate::system_v::set_attached(&state.attached);
    late_binding::set(state.rooms.clone());
    let mut table = TABLE.lock();
    table.count = state.occupied.len();
    let count = table.count;
    table.spans[..count].copy_from_slice(&state.occupied);
    table.brk_start = state.brk_start;
    table.brk = state.brk;
    table.stack = state.stack;
    Ok(())
}

/// Unmaps all that the upper half has. As [`unmap_all_but`].
pub fn unmap_all() {
    unmap_all_but(&[]);
}

/// Unmaps what the upper half has but for these ranges (ascending, each within one of its own), and forgets all of it.
/// Through the C library, so that caches of registered memory see it. To be called on the host's own stack, when no thread
/// of the upper half is left.
pub fn unmap_all_but(kept: &[Range<usize>]) {
    for (start, end) in ranges() {
        let within = kept.iter().filter(|range| start <= range.start && range.end <= end);
        for gap in gaps(start..end, within.cloned()) {
            // SAFETY: the table names only mappings of the upper half, and nobody runs there any more.
            unsafe { libc::munmap(gap.start as *mut libc::c_void, gap.end - gap.start) };
        }
    }
    let mut table = TABLE.lock();
    table.count = 0;
    (table.brk_start, table.brk, table.stack) = (0, 0, (0, 0));
}

/// What of `whole` lies in none of these ranges, which are ascending and within it.
pub fn gaps<T: Copy + PartialOrd>(
    whole: Range<T>,
    taken: impl IntoIterator<Item = Range<T>>,
) -> impl Iterator<Item = Range<T>> {
    let mut at = whole.start;
    let bounds = taken.into_iter().chain(std::iter::once(whole.end..whole.end));
    bounds.map(move |range| std::mem::replace(&mut at, range.end)..range.start).filter(|gap| !gap.is_empty())
}

/// Maps memory for the upper half, at `at` or where the kernel would put it, and records it.
pub(crate) fn map(
    what: &'static str,
    at: Option<usize>,
    len: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: usize,
) -> Result<usize, Error> {
    let len = page_up(len).ok_or(Error::NoRoom { bytes: len })?;
    let mut table = TABLE.lock();
    let address = match at {
        Some(address) => address,
        None => table.find(len, PAGE).ok_or(Error::NoRoom { bytes: len })?,
    };
    // SAFETY: a new mapping; MAP_FIXED is asked for only within a place that the loader took before.
    let result = unsafe { syscall!(libc::SYS_mmap, address, len, protection, flags | fixed(flags), file, offset) };
    if failed(result) {
        return Err(Error::Map { what, address, bytes: len, cause: io::Error::from_raw_os_error(-result as i32) });
    }
    table.insert(address, address + len);
    Ok(address)
}

const fn fixed(flags: c_int) -> c_int {
    if flags & libc::MAP_FIXED == 0 { libc::MAP_FIXED_NOREPLACE } else { 0 }
}

/// Gives back part of what [`map`] mapped.
pub(crate) fn unmap(start: usize, len: usize) {
    let mut table = TABLE.lock();
    // SAFETY: the caller's own mapping.
    unsafe { syscall!(libc::SYS_munmap, start, len) };
    table.remove(start, start + len);
}

/// Maps zeroed memory for the upper half on behalf of the host: what MPI lends to the program. At `at`, or where there is
/// room; pages are not reserved.
///
/// # Errors
/// If there is no room, or the place is taken.
pub fn lend(at: Option<usize>, len: usize) -> Result<usize, Error> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    map("memory that MPI lends", at, len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
}

/// Maps a file for the upper half on behalf of the host, which other processes map too: what MPI lends to several ranks
/// at once. Where there is room, or at `at`, in place of what the upper half has there.
///
/// # Errors
/// If there is no room.
pub fn share(at: Option<usize>, len: usize, file: c_int) -> Result<usize, Error> {
    let flags = libc::MAP_SHARED | if at.is_some() { libc::MAP_FIXED } else { 0 };
    map("memory that ranks share", at, len, libc::PROT_READ | libc::PROT_WRITE, flags, file, 0)
}

/// Maps once more, for the upper half, pages at `source` that a library shares with other processes: where there is room,
/// or at `at`, in place of what the upper half has there.
///
/// # Errors
/// If the pages belong to this process alone, or there is no room.
///
/// # Safety
/// At `source` are so many bytes of one mapping of the lower half.
pub unsafe fn again(at: Option<usize>, len: usize, source: usize) -> Result<usize, Error> {
    let place = match at {
        Some(place) => place,
        None => lend(None, len)?,
    };
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the place is the upper half's; a mapping of no bytes stands for a second one of the same pages.
    let result = unsafe { syscall!(libc::SYS_mremap, source, 0, len, flags, place) };
    if !failed(result) {
        return Ok(place);
    }
    if at.is_none() {
        take_back(place, len);
    }
    let cause = io::Error::from_raw_os_error(-result as i32);
    Err(Error::Map { what: "memory that a library shares", address: place, bytes: len, cause })
}

/// Gives back what [`lend`], [`share`] or [`again`] mapped.
pub fn take_back(start: usize, len: usize) {
    unmap(start, len);
}

/// The highest free place for `len` bytes, as [`map`] would take it.
pub(crate) fn find(len: usize) -> Option<usize> {
    TABLE.lock().find(page_up(len)?, PAGE)
}

/// Sets where the break begins.
pub(crate) fn set_brk(start: usize) {
    let mut table = TABLE.lock();
    (table.brk_start, table.brk) = (start, start);
}

/// Sets where the main thread's stack is.
pub(crate) fn set_stack(stack: (usize, usize)) {
    TABLE.lock().stack = stack;
}

#[cfg(test)]
#[path = "space_tests.rs"]
mod tests;
