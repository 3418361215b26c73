//! Collectives as the skeleton writes them.
/// A kind of collective: those that a skeleton makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `MPI_Barrier`; stands for all collectives that exchange no data, or that a skeleton cannot make.
    Barrier,
    /// `MPI_Bcast`.
    Bcast,
    /// `MPI_Reduce`.
    Reduce,
    /// `MPI_Allreduce`.
    Allreduce,
    /// `MPI_Scan`.
    Scan,
    /// `MPI_Exscan`.
    Exscan,
    /// `MPI_Gather`, `MPI_Gatherv`.
    Gather,
    /// `MPI_Scatter`, `MPI_Scatterv`.
    Scatter,
    /// `MPI_Allgather`, `MPI_Allgatherv`.
    Allgather,
    /// `MPI_Alltoall`, `MPI_Alltoallv`, `MPI_Alltoallw`.
    Alltoall,
    /// `MPI_Reduce_scatter`, `MPI_Reduce_scatter_block`.
    ReduceScatter,
}

impl Kind {
    /// The kind of a collective by the name of its blocking form.
    pub fn of(name: &str) -> Kind {
        Kind::known(name).unwrap_or(Kind::Barrier)
    }

    /// The kind, if a skeleton makes it as it is.
    pub fn known(name: &str) -> Option<Kind> {
        Some(match name {
            "MPI_Barrier" => Kind::Barrier,
            "MPI_Bcast" => Kind::Bcast,
            "MPI_Reduce" => Kind::Reduce,
            "MPI_Allreduce" => Kind::Allreduce,
            "MPI_Scan" => Kind::Scan,
            "MPI_Exscan" => Kind::Exscan,
            "MPI_Gather" | "MPI_Gatherv" => Kind::Gather,
            "MPI_Scatter" | "MPI_Scatterv" => Kind::Scatter,
            "MPI_Allgather" | "MPI_Allgatherv" => Kind::Allgather,
            "MPI_Alltoall" | "MPI_Alltoallv" | "MPI_Alltoallw" => Kind::Alltoall,
            "MPI_Reduce_scatter" | "MPI_Reduce_scatter_block" => Kind::ReduceScatter,
            _ => return None,
        })
    }

    /// What the skeleton's function for it is called.
    pub fn function(self) -> &'static str {
        match self {
            Kind::Barrier => "barrier",
            Kind::Bcast => "broadcast",
            Kind::Reduce => "reduce",
            Kind::Allreduce => "allreduce",
            Kind::Scan => "scan",
            Kind::Exscan => "exscan",
            Kind::Gather => "gather",
            Kind::Scatter => "scatter",
            Kind::Allgather => "allgather",
            Kind::Alltoall => "alltoall",
            Kind::ReduceScatter => "reduce_scatter",
        }
    }

    /// Whether it has a root.
    pub fn rooted(self) -> bool {
        matches!(self, Kind::Bcast | Kind::Reduce | Kind::Gather | Kind::Scatter)
    }

    /// Whether it computes with what is sent.
    pub fn reduces(self) -> bool {
        matches!(self, Kind::Reduce | Kind::Allreduce | Kind::Scan | Kind::Exscan | Kind::ReduceScatter)
    }

    /// Bytes that go out and come in on a rank of `members`, of which each contributes `bytes`.
    pub fn data(self, bytes: u64, members: u64, root: bool) -> [u64; 2] {
        let all = bytes.saturating_mul(members);
        match self {
            Kind::Barrier => [0, 0],
            // One buffer on both sides.
            Kind::Bcast => [0, bytes],
            Kind::Reduce => [bytes, if root { bytes } else { 0 }],
            Kind::Allreduce | Kind::Scan | Kind::Exscan => [bytes, bytes],
            Kind::Gather => [bytes, if root { all } else { 0 }],
            Kind::Scatter => [if root { all } else { 0 }, bytes],
            Kind::Allgather => [bytes, all],
            Kind::Alltoall => [all, all],
            Kind::ReduceScatter => [all, bytes],
        }
    }

    /// Whether the data of all ranks lie side by side in one buffer.
    pub fn gathers(self) -> bool {
        matches!(self, Kind::Gather | Kind::Scatter | Kind::Allgather | Kind::Alltoall | Kind::ReduceScatter)
    }
}
