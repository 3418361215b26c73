//! Files of phases that are damaged or lie are refused, and never panic.
mod support;
use phasecast_analyzer::{Analysis, Settings, analyze};
use phasecast_trace::PhaseId;
use proptest::prelude::*;
use std::sync::OnceLock;
use support::{Act, Folder, Program};

fn sample() -> &'static Analysis {
    static SAMPLE: OnceLock<Analysis> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let folder = Folder::new();
        let mut program = Program::new(2);
        for step in 0..40u64 {
            program.all(|rank| Act::Work(50_000 + step * 7 + u64::from(rank)));
            program.all(|_| Act::Collective { comm: 0, root: -1, bytes: 8 });
        }
        let traces = ["a", "b"].map(|name| program.write(&folder.path(name), 100));
        analyze(&traces, &Settings { threads: 1, ..Settings::default() }, &|_, _| {}).unwrap()
    })
}

fn refused(change: impl Fn(&mut Analysis)) -> String {
    let folder = Folder::new();
    let mut analysis = sample().clone();
    change(&mut analysis);
    analysis.save(&folder.path("x")).unwrap();
    let error = Analysis::load(&folder.path("x")).unwrap_err();
    assert!(error.is_input());
    error.to_string()
}

#[test]
fn what_no_analysis_says_is_refused() {
    assert!(refused(|a| a.pieces[1][3].phase = PhaseId(99)).contains("which there is not"));
    assert!(refused(|a| a.phases[1].planned = vec![1 << 40]).contains("is planned"));
    assert!(refused(|a| a.phases[1].id = PhaseId(7)).contains("is numbered 7"));
    assert!(refused(|a| a.events[0] += 1).contains("do not end at its last event"));
    assert!(refused(|a| a.ranks = 3).contains("of 3 ranks"));
    assert!(refused(|a| a.phases[0].hashes = vec![1]).contains("hashes of 1 ranks"));
    assert!(refused(|a| a.volume_classes = vec![9, 3]).contains("out of order"));
    assert!(refused(|a| a.coverage = -1.0).contains("no numbers"));
}

proptest! {
    #[test]
    fn damaged_files_never_panic(flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), keep in 0.5f64..1.0) {
        let folder = Folder::new();
        let path = folder.path("x");
        sample().save(&path).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, with) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= with;
        }
        bytes.truncate((bytes.len() as f64 * keep) as usize);
        std::fs::write(&path, &bytes).unwrap();
        let _ = Analysis::load(&path);
    }

    /// The checksum does not protect from what is written with a right one.
    #[test]
    fn hostile_pieces_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), tail in any::<bool>()) {
        let folder = Folder::new();
        let path = folder.path("x");
        let mut container = sample().container();
        let section = &mut container.sections[0].1;
        if tail {
            let keep = section.len() - bytes.len().min(section.len());
            section.truncate(keep);
            section.extend(bytes);
        } else {
            *section = bytes;
        }
        let changed = container.sections[0].1 != sample().container().sections[0].1;
        container.write(&path, false).unwrap();
        prop_assert!(!changed || Analysis::load(&path).is_err() || tail);
    }
}
