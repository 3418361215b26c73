//! The third run of `phasecast sign`: the program under the host, which saves images at the planned cuts. A cut that is
//! refused is tried again beside its place, in one more run.
use crate::base::is_command;
use crate::launch::{Launcher, POLL, interrupted, other_number, program_path};
use crate::restart::manifest::{FORMAT, Images, Needs, ProgramFile, SavedCut};
use crate::restart::plan::cuts;
use crate::restart::preflight::page_bytes;
use crate::restart::processor::{self, Baseline};
use crate::restart::replay::{Hosts, read_report};
use crate::restart::windows::{Profile, Window};
use anyhow::{Context, Result, bail};
use phasecast_analyzer::{Analysis, Order};
use phasecast_checkpoint::job::{CheckpointReport, Cut, Job, Program};
use phasecast_checkpoint::{MadeAfter, Taken};
use phasecast_image::{Content, State};
use phasecast_trace::awaited::{Awaited, Ran};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// A run under the host may take so many times the base run, and so much more, before it counts as hung.
const SLOWER: f64 = 5.0;
const PATIENCE_S: f64 = 120.0;
/// A rank may wait at a cut for [`SLOWER`] times as long as in the base run, and so much more, before it refuses it.
const CUT_PATIENCE_S: f64 = 30.0;

/// What is to be saved, of what, and how.
pub struct Saving<'a> {
    /// How to start it.
    pub launcher: &'a Launcher,
    /// The program and its arguments.
    pub command: &'a [String],
    /// What called MPI in the base runs, if all ranks ran the same.
    pub ran: Option<Ran>,
    /// The analysis of the base runs.
    pub analysis: &'a Analysis,
    /// The base runs' times.
    pub profile: &'a Profile,
    /// To what processor the program is held.
    pub baseline: Baseline,
    /// Wall time of a base run, in seconds.
    pub base_s: f64,
    /// For each rank, what it is to take where it would take whatever comes first; empty if it may.
    pub recorded: Vec<Vec<Taken>>,
    /// A folder that all ranks reach, with room for the images.
    pub scratch: &'a Path,
}

/// Images in a folder, with what the manifest says of them.
pub struct Saved {
    /// The folder.
    pub folder: PathBuf,
    /// The cuts, ascending.
    pub cuts: Vec<SavedCut>,
    /// What is measured from them.
    pub windows: Vec<Window>,
    /// Files that the program opened for reading after its first cut.
    pub later: BTreeSet<PathBuf>,
    /// What it made after its first cut.
    pub made: BTreeSet<MadeAfter>,
    /// Sentences on cuts that were refused.
    pub notes: Vec<String>,
}

/// Cuts that were refused, with the reasons.
type Refused = Vec<(usize, String)>;

