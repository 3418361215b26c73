//! Clock units to nanoseconds: a line through two calibrations.
use crate::model::ClockStart;

/// The conversion of one rank's clock: exact to 2^-52 of a unit's length or better, without floating point on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    start_units: u64,
    offset_ns: u64,
    ns_per_unit: f64,
    /// `ns_per_unit` times two to the `shift`.
    factor: u64,
    shift: u32,
}

impl Clock {
    /// A clock that starts at `start`, runs at the pace seen until `last` (units, ns), and is shown from `offset_ns`
    /// after the origin of the trace.
    pub fn new(start: &ClockStart, last: Option<(u64, u64)>, offset_ns: u64) -> Clock {
        let pair = last.filter(|pair| pair.0 > start.later.0).unwrap_or(start.later);
        let units = pair.0.saturating_sub(start.units);
        let ns = pair.1.saturating_sub(start.monotonic_ns);
        let ns_per_unit =
            if units == 0 || ns == 0 { f64::from(1u32 << start.shift.min(31)) } else { ns as f64 / units as f64 };
        // The most bits behind the point with which the factor still is below 2^63.
        let whole = ns_per_unit.log2().floor() as i32 + 1;
        let shift = (63 - whole).clamp(0, 63) as u32;
        let factor = (ns_per_unit * 2f64.powi(shift as i32)) as u64;
        Clock { start_units: start.units, offset_ns, ns_per_unit, factor, shift }
    }

    /// The time of a reading, in ns from the origin of the trace.
    #[inline]
    pub fn nanos(&self, units: u64) -> u64 {
        let product = u128::from(units.saturating_sub(self.start_units)) * u128::from(self.factor);
        let ns = u64::try_from(product >> self.shift).unwrap_or(u64::MAX);
        self.offset_ns.saturating_add(ns)
    }

    /// Nanoseconds of one unit.
    pub fn resolution(&self) -> f64 {
        self.ns_per_unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(units: u64, ns: u64) -> Clock {
        let start = ClockStart { tsc: true, shift: 0, units: 0, monotonic_ns: 0, realtime_ns: 0, later: (units, ns) };
        Clock::new(&start, None, 0)
    }

    #[test]
    fn a_day_is_exact_to_the_nanosecond() {
        let day = 86_400_000_000_000u64;
        assert_eq!(clock(1 << 30, 1 << 30).nanos(day), day);
        // 2.9 GHz: after a day of ticks.
        let ticks = day / 10 * 29;
        assert!(clock(29, 10).nanos(ticks).abs_diff(day) <= 1);
        assert_eq!(clock(1, 16).nanos(12_345), 12_345 * 16);
    }

    #[test]
    fn absurd_paces_saturate() {
        assert_eq!(clock(1, u64::MAX).nanos(u64::MAX), u64::MAX);
        assert_eq!(clock(u64::MAX, 1).nanos(1000), 0);
    }
}
