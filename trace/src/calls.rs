//! Streams the calls of one rank, each whole.
use crate::error::TraceError;
use crate::model::{Call, CallRef, Part};
use crate::reader::Trace;
use crate::stream::{Stream, View};
use crate::units::Rank;

/// Streams the calls of one rank: see [`Trace::calls`].
pub struct RankReader<'a> {
    stream: Stream<'a, Whole>,
    call: Call,
    parts: Vec<Part>,
}

/// All that there is to know of a shape.
pub enum Whole {
    /// That of a call, whose times are 0.
    Call(Call),
    /// That of a part.
    Part(Part),
}

impl View for Whole {
    fn of_call(call: &Call) -> Whole {
        Whole::Call(*call)
    }

    fn of_part(part: &Part) -> Whole {
        Whole::Part(*part)
    }
}

impl<'a> RankReader<'a> {
    pub(crate) fn new(trace: &'a Trace, rank: Rank) -> RankReader<'a> {
        RankReader { stream: Stream::new(trace, rank), call: Call::BLANK, parts: Vec::new() }
    }

    /// The next call, or none at the end.
    ///
    /// # Errors
    /// If a chunk is damaged.
    #[inline]
    pub fn next_call(&mut self) -> Result<Option<CallRef<'_>>, TraceError> {
        let Some(next) = self.stream.next_call()? else { return Ok(None) };
        // A decoder lets no part pass where a call is expected, nor a call among the parts of another.
        if let Whole::Call(call) = next.call {
            self.call = Call { enter: next.enter, exit: next.exit, ..*call };
        }
        self.parts.clear();
        for part in next.parts() {
            if let Whole::Part(part) = part {
                self.parts.push(*part);
            }
        }
        Ok(Some(CallRef { call: &self.call, parts: &self.parts, counts: next.counts() }))
    }
}