impl Saving<'_> {
    /// Saves the images for these windows.
    ///
    /// # Errors
    /// If the program fails or hangs under the host, or no cut could be saved.
    pub fn save(&self, mut windows: Vec<Window>) -> Result<Saved> {
        let (mut saved, refused) = self.run(&windows, 1)?;
        if refused.is_empty() {
            return Ok(saved);
        }
        let mut notes = told("no image after", &refused);
        let repeats = |saved: &Saved| saved.windows.iter().any(|window| !window.one_off);
        // All again beside the places that were refused: images of one run belong together.
        let beside = |window: &Window| match refused.iter().any(|(after, _)| *after == window.after) {
            true => self.profile.neighbour(window),
            false => Some(*window),
        };
        windows = windows.iter().filter_map(beside).collect();
        if cuts(&windows) != saved.cuts.iter().map(|cut| cut.after).collect::<Vec<_>>() {
            match self.run(&windows, 2) {
                Ok((again, still)) => {
                    let _ = fs::remove_dir_all(&saved.folder);
                    saved = again;
                    notes.extend(told("nor after", &still));
                }
                Err(error) if !interrupted() && repeats(&saved) => {
                    notes.push(format!("the run for others beside them failed: {}", crate::exit::sentence(&error)));
                }
                Err(error) => return Err(error),
            }
        }
        if !repeats(&saved) {
            bail!(
                "the program cannot be saved where its phases are: {}. Use `phasecast sign --live`.",
                notes.join("; ")
            );
        }
        saved.notes = notes;
        Ok(saved)
    }

    /// One run under the host.
    fn run(&self, windows: &[Window], number: usize) -> Result<(Saved, Refused)> {
        let places = cuts(windows);
        let folder = self.scratch.join(format!("images-{number}"));
        fs::create_dir(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let folder = std::path::absolute(folder)?;
        let cut = |(id, &after): (usize, &usize)| {
            let events = self.analysis.cut(after).context("a cut lies behind the program's end")?;
            Ok(Cut { id: id as u32, events })
        };
        let cuts = places.iter().enumerate().map(cut).collect::<Result<Vec<_>>>()?;
        let (program, args) = self.command.split_first().context("no program is given")?;
        // By the name that it is called by: Python finds its environment by that.
        let program = Program { path: std::path::absolute(program_path(program)?)?, args: args.to_vec() };
        let patience_s = SLOWER * places.iter().map(|&after| self.skew_s(after)).fold(0.0, f64::max) + CUT_PATIENCE_S;
        let cpu = Some(self.baseline.name().to_string());
        let job = Job::Checkpoint {
            program,
            cuts: cuts.clone(),
            recorded: self.recorded.clone(),
            collectives: self.analysis.order == Order::Collectives,
            images: folder.clone(),
            patience_s,
            cpu,
        };
        let file = std::path::absolute(self.scratch.join(format!("save-{number}.json")))?;
        let mut hosts = Hosts::start(self.launcher, &job, &file, &self.awaiting(&file)?)?;
        self.wait(&mut hosts, SLOWER * self.base_s + PATIENCE_S + patience_s * places.len() as f64)?;
        let said = hosts.launch.said();
        let report = |rank| self.report(&folder, rank, &said);
        let reports = (0..self.analysis.ranks).map(report).collect::<Result<Vec<_>>>()?;
        self.sort(folder, windows, &places, &cuts, &reports)
    }

    /// The words by which a host waits for the program, where the command is not what calls MPI, but starts it.
    fn awaiting(&self, job: &Path) -> Result<Vec<OsString>> {
        let Some(ran) = self.ran.clone().filter(|ran| !is_command(ran, self.command)) else {
            return Ok(Vec::new());
        };
        let host = std::env::current_exe().context("cannot find out where the command phasecast is")?;
        let awaited = serde_json::to_string(&Awaited { ran, host, job: job.to_owned() })?;
        let command = self.command.iter().map(OsString::from);
        Ok(["awaits".into(), awaited.into()].into_iter().chain(command).collect())
    }

    /// From the first rank's end of a piece to the last one's, in the base run, in seconds.
    fn skew_s(&self, after: usize) -> f64 {
        let ends =
            self.analysis.pieces.iter().map(|pieces| pieces.iter().take(after + 1).map(|p| p.time.seconds()).sum());
        let (first, last) = ends.fold((f64::MAX, 0.0f64), |(first, last), end: f64| (first.min(end), last.max(end)));
        (last - first).max(0.0)
    }

    fn wait(&self, hosts: &mut Hosts, limit_s: f64) -> Result<()> {
        let begun = Instant::now();
        let limit = Duration::from_secs_f64(limit_s);
        let advice = "Use `phasecast sign --live` for a signature without images.";
        loop {
            if let Some((status, _)) = hosts.launch.ended()? {
                if status.success() {
                    return Ok(());
                }
                let said = hosts.launch.said();
                let why = if said.is_empty() { "see above".into() } else { said };
                bail!("the run that saves images failed ({status}): {why}. {advice}");
            }
            if interrupted() {
                hosts.stop();
                bail!("interrupted; all processes were ended");
            }
            if let Some(said) = hosts.given_up() {
                hosts.stop();
                bail!("the run that saves images failed: {said}. {advice}");
            }
            if begun.elapsed() > limit {
                hosts.stop();
                bail!("the run that saves images took more than {} s and was ended. {advice}", limit.as_secs());
            }
            hosts.launch.sleep(POLL);
        }
    }

    /// The report of a rank; `said` is what the hosts have complained of.
    fn report(&self, folder: &Path, rank: u32, said: &str) -> Result<CheckpointReport> {
        let report: CheckpointReport = read_report(folder, rank, "report of its images", said)?;
        let expected = self.analysis.events[rank as usize];
        if report.size != self.analysis.ranks {
            bail!(other_number(report.size, self.analysis.ranks, "the program's MPI"));
        }
        // What comes last may be another in every run; the cuts lie before it.
        if report.events != expected && self.analysis.verdict.difference.is_none() {
            bail!(
                "rank {rank} had {} events under the host and {expected} in the base runs: its communication differs from run to run, so cuts cannot be carried over. Use `phasecast sign --live`.",
                report.events
            );
        }
        Ok(report)
    }

    /// Tells the cuts that all ranks saved from those that were refused, whose files are removed.
    fn sort(
        &self,
        folder: PathBuf,
        windows: &[Window],
        places: &[usize],
        cuts: &[Cut],
        reports: &[CheckpointReport],
    ) -> Result<(Saved, Refused)> {
        let (mut kept, mut refused) = (Vec::new(), Refused::new());
        for (cut, &after) in cuts.iter().zip(places) {
            let of_ranks: Vec<_> = reports.iter().map(|r| r.cuts.iter().find(|c| c.id == cut.id)).collect();
            if of_ranks.iter().all(|report| report.is_some_and(|report| report.saved)) {
                let seconds = of_ranks.iter().flatten().map(|report| report.seconds).fold(0.0, f64::max);
                let bytes = of_ranks.iter().flatten().map(|report| report.bytes).sum();
                let files = of_ranks.iter().flatten().flat_map(|report| &report.files).cloned().collect();
                kept.push(SavedCut { id: cut.id, after, events: cut.events.clone(), seconds, bytes, files });
                continue;
            }
            let reason = of_ranks.iter().flatten().find_map(|report| report.reason.clone());
            refused.push((after, reason.unwrap_or_else(|| "a rank did not come to it".into())));
            forget(&folder, cut.id, self.analysis.ranks);
        }
        let windows = windows.iter().filter(|w| kept.iter().any(|cut| cut.after == w.after)).copied().collect();
        let later = reports.iter().flat_map(|report| &report.later).cloned().collect();
        let made = reports.iter().flat_map(|report| &report.made).cloned().collect();
        Ok((Saved { folder, cuts: kept, windows, later, made, notes: Vec::new() }, refused))
    }

    /// What the manifest says of the images.
    ///
    /// # Errors
    /// If the program or an image cannot be read.
    pub fn describe(&self, saved: &Saved, edges: Vec<crate::restart::manifest::EdgeTimes>) -> Result<Images> {
        let path = program_path(&self.command[0])?;
        let (sha256, bytes) = digest(&path)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Ok(Images {
            format: FORMAT,
            created: now.map_or(0, |now| now.as_secs()),
            user: user(),
            program: ProgramFile { path: fs::canonicalize(path)?.display().to_string(), bytes, sha256 },
            folder: std::env::current_dir()?,
            needs: Needs {
                architecture: std::env::consts::ARCH.into(),
                cpu_baseline: self.baseline.name().into(),
                cpu_features: self.baseline.features(&processor::flags()),
                page_size: page_bytes(),
                rank_bytes: rank_bytes(&saved.folder)?,
            },
            cuts: saved.cuts.clone(),
            later: saved.later.clone(),
            made: saved.made.clone(),
            recorded: !self.recorded.is_empty(),
            windows: saved.windows.clone(),
            edges,
            verified: None,
        })
    }
}

