//! Where delays may change what a program does (seed 000, section 3.2.1): before sends whose messages race for a receive
//! that takes any of them; and, where nothing races, before the calls that end its biggest blocks.
use super::error::StabilityError;
use super::takes_any_order;
use super::tape::is_open_probe;
use phasecast_analyzer::matching::FastMap;
use phasecast_trace::delays::{Delay, parse_site};
use phasecast_trace::model::TAG_ANY;
use phasecast_trace::{Class, EventKind, Flags, Rank, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// Why a place is worth a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// Its messages race with those of other ranks for receives of this rank.
    Race(u32),
    /// Much is computed before its calls.
    Block,
}

/// A place before whose calls the program can be delayed: a factor of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The rank.
    pub rank: u32,
    /// The call site, `module+0xoffset`.
    pub site: String,
    /// The procedure that is called there.
    pub procedure: String,
    /// Why it is one.
    pub reason: Reason,
    /// How often it is called.
    pub calls: u64,
    /// The time of all blocks before its calls, in seconds.
    pub blocks_s: f64,
}

impl Candidate {
    /// The mean block before a call, in seconds.
    pub fn block_s(&self) -> f64 {
        self.blocks_s / self.calls.max(1) as f64
    }

    /// A delay before its calls: so long, and this share of the block before; at most so much in all, so that it is left
    /// out before some calls where there are many. None if the place is in no module that is known.
    pub fn delay(&self, fixed_s: f64, share: f64, most_s: f64) -> Option<Delay> {
        let (module, offset) = parse_site(&self.site)?;
        let all = self.calls as f64 * fixed_s + share * self.blocks_s;
        let every = (all / most_s.max(1e-9)).ceil().clamp(1.0, 1e18) as u64;
        Some(Delay { rank: self.rank, fixed_ns: (fixed_s * 1e9) as u64, share, every, offset, module })
    }
}

/// Receives of one rank that may take messages of several others.
#[derive(Default)]
struct Open {
    /// Tags that were received, and how many messages.
    tags: BTreeSet<i32>,
    any_tag: bool,
    messages: u64,
}

/// Calls from one place of one rank.
#[derive(Clone, Copy, Default)]
struct Calls {
    count: u64,
    blocks_ns: u64,
}

type Site = (u32, u64, u16);

