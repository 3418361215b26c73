//! Memory of every kind, saved, unmapped and restored: the same bytes, kinds of pages, marks and protections.
use crate::memory::{self, HUGE, Mapping};
use crate::memory_kinds::{Kind, Kinds, Stretch};
use crate::restore_over::Remains;
use crate::{dump, restore};
use phasecast_image::{Content, Flags, Images, PAGE, State, Store, pack_file};
use phasecast_process::space::gaps;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The switch for huge pages belongs to the whole process: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    huge_off(false);
    alone
}

/// Switches huge pages off, so that the kernel's daemon does not make any of small ones behind our back.
fn huge_off(off: bool) {
    // SAFETY: sets a number.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, libc::c_ulong::from(off), 0, 0, 0) }, 0);
}

const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;
const ANON: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
const PAGE64: u64 = PAGE as u64;

fn map(at: u64, length: u64, protection: i32, flags: i32, file: Option<&File>) {
    let file = file.map_or(-1, |file| file.as_raw_fd());
    // SAFETY: a new mapping in a range that this test owns.
    let got = unsafe { libc::mmap(at as _, length as usize, protection, flags | libc::MAP_FIXED_NOREPLACE, file, 0) };
    assert_eq!(got as u64, at, "{}", std::io::Error::last_os_error());
}

fn advise(at: u64, length: u64, advice: i32) {
    // SAFETY: a mark on a mapping of this test.
    assert_eq!(unsafe { libc::madvise(at as _, length as usize, advice) }, 0);
}

fn protect(at: u64, length: u64, protection: i32) {
    // SAFETY: a mapping of this test.
    assert_eq!(unsafe { libc::mprotect(at as _, length as usize, protection) }, 0);
}

fn unmap(range: &Range<u64>) {
    // SAFETY: the range is this test's.
    assert_eq!(unsafe { libc::munmap(range.start as _, (range.end - range.start) as usize) }, 0);
}

fn write(at: u64, value: u8) {
    // SAFETY: in a mapping of this test.
    unsafe { (at as *mut u8).write_volatile(value) };
}

fn read(at: u64) -> u8 {
    // SAFETY: in a mapping of this test.
    unsafe { (at as *const u8).read_volatile() }
}

/// Data that differs from page to page.
fn scribble(at: u64, pages: u64) {
    for page in 0..pages {
        for byte in 0..200 {
            write(at + page * PAGE64 + byte * 17, (page * 31 + byte + 1) as u8 | 1);
        }
    }
}

