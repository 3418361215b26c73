//! A moment that processes of one machine tell one another.
use phasecast_trace::model::boot_id;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A moment on the monotonic clock of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// The machine's boot.
    pub boot_id: String,
    /// CLOCK_MONOTONIC in ns.
    pub ns: u64,
}

impl Moment {
    /// Now, here.
    pub fn now() -> Moment {
        Moment { boot_id: boot_id(), ns: monotonic_ns() }
    }

    /// How long ago it was; none if that was on another machine.
    pub fn ago(&self) -> Option<Duration> {
        let ns = monotonic_ns().checked_sub(self.ns)?;
        (self.boot_id == boot_id()).then(|| Duration::from_nanos(ns))
    }
}

/// CLOCK_MONOTONIC in ns.
pub fn monotonic_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC exists");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_on_its_machine_alone() {
        let now = Moment::now();
        assert!(now.ago().is_some_and(|ago| ago < Duration::from_secs(60)));
        assert_eq!(Moment { boot_id: "another".into(), ..now.clone() }.ago(), None);
        assert_eq!(Moment { ns: now.ns + 60_000_000_000, ..now }.ago(), None, "of the future nothing is told");
    }
}
