//! From a trace to the logical trace (seed 002, sections 2 and 3), in passes over the ranks, each of them in parallel:
//!
//! 1. [`survey`]: sizes, tags and communicators of all ranks ([`sizes`], [`groups`])
//! 2. [`stretches`], where calls took what came first: what differs in its order only
//! 3. [`classes`]: acts as symbols ([`symbols`]); ranks with the same sequence are a class, which is folded into loops
//! 4. [`measure`]: times and sizes of all ranks of a class, at their places in the nest ([`spread`])
//!
//! [`mod@walk`] says what the acts of a rank are, and what is computation and what is waiting; [`requests`] and
//! [`roles`] serve it. The computation between two calls is no part of a symbol: near-equal times do not break loops.
//! Memory holds one sequence a thread, four bytes a call, and one nest a class.
pub mod acts;
pub mod classes;
pub mod groups;
pub mod measure;
pub mod requests;
pub mod roles;
pub mod sizes;
pub mod spread;
pub mod stretches;
pub mod survey;
pub mod symbols;
pub mod walk;

use crate::compress::Method;
use crate::error::{SkeletonError, TooLong};
use crate::logical::LogicalTrace;
use crate::nest::Node;
use crate::topology::{Directions, Recognition};
use phasecast_analyzer::parallel::{Progress, Stage};
use phasecast_trace::{Rank, Trace};
use stretches::Orders;

/// How the logical trace is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How loops are found.
    pub method: Method,
    /// Threads; the result does not depend on them.
    pub threads: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { method: Method::Greedy, threads: std::thread::available_parallelism().map_or(1, |n| n.get()) }
    }
}

/// Makes the logical trace of a run, whose messages go in these directions.
///
/// # Errors
/// If a rank is missing or was cut off, a file is damaged, a rank has more than 65536 requests at a time, or more than
/// [`MOST_CALLS`](crate::error::MOST_CALLS) calls do not repeat.
pub fn logical_trace(
    trace: &Trace,
    recognition: &Recognition,
    directions: &Directions,
    settings: &Settings,
    progress: Progress<'_>,
) -> Result<LogicalTrace, SkeletonError> {
    let items = trace.items().max(1);
    let threads = settings.threads;
    let [first, second, third, last] = [0, 1, 2, 3].map(|pass| Stage::new(progress, pass * items, 4 * items));
    let survey = survey::survey(trace, threads, &first)?;
    let orders = match survey.met.iter().any(|met| met.as_it_comes > 0) {
        true => Orders::find(trace, &survey, directions, threads, &second)?,
        false => Orders::default(),
    };
    let classes = classes::classes(trace, &survey, directions, &orders, settings.method, threads, &third)?;
    // Before what is measured of each is held in memory.
    TooLong::refuse(classes.all.iter().map(|class| class.nest.iter().map(Node::written).sum()))
        .map_err(|of| SkeletonError::TooLong { path: trace.path().to_owned(), of })?;
    let (measured, counted) = measure::measure(trace, &survey, &classes, threads, &last)?;
    let header = trace.header(Rank(0));
    let mut left_out = survey.left_out;
    if classes.undirected > 0 {
        left_out.push(format!("{} messages between ranks that no direction joins are left out", classes.undirected));
    }
    let (moved, stretches) = orders.moved();
    if moved > 0 {
        left_out.push(format!(
            "in {moved} of {stretches} stretches between collectives calls took what came first in another order than in \
             most that are like them: they stand in that order"
        ));
    }
    if measured.iter().all(|class| class.body.iter().all(|node| matches!(node, Node::Item(_)))) {
        left_out.push("nothing repeats in this trace: the skeleton has no loop that could be shortened".into());
    }
    if trace.size() == 1 {
        left_out.push("there is one rank: the skeleton computes and talks to nobody".into());
    }
    progress(4 * items, 4 * items);
    Ok(LogicalTrace {
        program: header.map(|h| h.program.clone()).unwrap_or_default(),
        args: header.map(|h| h.args.clone()).unwrap_or_default(),
        ranks: trace.size(),
        run_ns: survey.met.iter().map(|met| met.span.1 - met.span.0).max().unwrap_or(0),
        topology: recognition.name.clone().filter(|_| recognition.topology.is_some()),
        directions: directions.all.clone(),
        groups: survey.groups.all,
        classes: measured,
        left_out,
        counted,
    })
}
