//! Made-up images: small states of two ranks at two cuts. Each test uses a part of it.
#![allow(dead_code)]
use phasecast_image::{Backing, Content, Flags, PAGE, Protection, Region, Run, Shared, State, Store};
use std::path::Path;

/// A page that is told from others by `seed`.
pub fn page(seed: u64) -> Vec<u8> {
    (0..PAGE as u64).map(|n| (n.wrapping_mul(seed * 2 + 1) >> 3) as u8).collect()
}

/// A state that names pages of `store`, which are added: two pages of each number in `seeds`, some zeros, some nothing.
pub fn state(store: &mut Store, cut: u32, rank: u32, size: u32, seeds: &[u64]) -> State {
    let bytes: Vec<u8> = seeds.iter().flat_map(|&seed| [page(seed), page(seed + 500)].concat()).collect();
    let (mut places, mut hashes) = (Vec::new(), Vec::new());
    store.add(&bytes, &mut places, &mut hashes).unwrap();
    let mut runs = vec![
        Run { pages: 3, huge: false, content: Content::Untouched },
        Run { pages: 2, huge: false, content: Content::SharedZero },
        Run { pages: 1, huge: false, content: Content::PrivateZero },
    ];
    runs.extend(places.iter().map(|&(first, pages)| Run { pages, huge: false, content: Content::Data(first) }));
    let pages: u64 = runs.iter().map(|run| run.pages).sum();
    let huge = vec![
        Run { pages: 100, huge: true, content: Content::PrivateZero },
        Run { pages: 412, huge: true, content: Content::PrivateZero },
    ];
    let region = |start, runs: Vec<Run>, pages: u64| Region {
        start,
        length: pages * PAGE as u64,
        protection: Protection(Protection::READ | Protection::WRITE),
        flags: Flags(Flags::HUGE),
        backing: Some(Backing {
            path: "/lib/libm.so".into(),
            offset: 4096,
            shared: Some(Shared { machine: "m".into(), number: (1, 7), named: true, size: 1 << 20 }),
        }),
        name: String::new(),
        runs,
    };
    State {
        rank,
        size,
        cut,
        program: "xxh3:77".into(),
        frame: 0x2000_0000_1000,
        fs: vec![0x2000_0000_0080, 7],
        brk: (0x2000_0000_0000, 0x2000_0000_2000),
        regions: vec![region(0x2000_0000_0000, runs, pages), region(0x2000_4000_0000, huge, 512)],
        hashes,
        sections: [("files".to_string(), vec![1, 2, 3]), ("empty".to_string(), vec![])].into(),
        ..State::default()
    }
}

/// A set of two ranks and two cuts in `folder`.
pub fn set(folder: &Path) -> Vec<State> {
    let mut states = Vec::new();
    for rank in 0..2u32 {
        let mut store = Store::create(folder, rank).unwrap();
        for cut in 0..2u32 {
            let seeds: Vec<u64> = (0..60).map(|n| n + u64::from(cut) * 20 + u64::from(rank) * 10).collect();
            let state = state(&mut store, cut, rank, 2, &seeds);
            store.save(&state).unwrap();
            states.push(state);
        }
    }
    states
}
