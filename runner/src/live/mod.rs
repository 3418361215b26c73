//! The first executor: without images. The program is run under the tracer, its stream is followed, and it is stopped once
//! its phases have been measured.
mod observe;
mod predict;
mod track;

pub use predict::{SHARE, Wish, phases, predict};
