//! A group of three counters of the calling thread: opened, mapped and read.
use super::Reading;
use super::page::{self, Page};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

/// `struct perf_event_attr` in its first form, which every kernel takes (`PERF_ATTR_SIZE_VER0`).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

/// `disabled`: until the group is complete.
const STANDS_STILL: u64 = 1;
/// `exclude_kernel` and `exclude_hv`: what an unprivileged user may count, and what a program itself does.
const USER_ONLY: u64 = 1 << 5 | 1 << 6;
/// `PERF_FORMAT_TOTAL_TIME_ENABLED`, `PERF_FORMAT_TOTAL_TIME_RUNNING` and `PERF_FORMAT_GROUP`.
const FORMAT: u64 = 1 | 2 | 8;
const CLOSE_ON_EXEC: u64 = 8;
/// `PERF_EVENT_IOC_ENABLE`, and that it is about the whole group.
const ENABLE: u64 = 0x2400;
const WHOLE_GROUP: u64 = 1;
/// From where on descriptors are looked for: a program that closes those that it does not know, and then gets their
/// numbers for files of its own, is not to have them read by us.
const HIGH: libc::c_int = 400;

/// Three counters that run together.
pub struct Group {
    /// The first leads the others.
    files: [OwnedFd; 3],
    /// Their pages, if all of them could be mapped.
    pages: Option<[Mapped; 3]>,
}

impl Group {
    /// Opens counters of these types and numbers for the calling thread; they run from now on.
    ///
    /// # Errors
    /// If the machine or the kernel has or allows no such counter.
    pub fn open(events: &[(u32, u64); 3]) -> io::Result<Group> {
        let first = open(events[0], -1)?;
        let lead = first.as_raw_fd();
        let files = [first, open(events[1], lead)?, open(events[2], lead)?];
        // A counter that is added to a group which runs already may stand still until the thread is switched off once.
        // SAFETY: a request to the file of a counter, with a number.
        if unsafe { libc::ioctl(lead, ENABLE, WHOLE_GROUP) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let mapped: Option<Vec<Mapped>> = files.iter().map(Mapped::new).collect();
        Ok(Group { files, pages: mapped.and_then(|pages| pages.try_into().ok()) })
    }

    /// What they have counted.
    #[inline]
    pub fn read(&self) -> Option<Reading> {
        self.read_here().or_else(|| self.ask())
    }

    /// Without the kernel, where that can be: all three are on the processor, and always were, so that the times for which
    /// they were wanted and ran are the same. (What the kernel would say of those times, their pages know only as of the
    /// last time that the group was put on the processor.)
    fn read_here(&self) -> Option<Reading> {
        let pages = self.pages.as_ref()?;
        let mut values = [0; 3];
        for (value, page) in values.iter_mut().zip(pages) {
            *value = page::read(page.page(), page::rdpmc)?;
        }
        Some(Reading { values, lost: 0, wanted: None })
    }

    /// By read(2).
    fn ask(&self) -> Option<Reading> {
        let mut words = [0u64; 6];
        // SAFETY: a buffer of as many bytes as are said.
        let read = unsafe { libc::read(self.files[0].as_raw_fd(), words.as_mut_ptr().cast(), size_of_val(&words)) };
        let [3, enabled, running, values @ ..] = words else { return None };
        let reading = Reading { values, lost: enabled.saturating_sub(running), wanted: Some(enabled) };
        (read == size_of_val(&words) as isize).then_some(reading)
    }
}

fn open((kind, config): (u32, u64), lead: i32) -> io::Result<OwnedFd> {
    let size = size_of::<Attributes>() as u32;
    let flags = USER_ONLY | if lead < 0 { STANDS_STILL } else { 0 };
    let attributes = Attributes { kind, size, config, read_format: FORMAT, flags, ..Attributes::default() };
    // SAFETY: attributes of the size that they say; this thread (0) on any processor (-1).
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, lead, CLOSE_ON_EXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a file that was just opened, and is ours alone.
    let file = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    // SAFETY: a second descriptor of it; where there is none so high, it stays with the first.
    let high = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, HIGH) };
    // SAFETY: as above.
    Ok(if high < 0 { file } else { unsafe { OwnedFd::from_raw_fd(high) } })
}

/// The page of a counter.
struct Mapped(NonNull<Page>);

impl Mapped {
    fn new(file: &OwnedFd) -> Option<Mapped> {
        // SAFETY: the first page of a counter's file, which the kernel keeps up to date, only to be read.
        let at = unsafe {
            libc::mmap(ptr::null_mut(), page::LENGTH, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED { None } else { NonNull::new(at.cast()).map(Mapped) }
    }

    fn page(&self) -> &Page {
        // SAFETY: mapped as long as `self` lives; all its fields are atomic.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nobody refers to it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), page::LENGTH) };
    }
}
