//! The host of images: it restarts one after the other, and notes when each rank is at the positions that are watched.
use crate::host::{FIRST_FILES, Work, work, write_report};
use crate::job::{End, ReplayReport, Step, StepReport, StepTime, Within, begun_file, stand_file};
use crate::restore;
use crate::restore_over::Remains;
use anyhow::{Context, Result, anyhow, bail};
use phasecast_image::{ImageError, Images, State};
use phasecast_mpi::{Hooks, Library, session};
use phasecast_process::gate::{self, Frame};
use phasecast_process::{fence, files, processor_time, signals, space, threads};
use phasecast_trace::codec;
use phasecast_trace::model::{boot_id, launcher_rank};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Images that are being restarted.
pub(crate) struct Replay {
    out: PathBuf,
    /// The positions of this rank that the step watches.
    watch: Vec<u64>,
    report: ReplayReport,
    time: Option<Time>,
    /// At so many positions of the step it is decided how long it is to be, if it may be longer.
    decide_at: Option<usize>,
}

/// The share of the time left over that steps are made longer by.
const SPARE: f64 = 0.9;

/// The time of a launch, for what there is time for.
struct Time {
    within: Within,
    started: Instant,
    /// When the last step was begun.
    begun: Instant,
    /// How many positions each step has reached so far.
    reached: Vec<usize>,
    spent: Spent,
}

/// What steps have taken.
#[derive(Clone, Copy)]
struct Spent {
    steps: usize,
    /// Time in which the program ran, here and on the base, in seconds.
    ran_s: (f64, f64),
    /// Time for all else, in seconds.
    other_s: f64,
}

impl StepTime {
    /// What the base took for so many positions, in seconds.
    fn base_s(&self, positions: usize) -> f64 {
        positions.checked_sub(1).and_then(|last| self.base_s.get(last)).copied().unwrap_or(0.0)
    }
}

impl Spent {
    /// A step of `all_s` seconds more, in `ran_s` of which the program ran for what the base took `base_s`.
    fn with(self, base_s: f64, ran_s: f64, all_s: f64) -> Spent {
        Spent {
            steps: self.steps + 1,
            ran_s: (self.ran_s.0 + ran_s, self.ran_s.1 + base_s),
            other_s: self.other_s + (all_s - ran_s).max(0.0),
        }
    }

    /// Time here over time on the base.
    fn pace(&self) -> f64 {
        if self.ran_s.1 > 0.0 { self.ran_s.0 / self.ran_s.1 } else { 1.0 }
    }

    /// What a step of this base time will take: beside the program what others have taken.
    fn step_s(&self, base_s: f64) -> f64 {
        self.other_s / self.steps.max(1) as f64 + self.pace() * base_s
    }
}

impl Time {
    fn new(within: Within, started: Instant) -> Time {
        let spent = Spent { steps: 0, ran_s: within.ran_s, other_s: 0.0 };
        Time { within, started, begun: started, reached: Vec::new(), spent }
    }

    fn left_s(&self) -> f64 {
        self.within.seconds - self.started.elapsed().as_secs_f64()
    }

    /// The step that is being made, and those after it.
    fn steps(&self) -> Option<(&StepTime, &[StepTime])> {
        self.within.steps.get(self.reached.len()..)?.split_first()
    }

    /// How many positions the step that is being made will reach, if that is known: those of the step that it repeats.
    fn known(&self, step: &StepTime) -> Option<usize> {
        step.repeats.and_then(|earlier| self.reached.get(earlier)).copied()
    }

    /// What the base took for the step, as far as it is known how long it will be, else as planned.
    fn base_s(&self, step: &StepTime) -> f64 {
        step.base_s(self.known(step).unwrap_or(step.planned))
    }

    /// What has been spent when the step has reached so many positions in `ran_s` seconds.
    fn with_step(&self, positions: usize, ran_s: f64) -> Spent {
        let base_s = self.steps().map_or(0.0, |(step, _)| step.base_s(positions));
        self.spent.with(base_s, ran_s, self.begun.elapsed().as_secs_f64())
    }

