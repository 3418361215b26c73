//! What each rank of a base run took where MPI let it take whatever came first, read from its trace: so that a program
//! that goes by that does the same again in the run that saves it, and in restarts.
use crate::restart::processor;
use anyhow::Result;
use phasecast_abi::{Class as Does, Which};
use phasecast_checkpoint::Taken;
use phasecast_checkpoint::job::ReplayReport;
use phasecast_trace::model::{Call, CallRef, Class, Flags, Part, PartKind, TAG_ANY, boot_id};
use phasecast_trace::{CommId, Rank, Trace};

/// How many ranks ran on this machine, and on how many processors, where these are fewer.
pub fn crowded(reports: &[ReplayReport]) -> Option<[u32; 2]> {
    let here = boot_id();
    let ranks = reports.iter().filter(|report| report.boot_id == here).count() as u32;
    let processors = processor::count();
    (ranks > processors).then_some([ranks, processors])
}

/// What is to be told where ranks that take what was recorded share processors.
pub fn crowded_note([ranks, processors]: [u32; 2]) -> String {
    format!(
        "the program takes whatever comes first, and is restarted with what came first in the base run: where {ranks} ranks share {processors} processors, waiting for that can take longer than a run does"
    )
}

/// For each rank, what it took, in the order of its calls; none if no rank had a choice, or several threads of one had.
///
/// # Errors
/// If the trace is damaged.
pub fn recorded(trace: &Trace) -> Result<Option<Vec<Vec<Taken>>>> {
    let does: Vec<Option<Does>> = trace.procedures().iter().map(|name| does(name)).collect();
    let mut all = Vec::new();
    for rank in trace.ranks() {
        let Some(taken) = of_rank(trace, rank, &does)? else { return Ok(None) };
        all.push(taken);
    }
    Ok(all.iter().any(|taken| !taken.is_empty()).then_some(all))
}

fn does(name: &str) -> Option<Does> {
    Some(phasecast_abi::by_name(name)?.get()?.class)
}

/// None if several threads had a choice.
fn of_rank(trace: &Trace, rank: Rank, does: &[Option<Does>]) -> Result<Option<Vec<Taken>>> {
    let mut list = List::default();
    let mut thread = None;
    let mut calls = trace.calls(rank);
    while let Some(call) = calls.next_call()? {
        let before = list.taken.len();
        list.add(call, does.get(call.call.proc.index()).copied().flatten());
        if list.taken.len() > before && *thread.get_or_insert(call.call.thread) != call.call.thread {
            return Ok(None);
        }
    }
    Ok(Some(list.taken))
}

#[derive(Default)]
struct List {
    taken: Vec<Taken>,
    /// Receives from any source that are under way: place in the list, communicator, tag.
    posted: Vec<(usize, CommId, i32)>,
}

impl List {
    fn add(&mut self, CallRef { call, parts, .. }: CallRef<'_>, does: Option<Does>) {
        let Call { class, peer, comm, tag, flags, .. } = *call;
        let wild = flags.has(Flags::WILDCARD) && !flags.has(Flags::PERSISTENT);
        match class {
            Class::Probe if wild => self.taken.extend(u32::try_from(peer).ok().map(Taken::Probe)),
            Class::Post if wild && flags.has(Flags::RECV_POST) && !matches!(does, Some(Does::MatchedRecv { .. })) => {
                self.post(comm, tag);
            }
            // Of a nonblocking exchange; a blocking one has its part in this call.
            Class::Send if wild && flags.has(Flags::RECV_POST) => self.post(comm, tag),
            _ => {}
        }
        let matched = matches!(does, Some(Does::MatchedRecv { .. }));
        let chooses = matches!(does, Some(Does::Completion { which: Which::Any | Which::Some, .. }));
        for part in parts.iter().filter(|part| part.kind == PartKind::Recv) {
            let cancelled = part.flags.has(Flags::CANCELLED);
            let source = u32::try_from(part.peer).ok().filter(|_| !cancelled);
            if part.flags.has(Flags::WILDCARD) && !part.flags.has(Flags::PERSISTENT) {
                match class {
                    Class::Recv | Class::Send if !matched => self.taken.push(Taken::Receive(source)),
                    Class::Recv | Class::Send => {}
                    _ => self.complete(part, source),
                }
            }
            // Of a persistent receive from any rank nobody knows before which message it will take.
            let known = !(part.flags.has(Flags::WILDCARD) && part.flags.has(Flags::PERSISTENT));
            if let Some(source) = source.filter(|_| chooses && known) {
                self.taken.push(Taken::Completion(source, part.tag));
            }
        }
    }

