//! The communication library (seed 001, section 2.3): what patterns of communication cost, from the five parts of a
//! message's time (section 3.1) and the number of messages that a node can handle at once (section 3.3).
//!
//! A node that sends n messages one after the other spends n (T1 + T2) on setting up and copying; the transmissions run
//! in rounds of as many messages as a node can handle at once, T3 each; the last message costs its receiver T4 + T5.
//! Receiving n messages is the mirror image. Trees are complete binary trees with the root on top: a level is over when
//! each node of it has served both its children, and the levels follow one another, as the bound (1) of section 2.1 has it.
use super::system::System;

/// What messages cost on a system among a number of processors.
#[derive(Clone, Copy, Debug)]
pub struct Costs<'a> {
    /// The system.
    pub system: &'a System,
    /// Processors that take part, at least 1.
    pub processors: u64,
}

/// A routine of the library.
pub struct Routine {
    /// Its name in formulae.
    pub name: &'static str,
    /// Its arguments: bytes; for the two fans the number of messages before.
    pub takes: usize,
    /// Its time in seconds.
    pub seconds: fn(&Costs, f64, f64) -> f64,
    /// What it is.
    pub what: &'static str,
}

/// All routines.
pub const ROUTINES: [Routine; 14] = [
    routine(
        "simple_bcast",
        1,
        |c, bytes, _| c.fan_out(c.others(), bytes),
        "one processor sends to every other in turn",
    ),
    routine("tree_bcast", 1, |c, bytes, _| c.tree_down(bytes), "a message goes down a binary tree"),
    routine("simple_collect", 1, |c, bytes, _| c.fan_in(c.others(), bytes), "one processor receives from every other"),
    routine("tree_collect", 1, |c, bytes, _| c.tree_up(bytes, true), "parts are put together up a binary tree"),
    routine(
        "simple_global_sum",
        1,
        |c, bytes, _| c.fan_in(c.others(), bytes),
        "one processor receives what it sums up",
    ),
    routine("tree_global_sum", 1, |c, bytes, _| c.tree_up(bytes, false), "partial sums go up a binary tree"),
    routine("communicate", 1, |c, bytes, _| c.both_ways(bytes), "send to one processor, receive from a third"),
    routine("exchange", 1, |c, bytes, _| c.both_ways(bytes), "send to one processor, receive from the same"),
    routine(
        "butterfly",
        1,
        |c, bytes, _| c.steps() * c.both_ways(bytes),
        "exchanges with processors 1, 2, 4, ... away",
    ),
    routine("barrier", 0, |c, _, _| c.steps() * c.both_ways(0.0), "a butterfly of empty messages"),
    routine("all_to_all", 1, |c, bytes, _| c.all_to_all(bytes), "every processor sends to every other"),
    routine("message", 1, |c, bytes, _| c.alone(bytes), "one message between two processors"),
    routine("fan_out", 2, |c, n, bytes| c.fan_out(n, bytes), "one processor sends n messages"),
    routine("fan_in", 2, |c, n, bytes| c.fan_in(n, bytes), "one processor receives n messages"),
];

const fn routine(
    name: &'static str,
    takes: usize,
    seconds: fn(&Costs, f64, f64) -> f64,
    what: &'static str,
) -> Routine {
    Routine { name, takes, seconds, what }
}

/// One level of the tree: messages that a parent has with its children there, and nodes of the largest subtree under it.
struct Level {
    messages: f64,
    nodes: f64,
}