/// Looks for places, the best first: senders that race, ranks and messages in turn, then the biggest blocks.
///
/// # Errors
/// If the trace is damaged.
pub fn candidates(trace: &Trace) -> Result<Vec<Candidate>, StabilityError> {
    let mut open: BTreeMap<(u32, u32), Open> = BTreeMap::new();
    // Messages by receiver, communicator, tag and sender, with the places that they are sent from.
    let mut sent: BTreeMap<(u32, u32, i32), BTreeMap<Site, u64>> = BTreeMap::new();
    let mut calls: FastMap<Site, Calls> = FastMap::default();
    for rank in trace.ranks() {
        scan(trace, rank, &mut open, &mut sent, &mut calls)?;
    }
    let mut raced: Vec<(u32, Vec<(Site, u64)>)> = Vec::new();
    for ((receiver, comm), open) in &open {
        let mut senders: BTreeMap<Site, u64> = BTreeMap::new();
        // With a tag of its own, each message races with those of the same tag only.
        let groups: Vec<BTreeMap<Site, u64>> = if open.any_tag {
            let tags = sent.range((*receiver, *comm, i32::MIN)..=(*receiver, *comm, i32::MAX));
            let all = tags.flat_map(|(_, sites)| sites.iter().map(|(site, count)| (*site, *count)));
            vec![all.fold(BTreeMap::new(), |mut sum, (site, count)| {
                *sum.entry(site).or_default() += count;
                sum
            })]
        } else {
            open.tags.iter().filter_map(|tag| sent.get(&(*receiver, *comm, *tag)).cloned()).collect()
        };
        for group in groups {
            let ranks: BTreeSet<u32> = group.keys().map(|site| site.0).collect();
            if ranks.len() > 1 {
                group.into_iter().for_each(|(site, count)| *senders.entry(site).or_default() += count);
            }
        }
        if !senders.is_empty() {
            let mut senders: Vec<(Site, u64)> = senders.into_iter().collect();
            senders.sort_by_key(|(site, count)| (std::cmp::Reverse(*count), *site));
            raced.push((*receiver, senders));
        }
    }
    let make = |(rank, site, proc): Site, reason| {
        let Calls { count, blocks_ns } = calls.get(&(rank, site, proc)).copied().unwrap_or_default();
        let procedure = trace.procedure(phasecast_trace::ProcId(proc)).to_owned();
        let blocks_s = blocks_ns as f64 * 1e-9;
        Candidate { rank, site: trace.site(Rank(rank), site), procedure, reason, calls: count, blocks_s }
    };
    let (mut found, mut taken) = (Vec::new(), BTreeSet::new());
    let longest = raced.iter().map(|(_, senders)| senders.len()).max().unwrap_or(0);
    for place in 0..longest {
        for (receiver, senders) in &raced {
            if let Some((site, _)) = senders.get(place).filter(|(site, _)| taken.insert(*site)) {
                found.push(make(*site, Reason::Race(*receiver)));
            }
        }
    }
    let mut blocks: Vec<(Site, Calls)> = calls.iter().map(|(site, calls)| (*site, *calls)).collect();
    blocks.sort_by_key(|(site, calls)| (std::cmp::Reverse(calls.blocks_ns), *site));
    let rest = blocks.into_iter().filter(|(site, _)| !taken.contains(site));
    found.extend(rest.map(|(site, _)| make(site, Reason::Block)));
    found.retain(|candidate| parse_site(&candidate.site).is_some());
    Ok(found)
}

/// One rank's part of it.
fn scan(
    trace: &Trace,
    rank: Rank,
    open: &mut BTreeMap<(u32, u32), Open>,
    sent: &mut BTreeMap<(u32, u32, i32), BTreeMap<Site, u64>>,
    calls: &mut FastMap<Site, Calls>,
) -> Result<(), StabilityError> {
    let mut before: FastMap<u16, (u64, bool)> = FastMap::default();
    let mut reader = trace.calls(rank);
    while let Some(full) = reader.next_call()? {
        let call = full.call;
        let site = (rank.0, call.site, call.proc.0);
        let now = (call.exit.0, is_open_probe(&full));
        let last = before.insert(call.thread, now);
        if call.flags.has(Flags::CONTINUED) || matches!(call.class, Class::Setup | Class::Pause | Class::Resume) {
            continue;
        }
        if let Some((exit, _)) = last {
            let here = calls.entry(site).or_default();
            here.count += 1;
            here.blocks_ns += call.enter.0.saturating_sub(exit);
        }
        let probed = last.is_some_and(|(_, probe)| probe) && call.class == Class::Recv;
        let in_any_order = takes_any_order(trace.procedure(call.proc));
        let any_tag = call.tag == TAG_ANY || call.flags.has(Flags::ANY_TAG);
        let posted_open = call.flags.has(Flags::WILDCARD) && any_tag;
        if posted_open && matches!(call.class, Class::Recv | Class::Post | Class::Probe | Class::Send) {
            open.entry((rank.0, call.comm.0)).or_default().any_tag = true;
        }
        for event in full.events() {
            match event.kind {
                EventKind::Recv if event.wildcard || in_any_order || probed => {
                    let open = open.entry((rank.0, event.comm.0)).or_default();
                    open.messages += 1;
                    open.tags.insert(event.tag);
                    // What completes first need not have the tag of another.
                    open.any_tag |= in_any_order && !event.wildcard;
                }
                EventKind::Send if event.peer >= 0 => {
                    let to = (event.peer as u32, event.comm.0, event.tag);
                    *sent.entry(to).or_default().entry(site).or_default() += 1;
                }
                _ => {}
            }
        }
    }
    Ok(())
}
