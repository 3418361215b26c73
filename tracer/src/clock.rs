//! The clock of the trace: the time stamp counter where it runs evenly, else CLOCK_MONOTONIC. Or, if that is asked for,
//! the processor time of the thread outside of MPI: however many ranks share a processor, that is what each computes.
//! Where computation is counted as well ([`counters`]), that is done with the two readings around a call.
//!
//! A unit is a reading shifted right such that it lasts 8 to 16 ns: fine enough, and its varints are short.
use crate::counters;
use phasecast_trace::model::{CLOCK_VARIABLE, COMPUTING_CLOCK, ClockStart};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

static TSC: AtomicBool = AtomicBool::new(false);
/// Whether the time stamp counter is all that is read around a call.
static PLAIN: AtomicBool = AtomicBool::new(false);
/// Whether computation is counted.
static COUNTING: AtomicBool = AtomicBool::new(false);
/// Whether time passes only while the thread computes.
static COMPUTING: AtomicBool = AtomicBool::new(false);
/// Shortest time between two readings of the thread's clock in ns: what a reading adds to the computation around it.
static READING: AtomicU64 = AtomicU64::new(0);
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

#[inline(always)]
fn time_stamp() -> u64 {
    // SAFETY: rdtsc is part of every x86-64 processor.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// A reading before it is shifted.
#[inline(always)]
pub fn raw() -> u64 {
    if TSC.load(Relaxed) {
        time_stamp()
    } else if COMPUTING.load(Relaxed) {
        computed()
    } else {
        monotonic()
    }
}

thread_local! {
    /// Processor time of the thread that was not computation, and the last reading, in ns.
    static LOST: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// What the thread has computed so far, in ns. It never goes back.
#[cold]
fn computed() -> u64 {
    let time = system(libc::CLOCK_THREAD_CPUTIME_ID);
    LOST.with(|cell| {
        let (lost, last) = cell.get();
        let now = time.saturating_sub(lost).max(last);
        cell.set((lost, now));
        now
    })
}

/// A call is entered now: the time, in units.
#[inline(always)]
pub fn entered() -> u64 {
    if PLAIN.load(Relaxed) { units(time_stamp()) } else { entered_slowly() }
}

/// Counters are read within the call: what that takes is no computation.
#[cold]
fn entered_slowly() -> u64 {
    let enter = now();
    if COUNTING.load(Relaxed) {
        counters::entered();
    }
    enter
}

/// A call that was entered at `enter` returns now: the time, in units. Where only computation counts, no time has passed.
#[inline(always)]
pub fn returned(enter: u64) -> u64 {
    if PLAIN.load(Relaxed) { units(time_stamp()) } else { returned_slowly(enter) }
}

/// From now on, counters are read as well.
pub fn count() {
    PLAIN.store(false, Relaxed);
    COUNTING.store(true, Relaxed);
}

#[cold]
fn returned_slowly(enter: u64) -> u64 {
    if COUNTING.load(Relaxed) {
        counters::returned();
    }
    if !COMPUTING.load(Relaxed) {
        return now();
    }
    LOST.with(|cell| {
        let last = cell.get().1;
        let time = system(libc::CLOCK_THREAD_CPUTIME_ID);
        // The reading itself, too, is no computation.
        cell.set((time.saturating_sub(last) + READING.load(Relaxed), last));
    });
    enter
}

/// Whether time passes only while threads compute.
pub fn is_computing() -> bool {
    COMPUTING.load(Relaxed)
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
    if std::env::var_os(CLOCK_VARIABLE).is_some_and(|clock| clock == COMPUTING_CLOCK) {
        COMPUTING.store(true, Relaxed);
        let read = || system(libc::CLOCK_THREAD_CPUTIME_ID);
        let reading = (0..64).map(|_| (read(), read())).map(|(a, b)| b.saturating_sub(a)).min();
        READING.store(reading.unwrap_or(0), Relaxed);
    } else {
        TSC.store(invariant_tsc(), Relaxed);
        PLAIN.store(invariant_tsc(), Relaxed);
    }
    START[0].store(raw(), Relaxed);
    START[1].store(reference(), Relaxed);
    START[2].store(system(libc::CLOCK_REALTIME), Relaxed);
}

/// The clock by which readings become ns.
fn reference() -> u64 {
    if is_computing() { computed() } else { monotonic() }
}

/// A pair of units and CLOCK_MONOTONIC at one moment.
pub fn pair() -> (u64, u64) {
    let before = raw();
    let ns = reference();
    (units(before + (raw().saturating_sub(before)) / 2), ns)
}

/// Fixes the length of a unit by the pace since [`start`], and says what a header needs. To be called a few
/// milliseconds after it, before any reading is turned into units.
pub fn calibrate() -> ClockStart {
    let [start, ns, realtime_ns] = [0, 1, 2].map(|i| START[i].load(Relaxed));
    let (reading, now) = (raw(), reference());
    // A reading of the thread's clock is in ns as it is.
    let pace = if is_computing() { 1.0 } else { (reading - start) as f64 / now.saturating_sub(ns).max(1) as f64 };
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
