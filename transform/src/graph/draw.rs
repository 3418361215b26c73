//! Vertices and edges of the execution graph as DOT (Graphviz) or JSON, written as the trace is read. Of a long trace only
//! a window is written: some events of each rank, with the edges between them.
use super::walk::{Earlier, Member, Vertex, Visit, each_event, walk};
use super::{EventId, GraphError};
use phasecast_trace::model::PEER_NONE;
use phasecast_trace::{Event, EventKind, Rank, Trace};
use serde_json::json;
use std::io::Write;
use std::ops::Range;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For Graphviz.
    Dot,
    /// One object with `ranks`, `window`, `events` and `edges`.
    Json,
}

/// What part of the graph is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Events of each rank, by number.
    pub events: Range<u64>,
    /// Ranks; all if there are none.
    pub ranks: Vec<u32>,
}

impl Window {
    /// Whether an event is in it.
    pub fn has(&self, id: EventId) -> bool {
        self.events.contains(&id.event) && (self.ranks.is_empty() || self.ranks.contains(&id.rank))
    }
}

/// What was written, and what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Vertices.
    pub events: u64,
    /// Edges; a collective that joins its members counts as one.
    pub edges: u64,
    /// Whether there are events outside of the window.
    pub more: bool,
}

/// Writes the part of the graph that lies in the window.
///
/// # Errors
/// If the trace is damaged or the output cannot be written.
pub fn draw(
    trace: &Trace,
    form: Form,
    window: &Window,
    out: &mut dyn Write,
    progress: &dyn Fn(u64),
) -> Result<Drawn, GraphError> {
    let mut pen = Pen { trace, form, window, out, drawn: Drawn::default(), joins: 0 };
    pen.begin()?;
    for rank in trace.ranks() {
        pen.rank(rank)?;
    }
    pen.between()?;
    pen.drawn.edges = 0;
    walk(trace, &mut pen, progress)?;
    pen.end()?;
    Ok(pen.drawn)
}

struct Pen<'a> {
    trace: &'a Trace,
    form: Form,
    window: &'a Window,
    out: &'a mut dyn Write,
    drawn: Drawn,
    joins: u64,
}

