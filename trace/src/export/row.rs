//! One call as one line: the columns of `phasecast dump` and of the CSV export.
use crate::counts::Counts;
use crate::error::TraceError;
use crate::model::{Call, Class, Flags, PEER_ANY, PEER_NONE, PEER_PROC_NULL, Part, PartKind, TAG_ANY, TAG_NONE};
use crate::reader::Trace;
use crate::units::Rank;
use serde::{Serialize, Serializer};
use std::collections::HashMap;
use std::fmt::{self, Display, Write};

/// A call as it is shown. `P` is how its parts are: [`PartText`] in CSV, a list of [`PartRow`] in JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row<'a, P> {
    /// The rank.
    pub rank: u32,
    /// The thread.
    pub thread: u16,
    /// Name of the procedure.
    pub procedure: &'a str,
    /// What it is to the analysis.
    pub class: Class,
    /// Destination, root or requested source.
    pub peer: Peer,
    /// The tag.
    pub tag: Tag,
    /// Bytes that the rank contributes.
    pub bytes: u64,
    /// Number of the communicator.
    pub communicator: u32,
    /// When it was entered, in ns from the origin of the trace.
    pub enter_ns: u64,
    /// When it returned.
    pub exit_ns: u64,
    /// Where it was called from, if that is known.
    pub site: Option<&'a str>,
    /// What it completed or started.
    pub parts: P,
    /// What was counted of the computation before it: three more columns of CSV, in a trace with counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
}

/// The names of the columns of CSV.
const COLUMNS: &str = "rank,thread,procedure,class,peer,tag,bytes,communicator,enter_ns,exit_ns,site,parts";
/// Those that a trace with counts has beside them.
const COUNT_COLUMNS: &str = ",instructions,cycles,misses";

/// The columns of a trace.
pub fn columns(trace: &Trace) -> String {
    let more = if trace.counters().is_some() { COUNT_COLUMNS } else { "" };
    format!("{COLUMNS}{more}")
}

impl<'a> Row<'a, &[Part]> {
    /// As fields of a line of CSV; with those of counts, empty if there are none, in a trace that has some.
    ///
    /// # Errors
    /// If the line cannot be written.
    pub fn write_csv<W: std::io::Write>(&self, counted: bool, lines: &mut csv::Writer<W>) -> Result<(), csv::Error> {
        let row = self.with_parts(PartText(self.parts));
        if counted && row.counts.is_none() { lines.serialize((row, [(); 3])) } else { lines.serialize(row) }
    }

    /// The same with its parts in another form.
    pub fn with_parts<P>(&self, parts: P) -> Row<'a, P> {
        let &Row { rank, thread, procedure, class, peer, tag, bytes, communicator, .. } = self;
        let &Row { enter_ns, exit_ns, site, counts, .. } = self;
        Row { rank, thread, procedure, class, peer, tag, bytes, communicator, enter_ns, exit_ns, site, parts, counts }
    }
}

/// A peer as it is shown: a rank, `any`, `null` (`MPI_PROC_NULL`), or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub i32);

impl Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            PEER_NONE => Ok(()),
            PEER_PROC_NULL => f.write_str("null"),
            PEER_ANY => f.write_str("any"),
            rank => rank.fmt(f),
        }
    }
}

impl Serialize for Peer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            PEER_NONE => serializer.serialize_none(),
            rank if rank >= 0 => serializer.serialize_i32(rank),
            _ => serializer.collect_str(self),
        }
    }
}

/// A tag as it is shown: a number, `any`, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(pub i32);

impl Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            TAG_NONE => Ok(()),
            TAG_ANY => f.write_str("any"),
            tag => tag.fmt(f),
        }
    }
}

impl Serialize for Tag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            TAG_NONE => serializer.serialize_none(),
            TAG_ANY => serializer.collect_str(self),
            tag => serializer.serialize_i32(tag),
        }
    }
}

/// A part as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PartRow {
    /// `send`, `recv`, `post`, `collective`, or `cancelled`.
    pub kind: &'static str,
    /// The matched source, or the destination.
    pub peer: Peer,
    /// The matched tag.
    pub tag: Tag,
    /// Bytes received or sent.
    pub bytes: u64,
    /// Number of the communicator.
    pub communicator: u32,
}

impl From<&Part> for PartRow {
    fn from(part: &Part) -> PartRow {
        let kind = match part.kind {
            PartKind::Recv if part.flags.has(Flags::CANCELLED) => "cancelled",
            PartKind::Send => "send",
            PartKind::Recv => "recv",
            PartKind::Post => "post",
            PartKind::Collective => "collective",
        };
        let (peer, tag) = (Peer(part.peer), Tag(part.tag));
        PartRow { kind, peer, tag, bytes: part.bytes, communicator: part.comm.0 }
    }
}

/// Parts as one field: `kind:peer:tag:bytes:communicator`, with spaces between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartText<'a>(pub &'a [Part]);

impl Display for PartText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.0.iter().map(PartRow::from).enumerate() {
            if at > 0 {
                f.write_char(' ')?;
            }
            write!(f, "{}:{}:{}:{}:{}", part.kind, part.peer, part.tag, part.bytes, part.communicator)?;
        }
        Ok(())
    }
}

impl Serialize for PartText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Calls `each` with every call of a rank, together with all of its parts, in the order of their exits.
///
/// # Errors
/// If a chunk is damaged, or what `each` returns; the calls before that have been handed on.
pub fn each_row<E: From<TraceError>>(
    trace: &Trace,
    rank: Rank,
    mut each: impl FnMut(Row<'_, &[Part]>) -> Result<(), E>,
) -> Result<(), E> {
    let mut sites: HashMap<u64, String> = HashMap::new();
    let mut hand_on = |call: &Call, parts: &[Part], counts: Option<Counts>| {
        let site = (call.site != 0).then(|| sites.entry(call.site).or_insert_with(|| trace.site(rank, call.site)));
        each(Row {
            rank: rank.0,
            thread: call.thread,
            procedure: trace.procedure(call.proc),
            class: call.class,
            peer: Peer(call.peer),
            tag: Tag(call.tag),
            bytes: call.bytes,
            communicator: call.comm.0,
            enter_ns: call.enter.0,
            exit_ns: call.exit.0,
            site: site.map(|site| site.as_str()),
            parts,
            counts,
        })
    };
    let mut reader = trace.calls(rank);
    let (mut open, mut parts): (Option<(Call, Option<Counts>)>, Vec<Part>) = (None, Vec::new());
    loop {
        match reader.next_call() {
            Ok(Some(item)) => {
                if !item.call.flags.has(Flags::CONTINUED) || open.is_none() {
                    if let Some((call, counts)) = open.replace((*item.call, item.counts)) {
                        hand_on(&call, &parts, counts)?;
                    }
                    parts.clear();
                }
                parts.extend_from_slice(item.parts);
            }
            end => {
                if let Some((call, counts)) = open {
                    hand_on(&call, &parts, counts)?;
                }
                return end.map(|_| ()).map_err(E::from);
            }
        }
    }
}
