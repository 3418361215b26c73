//! What is saved of one rank at one cut: the map of its memory, where its registers are, and what other parts of phasecast
//! save by name (signals, files, threads, MPI objects).
//!
//! The file (`cut-0003.rank-00000.state`) is a container of kind `state`: a manifest in JSON (machine, rank, cut, program,
//! addresses), section `regions` (bincode), section `hashes` (16 bytes for each saved page, in the order of the runs; left out
//! in a packed set, whose blocks have checksums of their own), then the others' sections, each named `+name`.
use crate::{HUGE_PAGES, ImageError, PAGE};
use phasecast_trace::{codec, container::Container};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Version of the format of states and stores.
pub const VERSION: u16 = 2;
/// The kind of container that a state is.
pub const KIND: &str = "state";
/// The most saved pages of a state (256 GB): their hashes must fit into a section.
pub const MAX_PAGES: u64 = 1 << 26;
/// Addresses end here: the user's half of 47 bits.
const TOP: u64 = 1 << 47;

/// The hash of a page's content: xxh3, 128 bits.
pub type PageHash = u128;

/// What may be done with a region: the sum of [`READ`](Protection::READ), [`WRITE`](Protection::WRITE) and
/// [`EXECUTE`](Protection::EXECUTE), the numbers of `mprotect`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection(pub u8);

impl Protection {
    /// It can be read.
    pub const READ: u8 = 1;
    /// It can be written.
    pub const WRITE: u8 = 2;
    /// It can be executed.
    pub const EXECUTE: u8 = 4;

    /// Whether it allows all of `what`.
    pub fn allows(self, what: u8) -> bool {
        self.0 & what == what
    }
}

/// Marks of a region, as the kernel shows them in `smaps`: a set of the constants below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flags(pub u16);

impl Flags {
    /// `hg`: huge pages are asked for.
    pub const HUGE: u16 = 1;
    /// `nh`: huge pages are refused.
    pub const NO_HUGE: u16 = 1 << 1;
    /// `nr`: no swap is reserved.
    pub const NO_RESERVE: u16 = 1 << 2;
    /// `gd`: a stack that grows down.
    pub const STACK: u16 = 1 << 3;
    /// Shared with children (anonymous).
    pub const SHARED: u16 = 1 << 4;
    /// `dc`: a child does not get it.
    pub const DONT_FORK: u16 = 1 << 5;
    /// `wf`: a child gets it emptied.
    pub const WIPE_ON_FORK: u16 = 1 << 6;
    /// `dd`: left out of core dumps.
    pub const DONT_DUMP: u16 = 1 << 7;
    /// `lo`: locked in memory.
    pub const LOCKED: u16 = 1 << 8;

    /// Whether `flag` is in the set.
    pub fn has(self, flag: u16) -> bool {
        self.0 & flag != 0
    }
}

/// The file that a region was mapped from. It is not needed to restore: the content is in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backing {
    /// Its path on the base machine, or what the kernel calls it.
    pub path: String,
    /// Where in the file the region starts, in bytes.
    pub offset: u64,
    /// If it is mapped for writing where others may see it.
    pub shared: Option<Shared>,
}

/// A file or memory that other ranks may have mapped, too, or the same one at another place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shared {
    /// The start of the machine that it is on (`/proc/sys/kernel/random/boot_id`).
    pub machine: String,
    /// Its device and number there.
    pub number: (u64, u64),
    /// Whether it has its path; else it has none any more, or never had one.
    pub named: bool,
    /// Its size in bytes, as far as it is known.
    pub size: u64,
}

/// What a run of pages holds. The kinds differ in time to the program, so they are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// Never touched: no page is there.
    Untouched,
    /// Read but never written: the kernel's page of zeros.
    SharedZero,
    /// A page of its own, all zeros.
    PrivateZero,
    /// Pages of the rank's store, from this number on.
    Data(u64),
}

/// Pages that follow one another and are of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// How many pages of 4 KB.
    pub pages: u64,
    /// Whether huge pages stand behind them. Huge runs that touch one another fill whole huge pages.
    pub huge: bool,
    /// What they hold.
    pub content: Content,
}

