//! When a machine keeps its ranks from computing: quotas of processor time, other programs, a host that takes processors
//! away. Tables of costs do not show it, as a median is that of what happens between the stops.
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Times in seconds may be off by this much, as they are sums.
const ROUNDING: f64 = 1e-9;

/// The least share of the time that is left to compute.
const LEAST_FREE: f64 = 1e-6;

/// Ranks that are stopped for a smaller share of the time have what all machines have.
pub const STOPPED: f64 = 0.05;

/// When ranks were stopped while they did nothing but look at the clock, all at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stops {
    /// How long they were watched, in seconds.
    pub span_s: f64,
    /// For each rank its stops in the order of time: when each began, in seconds since all began, and how long it was.
    pub ranks: Vec<Vec<[f64; 2]>>,
}

impl Stops {
    /// The share of the time for which ranks were stopped, in the mean.
    pub fn share(&self) -> f64 {
        let stopped: f64 = self.ranks.iter().flatten().map(|[_, length]| length).sum();
        if stopped > 0.0 { stopped / (self.span_s * self.ranks.len() as f64) } else { 0.0 }
    }

    /// Whether stops can be so; else the key and what is wrong.
    pub(super) fn check(&self) -> Result<(), (String, String)> {
        let wrong = |key: String, what: &str| Err((key, what.to_owned()));
        if !(self.span_s > 0.0 && self.span_s.is_finite()) {
            return wrong("stops.span_s".into(), "is no time above 0");
        }
        if self.ranks.is_empty() {
            return wrong("stops.ranks".into(), "is empty");
        }
        for (rank, stops) in self.ranks.iter().enumerate() {
            let mut end = 0.0;
            for (at, &[begin, length]) in stops.iter().enumerate() {
                let key = format!("stops.ranks[{rank}][{at}]");
                if !(begin >= end - ROUNDING && length > 0.0) {
                    return wrong(key, "begins before the one before it ends, or has no length");
                }
                end = begin + length;
                if end.is_nan() || end > self.span_s + ROUNDING {
                    return wrong(key, "ends after `span_s`");
                }
            }
            if stops.iter().map(|[_, length]| length).sum::<f64>() >= (1.0 - LEAST_FREE) * self.span_s {
                return wrong(format!("stops.ranks[{rank}]"), "leaves no time to compute");
            }
        }
        Ok(())
    }

    /// As a part of a machine file.
    pub(super) fn write(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "\n# When ranks that computed all at once were stopped: [since the start, for so long], a line for each rank.\n\
             [stops]\nspan_s = {:?}\nranks = [",
            self.span_s
        );
        for stops in &self.ranks {
            let stops: Vec<String> = stops.iter().map(|[at, length]| format!("[{at:?}, {length:?}]")).collect();
            let _ = writeln!(text, "  [{}],", stops.join(", "));
        }
        text.push_str("]\n");
    }
}
