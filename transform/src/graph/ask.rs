//! Whether two events are ordered or concurrent (seed 000, section 3.1.2). One pass over the trace: of each task and each
//! message under way it is known whether it is after the one event, or after the other.
use super::walk::{Earlier, Member, Vertex, Visit, each_event, walk};
use super::{EventId, GraphError};
use phasecast_trace::{Rank, Trace};
use serde::Serialize;

/// How two events lie to one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Relation {
    /// The first is before the second.
    Before,
    /// The second is before the first.
    After,
    /// Neither is before the other.
    Concurrent,
    /// They are members of one collective.
    Joined,
    /// They are the same event.
    Same,
}

/// How `first` lies to `second`.
///
/// # Errors
/// If the trace has no such event, or is damaged.
pub fn relation(
    trace: &Trace,
    first: EventId,
    second: EventId,
    progress: &dyn Fn(u64),
) -> Result<Relation, GraphError> {
    let mut question = Question { events: [first, second], met: [false; 2], answer: None };
    if first != second {
        walk(trace, &mut question, progress)?;
    }
    for (id, met) in question.events.into_iter().zip(question.met) {
        if !met && question.answer.is_none() {
            exists(trace, id)?;
        }
    }
    Ok(question.answer.unwrap_or(if first == second { Relation::Same } else { Relation::Concurrent }))
}

fn exists(trace: &Trace, id: EventId) -> Result<(), GraphError> {
    let (mut events, mut found) = (0, false);
    if id.rank < trace.size() {
        each_event(trace, Rank(id.rank), |at, _| {
            events += 1;
            found = at == id;
            Ok(!found)
        })?;
    }
    if found { Ok(()) } else { Err(GraphError::Missing { path: trace.path().to_owned(), id, events }) }
}

struct Question {
    events: [EventId; 2],
    met: [bool; 2],
    answer: Option<Relation>,
}

/// Whether a vertex is one of the events or after it.
type After = [bool; 2];

impl Question {
    fn at(&mut self, id: EventId, mut after: After) -> After {
        for which in 0..2 {
            if self.events[which] == id {
                self.met[which] = true;
                after[which] = true;
                if after[1 - which] {
                    self.answer = Some(if which == 1 { Relation::Before } else { Relation::After });
                }
            }
        }
        after
    }
}

fn either(a: After, b: &After) -> After {
    [a[0] || b[0], a[1] || b[1]]
}

impl Visit for Question {
    type Mark = After;

    fn vertex(
        &mut self,
        vertex: &Vertex,
        previous: Earlier<'_, After>,
        sent: Earlier<'_, After>,
    ) -> Result<After, GraphError> {
        let after = previous.into_iter().chain(sent).fold([false; 2], |sum, (_, mark)| either(sum, mark));
        Ok(self.at(vertex.id, after))
    }

    fn join(&mut self, members: &[Member<After>]) -> Result<Vec<After>, GraphError> {
        if self.events.iter().all(|id| members.iter().any(|(member, _)| member.id == *id)) {
            self.met = [true; 2];
            self.answer = Some(Relation::Joined);
            return Ok(vec![[false; 2]; members.len()]);
        }
        let before = |sum: After, member: &Member<After>| match &member.1 {
            Some((_, mark)) => either(sum, mark),
            None => sum,
        };
        let mut after = members.iter().fold([false; 2], before);
        for (member, _) in members {
            let own = self.at(member.id, after);
            after = either(after, &own);
        }
        Ok(vec![after; members.len()])
    }

    fn is_done(&self) -> bool {
        self.answer.is_some()
    }
}
