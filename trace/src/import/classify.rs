//! What a procedure of MPI is to the analysis: the table of [`phasecast_abi`] in the words of [`crate::model`].
use crate::model::{Class, Flags};
use phasecast_abi as abi;

/// Class and flags of a call of `procedure`; an unknown procedure is [`Class::Other`].
pub(super) fn classify(procedure: Option<&abi::Procedure>) -> (Class, Flags) {
    use abi::Class as A;
    let Some(procedure) = procedure else { return (Class::Other, Flags(0)) };
    match procedure.class {
        A::Send { timing, .. } => match timing {
            abi::Timing::Persistent | abi::Timing::Partitioned => (Class::Post, timed(timing)),
            _ => (Class::Send, timed(timing)),
        },
        A::SendRecv { timing, .. } => {
            let posts = if timing == abi::Timing::Nonblocking { Flags::RECV_POST } else { Flags(0) };
            (Class::Send, timed(timing).with(posts))
        }
        A::Recv { timing } | A::MatchedRecv { timing } => match timing {
            abi::Timing::Blocking => (Class::Recv, Flags(0)),
            abi::Timing::Nonblocking => (Class::Post, timed(timing).with(Flags::RECV_POST)),
            _ => (Class::Post, timed(timing)),
        },
        A::Probe { .. } => (Class::Probe, Flags(0)),
        A::Completion { .. } => (Class::Complete, Flags(0)),
        A::Start { .. } => (Class::Start, Flags(0)),
        A::Collective { timing: timing @ (abi::Timing::Persistent | abi::Timing::Partitioned), .. } => {
            (Class::Post, timed(timing))
        }
        A::Collective { timing, .. } => (Class::Collective, timed(timing)),
        A::CommConstructor { timing, .. } => (Class::Comm, timed(timing)),
        A::CommFree { .. } => (Class::Other, Flags(0)),
        A::Rma { timing, .. } => (Class::Rma, timed(timing)),
        A::Io { collective, timing, .. } => {
            (Class::Io, timed(timing).with(if collective { Flags::COLLECTIVE } else { Flags(0) }))
        }
        A::Init | A::Finalize | A::Abort | A::SessionInit | A::SessionFinalize => (Class::Setup, Flags(0)),
        _ => (Class::Other, Flags(0)),
    }
}

fn timed(timing: abi::Timing) -> Flags {
    match timing {
        abi::Timing::Blocking => Flags(0),
        abi::Timing::Nonblocking => Flags::NONBLOCKING,
        abi::Timing::Persistent | abi::Timing::Partitioned => Flags::PERSISTENT,
    }
}
