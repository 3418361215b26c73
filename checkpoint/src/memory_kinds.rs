//! Which kind of page stands at each address: by the ioctl PAGEMAP_SCAN, or on kernels before 6.7 by what
//! `/proc/self/pagemap` and `smaps` tell.
use crate::memory::{HUGE, Mapping, MemoryError};
use phasecast_image::{Flags, HUGE_PAGES, PAGE};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// What stands behind a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing, or a guard (`MADV_GUARD_INSTALL`, as C libraries from 2.42 on put at the ends of threads' stacks), which
    /// cannot be read and comes back as memory that was not touched.
    Absent,
    /// The kernel's page of zeros.
    Zero { huge: bool },
    /// Memory of its own (or in swap).
    Own { huge: bool },
    /// A page of a file or of shared memory.
    File,
}

/// Pages of one kind.
pub(crate) type Stretch = (u64, Kind);

/// Asks the kernel.
pub(crate) struct Kinds {
    pagemap: File,
    scan: bool,
    /// What the ioctl tells of a page.
    told: u64,
}

const PATH: &str = "/proc/self/pagemap";

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

/// `struct pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct ScanArgument {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
const IS_FILE: u64 = 1 << 2;
const IS_PRESENT: u64 = 1 << 3;
const IS_SWAPPED: u64 = 1 << 4;
const IS_PFNZERO: u64 = 1 << 5;
const IS_HUGE: u64 = 1 << 6;
/// From Linux 6.16 on.
const IS_GUARD: u64 = 1 << 8;
const TOLD: u64 = IS_FILE | IS_PRESENT | IS_SWAPPED | IS_PFNZERO | IS_HUGE;

/// Bits of an entry of `/proc/self/pagemap`.
const ENTRY_PRESENT: u64 = 1 << 63;
const ENTRY_SWAPPED: u64 = 1 << 62;
const ENTRY_FILE: u64 = 1 << 61;
const ENTRY_GUARD: u64 = 1 << 58;
const ENTRY_EXCLUSIVE: u64 = 1 << 56;

impl Kinds {
    /// Opens the kernel's view; with the ioctl if the kernel has it.
    pub fn open() -> Result<Kinds, MemoryError> {
        let error = |source| MemoryError::Proc { path: PATH, action: "open", source };
        let mut kinds = Kinds { pagemap: File::open(PATH).map_err(error)?, scan: false, told: TOLD };
        for told in [TOLD | IS_GUARD, TOLD] {
            kinds.told = told;
            kinds.scan = kinds.scan_once(0, PAGE as u64, &mut [PageRegion::default()]).is_ok();
            if kinds.scan {
                break;
            }
        }
        Ok(kinds)
    }

    /// Without the ioctl, as kernels before 6.7 are.
    #[cfg(test)]
    pub fn without_ioctl() -> Result<Kinds, MemoryError> {
        Ok(Kinds { scan: false, ..Kinds::open()? })
    }

    /// The kinds of all pages of a mapping, in order.
    pub fn of(&self, mapping: &Mapping) -> Result<Vec<Stretch>, MemoryError> {
        let read = |source| MemoryError::Proc { path: PATH, action: "read", source };
        let kinds = if self.scan { self.by_scan(mapping) } else { self.by_entries(mapping) }.map_err(read)?;
        if mapping.is_shared_memory() { shared(mapping, kinds).map_err(read) } else { Ok(kinds) }
    }

    fn scan_once(&self, start: u64, end: u64, out: &mut [PageRegion]) -> io::Result<(usize, u64)> {
        let mut argument = ScanArgument {
            size: size_of::<ScanArgument>() as u64,
            start,
            end,
            vec: out.as_mut_ptr() as u64,
            vec_len: out.len() as u64,
            category_anyof_mask: IS_PRESENT | IS_SWAPPED,
            return_mask: self.told,
            ..ScanArgument::default()
        };
        // SAFETY: the argument has the layout that the kernel defines and names `out`, which is as long as it says.
        let found = unsafe { libc::ioctl(self.pagemap.as_raw_fd(), PAGEMAP_SCAN as _, &raw mut argument) };
        if found < 0 { Err(io::Error::last_os_error()) } else { Ok((found as usize, argument.walk_end)) }
    }

    fn by_scan(&self, mapping: &Mapping) -> io::Result<Vec<Stretch>> {
        let mut found = [PageRegion::default(); 256];
        let (mut stretches, mut at, mut from) = (Vec::new(), mapping.start, mapping.start);
        while from < mapping.end {
            let (count, walk_end) = self.scan_once(from, mapping.end, &mut found)?;
            for region in &found[..count] {
                push(&mut stretches, (region.start - at) / PAGE as u64, Kind::Absent);
                let huge = region.categories & IS_HUGE != 0;
                let kind = match region.categories {
                    c if c & IS_GUARD != 0 => Kind::Absent,
                    c if c & IS_PFNZERO != 0 => Kind::Zero { huge },
                    c if c & IS_FILE != 0 => Kind::File,
                    _ => Kind::Own { huge },
                };
                push(&mut stretches, (region.end - region.start) / PAGE as u64, kind);
                at = region.end;
            }
            // Progress even if a kernel says that it went nowhere.
            from = if walk_end > from { walk_end } else { mapping.end };
        }
        push(&mut stretches, (mapping.end - at) / PAGE as u64, Kind::Absent);
        Ok(stretches)
    }

