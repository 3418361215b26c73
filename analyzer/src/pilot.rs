//! The pilot: the rank on whose stream markers are sought. Its symbols and their times are kept in memory, eight bytes
//! each; everything else of the trace is streamed.
use crate::error::AnalyzeError;
use crate::matching::FastMap;
use crate::parallel::Stage;
use crate::source::{Feed, Item};
use crate::stream::Zone;
use crate::survey::Survey;
use crate::symbol::Symbols;
use phasecast_trace::epochs::epoch_change;
use phasecast_trace::model::PEER_ANY;
use phasecast_trace::{EventKind, Rank, Trace};

/// Different symbols that are told apart; what comes after counts as one and the same.
const MOST_SYMBOLS: usize = 1 << 20;
/// Different symbols that are remembered in words.
const MOST_WORDS: usize = 1 << 14;
/// Members of a set that are kept for its words.
const MOST_MEMBERS: usize = 1 << 10;
/// How a set of sends and receives begins in words.
const MIXED: &str = "send+recv(";
/// Marks a symbol after which no cut can lie.
const BLOCKED: u32 = 1 << 31;

/// The pilot's stream of symbols.
pub struct Pilot {
    /// The rank.
    pub rank: Rank,
    ids: Vec<u32>,
    exits: Vec<u32>,
    /// What exits are in, in ns.
    unit: u64,
    /// The end of the run, in ns from its start.
    end: u64,
    symbols: Vec<u64>,
    words: Vec<String>,
}

impl Pilot {
    /// The rank with the most events, the first of them; but one that next to only receives, in sets, is left to follow
    /// the others.
    pub fn choose(survey: &Survey) -> Rank {
        let only_receives = |rank: usize| survey.receives[rank] >= survey.events[rank] - survey.events[rank] / 100;
        let ranks = || (0..survey.events.len()).rev();
        let of_most = |rank: &usize| survey.events[*rank];
        let most = ranks().filter(|&rank| !only_receives(rank)).max_by_key(of_most).or(ranks().max_by_key(of_most));
        Rank(most.unwrap_or(0) as u32)
    }

    /// Reads the stream of `rank`, which is all of `feed`. No cut may lie within one of `zones`.
    ///
    /// # Errors
    /// If its file is damaged.
    pub fn read(
        trace: &Trace,
        survey: &Survey,
        feed: &mut Feed<'_>,
        rank: Rank,
        symbols: &Symbols,
        zones: &[Zone],
        stage: &Stage<'_>,
    ) -> Result<Pilot, AnalyzeError> {
        let span = survey.spans[rank.index()];
        let mut pilot = Pilot {
            rank,
            ids: Vec::new(),
            exits: Vec::new(),
            unit: (span.1 - span.0) / u64::from(u32::MAX) + 1,
            end: span.1 - span.0,
            symbols: Vec::new(),
            words: Vec::new(),
        };
        let mut known: FastMap<u64, u32> = FastMap::default();
        let mut set = symbols.set();
        let mut members: Vec<Item> = Vec::new();
        let (mut events, mut before, mut zone, mut epochs) = (0, None::<Item>, 0, 0);
        let mut push = |symbol: u64, members: &[Item], events: u64, epochs: i64| {
            let Some(last) = members.last() else { return };
            while zones.get(zone).is_some_and(|z| z.end() <= events) {
                zone += 1;
            }
            let next = known.len() as u32;
            let id = if next as usize >= MOST_SYMBOLS {
                known.get(&symbol).copied().unwrap_or(MOST_SYMBOLS as u32)
            } else {
                *known.entry(symbol).or_insert(next)
            };
            if id as usize == pilot.symbols.len() {
                pilot.symbols.push(symbol);
                if pilot.words.len() < MOST_WORDS {
                    pilot.words.push(words(trace, members));
                }
            }
            let blocked = !last.last || epochs > 0 || zones.get(zone).is_some_and(|z| z.forbids(events));
            pilot.ids.push(if blocked { id | BLOCKED } else { id });
            pilot.exits.push(((last.exit.saturating_sub(span.0)) / pilot.unit).min(u64::from(u32::MAX)) as u32);
        };
        while let Some(mut item) = feed.peek(0)? {
            feed.advance(0);
            if item.kind != EventKind::Collective {
                item.peer = symbols.peer(item.peer);
            }
            let symbol = symbols.item(&item);
            let within = epochs;
            epochs += epoch_change(item.tag);
            if symbols.gathers(item.kind) {
                // The last one and as many as words tell of are enough of a large set.
                members.truncate(MOST_MEMBERS);
                members.push(item);
                if let Some(full) = set.take(symbol) {
                    push(full, &members, events + 1, epochs);
                    members.clear();
                }
            } else {
                if let Some(whole) = set.close() {
                    push(whole, &members, events, within);
                    members.clear();
                }
                push(symbol, &[item], events + 1, epochs);
            }
            before = Some(item);
            events += 1;
            if events & 0xffff == 0 {
                stage.tell(events);
            }
        }
        if let (Some(whole), Some(_)) = (set.close(), before) {
            push(whole, &members, events, epochs);
        }
        Ok(pilot)
    }

