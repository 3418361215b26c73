//! Memory of every kind to test with: how it is made, and what can be seen of it.
use crate::memory::{self, HUGE, Mapping};
use crate::memory_kinds::{Kind, Kinds, Stretch};
use phasecast_image::{Flags, PAGE};
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The switch for huge pages belongs to the whole process: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

pub(super) fn alone() -> MutexGuard<'static, ()> {
    let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    huge_off(false);
    alone
}

/// Switches huge pages off, so that the kernel's daemon does not make any of small ones behind our back.
pub(super) fn huge_off(off: bool) {
    // SAFETY: sets a number.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, libc::c_ulong::from(off), 0, 0, 0) }, 0);
}

pub(super) const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;
pub(super) const ANON: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
pub(super) const PAGE64: u64 = PAGE as u64;

pub(super) fn map(at: u64, length: u64, protection: i32, flags: i32, file: Option<&File>) {
    let file = file.map_or(-1, |file| file.as_raw_fd());
    // SAFETY: a new mapping in a range that this test owns.
    let got = unsafe { libc::mmap(at as _, length as usize, protection, flags | libc::MAP_FIXED_NOREPLACE, file, 0) };
    assert_eq!(got as u64, at, "{}", std::io::Error::last_os_error());
}

pub(super) fn advise(at: u64, length: u64, advice: i32) {
    // SAFETY: a mark on a mapping of this test.
    assert_eq!(unsafe { libc::madvise(at as _, length as usize, advice) }, 0);
}

pub(super) fn protect(at: u64, length: u64, protection: i32) {
    // SAFETY: a mapping of this test.
    assert_eq!(unsafe { libc::mprotect(at as _, length as usize, protection) }, 0);
}

pub(super) fn unmap(range: &Range<u64>) {
    // SAFETY: the range is this test's.
    assert_eq!(unsafe { libc::munmap(range.start as _, (range.end - range.start) as usize) }, 0);
}

pub(super) fn write(at: u64, value: u8) {
    // SAFETY: in a mapping of this test.
    unsafe { (at as *mut u8).write_volatile(value) };
}

pub(super) fn read(at: u64) -> u8 {
    // SAFETY: in a mapping of this test.
    unsafe { (at as *const u8).read_volatile() }
}

/// Data that differs from page to page.
pub(super) fn scribble(at: u64, pages: u64) {
    for page in 0..pages {
        for byte in 0..200 {
            write(at + page * PAGE64 + byte * 17, (page * 31 + byte + 1) as u8 | 1);
        }
    }
}

/// Maps memory of every kind from `base` (a multiple of 2 MB) on; returns the range. Huge pages are off then.
pub(super) fn every_kind(base: u64) -> Range<u64> {
    // Huge pages: data in part, untouched, zero, the shared page of zeros.
    let at = base + 2 * HUGE;
    map(at, 5 * HUGE, RW, ANON, None);
    advise(at, 5 * HUGE, libc::MADV_HUGEPAGE);
    scribble(at + 100 * PAGE64, 7);
    write(at + 2 * HUGE, 0);
    assert_eq!(read(at + 3 * HUGE + 5), 0);
    scribble(at + 4 * HUGE, 512);
    huge_off(true);
    // Pages of 4 KB: written, written with zeros, read only, untouched; with no mark and refusing huge pages.
    for (number, mark) in [None, Some(libc::MADV_NOHUGEPAGE), Some(libc::MADV_DONTFORK)].into_iter().enumerate() {
        let at = base + number as u64 * 0x10_0000;
        map(at, 64 * PAGE64, RW, ANON, None);
        mark.inspect(|&mark| advise(at, 64 * PAGE64, mark));
        scribble(at, 10);
        (10..20).for_each(|page| write(at + page * PAGE64, 0));
        (20..30).for_each(|page| assert_eq!(read(at + page * PAGE64), 0));
        scribble(at + 40 * PAGE64, 1);
    }
    // Small pages where huge ones are asked for.
    let at = base + 8 * HUGE;
    map(at, 2 * HUGE, RW, ANON, None);
    scribble(at, 3);
    scribble(at + HUGE + 5 * PAGE64, 3);
    advise(at, 2 * HUGE, libc::MADV_HUGEPAGE);
    // No access: never touched, and with data.
    let at = base + 11 * HUGE;
    map(at, 300 * HUGE, libc::PROT_NONE, ANON | libc::MAP_NORESERVE, None);
    let at = base + 312 * HUGE;
    map(at, 8 * PAGE64, RW, ANON, None);
    scribble(at + PAGE64, 2);
    protect(at, 8 * PAGE64, libc::PROT_NONE);
    // A file of three and a half pages, read only, and changed in memory; the end of the mapping lies behind the file's.
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&(0..3 * PAGE + 2048).map(|n| (n / 7) as u8).collect::<Vec<_>>()).unwrap();
    map(at + 0x10_0000, 6 * PAGE64, libc::PROT_READ, libc::MAP_PRIVATE, Some(&file));
    assert_eq!(read(at + 0x10_0000 + 70), 10);
    map(at + 0x11_0000, 6 * PAGE64, RW, libc::MAP_PRIVATE, Some(&file));
    write(at + 0x11_0000 + PAGE64, 99);
    map(at + 0x12_0000, 2 * PAGE64, libc::PROT_READ, libc::MAP_SHARED, Some(&file));
    // Code; memory that children share.
    map(at + 0x13_0000, 4 * PAGE64, RW, ANON, None);
    scribble(at + 0x13_0000, 4);
    protect(at + 0x13_0000, 4 * PAGE64, libc::PROT_READ | libc::PROT_EXEC);
    map(at + 0x14_0000, 4 * PAGE64, RW, libc::MAP_SHARED | libc::MAP_ANONYMOUS, None);
    scribble(at + 0x14_0000 + PAGE64, 1);
    base..base + 320 * HUGE
}

