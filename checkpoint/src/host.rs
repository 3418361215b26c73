//! The host of one rank: loads the machine's MPI and a program (or an image of one), lets it run, and steps in at the
//! positions that its job names.
use crate::job::{CheckpointReport, Cut, CutReport, Job, Program, ReplayReport, Step, StepReport};
use crate::{dump, restore};
use anyhow::{Context, Result, anyhow, bail};
use phasecast_image::{ImageError, Images, State, Store};
use phasecast_mpi::{Hooks, Library, session};
use phasecast_process::gate::{self, Frame};
use phasecast_process::{Cpu, Start, fence, files, signals, space, threads};
use phasecast_trace::codec;
use std::cell::UnsafeCell;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What the host of this process is doing.
enum Work {
    Nothing,
    Checkpoint(Checkpoint),
    Replay(Replay),
}

struct Checkpoint {
    cuts: Vec<Cut>,
    images: PathBuf,
    program: String,
    store: Option<Store>,
    reports: Vec<CutReport>,
}

struct Replay {
    out: PathBuf,
    step: Step,
    report: ReplayReport,
}

struct Place(UnsafeCell<Work>);

// SAFETY: only the main thread of the host comes here, in its own code or in the gate's calls.
unsafe impl Sync for Place {}

static WORK: Place = Place(UnsafeCell::new(Work::Nothing));

fn work() -> &'static mut Work {
    // SAFETY: as above: one thread, and no two of its borrows at a time, since hooks do not call one another.
    unsafe { &mut *WORK.0.get() }
}

/// Runs a job file; the exit code of the process. `facade` is the library that the program gets in place of its MPI.
pub fn run(job: &Path, facade: &Path) -> i32 {
    match job_of(job).and_then(|job| carry_out(job, facade)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("phasecast host: {}{error:#}", rank_prefix());
            1
        }
    }
}

fn rank_prefix() -> String {
    let names = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"];
    let rank = names.iter().find_map(|name| std::env::var(name).ok());
    rank.map_or_else(String::new, |rank| format!("rank {rank}: "))
}

fn job_of(path: &Path) -> Result<Job> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read the job {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no job of this phasecast", path.display()))
}

fn carry_out(job: Job, facade: &Path) -> Result<i32> {
    let started = Instant::now();
    phasecast_process::prepare()?;
    match job {
        Job::Checkpoint { program, cuts, images, cpu } => checkpoint(program, cuts, images, cpu, facade),
        Job::Replay { images, steps, out } => replay(&images, steps, out, started),
    }
}

/// Numbers that a program's own files get first: kept free of the lower half's.
const FIRST_FILES: std::ops::Range<i32> = 3..64;

fn hooks() -> Hooks {
    Hooks { stop, finalize, within: space::contains }
}

fn checkpoint(program: Program, cuts: Vec<Cut>, images: PathBuf, cpu: Option<String>, facade: &Path) -> Result<i32> {
    // A preloaded library that is missing is passed over with a warning, and the program would run as it is.
    if !facade.is_file() {
        bail!(
            "{} is missing: it belongs beside the command phasecast. Install both from the same build.",
            facade.display()
        );
    }
    files::reserve(FIRST_FILES);
    let library = Library::load()?;
    let cpu: Cpu = cpu.map_or(Ok(Cpu::Native), |name| name.parse()).map_err(|error| anyhow!("{error}"))?;
    let library = phasecast_mpi::prepare(library, hooks());
    *work() = Work::Checkpoint(Checkpoint {
        cuts,
        images,
        program: program.path.display().to_string(),
        store: None,
        reports: Vec::new(),
    });
    let start = Start {
        program: program.path,
        args: program.args.into_iter().map(Into::into).collect(),
        env: phasecast_mpi::environment(library),
        facade: Some(facade.to_owned()),
        cpu,
    };
    files::release();
    gate::install(phasecast_mpi::dispatch)?;
    fence::install()?;
    // SAFETY: the main thread; gate and fence are in place.
    unsafe { phasecast_process::run(&start)? };
    bail!("the program has left its upper half")
}

