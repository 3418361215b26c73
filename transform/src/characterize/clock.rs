//! Time: the clock, waiting without a call of MPI, and how far the clocks of two hosts lie apart.
use super::TAG_READY;
use super::mpi::Mpi;
use nix::time::{ClockId, clock_gettime};
use std::cell::RefCell;

/// Messages to and fro to compare two clocks; the fastest counts.
const EXCHANGES: usize = 12;

/// CLOCK_MONOTONIC in ns.
#[inline(always)]
pub fn now() -> i64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// What this thread has had of a processor, in ns.
pub fn processor_now() -> i64 {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

#[inline(always)]
fn read(clock: ClockId) -> i64 {
    let now = clock_gettime(clock).expect("every Linux has these clocks");
    now.tv_sec() * 1_000_000_000 + now.tv_nsec()
}

/// Memory that computing goes through, in bytes: as much as a processor's own caches hold.
const MEMORY: usize = 2 << 20;
/// How much of it lies between two readings of the clock.
const STRETCH: usize = 1024;
/// A line of a cache.
const LINE: usize = 64;

thread_local! {
    static COMPUTED: RefCell<(Vec<u8>, usize)> = RefCell::new((vec![0; MEMORY], 0));
}

/// Computes until then: without the hint of one who waits, on which a virtual processor might be taken away, and going
/// through memory, so that a call finds the caches as a program leaves them.
#[inline(always)]
pub fn compute_until(then: i64) {
    COMPUTED.with_borrow_mut(|(memory, at)| {
        while now() < then {
            memory[*at..*at + STRETCH].iter_mut().step_by(LINE).for_each(|byte| *byte = byte.wrapping_add(1));
            *at = (*at + STRETCH) % MEMORY;
        }
    });
}

/// Computes for so long.
#[inline(always)]
pub fn compute(ns: u64) {
    compute_until(now() + ns as i64);
}

/// What two readings of the clock take, which is in every time measured, in ns: the median.
pub fn reading() -> i64 {
    let mut all: Vec<i64> = (0..1001)
        .map(|_| {
            let start = now();
            now() - start
        })
        .collect();
    *all.select_nth_unstable(500).1
}

/// Rank 0's part in comparing clocks with another rank.
pub fn lead(mpi: &Mpi, rank: u32) {
    for _ in 0..EXCHANGES {
        mpi.receive(&mut [], rank, TAG_READY);
        mpi.send(&now().to_ne_bytes(), rank, TAG_READY);
    }
}

/// The other's: what to add to its clock to have that of rank 0, in ns.
pub fn follow(mpi: &Mpi) -> i64 {
    let mut best = (i64::MAX, 0);
    for _ in 0..EXCHANGES {
        let mut theirs = [0u8; 8];
        let start = now();
        mpi.send(&[], 0, TAG_READY);
        mpi.receive(&mut theirs, 0, TAG_READY);
        let took = now() - start;
        best = best.min((took, i64::from_ne_bytes(theirs) - (start + took / 2)));
    }
    best.1
}
