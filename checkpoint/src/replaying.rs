//! The host of images: it restarts one after the other, and notes when each rank is at the positions that are watched.
use crate::host::{FIRST_FILES, Work, work, write_report};
use crate::job::{End, ReplayReport, Step, StepReport, Within, begun_file, stand_file};
use crate::moment::monotonic_ns;
use crate::replay_time::Time;
use crate::restore_over::Remains;
use crate::{restore, sentence, sharing};
use anyhow::{Context, Result, anyhow, bail};
use phasecast_image::{ImageError, Images, State};
use phasecast_mpi::{Hooks, Library, session};
use phasecast_process::fence_cost::{self, Cost, Held};
use phasecast_process::{
    MadeAfter, fence, files, gate, processor_time, processors, settings, signal_state, space, threads,
};
use phasecast_trace::codec;
use phasecast_trace::model::{boot_id, launcher_rank};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Images that are being restarted.
pub(crate) struct Replay {
    out: PathBuf,
    /// What the base run made after its cuts.
    made: Vec<MadeAfter>,
    /// The positions of this rank that the step watches.
    watch: Vec<u64>,
    report: ReplayReport,
    time: Option<Time>,
    /// At so many positions of the step it is decided how long it is to be, if it may be longer.
    decide_at: Option<usize>,
    /// What the fence had held up before the step and until each of its positions.
    held: Vec<Held>,
}

/// Why a step of a replay has come back to the host's own stack.
const STEP_DONE: usize = 1;

impl Replay {
    pub(crate) fn reached(&mut self, events: u64) {
        let now = monotonic_ns();
        let (Some(step), watch) = (self.report.steps.last_mut(), &mut self.watch) else { return };
        while let Some(&at) = watch.get(step.times_ns.len())
            && at <= events
        {
            step.times_ns.push(now);
            self.held.push(Held::so_far());
        }
        if let Some(time) = &self.time
            && self.decide_at.is_some_and(|at| step.times_ns.len() >= at)
        {
            self.decide_at = None;
            let ran_s = now.saturating_sub(step.start_ns) as f64 * 1e-9;
            watch.truncate(phasecast_mpi::decided(time.positions(ran_s) as u64) as usize);
            step.times_ns.truncate(watch.len());
        }
        let mut s = session();
        if let Some(&next) = watch.get(step.times_ns.len()) {
            s.next_stop = next;
            return;
        }
        s.next_stop = u64::MAX;
        if watch.is_empty() {
            return;
        }
        step.finished = true;
        drop(s);
        // SAFETY: in a call of the gate, which holds no lock.
        let Err(_) = unsafe { threads::leave(STEP_DONE) };
        // A thread waits within MPI: when the program has come further, it may not.
        session().next_stop = events;
    }

    /// The program has run to its end.
    pub(crate) fn finished(&mut self) {
        let Some(step) = self.report.steps.last_mut() else { return };
        step.finished = self.watch.len() == step.times_ns.len();
        self.settle();
    }

    /// Says what the fence has cost in the step. Nothing of the upper half runs meanwhile.
    fn settle(&mut self) {
        let (Some(step), Some(&first)) = (self.report.steps.last_mut(), self.held.first()) else { return };
        let none = self.held.last() == Some(&first);
        let cost = if none { Cost::default() } else { fence_cost::measure().unwrap_or_default() };
        let until = self.held.iter().skip(1).take(step.times_ns.len());
        step.held_ns = until.map(|&held| cost.between(first, held)).collect();
    }

    pub(crate) fn write(&self) {
        write_report(&self.out, self.report.rank, &self.report);
    }

    fn progress(&self) {
        let path = self.out.join(format!("rank-{:05}.progress", self.report.rank));
        let line = format!("{}\n", self.report.steps.len());
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| std::io::Write::write_all(&mut file, line.as_bytes()));
    }
}

fn section<T: serde::de::DeserializeOwned>(state: &State, name: &str) -> Result<T> {
    let bytes = state.sections.get(name).with_context(|| format!("the image has no section {name}"))?;
    codec::from_bytes(bytes).map_err(|reason| anyhow!("section {name} of the image: {reason}"))
}

