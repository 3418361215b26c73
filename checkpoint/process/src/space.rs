//! The upper half's addresses: which are taken, where a new mapping goes, the emulated break. Mappings are placed as
//! the kernel places them (top-down, packed, huge-page bounds by its own rule), since a program's speed depends on it.
//! The table is usable from the trap handler: no allocation, no thread-local storage.
use crate::Error;
use crate::own::Guarded;
use crate::sys::{error, failed, syscall};
use libc::{EEXIST, EINVAL, ENOMEM, c_int};
use serde::{Deserialize, Serialize};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The addresses reserved for the upper half. A program that is not position-independent has its own low ones besides.
pub const RANGE: Range<usize> = 0x2000_0000_0000..0x2800_0000_0000;

const PAGE: usize = 4096;
const HUGE: usize = 2 << 20;
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
}

pub(crate) struct Table {
    count: usize,
    spans: [(usize, usize); SPANS],
    brk_start: usize,
    brk: usize,
    stack: (usize, usize),
}

static TABLE: Guarded<Table> =
    Guarded::new(Table { count: 0, spans: [(0, 0); SPANS], brk_start: 0, brk: 0, stack: (0, 0) });

/// The kernel's rule for huge-page bounds, found by [`prepare`]: 0 none, 1 whole multiples, 2 every large mapping.
static HUGE_RULE: AtomicU32 = AtomicU32::new(1);

const fn page_up(address: usize) -> Option<usize> {
    match address.checked_add(PAGE - 1) {
        Some(up) => Some(up & !(PAGE - 1)),
        None => None,
    }
}

impl Table {
    fn spans(&self) -> &[(usize, usize)] {
        self.spans.get(..self.count).unwrap_or(&[])
    }

