//! Phases of made profiles are found where they are (seed 003, sections 2.2 and 3).
mod support;

use phasecast_scaling::fit::Random;
use phasecast_scaling::phases::{Kind, Settings, find, matching};
use support::{PROCESSORS, TABLE, moments, nine, series};

/// The four families, each as the seed uses it (a piece for every 11 points or so), and rounding combined with averages.
const SMOOTHERS: [&str; 6] =
    ["line:11", "moving:3:11", "moving:3:11+round:0.5", "round:1", "segments:50", "squares:50"];

#[test]
fn every_smoother_leaves_the_ends_of_phases_where_they_are() {
    for smoother in SMOOTHERS {
        let settings = Settings { smoothing: smoother.parse().expect("a smoother"), ..Settings::default() };
        let mut random = Random::new(2026);
        let (mut good, cases) = (0, 100);
        for case in 0..cases {
            // Three to seven phases on levels well apart, of 60 to 160 points; one may be of full utilisation.
            let (ranks, count) = (16u32, 3 + random.below(5));
            let (mut values, mut ends): (Vec<f64>, Vec<usize>) = (Vec::new(), Vec::new());
            let mut level: f64 = 0.0;
            for at in 0..count {
                let full = at > 0 && random.below(4) == 0 && level < 16.0;
                let before = level;
                while (level - before).abs() < 2.5 {
                    level = if full { 16.0 } else { 2.0 + 11.0 * random.share() };
                }
                let sd = if full { 0.0 } else { 0.2 + 0.6 * random.share() };
                let length = 60 + random.below(101);
                values.extend((0..length).map(|_| if full { level } else { (level + sd * random.normal()).max(0.01) }));
                ends.push(values.len());
            }
            let found = find(&series(ranks, &values), &settings);
            let phases = found.best(None);
            let same = phases.len() == ends.len()
                && phases.iter().zip(&ends).all(|(phase, end)| phase.end.abs_diff(*end) <= settings.neighbourhood);
            good += usize::from(same);
            if !same {
                let seen: Vec<usize> = phases.iter().map(|phase| phase.end).collect();
                println!("{smoother}, case {case}: {ends:?} seen as {seen:?}");
            }
        }
        assert!(good >= 95, "{smoother}: {good} of {cases}");
    }
}

#[test]
fn all_nine_phases_of_the_seed_are_found() {
    for (column, ranks) in PROCESSORS.into_iter().enumerate() {
        let mut random = Random::new(11_900);
        let mut good = 0;
        for _ in 0..100 {
            let (values, ends) = nine(column, &mut random);
            let found = find(&series(ranks, &values), &Settings::default());
            let phases = found.best(None);
            let mut from = 0;
            let same = phases.len() == 9
                && phases.iter().zip(&ends).zip(&TABLE).all(|((phase, &end), row)| {
                    let (mean, variance) = moments(&values[from..end]);
                    from = end;
                    // The made phase is the seed's, and the found one is the made one.
                    let made = (mean - row.1[column]).abs() <= 0.01 * f64::from(ranks)
                        && (variance.sqrt() - row.2[column].sqrt()).abs() <= 0.02 * f64::from(ranks);
                    let full = row.2[column] == 0.0;
                    made && phase.end.abs_diff(end) <= 11
                        && (phase.kind == Kind::Full) == full
                        && (phase.mean - mean).abs() <= 0.01 * f64::from(ranks)
                        && (phase.variance.sqrt() - variance.sqrt()).abs() <= 0.02 * f64::from(ranks)
                });
            good += usize::from(same);
            if !same {
                let seen: Vec<_> = phases.iter().map(|p| (p.end, p.mean, p.variance)).collect();
                println!("{ranks}: {ends:?} seen as {seen:?}");
            }
        }
        assert!(good >= 95, "{ranks} processors: {good} of 100");
    }
}

#[test]
fn the_nine_phases_of_four_runs_are_the_same() {
    let mut random = Random::new(3);
    let runs: Vec<_> = (0..4)
        .map(|column| find(&series(PROCESSORS[column], &nine(column, &mut random).0), &Settings::default()))
        .collect();
    let same = matching::across(&runs, None).expect("phases that all runs have");
    assert!(same.iter().all(|phases| phases.len() == 9), "{:?}", same.iter().map(|p| p.len()).collect::<Vec<_>>());
    for (at, row) in TABLE.iter().enumerate() {
        let kind = if row.2[0] == 0.0 { Kind::Full } else { Kind::Other };
        assert_eq!(matching::kind_of(&same, at), kind);
        for (column, phases) in same.iter().enumerate() {
            let units = phases[at].time_s / 0.5e-3;
            assert!((units - f64::from(row.0[column])).abs() <= 11.0, "phase {at}: {units}");
        }
    }
}

#[test]
fn a_run_without_phases_is_one() {
    let mut random = Random::new(5);
    let flat: Vec<f64> = (0..800).map(|_| 7.0 + 0.5 * random.normal()).collect();
    assert_eq!(find(&series(8, &flat), &Settings::default()).best(None).len(), 1);
    assert!(find(&series(8, &[]), &Settings::default()).best(None).is_empty());
    assert_eq!(find(&series(8, &[3.5]), &Settings::default()).best(None).len(), 1);
    let sequential = [vec![1.0; 100], flat].concat();
    let found = find(&series(8, &sequential), &Settings::default());
    assert_eq!(found.best(None)[0].kind, Kind::Sequential);
    assert_eq!(found.best(None)[0].end, 100);
}
