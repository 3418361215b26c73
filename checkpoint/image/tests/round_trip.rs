//! What is written is read again, from a folder and packed; pages are stored once; damage is named.
mod common;
use common::{page, set, state};
use phasecast_image::{Content, ImageError, Images, PAGE, Piece, Run, State, Store, pack, pack_file, store};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

/// All pages with content, as the state has them.
fn content(images: &Images, state: &State) -> Result<Vec<u8>, ImageError> {
    let mut out = vec![0; state.data_pages() as usize * PAGE];
    let (mut pieces, mut rest, mut hashes) = (Vec::new(), &mut out[..], &state.hashes[..]);
    for run in state.regions.iter().flat_map(|region| &region.runs) {
        if let Content::Data(page) = run.content {
            let (out, other) = rest.split_at_mut(run.pages as usize * PAGE);
            let (own, others) = hashes.split_at(hashes.len().min(run.pages as usize));
            pieces.push(Piece { page, hashes: own, out });
            (rest, hashes) = (other, others);
        }
    }
    images.fetch(state.rank, pieces)?;
    Ok(out)
}

fn expected(cut: u64, rank: u64) -> Vec<u8> {
    (0..60).map(|n| n + cut * 20 + rank * 10).flat_map(|seed| [page(seed), page(seed + 500)].concat()).collect()
}

fn check_all(images: &Images, states: &[State], with_hashes: bool) {
    for state in states {
        let read = images.state(state.cut, state.rank).unwrap();
        let hashes = if with_hashes { state.hashes.clone() } else { vec![] };
        assert_eq!(read, State { hashes, ..state.clone() });
        assert!(content(images, &read).unwrap() == expected(state.cut.into(), state.rank.into()));
    }
}

#[test]
fn sets_are_read_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let states = set(folder.path());
    let images = Images::open(folder.path()).unwrap();
    assert_eq!(images.list().unwrap(), [(0, 0), (0, 1), (1, 0), (1, 1)]);
    check_all(&images, &states, true);
    let verified = images.verify().unwrap();
    // Each rank has 80 different seeds of two pages.
    assert_eq!((verified.states, verified.cuts, verified.ranks, verified.pages), (4, 2, 2, 320));

    let packed = folder.path().join("set");
    let about = pack_file(folder.path(), &packed).unwrap();
    // Both ranks together have 90.
    assert_eq!((about.named, about.pages, about.states), (320, 180, 4));
    assert_eq!(about.bytes, fs::metadata(&packed).unwrap().len());
    let images = Images::open(&packed).unwrap();
    assert_eq!(images.bytes().unwrap(), about.bytes);
    check_all(&images, &states, false);
    assert_eq!(images.verify().unwrap(), verified);
}

#[test]
fn a_packed_set_may_stand_within_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let states = set(folder.path());
    let path = folder.path().join("app.phc");
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(&[9; 1001]).unwrap();
    let about = pack(folder.path(), &path, &mut file).unwrap();
    check_all(&Images::open(&path).unwrap(), &states, false);
    file.write_all(b"more").unwrap();
    check_all(&Images::at(&path, 1001, about.bytes).unwrap(), &states, false);
    assert!(matches!(Images::open(&path), Err(ImageError::Foreign { .. })));
    assert!(Images::at(&path, 0, u64::MAX).is_err());
    assert!(Images::at(&path, 1002, about.bytes).is_err());
}

#[test]
fn files_can_be_read_by_their_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    set(folder.path());
    pack_file(folder.path(), &folder.path().join("packed")).unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.file_name());
    }
}

#[test]
fn a_page_is_stored_once_across_cuts() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path(), 0).unwrap();
    state(&mut store, 0, 0, 1, &[1, 2, 3, 2, 1]);
    assert_eq!(store.pages(), 6);
    state(&mut store, 1, 0, 1, &[3, 4]);
    assert_eq!(store.pages(), 8);
    let length = fs::metadata(folder.path().join(store::file_name(0))).unwrap().len();
    assert_eq!(length, (1 << 20) + 8 * PAGE as u64);
    assert!(matches!(Store::create(folder.path(), 0), Err(ImageError::Io { .. })));
}

#[test]
fn pages_that_no_state_names_are_left_behind_when_packing() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path(), 0).unwrap();
    state(&mut store, 0, 0, 1, &[10, 11, 12]);
    let kept = state(&mut store, 1, 0, 1, &[12, 13]);
    store.save(&kept).unwrap();
    let about = pack_file(folder.path(), &folder.path().join("packed")).unwrap();
    assert_eq!((store.pages(), about.pages), (8, 4));
}