    /// Whether [`Kind::Zero`] of a page of 4 KB is certain.
    pub fn sure(&self) -> bool {
        self.scan
    }

    /// Whether the page at `address`, in memory that is no file's, belongs to this process alone.
    pub fn is_exclusive(&self, address: u64) -> Result<bool, MemoryError> {
        let mut entry = [0; 8];
        let read = self.pagemap.read_exact_at(&mut entry, address / PAGE as u64 * 8);
        read.map_err(|source| MemoryError::Proc { path: PATH, action: "read", source })?;
        let entry = u64::from_le_bytes(entry);
        Ok(entry & ENTRY_PRESENT == 0 || entry & (ENTRY_EXCLUSIVE | ENTRY_FILE) == ENTRY_EXCLUSIVE)
    }

    fn by_entries(&self, mapping: &Mapping) -> io::Result<Vec<Stretch>> {
        let mut stretches = Vec::new();
        let mut bytes = vec![0; 1 << 16];
        // How many pages in huge pages are still to be found: those that are full come first.
        let mut huge_left = mapping.huge / HUGE;
        let mut page = mapping.start / PAGE as u64;
        let end = mapping.end / PAGE as u64;
        while page < end {
            // Up to the next multiple of 8192 pages, so that no huge page is cut.
            let count = ((page / 8192 + 1) * 8192).min(end) - page;
            let bytes = &mut bytes[..count as usize * 8];
            self.pagemap.read_exact_at(bytes, page * 8)?;
            let (entries, _) = bytes.as_chunks::<8>();
            let anonymous = !mapping.is_file() && !mapping.flags.has(Flags::SHARED);
            let mut kinds: Vec<Kind> =
                entries.iter().map(|entry| kind(u64::from_le_bytes(*entry), anonymous)).collect();
            let skip = page.next_multiple_of(HUGE_PAGES) - page;
            for block in kinds.iter_mut().skip(skip as usize).collect::<Vec<_>>().chunks_exact_mut(HUGE_PAGES as usize)
            {
                if huge_left > 0 && block.iter().all(|kind| **kind == Kind::Own { huge: false }) {
                    huge_left -= 1;
                    block.iter_mut().for_each(|kind| **kind = Kind::Own { huge: true });
                }
            }
            kinds.into_iter().for_each(|kind| push(&mut stretches, 1, kind));
            page += count;
        }
        Ok(stretches)
    }
}

/// Shared memory may hold pages that only a child has touched: not in our tables, but resident.
fn shared(mapping: &Mapping, kinds: Vec<Stretch>) -> io::Result<Vec<Stretch>> {
    let length = (mapping.end - mapping.start) as usize;
    let mut resident = vec![0u8; length / PAGE];
    // SAFETY: asks about a mapping, with a byte for each of its pages.
    if unsafe { libc::mincore(mapping.start as *mut _, length, resident.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut all = Vec::new();
    let each = kinds.into_iter().flat_map(|(pages, kind)| (0..pages).map(move |_| kind));
    for (kind, resident) in each.zip(resident) {
        push(&mut all, 1, if kind == Kind::Absent && resident & 1 != 0 { Kind::File } else { kind });
    }
    Ok(all)
}

/// A page that is there, belongs to no file and is not exclusively ours is taken for the page of zeros; its content must be
/// looked at ([`Kinds::sure`]). A huge page of zeros looks like a file's, in memory that has none.
fn kind(entry: u64, anonymous: bool) -> Kind {
    match entry {
        e if e & (ENTRY_PRESENT | ENTRY_SWAPPED) == 0 || e & ENTRY_GUARD != 0 => Kind::Absent,
        e if e & ENTRY_SWAPPED != 0 => Kind::Own { huge: false },
        e if e & ENTRY_FILE != 0 && !anonymous => Kind::File,
        e if e & ENTRY_FILE == 0 && e & ENTRY_EXCLUSIVE != 0 => Kind::Own { huge: false },
        _ => Kind::Zero { huge: false },
    }
}

fn push(stretches: &mut Vec<Stretch>, pages: u64, kind: Kind) {
    match stretches.last_mut() {
        Some((count, last)) if *last == kind => *count += pages,
        _ if pages > 0 => stretches.push((pages, kind)),
        _ => {}
    }
}