/// A position was reached.
///
/// # Safety
/// Called by the session at the end of a call of the main thread.
unsafe fn stop(frame: *mut Frame, result: usize) -> usize {
    let events = session().events;
    // SAFETY: a system call without arguments.
    let main = unsafe { libc::gettid() == libc::getpid() };
    match work() {
        Work::Nothing => {}
        Work::Checkpoint(checkpoint) if !main => checkpoint.refused(events),
        Work::Replay(_) if !main => {}
        Work::Checkpoint(checkpoint) => checkpoint.reached(events, frame, result),
        Work::Replay(replay) => replay.reached(events),
    }
    result
}

/// The program finalizes MPI.
fn finalize() {
    match work() {
        Work::Nothing => {}
        Work::Checkpoint(checkpoint) => checkpoint.finish(),
        Work::Replay(replay) => {
            replay.finished();
            replay.write();
        }
    }
}

fn rank_of(cut: &Cut, rank: i32) -> u64 {
    cut.events.get(rank as usize).copied().unwrap_or(u64::MAX)
}

impl Checkpoint {
    fn next(&self) -> Option<Cut> {
        self.cuts.get(self.reports.len()).cloned()
    }

    fn reached(&mut self, events: u64, frame: *mut Frame, result: usize) {
        let rank = session().place.0;
        while let Some(cut) = self.next() {
            let at = rank_of(&cut, rank);
            if at > events {
                break;
            }
            let started = Instant::now();
            let past = (at < events)
                .then(|| format!("it lies within a call, after event {at}; the call ended after {events}"));
            let saved = self.save(&cut, frame, result, past);
            let seconds = started.elapsed().as_secs_f64();
            let (saved, reason, bytes) = match saved {
                Ok(bytes) => (true, None, bytes),
                Err(reason) => (false, Some(format!("{reason:#}")), 0),
            };
            self.reports.push(CutReport { id: cut.id, saved, reason, seconds, bytes });
        }
        session().next_stop = self.next().map_or(u64::MAX, |cut| rank_of(&cut, rank));
    }

    /// A thread other than the main one has reached a position: the cut is refused, while the main thread goes on.
    fn refused(&mut self, events: u64) {
        let rank = session().place.0;
        while let Some(cut) = self.next().filter(|cut| rank_of(cut, rank) <= events) {
            phasecast_mpi::refuse();
            phasecast_mpi::barrier();
            let reason = Some("a thread that is not the main one has reached it".to_owned());
            self.reports.push(CutReport { id: cut.id, saved: false, reason, seconds: 0.0, bytes: 0 });
        }
        let next = self.next().map_or(u64::MAX, |cut| rank_of(&cut, rank));
        session().next_stop = next;
    }

    fn save(&mut self, cut: &Cut, frame: *mut Frame, result: usize, refusal: Option<String>) -> Result<u64> {
        let stopped =
            if refusal.is_none() { threads::stop() } else { Err(phasecast_process::Error::Obstacle(String::new())) };
        let refusal = refusal.or_else(|| stopped.as_ref().err().map(ToString::to_string));
        let drained = phasecast_mpi::drain(refusal);
        let outcome = drained.map_err(|reason| anyhow!(reason)).and_then(|()| {
            let threads = stopped.as_ref().map_err(|error| anyhow!("{error}"))?;
            self.write(cut, frame, result, threads.as_slice())
        });
        if stopped.is_ok() {
            threads::go();
        }
        phasecast_mpi::barrier();
        outcome
    }