/// Packs a store of `bytes` and reads it back; returns the packed set's length in that of the pages.
fn packed_share(bytes: &[u8]) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let (mut places, mut hashes) = (Vec::new(), Vec::new());
    let mut store = Store::create(folder.path(), 0).unwrap();
    store.add(bytes, &mut places, &mut hashes).unwrap();
    let pages = store.pages();
    let runs = vec![Run { pages, huge: false, content: Content::Data(0) }];
    let mut state = state(&mut store, 0, 0, 1, &[]);
    (state.regions[0].length, state.regions[0].runs, state.hashes) = (pages * PAGE as u64, runs, hashes);
    store.save(&state).unwrap();
    let about = pack_file(folder.path(), &folder.path().join("packed")).unwrap();
    let images = Images::open(&folder.path().join("packed")).unwrap();
    images.verify().unwrap();
    assert!(content(&images, &images.state(0, 0).unwrap()).unwrap() == bytes);
    about.bytes as f64 / bytes.len() as f64
}

#[test]
fn blocks_are_compressed_where_that_does_not_slow_a_restart() {
    let mut random = 1u64;
    let mut numbers = |repeats: usize| -> Vec<u8> {
        let mut word = |index: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if index % 512 < repeats { 1.5 } else { 1.0 + (random >> 12) as f64 / 2f64.powi(52) }
        };
        (0..150 * PAGE / 8).flat_map(|index| word(index).to_le_bytes()).collect()
    };
    // Random numbers from 1 to 2 have 12 bits of 64 in common, which only codes of varying length could save.
    let none = packed_share(&numbers(0));
    assert!((1.0..1.01).contains(&none), "{none}");
    let few = packed_share(&numbers(16));
    assert!((1.0..1.01).contains(&few), "{few}");
    let half = packed_share(&numbers(256));
    assert!((0.45..0.55).contains(&half), "{half}");
}

fn verify(folder: &Path) -> String {
    Images::open(folder).and_then(|images| images.verify()).unwrap_err().to_string()
}

#[test]
fn what_is_missing_or_damaged_is_named() {
    let folder = tempfile::tempdir().unwrap();
    assert!(verify(folder.path()).contains("no state"));
    set(folder.path());
    let path = |name: &str| folder.path().join(name);
    let packed = path("packed");
    pack_file(folder.path(), &packed).unwrap();

    let state = path(&State::file_name(1, 0));
    let bytes = fs::read(&state).unwrap();
    fs::remove_file(&state).unwrap();
    assert!(verify(folder.path()).contains("no image of rank 0 at cut 1"));
    assert!(matches!(
        Images::open(folder.path()).unwrap().state(1, 0),
        Err(ImageError::Missing { rank: 0, cut: 1, .. })
    ));
    assert!(pack(folder.path(), &packed, &mut Vec::new()).is_err());
    // A state under another's name.
    fs::copy(path(&State::file_name(0, 0)), &state).unwrap();
    assert!(verify(folder.path()).contains("it is of cut 0"));
    fs::write(&state, bytes).unwrap();

    let store = fs::File::options().write(true).open(path("rank-00001.store")).unwrap();
    store.set_len((1 << 20) + 100 * PAGE as u64).unwrap();
    assert!(verify(folder.path()).contains("cut off"));
    let store = fs::File::options().write(true).open(path("rank-00000.store")).unwrap();
    store.write_all_at(&[77], (1 << 20) + 2 * PAGE as u64 + 5).unwrap();
    assert!(verify(folder.path()).contains("page 2 has another content"));
    fs::remove_file(path("rank-00000.store")).unwrap();
    assert!(verify(folder.path()).contains("cannot open"));

    let length = fs::metadata(&packed).unwrap().len();
    let file = fs::File::options().write(true).open(&packed).unwrap();
    file.write_all_at(&[77], 5000).unwrap();
    assert!(verify(&packed).contains("block 0: its checksum is wrong"));
    file.set_len(length - 1).unwrap();
    assert!(verify(&packed).contains("does not end like"));
}

#[test]
fn inconsistent_states_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path(), 0).unwrap();
    let good = state(&mut store, 0, 0, 1, &[1, 2]);
    let mut refused = |change: fn(&mut State), part: &str| {
        let mut bad = good.clone();
        change(&mut bad);
        let error = store.save(&bad).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(!folder.path().join(State::file_name(0, 0)).exists());
    };
    refused(|s| s.size = 0, "rank 0 of 0");
    refused(|s| s.regions.swap(0, 1), "not a place");
    refused(|s| s.regions[0].start += 1, "not a place");
    refused(|s| s.regions[0].length += PAGE as u64, "do not fill");
    refused(|s| s.regions[0].runs[0].pages = u64::MAX, "do not fit");
    refused(|s| s.regions[1].runs[0].huge = false, "do not lie on their bounds");
    refused(|s| s.regions[0].runs[3].content = Content::Data(u64::MAX - 1), "no number");
    refused(|s| s.hashes.clear(), "0 hashes");
    store.save(&good).unwrap();
}