/// A mapping of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Its address.
    pub start: u64,
    /// Its length in bytes.
    pub length: u64,
    /// What may be done with it.
    pub protection: Protection,
    /// Its marks.
    pub flags: Flags,
    /// The file it was mapped from.
    pub backing: Option<Backing>,
    /// The kernel's or the program's name for it (`[anon:...]`), often empty.
    pub name: String,
    /// Its pages; they cover it.
    pub runs: Vec<Run>,
}

impl Region {
    /// Its first address behind.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }
}

/// The machine's setting of transparent huge pages (`/sys/kernel/mm/transparent_hugepage/enabled`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HugePolicy {
    /// Wherever they fit.
    Always,
    /// Where the program asks for them.
    #[default]
    Madvise,
    /// Nowhere.
    Never,
}

/// The state of one rank at one cut.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The rank.
    pub rank: u32,
    /// Ranks of the run.
    pub size: u32,
    /// The cut.
    pub cut: u32,
    /// The path of the program's file.
    pub program: String,
    /// Address of the frame on the main thread's stack from which it goes on: its registers at the cut.
    pub frame: u64,
    /// FS bases (thread pointers), the main thread's first.
    pub fs: Vec<u64>,
    /// Start and end of the heap that `brk` moves.
    pub brk: (u64, u64),
    /// How the base machine gives huge pages.
    pub huge_policy: HugePolicy,
    /// The memory, by ascending address.
    pub regions: Vec<Region>,
    /// The hashes of all saved pages in the order of the runs; empty in a packed set.
    pub hashes: Vec<PageHash>,
    /// What others save, by name.
    pub sections: BTreeMap<String, Vec<u8>>,
}

/// The manifest.
#[derive(Serialize, Deserialize)]
struct Head {
    architecture: String,
    page_size: usize,
    rank: u32,
    size: u32,
    cut: u32,
    program: String,
    frame: u64,
    fs: Vec<u64>,
    brk: (u64, u64),
    huge_policy: HugePolicy,
    data_pages: u64,
}

impl State {
    /// Its name in a folder: `cut-0003.rank-00000.state`.
    pub fn file_name(cut: u32, rank: u32) -> String {
        format!("cut-{cut:04}.rank-{rank:05}.state")
    }

    /// Cut and rank of a file of that name.
    pub fn parse_name(name: &str) -> Option<(u32, u32)> {
        let (cut, rank) = name.strip_prefix("cut-")?.strip_suffix(".state")?.split_once(".rank-")?;
        let (cut, rank) = (cut.parse().ok()?, rank.parse().ok()?);
        (State::file_name(cut, rank) == name).then_some((cut, rank))
    }

    /// How many of its pages are in the store.
    pub fn data_pages(&self) -> u64 {
        let runs = self.regions.iter().flat_map(|region| &region.runs);
        runs.filter(|run| matches!(run.content, Content::Data(_))).map(|run| run.pages).sum()
    }

    /// What does not fit together in it.
    ///
    /// # Errors
    /// A sentence, if something does not.
    pub fn check(&self) -> Result<(), String> {
        if self.rank >= self.size {
            return Err(format!("it is of rank {} of {}", self.rank, self.size));
        }
        let (page, mut last, mut data) = (PAGE as u64, 0, 0u64);
        for region in &self.regions {
            let Region { start, length, .. } = *region;
            let end = start.checked_add(length).filter(|&end| end <= TOP).unwrap_or(0);
            if start % page != 0 || length % page != 0 || start < last || end <= start {
                return Err(format!("the region of {length} bytes at {start:#x} is not a place for one"));
            }
            last = end;
            let mut at = start;
            for run in &region.runs {
                let bytes = run.pages.checked_mul(page).filter(|&bytes| bytes > 0 && bytes <= end - at);
                at += bytes.ok_or_else(|| format!("the pages of the region at {start:#x} do not fit into it"))?;
                if let Content::Data(first) = run.content {
                    data += run.pages;
                    first.checked_add(run.pages).ok_or("a page has no number")?;
                }
            }
            if at != end {
                return Err(format!("the pages of the region at {start:#x} do not fill it"));
            }
            for (from, to) in huge_stretches(region) {
                if from % (HUGE_PAGES * page) != 0 || to % (HUGE_PAGES * page) != 0 {
                    return Err(format!("huge pages from {from:#x} to {to:#x} do not lie on their bounds"));
                }
            }
        }
        if data > MAX_PAGES {
            return Err(format!("it has {data} pages with content, more than {MAX_PAGES}"));
        }
        if !self.hashes.is_empty() && self.hashes.len() as u64 != data {
            return Err(format!("it has {} hashes for {data} pages", self.hashes.len()));
        }
        Ok(())
    }

