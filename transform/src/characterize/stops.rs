//! Watching for stops: all ranks look at the clock at once, and note when it jumps (the method of Sottile and Minnich,
//! "Analysis of microbenchmarks for performance tuning of clusters", 2004: fixed work, time seen).
use super::clock::now;
use super::command::Command;
use super::mpi::Mpi;
use crate::machine::Stops;
use std::time::Duration;

/// A shorter jump of the clock is no stop, in ns: interrupts take some microseconds, and belong to all that is measured.
const LEAST_NS: i64 = 100_000;
/// The most stops of a rank that are noted.
pub const MOST: usize = 4096;
/// Ranks stand still for so long before, as they do while MPI starts: a quota that they have not used is theirs by then.
const STILL: Duration = Duration::from_millis(200);
/// Ranks whose clocks are further apart when they begin, in ns, have no clock in common.
const APART_NS: u64 = 1_000_000_000;

/// A rank's part in watching: for `compute_ns`, at most `repetitions` stops. On rank 0 what all ranks have seen.
pub fn take_part(mpi: &Mpi, command: &Command) -> Stops {
    let (most, watched) = (command.repetitions as usize, command.compute_ns as i64);
    // When this rank began, then begin and length of each stop, the rest 0.
    let mut seen = vec![[0i64; 2]; most + 1];
    std::thread::sleep(STILL);
    mpi.barrier(mpi.world);
    let begun = now();
    let (mut last, mut count) = (begun, 0);
    while last < begun + watched && count < most {
        let time = now();
        if time - last > LEAST_NS {
            count += 1;
            seen[count] = [last, time - last];
        }
        last = time;
    }
    seen[0] = [begun, 0];
    let all = mpi.gathered(mpi.world, seen.as_flattened());
    let ranks: Vec<&[i64]> = all.chunks_exact(2 * (most + 1)).collect();
    on_one_line(&ranks, watched)
}

/// What ranks have seen on one time line: that for which all of them watched.
fn on_one_line(ranks: &[&[i64]], watched: i64) -> Stops {
    let first = ranks.first().map_or(0, |rank| rank[0]);
    // Of the clock of another host only what it showed from its own beginning on is known.
    let offset = |rank: &[i64]| if rank[0].abs_diff(first) < APART_NS { 0 } else { rank[0] - first };
    let begins = || ranks.iter().map(|rank| rank[0] - offset(rank));
    let begin = begins().max().unwrap_or(0);
    let end = begins().min().map_or(begin, |least| least + watched);
    if end <= begin {
        // A rank began when another had ended: too much else goes on here for any watching.
        return Stops { span_s: 0.0, ranks: Vec::new() };
    }
    let seconds = |ns: i64| (ns / 1000) as f64 * 1e-6;
    let of_rank = |rank: &&[i64]| {
        let within = |stop: &[i64]| {
            let [from, to] = [stop[0], stop[0] + stop[1]].map(|time| (time - offset(rank)).clamp(begin, end) - begin);
            [seconds(from), seconds(to) - seconds(from)]
        };
        rank[2..].chunks_exact(2).filter(|stop| stop[1] > 0).map(within).filter(|stop| stop[1] > 0.0).collect()
    };
    Stops { span_s: seconds(end - begin), ranks: ranks.iter().map(of_rank).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_of_all_ranks_lie_on_one_line() {
        let ms = 1_000_000;
        // The second begins 2 ms later, in the middle of a stop of the first; the third has another clock.
        let one = [100 * ms, 0, 101 * ms, 4 * ms, 109 * ms, 3 * ms, 0, 0];
        let two = [102 * ms, 0, 103 * ms, ms, 111 * ms, 9 * ms, 0, 0];
        let three = [9_000_000 * ms, 0, 9_000_003 * ms, ms, 0, 0, 0, 0];
        let stops = on_one_line(&[&one, &two, &three], 10 * ms);
        assert_eq!(stops.span_s, 0.008);
        let near = |rank: usize, expected: &[[f64; 2]]| {
            let found = &stops.ranks[rank];
            let same = |(a, b): (&[f64; 2], &[f64; 2])| (a[0] - b[0]).abs() < 1e-9 && (a[1] - b[1]).abs() < 1e-9;
            assert!(found.len() == expected.len() && found.iter().zip(expected).all(same), "{found:?} {expected:?}");
        };
        near(0, &[[0.0, 0.003], [0.007, 0.001]]);
        near(1, &[[0.001, 0.001]]);
        near(2, &[[0.001, 0.001]]);
        assert!((stops.share() - 0.006 / 0.024).abs() < 1e-9);
        let late = [120 * ms, 0, 0, 0, 0, 0, 0, 0];
        let none = on_one_line(&[&one, &late], 10 * ms);
        assert!(none.ranks.is_empty() && none.share() == 0.0);
    }
}
