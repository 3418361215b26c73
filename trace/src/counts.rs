//! What counters of the processor told of the computation before a call (`phasecast trace --counters`), and which
//! counters they were.
use serde::{Deserialize, Serialize};

/// The environment variable by which `phasecast trace` asks the tracer for counts: [`HARDWARE`], or for the tests of
/// phasecast [`SOFTWARE`].
pub const VARIABLE: &str = "PHASECAST_COUNTERS";
/// Instructions, cycles and misses of the last-level cache, by the processor's counters.
pub const HARDWARE: &str = "hardware";
/// Events of the kernel in their places, which every machine has: processor time in ns, twice, and page faults.
pub const SOFTWARE: &str = "software";
/// Bytes that a miss brings from memory: a cache line.
pub const LINE_BYTES: u64 = 64;

/// What was counted on a thread between the return of a call and the next one, in user space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Counts {
    /// Instructions.
    pub instructions: u64,
    /// Cycles.
    pub cycles: u64,
    /// Misses of the last-level cache: lines that came from memory.
    pub misses: u64,
}

impl Counts {
    /// In the order in which they stand in a chunk.
    pub fn to_array(self) -> [u64; 3] {
        [self.instructions, self.cycles, self.misses]
    }

    /// The inverse of [`Counts::to_array`].
    pub fn from_array([instructions, cycles, misses]: [u64; 3]) -> Counts {
        Counts { instructions, cycles, misses }
    }

    /// The sum; what does not fit is cut.
    #[must_use]
    pub fn plus(self, other: Counts) -> Counts {
        let [a, b] = [self.to_array(), other.to_array()];
        Counts::from_array(std::array::from_fn(|i| a[i].saturating_add(b[i])))
    }
}

/// The record that says what was counted in a rank's file, by the names that `perf` has for events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// What stands as [`Counts::instructions`]: `instructions`.
    pub instructions: String,
    /// What stands as [`Counts::cycles`]: `cycles`.
    pub cycles: String,
    /// What stands as [`Counts::misses`]: `cache-misses`.
    pub misses: String,
}

impl Counters {
    /// The processor's counters.
    pub fn hardware() -> Counters {
        Counters::named(["instructions", "cycles", "cache-misses"])
    }

    /// The kernel's events in their places ([`SOFTWARE`]).
    pub fn software() -> Counters {
        Counters::named(["task-clock", "task-clock", "page-faults"])
    }

    fn named([instructions, cycles, misses]: [&str; 3]) -> Counters {
        Counters { instructions: instructions.into(), cycles: cycles.into(), misses: misses.into() }
    }

    /// Whether they are the processor's: else numbers per instruction or cycle mean nothing.
    pub fn are_hardware(&self) -> bool {
        *self == Counters::hardware()
    }

    /// The names, as one text.
    pub fn names(&self) -> String {
        [&self.instructions, &self.cycles, &self.misses].map(String::as_str).join(", ")
    }
}