impl Costs<'_> {
    fn others(&self) -> f64 {
        self.processors.saturating_sub(1) as f64
    }

    /// Steps of a butterfly: the logarithm of the processors, rounded up.
    fn steps(&self) -> f64 {
        f64::from(u64::BITS - self.processors.saturating_sub(1).leading_zeros())
    }

    /// Rounds of transmissions for n messages.
    fn rounds(&self, messages: f64) -> f64 {
        (messages / f64::from(self.system.at_once)).ceil()
    }

    /// T1 + T2.
    fn send(&self, bytes: f64) -> f64 {
        self.system.message.setup_send.at(bytes) + self.system.message.copy_send.at(bytes)
    }

    /// T4 + T5.
    fn receive(&self, bytes: f64) -> f64 {
        self.system.message.setup_receive.at(bytes) + self.system.message.copy_receive.at(bytes)
    }

    /// Tc = T1 + T2 + T3 + T4 + T5.
    fn alone(&self, bytes: f64) -> f64 {
        if self.processors < 2 { 0.0 } else { self.fan_out(1.0, bytes) }
    }

    /// One processor sends n messages one after the other; until the last is received.
    pub fn fan_out(&self, messages: f64, bytes: f64) -> f64 {
        if messages <= 0.0 {
            return 0.0;
        }
        let transmit = self.rounds(messages) * self.system.message.transmit.at(bytes);
        messages * self.send(bytes) + transmit + self.receive(bytes)
    }

    /// One processor receives n messages that are sent at the same time.
    pub fn fan_in(&self, messages: f64, bytes: f64) -> f64 {
        if messages <= 0.0 {
            return 0.0;
        }
        let transmit = self.rounds(messages) * self.system.message.transmit.at(bytes);
        self.send(bytes) + transmit + messages * self.receive(bytes)
    }

    fn levels(&self) -> impl Iterator<Item = Level> + use<> {
        let processors = self.processors;
        let depth = processors.checked_ilog2().unwrap_or(0);
        (1..=depth).map(move |level| {
            // The nodes of a level are numbered from 2^level - 1; the first one's subtree is the largest.
            let first = (1u64 << level) - 1;
            let mut nodes = 0;
            let (mut from, mut width) = (first, 1);
            while from < processors {
                nodes += width.min(processors - from);
                from = 2 * from + 1;
                width *= 2;
            }
            Level { messages: if processors - first >= 2 { 2.0 } else { 1.0 }, nodes: nodes as f64 }
        })
    }

    fn tree_down(&self, bytes: f64) -> f64 {
        self.levels().map(|level| self.fan_out(level.messages, bytes)).sum()
    }

    /// Up the tree: parts that are put together (`grow`), else of one length.
    fn tree_up(&self, bytes: f64, grow: bool) -> f64 {
        self.levels().map(|level| self.fan_in(level.messages, if grow { bytes * level.nodes } else { bytes })).sum()
    }

    /// A message leaves and another comes: two that a node has to handle.
    fn both_ways(&self, bytes: f64) -> f64 {
        if self.processors < 2 {
            return 0.0;
        }
        self.send(bytes) + self.rounds(2.0) * self.system.message.transmit.at(bytes) + self.receive(bytes)
    }

    fn all_to_all(&self, bytes: f64) -> f64 {
        let others = self.others();
        if others == 0.0 {
            return 0.0;
        }
        others * (self.send(bytes) + self.receive(bytes))
            + self.rounds(2.0 * others) * self.system.message.transmit.at(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::system::{Part, Parts, Point};
    use proptest::prelude::*;

    fn system(at_once: u32, numbers: &[f64; 7]) -> System {
        let line = |seconds, per_byte| Part::Line { seconds, per_byte };
        let [t1, t2, t3, t3_long, t4, t5, t5_byte] = *numbers;
        let table = vec![Point { bytes: 64.0, seconds: t3 }, Point { bytes: 4096.0, seconds: t3 + t3_long }];
        System {
            at_once,
            message: Parts {
                setup_send: Part::Constant(t1),
                copy_send: line(0.0, t2),
                transmit: Part::Table(table),
                setup_receive: Part::Constant(t4),
                copy_receive: line(t5, t5_byte),
            },
            ..System::free("made")
        }
    }

    fn time(system: &System, name: &str, processors: u64, bytes: f64) -> f64 {
        let routine = ROUTINES.iter().find(|routine| routine.name == name).expect("a routine");
        (routine.seconds)(&Costs { system, processors }, bytes, 0.0)
    }

    /// A tree by its definition: node i has children 2i + 1 and 2i + 2.
    fn by_hand(system: &System, processors: u64, bytes: f64, up: bool) -> f64 {
        fn nodes(node: u64, of: u64) -> u64 {
            if node >= of { 0 } else { 1 + nodes(2 * node + 1, of) + nodes(2 * node + 2, of) }
        }
        let costs = Costs { system, processors };
        let mut level: Vec<u64> = vec![0];
        let mut total = 0.0;
        loop {
            let mut slowest: f64 = 0.0;
            let mut next = Vec::new();
            for node in &level {
                let children: Vec<u64> = [2 * node + 1, 2 * node + 2].into_iter().filter(|c| *c < processors).collect();
                let largest = children.iter().map(|&child| nodes(child, processors)).max().unwrap_or(0);
                let messages = children.len() as f64;
                slowest = slowest.max(if up {
                    costs.fan_in(messages, bytes * largest as f64)
                } else {
                    costs.fan_out(messages, bytes)
                });
                next.extend(children);
            }
            if next.is_empty() {
                return total;
            }
            total += slowest;
            level = next;
        }
    }

    fn numbers() -> impl Strategy<Value = [f64; 7]> {
        let setup = || 0.0..1e-3f64;
        let byte = || 0.0..1e-7f64;
        (setup(), byte(), setup(), setup(), setup(), setup(), byte())
            .prop_map(|(a, b, c, d, e, f, g)| [a, b, c, d, e, f, g])
    }

    proptest! {
        #[test]
        fn trees_are_what_their_definition_says(n in numbers(), once in 1u32..4, p in 1u64..200, bytes in 0.0..1e6f64) {
            let system = system(once, &n);
            for (name, up) in [("tree_bcast", false), ("tree_collect", true)] {
                let (ours, hand) = (time(&system, name, p, bytes), by_hand(&system, p, bytes, up));
                prop_assert!((ours - hand).abs() <= 1e-12 + 1e-9 * hand, "{name}: {ours} {hand}");
            }
        }

        #[test]
        fn a_tree_is_no_slower_than_one_after_the_other_among_many(n in numbers(), bytes in 0.0..1e6f64) {
            let system = system(1, &n);
            // At p = 2 they are the same; a tree has at most 2 log2(p) messages one after the other, each with its own
            // T4 + T5, and from 64 on a chain of 63 costs more whatever its parts but where only T4 and T5 cost.
            prop_assert_eq!(time(&system, "tree_bcast", 2, bytes), time(&system, "simple_bcast", 2, bytes));
            let costs = Costs { system: &system, processors: 64 };
            let (send, receive) = (costs.send(bytes) + system.message.transmit.at(bytes), costs.receive(bytes));
            prop_assume!(send * 50.0 >= receive * 5.0);
            for p in [64, 100, 128, 500, 4096] {
                prop_assert!(time(&system, "tree_bcast", p, bytes) <= time(&system, "simple_bcast", p, bytes));
            }
        }

        #[test]
        fn more_bytes_never_take_less(n in numbers(), once in 1u32..4, p in 1u64..300, bytes in 0.0..1e6f64, more in 0.0..1e5f64) {
            let system = system(once, &n);
            for routine in ROUTINES.iter().filter(|routine| routine.takes == 1) {
                let (short, long) = (time(&system, routine.name, p, bytes), time(&system, routine.name, p, bytes + more));
                prop_assert!(long >= short - 1e-12, "{}: {short} {long}", routine.name);
                prop_assert!(p > 1 || short == 0.0, "{}: alone there is nothing to send", routine.name);
            }
        }
    }

    #[test]
    fn one_message_is_its_five_parts() {
        let system = system(1, &[1.0, 0.0, 4.0, 0.0, 16.0, 2.0, 0.0]);
        for name in ["simple_bcast", "tree_bcast", "simple_collect", "tree_collect", "message"] {
            assert_eq!(time(&system, name, 2, 64.0), 1.0 + 4.0 + 16.0 + 2.0, "{name}");
        }
        assert_eq!(time(&system, "simple_bcast", 4, 8.0), 3.0 * (1.0 + 4.0) + 18.0);
        assert_eq!(time(&system, "simple_collect", 4, 8.0), 1.0 + 3.0 * 4.0 + 3.0 * 18.0);
        assert_eq!(time(&system, "exchange", 4, 8.0), 1.0 + 2.0 * 4.0 + 18.0);
        assert_eq!(time(&system, "barrier", 5, 0.0), 3.0 * (1.0 + 8.0 + 18.0));
        assert_eq!(time(&system, "all_to_all", 3, 8.0), 2.0 * 19.0 + 4.0 * 4.0);
    }
}
