//! What messages and collectives cost on both machines, looked up by length and remembered (seed 000, section 4.1:
//! f(b), g(b), "extracted from traces of communication benchmarks").
use crate::machine::{Collective, Costs, Life, Link, Machine, Place};
use crate::transform::error::{TransformError, Words};
use crate::transform::roles::{Growth, Role};
use phasecast_analyzer::matching::FastMap;

/// Nanoseconds of a second.
const NANOS: f64 = 1e9;
/// Lengths that are remembered (a power of two).
const REMEMBERED: usize = 512;

/// What a message of some length costs on one machine, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Price {
    /// f(b): in a blocking send.
    pub send: f64,
    /// g(b): in a blocking receive.
    pub receive: f64,
    /// In a nonblocking send.
    pub isend: f64,
    /// In a nonblocking receive.
    pub irecv: f64,
    /// In the wait for a receive whose message is there.
    pub wait: f64,
    /// In the wait for a send.
    pub wait_send: f64,
    /// From the send to the end of the receive that waits for it.
    pub transfer: f64,
    /// The part of that which shares bandwidth.
    pub work: f64,
    /// Half the quartile distance of the transfer.
    pub spread: f64,
    /// Whether a send of it waits for its receive.
    pub rendezvous: bool,
}

/// On both machines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prices {
    /// On the base.
    pub base: Price,
    /// On the target.
    pub target: Price,
}

/// What a collective costs on one machine, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Together {
    /// From the entry of the last to the exit of the last.
    pub all: f64,
    /// In the call of the root.
    pub root: f64,
    /// In the call of another rank.
    pub others: f64,
    /// Half the quartile distance of `all`.
    pub spread: f64,
    /// Not measured with as many ranks.
    pub guessed: bool,
}

/// Where a message travels on both machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// On the base.
    pub base: Place,
    /// On the target.
    pub target: Place,
}

/// One machine's costs, with what is needed of them checked.
struct Side<'a> {
    within: Option<&'a Link>,
    between: Option<&'a Link>,
    collectives: &'a [Collective],
    life: Option<Life>,
}

impl<'a> Side<'a> {
    fn new(machine: &'a Machine, which: &'static str, places: &[Place]) -> Result<Side<'a>, TransformError> {
        let known = machine.check();
        known.map_err(|(key, what)| TransformError::Machine { which, key, what })?;
        let link = |place| machine.links.iter().find(|link| link.place == place);
        if let Some(&place) = places.iter().find(|&&place| link(place).is_none()) {
            return Err(TransformError::NoLink { which, place: Words(place) });
        }
        // Where all ranks are on one node there is one kind of links; where each is alone, messages to oneself are within it.
        let within = link(Place::Within).or_else(|| link(Place::Between));
        let between = if places.contains(&Place::Between) { link(Place::Between) } else { within };
        Ok(Side { within, between, collectives: &machine.collectives, life: machine.life })
    }

    fn link(&self, place: Place) -> Option<&'a Link> {
        match place {
            Place::Within => self.within,
            Place::Between => self.between,
        }
    }

    fn price(&self, bytes: u64, place: Place) -> Price {
        let Some(link) = self.link(place) else { return Price::default() };
        let of = |costs: &Costs| costs.seconds(bytes).unwrap_or(0.0).max(0.0) * NANOS;
        let transfer = of(&link.transfer);
        Price {
            send: of(&link.send),
            receive: of(&link.receive),
            isend: of(&link.isend),
            irecv: of(&link.irecv),
            wait: of(&link.wait),
            wait_send: if link.wait_send.is_empty() { of(&link.wait) } else { of(&link.wait_send) },
            transfer,
            work: (bytes as f64 / link.bandwidth * NANOS).min(transfer),
            spread: spread(&link.transfer, bytes),
            rendezvous: link.eager_bytes.is_some_and(|eager| bytes > eager),
        }
    }

    /// The table of a collective that was measured with a number of ranks next to `members`.
    fn collective(&self, name: &str, members: u32) -> Option<&'a Collective> {
        let distance = |c: &&Collective| (f64::from(c.ranks).ln() - f64::from(members).ln()).abs();
        let named = self.collectives.iter().filter(|c| c.name == name && !c.costs.is_empty());
        named.min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    fn together(&self, collective: Option<&Collective>, growth: Growth, members: u32, bytes: u64) -> Together {
        let Some(collective) = collective else {
            // No table: as many messages one after the other as a tree has levels.
            let link = if self.between.is_some() { self.between } else { self.within };
            let one = link.and_then(|link| link.transfer.seconds(bytes)).unwrap_or(0.0) * NANOS;
            let all = one * f64::from(members).log2().ceil();
            return Together { all, root: all, others: all, spread: 0.0, guessed: true };
        };
        let grown = Grown::new(growth, members, collective.ranks);
        let of = |costs: &Costs| Some(NANOS * grown.of(costs.seconds(0)?, costs.seconds(bytes)?));
        let all = of(&collective.costs).unwrap_or(0.0);
        let measured = NANOS * collective.costs.seconds(bytes).unwrap_or(0.0);
        Together {
            all,
            root: of(&collective.root).unwrap_or(all),
            others: of(&collective.others).unwrap_or(all),
            spread: spread(&collective.costs, bytes) * if measured > 0.0 { all / measured } else { 1.0 },
            guessed: collective.ranks != members,
        }
    }
}

/// How many times as long a collective takes with another number of ranks: its messages and its bytes.
struct Grown {
    messages: f64,
    bytes: f64,
}

