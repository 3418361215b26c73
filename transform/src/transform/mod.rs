//! Trace transformation (seed 000, section 4): from the trace of a run on one machine, and the costs of both, the trace
//! of the run on the other.
//!
//! * [`rules`]: the seed's rules for computation, sends and receives, and what is carried over of what they leave open
//! * [`wire`], [`calendar`]: contention, and stops of the target's ranks; both beyond the seed
//! * [`tariff`], [`roles`]: costs by length; what each procedure does
//! * [`ratio`]: K, one number or one for each region
//! * [`survey`], [`stream`], [`walk`], [`output`]: a first pass; then all ranks together, in the order of target times
//! * [`answer`], [`table`]: the prediction; predicted against observed, the seed's Table 2
pub mod answer;
pub mod calendar;
pub mod error;
pub mod output;
pub mod ratio;
pub mod roles;
pub mod rules;
pub mod stream;
pub mod survey;
pub mod table;
pub mod tariff;
pub mod walk;
pub mod wire;

pub use error::TransformError;
pub use phasecast_analyzer::parallel::Progress;
pub use ratio::{Origin, Ratios, Region};
pub use table::{Row, observed};
pub use walk::{Counted, Totals};

use crate::machine::{Machine, Place, STOPPED, Stops};
use output::Output;
use phasecast_analyzer::parallel::Stage;
use phasecast_trace::{Rank, Trace};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;
use tariff::{Tariff, Way};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// One ratio of processor speeds, if the user gives it.
    pub ratio: Option<f64>,
    /// A smaller run on base and target, to derive ratios from.
    pub small: Option<[&'a Trace; 2]>,
    /// Whether transfers under way at the same time share a link.
    pub contention: bool,
    /// Threads to work with; the result does not depend on them.
    pub threads: usize,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        Settings { ratio: None, small: None, contention: true, threads }
    }
}

/// What came out, besides the trace.
#[derive(Debug)]
pub struct Outcome {
    /// Run time on the target, in seconds: from the start of the first process to the end of the last.
    pub run_s: f64,
    /// K.
    pub ratios: Ratios,
    /// What K may be off, as a share.
    pub uncertain: f64,
    /// Where each rank's time goes.
    pub totals: Vec<Totals>,
    /// What the walk counted.
    pub counted: Counted,
    /// What was assumed, and what the user should know.
    pub notes: Vec<String>,
    /// How long the transformation took, in seconds.
    pub took_s: f64,
}

