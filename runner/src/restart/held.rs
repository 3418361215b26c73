//! What the fence costs in restarts, which times of the program are without: system calls that the host carries out for it.
use super::replay::Replayed;
use phasecast_checkpoint::job::StepReport;
use phasecast_trace::Nanos;

/// From this share of the measured time on it is told what the fence has cost.
const HELD: f64 = 0.05;
/// The largest share of a restart's time that is taken for the fence's.
const MOST: f64 = 0.75;
/// How much of what the fence is taken to have cost may be wrong.
const DOUBT: f64 = 0.25;

impl Replayed {
    /// How much the times may be wrong because of what was taken off for the fence, as a share.
    pub fn doubt(&self) -> f64 {
        let without = self.measured_s - self.held_s;
        if without > 0.0 { DOUBT * self.held_s / without } else { 0.0 }
    }

    /// What is to be told of the fence, if it has cost much.
    pub fn held_note(&self) -> Option<String> {
        let share = self.held_s / self.measured_s;
        (share > HELD).then(|| {
            format!(
                "system calls that phasecast carries out for the program took {:.0} % of the measured time longer than by themselves; this was taken off",
                share * 100.0
            )
        })
    }
}

/// The times of all pieces that ran, warm-up first, without what the fence has held up. A rank without events in a piece is at
/// its end when it is at the end of the one before.
pub fn piece_times(report: &StepReport, held: &[u64]) -> Vec<Nanos> {
    let mut before = report.start_ns;
    let time = |(piece, &at): (usize, &u64)| {
        let from = before;
        before = at.saturating_sub(held.get(piece).copied().unwrap_or(0)).max(from);
        Nanos(before - from)
    };
    report.times_ns.iter().enumerate().map(time).collect()
}

/// What the fence has held up until the end of each piece, in ns: in each, of the rank where that is the most, as the others
/// wait for it sooner or later. Of the time of the step, in seconds, it is never taken for more than [`MOST`].
pub fn held(ranks: &[&StepReport], all_s: f64) -> Vec<u64> {
    let mut all = 0;
    let pieces = ranks.iter().map(|report| report.held_ns.len()).min().unwrap_or(0);
    let until = |piece: usize| {
        let of = |report: &&StepReport| {
            let before = piece.checked_sub(1).map_or(0, |before| report.held_ns[before]);
            report.held_ns[piece].saturating_sub(before)
        };
        all += ranks.iter().map(of).max().unwrap_or(0);
        all
    };
    let held: Vec<u64> = (0..pieces).map(until).collect();
    let share = MOST * all_s * 1e9 / all as f64;
    if share < 1.0 { held.iter().map(|&ns| (ns as f64 * share) as u64).collect() } else { held }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(times_ns: &[u64], held_ns: &[u64]) -> StepReport {
        let (times_ns, held_ns) = (times_ns.to_vec(), held_ns.to_vec());
        StepReport { cut: 0, restart_s: 0.0, start_ns: 1000, times_ns, held_ns, finished: true }
    }

    #[test]
    fn what_one_rank_is_held_up_by_all_are() {
        let ranks = [report(&[1500, 2000, 3000], &[0, 200, 300]), report(&[1600, 2100, 3000], &[50, 50, 50])];
        let ranks: Vec<&StepReport> = ranks.iter().collect();
        let held = held(&ranks, 2000e-9);
        assert_eq!(held, [50, 250, 350]);
        assert_eq!(piece_times(ranks[0], &held), [450, 300, 900].map(Nanos));
        assert_eq!(piece_times(ranks[1], &held), [550, 300, 800].map(Nanos));
        assert_eq!(piece_times(ranks[1], &[]), [600, 500, 900].map(Nanos));
    }

    #[test]
    fn a_part_of_the_time_is_the_programs_own() {
        let ranks = [report(&[2000, 3000], &[1000, 4000])];
        let held = held(&ranks.iter().collect::<Vec<_>>(), 2000e-9);
        assert_eq!(held, [375, 1500]);
        assert_eq!(piece_times(&ranks[0], &held).iter().map(|time| time.0).sum::<u64>(), 625);
    }

    #[test]
    fn what_was_taken_off_is_told_and_doubted() {
        let replayed = |held_s| Replayed { measured_s: 1.0, held_s, ..Replayed::default() };
        assert!(replayed(0.04).held_note().is_none() && replayed(0.0).doubt() == 0.0);
        assert!(replayed(0.5).held_note().is_some_and(|note| note.contains("50 %")));
        assert!((replayed(0.5).doubt() - DOUBT).abs() < 1e-12);
        assert!(Replayed::default().held_note().is_none());
    }
}