/// Sentences on refused cuts, one for each reason.
fn told(what: &str, refused: &Refused) -> Vec<String> {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (after, reason) in refused {
        by_reason.entry(reason).or_default().push(after.to_string());
    }
    let told = |(reason, pieces): (&str, Vec<String>)| {
        let many = if pieces.len() == 1 { "" } else { "s" };
        format!("{what} piece{many} {}: {reason}", pieces.join(", "))
    };
    by_reason.into_iter().map(told).collect()
}

/// Removes the states of a cut: what they alone name is then not packed.
fn forget(folder: &Path, cut: u32, ranks: u32) {
    (0..ranks).for_each(|rank| drop(fs::remove_file(folder.join(State::file_name(cut, rank)))));
}

impl Saved {
    /// Drops images until their pages, each counted once, have at most `budget` bytes before compression: those of which most
    /// pages are no other's, but the last window for phases that repeat is kept.
    ///
    /// # Errors
    /// If one image alone is larger, or an image cannot be read.
    pub fn fit(&mut self, budget: u64, ranks: u32) -> Result<()> {
        let images = phasecast_image::Images::open(&self.folder)?;
        let mut pages: BTreeMap<u32, HashSet<u128>> = BTreeMap::new();
        for (cut, rank) in images.list()? {
            pages.entry(cut).or_default().extend(images.state(cut, rank)?.hashes);
        }
        loop {
            let mut held: HashMap<u128, u32> = HashMap::new();
            pages.values().flatten().for_each(|page| *held.entry(*page).or_default() += 1);
            let bytes = held.len() as u64 * phasecast_image::PAGE as u64;
            if bytes <= budget {
                return Ok(());
            }
            let alone = |id: u32| pages.get(&id).map_or(0, |own| own.iter().filter(|page| held[*page] == 1).count());
            let repeating = cuts(&self.windows.iter().filter(|w| !w.one_off).copied().collect::<Vec<_>>());
            let droppable = self
                .cuts
                .iter()
                .rev()
                .filter(|cut| self.cuts.len() > 1 && (repeating.len() > 1 || !repeating.contains(&cut.after)));
            let Some((id, after)) = droppable.max_by_key(|cut| alone(cut.id)).map(|cut| (cut.id, cut.after)) else {
                bail!("one image has {} already, more than --size-budget allows", crate::output::bytes(bytes));
            };
            forget(&self.folder, id, ranks);
            pages.remove(&id);
            self.cuts.retain(|cut| cut.id != id);
            self.windows.retain(|window| window.after != after);
            self.notes.push(format!("the image after piece {after} is left out to keep the size budget"));
        }
    }
}

