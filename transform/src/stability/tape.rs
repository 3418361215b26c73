//! The events of a run as rows of small numbers, one row a task, so that runs can be compared.
//!
//! A task is a thread of a rank: only within one is there a program order. Threads are told by the order of their first
//! calls. An event's symbol is what it does and with whom: its kind, partner (of a wildcard receive the one that it got),
//! tag, bytes and communicator; of a collective also its name.
use super::error::StabilityError;
use phasecast_abi::{Class as Known, Timing, by_name};
use phasecast_analyzer::matching::FastMap;
use phasecast_analyzer::survey;
use phasecast_trace::reader::Comm;
use phasecast_trace::{CallRef, Class, Event, EventKind, Flags, Rank, Trace};
use std::collections::{BTreeMap, HashMap};

/// A thread of a rank.
pub type Task = (u32, u16);

/// What an event does and with whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// Its kind.
    pub kind: EventKind,
    /// Destination, source or root; -1 if there is none.
    pub peer: i32,
    /// Its tag; -1 if it has none.
    pub tag: i32,
    /// Bytes sent, received or contributed.
    pub bytes: u64,
    /// The communicator: an index into [`Names::comms`].
    pub comm: u32,
    /// Of a collective, its procedure: an index into [`Names::procedures`].
    pub procedure: u32,
}

/// Where an event comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The task.
    pub task: Task,
    /// The call site, `module+0xoffset` where that is known.
    pub site: String,
    /// The procedure in which the event lies.
    pub procedure: String,
    /// What the event is.
    pub kind: EventKind,
    /// Whether it is a receive that was posted with `MPI_ANY_SOURCE`, or follows a probe with it.
    pub wildcard: bool,
}

/// Numbers for things, in the order in which they are first met.
#[derive(Debug)]
pub struct Numbers<T> {
    all: Vec<T>,
    known: HashMap<T, u32>,
}

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Numbers { all: Vec::new(), known: HashMap::new() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Numbers<T> {
    /// The number of a thing.
    pub fn of(&mut self, thing: &T) -> u32 {
        if let Some(&number) = self.known.get(thing) {
            return number;
        }
        let number = self.all.len() as u32;
        self.all.push(thing.clone());
        self.known.insert(thing.clone(), number);
        number
    }

    /// The thing of a number.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.all.get(number as usize)
    }
}

/// What the runs that are compared have names for.
#[derive(Debug, Default)]
pub struct Names {
    /// What events do.
    pub symbols: Numbers<Symbol>,
    /// Where they come from.
    pub places: Numbers<Place>,
    /// Communicators.
    pub comms: Numbers<Comm>,
    /// Procedures, without what tells a large count.
    pub procedures: Numbers<String>,
}

impl Names {
    /// Whether a collective that a call of this procedure begins is complete when the call ends.
    pub fn blocks(&self, procedure: u32) -> bool {
        let known = self.procedures.get(procedure).and_then(|name| by_name(name)).and_then(|id| id.get());
        match known.map(|known| known.class) {
            Some(Known::Start { .. }) => false,
            Some(
                Known::Collective { timing, .. } | Known::CommConstructor { timing, .. } | Known::Io { timing, .. },
            ) => timing == Timing::Blocking,
            _ => true,
        }
    }
}

/// The events of a task, in program order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Track {
    /// The symbol of each: an index into [`Names::symbols`].
    pub symbols: Vec<u32>,
    /// The place of each: an index into [`Names::places`].
    pub places: Vec<u32>,
    /// The number of each among the events of its rank.
    pub numbers: Vec<u32>,
}

impl Track {
    fn push(&mut self, symbol: u32, place: u32, number: u32) {
        self.symbols.push(symbol);
        self.places.push(place);
        self.numbers.push(number);
    }
}

/// The events of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tape {
    /// For each task, its events.
    pub tracks: BTreeMap<Task, Track>,
}