/// Maps memory of every kind from `base` (a multiple of 2 MB) on; returns the range. Huge pages are off then.
fn every_kind(base: u64) -> Range<u64> {
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
struct Seen {
    place: (u64, u64),
    protection: u8,
    flags: u16,
    huge: u64,
    kinds: Vec<Stretch>,
    /// The bytes of each page that is there.
    content: Vec<(u64, Vec<u8>)>,
}

fn look(range: &Range<u64>, kinds: &Kinds) -> Vec<Seen> {
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
fn as_restored(mut seen: Vec<Seen>, base: u64) -> Vec<Seen> {
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

fn state() -> State {
    State { rank: 0, size: 1, cut: 1, program: "test".into(), ..State::default() }
}

fn save(range: &Range<u64>, kinds: Kinds, store: &mut Store, cut: u32) -> (State, dump::DumpStats) {
    let mut state = State { cut, ..state() };
    let stats = dump::memory_in(std::slice::from_ref(range), kinds, store, &mut state, &[]).unwrap();
    store.save(&state).unwrap();
    (state, stats)
}

fn assert_same(found: Vec<Seen>, expected: &[Seen]) {
    let places = |all: &[Seen]| all.iter().map(|seen| seen.place).collect::<Vec<_>>();
    assert_eq!(places(&found), places(expected));
    for (found, expected) in found.iter().zip(expected) {
        let about = |seen: &Seen| (seen.place, seen.protection, seen.flags, seen.huge, seen.kinds.clone());
        assert_eq!(about(found), about(expected));
        assert!(found.content == expected.content, "the bytes at {:#x} differ", found.place.0);
    }
}

#[test]
fn every_kind_of_memory_comes_back_as_it_was() {
    let _alone = alone();
    let base = 0x2000_4000_0000;
    let range = every_kind(base);
    let kinds = Kinds::open().unwrap();
    let before = look(&range, &kinds);
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path(), 0).unwrap();
    let (first, stats) = save(&range, Kinds::open().unwrap(), &mut store, 1);
    assert!(stats.fresh > 0 && stats.fresh <= stats.data && stats.zero > HUGE);
    // Looking and saving changed nothing, but that files were read.
    let expected = as_restored(before, base);
    unmap(&range);

    let images = Images::open(folder.path()).unwrap();
    let state = images.state(1, 0).unwrap();
    assert_eq!(state, first);
    let stats = restore::memory(&images, &state, Remains::default()).unwrap();
    assert_eq!(stats.huge_refused, 0);
    assert_eq!(stats.huge, 4 * HUGE);
    assert_same(look(&range, &kinds), &expected);

    // A second cut finds the same memory in the store; a third only what has changed.
    let (_, stats) = save(&range, Kinds::open().unwrap(), &mut store, 2);
    assert_eq!(stats.fresh, 0);
    write(base + 3 * PAGE64 + 1, 201);
    let (_, stats) = save(&range, Kinds::open().unwrap(), &mut store, 3);
    assert_eq!(stats.fresh, PAGE64);
    unmap(&range);

    let packed = folder.path().join("set.phc");
    pack_file(folder.path(), &packed).unwrap();
    let images = Images::open(&packed).unwrap();
    images.verify().unwrap();
    for cut in [3, 1] {
        restore::memory(&images, &images.state(cut, 0).unwrap(), Remains::default()).unwrap();
        let mut found = look(&range, &kinds);
        if cut == 3 {
            assert_eq!(found[0].content[3].1[1], 201);
            found[0].content[3].1[1] = expected[0].content[3].1[1];
        }
        assert_same(found, &expected);
        unmap(&range);
    }
}

#[test]
fn kernels_without_the_ioctl_are_served_by_the_older_files() {
    let _alone = alone();
    let range = every_kind(0x2001_4000_0000);
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path(), 0).unwrap();
    let (by_scan, _) = save(&range, Kinds::open().unwrap(), &mut store, 1);
    let (by_files, _) = save(&range, Kinds::without_ioctl().unwrap(), &mut store, 2);
    unmap(&range);
    for (mut a, mut b) in by_scan.regions.into_iter().zip(by_files.regions) {
        // The older files do not tell a huge page of zeros that all share from small ones.
        let no_matter = |run: &mut phasecast_image::Run| run.huge &= run.content != Content::SharedZero;
        a.runs.iter_mut().chain(&mut b.runs).for_each(no_matter);
        assert_eq!(a, b);
    }
}

/// As C libraries from 2.42 on put at the ends of threads' stacks.
#[test]
fn a_guard_within_memory_comes_back_as_memory_that_was_not_touched() {
    let _alone = alone();
    huge_off(true);
    let base = 0x2007_4000_0000;
    let range = base..base + 8 * PAGE64;
    map(base, 8 * PAGE64, RW, ANON, None);
    scribble(base, 8);
    // MADV_GUARD_INSTALL, from Linux 6.13 on.
    // SAFETY: a mark on a mapping of this test.
    if unsafe { libc::madvise((base + PAGE64) as _, PAGE, 102) } != 0 {
        unmap(&range);
        return;
    }
    for kinds in [Kinds::open, Kinds::without_ioctl] {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::create(folder.path(), 0).unwrap();
        let (state, stats) = save(&range, kinds().unwrap(), &mut store, 1);
        assert_eq!(stats.data, 7 * PAGE64);
        let expected = [0, 2, 7].map(|page| read(base + page * PAGE64));
        unmap(&range);
        let images = Images::open(folder.path()).unwrap();
        restore::memory(&images, &state, Remains::default()).unwrap();
        assert_eq!([0, 2, 7].map(|page| read(base + page * PAGE64)), expected);
        assert_eq!(read(base + PAGE64), 0);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::madvise((base + PAGE64) as _, PAGE, 102) }, 0);
    }
    unmap(&range);
}

