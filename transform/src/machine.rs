//! A machine as trace transformation needs it (seed 000, section 4.1): what its messages, collectives and processors
//! cost. `phasecast characterize` measures it and writes it as TOML; a user may as well write one by hand.
mod changes;
mod file;
mod ratio;
mod stops;
mod text;

pub use changes::{Change, changes};
pub use file::MachineError;
pub use ratio::{Ratio, ratio};
pub use stops::{STOPPED, Stops};

use serde::{Deserialize, Serialize};

/// Version of the TOML form of a [`Machine`].
pub const FORMAT: u32 = 1;

/// What a machine's messages, collectives and processors cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// [`FORMAT`].
    pub format: u32,
    /// Seconds since 1970 when it was measured.
    #[serde(default)]
    pub created: u64,
    /// Where it was measured.
    #[serde(default)]
    pub identity: Identity,
    /// Starting and ending a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<Life>,
    /// Messages by where they travel; a machine of one node has [`Place::Within`] only.
    #[serde(default)]
    pub links: Vec<Link>,
    /// Collectives.
    #[serde(default)]
    pub collectives: Vec<Collective>,
    /// Computation.
    #[serde(default)]
    pub kernels: Vec<Kernel>,
    /// When ranks are kept from computing, where that is often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stops: Option<Stops>,
}

impl Machine {
    /// A machine of which nothing is known.
    pub fn empty() -> Machine {
        Machine {
            format: FORMAT,
            created: 0,
            identity: Identity::default(),
            life: None,
            links: Vec::new(),
            collectives: Vec::new(),
            kernels: Vec::new(),
            stops: None,
        }
    }

    /// A machine on which this one's communication costs nothing: the base of a trace in which time passes only while
    /// ranks compute. Its kernels are those of `self`; it stops no rank, as no time passes meanwhile.
    #[must_use]
    pub fn free(&self) -> Machine {
        let nothing =
            |costs: &Costs| Costs(costs.0.iter().map(|cost| Cost { bytes: cost.bytes, ..Cost::default() }).collect());
        let link = |link: &Link| Link {
            place: link.place,
            latency_s: 0.0,
            bandwidth: f64::MAX,
            eager_bytes: None,
            overlap: link.overlap,
            contention: None,
            send: nothing(&link.send),
            receive: nothing(&link.receive),
            isend: nothing(&link.isend),
            irecv: nothing(&link.irecv),
            wait: nothing(&link.wait),
            wait_send: nothing(&link.wait_send),
            transfer: nothing(&link.transfer),
        };
        let collective = |collective: &Collective| Collective {
            name: collective.name.clone(),
            ranks: collective.ranks,
            costs: nothing(&collective.costs),
            root: nothing(&collective.root),
            others: nothing(&collective.others),
        };
        Machine {
            life: self.life.map(|_| Life::default()),
            links: self.links.iter().map(link).collect(),
            collectives: self.collectives.iter().map(collective).collect(),
            stops: None,
            ..self.clone()
        }
    }

    /// What messages cost in a place.
    pub fn link(&self, place: Place) -> Option<&Link> {
        self.links.iter().find(|link| link.place == place)
    }
}

/// Where a machine was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
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

/// What it takes to start and to end a run, in seconds: medians over some launches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Life {
    /// From the launch to the start of the processes, and from their end to that of the launcher.
    pub launch_s: f64,
    /// In `MPI_Init`.
    pub init_s: f64,
    /// In `MPI_Finalize`.
    pub finalize_s: f64,
    /// Half the distance between the quartiles of the whole.
    #[serde(default)]
    pub spread_s: f64,
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

/// What a message costs on its way. "Already" means: for longer than the transfer takes, in which the rank computed and
/// called no procedure of MPI. The messages are contiguous bytes in memory that was used before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Where it leads.
    pub place: Place,
    /// Transfer of an empty message, in seconds.
    pub latency_s: f64,
    /// Bytes per second of long messages: the slope of `transfer` at its end.
    pub bandwidth: f64,
    /// The longest message that `MPI_Send` lets go before its receive is posted (eager), in bytes; none if no step was
    /// found up to the longest message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eager_bytes: Option<u64>,
    /// Share of a long exchange (`MPI_Irecv`, `MPI_Isend`, computation, `MPI_Wait` for both, on both ranks at once) that
    /// goes on while the ranks compute, 0 to 1.
    pub overlap: f64,
    /// How many times as long as one long transfer such an exchange without computation takes: 1 where the two messages
    /// do not disturb each other, 2 where they share the bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contention: Option<f64>,
    /// f(b): time in `MPI_Send` where `MPI_Recv` waits already.
    pub send: Costs,
    /// g(b): time in `MPI_Recv` where an eager message has arrived already; of longer messages: where the sender waits in
    /// `MPI_Send` already, so that the transfer is in it.
    pub receive: Costs,
    /// Time in `MPI_Isend` where `MPI_Recv` waits already.
    pub isend: Costs,
    /// Time in `MPI_Irecv` before the message is sent.
    pub irecv: Costs,
    /// Time in `MPI_Wait` for a receive that was posted before the message came, with `MPI_Send` called already.
    pub wait: Costs,
    /// Time in `MPI_Wait` for a send whose receiver waits in `MPI_Recv`, with the `MPI_Isend` made already.
    #[serde(default, skip_serializing_if = "Costs::is_empty")]
    pub wait_send: Costs,
    /// Time from the call of `MPI_Send` to the return of the `MPI_Recv` that waits for it: half a round trip.
    pub transfer: Costs,
}