    /// The step is done.
    fn add(&mut self, positions: usize, ran_s: f64) {
        self.spent = self.with_step(positions, ran_s);
        self.reached.push(positions);
    }

    /// Whether there is a next step that is to be made.
    fn goes_on(&self) -> bool {
        let fits = |next| self.spent.step_s(self.base_s(next)) <= self.left_s();
        self.steps().is_some_and(|(next, _)| self.reached.len() < self.within.least || fits(next))
    }

    /// How many positions of the step there is time for, which has run as far as planned, in `ran_s` seconds. What is left
    /// over, if the steps to come are as planned, is divided among this one and those that may be longer, too.
    fn positions(&self, ran_s: f64) -> usize {
        let Some((step, later)) = self.steps() else { return 0 };
        let spent = self.with_step(step.planned, ran_s);
        let later_s: f64 = later.iter().map(|step| spent.step_s(self.base_s(step))).sum();
        let may_be = |step: &&StepTime| self.known(step).is_none() && step.planned < step.base_s.len();
        let open = 1 + later.iter().filter(may_be).count();
        let spare_s = SPARE * (self.left_s() - later_s);
        let more_s = (spare_s / open as f64).min(self.within.longest_s);
        let more = (step.planned + 1..=step.base_s.len()).take_while(|&positions| {
            let after = |positions| spent.pace() * (step.base_s(positions) - step.base_s(step.planned));
            // Half a piece more than there is time for is as near to it as half a piece less.
            0.5 * (after(positions - 1) + after(positions)) <= more_s && after(positions) <= spare_s
        });
        step.planned + more.count()
    }
}

fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: room for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Why a step of a replay has come back to the host's own stack.
const STEP_DONE: usize = 1;

impl Replay {
    pub(crate) fn reached(&mut self, events: u64) {
        let now = now_ns();
        let (Some(step), watch) = (self.report.steps.last_mut(), &mut self.watch) else { return };
        while let Some(&at) = watch.get(step.times_ns.len())
            && at <= events
        {
            step.times_ns.push(now);
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
        // SAFETY: the main thread, in a call of the gate, which holds no lock.
        unsafe { gate::leave(STEP_DONE) }
    }

    /// The program has run to its end.
    pub(crate) fn finished(&mut self) {
        let Some(step) = self.report.steps.last_mut() else { return };
        step.finished = self.watch.len() == step.times_ns.len();
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
        end: None,
        steps: Vec::new(),
    };
    let time = within.map(|within| Time::new(within, started));
    *work() = Work::Replay(Replay { out, watch: Vec::new(), report, time, decide_at: None });
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
    replay.report.end = Some(End { finalize_s, at_ns: now_ns() });
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
    let (file_state, signal_state): (files::FileState, signals::SignalState) =
        (section(&state, "files")?, section(&state, "signals")?);
    let main_state: threads::MainState = section(&state, "main")?;
    let (space_state, thread_state): (space::SpaceState, Vec<threads::ThreadState>) =
        (section(&state, "space")?, section(&state, "threads")?);
    let result: u64 = section(&state, "result")?;
    let restored = restore::memory(images, &state, remains)?;
    space::set_state(&space_state)?;
    let Work::Replay(replay) = work() else { bail!("the host has lost its work") };
    let scratch = replay.out.join(format!("files-{}", replay.report.steps.len()));
    std::fs::create_dir_all(&scratch)?;
    files::restore(&file_state, &scratch)?;
    restore::follow_files(&state)?;
    signals::restore(&signal_state);
    let events = mpi.events;
    let frame = state.frame as *mut Frame;
    mpi.restore(level).map_err(|reason| anyhow!("cut {}: {reason}", step.cut))?;
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
        threads::restore_main(&main_state);
        threads::recreate(&thread_state)?;
    }
    let restart_s = started.elapsed().as_secs_f64();
    phasecast_mpi::barrier();
    // SAFETY: the memory of the image is in place, with the frame in it.
    unsafe { gate::will_resume(frame) };
    processor_time::go_on(&main_state.used);
    signals::unblock(&signal_state);
    let start_ns = now_ns();
    let cut = step.cut;
    replay.report.steps.push(StepReport { cut, restart_s, start_ns, times_ns: vec![start_ns; there], finished });
    if !finished {
        // SAFETY: the memory of the image is in place, with the frame in it; this is the main thread.
        let why = unsafe { gate::resume(frame, result as usize) };
        if why != STEP_DONE {
            bail!("the program has left its upper half");
        }
    }
    phasecast_mpi::allow_stops();
    // The hooks have had it while the program ran.
    let Work::Replay(replay) = work() else { bail!("the host has lost its work") };
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
    signals::clear();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of a launch of steps of ten positions, 0.1 s apart on the base, of which two are planned.
    fn time(steps: usize, seconds: f64, longest_s: f64) -> Time {
        let base_s = (1..=10).map(|at| 0.1 * f64::from(at)).collect();
        let steps = vec![StepTime { base_s, planned: 2, repeats: None }; steps];
        Time::new(Within { seconds, least: 1, longest_s, ran_s: (0.0, 0.0), steps }, Instant::now())
    }

