//! The seed's Table 2 from its Table 1.
use crate::Res;
use phasecast_scaling::signature::csv::parse;
use phasecast_scaling::signature::{Settings, scale};
use std::path::Path;

const TABLE: &str = include_str!("../../../../scaling/tests/data/table1.csv");
/// As printed: predicted run times in units of 0.5 ms.
const PRINTED: [f64; 9] = [142.0, 24.0, 118.0, 141.0, 23.0, 119.0, 142.0, 23.0, 124.0];

/// Prints it.
pub fn run() -> Res<()> {
    let path = Path::new("table1.csv");
    let (runs, truth) = parse(path, TABLE)?.runs(path, &[64], 0.5e-3)?;
    let settings = Settings { to: vec![64], seed_forms: true, ..Settings::default() };
    let seed = scale(runs.clone(), &settings, &|phase, p| truth.time(phase, p))?;
    let chosen = scale(runs, &Settings { seed_forms: false, ..settings }, &|phase, p| truth.time(phase, p))?;
    println!("units of 0.5 ms, 64 processors from 8, 16 and 32");
    println!("phase  actual  printed  error %   ours  error %   off   form chosen by cross-validation   ours  error %");
    let mut sums = [0.0; 3];
    for ((phase, free), printed) in seed.phases.iter().zip(&chosen.phases).zip(PRINTED) {
        let [ours, other] = [phase, free].map(|phase| phase.forecasts[0]);
        let actual = ours.actual.ok_or("the table has no column of 64 processors")?;
        let error = |time: f64| 100.0 * (time - actual).abs() / actual;
        println!(
            "{:5}  {actual:6.0}  {printed:7.0}  {:7.1}  {:5.1}  {:7.1}  {:+4.1}   {:32}  {:5.1}  {:7.1}",
            phase.phase.name,
            error(printed),
            ours.time,
            error(ours.time),
            ours.time - printed,
            free.form.formula(),
            other.time,
            error(other.time)
        );
        for (sum, time) in sums.iter_mut().zip([printed, ours.time, other.time]) {
            *sum += error(time) / PRINTED.len() as f64;
        }
    }
    println!("mean error: printed {:.1} %, ours {:.1} %, with forms chosen {:.1} %", sums[0], sums[1], sums[2]);
    for (name, scaled) in [("seed's forms", &seed), ("chosen forms", &chosen)] {
        let whole = scaled.forecasts[0];
        println!(
            "program, {name}: {:.0} ({:.0} to {:.0}), actual {:.0}: {:.1} %",
            whole.time,
            whole.interval[0],
            whole.interval[1],
            whole.actual.unwrap_or(f64::NAN),
            100.0 * whole.error().unwrap_or(f64::NAN)
        );
    }
    Ok(())
}
