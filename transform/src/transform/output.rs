//! The predicted trace on its way to its files: blocks of calls, encoded beside the walk, whose memory is used again.
use crate::machine::Machine;
use crate::transform::error::TransformError;
use crate::transform::stream::Block;
use crossbeam_channel::Sender;
use phasecast_trace::model::{ClockStart, Ending, RankHeader, Trailer};
use phasecast_trace::writer::{RankWriter, TraceWriter};
use phasecast_trace::{Rank, Trace, TraceError};
use std::path::Path;
use std::thread::{Scope, ScopedJoinHandle};

/// Blocks that wait to be written.
const WAITING: usize = 64;

/// The predicted trace.
pub struct Output<'scope> {
    trace: Option<TraceWriter>,
    to: To<'scope>,
}

enum To<'scope> {
    Here(Vec<RankWriter>, Sender<Block>),
    Thread(Sender<(usize, Block)>, ScopedJoinHandle<'scope, Result<Vec<RankWriter>, TraceError>>),
}

/// When the ranks' processes start, in ns from the origin of the trace.
pub fn starts(trace: &Trace) -> Vec<f64> {
    trace.ranks().map(|rank| trace.span(rank).0.0 as f64).collect()
}

impl<'scope> Output<'scope> {
    /// Begins the predicted trace at `path`; with `scope`, a thread of its own writes it. Blocks that are written are
    /// emptied and `used`.
    ///
    /// # Errors
    /// If there is something of that name, or it cannot be written.
    pub fn create<'env>(
        path: &Path,
        base: &Trace,
        target: &Machine,
        nodes: &[u32],
        used: Sender<Block>,
        scope: Option<&'scope Scope<'scope, 'env>>,
    ) -> Result<Output<'scope>, TransformError> {
        let trace = TraceWriter::create(path)?;
        let mut writers = Vec::new();
        for rank in base.ranks() {
            let mut writer = trace.rank(&header(base, rank, target, nodes))?;
            writer.comms(&base.comms_of(rank))?;
            writers.push(writer);
        }
        let to = match scope {
            None => To::Here(writers, used),
            Some(scope) => {
                let (sender, blocks) = crossbeam_channel::bounded(WAITING);
                let thread = scope.spawn(move || {
                    for (rank, block) in blocks {
                        write(&mut writers[rank], block, &used)?;
                    }
                    Ok(writers)
                });
                To::Thread(sender, thread)
            }
        };
        Ok(Output { trace: Some(trace), to })
    }

    /// Appends calls of a rank, with their times on the target.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn push(&mut self, rank: usize, block: Block) -> Result<(), TransformError> {
        match &mut self.to {
            To::Here(writers, used) => write(&mut writers[rank], block, used)?,
            To::Thread(sender, _) => {
                // The thread has gone only with an error, which finish() tells.
                let _ = sender.send((rank, block));
            }
        }
        Ok(())
    }

    /// Completes the trace; `ends` says when each rank ends, in ns from the origin.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self, base: &Trace, ends: &[f64]) -> Result<(), TransformError> {
        let writers = match self.to {
            To::Here(writers, _) => writers,
            To::Thread(sender, thread) => {
                drop(sender);
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?
            }
        };
        for (writer, (rank, end)) in writers.into_iter().zip(base.ranks().zip(ends)) {
            let known = base.trailer(rank);
            let ending = known.map_or_else(|| Ending::Stopped(cut(base, rank)), |trailer| trailer.ending.clone());
            let modules = known.map(|trailer| trailer.modules.clone()).unwrap_or_default();
            writer.finish(Trailer { ending, calls: 0, end_units: end.round() as u64, own_ns: 0, modules })?;
        }
        if let Some(trace) = self.trace.take() {
            trace.finish()?;
        }
        Ok(())
    }
}

fn cut(base: &Trace, rank: Rank) -> String {
    let reason = base.cut_reason(rank).unwrap_or_else(|| "it breaks off".into());
    format!("the trace that was transformed breaks off here: {reason}")
}

fn write(writer: &mut RankWriter, mut block: Block, used: &Sender<Block>) -> Result<(), TraceError> {
    for (at, call) in block.calls.iter().enumerate() {
        writer.thread(call.thread)?;
        writer.push(call, block.parts(at))?;
    }
    block.clear();
    // Nobody wants it at the end.
    let _ = used.send(block);
    Ok(())
}

fn header(base: &Trace, rank: Rank, target: &Machine, nodes: &[u32]) -> RankHeader {
    let start = base.span(rank).0.0;
    let far = start + (1 << 30);
    let node = nodes.get(rank.index()).copied().unwrap_or(0);
    let mut hosts: Vec<&String> = Vec::new();
    for host in &target.identity.hosts {
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    let host = hosts.get(node as usize).map_or_else(String::new, |host| (*host).clone());
    let old = base.header(rank);
    let text = |of: fn(&RankHeader) -> String| old.map(of).unwrap_or_default();
    RankHeader {
        rank: rank.0,
        size: base.size(),
        boot_id: format!("predicted-{node}"),
        host,
        pid: 0,
        program: text(|h| h.program.clone()),
        args: old.map(|h| h.args.clone()).unwrap_or_default(),
        mpi: target.identity.mpi.clone(),
        abi: text(|h| h.abi.clone()),
        writer: concat!("phasecast transform ", env!("CARGO_PKG_VERSION")).into(),
        clock: ClockStart {
            tsc: false,
            shift: 0,
            units: start,
            monotonic_ns: start,
            realtime_ns: start,
            later: (far, far),
        },
        procedures: base.procedures().to_vec(),
    }
}