/// A cost over message length: points of rising length, straight lines between them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Costs(pub Vec<Cost>);

/// What one length costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// Whether there is no point.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The nearest ones (least squares) that take no less time for a longer message.
    #[must_use]
    pub fn rising(&self) -> Costs {
        // Neighbours that fall are put together at their mean, until none are left.
        let mut steps: Vec<(f64, usize)> = Vec::with_capacity(self.0.len());
        for cost in &self.0 {
            let mut step = (cost.seconds, 1);
            while let Some(&(before, count)) = steps.last()
                && before > step.0
            {
                let all = count + step.1;
                step = ((before * count as f64 + step.0 * step.1 as f64) / all as f64, all);
                steps.pop();
            }
            steps.push(step);
        }
        let seconds = steps.iter().flat_map(|&(seconds, count)| std::iter::repeat_n(seconds, count));
        Costs(self.0.iter().zip(seconds).map(|(cost, seconds)| Cost { seconds, ..*cost }).collect())
    }

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

/// What a collective costs on a communicator of `ranks`, all of which enter together; rank 0 is the root.
///
/// Lengths are as a trace's events have them, what a rank contributes, or receives where it contributes none: the message
/// (`MPI_Bcast`), the vector (`MPI_Reduce`, `MPI_Allreduce`, `MPI_Reduce_scatter`, `MPI_Scan`, `MPI_Exscan`), a rank's
/// block (`MPI_Gather`, `MPI_Allgather`, `MPI_Scatter`), all that a rank sends (`MPI_Alltoall`). Vectors are of doubles,
/// summed up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collective {
    /// Its name: `MPI_Allreduce`.
    pub name: String,
    /// Ranks that took part.
    pub ranks: u32,
    /// From the entry of the last to the exit of the last.
    pub costs: Costs,
    /// Time in the call of the root; only of collectives with a root.
    #[serde(default, skip_serializing_if = "Costs::is_empty")]
    pub root: Costs,
    /// Time in the call of the other ranks, their mean; only of collectives with a root.
    #[serde(default, skip_serializing_if = "Costs::is_empty")]
    pub others: Costs,
}

/// A small computation that was timed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Its name: `stream`, `stencil`, `dense`, `branchy`, `random`.
    pub name: String,
    /// Median time of one pass with all ranks computing at once, in seconds; of the processor, on a machine that has
    /// [`Machine::stops`].
    pub seconds: f64,
    /// Half the distance between the quartiles, in seconds.
    #[serde(default)]
    pub spread: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_communication_leaves_no_stops() {
        let stops = Stops { span_s: 1.0, ranks: vec![vec![[0.1, 0.2]]] };
        let machine =
            Machine { stops: Some(stops), life: Some(Life { init_s: 1.0, ..Life::default() }), ..Machine::empty() };
        let free = machine.free();
        assert_eq!((free.stops, free.life), (None, Some(Life::default())));
    }

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

    #[test]
    fn rising_costs_lie_next_to_those_that_fall() {
        let costs = |all: &[f64]| {
            Costs(all.iter().zip(0..).map(|(&seconds, bytes)| Cost { bytes, seconds, spread: 0.0 }).collect())
        };
        assert_eq!(costs(&[1.0, 2.0, 3.0]).rising(), costs(&[1.0, 2.0, 3.0]));
        assert_eq!(costs(&[1.0, 9.0, 2.0, 4.0, 8.0]).rising(), costs(&[1.0, 5.0, 5.0, 5.0, 8.0]));
        assert_eq!(costs(&[3.0, 2.0, 1.0]).rising(), costs(&[2.0, 2.0, 2.0]));
    }
}
