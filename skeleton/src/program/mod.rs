//! From the logical trace to a program that behaves like the traced one, and takes a given part of its time (seed 002,
//! section 4).
//!
//! [`Skeleton::of`] does it all: calls without a partner become local ([`repair`]), loops are shortened together
//! ([`families`], [`scale`]), the program is replayed ([`replay`]) and written ([`source`]).
pub mod calibrate;
pub mod collective;
pub mod error;
pub mod families;
pub mod figure3;
pub mod folder;
pub mod made;
pub mod manifest;
pub mod plan;
pub mod repair;
pub mod replay;
pub mod scale;
pub mod shares;
pub mod source;

use crate::logical::LogicalTrace;
use calibrate::Rates;
use error::ProgramError;
use plan::Plan;
use repair::Repaired;
use replay::Replay;
use scale::Scaling;
use source::{Head, Source};

/// A skeleton before it is written to files.
#[derive(Clone, Debug)]
pub struct Skeleton {
    /// The program.
    pub plan: Plan,
    /// How it was scaled.
    pub scaling: Scaling,
    /// What was done so that it ends.
    pub repaired: Repaired,
    /// Global and local calls as the seed's Figure 3 tells them from the text alone.
    pub figure3: figure3::Marks,
    /// What is left out, in sentences.
    pub left_out: Vec<String>,
    /// The ratio asked for.
    pub asked: f64,
}

impl Skeleton {
    /// The skeleton of a logical trace that takes 1/`ratio` of its time.
    ///
    /// # Errors
    /// If the logical trace contradicts itself, is too long to be written, or no program that ends comes of it.
    pub fn of(trace: &LogicalTrace, ratio: f64) -> Result<Skeleton, ProgramError> {
        let mut plan = Plan::new(trace)?;
        let figure3 = figure3::marks(&plan);
        repair::unmatched(&mut plan);
        let scaling = scale::scale(&mut plan, ratio);
        let repaired = repair::repair(&mut plan)?;
        let mut left_out = plan.left_out.clone();
        left_out.extend(repair::sentences(&plan, &repaired));
        Ok(Skeleton { plan, scaling, repaired, figure3, left_out, asked: ratio })
    }

    /// Its source in C.
    pub fn source(&self, program: &str, topology: Option<&str>, rates: &Rates) -> Source {
        let outcome = Replay::run(&self.plan, true);
        let head = Head { program, ratio: (self.asked, self.scaling.ratio()), topology };
        source::write(&self.plan, &outcome, &head, rates)
    }
}
