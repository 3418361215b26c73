//! How much run times differ from run to run on one machine: what runs have shown, joined with what is usual.
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The run time's coefficient of variation where nothing is known of the machine.
const USUAL: f64 = 0.03;
/// How many degrees of freedom that knowledge is worth.
const USUAL_FREEDOM: f64 = 4.0;

/// The quantile of Student's distribution that bounds an interval of level `confidence` (0 to 1) on one side.
pub fn quantile(freedom: f64, confidence: f64) -> f64 {
    let tail = 0.5 + 0.5 * confidence.clamp(0.0, 0.999);
    StudentsT::new(0.0, 1.0, freedom.max(1.0)).map_or(2.0, |t| t.inverse_cdf(tail))
}

/// Half-width of the interval of level `confidence` for another run, as a share of the run time. `squares` is the sum of
/// the squared relative deviations that were seen, `freedom` their degrees of freedom; 0 and 0 where nothing was. They are
/// joined with what is usual as by Bayes from an inverse chi-squared prior: the run to come then follows Student's
/// distribution with the degrees of freedom of both.
pub fn run_to_run(squares: f64, freedom: f64, confidence: f64) -> f64 {
    let all = USUAL_FREEDOM + freedom;
    quantile(all, confidence) * ((USUAL_FREEDOM * USUAL * USUAL + squares) / all).sqrt()
}

/// [`run_to_run`] for runs of these times.
pub fn of_runs(times: &[f64], confidence: f64) -> f64 {
    let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
    if mean <= 0.0 {
        return run_to_run(0.0, 0.0, confidence);
    }
    let squares = times.iter().map(|time| (time / mean - 1.0).powi(2)).sum();
    run_to_run(squares, times.len() as f64 - 1.0, confidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_counts_the_less_the_more_was_seen() {
        let usual = run_to_run(0.0, 0.0, 0.95);
        assert!((usual - 2.776 * 0.03).abs() < 1e-4, "{usual}");
        assert_eq!(of_runs(&[], 0.95), usual);
        assert_eq!(of_runs(&[7.0], 0.95), usual);
        let alike: Vec<f64> = vec![10.0; 100];
        assert!(of_runs(&alike, 0.95) < 0.013);
        let scattered: Vec<f64> = (0..100).map(|run| if run % 2 == 0 { 9.0 } else { 11.0 }).collect();
        assert!((of_runs(&scattered, 0.95) - 0.2).abs() < 0.01);
    }
}
