//! Counters of the processor, read at the entry and the return of each call, for `phasecast trace --counters`: what a
//! thread did between calls. Each thread has a group of its own (`perf_event_open`, user space only), which is read by
//! `rdpmc` where the kernel lets it be, else by read(2).
//!
//! Where counters are off, nothing of this is reached: the way here is the slow way of the clock ([`crate::clock`]) and
//! of the recorder ([`crate::thread`]).
mod event;
mod page;

use crate::sink::say;
use event::Group;
use phasecast_trace::Counts;
use phasecast_trace::counts::{Counters, HARDWARE, SOFTWARE, VARIABLE};
use std::cell::RefCell;
use std::sync::OnceLock;

/// Types and numbers of the three events, and their names.
struct Kinds {
    events: [(u32, u64); 3],
    names: fn() -> Counters,
}

const KINDS: [Kinds; 2] = [
    Kinds { events: [(0, 1), (0, 0), (0, 3)], names: Counters::hardware },
    Kinds { events: [(1, 1), (1, 1), (1, 2)], names: Counters::software },
];

/// What this rank counts, once that is known; none if nothing.
static WANTED: OnceLock<Option<&'static Kinds>> = OnceLock::new();

/// What a thread has counted.
#[derive(Default)]
struct Own {
    /// Its counters; none before its first call, or if it can have none.
    group: Option<Group>,
    tried: bool,
    /// The reading when the last call returned.
    returned: Option<Reading>,
    /// What was counted since the last recorded call; none if a part of it was not.
    block: Option<Counts>,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    values: [u64; 3],
    /// Of the time for which they were wanted, in ns, that for which others had their places.
    lost: u64,
    /// The time for which they were wanted, in ns, where it is known.
    wanted: Option<u64>,
}

thread_local! {
    static OWN: RefCell<Own> = RefCell::default();
}

/// Finds out whether counts are wanted and can be had, and says so if they are and cannot: `first` says whether this rank
/// speaks for all. Returns the names of what is counted.
pub fn start(first: bool) -> Option<Counters> {
    let wanted = std::env::var(VARIABLE).ok();
    let kinds = match wanted.as_deref() {
        Some(HARDWARE) => &KINDS[0],
        Some(SOFTWARE) => &KINDS[1],
        _ => {
            let _ = WANTED.set(None);
            return None;
        }
    };
    let opened = Group::open(&kinds.events);
    if let Err(error) = &opened
        && first
    {
        say(&format!(
            "this machine does not let the program's instructions, cycles and cache misses be counted ({error}; \
             kernel.perf_event_paranoid may be 2 at most): the trace holds no counts"
        ));
    }
    let kinds = opened.is_ok().then_some(kinds);
    let _ = WANTED.set(kinds);
    kinds.map(|kinds| (kinds.names)())
}

/// A call is entered: what was counted since the last one returned belongs to the computation before it.
#[cold]
pub fn entered() {
    with_own(|own| {
        let now = own.read();
        let since = own.returned.take().zip(now).and_then(|(before, now)| between(before, now));
        own.block = own.block.zip(since).map(|(block, since)| block.plus(since));
    });
}

/// A call has returned.
#[cold]
pub fn returned() {
    with_own(|own| own.returned = own.read());
}

/// Counting begins, on the calling thread: what it does from now on is counted.
pub fn begin() {
    take();
    returned();
}

/// The shortest time of two readings, in ns: what counting adds to a call.
pub fn cost() -> f64 {
    let mut shortest = f64::INFINITY;
    for _ in 0..64 {
        let before = crate::clock::monotonic();
        entered();
        returned();
        shortest = shortest.min((crate::clock::monotonic() - before) as f64);
    }
    shortest
}

/// What was counted before the call that is being recorded. The next block begins empty.
#[cold]
pub fn take() -> Option<Counts> {
    let mut counts = None;
    with_own(|own| counts = own.block.replace(Counts::default()));
    counts
}

/// No more is known where a thread's storage is gone, at its end.
fn with_own(what: impl FnOnce(&mut Own)) {
    let _ = OWN.try_with(|own| {
        if let Ok(mut own) = own.try_borrow_mut() {
            what(&mut own);
        }
    });
}

impl Own {
    fn read(&mut self) -> Option<Reading> {
        if !self.tried {
            self.tried = true;
            self.group = WANTED.get().copied().flatten().and_then(|kinds| Group::open(&kinds.events).ok());
        }
        self.group.as_ref()?.read()
    }
}

/// What was counted between two readings. Counters that had to share the processor's with others ran for a part of the
/// time only: what they saw stands for all of it. None if they did not run at all, or it is not known how long.
fn between(before: Reading, now: Reading) -> Option<Counts> {
    let lost = now.lost.checked_sub(before.lost)?;
    let wanted = now.wanted.zip(before.wanted).and_then(|(now, before)| now.checked_sub(before));
    let mut counted = [0; 3];
    for (counted, (now, before)) in counted.iter_mut().zip(now.values.into_iter().zip(before.values)) {
        let seen = now.checked_sub(before)?;
        *counted = if lost == 0 {
            seen
        } else {
            let ran = wanted?.checked_sub(lost).filter(|ran| *ran > 0)?;
            let whole = u128::from(seen) * u128::from(wanted?) / u128::from(ran);
            u64::try_from(whole).unwrap_or(u64::MAX)
        };
    }
    Some(Counts::from_array(counted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(values: [u64; 3], wanted: u64, ran: u64) -> Reading {
        Reading { values, lost: wanted - ran, wanted: Some(wanted) }
    }

    #[test]
    fn what_ran_for_a_part_of_the_time_stands_for_all_of_it() {
        let before = reading([10, 20, 30], 1000, 900);
        let whole = between(before, reading([110, 220, 31], 2000, 1900));
        assert_eq!(whole, Some(Counts { instructions: 100, cycles: 200, misses: 1 }));
        let half = between(before, reading([110, 220, 31], 2000, 1400));
        assert_eq!(half, Some(Counts { instructions: 200, cycles: 400, misses: 2 }));
        assert_eq!(between(before, reading([10, 20, 30], 2000, 900)), None, "they did not run");
        let here = Reading { values: [10, 20, 30], lost: 0, wanted: None };
        assert_eq!(between(here, reading([110, 220, 31], 2000, 2000)), whole, "they always ran");
        assert_eq!(between(here, reading([110, 220, 31], 2000, 1900)), None, "from when on they did not is not known");
        assert_eq!(between(before, reading([9, 20, 30], 2000, 1900)), None, "a counter went back");
        let most = between(reading([0; 3], 0, 0), reading([u64::MAX; 3], u64::MAX, 1));
        assert_eq!(most.map(|counts| counts.instructions), Some(u64::MAX));
    }

    #[test]
    fn the_kernel_counts_page_faults_before_a_call() {
        let group = Group::open(&KINDS[1].events).expect("every kernel has these events");
        let before = group.read().expect("a reading");
        let mut pages = vec![0u8; 64 << 12];
        // SAFETY: advice about memory of ours.
        unsafe { libc::madvise(pages.as_mut_ptr().cast(), pages.len(), libc::MADV_NOHUGEPAGE) };
        pages.iter_mut().step_by(1 << 12).for_each(|byte| *byte = std::hint::black_box(1));
        let counts = between(before, group.read().expect("a reading")).expect("it ran");
        assert!((60..1000).contains(&counts.misses), "{counts:?}");
        assert!(counts.instructions > 0 && counts.cycles > 0, "{counts:?}");
    }
}