    fn post(&mut self, comm: CommId, tag: i32) {
        self.posted.push((self.taken.len(), comm, tag));
        self.taken.push(Taken::Receive(None));
    }

    /// The first receive that was posted and could take this message did.
    fn complete(&mut self, part: &Part, source: Option<u32>) {
        let fits = |&(_, comm, tag): &(usize, CommId, i32)| comm == part.comm && (tag == part.tag || tag == TAG_ANY);
        if let Some(at) = self.posted.iter().position(fits) {
            self.taken[self.posted.remove(at).0] = Taken::Receive(source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phasecast_trace::model::PEER_ANY;

    const WILD: Flags = Flags::WILDCARD;

    fn call(class: Class, flags: Flags, peer: i32, tag: i32) -> Call {
        Call { class, flags, peer, tag, ..Call::BLANK }
    }

    fn received(flags: Flags, peer: i32, tag: i32) -> Part {
        Part { kind: PartKind::Recv, flags, peer, tag, bytes: 8, comm: CommId(0) }
    }

    fn taken(calls: &[(Call, &[Part], &str)]) -> Vec<Taken> {
        let mut list = List::default();
        calls.iter().for_each(|(call, parts, name)| list.add(CallRef { call, parts, counts: None }, does(name)));
        list.taken
    }

    #[test]
    fn a_posted_receive_takes_its_place_among_the_posts() {
        let post = |tag| (call(Class::Post, WILD.with(Flags::RECV_POST), PEER_ANY, tag), &[][..], "MPI_Irecv");
        let wait = call(Class::Complete, Flags(0), 0, 0);
        let parts = [received(WILD, 3, 7), received(WILD, 1, 5), received(Flags(0), 2, 5)];
        let direct = [received(WILD, 4, 9)];
        let list = taken(&[
            post(5),
            post(TAG_ANY),
            post(5),
            (call(Class::Recv, WILD, PEER_ANY, 9), &direct, "MPI_Recv"),
            (wait, &parts, "MPI_Waitall"),
            (wait, &[received(WILD.with(Flags::CANCELLED), PEER_ANY, 5)], "MPI_Wait"),
        ]);
        assert_eq!(list, [Some(1), Some(3), None, Some(4)].map(Taken::Receive));
    }

    #[test]
    fn probes_and_choices_are_taken_too() {
        let test = call(Class::Complete, Flags(0), 0, 0);
        let persistent = [received(WILD.with(Flags::PERSISTENT), 1, 2)];
        let list = taken(&[
            (call(Class::Probe, WILD, PEER_ANY, TAG_ANY), &[], "MPI_Iprobe"),
            (call(Class::Probe, WILD, 6, TAG_ANY), &[], "MPI_Iprobe"),
            (call(Class::Recv, Flags(0), 6, 1), &[received(Flags(0), 6, 1)], "MPI_Recv"),
            (call(Class::Probe, WILD, 7, TAG_ANY), &[], "MPI_Mprobe"),
            (call(Class::Recv, WILD, PEER_ANY, TAG_ANY), &[received(WILD, 7, 1)], "MPI_Mrecv"),
            (test, &[], "MPI_Testany"),
            (test, &[received(Flags(0), 2, 3), received(Flags(0), 1, 4)], "MPI_Testsome"),
            (test, &persistent, "MPI_Waitall"),
        ]);
        use Taken::{Completion, Probe};
        assert_eq!(list, [Probe(6), Probe(7), Completion(2, 3), Completion(1, 4)]);
    }
}
