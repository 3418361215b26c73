//! A disk that is full in the midst of a dump. The limit belongs to the process: this test has one of its own.
mod common;
use common::{page, state};
use phasecast_image::{ImageError, Images, PAGE, State, Store};
use std::fs;

fn limit(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: sets a limit and ignores its signal, so that writing fails instead.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
}

#[test]
fn a_full_disk_costs_one_cut_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path(), 0).unwrap();
    let first = state(&mut store, 0, 0, 1, &[1, 2, 3]);
    store.save(&first).unwrap();
    let (pages, store_file) = (store.pages(), folder.path().join("rank-00000.store"));

    limit((1 << 20) + 10 * PAGE as u64);
    let new: Vec<u8> = (100..130).flat_map(page).collect();
    let error = store.add(&new, &mut Vec::new(), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, ImageError::Io { .. }), "{error}");
    assert_eq!(store.pages(), pages);
    assert_eq!(fs::metadata(&store_file).unwrap().len(), (1 << 20) + pages * PAGE as u64);
    // So it is for a state: nothing under its name, or another.
    limit(100);
    assert!(store.save(&State { cut: 1, ..first.clone() }).is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);

    limit(libc::RLIM_INFINITY);
    let second = state(&mut store, 2, 0, 1, &(100..130).collect::<Vec<_>>());
    store.save(&second).unwrap();
    let images = Images::open(folder.path()).unwrap();
    assert_eq!(images.list().unwrap(), [(0, 0), (2, 0)]);
    assert_eq!(images.verify().unwrap().pages, 66);
    assert_eq!(images.state(0, 0).unwrap(), first);
}