    /// Records `start..end`, merged with what touches it. False if the table is full.
    fn insert(&mut self, start: usize, end: usize) -> bool {
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

    fn open(&mut self, at: usize, span: (usize, usize)) -> bool {
        if self.count == SPANS {
            return false;
        }
        self.spans.copy_within(at..self.count, at + 1);
        self.spans[at] = span;
        self.count += 1;
        true
    }

    /// Forgets `start..end`. False if a split finds the table full.
    fn remove(&mut self, start: usize, end: usize) -> bool {
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

    fn is_free(&self, start: usize, end: usize) -> bool {
        let i = self.spans().partition_point(|s| s.1 <= start);
        self.spans().get(i).is_none_or(|s| s.0 >= end)
    }

    fn is_taken(&self, start: usize, end: usize) -> bool {
        let i = self.spans().partition_point(|s| s.1 <= start);
        self.spans().get(i).is_some_and(|s| s.0 <= start && s.1 >= end)
    }

    /// The highest free place in the range for `len` bytes.
    fn find(&self, len: usize, align: usize) -> Option<usize> {
        let room = if align > PAGE { len.checked_add(align)? } else { len };
        let mut end = RANGE.end;
        for &(from, to) in self.spans().iter().rev() {
            let bottom = to.max(RANGE.start);
            if end.checked_sub(bottom).is_some_and(|gap| gap >= room) {
                return Some((end - len) & !(align - 1));
            }
            if from <= RANGE.start {
                return None;
            }
            end = end.min(from);
        }
        (end - RANGE.start >= room).then(|| (end - len) & !(align - 1))
    }

    fn anonymous_align(len: usize) -> usize {
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
pub fn state() -> SpaceState {
    let occupied = ranges();
    let table = TABLE.lock();
    let (brk_start, brk, stack) = (table.brk_start, table.brk, table.stack);
    drop(table);
    SpaceState { occupied, brk_start, brk, stack, stubs: crate::stub::list() }
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
    let mut table = TABLE.lock();
    table.count = state.occupied.len();
    let count = table.count;
    table.spans[..count].copy_from_slice(&state.occupied);
    table.brk_start = state.brk_start;
    table.brk = state.brk;
    table.stack = state.stack;
    Ok(())
}

/// Unmaps all that the upper half has, through the C library, so that caches of registered memory see it. To be called
/// on the host's own stack, when no thread of the upper half is left.
pub fn unmap_all() {
    for (start, end) in ranges() {
        // SAFETY: the table names only mappings of the upper half, and nobody runs there any more.
        unsafe { libc::munmap(start as *mut libc::c_void, end - start) };
    }
    let mut table = TABLE.lock();
    table.count = 0;
    (table.brk_start, table.brk, table.stack) = (0, 0, (0, 0));
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

/// Gives back what [`lend`] mapped.
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

/// The upper half's mprotect of a mapping that grows down, as dynamic linkers make the stack executable: the emulated
/// stack does not grow, so all of it is meant.
///
/// # Safety
/// Called by the trap handler with the arguments of the call.
pub(crate) unsafe fn trapped_mprotect(args: [usize; 6]) -> isize {
    let [address, len, protection, ..] = args;
    let (start, end) = TABLE.lock_blocked().stack;
    if address < start || address.checked_add(len).is_none_or(|e| e > end) {
        return error(EINVAL);
    }
    let protection = protection & !(libc::PROT_GROWSDOWN as usize);
    // SAFETY: the program's own stack, as it wants it.
    unsafe { syscall!(libc::SYS_mprotect, start, end - start, protection) }
}

/// The upper half's mmap.
///
/// # Safety
/// Called by the trap handler with the arguments of the call.
pub(crate) unsafe fn trapped_mmap(args: [usize; 6]) -> isize {
    let [address, len, protection, flags, file, offset] = args;
    let wanted = flags as c_int;
    let Some(len) = page_up(len).filter(|l| *l > 0) else { return error(if len == 0 { EINVAL } else { ENOMEM }) };
    let map = |address: usize, flags: c_int| {
        // SAFETY: the call of the upper half, at a place that is free or its own.
        unsafe { syscall!(libc::SYS_mmap, address, len, protection, flags, file, offset) }
    };
    let mut table = TABLE.lock_blocked();
    let result = if wanted & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0 {
        let Some(end) = address.checked_add(len) else { return error(ENOMEM) };
        let within = address >= RANGE.start && end <= RANGE.end;
        if within || wanted & libc::MAP_FIXED_NOREPLACE != 0 || table.is_taken(address, end) {
            map(address, wanted)
        } else {
            let result = map(address, wanted & !libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE);
            if result == error(EEXIST) { error(ENOMEM) } else { result }
        }
    } else if wanted & libc::MAP_32BIT != 0 {
        map(address, wanted)
    } else {
        let hint = address.checked_add(PAGE - 1).map_or(0, |a| a & !(PAGE - 1));
        let end = hint.saturating_add(len);
        let place = if hint >= RANGE.start && end <= RANGE.end && table.is_free(hint, end) {
            Some(hint)
        } else if wanted & libc::MAP_HUGETLB != 0 {
            let bits = (wanted >> libc::MAP_HUGE_SHIFT) & libc::MAP_HUGE_MASK;
            table.find(len, if bits == 0 { HUGE } else { 1usize.wrapping_shl(bits as u32).max(PAGE) })
        } else if wanted & libc::MAP_ANONYMOUS != 0 {
            let align = Table::anonymous_align(len);
            table.find(len, align).or_else(|| table.find(len, PAGE))
        } else {
            table.find(len, PAGE)
        };
        match place {
            Some(place) => map(place, wanted | libc::MAP_FIXED_NOREPLACE),
            None => error(ENOMEM),
        }
    };
    if !failed(result) {
        let start = result as usize;
        if !table.insert(start, start.wrapping_add(len)) {
            // SAFETY: the mapping just made, which the table has no room for.
            unsafe { syscall!(libc::SYS_munmap, start, len) };
            return error(ENOMEM);
        }
    }
    result
}

/// The upper half's munmap: unmaps what is its own and leaves the rest alone, which for its eyes is not mapped.
///
/// # Safety
/// Called by the trap handler with the arguments of the call.
pub(crate) unsafe fn trapped_munmap(address: usize, len: usize) -> isize {
    let Some(len) = page_up(len).filter(|l| *l > 0) else { return error(EINVAL) };
    let Some(end) = address.checked_add(len).filter(|_| address.is_multiple_of(PAGE)) else { return error(EINVAL) };
    let mut table = TABLE.lock_blocked();
    let mut at = address;
    while at < end {
        let i = table.spans().partition_point(|s| s.1 <= at);
        let Some(&(from, to)) = table.spans().get(i).filter(|s| s.0 < end) else { break };
        let (from, to) = (from.max(at), to.min(end));
        // SAFETY: the upper half's own mapping, which it wants gone.
        let result = unsafe { syscall!(libc::SYS_munmap, from, to - from) };
        if failed(result) {
            return result;
        }
        if !table.remove(from, to) {
            return error(ENOMEM);
        }
        at = to;
    }
    0
}

/// The upper half's mremap.
///
/// # Safety
/// Called by the trap handler with the arguments of the call.
pub(crate) unsafe fn trapped_mremap(args: [usize; 6]) -> isize {
    let [old, old_len, new_len, flags, target, _] = args;
    let (Some(old_len), Some(new_len)) = (page_up(old_len), page_up(new_len)) else { return error(EINVAL) };
    let remap = |new_len: usize, flags: usize, target: usize| {
        // SAFETY: the upper half's own mapping, to a place that is free or its own.
        unsafe { syscall!(libc::SYS_mremap, old, old_len, new_len, flags, target) }
    };
    let (may_move, fixed) = (flags & libc::MREMAP_MAYMOVE as usize != 0, flags & libc::MREMAP_FIXED as usize != 0);
    let keep = flags & libc::MREMAP_DONTUNMAP as usize != 0 || old_len == 0;
    let (Some(old_end), Some(grown_end)) = (old.checked_add(old_len), old.checked_add(new_len)) else {
        return error(EINVAL);
    };
    let mut table = TABLE.lock_blocked();
    if !table.is_taken(old, old_end.max(old.saturating_add(1))) {
        return error(libc::EFAULT);
    }
    if !fixed && !keep {
        if new_len <= old_len {
            let result = remap(new_len, flags, 0);
            if !failed(result) {
                table.remove(grown_end, old_end);
            }
            return result;
        }
        if grown_end <= RANGE.end && table.is_free(old_end, grown_end) {
            let result = remap(new_len, 0, 0);
            if !failed(result) {
                table.insert(old, grown_end);
                return result;
            }
            if result != error(ENOMEM) {
                return result;
            }
        }
    }
    if !may_move {
        return remap(new_len, flags, target);
    }
    let place = if fixed {
        let Some(end) = target.checked_add(new_len) else { return error(EINVAL) };
        if !(target >= RANGE.start && end <= RANGE.end || table.is_taken(target, end)) {
            return error(ENOMEM);
        }
        target
    } else {
        let align = Table::anonymous_align(new_len);
        let Some(place) = table.find(new_len, align).or_else(|| table.find(new_len, PAGE)) else {
            return error(ENOMEM);
        };
        place
    };
    let result = remap(new_len, flags | libc::MREMAP_FIXED as usize, place);
    if !failed(result) {
        if !keep {
            table.remove(old, old_end);
        }
        table.insert(place, place + new_len);
    }
    result
}

/// The upper half's brk.
///
/// # Safety
/// Called by the trap handler with the argument of the call.
pub(crate) unsafe fn trapped_brk(wanted: usize) -> isize {
    let mut table = TABLE.lock_blocked();
    let now = table.brk;
    let (Some(end), Some(wanted_end)) = (page_up(now), page_up(wanted)) else { return now as isize };
    if wanted < table.brk_start || wanted_end > RANGE.end {
        return now as isize;
    }
    if wanted_end > end {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        if !table.is_free(end, wanted_end) {
            return now as isize;
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: free addresses above the break.
        let result = unsafe { syscall!(libc::SYS_mmap, end, wanted_end - end, protection, flags, -1isize, 0) };
        if failed(result) || !table.insert(end, wanted_end) {
            return now as isize;
        }
    } else if wanted_end < end {
        // SAFETY: the upper half gives these addresses back.
        unsafe { syscall!(libc::SYS_munmap, wanted_end, end - wanted_end) };
        table.remove(wanted_end, end);
    }
    table.brk = wanted;
    wanted as isize
}

/// Segments of System V shared memory that are attached: address and length.
static SEGMENTS: Guarded<[(usize, usize); 64]> = Guarded::new([(0, 0); 64]);

/// The upper half's shmat.
///
/// # Safety
/// Called by the trap handler with the arguments of the call.
pub(crate) unsafe fn trapped_shmat(args: [usize; 6]) -> isize {
    let [id, wanted, flags, ..] = args;
    // SAFETY: fills a local structure.
    let size = unsafe {
        let mut data: libc::shmid_ds = std::mem::zeroed();
        let result = syscall!(libc::SYS_shmctl, id, libc::IPC_STAT, &raw mut data);
        if failed(result) {
            return result;
        }
        data.shm_segsz
    };
    let Some(len) = page_up(size) else { return error(EINVAL) };
    let address = {
        let mut table = TABLE.lock_blocked();
        let place = if wanted != 0 { Some(wanted) } else { table.find(len, PAGE) };
        let Some(place) = place else { return error(ENOMEM) };
        // SAFETY: the upper half's own call, at a free place or where it wants it.
        let address = unsafe { syscall!(libc::SYS_shmat, id, place, flags) };
        if !failed(address) {
            table.insert(address as usize, (address as usize).wrapping_add(len));
        }
        address
    };
    if !failed(address)
        && let Some(free) = SEGMENTS.lock_blocked().iter_mut().find(|s| s.1 == 0)
    {
        *free = (address as usize, len);
    }
    address
}

/// The upper half's shmdt.
///
/// # Safety
/// Called by the trap handler with the argument of the call.
pub(crate) unsafe fn trapped_shmdt(address: usize) -> isize {
    // SAFETY: the upper half's own call.
    let result = unsafe { syscall!(libc::SYS_shmdt, address) };
    let mut len = 0;
    if !failed(result)
        && let Some(segment) = SEGMENTS.lock_blocked().iter_mut().find(|s| s.0 == address && s.1 > 0)
    {
        len = std::mem::take(&mut segment.1);
    }
    if len > 0 {
        TABLE.lock_blocked().remove(address, address.wrapping_add(len));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Box<Table> {
        Box::new(Table { count: 0, spans: [(0, 0); SPANS], brk_start: 0, brk: 0, stack: (0, 0) })
    }

    #[test]
    fn neighbours_merge_and_holes_split() {
        let mut t = table();
        assert!(t.insert(0x4000, 0x6000) && t.insert(0x8000, 0x9000) && t.insert(0x6000, 0x8000));
        assert_eq!(t.spans(), [(0x4000, 0x9000)]);
        assert!(t.remove(0x5000, 0x6000));
        assert_eq!(t.spans(), [(0x4000, 0x5000), (0x6000, 0x9000)]);
        assert!(t.remove(0x3000, 0x7000));
        assert_eq!(t.spans(), [(0x7000, 0x9000)]);
        assert!(t.is_free(0x4000, 0x7000) && !t.is_free(0x4000, 0x7001));
        assert!(t.is_taken(0x7000, 0x9000) && !t.is_taken(0x6fff, 0x9000));
        assert!(t.remove(0, usize::MAX));
        assert!(t.spans().is_empty());
    }

    #[test]
    fn places_are_taken_from_the_top_and_packed() {
        let mut t = table();
        let first = t.find(0x3000, PAGE).unwrap();
        assert_eq!(first, RANGE.end - 0x3000);
        t.insert(first, RANGE.end);
        let second = t.find(0x1000, PAGE).unwrap();
        assert_eq!(second, first - 0x1000);
        t.insert(second, first);
        let huge = t.find(2 * HUGE, HUGE).unwrap();
        assert!(huge.is_multiple_of(HUGE) && huge + 2 * HUGE <= second && huge + 3 * HUGE > second);
        t.insert(huge, huge + 2 * HUGE);
        // The rest below the bound is used again by what is small.
        assert_eq!(t.find(0x1000, PAGE).unwrap(), second - 0x1000);
        t.remove(first, first + 0x1000);
        assert_eq!(t.find(0x1000, PAGE).unwrap(), first);
        assert!(t.find(RANGE.end - RANGE.start, PAGE).is_none());
    }
}