/// Transforms `trace`, recorded on `base`, into the trace of the run on `target`, and writes that to `path`.
///
/// # Errors
/// If a machine lacks what is needed, the trace is damaged, or the new one cannot be written.
pub fn transform(
    trace: &Trace,
    base: &Machine,
    target: &Machine,
    settings: &Settings<'_>,
    path: &Path,
    progress: Progress<'_>,
) -> Result<Outcome, TransformError> {
    let begun = Instant::now();
    let items = trace.items().max(1);
    let given_ratio = settings.ratio.map(Ratios::given).transpose()?;
    let on_target = target_nodes(trace.size(), target);
    // Where communication takes no time in the trace, it does not matter between which nodes it was.
    let on_base = if trace.is_of_computing() { on_target.clone() } else { base_nodes(trace) };
    let nodes = [on_base, on_target];
    let tariff = Tariff::new(base, target, &ways(&nodes))?;
    let kernels = match (&given_ratio, settings.small) {
        (None, None) => Some(Ratios::kernels(base, target)?),
        _ => None,
    };
    let roles = roles::roles(trace);
    let stage = Stage::new(progress, 0, 2 * items);
    let survey = survey::survey(trace, &roles, settings.threads, settings.small.is_some(), &stage)?;
    let ratios = match (given_ratio.or(kernels), settings.small) {
        (Some(ratios), _) => ratios,
        (None, Some(small)) => Ratios::runs(small, trace, &survey, settings.threads)?,
        (None, None) => return Err(TransformError::NoRatio),
    };
    let timed = !trace.is_of_computing();
    // Small runs have had their stops on the target, and those of the base are in a trace of wall time.
    let stopped = base.stops.as_ref().filter(|_| timed).map_or(0.0, Stops::share);
    let more = |stops: &&Stops| settings.small.is_none() && (stopped == 0.0 || stops.share() > stopped + STOPPED);
    let stops = target.stops.as_ref().filter(more);
    let calendar = stops.map(calendar::Calendar::new);
    let contention = settings.contention.then(|| [contention(base), contention(target)]);
    let given = walk::Given {
        trace,
        roles: &roles,
        ratios: &ratios,
        survey: &survey,
        nodes: [&nodes[0], &nodes[1]],
        apart: [apart(&nodes[0]), apart(&nodes[1])],
        contention,
        timed,
        one_clock: timed && nodes[0].windows(2).all(|two| two[0] == two[1]),
        calendar: calendar.as_ref(),
        free: if stops.is_some() { 1.0 - stopped } else { 1.0 },
    };
    let stage = Stage::new(progress, items, 2 * items);
    let calls = &|calls: u64| stage.tell(calls.min(items));
    let walked = std::thread::scope(|scope| {
        let scope = (settings.threads > 1).then_some(scope);
        let (used, spare) = crossbeam_channel::unbounded();
        let mut output = Output::create(path, trace, target, &nodes[1], used, scope)?;
        let walked = stream::with_supply(trace, settings.threads, &spare, |supply| {
            walk::walk(&given, tariff, supply, &mut output, calls)
        })?;
        output.finish(trace, &walked.ends)?;
        Ok::<_, TransformError>(walked)
    })?;
    progress(2 * items, 2 * items);
    let starts = output::starts(trace);
    let first = starts.iter().copied().fold(f64::INFINITY, f64::min);
    let last = walked.ends.iter().copied().fold(0.0, f64::max);
    let mut notes = notes(trace, &survey, &walked, &ratios);
    notes.extend(placed([&base_nodes(trace), &nodes[1]], target));
    if stopped > 0.0 {
        notes.push(match stops {
            None => "ranks are stopped on the base: what that added to its run stays in the predicted one".into(),
            Some(_) => format!("ranks are stopped for {:.0} % of the time on the base: their computation is taken to be shorter by that, as if the traced run had been stopped as much", 100.0 * stopped),
        });
    }
    if let Some(stops) = stops {
        notes.push(format!(
            "ranks are stopped for {:.0} % of the time on the target, as watched for {} s: runs differ by how their stops meet",
            100.0 * stops.share(),
            stops.span_s
        ));
    }
    if target.life.is_none() {
        notes.push(
            "the target's machine file does not say how long its launcher takes: start-up is not in the predicted time"
                .into(),
        );
    }
    Ok(Outcome {
        run_s: (last - first.min(last)) * 1e-9,
        uncertain: ratios.uncertain,
        ratios,
        totals: walked.totals,
        counted: walked.counted,
        notes,
        took_s: begun.elapsed().as_secs_f64(),
    })
}

/// The node of each rank in the run: ranks on one host share a clock.
fn base_nodes(trace: &Trace) -> Vec<u32> {
    let mut known: BTreeMap<(String, String), u32> = BTreeMap::new();
    trace
        .ranks()
        .map(|rank: Rank| {
            let host = trace.header(rank).map(|h| (h.host.clone(), h.boot_id.clone())).unwrap_or_default();
            let next = known.len() as u32;
            *known.entry(host).or_insert(next)
        })
        .collect()
}

/// The node of each rank on the target: in blocks over the hosts of its machine file, or over as many nodes as ranks need
/// processors where those are more. Where it does not say what messages between nodes cost there is but one.
fn target_nodes(ranks: u32, target: &Machine) -> Vec<u32> {
    let mut hosts: Vec<&String> = target.identity.hosts.iter().collect();
    hosts.sort_unstable();
    hosts.dedup();
    let needed = if target.identity.cores > 0 { ranks.div_ceil(target.identity.cores) } else { 1 };
    let between = target.link(Place::Between).is_some();
    let count = if between { (hosts.len() as u32).max(needed).clamp(1, ranks.max(1)) } else { 1 };
    let share = ranks.div_ceil(count).max(1);
    (0..ranks).map(|rank| rank / share).collect()
}