    fn write(&mut self, cut: &Cut, frame: *mut Frame, result: usize, threads: &[threads::ThreadState]) -> Result<u64> {
        let (rank, size) = session().place;
        let (rank, size) = (rank as u32, size as u32);
        let mut state = State { rank, size, cut: cut.id, program: self.program.clone(), ..State::default() };
        // SAFETY: the frame of the call in which the position was reached.
        let fs = unsafe {
            (*frame).note_controls();
            (*frame).fs as u64
        };
        (state.frame, state.fs) = (frame as u64, vec![fs]);
        let space = space::state();
        state.brk = (space.brk_start as u64, space.brk as u64);
        let mut put = |name: &str, bytes: Vec<u8>| state.sections.insert(name.into(), bytes);
        put("mpi", codec::to_bytes(&phasecast_mpi::State::save()));
        if signal_pending() {
            bail!("a signal waits that the program has blocked");
        }
        put("signals", codec::to_bytes(&signals::save()?));
        put("files", codec::to_bytes(&files::save()?));
        put("threads", codec::to_bytes(&threads));
        put("main", codec::to_bytes(&threads::main_state()));
        put("space", codec::to_bytes(&space));
        put("result", codec::to_bytes(&(result as u64)));
        if self.store.is_none() {
            self.store = Some(Store::create(&self.images, rank)?);
        }
        let Some(store) = &mut self.store else { bail!("no page store") };
        let stats = dump::memory(store, &mut state)?;
        store.save(&state)?;
        Ok(stats.fresh)
    }

    /// The program ends its use of MPI: cuts that were not reached are refused together, and the report is written.
    fn finish(&mut self) {
        while let Some(cut) = self.next() {
            let reason = "the program ends before it".to_string();
            let _ = phasecast_mpi::drain(Some(reason.clone()));
            phasecast_mpi::barrier();
            self.reports.push(CutReport { id: cut.id, saved: false, reason: Some(reason), seconds: 0.0, bytes: 0 });
        }
        let s = session();
        let (rank, size) = (s.place.0 as u32, s.place.1 as u32);
        let report = CheckpointReport {
            rank,
            size,
            events: s.events,
            mpi: s.library.version(),
            abi: format!("{:?}", s.library.abi),
            cuts: self.reports.clone(),
        };
        drop(s);
        write_report(&self.images, rank, &report);
    }
}

/// Whether a signal waits for the main thread or the process.
fn signal_pending() -> bool {
    // SAFETY: sets of signals of our own.
    unsafe {
        let mut pending: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&raw mut pending);
        (1..libc::SIGRTMAX()).any(|signal| libc::sigismember(&raw const pending, signal) == 1)
    }
}