#[test]
fn a_place_that_is_taken_is_refused_and_nothing_is_left() {
    let _alone = alone();
    let base = 0x2002_4000_0000;
    let range = every_kind(base);
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path(), 0).unwrap();
    let (state, _) = save(&range, Kinds::open().unwrap(), &mut store, 1);
    unmap(&range);
    map(base + 312 * HUGE + PAGE64, PAGE64, libc::PROT_NONE, ANON, None);
    let images = Images::open(folder.path()).unwrap();
    let error = restore::memory(&images, &state, Remains::default()).unwrap_err();
    assert!(matches!(error, memory::MemoryError::Taken { .. }), "{error}");
    assert_eq!(memory::mappings(std::slice::from_ref(&range)).unwrap().len(), 1);
    unmap(&range);
    // So is an image whose pages have changed.
    let path = folder.path().join("rank-00000.store");
    let file = File::options().read(true).write(true).open(path).unwrap();
    file.write_all_at(&[1, 2, 3], (1 << 20) + 4 * PAGE64 + 7).unwrap();
    let error = restore::memory(&images, &state, Remains::default()).unwrap_err().to_string();
    assert!(error.contains("page 4 has another content"), "{error}");
    assert!(memory::mappings(std::slice::from_ref(&range)).unwrap().is_empty());
}

#[test]
fn memory_shared_for_writing_is_refused() {
    let _alone = alone();
    let range = 0x2003_4000_0000..0x2003_4000_0000 + PAGE64;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[1; PAGE]).unwrap();
    map(range.start, PAGE64, RW, libc::MAP_SHARED, Some(&file));
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path(), 0).unwrap();
    let saved = dump::memory_in(std::slice::from_ref(&range), Kinds::open().unwrap(), &mut store, &mut state(), &[]);
    unmap(&range);
    assert!(matches!(saved, Err(memory::MemoryError::Shared { .. })), "{saved:?}");
}

#[test]
fn of_memory_that_ranks_share_only_the_own_part_is_saved() {
    let _alone = alone();
    let start = 0x2004_4000_0000;
    let (whole, own) = (start..start + 8 * PAGE64, start + 2 * PAGE64..start + 5 * PAGE64);
    let mut file = tempfile::tempfile().unwrap();
    (1..=8).for_each(|page| file.write_all(&[page; PAGE]).unwrap());
    map(start, 8 * PAGE64, RW, libc::MAP_SHARED, Some(&file));
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path(), 0).unwrap();
    let as_usize = |range: &Range<u64>| range.start as usize..range.end as usize;
    let shared = [(as_usize(&whole), as_usize(&own))];
    let mut state = state();
    let kinds = Kinds::open().unwrap();
    let saved = dump::memory_in(std::slice::from_ref(&whole), kinds, &mut store, &mut state, &shared);
    store.save(&state).unwrap();
    unmap(&whole);
    assert_eq!(saved.unwrap().data, 3 * PAGE64);
    assert!(state.regions[0].flags.has(Flags::SHARED) && state.regions[0].backing.is_none());
    let images = Images::open(folder.path()).unwrap();
    restore::memory(&images, &state, Remains::default()).unwrap();
    // SAFETY: memory that was just mapped.
    let pages = unsafe { std::slice::from_raw_parts(start as *const u8, 8 * PAGE) };
    let first: Vec<u8> = pages.chunks(PAGE).map(|page| page[0]).collect();
    unmap(&whole);
    assert_eq!(first, [0, 0, 3, 4, 5, 0, 0, 0]);
}