    #[test]
    fn what_is_left_over_is_divided_among_the_steps() {
        // Of 2 s the steps to come take 0.2 s each; nine tenths of 1.6 s are 0.48 s for each of three.
        assert_eq!(time(3, 2.0, 9.0).positions(0.2), 2 + 5);
        assert_eq!(time(3, 2.0, 0.3).positions(0.2), 2 + 3, "no longer than is asked for");
        assert_eq!(time(3, 0.4, 9.0).positions(0.2), 2, "as planned, whatever it takes");
        assert_eq!(time(1, 1e6, 9.0).positions(0.2), 10, "no more than there are");
        let mut one_off = time(3, 1.4, 9.0);
        one_off.within.steps[2].base_s.truncate(2);
        assert_eq!(one_off.positions(0.2), 2 + 4, "half of nine tenths of a second: the last is as long as it is");
    }

    #[test]
    fn a_slow_target_gets_fewer_positions() {
        // At twice the base's time two steps to come take 0.8 s: 0.36 s for each are two positions.
        assert_eq!(time(3, 2.0, 9.0).positions(0.4), 2 + 2);
        // Known from the launches before for ten times as long.
        let mut slow = time(3, 2.0, 9.0);
        slow.spent.ran_s = (4.0, 2.0);
        assert_eq!(slow.positions(0.2), 2 + 2);
    }

    #[test]
    fn what_is_repeated_is_as_long_as_it_was_and_has_its_share_before() {
        let mut time = time(4, 2.8, 9.0);
        (time.within.steps[2].repeats, time.within.steps[3].repeats) = (Some(0), Some(1));
        // Nine tenths of 2.8 s but three steps of 0.2 s, for each of four: 0.5 s, and half a piece.
        assert_eq!(time.positions(0.2), 2 + 5);
        (time.spent.steps, time.spent.ran_s) = (1, (0.7, 0.7));
        time.reached = vec![7];
        // Known is what the third takes: 0.7 s. Of what is left after that and the fourth as planned two have a share.
        assert_eq!(time.positions(0.2), 2 + 8);
        time.reached = vec![7, 10];
        let (third, later) = time.steps().expect("two are left");
        assert_eq!((time.known(third), time.known(&later[0])), (Some(7), Some(10)));
        assert!((time.base_s(third) - 0.7).abs() < 1e-9);
    }

    #[test]
    fn a_step_for_which_there_is_no_time_is_left_out() {
        let goes_on = |made: usize, seconds: f64| {
            let mut time = time(3, seconds, 9.0);
            time.spent = Spent { steps: made, ran_s: (0.4, 0.2), other_s: made as f64 };
            time.reached = vec![2; made];
            time.goes_on()
        };
        // The restart takes a second, the program 0.4 s.
        assert!(goes_on(1, 1.5) && !goes_on(1, 1.3) && !goes_on(3, 1e6));
        assert!(goes_on(0, 0.0), "the first is made in any case");
    }
}