/// Restarts the images of a job.
pub(crate) fn replay(
    path: &Path,
    steps: Vec<Step>,
    made: Vec<MadeAfter>,
    within: Option<Within>,
    hooks: Hooks,
    out: PathBuf,
    started: Instant,
) -> Result<i32> {
    let begun = Instant::now();
    let images = Images::open(path)?;
    let Some(first) = steps.first() else { bail!("the job has no steps") };
    let rank = launcher_rank().context("the launcher does not say which rank this is. Is it an mpirun?")?;
    // Whether any rank has begun is looked for where the launcher fails.
    let _ = std::fs::File::create(out.join(begun_file(rank)));
    let state = images.state(first.cut, rank).map_err(|error| no_image(&images, first.cut, rank, error))?;
    let mpi: phasecast_mpi::State = section(&state, "mpi")?;
    let mut numbers: Vec<i32> = FIRST_FILES.collect();
    let mut cuts: Vec<u32> = steps.iter().map(|step| step.cut).collect();
    cuts.sort_unstable();
    cuts.dedup();
    for cut in cuts {
        let files: files::FileState = section(&images.state(cut, rank)?, "files")?;
        numbers.extend(files.files.iter().map(|file| file.fd));
    }
    // Opened again, as the images may need the number that it has.
    drop(images);
    files::reserve(numbers);
    let images = Images::open(path)?;
    let read_s = begun.elapsed().as_secs_f64();
    let library = Library::load()?;
    let library = phasecast_mpi::prepare(library, hooks);
    let (level, place) = phasecast_mpi::start_library(library, mpi.thread_level).map_err(|reason| anyhow!(reason))?;
    if place.0 != rank as i32 || place.1 != state.size as i32 {
        let size = state.size;
        bail!(
            "the image is of rank {rank} of {size}, but MPI says rank {} of {}. Does the launcher start {size} ranks, and does it belong to the MPI library that was found?",
            place.0,
            place.1
        );
    }
    gate::install(phasecast_mpi::dispatch)?;
    fence::install()?;
    phasecast_mpi::answer_to(&out.join(stand_file(rank)));
    let report = ReplayReport {
        boot_id: boot_id(),
        rank,
        size: state.size,
        mpi: library.version(),
        init_s: started.elapsed().as_secs_f64() - read_s,
        read_s,
        processors: None,
        end: None,
        steps: Vec::new(),
    };
    let time = within.map(|within| Time::new(within, started));
    *work() = Work::Replay(Replay { out, made, watch: Vec::new(), report, time, decide_at: None, held: Vec::new() });
    let mut remains = Remains::default();
    let mut steps = steps.into_iter().peekable();
    while let Some(step) = steps.next() {
        let (data, goes_on) =
            one_step(&images, rank, level, step, std::mem::take(&mut remains), steps.peek().is_some())?;
        if !goes_on {
            break;
        }
        remains = Remains::leave(data);
    }
    space::unmap_all();
    let Work::Replay(replay) = work() else { bail!("the host has lost its work") };
    // Those that are left out are done, too.
    steps.for_each(|_| replay.progress());
    let finalize_s = phasecast_mpi::finish_library(library).as_secs_f64();
    replay.report.end = Some(End { finalize_s, at_ns: monotonic_ns() });
    replay.write();
    Ok(0)
}

