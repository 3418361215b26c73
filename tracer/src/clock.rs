//! The clock of the trace: the time stamp counter where it runs evenly, else CLOCK_MONOTONIC.
//!
//! A unit is a reading shifted right such that it lasts 8 to 16 ns: fine enough, and its varints are short.
use phasecast_trace::model::ClockStart;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

static TSC: AtomicBool = AtomicBool::new(false);
static SHIFT: AtomicU8 = AtomicU8::new(3);
/// Raw reading, CLOCK_MONOTONIC and CLOCK_REALTIME at the start of the process.
static START: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// A clock of the system in ns.
fn system(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC in ns.
pub fn monotonic() -> u64 {
    system(libc::CLOCK_MONOTONIC)
}

/// A reading before it is shifted.
#[inline(always)]
pub fn raw() -> u64 {
    if TSC.load(Relaxed) {
        // SAFETY: rdtsc is part of every x86-64 processor.
        unsafe { std::arch::x86_64::_rdtsc() }
    } else {
        monotonic()
    }
}

/// A raw reading in units.
#[inline(always)]
pub fn units(raw: u64) -> u64 {
    raw >> SHIFT.load(Relaxed)
}

/// The time in units.
#[inline(always)]
pub fn now() -> u64 {
    units(raw())
}

/// Whether the processor says that its counter runs at one pace in all states (constant_tsc and nonstop_tsc).
fn invariant_tsc() -> bool {
    use std::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
}

/// Notes the start of the process.
pub fn start() {
    TSC.store(invariant_tsc(), Relaxed);
    START[0].store(raw(), Relaxed);
    START[1].store(monotonic(), Relaxed);
    START[2].store(system(libc::CLOCK_REALTIME), Relaxed);
}

/// A pair of units and CLOCK_MONOTONIC at one moment.
pub fn pair() -> (u64, u64) {
    let before = raw();
    let ns = monotonic();
    (units(before + (raw().saturating_sub(before)) / 2), ns)
}

/// Fixes the length of a unit by the pace since [`start`], and says what a header needs. To be called a few
/// milliseconds after it, before any reading is turned into units.
pub fn calibrate() -> ClockStart {
    let [start, ns, realtime_ns] = [0, 1, 2].map(|i| START[i].load(Relaxed));
    let (reading, now) = (raw(), monotonic());
    let pace = (reading - start) as f64 / now.saturating_sub(ns).max(1) as f64;
    SHIFT.store(shift_for(pace), Relaxed);
    ClockStart {
        tsc: TSC.load(Relaxed),
        shift: SHIFT.load(Relaxed),
        units: units(start),
        monotonic_ns: ns,
        realtime_ns,
        later: (units(reading), now),
    }
}

/// The shift that makes a unit of a counter with `pace` ticks per ns last 8 to 16 ns.
fn shift_for(pace: f64) -> u8 {
    (0..32).find(|&shift| f64::from(1u32 << shift) / pace >= 8.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_lasts_8_to_16_ns() {
        for pace in [0.024, 0.1, 1.0, 1.9, 2.0, 2.4, 3.7, 5.0] {
            let unit = f64::from(1u32 << shift_for(pace)) / pace;
            assert!(unit >= 8.0 && (unit < 16.0 || shift_for(pace) == 0), "{pace}: {unit}");
        }
    }
}
