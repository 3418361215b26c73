//! Made logical traces, for tests: any shape that one may have, with calls that have a partner and calls that have none.
use crate::logical::{ClassTrace, Computation, Direction, End, Group, LogicalTrace, Mode, Operation, Step, Work};
use crate::nest::Node;

/// Numbers without order (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound.max(1)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A logical trace of up to `most` ranks; equal seeds make equal ones.
pub fn logical(seed: u64, most: u32) -> LogicalTrace {
    let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..8 {
        numbers.below(2);
    }
    let ranks = 1 + numbers.below(u64::from(most)) as u32;
    let directions = directions(&mut numbers, ranks);
    let groups = groups(&mut numbers, ranks);
    // One program for all, or classes that do as they like.
    let classes = if numbers.chance(50) { 1 } else { 1 + numbers.below(3.min(u64::from(ranks))) as usize };
    let mut of_class: Vec<Vec<u32>> = vec![Vec::new(); classes];
    for rank in 0..ranks {
        let class = if (rank as usize) < classes { rank as usize } else { numbers.below(classes as u64) as usize };
        of_class[class].push(rank);
    }
    let mut maker =
        Maker { numbers, directions: directions.len() as u16, groups: groups.len() as u16, open: Vec::new(), made: 0 };
    let shared = maker.body(0);
    let differs = maker.numbers.chance(40);
    let classes = of_class
        .into_iter()
        .map(|ranks| {
            let body = if differs { maker.body(0) } else { shared.clone() };
            ClassTrace { ranks, body }
        })
        .collect();
    LogicalTrace {
        program: format!("made {seed} */ \" \\ ??/\n"),
        args: Vec::new(),
        ranks,
        run_ns: 1_000_000,
        topology: None,
        directions,
        groups,
        classes,
        left_out: Vec::new(),
        counted: None,
    }
}

fn directions(numbers: &mut Numbers, ranks: u32) -> Vec<Direction> {
    let shift = |by: u32, wraps: bool| -> Vec<Option<u32>> {
        (0..ranks).map(|rank| if wraps || rank + by < ranks { Some((rank + by) % ranks) } else { None }).collect()
    };
    let back = |peers: &[Option<u32>]| -> Vec<Option<u32>> {
        (0..ranks).map(|rank| peers.iter().position(|peer| *peer == Some(rank)).map(|at| at as u32)).collect()
    };
    let wraps = numbers.chance(50);
    let east = shift(1, wraps);
    let south = shift((ranks / 2).max(1), numbers.chance(50));
    let mut all = vec![
        Direction { name: "EAST".into(), peer: east.clone() },
        Direction { name: "WEST".into(), peer: back(&east) },
        Direction { name: "SOUTH".into(), peer: south.clone() },
        Direction { name: "NORTH".into(), peer: back(&south) },
    ];
    // One that leads anywhere.
    let any = (0..ranks).map(|_| numbers.chance(70).then(|| numbers.below(u64::from(ranks)) as u32)).collect();
    all.push(Direction { name: "x; int".into(), peer: any });
    all
}

fn groups(numbers: &mut Numbers, ranks: u32) -> Vec<Group> {
    let cut = numbers.below(u64::from(ranks)) as u32;
    let halves = [(0..cut).collect::<Vec<u32>>(), (cut..ranks).rev().collect()];
    vec![
        Group { name: "WORLD".into(), members: vec![(0..ranks).collect()] },
        Group { name: "HALF".into(), members: halves.into_iter().filter(|half| !half.is_empty()).collect() },
        Group { name: "FEW".into(), members: vec![(0..ranks.div_ceil(2)).collect()] },
    ]
}

struct Maker {
    numbers: Numbers,
    directions: u16,
    groups: u16,
    /// Slots with a request.
    open: Vec<u16>,
    /// Computations that were made: each third has counts.
    made: u32,
}

impl Maker {
    fn body(&mut self, level: u32) -> Vec<Node<Step>> {
        let mut out = Vec::new();
        for _ in 0..1 + self.numbers.below(5) {
            if level < 3 && self.numbers.chance(35) {
                let count = 2 + self.numbers.below(40 >> (2 * level));
                let body = self.body(level + 1);
                out.push(Node::Loop { count, body });
            } else if self.numbers.chance(60) {
                self.exchange(&mut out);
            } else {
                self.anything(&mut out);
            }
        }
        out
    }

    fn compute(&mut self) -> Computation {
        self.made += 1;
        let mean = self.numbers.below(30_000) as f64;
        let spreads = self.numbers.chance(30);
        Computation {
            count: 8,
            mean_ns: mean,
            deviation_ns: if spreads { mean * 0.3 } else { 0.0 },
            quantiles_ns: if spreads {
                (0..9).map(|i| mean * (0.5 + 0.1 * f64::from(i))).collect()
            } else {
                Vec::new()
            },
            work: self.made.is_multiple_of(3).then_some(Work { instructions_per_us: mean, lines_per_us: mean / 1e3 }),
        }
    }

