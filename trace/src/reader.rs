//! Opens a trace, whole or cut off: what its ranks say of themselves, their communicators, procedures and clocks.
use crate::clock::Clock;
use crate::counts::Counters;
use crate::error::TraceError;
use crate::model::{CommDef, Cut, Ending, Event, Flags, RankHeader, Trailer};
use crate::naming::{CommNames, ProcNames, clocks};
use crate::rank_file::RankFile;
use crate::tail;
use crate::units::{CommId, Nanos, ProcId, Rank};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use crate::calls::{RankReader, Whole};
pub use crate::naming::Comm;
pub use crate::rank_file::file_name;
pub use crate::stream::{Stream, View, Viewed};

/// One rank of an open trace.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) file: RankFile,
    pub(crate) clock: Clock,
    /// The rank's own numbers of procedures to those of the run.
    pub(crate) procs: Vec<ProcId>,
    /// The rank's own numbers of communicators to those of the run.
    pub(crate) comms: HashMap<u32, CommId>,
    last_exit: OnceLock<Nanos>,
}

/// A trace: its header data in memory, its calls in files.
#[derive(Debug)]
pub struct Trace {
    path: PathBuf,
    ranks: Vec<Option<Box<Loaded>>>,
    procedures: Vec<String>,
    comms: Vec<Comm>,
}

impl Trace {
    /// Opens the trace in a folder. Ranks that were cut off open as far as they were recorded: see [`Trace::cuts`].
    ///
    /// # Errors
    /// If the folder is no trace, or one of its files is damaged (not merely cut off).
    pub fn open(path: &Path) -> Result<Trace, TraceError> {
        let foreign =
            |found: &str| TraceError::Foreign { path: path.to_owned(), expected: "trace", found: found.into() };
        if !path.is_dir() {
            let missing = !path.exists();
            return Err(foreign(if missing { "there is nothing of that name" } else { "a trace is a folder" }));
        }
        let (mut names, mut tails) = (Vec::new(), HashMap::<u32, Vec<u16>>::new());
        for entry in fs::read_dir(path).map_err(TraceError::io(path, "list"))? {
            let entry = entry.map_err(TraceError::io(path, "list"))?.path();
            let name = entry.file_name().and_then(|n| n.to_str()).unwrap_or("");
            if let Some((rank, thread)) = tail::parse_name(name) {
                tails.entry(rank).or_default().push(thread);
            } else if name.starts_with("rank-") && name.ends_with(".pct") {
                names.push(entry);
            }
        }
        names.sort_unstable();
        tails.values_mut().for_each(|threads| threads.sort_unstable());
        let (mut files, mut procs, mut comms) = (Vec::new(), ProcNames::default(), CommNames::default());
        // A rank that was ended, or found the disk full, before its header was written has left an empty file: none.
        names.retain(|name| !name.metadata().is_ok_and(|data| data.len() == 0));
        for name in names {
            let mut file = RankFile::open(name)?;
            file.read_tails(tails.get(&file.header.rank).map_or(&[], Vec::as_slice));
            comms.add(file.header.rank, std::mem::take(&mut file.comms), &std::mem::take(&mut file.origins));
            files.push(file);
        }
        files.sort_by_key(|f| f.header.rank);
        let Some(size) = files.first().map(|f| f.header.size) else {
            return Err(foreign("it holds no file rank-*.pct"));
        };
        let (comms, mut comm_maps) = comms.finish(size);
        let clocks = clocks(&files);
        let mut ranks: Vec<Option<Box<Loaded>>> = (0..size).map(|_| None).collect();
        for (file, clock) in files.into_iter().zip(clocks) {
            let place = ranks.get_mut(file.header.rank as usize).filter(|place| place.is_none());
            let Some(place) = place.filter(|_| file.header.size == size) else {
                let what = format!(
                    "it belongs to another run (rank {} of {}, beside {size} ranks)",
                    file.header.rank, file.header.size
                );
                return Err(TraceError::corrupt(&file.path, 0, what));
            };
            let names = procs.add(&file.header.procedures);
            let Some(names) = names else {
                return Err(TraceError::corrupt(&file.path, 0, "the run names more than 65536 procedures"));
            };
            let comms = comm_maps.remove(&file.header.rank).unwrap_or_default();
            *place = Some(Box::new(Loaded { file, clock, procs: names, comms, last_exit: OnceLock::new() }));
        }
        Ok(Trace { path: path.to_owned(), ranks, procedures: procs.finish(), comms })
    }