/// Restarts an image over what is left of the one before; returns how many bytes it had, and whether there is a next, and time
/// for it. Its memory stays, with nothing that runs there.
fn one_step(
    images: &Images,
    rank: u32,
    level: i32,
    step: Step,
    remains: Remains,
    has_next: bool,
) -> Result<(u64, bool)> {
    let started = Instant::now();
    let state = images.state(step.cut, rank)?;
    let mpi: phasecast_mpi::State = section(&state, "mpi")?;
    let (mut file_state, signal_state): (files::FileState, signal_state::SignalState) =
        (section(&state, "files")?, section(&state, "signals")?);
    let main_state: threads::MainState = section(&state, "main")?;
    let (space_state, thread_state): (space::SpaceState, Vec<threads::ThreadState>) =
        (section(&state, "space")?, section(&state, "threads")?);
    signal_state::take_none();
    let restored = restore::memory(images, &state, remains)?;
    if space_state.has_low_code() {
        fence::include_low_code()?;
    }
    space::set_state(&space_state)?;
    let Work::Replay(replay) = work() else { bail!("the host has lost its work") };
    let scratch = replay.out.join(format!("files-{}", replay.report.steps.len()));
    // Not with its parents: where they are gone a later command has removed what this one left.
    match std::fs::create_dir(&scratch) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    file_state.before(&replay.made, step.cut);
    files::restore(&file_state, &scratch)?;
    signal_state::restore(&signal_state);
    let settings: settings::Settings = section(&state, "settings")?;
    settings::restore(&settings);
    // Libraries that come with MPI ask, too, as libnuma does: a program without threads goes by it only where one processor is
    // the reason.
    let told = settings.processors.filter(|&there| there == 1 || !thread_state.is_empty());
    replay.report.processors = told.map(|there| [there, processors::given()]);
    let events = mpi.events;
    let share = || sharing::map_again(&state, &file_state).map_err(|error| sentence(&error));
    mpi.restore(level, share).map_err(|reason| anyhow!("cut {}: {reason}", step.cut))?;
    let mut watch = step.watch.into_iter().nth(rank as usize).unwrap_or_default();
    replay.decide_at = None;
    if let Some(time) = &mut replay.time {
        time.begun = started;
        match time.steps().map(|(step, _)| (time.known(step), step.planned)) {
            Some((Some(known), _)) => watch.truncate(known),
            Some((None, planned)) if planned < watch.len() => {
                // Other threads could ask for what is taken in while ranks wait for the decision.
                if phasecast_mpi::anywhere(session().multiple && !thread_state.is_empty()) {
                    watch.truncate(planned);
                } else {
                    replay.decide_at = Some(planned);
                }
            }
            _ => {}
        }
    }
    session().next_stop = watch.iter().copied().find(|&at| at > events).unwrap_or(u64::MAX);
    // A rank may have no event in what is measured: it is there already.
    let there = watch.iter().take_while(|&&at| at <= events).count();
    let finished = !watch.is_empty() && there == watch.len();
    replay.watch = watch;
    // SAFETY: the memory of the image is in place, its threads are those that were saved with it.
    unsafe {
        threads::restore_main(&main_state)?;
        threads::recreate(&thread_state)?;
    }
    let restart_s = started.elapsed().as_secs_f64();
    phasecast_mpi::barrier();
    processor_time::go_on(&main_state.used);
    signal_state::start_timers(&signal_state)?;
    let (start_ns, cut) = (monotonic_ns(), step.cut);
    let times_ns = vec![start_ns; there];
    replay.report.steps.push(StepReport { cut, restart_s, start_ns, times_ns, held_ns: Vec::new(), finished });
    replay.held = vec![Held::so_far(); there + 1];
    threads::release();
    if !finished {
        // SAFETY: the memory of the image is in place, with all that was there beside it; this is the main thread.
        let why = unsafe { threads::resume(&main_state)? };
        if why != STEP_DONE {
            bail!("the program has left its upper half");
        }
    }
    phasecast_mpi::allow_stops();
    // The hooks have had it while the program ran.
    let Work::Replay(replay) = work() else { bail!("the host has lost its work") };
    replay.settle();
    replay.progress();
    threads::end()?;
    phasecast_mpi::drain(None, None).map_err(|reason| anyhow!("after cut {cut}: {reason}"))?;
    let goes_on = match &mut replay.time {
        Some(time) if has_next => {
            let times_ns = replay.report.steps.last().map_or(&[][..], |step| &step.times_ns);
            let ran_s = times_ns.last().map_or(0.0, |last| last.saturating_sub(start_ns) as f64 * 1e-9);
            time.add(times_ns.len(), ran_s);
            phasecast_mpi::decided(u64::from(time.goes_on())) == 1
        }
        _ => has_next,
    };
    session().tear_down();
    signal_state::clear();
    files::clear();
    Ok((restored.data, goes_on))
}

/// Why there is no image of a rank: the launcher has started too many, or the set is not whole.
fn no_image(images: &Images, cut: u32, rank: u32, error: ImageError) -> anyhow::Error {
    match images.state(cut, 0) {
        Ok(State { size, .. }) if rank >= size => anyhow!(
            "the launcher has started rank {rank}, but the images are of {size} ranks. Let it start {size}, as `mpirun -n {size}` does."
        ),
        _ => error.into(),
    }
}
