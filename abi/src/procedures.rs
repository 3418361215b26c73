//! Questions to the table of procedures.

use crate::generated::procedures::PROCEDURES;
use crate::model::{Callers, Class, Direction, Kind, Param, Passing, Pattern, Procedure, Side, Timing, Vector};

/// Index of a procedure in [`PROCEDURES`]. It holds for one version of the table only: files name procedures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcId(pub u16);

impl ProcId {
    /// The procedure; `None` if the number is no index of the table.
    pub fn get(self) -> Option<&'static Procedure> {
        PROCEDURES.get(usize::from(self.0))
    }
}

/// Finds a procedure by the name of its C binding, as `MPI_Send`.
pub fn by_name(name: &str) -> Option<ProcId> {
    PROCEDURES.binary_search_by(|p| p.name.cmp(name)).ok().map(|i| ProcId(i as u16))
}

impl Procedure {
    /// Index of the first argument of this kind.
    pub fn param_index(&self, kind: Kind) -> Option<usize> {
        self.params.iter().position(|p| p.kind == kind)
    }

    /// Index of the argument of this name.
    pub fn param_named(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name == name)
    }

    /// Index of the first argument of this kind that MPI writes (a new request, say).
    pub fn output_index(&self, kind: Kind) -> Option<usize> {
        self.params.iter().position(|p| p.kind == kind && p.direction != Direction::In)
    }

    /// Index of the communicator all of whose members make this call together, if it makes a communicator.
    pub fn parent_index(&self) -> Option<usize> {
        match self.class {
            Class::CommConstructor { parent: Some(at), callers: Callers::Parent, .. } => Some(usize::from(at)),
            _ => None,
        }
    }

    /// Index of the tag of what is sent.
    pub fn send_tag(&self) -> Option<usize> {
        self.param_index(Kind::Dest)?;
        self.tag_after(Kind::Dest)
    }

    /// Index of the tag of what is received.
    pub fn recv_tag(&self) -> Option<usize> {
        self.tag_after(Kind::Source)
    }

    fn tag_after(&self, rank: Kind) -> Option<usize> {
        let rank = self.param_index(rank)?;
        self.params.iter().enumerate().skip(rank).find(|(_, p)| p.kind == Kind::Tag).map(|(i, _)| i)
    }

    /// Buffers whose contents MPI reads: what this process sends.
    pub fn send_sides(&self) -> impl Iterator<Item = &'static Side> + '_ {
        self.sides_of(|d| d != Direction::Out)
    }

    /// Buffers that MPI writes: where this process receives.
    pub fn recv_sides(&self) -> impl Iterator<Item = &'static Side> + '_ {
        self.sides_of(|d| d != Direction::In)
    }

    fn sides_of(&self, wanted: impl Fn(Direction) -> bool + 'static) -> impl Iterator<Item = &'static Side> + '_ {
        self.sides.iter().filter(move |s| self.params.get(usize::from(s.buffer)).is_some_and(|p| wanted(p.direction)))
    }

    /// Whether this is the large-count form (`_c`) of another procedure.
    pub fn is_large_count(&self) -> bool {
        self.params.iter().any(|p| p.large)
    }

    /// Whether no rank of the communicator returns from it before all have called it: each has something of every other.
    /// (Of those with a length for each rank some may have nothing.)
    pub fn synchronises(&self) -> bool {
        use Pattern::{Allgather, Allreduce, Alltoall, Barrier, ReduceScatterBlock};
        matches!(
            self.class,
            Class::Collective {
                pattern: Barrier | Allreduce | Allgather | Alltoall | ReduceScatterBlock,
                timing: Timing::Blocking,
                neighbourhood: false,
                vector: Vector::None,
                ..
            }
        )
    }

    /// Whether the last argument is C's `...`.
    pub fn is_variadic(&self) -> bool {
        self.params.last().is_some_and(|p| p.kind == Kind::Varargs)
    }
}

impl Param {
    /// Whether the argument is an array of several, not one.
    pub fn is_array(&self) -> bool {
        self.passing == Passing::Array
    }
}
