//! What a trace says of a program's computation and communication: for each call site the seconds that a rank computes
//! before it, and the calls with their bytes.
use crate::model::error::ModelError;
use phasecast_trace::{CallRef, Class, EventKind, Flags, Nanos, Trace};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// A place in the program that calls MPI.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// The procedure.
    pub procedure: String,
    /// Where it is called: module and offset, the same in every run of one build.
    pub at: String,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clean = |text: &str| -> String { text.chars().map(|c| if c.is_control() { '?' } else { c }).collect() };
        write!(f, "{} at {}", clean(&self.procedure), clean(&self.at))
    }
}

/// Calls of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calls {
    /// Calls of a rank: those of the rank with the most.
    pub number: f64,
    /// Bytes of that rank in all of them.
    pub bytes: f64,
}

/// What was observed at one size among so many ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Size of the problem, as the user gives it.
    pub size: f64,
    /// Ranks.
    pub ranks: u32,
    /// Where.
    pub host: String,
    /// Seconds of computation before a site, of the rank that computes longest.
    pub computing: BTreeMap<Site, f64>,
    /// Sends and collectives by site.
    pub calling: BTreeMap<Site, Calls>,
}

impl Observed {
    /// The computation of the rank that computes longest, in seconds.
    pub fn computation_s(&self) -> f64 {
        self.computing.values().sum()
    }
}

/// What a trace says; `progress` is told of ranks done, and of all. Time counts from the end of `MPI_Init`, and between the
/// calls of a rank's first thread.
///
/// # Errors
/// If the trace is damaged.
pub fn observe(trace: &Trace, size: f64, progress: &dyn Fn(u64, u64)) -> Result<Observed, ModelError> {
    let mut observed = Observed { size, ranks: trace.size(), ..Observed::default() };
    let mut longest = None;
    for rank in trace.ranks() {
        observed.host = trace.header(rank).map_or_else(String::new, |header| header.host.clone());
        // By procedure and return address.
        let mut computing: HashMap<(u32, u64), u64> = HashMap::new();
        let mut calling: HashMap<(u32, u64), Calls> = HashMap::new();
        let (mut before, mut paused): (Option<Nanos>, bool) = (None, false);
        let mut reader = trace.calls(rank);
        while let Some(call) = reader.next_call()? {
            let CallRef { call: head, .. } = call;
            if head.thread != 0 || head.flags.has(Flags::CONTINUED) {
                continue;
            }
            let key = (head.proc.0.into(), head.site);
            if let (Some(before), false) = (before, paused) {
                *computing.entry(key).or_default() += head.enter.0.saturating_sub(before.0);
            }
            paused = (paused || head.class == Class::Pause) && head.class != Class::Resume;
            before = Some(head.exit);
            for event in call.events().filter(|event| event.kind != EventKind::Recv) {
                let calls = calling.entry(key).or_default();
                calls.number += 1.0;
                calls.bytes += event.bytes as f64;
            }
        }
        let site = |(proc, at): (u32, u64)| Site {
            procedure: trace.procedures().get(proc as usize).cloned().unwrap_or_default(),
            at: trace.site(rank, at),
        };
        let total: u64 = computing.values().sum();
        if longest.is_none_or(|longest| total > longest) {
            longest = Some(total);
            observed.computing.clear();
            for (key, nanos) in computing {
                *observed.computing.entry(site(key)).or_default() += nanos as f64 * 1e-9;
            }
        }
        for (key, calls) in calling {
            let most = observed.calling.entry(site(key)).or_default();
            if calls.number > most.number || (calls.number == most.number && calls.bytes > most.bytes) {
                *most = calls;
            }
        }
        progress(u64::from(rank.0) + 1, trace.size().into());
    }
    Ok(observed)
}
