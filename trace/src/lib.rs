//! What a trace is: the calls and communication events of every rank of one run, and the files that hold them.
//!
//! A trace is a folder with one file per rank (`rank-00000.pct`), written while the program runs. Each file is a
//! row of self-delimiting, checksummed frames ([`frame`]), so that it opens after a crash, an abort or a kill. What
//! is not yet in a file at that moment stands in a shared mapping beside it ([`tail`]). The byte formats are
//! described in `docs/src/formats/trace.md`.
//!
//! * [`model`]: calls, parts, events, communicators, headers
//! * [`encode`] / [`decode`]: one chunk of calls as bytes (dictionary of shapes, times as varints)
//! * [`writer`] / [`reader`] / [`follow`]: folders of chunks, whole or still growing
//! * [`ahead`]: blocks of many ranks, decoded ahead of who takes them
//! * [`summary`]: what is in a trace, in numbers
//! * [`import`] / [`export`]: other tools' traces as ours, ours for other tools
//! * [`counts`]: counts of the computation before calls
//! * [`delays`]: delays that the tracer puts before calls
//! * [`container`]: the single-file container of phases and signatures
pub mod ahead;
pub mod atomic;
pub mod awaited;
mod calls;
pub mod clock;
pub mod codec;
pub mod container;
pub mod counts;
pub mod decode;
pub mod delays;
pub mod encode;
pub mod epochs;
pub mod error;
pub mod export;
pub mod follow;
pub mod frame;
pub mod import;
pub mod model;
mod naming;
mod rank_file;
pub mod reader;
mod stream;
pub mod summary;
pub mod tail;
pub mod units;
pub mod varint;
pub mod writer;

pub use counts::{Counters, Counts};
pub use error::TraceError;
pub use model::{Call, CallRef, Class, CommDef, Cut, Event, EventKind, Flags, Part, PartKind};
pub use reader::Trace;
pub use summary::Summary;
pub use units::{Bytes, CommId, EventIndex, Nanos, PhaseId, ProcId, Rank, Tick};
pub use writer::TraceWriter;