impl Grown {
    fn new(growth: Growth, members: u32, measured: u32) -> Grown {
        let (n, m) = (f64::from(members), f64::from(measured));
        let further = (n - 1.0) / (m - 1.0);
        match growth {
            Growth::Doublings => Grown { messages: n.log2() / m.log2(), bytes: n.log2() / m.log2() },
            Growth::Ranks => Grown { messages: further, bytes: further },
            // Of what a rank sends, all but its own part travels.
            Growth::Messages => Grown { messages: further, bytes: (1.0 - 1.0 / n) / (1.0 - 1.0 / m) },
        }
    }

    /// Of the time for no bytes and that for some.
    fn of(&self, empty: f64, all: f64) -> f64 {
        let empty = empty.min(all).max(0.0);
        empty * self.messages + (all - empty).max(0.0) * self.bytes
    }
}

/// The spread at the point next above a length, in ns.
fn spread(costs: &Costs, bytes: u64) -> f64 {
    let at = costs.0.partition_point(|cost| cost.bytes < bytes);
    costs.0.get(at).or(costs.0.last()).map_or(0.0, |cost| cost.spread * NANOS)
}

/// Both machines' costs.
pub struct Tariff<'a> {
    base: Side<'a>,
    target: Side<'a>,
    remembered: Vec<(u64, Prices)>,
    collectives: FastMap<(u16, u32, u64), (Together, Together)>,
    /// Collectives that a machine has no table of.
    pub missing: Vec<String>,
}

impl<'a> Tariff<'a> {
    /// The costs of two machines for messages that travel these ways.
    ///
    /// # Errors
    /// If a machine has no costs of messages for one of the places, or impossible ones.
    pub fn new(base: &'a Machine, target: &'a Machine, ways: &[Way]) -> Result<Tariff<'a>, TransformError> {
        let places = |of: fn(&Way) -> Place| ways.iter().map(of).collect::<Vec<_>>();
        Ok(Tariff {
            base: Side::new(base, "base", &places(|way| way.base))?,
            target: Side::new(target, "target", &places(|way| way.target))?,
            remembered: vec![(u64::MAX, Prices::default()); REMEMBERED],
            collectives: FastMap::default(),
            missing: Vec::new(),
        })
    }

    /// Messages of fewer bytes are less than `work` ns of work on all links of both machines.
    pub fn bytes_of(&self, work: f64) -> u64 {
        let links = [&self.base, &self.target].into_iter().flat_map(|side| [side.within, side.between]).flatten();
        links.map(|link| (link.bandwidth * work / NANOS) as u64).min().unwrap_or(0)
    }

    /// What a message costs.
    #[inline]
    pub fn prices(&mut self, bytes: u64, way: Way) -> &Prices {
        let key = bytes << 2 | u64::from(way.base == Place::Between) << 1 | u64::from(way.target == Place::Between);
        let at = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 55) as usize & (REMEMBERED - 1);
        if self.remembered[at].0 != key {
            let prices =
                Prices { base: self.base.price(bytes, way.base), target: self.target.price(bytes, way.target) };
            self.remembered[at] = (key, prices);
        }
        &self.remembered[at].1
    }

    /// What a collective of so many ranks costs on the base and on the target. Where one of the machines has no table of
    /// it, both are taken from their messages.
    pub fn collective(&mut self, proc: u16, role: &Role, members: u32, bytes: u64) -> (Together, Together) {
        let members = members.min(role.most_ranks);
        // A rank alone waits for nobody.
        if members < 2 {
            return <(Together, Together)>::default();
        }
        if let Some(known) = self.collectives.get(&(proc, members, bytes)) {
            return *known;
        }
        let tables = (self.base.collective(role.costs_as, members), self.target.collective(role.costs_as, members));
        let (one, other) = match tables {
            (Some(one), Some(other)) => (Some(one), Some(other)),
            _ => (None, None),
        };
        if one.is_none() && !self.missing.iter().any(|name| name == role.costs_as) {
            self.missing.push(role.costs_as.to_owned());
        }
        let of = |side: &Side<'_>, table| side.together(table, role.growth, members, bytes);
        let both = (of(&self.base, one), of(&self.target, other));
        if self.collectives.len() > 1 << 16 {
            self.collectives.clear();
        }
        self.collectives.insert((proc, members, bytes), both);
        both
    }

    /// What starting or ending MPI costs on the base and on the target, if both machines' files say so.
    pub fn life(&self, finalize: bool) -> (Together, Together) {
        let of = |side: &Side<'_>| {
            let life = side.life.as_ref()?;
            let all = if finalize { life.finalize_s } else { life.init_s } * NANOS;
            Some(Together { all, root: all, others: all, spread: 0.5 * life.spread_s * NANOS, guessed: false })
        };
        of(&self.base).zip(of(&self.target)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 ns for the messages and 100 for the bytes among two ranks.
    #[test]
    fn an_exchange_of_all_grows_with_its_messages_and_hardly_with_its_bytes() {
        let of = |growth, members| Grown::new(growth, members, 2).of(1.0, 101.0);
        assert_eq!((of(Growth::Messages, 2), of(Growth::Messages, 4)), (101.0, 3.0 + 150.0));
        // Of what a rank sends no more than all can travel.
        assert!(of(Growth::Messages, 1024) <= 1023.0 + 200.0);
        // A block for each rank is another matter.
        assert_eq!((of(Growth::Ranks, 4), of(Growth::Doublings, 4)), (303.0, 202.0));
        assert_eq!(Grown::new(Growth::Messages, 4, 2).of(5.0, 2.0), 6.0);
    }
}