/// Writes a report; a failure is told, and the runner misses the file.
fn write_report<T: serde::Serialize>(folder: &Path, rank: u32, report: &T) {
    let path = folder.join(format!("rank-{rank:05}.json"));
    let written = serde_json::to_vec(report).map_err(anyhow::Error::from).and_then(|bytes| {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        std::io::Write::write_all(&mut file, &bytes)?;
        file.persist(&path)?;
        Ok(())
    });
    if let Err(error) = written {
        eprintln!("phasecast host: rank {rank}: cannot write {}: {error:#}", path.display());
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
    fn reached(&mut self, events: u64) {
        let now = now_ns();
        let mut s = session();
        let watch = self.step.watch.get(s.place.0 as usize).map_or(&[][..], Vec::as_slice);
        let Some(step) = self.report.steps.last_mut() else { return };
        while let Some(&at) = watch.get(step.times_ns.len())
            && at <= events
        {
            step.times_ns.push(now);
        }
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
    fn finished(&mut self) {
        let Some(step) = self.report.steps.last_mut() else { return };
        let watch = self.step.watch.get(self.report.rank as usize).map_or(0, Vec::len);
        step.finished = watch == step.times_ns.len();
    }

    fn write(&self) {
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

fn replay(path: &Path, steps: Vec<Step>, out: PathBuf, started: Instant) -> Result<i32> {
    let images = Images::open(path)?;
    let Some(first) = steps.first() else { bail!("the job has no steps") };
    let rank = launcher_rank()?;
    let state = images.state(first.cut, rank).map_err(|error| no_image(&images, first.cut, rank, error))?;
    let mpi: phasecast_mpi::State = section(&state, "mpi")?;
    let mut numbers: Vec<i32> = FIRST_FILES.collect();
    let mut cuts: Vec<u32> = steps.iter().map(|step| step.cut).collect();
    cuts.dedup();
    for cut in cuts {
        let files: files::FileState = section(&images.state(cut, rank)?, "files")?;
        numbers.extend(files.files.iter().map(|file| file.fd));
    }
    files::reserve(numbers);
    let library = Library::load()?;
    let library = phasecast_mpi::prepare(library, hooks());
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
    let report = ReplayReport {
        rank,
        size: state.size,
        mpi: library.version(),
        init_s: started.elapsed().as_secs_f64(),
        steps: Vec::new(),
    };
    let step = Step { cut: first.cut, watch: Vec::new() };
    *work() = Work::Replay(Replay { out, step, report });
    for step in steps {
        one_step(&images, rank, level, step)?;
    }
    let Work::Replay(replay) = work() else { bail!("the host has lost its work") };
    replay.write();
    phasecast_mpi::finish_library(library);
    Ok(0)
}

fn one_step(images: &Images, rank: u32, level: i32, step: Step) -> Result<()> {
    let started = Instant::now();
    let state = images.state(step.cut, rank)?;
    let mpi: phasecast_mpi::State = section(&state, "mpi")?;
    let (file_state, signal_state): (files::FileState, signals::SignalState) =
        (section(&state, "files")?, section(&state, "signals")?);
    let main_state: threads::MainState = section(&state, "main")?;
    let (space_state, thread_state): (space::SpaceState, Vec<threads::ThreadState>) =
        (section(&state, "space")?, section(&state, "threads")?);
    let result: u64 = section(&state, "result")?;
    restore::memory(images, &state)?;
    space::set_state(&space_state)?;
    let Work::Replay(replay) = work() else { bail!("the host has lost its work") };
    let scratch = replay.out.join(format!("scratch-{rank:05}"));
    std::fs::create_dir_all(&scratch)?;
    let shared = replay.out.join(format!("files-{}", replay.report.steps.len()));
    std::fs::create_dir_all(&shared)?;
    files::restore(&file_state, &scratch)?;
    signals::restore(&signal_state);
    let watch: Vec<u64> = step.watch.get(rank as usize).cloned().unwrap_or_default();
    let events = mpi.events;
    let frame = state.frame as *mut Frame;
    mpi.restore(level, &shared).map_err(|reason| anyhow!("cut {}: {reason}", step.cut))?;
    session().next_stop = watch.iter().copied().find(|&at| at > events).unwrap_or(u64::MAX);
    replay.step = step;
    // SAFETY: the memory of the image is in place, its threads are those that were saved with it.
    unsafe {
        threads::restore_main(&main_state);
        threads::recreate(&thread_state)?;
    }
    let restart_s = started.elapsed().as_secs_f64();
    phasecast_mpi::barrier();
    signals::unblock(&signal_state);
    let start_ns = now_ns();
    let cut = replay.step.cut;
    // A rank may have no event in what is measured: it is there already.
    let there: Vec<u64> = watch.iter().take_while(|&&at| at <= events).map(|_| start_ns).collect();
    let finished = !watch.is_empty() && there.len() == watch.len();
    replay.report.steps.push(StepReport { cut, restart_s, start_ns, times_ns: there, finished });
    if !finished {
        // SAFETY: the memory of the image is in place, with the frame in it; this is the main thread.
        let why = unsafe { gate::resume(frame, result as usize) };
        if why != STEP_DONE {
            bail!("the program has left its upper half");
        }
    }
    phasecast_mpi::allow_stops();
    replay.progress();
    threads::end()?;
    phasecast_mpi::drain(None).map_err(|reason| anyhow!("after cut {cut}: {reason}"))?;
    session().tear_down();
    signals::clear();
    files::clear();
    restore::clear();
    Ok(())
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

fn launcher_rank() -> Result<u32> {
    let names = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];
    let found = names.iter().find_map(|name| std::env::var(name).ok()?.parse().ok());
    found.context("the launcher does not say which rank this is. Is it an mpirun?")
}
