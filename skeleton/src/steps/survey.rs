//! The first pass over a trace: sizes, tags and communicators of all ranks, and what completions are about.
use super::acts::{Act, Computed, Message, Met, Sink, Sites};
use super::groups::{Groups, Part};
use super::roles::Roles;
use super::sizes::{Seen, Sizes};
use super::walk::walk;
use crate::error::SkeletonError;
use phasecast_analyzer::parallel::{self, Stage};
use phasecast_analyzer::symbol::mix;
use phasecast_trace::{Rank, Trace};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

/// Different tags of a pair of ranks that are kept; a program with more uses them to count.
const MOST_TAGS: usize = 256;

/// What must be known of all ranks before the acts of one can be symbols.
pub struct Survey {
    /// The procedures.
    pub roles: Roles,
    /// For each rank.
    pub sites: Vec<Sites>,
    /// Classes of sizes.
    pub sizes: Sizes,
    /// Groups of communicators.
    pub groups: Groups,
    /// What was met, for each rank.
    pub met: Vec<Met>,
    /// Sentences about what is left out.
    pub left_out: Vec<String>,
    /// For each sender and receiver, the tags with their communicators, in the order in which they were first sent.
    tags: Vec<BTreeMap<u32, Vec<(u32, i32)>>>,
}

impl Survey {
    /// The tag of a message in the skeleton: its number among those that the sender uses towards the receiver. So
    /// ranks whose tags are made of their numbers are alike, and messages of different communicators are apart.
    pub fn tag(&self, sender: u32, receiver: u32, comm: u32, tag: i32) -> i32 {
        let Some(tags) = self.tags.get(sender as usize).and_then(|tags| tags.get(&receiver)) else { return 0 };
        if tags.len() > MOST_TAGS {
            return 0;
        }
        tags.iter().position(|known| *known == (comm, tag)).unwrap_or(tags.len()) as i32
    }
}

/// What the first pass takes down of one rank.
struct Notes<'a> {
    roles: &'a Roles,
    sizes: Seen,
    tags: BTreeMap<u32, Vec<(u32, i32)>>,
    /// Messages sent to and received from each rank.
    pairs: BTreeMap<u32, [u64; 2]>,
    used: Vec<u32>,
    parts: BTreeMap<u32, Part>,
}

impl Notes<'_> {
    fn message(&mut self, message: Message, way: usize) {
        self.sizes.add(message.bytes);
        if way == 0 {
            let tags = self.tags.entry(message.peer).or_default();
            let tag = (message.comm, message.tag);
            if tags.len() <= MOST_TAGS && !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        self.pairs.entry(message.peer).or_default()[way] += 1;
    }
}

impl Sink for Notes<'_> {
    type Token = ();

    fn step(&mut self, _: Computed, _: u64) {}

    fn settle(&mut self, (): (), act: Act) {
        match act {
            Act::Send(to, ..) => self.message(to, 0),
            Act::Receive(from, ..) => self.message(from, 1),
            Act::Exchange(to, from) => {
                to.into_iter().for_each(|to| self.message(to, 0));
                from.into_iter().for_each(|from| self.message(from, 1));
            }
            Act::Collective { procedure, comm, bytes, root, .. } => {
                self.sizes.add(bytes);
                if !self.parts.contains_key(&comm) {
                    self.used.push(comm);
                }
                let name = procedure.map_or("", |procedure| &self.roles.of(procedure).collective);
                let part = self.parts.entry(comm).or_default();
                part.0 += 1;
                part.1 = mix(part.1 ^ xxh3_64(name.as_bytes()).wrapping_add(root as u64));
            }
            Act::Wait(_) | Act::End => {}
        }
    }

    fn drop(&mut self, (): ()) {}
}