#[test]
fn what_a_child_left_in_shared_memory_is_saved() {
    let _alone = alone();
    let range = 0x2005_4000_0000..0x2005_4000_0000 + 8 * PAGE64;
    map(range.start, 8 * PAGE64, RW, libc::MAP_SHARED | libc::MAP_ANONYMOUS, None);
    // SAFETY: the child writes one byte and ends.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            *((range.start + 3 * PAGE64) as *mut u8) = 42;
            libc::_exit(0);
        }
        assert_eq!(libc::waitpid(child, std::ptr::null_mut(), 0), child);
    }
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path(), 0).unwrap();
    let (state, stats) = save(&range, Kinds::open().unwrap(), &mut store, 1);
    unmap(&range);
    assert_eq!((stats.data, state.regions[0].runs.len()), (PAGE64, 3));
    restore::memory(&Images::open(folder.path()).unwrap(), &state, Remains::default()).unwrap();
    assert_eq!((read(range.start), read(range.start + 3 * PAGE64)), (0, 42));
    unmap(&range);
}

/// A dump may run on the program's own stack, which changes while it is saved.
#[test]
fn a_dump_on_the_stack_that_is_saved_is_sound() {
    let _alone = alone();
    let range = 0x2004_4000_0000..0x2004_4000_0000 + 256 * PAGE64;
    map(range.start, 256 * PAGE64, RW, ANON | libc::MAP_NORESERVE, None);
    scribble(range.start, 3);
    extern "C" fn on_that_stack(argument: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: the caller passes this and waits.
        let (range, folder) = unsafe { &*(argument as *const (Range<u64>, tempfile::TempDir)) };
        let mut store = Store::create(folder.path(), 0).unwrap();
        let here = 0u8;
        assert!(range.contains(&((&raw const here) as u64)));
        save(range, Kinds::open().unwrap(), &mut store, 1);
        std::ptr::null_mut()
    }
    let given = (range.clone(), tempfile::tempdir().unwrap());
    // SAFETY: a thread on a stack of this test, joined before the stack goes.
    unsafe {
        let (mut attributes, mut thread) = (std::mem::zeroed(), 0);
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setstack(&mut attributes, range.start as _, 256 * PAGE);
        let started = libc::pthread_create(&mut thread, &attributes, on_that_stack, (&raw const given) as _);
        assert_eq!(started, 0);
        libc::pthread_join(thread, std::ptr::null_mut());
    }
    unmap(&range);
    let images = Images::open(given.1.path()).unwrap();
    images.verify().unwrap();
    restore::memory(&images, &images.state(1, 0).unwrap(), Remains::default()).unwrap();
    assert_eq!(read(range.start), 1);
    unmap(&range);
}

/// Fills one block of 2 MB in one of several ways; huge pages are to be on for some.
fn block(at: u64, way: u8) {
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

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    /// Restored over any other memory, a memory is what it is when restored into none.
    #[test]
    fn restored_over_another_a_memory_is_what_it_was(
        ways in proptest::collection::vec((0u8..11, 0u8..11, proptest::bool::weighted(0.5)), 6),
    ) {
        let _alone = alone();
        let base = 0x2006_4000_0000;
        let range = base..base + 6 * HUGE;
        // What a case that failed has left.
        unmap(&range);
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::create(folder.path(), 0).unwrap();
        let kinds = Kinds::open().unwrap();
        let mut expected = Vec::new();
        for cut in [1, 2] {
            for (place, &(first, second, same)) in ways.iter().enumerate() {
                block(base + place as u64 * HUGE, if same || cut == 1 { first } else { second });
            }
            huge_off(true);
            expected = look(&range, &kinds);
            save(&range, Kinds::open().unwrap(), &mut store, cut);
            unmap(&range);
        }
        let images = Images::open(folder.path()).unwrap();
        restore::memory(&images, &images.state(1, 0).unwrap(), Remains::default()).unwrap();
        let remains = Remains::among(vec![range.clone()]);
        gaps(range.clone(), remains.ranges()).for_each(|gap| unmap(&gap));
        let kept = restore::memory(&images, &images.state(2, 0).unwrap(), remains).unwrap().kept;
        assert_same(look(&range, &kinds), &expected);
        unmap(&range);
        if ways.iter().all(|(first, _, same)| *same && (4..9).contains(first)) {
            assert_eq!(kept, 6 * HUGE);
        }
    }
}
