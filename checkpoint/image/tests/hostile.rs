//! Bad images are read or refused: they never panic a reader, hang it, or make it allocate without bound. Checksums are put
//! right after a change, so that what lies behind them is reached.
mod common;
#[path = "../../../trace/tests/common/mutation.rs"]
mod mutation;
use common::{set, state};
use mutation::{edits, mutate};
use phasecast_image::packed::{Block, Directory, HEAD, RankPages, StateEntry, TRAILER};
use phasecast_image::{Content, ImageError, Images, PAGE, Piece, Run, State, Store, pack_file};
use phasecast_trace::codec;
use phasecast_trace::container::Container;
use phasecast_trace::frame::{Frame, HEAD as FRAME_HEAD, Kind};
use proptest::prelude::*;
use proptest::sample::Index;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Reads all there is. What is refused is refused as bad input.
fn read_all(path: &Path) {
    let check = |result: Result<(), ImageError>| {
        if let Err(error) = result {
            assert!(error.is_input(), "{error}");
        }
    };
    let images = match Images::open(path) {
        Ok(images) => images,
        Err(error) => return check(Err(error)),
    };
    check(images.verify().map(|_| ()));
    check(images.complete().map(|_| ()));
    for (cut, rank) in images.list().unwrap() {
        let Ok(state) = images.state(cut, rank).map_err(|error| check(Err(error))) else { continue };
        let (mut out, mut first) = (vec![0; 40 * PAGE], 0);
        for run in state.regions.iter().flat_map(|region| &region.runs) {
            if let Content::Data(page) = run.content {
                let pages = (run.pages as usize).min(40);
                let end = state.hashes.len().min(first + pages);
                let piece = Piece { page, hashes: &state.hashes[first.min(end)..end], out: &mut out[..pages * PAGE] };
                check(images.fetch(rank, vec![piece]));
                first += run.pages as usize;
            }
        }
    }
}

/// A small set: one rank, one cut.
fn small(folder: &Path) -> State {
    let mut store = Store::create(folder, 0).unwrap();
    let made = state(&mut store, 0, 0, 1, &(0..70).collect::<Vec<_>>());
    store.save(&made).unwrap();
    made
}