/// Memory of the largest rank of the images in a folder, in bytes.
fn rank_bytes(folder: &Path) -> Result<u64> {
    let images = phasecast_image::Images::open(folder)?;
    let mut most = 0;
    for (cut, rank) in images.list()? {
        let state = images.state(cut, rank)?;
        let runs = state.regions.iter().flat_map(|region| &region.runs);
        let own = runs.filter(|run| matches!(run.content, Content::PrivateZero | Content::Data(_)));
        let pages: u64 = own.map(|run| run.pages).sum();
        most = most.max(pages.saturating_mul(phasecast_image::PAGE as u64));
    }
    Ok(most)
}

/// The SHA-256 of a file in hexadecimal digits, and its length.
///
/// # Errors
/// If it cannot be read.
pub fn digest(path: &Path) -> Result<(String, u64)> {
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let (mut hasher, mut length, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 20]);
    loop {
        let count = file.read(&mut buffer).with_context(|| format!("cannot read {}", path.display()))?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        length += count as u64;
    }
    Ok((hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect(), length))
}

/// The user's name, or number.
fn user() -> String {
    let id = nix::unistd::Uid::effective();
    let known = nix::unistd::User::from_uid(id).ok().flatten().map(|user| user.name);
    known.unwrap_or_else(|| id.to_string())
}

#[cfg(test)]
mod tests {
    #[test]
    fn refused_cuts_are_told_by_their_reasons() {
        let refused = vec![(3, "a socket".to_string()), (5, "a timer".into()), (8, "a socket".into())];
        let told = super::told("no image after", &refused);
        assert_eq!(told, ["no image after pieces 3, 8: a socket", "no image after piece 5: a timer"]);
    }
}
