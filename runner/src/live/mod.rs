//! The first executor: signatures without images. `sign --live` traces and analyses; `predict` runs the program under
//! the tracer, follows its stream, and stops once its phases have been measured.
mod observe;
mod predict;
mod sign;
mod track;

pub use predict::{PredictArgs, run as run_predict};
pub use sign::{SignArgs, run as run_sign};