/// Packs a set, takes its directory out, changes it and puts it back with checksums that fit.
fn with_directory(folder: &Path, change: impl FnOnce(&mut Directory, &mut [u8; TRAILER])) {
    let path = folder.join("packed");
    pack_file(folder, &path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let mut trailer: [u8; TRAILER] = *bytes.last_chunk().unwrap();
    let place = u64::from_le_bytes(trailer[24..32].try_into().unwrap()) as usize;
    let frame = Frame::parse(bytes[place..].first_chunk::<FRAME_HEAD>().unwrap()).unwrap();
    let payload = frame.open(bytes[place + FRAME_HEAD..bytes.len() - TRAILER].to_vec()).unwrap();
    let mut directory: Directory = codec::from_bytes(&payload).unwrap();
    let mut out = bytes[..place].to_vec();
    let before = directory.clone();
    change(&mut directory, &mut trailer);
    out.extend(Frame::new(Kind::Section).with_payload(&codec::to_bytes(&directory), Some(1)));
    if before != directory {
        trailer[16..24].copy_from_slice(&((out.len() + TRAILER) as u64).to_le_bytes());
    }
    let checksum = xxh3_64(&trailer[..32]);
    trailer[32..].copy_from_slice(&checksum.to_le_bytes());
    out.extend(trailer);
    std::fs::write(&path, out).unwrap();
    read_all(&path);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn mutated_files(edits in edits(), which in 0usize..3) {
        let folder = tempfile::tempdir().unwrap();
        small(folder.path());
        let packed = folder.path().join("packed");
        pack_file(folder.path(), &packed).unwrap();
        let file = [packed.clone(), folder.path().join("rank-00000.store"), folder.path().join(State::file_name(0, 0))];
        let mut bytes = std::fs::read(&file[which]).unwrap();
        mutate(&mut bytes, &edits);
        std::fs::write(&file[which], &bytes).unwrap();
        read_all(&packed);
        read_all(folder.path());
    }

    #[test]
    fn mutated_states_with_checksums_that_fit(edits in edits(), which: Index) {
        let folder = tempfile::tempdir().unwrap();
        small(folder.path());
        let path = folder.path().join(State::file_name(0, 0));
        let mut container = Container::parse(&path, &std::fs::read(&path).unwrap()).unwrap();
        match which.index(container.sections.len() + 1) {
            0 => {
                let mut manifest = container.manifest.into_bytes();
                mutate(&mut manifest, &edits);
                container.manifest = String::from_utf8_lossy(&manifest).into_owned();
            }
            section => mutate(&mut container.sections[section - 1].1, &edits),
        }
        container.write(&path, true).unwrap();
        read_all(folder.path());
    }

    #[test]
    fn mutated_directories_with_checksums_that_fit(edits in edits()) {
        let folder = tempfile::tempdir().unwrap();
        small(folder.path());
        with_directory(folder.path(), |directory, _| {
            let mut bytes = codec::to_bytes(directory);
            mutate(&mut bytes, &edits);
            *directory = codec::from_bytes(&bytes).unwrap_or_default();
        });
    }

    #[test]
    fn directories_of_any_numbers(
        pages in prop_oneof![Just(140u64), 0u64..200, any::<u64>()],
        stored in prop_oneof![0u32..300_000, any::<u32>()],
        run in (0u64..200, prop_oneof![0u64..200, any::<u64>()], prop_oneof![0u64..200, any::<u64>()]),
        entry in (prop_oneof![0u64..9000, any::<u64>()], prop_oneof![0u64..9000, any::<u64>()]),
        which in 0u8..16,
    ) {
        let folder = tempfile::tempdir().unwrap();
        small(folder.path());
        with_directory(folder.path(), |directory, _| {
            if which & 1 != 0 {
                directory.pages = pages;
            }
            if which & 2 != 0 {
                directory.blocks[0] = Block { stored, ..directory.blocks[0] };
            }
            if which & 4 != 0 {
                directory.ranks = vec![RankPages { rank: 0, runs: vec![run] }];
            }
            if which & 8 != 0 {
                directory.states[0] = StateEntry { offset: entry.0, length: entry.1, ..directory.states[0] };
            }
        });
    }

    #[test]
    fn trailers_of_any_numbers(
        length in prop_oneof![0u64..20_000, any::<u64>()],
        directory in prop_oneof![0u64..20_000, any::<u64>()],
        which in 0u8..4,
    ) {
        let folder = tempfile::tempdir().unwrap();
        small(folder.path());
        with_directory(folder.path(), |_, trailer| {
            if which & 1 != 0 {
                trailer[16..24].copy_from_slice(&length.to_le_bytes());
            }
            if which & 2 != 0 {
                trailer[24..32].copy_from_slice(&directory.to_le_bytes());
            }
        });
    }

    #[test]
    fn runs_of_any_numbers(
        at: Index,
        pages in prop_oneof![0u64..2000, any::<u64>()],
        first in prop_oneof![0u64..2000, any::<u64>()],
        huge: bool,
        start in prop_oneof![Just(0u64), any::<u64>()],
        length in prop_oneof![Just(4096u64), any::<u64>()],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut state = small(folder.path());
        let region = &mut state.regions[0];
        let at = at.index(region.runs.len());
        region.runs[at] = Run { pages, huge, content: Content::Data(first) };
        if start != 0 {
            (region.start, region.length) = (start, length);
        }
        let path = folder.path().join(State::file_name(0, 0));
        let mut container = Container::parse(&path, &std::fs::read(&path).unwrap()).unwrap();
        container.sections[0].1 = codec::to_bytes(&state.regions);
        container.write(&path, true).unwrap();
        read_all(folder.path());
    }
}

/// Few bytes that name very many pages cost little to refuse.
#[test]
fn many_names_for_few_pages_are_no_burden() {
    let folder = tempfile::tempdir().unwrap();
    small(folder.path());
    let endless = |directory: &mut Directory| {
        let runs = (0..100_000).map(|n| (n << 20, 140, 0)).collect();
        directory.ranks = vec![RankPages { rank: 0, runs }];
    };
    with_directory(folder.path(), |directory, _| endless(directory));
    let error = Images::open(&folder.path().join("packed")).err().unwrap().to_string();
    assert!(error.contains("more pages than there are"), "{error}");
    // A state that names pages a million times over.
    let images = Images::open(folder.path()).unwrap();
    let mut state = images.state(0, 0).unwrap();
    state.regions.truncate(1);
    let run = Run { pages: 1 << 20, huge: false, content: Content::Data(0) };
    state.regions[0].runs = vec![run; 1000];
    state.regions[0].length = (1000 << 20) * PAGE as u64;
    state.hashes.clear();
    assert!(state.to_bytes(false).unwrap_err().to_string().contains("more than"));
    let path = folder.path().join(State::file_name(0, 0));
    let mut container = Container::parse(&path, &std::fs::read(&path).unwrap()).unwrap();
    container.sections[0].1 = codec::to_bytes(&state.regions);
    container.write(&path, true).unwrap();
    assert!(images.state(0, 0).unwrap_err().to_string().contains("more than"));
}

#[test]
fn other_versions_and_machines_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    set(folder.path());
    let path = folder.path().join(State::file_name(0, 0));
    let original = Container::parse(&path, &std::fs::read(&path).unwrap()).unwrap();
    let refused = |change: &dyn Fn(&mut Container), part: &str| {
        let mut container = original.clone();
        change(&mut container);
        container.write(&path, true).unwrap();
        let error = Images::open(folder.path()).unwrap().state(0, 0).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    refused(&|c| c.version = 9, "image version 9");
    refused(&|c| c.kind = "phases".into(), "it holds phases");
    refused(&|c| c.manifest = c.manifest.replace("x86_64", "riscv64"), "saved on riscv64");
    refused(&|c| c.manifest = c.manifest.replace("4096", "65536"), "pages of 65536");
    refused(&|c| c.sections[1].1.truncate(17), "a hash is cut off");
    refused(&|c| drop(c.sections.remove(1)), "hashes of its pages are missing");
    refused(&|c| drop(c.sections.remove(0)), "no map of the memory");
    assert_eq!(HEAD, 16);
}
