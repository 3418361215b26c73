//! Memory of every kind, saved, unmapped and restored: the same bytes, kinds of pages, marks and protections.
mod kinds;

use crate::memory::{self, HUGE};
use crate::memory_kinds::Kinds;
use crate::restore_over::Remains;
use crate::{dump, restore};
use kinds::{
    ANON, PAGE64, RW, Seen, alone, as_restored, block, every_kind, huge_off, look, map, read, scribble, unmap, write,
};
use phasecast_image::{Content, Flags, Images, PAGE, Region, State, Store, pack_file};
use phasecast_process::space::gaps;
use phasecast_trace::codec;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use tempfile::TempDir;

fn state() -> State {
    State { rank: 0, size: 1, cut: 1, program: "test".into(), ..State::default() }
}

/// An empty set of images of one rank, in a folder that goes with it.
fn store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path(), 0).unwrap();
    (folder, store)
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
    let (folder, mut store) = store();
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
    let (_folder, mut store) = store();
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
        let (folder, mut store) = store();
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
    let (folder, mut store) = store();
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
fn what_others_may_see_is_told_from_what_is_alone() {
    let _alone = alone();
    let base = 0x2003_4000_0000;
    let at = |page: u64| base + page * PAGE64;
    let (mut named, mut gone) = (tempfile::NamedTempFile::new().unwrap(), tempfile::tempfile().unwrap());
    named.write_all(&[1; 5000]).unwrap();
    gone.write_all(&[2; 5000]).unwrap();
    map(at(0), 2 * PAGE64, RW, libc::MAP_SHARED, Some(named.as_file()));
    map(at(3), PAGE64, RW, libc::MAP_SHARED, Some(&gone));
    map(at(5), PAGE64, libc::PROT_READ, libc::MAP_SHARED, Some(named.as_file()));
    map(at(7), 2 * PAGE64, RW, libc::MAP_SHARED | libc::MAP_ANONYMOUS, None);
    map(at(10), 2 * PAGE64, RW, libc::MAP_SHARED | libc::MAP_ANONYMOUS, None);
    // SAFETY: shows memory that is mapped at a free place, too.
    let twice = unsafe { libc::mremap(at(10) as *mut _, 0, PAGE, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, at(13)) };
    assert_eq!(twice as u64, at(13));
    let (_folder, mut store) = store();
    let mut state = state();
    let range = base..at(14);
    let kinds = Kinds::open().unwrap();
    let saved = dump::memory_in(std::slice::from_ref(&range), kinds, &mut store, &mut state, &[]);
    unmap(&range);
    saved.unwrap();
    let shared = |region: &Region| {
        let shared = region.backing.as_ref().and_then(|backing| backing.shared.clone());
        (region.start, region.flags.has(Flags::SHARED), shared.map(|shared| (shared.named, shared.size)))
    };
    let page = PAGE64;
    let expected = [
        (at(0), true, Some((true, 5000))),
        (at(3), true, Some((false, page))),
        (at(5), false, None),
        (at(7), true, None),
        (at(10), true, Some((false, 2 * page))),
        (at(13), true, Some((false, 2 * page))),
    ];
    assert_eq!(state.regions.iter().map(shared).collect::<Vec<_>>(), expected);
}

#[test]
fn of_memory_that_ranks_share_only_the_own_part_is_saved() {
    let _alone = alone();
    let start = 0x2004_4000_0000;
    let (whole, own) = (start..start + 8 * PAGE64, start + 2 * PAGE64..start + 5 * PAGE64);
    let mut file = tempfile::tempfile().unwrap();
    (1..=8).for_each(|page| file.write_all(&[page; PAGE]).unwrap());
    map(start, 8 * PAGE64, RW, libc::MAP_SHARED, Some(&file));
    let (folder, mut store) = store();
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
    let (folder, mut store) = store();
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

/// As an image says so of memory.
fn touched_in_turn(state: &mut State, memory: Range<u64>) {
    state.sections.insert("interleaved".into(), codec::to_bytes(&vec![memory]));
}

#[test]
fn memory_that_was_touched_in_turn_with_other_does_not_lie_side_by_side() {
    let _alone = alone();
    huge_off(true);
    let base = 0x2008_4000_0000;
    let range = base..base + 4 * HUGE;
    map(base, 4 * HUGE, RW, ANON, None);
    scribble(base, 700);
    (700..1700).for_each(|page| write(base + page * PAGE64, 0));
    let kinds = Kinds::open().unwrap();
    let before = look(&range, &kinds);
    let (folder, mut store) = store();
    let (mut state, _) = save(&range, Kinds::open().unwrap(), &mut store, 1);
    unmap(&range);
    let images = Images::open(folder.path()).unwrap();
    touched_in_turn(&mut state, base + HUGE..base + 3 * HUGE);
    restore::memory(&images, &state, Remains::default()).unwrap();
    assert_same(look(&range, &kinds), &before);
    let mut entries = vec![0; 4 * HUGE as usize / PAGE * 8];
    File::open("/proc/self/pagemap").unwrap().read_exact_at(&mut entries, base / PAGE64 * 8).unwrap();
    unmap(&range);
    // Where the pages stand in the machine's memory: 0 for who may not know.
    let (entries, _) = entries.as_chunks::<8>();
    let frames: Vec<u64> = entries.iter().map(|entry| u64::from_ne_bytes(*entry) & ((1 << 55) - 1)).collect();
    let beside = frames[512..1536].windows(2).filter(|pair| pair[0] != 0 && pair[1] == pair[0] + 1).count();
    assert!(beside < 100, "{beside} of 1023 pages lie beside the one before");

    let backwards = codec::to_bytes(&vec![base + HUGE..base + 2 * HUGE, base..base + HUGE]);
    for damaged in [vec![0xff; 3], backwards] {
        state.sections.insert("interleaved".into(), damaged);
        let error = restore::memory(&images, &state, Remains::default()).unwrap_err().to_string();
        assert!(error.contains("section interleaved"), "{error}");
    }
    assert!(memory::mappings(std::slice::from_ref(&range)).unwrap().is_empty());
}

/// Saves two memories of six blocks (each with its way at the first cut, at the second, and whether the first serves both) and
/// restores the second over the first; `in_turn`: as if all of it had been touched in turn with other memory.
fn over_another(ways: &[(u8, u8, bool)], in_turn: bool) {
    let _alone = alone();
    let base = 0x2006_4000_0000;
    let range = base..base + 6 * HUGE;
    // What a case that failed has left.
    unmap(&range);
    let (folder, mut store) = store();
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
    let mut state = images.state(2, 0).unwrap();
    if in_turn {
        touched_in_turn(&mut state, range.clone());
    }
    let kept = restore::memory(&images, &state, remains).unwrap().kept;
    assert_same(look(&range, &kinds), &expected);
    unmap(&range);
    if ways.iter().all(|(first, _, same)| *same && (4..9).contains(first)) {
        assert_eq!(kept, 6 * HUGE);
    }
}

/// The gap in front of the last block lies between two mappings that the kernel would join it to.
#[test]
fn what_is_mapped_beside_what_stayed_is_one_with_it() {
    over_another(&[(5, 0, true), (9, 0, true), (0, 5, false), (5, 0, true), (0, 0, true), (0, 0, true)], false);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    /// Restored over any other memory, a memory is what it is when restored into none.
    #[test]
    fn restored_over_another_a_memory_is_what_it_was(
        ways in proptest::collection::vec((0u8..11, 0u8..11, proptest::bool::weighted(0.5)), 6),
        in_turn in proptest::bool::ANY,
    ) {
        over_another(&ways, in_turn);
    }
}
