//! Requests in liballprof's text: a request is known by the address of the variable that holds it.
use super::line::Line;
use phasecast_abi::{Class as AbiClass, Kind, Timing, Which};
use std::collections::BTreeMap;

/// What a call does to requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// A request is made.
    Make {
        address: u64,
        persistent: bool,
    },
    /// Requests in an array are waited or tested for; `certain` if all of them are complete afterwards.
    Complete {
        base: u64,
        count: u64,
        certain: bool,
    },
    /// Persistent requests are started.
    Start {
        base: u64,
        count: u64,
    },
    Free {
        address: u64,
    },
    Cancel {
        address: u64,
    },
}

/// The effect of a line.
pub(super) fn effect(line: &Line<'_>) -> Effect {
    let Some(procedure) = line.procedure else { return Effect::None };
    let request = procedure.param_index(Kind::Request).and_then(|index| line.address(index));
    let Some(address) = request else { return Effect::None };
    let count = line.int_of(Kind::ArrayLength).and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    match procedure.class {
        AbiClass::Completion { blocking, which: Which::One } => {
            Effect::Complete { base: address, count: 1, certain: blocking }
        }
        AbiClass::Completion { blocking, which } => {
            Effect::Complete { base: address, count, certain: blocking && which == Which::All }
        }
        AbiClass::Start { all } => Effect::Start { base: address, count: if all { count } else { 1 } },
        AbiClass::RequestFree => Effect::Free { address },
        AbiClass::Cancel => Effect::Cancel { address },
        _ if procedure.output_index(Kind::Request).is_some() => {
            Effect::Make { address, persistent: persistent(&procedure.class) }
        }
        _ => Effect::None,
    }
}

fn persistent(class: &AbiClass) -> bool {
    let timing = match class {
        AbiClass::Send { timing, .. } | AbiClass::Recv { timing } | AbiClass::Collective { timing, .. } => *timing,
        _ => Timing::Blocking,
    };
    matches!(timing, Timing::Persistent | Timing::Partitioned)
}

/// A request that is not complete, as far as the file tells.
#[derive(Clone, Debug)]
pub(super) struct Slot<T> {
    pub(super) what: T,
    pub(super) persistent: bool,
    pub(super) active: bool,
    pub(super) cancelled: bool,
    /// The last line that may have completed it.
    cover: Option<u64>,
}

/// The requests of one rank at one line of its file.
#[derive(Debug)]
pub(super) struct Requests<T> {
    slots: BTreeMap<u64, Slot<T>>,
    /// The first address of a request.
    first: Option<u64>,
    /// Requests have 4 bytes (MPICH, Fortran), not 8 (Open MPI in C).
    pub(super) narrow: bool,
    /// Lines that complete requests although they need not: the last to name each before its next use.
    pub(super) late: BTreeMap<u64, Vec<u64>>,
}

impl<T> Default for Requests<T> {
    fn default() -> Self {
        Requests { slots: BTreeMap::new(), first: None, narrow: false, late: BTreeMap::new() }
    }
}

impl<T> Requests<T> {
    /// Addresses of known requests in an array.
    pub(super) fn covered(&mut self, base: u64, count: u64) -> Vec<u64> {
        self.look(base);
        let step = if self.narrow { 4 } else { 8 };
        let range = base..base.saturating_add(count.saturating_mul(step));
        self.slots.range(range).map(|(a, _)| *a).filter(|a| (a - base).is_multiple_of(step)).collect()
    }

    /// Requests of 8 bytes are multiples of 8 apart.
    fn look(&mut self, address: u64) {
        let first = *self.first.get_or_insert(address);
        self.narrow |= address.abs_diff(first) % 8 == 4;
    }

    pub(super) fn get(&mut self, address: u64) -> Option<&mut Slot<T>> {
        self.slots.get_mut(&address)
    }

    pub(super) fn make(&mut self, address: u64, persistent: bool, what: T) {
        self.look(address);
        self.settle(address);
        self.slots.insert(address, Slot { what, persistent, active: !persistent, cancelled: false, cover: None });
    }

    /// A persistent request is active again.
    pub(super) fn start(&mut self, address: u64) {
        self.settle(address);
        if let Some(slot) = self.slots.get_mut(&address) {
            slot.active = true;
        }
    }

    /// The request is complete: an ordinary one is gone, a persistent one rests.
    pub(super) fn complete(&mut self, address: u64) {
        if let Some(slot) = self.slots.get_mut(&address) {
            slot.active = false;
            slot.cancelled = false;
            slot.cover = None;
            if !slot.persistent {
                self.slots.remove(&address);
            }
        }
    }

    pub(super) fn free(&mut self, address: u64) {
        self.settle(address);
        self.slots.remove(&address);
    }

    /// `line` may have completed the request.
    pub(super) fn maybe(&mut self, address: u64, line: u64) {
        if let Some(slot) = self.slots.get_mut(&address).filter(|slot| slot.active) {
            slot.cover = Some(line);
        }
    }

    /// Before its address is used anew, a request was completed by the last line that may have.
    fn settle(&mut self, address: u64) {
        if let Some(line) = self.slots.get(&address).filter(|slot| slot.active).and_then(|slot| slot.cover) {
            self.late.entry(line).or_default().push(address);
        }
    }

    /// At the end of the file.
    pub(super) fn settle_all(&mut self) {
        for address in self.slots.keys().copied().collect::<Vec<_>>() {
            self.settle(address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(addresses: &[u64]) -> Requests<()> {
        let mut requests = Requests::default();
        addresses.iter().for_each(|&address| requests.make(address, false, ()));
        requests
    }

    #[test]
    fn addresses_tell_how_long_a_request_is() {
        assert_eq!(made(&[64, 68, 72, 76]).covered(64, 2), [64, 68]);
        assert_eq!(made(&[64, 72, 80]).covered(64, 2), [64, 72]);
        // The first request of the array is none that is known.
        assert_eq!(made(&[64, 72]).covered(68, 2), [72]);
        let mut mpich = made(&[64, 72]);
        mpich.narrow = true;
        assert_eq!(mpich.covered(64, 2), [64]);
    }
}