/// What the user should know of the nodes that ranks are on.
fn placed(nodes: [&[u32]; 2], target: &Machine) -> Option<String> {
    let count = |of: &[u32]| of.iter().max().map_or(1, |most| most + 1);
    let (ranks, cores, on) = (nodes[1].len() as u32, target.identity.cores, count(nodes[1]));
    if on == 1 && cores > 0 && ranks > cores {
        return Some(format!(
            "the target's machine file has one node with {cores} processors for {ranks} ranks: each rank counts as if it had one. \
             Characterise two nodes to have the ranks placed on as many as they need"
        ));
    }
    let measured = target.identity.hosts.iter().collect::<std::collections::BTreeSet<_>>().len() as u32;
    let told = if on > measured.max(1) {
        format!(
            "the target's machine file has {measured} nodes, and {ranks} ranks need {on}: ranks are placed on them in blocks"
        )
    } else {
        format!("the target has {on} nodes in its machine file: ranks are placed on them in blocks")
    };
    (count(nodes[0]) != on).then_some(told)
}

/// Whether there are several ranks, and each is alone on its node.
fn apart(nodes: &[u32]) -> bool {
    nodes.len() > 1 && nodes.iter().collect::<std::collections::BTreeSet<_>>().len() == nodes.len()
}

/// Which ways messages can travel.
fn ways(nodes: &[Vec<u32>; 2]) -> Vec<Way> {
    let both = |of: &[u32]| {
        let mut places = vec![Place::Within];
        if of.iter().any(|node| *node != 0) {
            places.push(Place::Between);
        }
        if apart(of) { vec![Place::Between] } else { places }
    };
    let (base, target) = (both(&nodes[0]), both(&nodes[1]));
    base.iter().flat_map(|&base| target.iter().map(move |&target| Way { base, target })).collect()
}

/// Transfers that share a link's bandwidth: two of them take twice as long as one.
const SHARED: f64 = 2.0;

/// What further transfers cost each other, within a node and between nodes. What is measured between nodes is of two
/// messages that go opposite ways; those of one direction share the link's bandwidth, whatever that says.
fn contention(machine: &Machine) -> [f64; 2] {
    [machine.link(Place::Within).and_then(|link| link.contention).unwrap_or(SHARED), SHARED]
}

fn notes(trace: &Trace, survey: &survey::Survey, walked: &walk::Walked, ratios: &Ratios) -> Vec<String> {
    let mut notes: Vec<String> = ratios.note.iter().cloned().collect();
    let counted = &walked.counted;
    let mut say = |count: u64, words: &str| {
        if count > 0 {
            notes.push(format!("{count} {words}"));
        }
    };
    say(counted.unmatched_receives, "receives have no recorded send: their messages count as there in time");
    say(survey.differences.unmatched.0, "sends have no recorded receive: they count as not waited for");
    say(
        counted.early,
        "messages were received before they were sent by the clocks of the base run: on the target they are not",
    );
    say(counted.given_up, "waits that tables or requests suggested were given up, as the run would have stood still");
    say(counted.gone, "collectives miss ranks whose recording breaks off: the others do not wait for those");
    say(counted.wild_probes, "probes for any message keep the time they took on the base");
    say(survey.one_sided, "one-sided calls keep the time they took on the base");
    say(survey.io, "I/O calls keep the time they took on the base");
    say(survey.pauses, "pauses of the recording count as computation");
    if !walked.missing.is_empty() {
        notes.push(format!(
            "a machine file has no costs of {}: they are taken from its messages",
            walked.missing.join(", ")
        ));
    }
    let unmatched = survey.balance.iter().filter(|balance| **balance == survey::Balance::Uneven).count();
    if unmatched > 0 {
        notes.push(format!(
            "on {unmatched} communicators not all members are in as many collectives: those keep their own time"
        ));
    }
    let cut: Vec<String> = trace
        .ranks()
        .filter_map(|rank| trace.cut_reason(rank).map(|reason| format!("{rank} ({reason})")))
        .take(4)
        .collect();
    if !cut.is_empty() {
        notes.push(format!("the trace breaks off on ranks {}: the predicted one ends there too", cut.join(", ")));
    }
    notes
}
