//! Newtypes of the quantities that every crate speaks of, so that a rank is never taken for a tick.
use serde::{Deserialize, Serialize};

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The number as an index.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

unit!(
    /// A process of `MPI_COMM_WORLD`.
    Rank(u32)
);
unit!(
    /// A time in nanoseconds: a point, counted from the origin of the trace (the start of its first process), or a span.
    Nanos(u64)
);
unit!(
    /// A message volume in bytes.
    Bytes(u64)
);
unit!(
    /// The position of an event in the stream of completed communications of one rank, from 0.
    EventIndex(u64)
);
unit!(
    /// A logical time of the PAS2P clock after splitting: a rank has at most one event in it.
    Tick(u64)
);
unit!(
    /// A phase of an analysis.
    PhaseId(u32)
);
unit!(
    /// A communicator: an index into [`crate::reader::Trace::comms`], the same on every rank; 0 is `MPI_COMM_WORLD`.
    CommId(u32)
);
unit!(
    /// A procedure: an index into [`crate::reader::Trace::procedures`].
    ProcId(u16)
);

impl Nanos {
    /// The span in seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// The span from `earlier` to this point; 0 if `earlier` is later.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}
