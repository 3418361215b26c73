//! `phasecast dump`: one line a call, streamed.
use crate::exit::Refusal;
use anyhow::Result;
use clap::{Args, ValueEnum};
use phasecast_trace::model::{PEER_ANY, PEER_NONE, PEER_PROC_NULL, TAG_ANY, TAG_NONE};
use phasecast_trace::{Call, Class, Flags, Part, PartKind, ProcId, Rank, Trace};
use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Print a trace, one line a call
///
/// Ranks follow one another, each rank's calls in the order of their exits. Times are nanoseconds from the start of
/// the run. The parts of a call are the messages that it completed or started; in CSV they read
/// kind:peer:tag:bytes:communicator, with spaces between. JSON is one object a line.
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// The trace (a folder)
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// The form of a line
    #[arg(long, value_enum, default_value_t = Form::Csv)]
    format: Form,
    /// Only this rank
    #[arg(long)]
    rank: Option<u32>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    Csv,
    Json,
}

/// Prints.
pub fn run(args: &DumpArgs) -> Result<()> {
    let trace = Trace::open(&args.trace)?;
    if let Some(rank) = args.rank.filter(|&rank| rank >= trace.size()) {
        let what = format!("{} has ranks 0 to {}, not {rank}.", args.trace.display(), trace.size() - 1);
        return Err(Refusal::Input(what).into());
    }
    let mut dump = Dump::new(&trace, args.format, BufWriter::with_capacity(1 << 18, std::io::stdout().lock()));
    dump.head()?;
    for rank in trace.ranks().filter(|rank| args.rank.is_none_or(|only| rank.0 == only)) {
        dump.rank(rank)?;
    }
    Ok(dump.out.flush()?)
}

struct Dump<'a, W: Write> {
    trace: &'a Trace,
    form: Form,
    out: W,
    /// Names of procedures as they stand in a line.
    names: Vec<String>,
    sites: HashMap<u64, String>,
}