    pub(crate) fn loaded(&self, rank: Rank) -> Option<&Loaded> {
        self.ranks.get(rank.index())?.as_deref()
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of `MPI_COMM_WORLD`.
    pub fn size(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// All ranks, also those whose file is missing.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.size()).map(Rank)
    }

    /// What a rank's file says of itself; none if the file is missing.
    pub fn header(&self, rank: Rank) -> Option<&RankHeader> {
        Some(&self.loaded(rank)?.file.header)
    }

    /// Whether time passes in it only while ranks compute ([`crate::model::COMPUTING_CLOCK`]): calls take no time.
    pub fn is_of_computing(&self) -> bool {
        self.header(Rank(0)).is_some_and(|header| header.boot_id == crate::model::COMPUTING_CLOCK)
    }

    /// What was counted of the computation before calls, as the first rank that has counts says; none if nothing was.
    pub fn counters(&self) -> Option<&Counters> {
        self.files().find_map(|file| file.counters.as_ref())
    }

    /// How a rank's recording ended; none if it was cut off.
    pub fn trailer(&self, rank: Rank) -> Option<&Trailer> {
        self.loaded(rank)?.file.trailer.as_ref()
    }

    /// The communicators of the run; [`CommId`] is an index into them, and 0 is `MPI_COMM_WORLD`.
    pub fn comms(&self) -> &[Comm] {
        &self.comms
    }

    /// The communicators that a rank is in, numbered as in the whole run.
    pub fn comms_of(&self, rank: Rank) -> Vec<CommDef> {
        let all = self.comms.iter().enumerate();
        let own = all.filter(|(id, comm)| *id == 0 || comm.members.contains(&rank.0) || comm.remote.contains(&rank.0));
        own.map(|(id, comm)| CommDef { local: id as u32, members: comm.members.clone(), remote: comm.remote.clone() })
            .collect()
    }

    /// The procedures that the headers name; [`ProcId`] is an index into them.
    pub fn procedures(&self) -> &[String] {
        &self.procedures
    }

    /// The name of a procedure.
    pub fn procedure(&self, id: ProcId) -> &str {
        self.procedures.get(id.index()).map_or("?", String::as_str)
    }

    /// A call site as `module+0xoffset`, where the trace says which modules were loaded; else the address.
    pub fn site(&self, rank: Rank, site: u64) -> String {
        let modules = self.trailer(rank).map_or(&[][..], |t| &t.modules);
        match modules.iter().find(|m| (m.0..m.1).contains(&site)) {
            Some((start, _, offset, path)) => {
                let name = Path::new(path).file_name().and_then(|n| n.to_str()).unwrap_or(path);
                format!("{name}+{:#x}", (site - start).saturating_add(*offset))
            }
            None => format!("{site:#x}"),
        }
    }

    /// Start and end of a rank's run: from the start of its process to its end (or last call) in ns from the origin.
    pub fn span(&self, rank: Rank) -> (Nanos, Nanos) {
        let Some(Loaded { file, clock, .. }) = self.loaded(rank) else { return (Nanos(0), Nanos(0)) };
        let start = Nanos(clock.nanos(file.header.clock.units));
        let end = match &file.trailer {
            Some(trailer) => Nanos(clock.nanos(trailer.end_units)),
            None => self.last_exit(rank),
        };
        (start, end.max(start))
    }

    /// The length of the run: of its longest rank.
    pub fn run_time(&self) -> Nanos {
        self.ranks().map(|r| self.span(r)).map(|(a, b)| b.since(a)).max().unwrap_or_default()
    }

    /// From the start of the first rank's process to the end of the last, which starts of ranks one after the other make
    /// longer than [`Trace::run_time`].
    pub fn elapsed(&self) -> Nanos {
        let spans = || self.ranks().map(|rank| self.span(rank));
        let first = spans().map(|span| span.0).min().unwrap_or_default();
        spans().map(|span| span.1).max().unwrap_or_default().since(first)
    }

    /// The latest exit of a rank that was cut off. Reads the rank whole, once.
    fn last_exit(&self, rank: Rank) -> Nanos {
        let read = || {
            let (mut last, mut calls) = (Nanos(0), self.calls(rank));
            while let Ok(Some(call)) = calls.next_call() {
                last = last.max(call.call.exit);
            }
            last
        };
        self.loaded(rank).map_or(Nanos(0), |rank| *rank.last_exit.get_or_init(read))
    }

    fn files(&self) -> impl Iterator<Item = &RankFile> {
        self.ranks.iter().flatten().map(|rank| &rank.file)
    }

    /// Bytes of the rank's files, tails included as far as they are filled.
    pub fn bytes_on_disk(&self) -> u64 {
        self.files().map(|r| r.bytes + r.tails.iter().map(|t| t.payload.len() as u64).sum::<u64>()).sum()
    }

    /// Items (calls and parts) that the frames claim: a quick measure of the trace's length.
    pub fn items(&self) -> u64 {
        self.files().flat_map(|r| &r.chunks).map(|c| u64::from(c.frame.items)).sum()
    }

    /// Bytes of the chunks before and after compression.
    pub fn chunk_bytes(&self) -> (u64, u64) {
        let chunks = || self.files().flat_map(|r| &r.chunks);
        let tails: u64 = self.files().flat_map(|r| &r.tails).map(|t| t.payload.len() as u64).sum();
        let raw: u64 = chunks().map(|c| u64::from(c.frame.raw_len)).sum();
        let stored: u64 = chunks().map(|c| u64::from(c.frame.stored_len)).sum();
        (raw + tails, stored + tails)
    }

    /// Why a rank's recording breaks off; none if it does not.
    pub fn cut_reason(&self, rank: Rank) -> Option<String> {
        let file = match self.ranks.get(rank.index())? {
            None => return Some("its file is missing: it was killed before MPI_Init returned, or not copied".into()),
            Some(rank) => &rank.file,
        };
        match (&file.broken, file.trailer.as_ref().map(|trailer| &trailer.ending)) {
            (Some(reason), _) => Some(reason.clone()),
            (None, Some(Ending::Aborted(code))) => Some(format!("it called MPI_Abort({code})")),
            (None, Some(Ending::Exited)) => Some("it exited without MPI_Finalize".into()),
            (None, Some(Ending::Stopped(why))) => Some(format!("recording stopped: {why}")),
            (None, Some(Ending::Finalized) | None) => None,
        }
    }

    /// The ranks whose recording breaks off, with the last call before that. Reads such ranks whole.
    ///
    /// # Errors
    /// If their chunks are damaged.
    pub fn cuts(&self) -> Result<Vec<Cut>, TraceError> {
        let mut cuts = Vec::new();
        for rank in self.ranks() {
            let Some(reason) = self.cut_reason(rank) else { continue };
            let (mut calls, mut at) = (0, Nanos(0));
            let mut reader = self.calls(rank);
            while let Some(call) = reader.next_call()? {
                calls += u64::from(!call.call.flags.has(Flags::CONTINUED));
                at = call.call.exit;
            }
            cuts.push(Cut { rank, calls, at, reason });
        }
        Ok(cuts)
    }

    /// How many threads of a rank made calls: of one thread, calls do not overlap.
    pub fn threads(&self, rank: Rank) -> usize {
        self.loaded(rank).map_or(0, |loaded| loaded.file.threads().len())
    }

    /// A stream of a rank's calls in the order of their exits.
    pub fn calls(&self, rank: Rank) -> RankReader<'_> {
        RankReader::new(self, rank)
    }

    /// The same of which only a view is kept.
    pub fn view<V: View>(&self, rank: Rank) -> Stream<'_, V> {
        Stream::new(self, rank)
    }

    /// Calls `each` with a rank's events in their order.
    ///
    /// # Errors
    /// If its chunks are damaged.
    pub fn for_each_event(&self, rank: Rank, mut each: impl FnMut(Event)) -> Result<(), TraceError> {
        let mut reader = self.calls(rank);
        while let Some(call) = reader.next_call()? {
            call.events().for_each(&mut each);
        }
        Ok(())
    }
}
