//! The execution graph in numbers.
use super::walk::{Earlier, Loose, Member, Vertex, Visit, walk};
use super::{EventId, GraphError};
use phasecast_trace::{EventKind, Trace};
use serde::Serialize;

/// The graph in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Vertices.
    pub events: u64,
    /// Of them sends.
    pub sends: u64,
    /// Receives.
    pub receives: u64,
    /// Of them from any source.
    pub wildcards: u64,
    /// Members of collectives.
    pub members: u64,
    /// Edges from an event to the next of its task.
    pub program_edges: u64,
    /// Edges from a send to its receive.
    pub message_edges: u64,
    /// Collectives that join their members.
    pub joins: u64,
    /// Vertices of the longest chain.
    pub longest_chain: u64,
    /// What has no partner.
    pub unmatched: Loose,
}

/// Counts.
///
/// # Errors
/// If the trace is damaged.
pub fn count(trace: &Trace, progress: &dyn Fn(u64)) -> Result<Counts, GraphError> {
    let mut counts = Counts::default();
    counts.unmatched = walk(trace, &mut counts, progress)?;
    Ok(counts)
}

/// A mark is the length of the longest chain that ends there.
impl Visit for Counts {
    type Mark = u64;

    fn vertex(
        &mut self,
        vertex: &Vertex,
        previous: Earlier<'_, u64>,
        sent: Earlier<'_, u64>,
    ) -> Result<u64, GraphError> {
        self.events += 1;
        match vertex.event.kind {
            EventKind::Send => self.sends += 1,
            EventKind::Recv => self.receives += 1,
            EventKind::Collective => self.members += 1,
        }
        self.wildcards += u64::from(vertex.event.kind == EventKind::Recv && vertex.event.wildcard);
        self.program_edges += u64::from(previous.is_some());
        self.message_edges += u64::from(sent.is_some());
        let chain = previous.into_iter().chain(sent).map(|(_, chain)| *chain).max().unwrap_or(0) + 1;
        self.longest_chain = self.longest_chain.max(chain);
        Ok(chain)
    }

    fn join(&mut self, members: &[Member<u64>]) -> Result<Vec<u64>, GraphError> {
        self.events += members.len() as u64;
        self.members += members.len() as u64;
        self.joins += 1;
        self.program_edges += members.iter().filter(|(_, previous)| previous.is_some()).count() as u64;
        let chain = members.iter().filter_map(|(_, previous)| Some(previous.as_ref()?.1)).max().unwrap_or(0) + 1;
        self.longest_chain = self.longest_chain.max(chain);
        Ok(vec![chain; members.len()])
    }

    fn late(&mut self, _: EventId, _: EventId) -> Result<(), GraphError> {
        self.message_edges += 1;
        Ok(())
    }
}