impl<'a, W: Write> Dump<'a, W> {
    fn new(trace: &'a Trace, form: Form, out: W) -> Dump<'a, W> {
        let names = trace.procedures().iter().map(|name| quoted(form, name)).collect();
        Dump { trace, form, out, names, sites: HashMap::new() }
    }

    fn head(&mut self) -> std::io::Result<()> {
        match self.form {
            Form::Csv => writeln!(
                self.out,
                "rank,thread,procedure,class,peer,tag,bytes,communicator,enter_ns,exit_ns,site,parts"
            ),
            Form::Json => Ok(()),
        }
    }

    /// Prints a rank's calls. A line stays open until the next call, as further parts may follow.
    fn rank(&mut self, rank: Rank) -> Result<()> {
        self.sites.clear();
        let trace = self.trace;
        let mut reader = trace.calls(rank);
        let (mut open, mut parts) = (false, 0usize);
        loop {
            let call = match reader.next_call() {
                Ok(Some(call)) => call,
                end => {
                    if open {
                        self.close()?;
                    }
                    // What was read before the damage is worth having.
                    self.out.flush()?;
                    return Ok(end.map(|_| ())?);
                }
            };
            if !call.call.flags.has(Flags::CONTINUED) || !open {
                if open {
                    self.close()?;
                }
                self.open(rank, call.call)?;
                (open, parts) = (true, 0);
            }
            for part in call.parts {
                self.part(part, parts == 0)?;
                parts += 1;
            }
        }
    }

    fn open(&mut self, rank: Rank, call: &Call) -> std::io::Result<()> {
        let (trace, form) = (self.trace, self.form);
        let site = self.sites.entry(call.site).or_insert_with(|| match call.site {
            0 => empty(form).into(),
            site => quoted(form, &trace.site(rank, site)),
        });
        let unknown = quoted(form, "?");
        let name = self.names.get(ProcId::index(call.proc)).unwrap_or(&unknown);
        let (peer, tag) = (Peer(call.peer, form), Tag(call.tag, form));
        let (rank, thread, class, bytes, comm) = (rank.0, call.thread, class(call.class), call.bytes, call.comm.0);
        let (enter, exit) = (call.enter.0, call.exit.0);
        match form {
            Form::Csv => {
                write!(self.out, "{rank},{thread},{name},{class},{peer},{tag},{bytes},{comm},{enter},{exit},{site},")
            }
            Form::Json => write!(
                self.out,
                "{{\"rank\":{rank},\"thread\":{thread},\"procedure\":{name},\"class\":\"{class}\",\"peer\":{peer},\
                 \"tag\":{tag},\"bytes\":{bytes},\"communicator\":{comm},\"enter_ns\":{enter},\"exit_ns\":{exit},\
                 \"site\":{site},\"parts\":["
            ),
        }
    }

    fn part(&mut self, part: &Part, first: bool) -> std::io::Result<()> {
        let (kind, bytes, comm) = (kind(part), part.bytes, part.comm.0);
        let (peer, tag) = (Peer(part.peer, self.form), Tag(part.tag, self.form));
        match self.form {
            Form::Csv => {
                let gap = if first { "" } else { " " };
                write!(self.out, "{gap}{kind}:{peer}:{tag}:{bytes}:{comm}")
            }
            Form::Json => {
                let gap = if first { "" } else { "," };
                write!(
                    self.out,
                    "{gap}{{\"kind\":\"{kind}\",\"peer\":{peer},\"tag\":{tag},\"bytes\":{bytes},\"communicator\":{comm}}}"
                )
            }
        }
    }

    fn close(&mut self) -> std::io::Result<()> {
        self.out.write_all(match self.form {
            Form::Csv => b"\n",
            Form::Json => b"]}\n",
        })
    }
}

fn class(class: Class) -> &'static str {
    match class {
        Class::Send => "send",
        Class::Recv => "recv",
        Class::Collective => "collective",
        Class::Complete => "complete",
        Class::Post => "post",
        Class::Start => "start",
        Class::Probe => "probe",
        Class::Rma => "rma",
        Class::Io => "io",
        Class::Comm => "comm",
        Class::Setup => "setup",
        Class::Pause => "pause",
        Class::Resume => "resume",
        Class::Other => "other",
    }
}

fn kind(part: &Part) -> &'static str {
    match part.kind {
        PartKind::Recv if part.flags.has(Flags::CANCELLED) => "cancelled",
        PartKind::Send => "send",
        PartKind::Recv => "recv",
        PartKind::Post => "post",
        PartKind::Collective => "collective",
    }
}

fn empty(form: Form) -> &'static str {
    match form {
        Form::Csv => "",
        Form::Json => "null",
    }
}

fn word(f: &mut std::fmt::Formatter<'_>, form: Form, word: &str) -> std::fmt::Result {
    match form {
        Form::Csv => f.write_str(word),
        Form::Json => write!(f, "\"{word}\""),
    }
}

struct Peer(i32, Form);

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            PEER_NONE => f.write_str(empty(self.1)),
            PEER_PROC_NULL => word(f, self.1, "null"),
            PEER_ANY => word(f, self.1, "any"),
            rank => rank.fmt(f),
        }
    }
}

struct Tag(i32, Form);

impl std::fmt::Display for Tag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            TAG_NONE => f.write_str(empty(self.1)),
            TAG_ANY => word(f, self.1, "any"),
            tag => tag.fmt(f),
        }
    }
}

/// A text as it stands in a line: names come from files, and may hold anything.
fn quoted(form: Form, text: &str) -> String {
    match form {
        Form::Json => serde_json::Value::from(text).to_string(),
        Form::Csv if text.contains(['"', ',', '\n', '\r']) => format!("\"{}\"", text.replace('"', "\"\"")),
        Form::Csv => text.to_string(),
    }
}
