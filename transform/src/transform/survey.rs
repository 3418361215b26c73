//! The first pass over a trace: what must be known of all ranks before the first of them is transformed.
use crate::transform::error::TransformError;
use crate::transform::roles::Role;
use phasecast_analyzer::matching::FastMap;
use phasecast_analyzer::parallel::{self, Stage};
use phasecast_analyzer::peers::{Differences, Messages, differences};
use phasecast_trace::reader::Whole;
use phasecast_trace::{Call, Class, EventKind, Rank, Trace};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::Ordering;

/// Whether the members of a communicator took part in the same number of collectives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// All of them.
    Even,
    /// Those that were cut off in fewer: the others go on without them.
    Cut,
    /// No (a constructor that only some call, a pause): they cannot be matched.
    #[default]
    Uneven,
}

/// What the first pass found.
#[derive(Debug, Default)]
pub struct Survey {
    /// For each communicator, whether all its members took part in the same number of collectives.
    pub balance: Vec<Balance>,
    /// How what was sent differs from what was received.
    pub differences: Differences,
    /// Call sites with their procedures, by rank; empty unless asked for.
    pub sites: Vec<BTreeSet<(u16, u64)>>,
    /// Calls that are not transformed but kept as they are.
    pub one_sided: u64,
    /// The same of MPI-IO.
    pub io: u64,
    /// Pauses of the recording.
    pub pauses: u64,
    /// Whether all ranks called `MPI_Init` once, and `MPI_Finalize`, but for those that were cut off before.
    pub life: [bool; 2],
    /// The highest number of a thread of each rank.
    pub threads: Vec<u16>,
}

#[derive(Default)]
struct Counts {
    collectives: FastMap<u32, u64>,
    messages: Messages,
    sites: HashSet<(u16, u64)>,
    one_sided: u64,
    io: u64,
    pauses: u64,
    life: [u64; 2],
    threads: u16,
}

impl Counts {
    /// Takes in so many calls.
    fn call(&mut self, call: &Call, times: u64, roles: &[Role], sites: bool) {
        self.threads = self.threads.max(call.thread);
        match call.class {
            Class::Rma => self.one_sided += times,
            Class::Io => self.io += times,
            Class::Pause => self.pauses += times,
            Class::Setup => {
                if let Some(life) = roles[call.proc.index()].life {
                    self.life[life as usize] += times;
                }
            }
            _ => {}
        }
        if sites {
            self.sites.insert((call.proc.0, call.site));
        }
    }
}

/// Makes the first pass; call sites are collected if asked for.
///
/// # Errors
/// If a rank's file is missing or damaged.
pub fn survey(
    trace: &Trace,
    roles: &[Role],
    threads: usize,
    sites: bool,
    stage: &Stage<'_>,
) -> Result<Survey, TransformError> {
    if let Some(rank) = trace.ranks().find(|rank| trace.header(*rank).is_none()) {
        let reason = trace.cut_reason(rank).unwrap_or_default();
        return Err(TransformError::Missing { path: trace.path().to_owned(), rank: rank.0, reason });
    }
    let ranks = trace.size() as usize;
    let counts = parallel::map(ranks, threads, stage, |rank, done| {
        let mut counts = Counts { messages: Messages::new(ranks), ..Counts::default() };
        let mut told = 0u64;
        trace.view(Rank(rank as u32)).tally(|shape, times| {
            let (event, peer, comm, tag, bytes) = match shape {
                Whole::Call(call) => {
                    counts.call(call, times, roles, sites);
                    told += times;
                    (call.event(), call.peer, call.comm, call.tag, call.bytes)
                }
                Whole::Part(part) => (part.event(), part.peer, part.comm, part.tag, part.bytes),
            };
            match event {
                Some(EventKind::Collective) => *counts.collectives.entry(comm.0).or_default() += times,
                Some(EventKind::Send) => counts.messages.sent.add(peer, times, comm.0, tag, bytes),
                Some(EventKind::Recv) => counts.messages.received.add(peer, times, comm.0, tag, bytes),
                None => {}
            }
            if told >= 1 << 14 {
                done.fetch_add(std::mem::take(&mut told), Ordering::Relaxed);
            }
        })?;
        Ok::<_, phasecast_analyzer::AnalyzeError>(counts)
    })?;
    Ok(merge(trace, &counts))
}