    fn push(&mut self, out: &mut Vec<Node<Step>>, call: Operation) {
        let compute = self.compute();
        out.push(Node::Item(Step { compute, call, call_ns: self.numbers.below(5000) as f64 }));
    }

    fn bytes(&mut self) -> u64 {
        match self.numbers.below(4) {
            0 => 0,
            1 => 8 * self.numbers.below(100),
            2 => self.numbers.below(9000),
            _ => self.numbers.below(200_000),
        }
    }

    fn slot(&mut self) -> u16 {
        let slot = (0..).find(|slot| !self.open.contains(slot)).unwrap_or(0);
        self.open.push(slot);
        slot
    }

    /// What programs do: to one side and from the other.
    fn exchange(&mut self, out: &mut Vec<Node<Step>>) {
        let pair = 2 * self.numbers.below(2) as u16;
        let turned = self.numbers.below(2) as u16;
        let (to, from) = (pair + turned, pair + 1 - turned);
        let (tag, bytes) = (self.numbers.below(3) as i32, self.bytes());
        let received = if self.numbers.chance(80) { bytes } else { self.bytes() };
        let to = End { direction: to, tag, bytes };
        let from = End { direction: from, tag, bytes: received };
        let (mode, wildcard) = (Mode::Standard, self.numbers.chance(10));
        match self.numbers.below(5) {
            0 => {
                let (one, two) = (self.slot(), self.slot());
                self.push(out, Operation::Receive { end: from, wildcard, slot: Some(one) });
                self.push(out, Operation::Send { end: to, mode, slot: Some(two) });
                let slots = vec![one.min(two), one.max(two)];
                self.push(out, Operation::Wait { slots });
                self.open.retain(|slot| *slot != one && *slot != two);
            }
            1 => {
                self.push(out, Operation::Send { end: to, mode, slot: None });
                self.push(out, Operation::Receive { end: from, wildcard, slot: None });
            }
            2 => {
                self.push(out, Operation::Receive { end: from, wildcard, slot: None });
                self.push(out, Operation::Send { end: to, mode, slot: None });
            }
            3 => self.push(out, Operation::SendReceive { send: Some(to), receive: Some(from) }),
            _ => {
                let slot = self.slot();
                self.push(out, Operation::Send { end: to, mode, slot: Some(slot) });
                self.push(out, Operation::Receive { end: from, wildcard, slot: None });
                self.push(out, Operation::Wait { slots: vec![slot] });
                self.open.retain(|open| *open != slot);
            }
        }
    }

    /// One call, whether it has a partner or not.
    fn anything(&mut self, out: &mut Vec<Node<Step>>) {
        const NAMES: [&str; 12] = [
            "MPI_Barrier",
            "MPI_Bcast",
            "MPI_Reduce",
            "MPI_Allreduce",
            "MPI_Gather",
            "MPI_Scatter",
            "MPI_Allgather",
            "MPI_Alltoall",
            "MPI_Scan",
            "MPI_Exscan",
            "MPI_Reduce_scatter",
            "MPI_Comm_dup",
        ];
        let end = End {
            direction: self.numbers.below(u64::from(self.directions)) as u16,
            tag: self.numbers.below(3) as i32,
            bytes: self.bytes(),
        };
        let slot = if self.numbers.chance(50) { Some(self.slot()) } else { None };
        let call = match self.numbers.below(10) {
            0 => {
                let mode = [Mode::Standard, Mode::Synchronous, Mode::Buffered, Mode::Ready];
                Operation::Send { end, mode: mode[self.numbers.below(4) as usize], slot }
            }
            1 => Operation::Receive { end, wildcard: false, slot },
            2 => Operation::SendReceive {
                send: self.numbers.chance(50).then_some(end),
                receive: self.numbers.chance(50).then_some(End { bytes: 64, ..end }),
            },
            3 => {
                let mut slots = std::mem::take(&mut self.open);
                slots.sort_unstable();
                Operation::Wait { slots }
            }
            4 => Operation::Nothing,
            _ => Operation::Collective {
                name: NAMES[self.numbers.below(NAMES.len() as u64) as usize].into(),
                group: if self.numbers.chance(70) { 0 } else { self.numbers.below(u64::from(self.groups)) as u16 },
                bytes: self.bytes() / 4,
                root: self.numbers.chance(60).then(|| self.numbers.below(3) as u32),
                slot: slot.filter(|_| self.numbers.chance(30)),
            },
        };
        self.push(out, call);
    }
}
