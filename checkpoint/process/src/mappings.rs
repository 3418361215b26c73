//! The upper half's calls that change its mappings: mmap, munmap, mremap, brk. They run in the trap handler.
use crate::segments;
use crate::space::{HUGE, PAGE, RANGE, TABLE, Table, page_up};
use crate::sys::{error, failed, syscall};
use libc::{EEXIST, EINVAL, ENOMEM, c_int};

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

/// The size of the pages that a mapping with such flags is of: the kernel rounds its length up to it.
fn page_of(flags: c_int) -> usize {
    if flags & libc::MAP_HUGETLB == 0 {
        return PAGE;
    }
    let bits = (flags >> libc::MAP_HUGE_SHIFT) & libc::MAP_HUGE_MASK;
    if bits == 0 { HUGE } else { 1usize.wrapping_shl(bits as u32).max(PAGE) }
}

/// The upper half's mmap.
///
/// # Safety
/// Called by the trap handler with the arguments of the call.
pub(crate) unsafe fn trapped_mmap(args: [usize; 6]) -> isize {
    let [address, len, protection, flags, file, offset] = args;
    let wanted = flags as c_int;
    let page = page_of(wanted);
    let up = page_up(len).and_then(|up| up.checked_next_multiple_of(page));
    let Some(len) = up.filter(|l| *l > 0) else { return error(if len == 0 { EINVAL } else { ENOMEM }) };
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
        let low = if hint == 0 && wanted & libc::MAP_ANONYMOUS != 0 { segments::place(&table, len) } else { None };
        let place = || {
            if hint >= RANGE.start && end <= RANGE.end && table.is_free(hint, end) {
                Some(hint)
            } else if wanted & libc::MAP_HUGETLB != 0 {
                table.find(len, page)
            } else if wanted & libc::MAP_ANONYMOUS != 0 {
                let align = Table::anonymous_align(len);
                table.find(len, align).or_else(|| table.find(len, PAGE))
            } else {
                table.find(len, PAGE)
            }
        };
        let at = |place| map(place, wanted | libc::MAP_FIXED_NOREPLACE);
        low.map(at).filter(|result| !failed(*result)).unwrap_or_else(|| place().map_or(error(ENOMEM), at))
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