    /// Goes by the quieter of two runs from each symbol to the next, so that neither what disturbed one run nor what
    /// disturbed the other has a say in where a marker is sought. A run of other symbols changes nothing.
    pub fn quieter(&mut self, other: &Pilot) {
        if self.length() != other.length() {
            return;
        }
        let (mut before, mut end) = ((0, 0), 0);
        let mut step = |own: u64, others: u64| {
            end += own.saturating_sub(before.0).min(others.saturating_sub(before.1));
            before = (own, others);
            end
        };
        for (own, others) in self.exits.iter_mut().zip(&other.exits) {
            let least = step(u64::from(*own) * self.unit, u64::from(*others) * other.unit);
            *own = (least / self.unit) as u32;
        }
        self.end = step(self.end, other.end);
    }

    /// The whole run in seconds.
    pub fn run_s(&self) -> f64 {
        self.end as f64 * 1e-9
    }

    /// How many symbols there are.
    pub fn length(&self) -> usize {
        self.ids.len()
    }

    /// The symbol at a position.
    #[inline]
    pub fn symbol(&self, at: usize) -> u64 {
        self.symbols.get((self.ids[at] & !BLOCKED) as usize).copied().unwrap_or(0x0717)
    }

    /// Whether a cut may lie after the symbol at a position.
    #[inline]
    pub fn open(&self, at: usize) -> bool {
        self.ids[at] & BLOCKED == 0
    }

    /// The exit of the symbol at a position, in seconds from the start of the rank's run.
    #[inline]
    pub fn exit_s(&self, at: usize) -> f64 {
        f64::from(self.exits[at]) * self.unit as f64 * 1e-9
    }

    /// The same before so many symbols: their end.
    pub fn end_s(&self, symbols: usize) -> f64 {
        symbols.checked_sub(1).map_or(0.0, |at| self.exit_s(at))
    }

    /// The symbol at a position in words.
    pub fn word(&self, at: usize) -> &str {
        self.word_of(self.id(at))
    }

    /// The symbol with a number in words.
    pub fn word_of(&self, id: u32) -> &str {
        self.words.get(id as usize).map_or("...", String::as_str)
    }

    /// Whether the symbol at a position is a collective.
    pub fn is_collective(&self, at: usize) -> bool {
        let word = self.word(at);
        !["send(", "recv(", MIXED].iter().any(|message| word.starts_with(message))
    }

    /// A number that is the same for the same symbols.
    pub fn id(&self, at: usize) -> u32 {
        self.ids[at] & !BLOCKED
    }
}

fn words(trace: &Trace, members: &[Item]) -> String {
    let Some(first) = members.first() else { return String::new() };
    match first.kind {
        EventKind::Collective => {
            let name = trace.procedure(phasecast_trace::ProcId(first.proc));
            let name = name.trim_start_matches("MPI_").to_lowercase();
            if first.peer >= 0 { format!("{name}({})", first.peer) } else { name }
        }
        _ if members.iter().any(|m| m.kind != first.kind) => {
            let mut peers: Vec<i32> = members.iter().map(|m| m.peer).collect();
            peers.sort_unstable();
            peers.dedup();
            format!("{MIXED}{})", list(&peers))
        }
        kind => {
            let mut peers: Vec<i32> = members.iter().map(|m| m.peer).collect();
            peers.sort_unstable();
            format!("{}({})", if kind == EventKind::Send { "send" } else { "recv" }, list(&peers))
        }
    }
}

/// Ranks in words.
fn list(peers: &[i32]) -> String {
    if peers.iter().all(|&peer| peer == PEER_ANY) {
        return if peers.len() > 1 { format!("any {}", peers.len()) } else { "any".into() };
    }
    let mut shown: Vec<String> = peers.iter().take(4).map(ToString::to_string).collect();
    if peers.len() > 4 {
        shown.push(format!("{} more", peers.len() - 4));
    }
    shown.join(",")
}
