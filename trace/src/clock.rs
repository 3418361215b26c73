//! Clock units to nanoseconds: a line through two calibrations.
use crate::model::ClockStart;

/// The conversion of one rank's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    start_units: u64,
    offset_ns: u64,
    ns_per_unit: f64,
}

impl Clock {
    /// A clock that starts at `start`, runs at the pace seen until `last` (units, ns), and is shown from `origin_ns`
    /// before its start.
    pub fn new(start: &ClockStart, last: Option<(u64, u64)>, offset_ns: u64) -> Clock {
        let pair = last.filter(|pair| pair.0 > start.later.0).unwrap_or(start.later);
        let units = pair.0.saturating_sub(start.units);
        let ns = pair.1.saturating_sub(start.monotonic_ns);
        let ns_per_unit =
            if units == 0 || ns == 0 { f64::from(1u32 << start.shift.min(31)) } else { ns as f64 / units as f64 };
        Clock { start_units: start.units, offset_ns, ns_per_unit }
    }

    /// The time of a reading, in ns from the origin of the trace.
    #[inline]
    pub fn nanos(&self, units: u64) -> u64 {
        self.offset_ns.saturating_add((units.saturating_sub(self.start_units) as f64 * self.ns_per_unit) as u64)
    }

    /// Nanoseconds of one unit.
    pub fn resolution(&self) -> f64 {
        self.ns_per_unit
    }
}
