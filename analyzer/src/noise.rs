//! How much run times differ from run to run on one machine: what runs have shown, joined with what is usual.
use crate::model::Piece;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The run time's coefficient of variation where nothing is known of the machine: between the 3 % of a quiet machine and the
/// 4 to 5 % (root mean square) of the series of runs in `docs/SPECIFICATION.md`.
const USUAL: f64 = 0.04;
/// How many degrees of freedom that knowledge is worth.
const USUAL_FREEDOM: f64 = 4.0;
/// Parts of a run whose paces are compared.
const PARTS: usize = 4;

/// Relative deviations of run times that were seen: the sum of their squares, and their degrees of freedom.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// The sum of the squares.
    pub squares: f64,
    /// The degrees of freedom; 0 where nothing was seen.
    pub freedom: f64,
}

impl Seen {
    /// Of runs of these times.
    pub fn runs(times: &[f64]) -> Seen {
        let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
        if mean <= 0.0 {
            return Seen::default();
        }
        let squares = times.iter().map(|time| (time / mean - 1.0).powi(2)).sum();
        Seen { squares, freedom: times.len() as f64 - 1.0 }
    }

    /// Of quarters of two base runs on one rank, against each other: a machine whose pace drifts within a run drifts
    /// between runs too. Noise that drifts (1/f) is as large between quarters as between runs; of noise that does not,
    /// quarters show twice as much.
    pub fn quarters(pieces: &[Piece]) -> Seen {
        let both = |piece: &Piece| Some((piece.time.seconds(), piece.again?.seconds()));
        let Some(times) = pieces.iter().map(both).collect::<Option<Vec<_>>>() else { return Seen::default() };
        let whole: f64 = times.iter().map(|(one, other)| one + other).sum();
        let (mut sums, mut before) = ([(0.0, 0.0); PARTS], 0.0);
        for (one, other) in times {
            let middle = before + 0.5 * (one + other);
            let sum = &mut sums[((middle / whole * PARTS as f64) as usize).min(PARTS - 1)];
            *sum = (sum.0 + one, sum.1 + other);
            before += one + other;
        }
        // A piece may be longer than a quarter, and leave one empty.
        let ratios: Vec<f64> = sums
            .iter()
            .filter(|(one, other)| *one > 0.0 && *other > 0.0)
            .map(|(one, other)| (other / one).ln())
            .collect();
        let mean = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
        // The two runs differ by the noise of both.
        let squares = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / 2.0;
        Seen { squares, freedom: ratios.len().saturating_sub(1) as f64 }
    }

    /// All that was seen of both.
    #[must_use]
    pub fn and(self, other: Seen) -> Seen {
        Seen { squares: self.squares + other.squares, freedom: self.freedom + other.freedom }
    }

    /// Half-width of the interval of level `confidence` (0 to 1) for another run, as a share of the run time. What was seen
    /// is joined with what is usual as by Bayes from an inverse chi-squared prior: the run to come then follows Student's
    /// distribution with the degrees of freedom of both.
    pub fn run_to_run(self, confidence: f64) -> f64 {
        let all = Seen { squares: USUAL_FREEDOM * USUAL * USUAL, freedom: USUAL_FREEDOM }.and(self);
        quantile(all.freedom, confidence) * (all.squares / all.freedom).sqrt()
    }
}

/// The quantile of Student's distribution that bounds an interval of level `confidence` (0 to 1) on one side.
pub fn quantile(freedom: f64, confidence: f64) -> f64 {
    let tail = 0.5 + 0.5 * confidence.clamp(0.0, 0.999);
    StudentsT::new(0.0, 1.0, freedom.max(1.0)).map_or(2.0, |t| t.inverse_cdf(tail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use phasecast_trace::{Nanos, PhaseId};

    #[test]
    fn the_usual_counts_the_less_the_more_was_seen() {
        let usual = Seen::default().run_to_run(0.95);
        assert!((usual - 2.776 * 0.04).abs() < 1e-4, "{usual}");
        assert_eq!(Seen::runs(&[]).run_to_run(0.95), usual);
        assert_eq!(Seen::runs(&[7.0]).run_to_run(0.95), usual);
        assert!(Seen::runs(&[10.0; 100]).run_to_run(0.95) < 0.017);
        let scattered: Vec<f64> = (0..100).map(|run| if run % 2 == 0 { 9.0 } else { 11.0 }).collect();
        assert!((Seen::runs(&scattered).run_to_run(0.95) - 0.2).abs() < 0.01);
    }

    #[test]
    fn quarters_show_how_the_pace_drifts() {
        let pieces = |again: fn(usize) -> u64| -> Vec<Piece> {
            let piece = |at| Piece { phase: PhaseId(0), end: 0, time: Nanos(1000), again: Some(Nanos(again(at))) };
            (0..100).map(piece).collect()
        };
        // A second run that is slower all along says nothing of drift.
        let slower = Seen::quarters(&pieces(|_| 1300));
        assert!(slower.squares < 1e-12 && slower.freedom == 3.0, "{slower:?}");
        let drifting = Seen::quarters(&pieces(|at| if at < 50 { 900 } else { 1100 }));
        assert!((drifting.squares - 4.0 * 0.1f64.powi(2) / 2.0).abs() < 2e-3, "{drifting:?}");
        assert_eq!(Seen::quarters(&[]), Seen::default());
        let once = [Piece { phase: PhaseId(0), end: 0, time: Nanos(5), again: None }];
        assert_eq!(Seen::quarters(&once), Seen::default());
        let one = [Piece { again: Some(Nanos(7)), ..once[0] }];
        assert_eq!(Seen::quarters(&one), Seen::default());
    }
}
