//! The longest common subsequence: against the table of dynamic programming, and at the limits of its effort.
use phasecast_transform::stability::lcs::{Common, Effort, common};
use proptest::prelude::*;

fn table(a: &[u32], b: &[u32]) -> u64 {
    let mut row = vec![0u64; b.len() + 1];
    for x in a {
        let mut corner = 0;
        for (j, y) in b.iter().enumerate() {
            let up = row[j + 1];
            row[j + 1] = if x == y { corner + 1 } else { up.max(row[j]) };
            corner = up;
        }
    }
    row[b.len()]
}

/// What is found is a common subsequence, and as long as it says.
fn check(a: &[u32], b: &[u32], found: &Common) {
    let (mut x, mut y, mut length) = (0, 0, 0);
    for run in &found.runs {
        assert!(run.a >= x && run.b >= y && run.length > 0, "{found:?}");
        assert_eq!(a[run.a..run.a + run.length], b[run.b..run.b + run.length]);
        (x, y) = (run.a + run.length, run.b + run.length);
        length += run.length as u64;
    }
    assert_eq!(length, found.length);
}

fn edited(length: usize, symbols: u32) -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
    let base = prop::collection::vec(0..symbols, 0..length);
    (base, prop::collection::vec((any::<prop::sample::Index>(), 0u8..3, 0..symbols + 2), 0..8)).prop_map(
        |(a, edits)| {
            let mut b = a.clone();
            for (at, what, symbol) in edits {
                let place = at.index(b.len() + 1);
                match what {
                    0 => b.insert(place, symbol),
                    1 if place < b.len() => drop(b.remove(place)),
                    _ if place < b.len() => b[place] = symbol,
                    _ => {}
                }
            }
            (a, b)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn it_is_the_longest_of_any_two(
        a in prop::collection::vec(0u32..4, 0..40),
        b in prop::collection::vec(0u32..4, 0..40),
    ) {
        let found = common(&a, &b, Effort::default());
        check(&a, &b, &found);
        prop_assert!(found.exact);
        prop_assert_eq!(found.length, table(&a, &b));
    }

    #[test]
    fn it_is_the_longest_of_two_that_are_alike((a, b) in edited(200, 6)) {
        let found = common(&a, &b, Effort::default());
        check(&a, &b, &found);
        prop_assert!(found.exact);
        prop_assert_eq!(found.length, table(&a, &b));
    }

    #[test]
    fn with_little_effort_it_is_common_still(
        a in prop::collection::vec(0u32..4, 0..300),
        b in prop::collection::vec(0u32..4, 0..300),
        steps in 0u64..200,
        differences in 1usize..12,
    ) {
        let found = common(&a, &b, Effort { steps, differences });
        check(&a, &b, &found);
        let longest = table(&a, &b);
        prop_assert!(found.length <= longest);
        prop_assert!(!found.exact || found.length == longest);
    }
}