/// What can be seen of a mapping.
#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) place: (u64, u64),
    pub(super) protection: u8,
    pub(super) flags: u16,
    pub(super) huge: u64,
    pub(super) kinds: Vec<Stretch>,
    /// The bytes of each page that is there.
    pub(super) content: Vec<(u64, Vec<u8>)>,
}

pub(super) fn look(range: &Range<u64>, kinds: &Kinds) -> Vec<Seen> {
    let mem = File::open("/proc/self/mem").unwrap();
    let see = |mapping: Mapping| {
        let found = kinds.of(&mapping).unwrap();
        let (mut content, mut at) = (Vec::new(), mapping.start);
        for &(pages, kind) in &found {
            for _ in 0..pages {
                let mut page = vec![0; PAGE];
                if !matches!(kind, Kind::Absent | Kind::Zero { .. }) {
                    mem.read_exact_at(&mut page, at).unwrap();
                    content.push((at, page));
                }
                at += PAGE64;
            }
        }
        Seen {
            place: (mapping.start, mapping.end),
            protection: mapping.protection.0,
            flags: mapping.flags.0,
            huge: mapping.huge,
            kinds: found,
            content,
        }
    };
    memory::mappings(std::slice::from_ref(range)).unwrap().into_iter().map(see).collect()
}

/// What a restore makes of it: files become memory of their own, all of it present up to the file's end.
pub(super) fn as_restored(mut seen: Vec<Seen>, base: u64) -> Vec<Seen> {
    for seen in &mut seen {
        let from_file = [0x10_0000, 0x11_0000, 0x12_0000].map(|at| base + 312 * HUGE + at).contains(&seen.place.0);
        if from_file {
            seen.flags &= !Flags::SHARED;
            let pages = (seen.place.1 - seen.place.0) / PAGE64;
            let inside = pages.min(4);
            seen.kinds = vec![(inside, Kind::Own { huge: false })];
            seen.kinds.extend((pages > inside).then_some((pages - inside, Kind::Absent)));
            let mut content: Vec<(u64, Vec<u8>)> = (0..inside)
                .map(|page| {
                    let byte = |n: usize| if n < 3 * PAGE + 2048 { (n / 7) as u8 } else { 0 };
                    let first = page as usize * PAGE;
                    (seen.place.0 + page * PAGE64, (first..first + PAGE).map(byte).collect())
                })
                .collect();
            if seen.protection & 2 != 0 {
                content[1].1[0] = 99;
            }
            seen.content = content;
        }
    }
    seen
}

/// Fills one block of 2 MB in one of several ways; huge pages are to be on for some.
pub(super) fn block(at: u64, way: u8) {
    let marked = |mark| {
        map(at, HUGE, RW, ANON, None);
        advise(at, HUGE, mark);
    };
    huge_off(!(1..=3).contains(&way));
    match way {
        0 => {}
        1..=3 => {
            marked(libc::MADV_HUGEPAGE);
            match way {
                1 => scribble(at + 40 * PAGE64, 300),
                2 => write(at + 5, 0),
                _ => assert_eq!(read(at), 0),
            }
        }
        4 => {
            marked(libc::MADV_HUGEPAGE);
            scribble(at + 3 * PAGE64, 200);
        }
        5..=7 => {
            map(at, HUGE, RW, ANON, None);
            scribble(at + u64::from(way) * 10 * PAGE64, 400);
            (0..20).for_each(|page| write(at + page * PAGE64, 0));
            (20..30).for_each(|page| assert_eq!(read(at + page * PAGE64), 0));
        }
        8 => {
            marked(libc::MADV_NOHUGEPAGE);
            scribble(at, 512);
        }
        9 => {
            map(at, HUGE, RW, ANON, None);
            scribble(at + PAGE64, 511);
            protect(at, HUGE, libc::PROT_NONE);
        }
        _ => map(at, HUGE / 2, RW, ANON | libc::MAP_NORESERVE, None),
    }
}