impl Tape {
    /// Reads a run.
    ///
    /// # Errors
    /// If a rank is missing or was cut off, or a file is damaged.
    pub fn read(trace: &Trace, names: &mut Names) -> Result<Tape, StabilityError> {
        survey::whole(trace)?;
        let comms: Vec<u32> = trace.comms().iter().map(|comm| names.comms.of(comm)).collect();
        let plain = |name: &String| name.strip_suffix("_c").unwrap_or(name).to_owned();
        let procedures: Vec<u32> = trace.procedures().iter().map(|name| names.procedures.of(&plain(name))).collect();
        let mut tape = Tape::default();
        for rank in trace.ranks() {
            let (mut number, mut long) = (0u32, false);
            let mut symbols: FastMap<(u64, u64, u64), u32> = FastMap::default();
            let mut places: FastMap<(u64, u64), u32> = FastMap::default();
            tape.tracks.entry((rank.0, 0)).or_default();
            // A receive right after a probe of any source is as open as one from any source.
            let mut probed: FastMap<u16, bool> = FastMap::default();
            let mut calls = trace.calls(rank);
            while let Some(call) = calls.next_call()? {
                let before = probed.insert(call.call.thread, is_open_probe(&call)).unwrap_or(false);
                let probed = before && call.call.class == Class::Recv;
                for mut event in call.events() {
                    event.wildcard |= probed;
                    let procedure = match event.kind {
                        EventKind::Collective => procedures.get(event.proc.index()).copied().unwrap_or(0),
                        EventKind::Send | EventKind::Recv => 0,
                    };
                    let what = u64::from(event.peer as u32) << 32 | u64::from(event.tag as u32);
                    let where_ = u64::from(event.comm.0) << 32 | u64::from(procedure) << 2 | event.kind as u64;
                    let symbol = *symbols.entry((what, where_, event.bytes)).or_insert_with(|| {
                        let Event { kind, peer, tag, bytes, .. } = event;
                        let comm = comms.get(event.comm.index()).copied().unwrap_or(0);
                        names.symbols.of(&Symbol { kind, peer, tag, bytes, comm, procedure })
                    });
                    let kind = u64::from(event.thread) << 32 | u64::from(event.proc.0) << 4;
                    let kind = kind | (event.kind as u64) << 1 | u64::from(event.wildcard);
                    let place = *places
                        .entry((event.site, kind))
                        .or_insert_with(|| names.places.of(&place(trace, rank, &event)));
                    tape.tracks.entry((rank.0, event.thread)).or_default().push(symbol, place, number);
                    long |= number == u32::MAX - 1;
                    number = number.saturating_add(1);
                }
            }
            if long {
                return Err(StabilityError::Long { path: trace.path().to_owned(), most: u32::MAX - 1 });
            }
        }
        Ok(tape)
    }

    /// Events of all tasks.
    pub fn events(&self) -> u64 {
        self.tracks.values().map(|track| track.symbols.len() as u64).sum()
    }

    /// Whether each rank has one thread.
    pub fn single_threaded(&self) -> bool {
        self.tracks.keys().all(|task| task.1 == 0)
    }
}

/// Whether a call asks for messages from any source.
pub(super) fn is_open_probe(call: &CallRef<'_>) -> bool {
    call.call.class == Class::Probe && call.call.flags.has(Flags::WILDCARD)
}

fn place(trace: &Trace, rank: Rank, event: &Event) -> Place {
    Place {
        task: (rank.0, event.thread),
        site: trace.site(rank, event.site),
        procedure: trace.procedure(event.proc).to_owned(),
        kind: event.kind,
        wildcard: event.wildcard && event.kind == EventKind::Recv,
    }
}

/// Refuses traces of different numbers of ranks.
///
/// # Errors
/// [`StabilityError::Unlike`].
pub fn alike(first: &Trace, other: &Trace) -> Result<(), StabilityError> {
    if first.size() == other.size() {
        return Ok(());
    }
    let what = format!("it has {} ranks instead of {}", other.size(), first.size());
    Err(StabilityError::Unlike { path: other.path().to_owned(), what })
}
