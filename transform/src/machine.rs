//! A machine as trace transformation needs it (seed 000, section 4.1): what its messages, collectives and processors
//! cost. `phasecast characterize` measures it and writes it as TOML; a user may as well write one by hand.
use serde::{Deserialize, Serialize};

/// Version of the TOML form of a [`Machine`].
pub const FORMAT: u32 = 1;

/// What a machine's messages, collectives and processors cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// [`FORMAT`].
    pub format: u32,
    /// Seconds since 1970 when it was measured.
    #[serde(default)]
    pub created: u64,
    /// Where it was measured.
    pub identity: Identity,
    /// Messages by where they travel; a machine of one node has [`Place::Within`] only.
    pub links: Vec<Link>,
    /// Collectives.
    #[serde(default)]
    pub collectives: Vec<Collective>,
    /// Computation.
    #[serde(default)]
    pub kernels: Vec<Kernel>,
}

/// Where a machine was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Host names, the first rank's first.
    pub hosts: Vec<String>,
    /// Processor model.
    pub cpu: String,
    /// Logical processors of a node.
    pub cores: u32,
    /// MPI library.
    pub mpi: String,
    /// Ranks that took part.
    pub ranks: u32,
}

/// Where the two ends of a message are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// On one node.
    Within,
    /// On two nodes.
    Between,
}

/// What a message costs on its way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Where it leads.
    pub place: Place,
    /// Time of an empty message from the call of the send to the return of the waiting receive, in seconds.
    pub latency_s: f64,
    /// Bytes per second of long messages.
    pub bandwidth: f64,
    /// The longest message that leaves before its receive is posted (eager), in bytes; none if no step was found.
    pub eager_bytes: Option<u64>,
    /// Share of a long nonblocking transfer that goes on while the program computes, 0 to 1.
    pub overlap: f64,
    /// f(b): time in `MPI_Send` where the receive waits already.
    pub send: Costs,
    /// g(b): time in `MPI_Recv` where an eager message has arrived already; of rendezvous messages: where the sender waits.
    pub receive: Costs,
    /// Time in `MPI_Isend`.
    pub isend: Costs,
    /// Time in `MPI_Irecv`.
    pub irecv: Costs,
    /// Time in `MPI_Wait` for a receive whose message has arrived already.
    pub wait: Costs,
    /// Time from the call of a send to the return of the receive that waits for it: the transfer itself.
    pub transfer: Costs,
}

/// A cost over message length: points of rising length, straight lines between them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Costs(pub Vec<Cost>);

/// What one length costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Length in bytes.
    pub bytes: u64,
    /// Median time in seconds.
    pub seconds: f64,
    /// Half the distance between the quartiles, in seconds.
    #[serde(default)]
    pub spread: f64,
}

impl Costs {
    /// The time for a length, in seconds: between points a straight line, beyond the last by the slope of its last
    /// two, before the first the first's. None if there is no point.
    pub fn seconds(&self, bytes: u64) -> Option<f64> {
        let points = &self.0;
        let (first, last) = (points.first()?, points.last()?);
        if bytes <= first.bytes || points.len() == 1 {
            return Some(first.seconds);
        }
        let after = points.partition_point(|point| point.bytes < bytes).clamp(1, points.len() - 1);
        let (a, b) = (points[after - 1], points[after]);
        let slope = (b.seconds - a.seconds) / (b.bytes - a.bytes) as f64;
        let seconds = a.seconds + slope * (bytes - a.bytes) as f64;
        Some(if bytes > last.bytes { seconds.max(last.seconds) } else { seconds })
    }
}

/// What a collective costs among all ranks that took part, where they enter together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Collective {
    /// Its name: `MPI_Allreduce`.
    pub name: String,
    /// Ranks that took part.
    pub ranks: u32,
    /// From the entry of the last to the exit of the last, by the bytes that a rank contributes.
    pub costs: Costs,
}

/// A small computation that was timed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its name: `stream`, `stencil`, `dense`, `branchy`, `random`.
    pub name: String,
    /// Median time of one pass with all ranks computing, in seconds.
    pub seconds: f64,
    /// Half the distance between the quartiles, in seconds.
    #[serde(default)]
    pub spread: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_lines_between_points() {
        let cost = |bytes, seconds| Cost { bytes, seconds, spread: 0.0 };
        let costs = Costs(vec![cost(0, 1.0), cost(10, 2.0), cost(20, 4.0)]);
        for (bytes, seconds) in [(0, 1.0), (5, 1.5), (10, 2.0), (15, 3.0), (20, 4.0), (30, 6.0)] {
            assert_eq!(costs.seconds(bytes), Some(seconds));
        }
        assert_eq!(Costs(vec![cost(8, 3.0)]).seconds(100), Some(3.0));
        assert_eq!(Costs::default().seconds(1), None);
    }
}