    /// Its bytes as a file; without hashes for a packed set.
    ///
    /// # Errors
    /// If it is inconsistent ([`State::check`]).
    pub fn to_bytes(&self, with_hashes: bool) -> Result<Vec<u8>, ImageError> {
        let wrong = |what| ImageError::Inconsistent { rank: self.rank, cut: self.cut, what };
        self.check().map_err(wrong)?;
        let data_pages = self.data_pages();
        if with_hashes && self.hashes.len() as u64 != data_pages {
            return Err(wrong(format!("it has {} hashes for {data_pages} pages", self.hashes.len())));
        }
        let head = Head {
            architecture: std::env::consts::ARCH.into(),
            page_size: PAGE,
            rank: self.rank,
            size: self.size,
            cut: self.cut,
            program: self.program.clone(),
            frame: self.frame,
            fs: self.fs.clone(),
            brk: self.brk,
            huge_policy: self.huge_policy,
            data_pages,
        };
        let manifest = serde_json::to_string(&head).expect("a manifest of numbers and words is JSON");
        let mut sections = vec![("regions".to_string(), codec::to_bytes(&self.regions))];
        if with_hashes {
            let hashes = self.hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
            sections.push(("hashes".to_string(), hashes));
        }
        sections.extend(self.sections.iter().map(|(name, content)| (format!("+{name}"), content.clone())));
        let container = Container { kind: KIND.into(), version: VERSION, manifest, sections };
        container.to_bytes().map_err(wrong)
    }

    /// Reads one from the bytes of a file; `path` is for messages.
    ///
    /// # Errors
    /// If it is something else, damaged, inconsistent, of another version or from another kind of machine.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<State, ImageError> {
        let container = Container::parse(path, bytes)?;
        if container.kind != KIND {
            return Err(ImageError::Foreign { path: path.into(), found: format!("it holds {}", container.kind) });
        }
        if container.version != VERSION {
            let found = container.version;
            return Err(ImageError::Version { path: path.into(), found, supported: VERSION });
        }
        let damaged = |what: String| ImageError::corrupt(path, what);
        let head: Head = serde_json::from_str(&container.manifest)
            .map_err(|error| damaged(format!("its manifest cannot be read ({error})")))?;
        if head.architecture != std::env::consts::ARCH || head.page_size != PAGE {
            let found = format!("{} with pages of {} bytes", head.architecture, head.page_size);
            let here = format!("{} with pages of {PAGE} bytes", std::env::consts::ARCH);
            return Err(ImageError::Machine { path: path.into(), found, here });
        }
        let regions = container.section("regions").ok_or_else(|| damaged("it has no map of the memory".into()))?;
        let regions = codec::from_bytes(regions).map_err(damaged)?;
        let (hashes, rest) = container.section("hashes").unwrap_or_default().as_chunks::<16>();
        if !rest.is_empty() {
            return Err(damaged("a hash is cut off".into()));
        }
        let hashes = hashes.iter().map(|hash| PageHash::from_le_bytes(*hash)).collect();
        let named = container.sections.into_iter();
        let sections = named.filter_map(|(name, bytes)| Some((name.strip_prefix('+')?.to_string(), bytes))).collect();
        let Head { rank, size, cut, program, frame, fs, brk, huge_policy, data_pages, .. } = head;
        let state = State { rank, size, cut, program, frame, fs, brk, huge_policy, regions, hashes, sections };
        state.check().map_err(damaged)?;
        if state.data_pages() != data_pages {
            return Err(damaged("its manifest and its map of the memory differ".into()));
        }
        Ok(state)
    }
}

/// The stretches of a region, as addresses from and to, behind which huge pages stand.
pub fn huge_stretches(region: &Region) -> Vec<(u64, u64)> {
    let mut stretches: Vec<(u64, u64)> = Vec::new();
    let mut at = region.start;
    for run in &region.runs {
        let to = at.saturating_add(run.pages.saturating_mul(PAGE as u64));
        if run.huge {
            match stretches.last_mut() {
                Some((_, end)) if *end == at => *end = to,
                _ => stretches.push((at, to)),
            }
        }
        at = to;
    }
    stretches
}