impl Pen<'_> {
    fn begin(&mut self) -> std::io::Result<()> {
        match self.form {
            Form::Dot => {
                writeln!(self.out, "digraph execution {{\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];")
            }
            Form::Json => {
                let Range { start, end } = self.window.events;
                write!(self.out, "{{\"ranks\":{},\"window\":[{start},{end}],\"events\":[", self.trace.size())
            }
        }
    }

    fn between(&mut self) -> std::io::Result<()> {
        if self.form == Form::Json { write!(self.out, "\n],\"edges\":[") } else { Ok(()) }
    }

    fn end(&mut self) -> std::io::Result<()> {
        match self.form {
            Form::Dot => writeln!(self.out, "}}"),
            Form::Json => writeln!(self.out, "\n]}}"),
        }
    }

    /// The vertices of a rank.
    fn rank(&mut self, rank: Rank) -> Result<(), GraphError> {
        if !self.window.ranks.is_empty() && !self.window.ranks.contains(&rank.0) {
            self.drawn.more = true;
            return Ok(());
        }
        if self.form == Form::Dot {
            writeln!(self.out, "  subgraph cluster_{rank} {{ label=\"rank {rank}\"; color=gray;")?;
        }
        each_event(self.trace, rank, |id, event| {
            if self.window.has(id) {
                self.vertex_line(id, event)?;
                self.drawn.events += 1;
            } else {
                self.drawn.more = true;
            }
            Ok(id.event < self.window.events.end)
        })?;
        if self.form == Form::Dot {
            writeln!(self.out, "  }}")?;
        }
        Ok(())
    }

    fn vertex_line(&mut self, id: EventId, event: &Event) -> std::io::Result<()> {
        let name = self.trace.procedure(event.proc);
        let Event { peer, tag, bytes, thread, wildcard, .. } = *event;
        match self.form {
            Form::Dot => {
                let what = match event.kind {
                    EventKind::Send => format!("send to {peer}\\ntag {tag}, {bytes} B"),
                    EventKind::Recv if wildcard => format!("receive from any: {peer}\\ntag {tag}, {bytes} B"),
                    EventKind::Recv => format!("receive from {peer}\\ntag {tag}, {bytes} B"),
                    EventKind::Collective => format!("{}\\n{bytes} B", quoted(name)),
                };
                let look = if wildcard { ", style=bold" } else { "" };
                writeln!(self.out, "    \"{id}\" [label=\"{id} {what}\"{look}];")
            }
            Form::Json => {
                let comma = if self.drawn.events > 0 { "," } else { "" };
                let peer = (peer != PEER_NONE).then_some(peer);
                let tag = (event.kind != EventKind::Collective).then_some(tag);
                let line = json!({
                    "id": id.to_string(), "rank": id.rank, "event": id.event, "thread": thread, "kind": event.kind,
                    "procedure": name, "peer": peer, "tag": tag, "bytes": bytes, "communicator": event.comm.0,
                    "wildcard": wildcard, "enter_ns": event.enter.0, "exit_ns": event.exit.0,
                    "site": self.trace.site(Rank(id.rank), event.site),
                });
                write!(self.out, "{comma}\n{line}")
            }
        }
    }

    fn edge(&mut self, from: EventId, to: EventId, kind: &str) -> std::io::Result<()> {
        if !self.window.has(from) || !self.window.has(to) {
            return Ok(());
        }
        match self.form {
            Form::Dot if kind == "message" => writeln!(self.out, "  \"{from}\" -> \"{to}\" [color=blue];")?,
            Form::Dot => writeln!(self.out, "  \"{from}\" -> \"{to}\";")?,
            Form::Json => {
                let comma = if self.drawn.edges > 0 { "," } else { "" };
                write!(self.out, "{comma}\n{{\"from\":\"{from}\",\"to\":\"{to}\",\"kind\":\"{kind}\"}}")?;
            }
        }
        self.drawn.edges += 1;
        Ok(())
    }
}

/// A name that may stand in quotation marks.
fn quoted(name: &str) -> String {
    name.chars().filter(|c| !c.is_control() && *c != '"' && *c != '\\').collect()
}

impl Visit for Pen<'_> {
    type Mark = ();

    fn vertex(&mut self, vertex: &Vertex, previous: Earlier<'_, ()>, sent: Earlier<'_, ()>) -> Result<(), GraphError> {
        if let Some((from, ())) = previous {
            self.edge(from, vertex.id, "program")?;
        }
        if let Some((from, ())) = sent {
            self.edge(from, vertex.id, "message")?;
        }
        Ok(())
    }

    fn join(&mut self, members: &[Member<()>]) -> Result<Vec<()>, GraphError> {
        for (member, previous) in members {
            if let Some((from, ())) = previous {
                self.edge(*from, member.id, "program")?;
            }
        }
        let inside: Vec<EventId> =
            members.iter().map(|(member, _)| member.id).filter(|id| self.window.has(*id)).collect();
        if inside.len() > 1 {
            match self.form {
                Form::Dot => {
                    let number = self.joins;
                    writeln!(self.out, "  \"join {number}\" [shape=point];")?;
                    for id in &inside {
                        writeln!(self.out, "  \"{id}\" -> \"join {number}\" [dir=none, style=dashed];")?;
                    }
                }
                Form::Json => {
                    let comma = if self.drawn.edges > 0 { "," } else { "" };
                    let ids: Vec<String> = inside.iter().map(EventId::to_string).collect();
                    write!(self.out, "{comma}\n{}", json!({ "kind": "collective", "members": ids }))?;
                }
            }
            self.joins += 1;
            self.drawn.edges += 1;
        }
        Ok(vec![(); members.len()])
    }

    fn late(&mut self, send: EventId, receive: EventId) -> Result<(), GraphError> {
        Ok(self.edge(send, receive, "message")?)
    }
}