/// Makes the first pass.
///
/// # Errors
/// If a rank is not whole, or cannot be walked over.
pub fn survey(trace: &Trace, threads: usize, stage: &Stage<'_>) -> Result<Survey, SkeletonError> {
    whole(trace)?;
    let roles = Roles::new(trace);
    let nothing = Sites::default();
    let found = parallel::map(trace.size() as usize, threads, stage, |rank, done| {
        let mut notes = Notes {
            roles: &roles,
            sizes: Seen::default(),
            tags: BTreeMap::new(),
            pairs: BTreeMap::new(),
            used: Vec::new(),
            parts: BTreeMap::new(),
        };
        let (met, sites) = walk(trace, Rank(rank as u32), &roles, &nothing, &mut notes, done)?;
        Ok::<_, SkeletonError>((notes, met, sites))
    })?;
    let (mut sizes, mut tags) = (Seen::default(), Vec::new());
    let (mut used, mut parts, mut met, mut sites, mut pairs) = (vec![], vec![], vec![], vec![], vec![]);
    for (notes, of_rank, found_out) in found {
        sizes.merge(&notes.sizes);
        tags.push(notes.tags);
        used.push(notes.used);
        parts.push(notes.parts);
        pairs.push(notes.pairs);
        met.push(of_rank);
        sites.push(found_out);
    }
    let (groups, mut left_out) = Groups::new(trace, &used, &parts);
    let counting = tags.iter().flat_map(BTreeMap::values).filter(|tags| tags.len() > MOST_TAGS).count();
    if counting > 0 {
        left_out.push(format!(
            "{counting} pairs of ranks use more than {MOST_TAGS} different tags: all their messages have tag 0"
        ));
    }
    left_out.extend(unmatched(&pairs));
    left_out.extend(sentences(&met));
    Ok(Survey { roles, sites, sizes: Sizes::new(&sizes), groups, met, left_out, tags })
}

/// A skeleton stands for a whole run.
fn whole(trace: &Trace) -> Result<(), SkeletonError> {
    for rank in trace.ranks() {
        if let Some(reason) = trace.cut_reason(rank) {
            return Err(SkeletonError::Cut { path: trace.path().to_owned(), rank: rank.0, reason });
        }
    }
    Ok(())
}

fn unmatched(pairs: &[BTreeMap<u32, [u64; 2]>]) -> Option<String> {
    let (mut sends, mut receives) = (0u64, 0u64);
    for (rank, own) in pairs.iter().enumerate() {
        for (&peer, &[sent, _]) in own {
            let received = pairs.get(peer as usize).and_then(|p| p.get(&(rank as u32))).map_or(0, |p| p[1]);
            sends += sent.saturating_sub(received);
        }
        for (&peer, &[_, received]) in own {
            let sent = pairs.get(peer as usize).and_then(|p| p.get(&(rank as u32))).map_or(0, |p| p[0]);
            receives += received.saturating_sub(sent);
        }
    }
    (sends + receives > 0)
        .then(|| format!("{sends} sends have no receive in the trace and {receives} receives no send: they are local"))
}

fn sentences(met: &[Met]) -> Vec<String> {
    let sum = |of: fn(&Met) -> u64| met.iter().map(of).sum::<u64>();
    let mut told = Vec::new();
    let mut tell = |count: u64, what: &dyn Fn(u64) -> String| {
        if count > 0 {
            told.push(what(count));
        }
    };
    tell(sum(|m| m.one_sided), &|n| {
        format!("{n} one-sided calls are left out: their synchronisation stands as barriers, their time is waiting")
    });
    tell(sum(|m| m.files), &|n| {
        format!("{n} calls of MPI-IO are left out: collective ones stand as barriers, their time as computation")
    });
    tell(sum(|m| m.pauses), &|n| format!("what happened in {n} pauses of the recording counts as computation"));
    tell(sum(|m| m.failed), &|n| format!("{n} calls that failed are left out"));
    tell(sum(|m| m.lost), &|n| format!("{n} receives that were posted but never completed are left out"));
    tell(sum(|m| m.wildcards), &|n| {
        format!("{n} receives took any source: they stand with the source that was recorded")
    });
    tell(sum(|m| m.persistent), &|n| format!("{n} starts of persistent requests stand as nonblocking calls"));
    tell(sum(|m| m.neighbours), &|n| {
        format!(
            "{n} collectives between neighbours stand as MPI_Alltoall of as many bytes, as the trace has no neighbours"
        )
    });
    let threads = met.iter().filter(|m| m.threads > 0).count() as u64;
    tell(threads, &|n| {
        format!("{n} ranks call MPI from several threads: their calls stand in one row, by the times of their returns")
    });
    told
}
