//! Any MPI library, found at run time, behind virtual handles: what the gate's calls of a program come to.
//!
//! A call goes down a route ([`route`]) by the class of its procedure; most are passed on ([`forward`]) with their
//! arguments translated as the table of procedures says ([`shape`]). Objects are virtual ([`objects`]) and logged
//! ([`log`]); at a cut the network is drained ([`drain`]); an image holds a [`replay::State`], from which all is made
//! again under another library.

mod absent;
mod agreement;
mod allocated;
mod attributes;
mod blocks;
mod callbacks;
mod calls;
mod changes;
mod closures;
mod comms;
mod completion;
mod contents;
mod convert;
mod dispatch;
mod drain;
mod duplicates;
mod errors;
mod files;
mod forward;
mod generalized;
mod hand_out;
mod hide;
mod library;
mod life;
mod lifetimes;
mod log;
mod matched;
mod meeting;
mod memory;
mod objects;
mod order;
mod outcome;
mod packed;
mod point;
mod recent;
mod recorded;
mod references;
mod remade;
mod replay;
mod requests;
mod route;
mod session;
mod shape;
mod shared;
mod stands;
mod start;
mod tear_down;
mod told_info;
mod translate;
mod upper;
mod values;
mod waits;
mod wakeups;
mod windows;
mod words;

pub use agreement::told_by_all;
pub use callbacks::any_inside;
pub use calls::{MOST, call};
pub use dispatch::{allow_stops, dispatch};
pub use drain::{drain, go_on};
pub use library::{Library, LibraryError};
pub use life::{environment, finish_library, prepare, start_library, wtime};
pub use meeting::{Refusal, anywhere, barrier, decided, end_meetings, refuse};
pub use memory::shared_memory;
pub use recorded::{Recorded, Taken};
pub use replay::State;
pub use session::{Hooks, Session, Stop, installed, session};
pub use shared::{file_of, memory_file, node};
pub use stands::{Stand, answer_to};