fn merge(trace: &Trace, counts: &[Counts]) -> Survey {
    let cut: Vec<bool> = trace.ranks().map(|rank| trace.cut_reason(rank).is_some()).collect();
    let balance = trace.comms().iter().enumerate().map(|(id, comm)| {
        let of = |rank: &u32| counts.get(*rank as usize).and_then(|c| c.collectives.get(&(id as u32))).copied();
        let members = || comm.members.iter().chain(&comm.remote);
        let is_cut = |rank: &u32| cut.get(*rank as usize).copied().unwrap_or(false);
        let most = members().find(|rank| !is_cut(rank)).map_or_else(|| members().map(of).max().flatten(), of);
        if members().all(|rank| of(rank) == most) {
            Balance::Even
        } else if members().all(|rank| of(rank) == most || is_cut(rank) && of(rank) < most) {
            Balance::Cut
        } else {
            Balance::Uneven
        }
    });
    let differences = differences(counts.iter().map(|c| &c.messages));
    let mut survey = Survey { balance: balance.collect(), differences, ..Survey::default() };
    for own in counts {
        survey.one_sided += own.one_sided;
        survey.io += own.io;
        survey.pauses += own.pauses;
    }
    survey.threads = counts.iter().map(|c| c.threads).collect();
    let called =
        |which: usize| counts.iter().zip(&cut).all(|(c, cut)| c.life[which] == 1 || *cut && c.life[which] == 0);
    survey.life = [0, 1].map(called);
    survey.sites = counts.iter().map(|c| c.sites.iter().copied().collect()).collect();
    survey
}

/// Numbers for the call sites of a trace that are the same on all ranks: their names (`module+0xoffset`) in the order of
/// modules and offsets, each with its procedure.
#[derive(Debug)]
pub struct Sites {
    /// By rank: procedure and address to number.
    pub numbers: Vec<FastMap<(u16, u64), u32>>,
    /// Procedure and name of each number.
    pub names: Vec<(String, String)>,
}

/// Where a call stands: module, offset, procedure.
type Place = (String, u64, String);

impl Sites {
    /// Numbers the sites that a survey found.
    pub fn new(trace: &Trace, survey: &Survey) -> Sites {
        let mut ordered: BTreeMap<Place, Vec<(u32, u16, u64)>> = BTreeMap::new();
        for (rank, sites) in survey.sites.iter().enumerate() {
            for &(proc, site) in sites {
                let name = trace.site(Rank(rank as u32), site);
                let (module, offset) = name.split_once("+0x").unwrap_or(("", name.trim_start_matches("0x")));
                let offset = u64::from_str_radix(offset, 16).unwrap_or(0);
                let procedure = trace.procedures().get(usize::from(proc)).cloned().unwrap_or_default();
                ordered.entry((module.to_owned(), offset, procedure)).or_default().push((rank as u32, proc, site));
            }
        }
        let mut sites = Sites { numbers: (0..trace.size()).map(|_| FastMap::default()).collect(), names: Vec::new() };
        for ((module, offset, procedure), uses) in ordered {
            let number = sites.names.len() as u32;
            sites.names.push((procedure, format!("{module}+{offset:#x}")));
            for (rank, proc, site) in uses {
                sites.numbers[rank as usize].insert((proc, site), number);
            }
        }
        sites
    }

    /// For each site of `self` that of `other` which is the same place in the source: of the same name, or, where both
    /// have the same procedures in the same order of addresses (the same program built for another MPI or with another
    /// problem size), the one in its place.
    pub fn same_in(&self, other: &Sites) -> Vec<Option<u32>> {
        let procedures = |sites: &Sites| sites.names.iter().map(|n| n.0.clone()).collect::<Vec<_>>();
        if procedures(self) == procedures(other) {
            return (0..self.names.len() as u32).map(Some).collect();
        }
        let by_name: FastMap<&(String, String), u32> =
            other.names.iter().enumerate().map(|(n, name)| (name, n as u32)).collect();
        self.names.iter().map(|name| by_name.get(name).copied()).collect()
    }
}
