//! The host of a program that is to be saved: it stops the program at its cuts, and writes an image or says why not.
use crate::dump;
use crate::host::{FIRST_FILES, Work, work, write_report};
use crate::job::{CheckpointReport, Cut, CutReport, Program};
use crate::sentence;
use crate::touches::Touches;
use anyhow::{Result, anyhow, bail};
use nix::unistd::gettid;
use phasecast_image::{State, Store};
use phasecast_mpi::{Hooks, Library, Refusal, Taken, session};
use phasecast_process::gate::{self, Frame};
use phasecast_process::{Cpu, Start, children, fence, files, settings, signal_state, space, threads};
use phasecast_trace::codec;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where a program is to be saved.
pub(crate) struct Plan {
    /// The cuts.
    pub cuts: Vec<Cut>,
    /// What each rank is to take where it would take whatever comes first; empty if it may.
    pub recorded: Vec<Vec<Taken>>,
    /// How long a rank waits at a cut for the others.
    pub patience: Duration,
    /// The folder for images and reports.
    pub images: PathBuf,
}

/// A program that is to be saved.
pub(crate) struct Checkpoint {
    plan: Plan,
    program: String,
    store: Option<Store>,
    /// Where the kernel tells of page faults.
    touches: Option<Touches>,
    reports: Vec<CutReport>,
}

/// Runs the program of a job; it ends the process.
pub(crate) fn checkpoint(
    program: Program,
    plan: Plan,
    hooks: Hooks,
    cpu: Option<String>,
    facade: &Path,
) -> Result<i32> {
    // A preloaded library that is missing is passed over with a warning, and the program would run as it is.
    if !facade.is_file() {
        bail!(
            "{} is missing: it belongs beside the command phasecast, or in ../lib from there. Install both from the same build.",
            facade.display()
        );
    }
    files::reserve(FIRST_FILES);
    let touches = Touches::watch(gettid());
    let library = Library::load()?;
    let cpu: Cpu = cpu.map_or(Ok(Cpu::Native), |name| name.parse()).map_err(|error| anyhow!("{error}"))?;
    let library = phasecast_mpi::prepare(library, hooks);
    *work() = Work::Checkpoint(Checkpoint {
        plan,
        program: program.path.display().to_string(),
        store: None,
        touches: touches(),
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

fn rank_of(cut: &Cut, rank: i32) -> u64 {
    cut.events.get(rank as usize).copied().unwrap_or(u64::MAX)
}

/// Stops the other threads of the program.
fn stop() -> Result<Vec<threads::ThreadState>, phasecast_process::Error> {
    let stopped = threads::stop()?;
    if phasecast_mpi::any_inside() {
        threads::go();
        return Err(phasecast_process::Error::Obstacle("a thread is in a function that MPI has called".into()));
    }
    Ok(stopped)
}

/// Takes out of the network what is under way, also where the cut is refused, as a sender may wait for that. Not where
/// threads go on, which might wait for it themselves.
fn drain(
    patience: Duration,
    moving: Option<&phasecast_process::Error>,
    refusal: Option<String>,
) -> Result<(), Refusal> {
    let patience = Some(patience);
    match moving {
        None => phasecast_mpi::drain(patience, refusal),
        Some(error) => Err(phasecast_mpi::refuse(patience, refusal.unwrap_or_else(|| error.to_string()))),
    }
}

impl Checkpoint {
    fn next(&self) -> Option<Cut> {
        self.plan.cuts.get(self.reports.len()).cloned()
    }

    pub(crate) fn reached(&mut self, events: u64, frame: *mut Frame, result: usize) {
        let rank = session().place.0;
        if let Some(taken) = self.plan.recorded.get_mut(rank as usize).filter(|taken| !taken.is_empty()) {
            session().recorded = std::mem::take(taken).into();
        }
        while let Some(cut) = self.next() {
            let at = rank_of(&cut, rank);
            if at > events {
                break;
            }
            let started = Instant::now();
            // Where several threads call, another one may have come further meanwhile: that place is as good.
            let past = (at < events && !threads::several())
                .then(|| format!("it lies within a call, after event {at}; the call ended after {events}"));
            let saved = self.save(&cut, frame, result, past);
            let seconds = started.elapsed().as_secs_f64();
            self.reports.push(match saved {
                Ok((bytes, files)) => CutReport { id: cut.id, saved: true, reason: None, seconds, bytes, files },
                Err(refusal) => CutReport { seconds, ..CutReport::refused(cut.id, refusal) },
            });
        }
        if self.next().is_none() {
            self.touches = None;
        }
        session().next_stop = self.next().map_or(u64::MAX, |cut| rank_of(&cut, rank));
    }

    /// Saves a cut: returns new bytes in the page store, and the files that a restart needs.
    fn save(
        &mut self,
        cut: &Cut,
        frame: *mut Frame,
        result: usize,
        refusal: Option<String>,
    ) -> Result<(u64, Vec<PathBuf>), Refusal> {
        let stopped = stop();
        let drained = drain(self.plan.patience, stopped.as_ref().err(), refusal);
        let outcome = drained.and_then(|()| {
            let written = self.write(cut, frame, result, stopped.as_ref().cloned().unwrap_or_default());
            // Memory that ranks share stands still until all have saved theirs.
            phasecast_mpi::barrier();
            phasecast_mpi::go_on();
            written.map_err(|error| Refusal::Own(sentence(&error)))
        });
        if stopped.is_ok() {
            threads::go();
        }
        outcome
    }

    fn write(
        &mut self,
        cut: &Cut,
        frame: *mut Frame,
        result: usize,
        mut threads: Vec<threads::ThreadState>,
    ) -> Result<(u64, Vec<PathBuf>)> {
        let (rank, size) = session().place;
        let (rank, size) = (rank as u32, size as u32);
        let mut state = State { rank, size, cut: cut.id, program: self.program.clone(), ..State::default() };
        // All ranks come here: from now on one may have a reason of its own not to go on.
        let mpi = phasecast_mpi::State::save();
        let space = space::state()?;
        state.brk = (space.brk_start as u64, space.brk as u64);
        let mut put = |name: &str, bytes: Vec<u8>| state.sections.insert(name.into(), bytes);
        put("mpi", codec::to_bytes(&mpi));
        children::none_runs()?;
        let (held, timers) = signal_state::quiet(&threads)?;
        put("signals", codec::to_bytes(&signal_state::save(timers)));
        put("settings", codec::to_bytes(&settings::save()));
        let files = files::save(session().files_read(), cut.id)?;
        put("files", codec::to_bytes(&files));
        let mut returned = threads::Returned::new();
        // SAFETY: the frame of the call in which the position was reached.
        threads.push(returned.write(unsafe { &*frame }, result, &held));
        let main = threads::main_state(&mut threads)?;
        put("threads", codec::to_bytes(&threads));
        put("main", codec::to_bytes(&main));
        put("space", codec::to_bytes(&space));
        (state.frame, state.fs) = (main.thread.frame as u64, vec![main.thread.fs as u64]);
        if self.store.is_none() {
            self.store = Some(Store::create(&self.plan.images, rank)?);
        }
        let Some(store) = &mut self.store else { bail!("no page store") };
        if let Some(touches) = &self.touches {
            touches.save(&mut state);
        }
        let stats = dump::memory(store, &mut state, &phasecast_mpi::shared_memory())?;
        store.save(&state)?;
        Ok((stats.fresh, files.needed().into_iter().map(Path::to_owned).collect()))
    }

    /// The program ends its use of MPI: cuts that were not reached are refused together, and the report is written.
    pub(crate) fn finish(&mut self) {
        if self.next().is_some() {
            let stopped = stop();
            while let Some(cut) = self.next() {
                let reason = "the program ends before it".to_string();
                let refused = drain(self.plan.patience, stopped.as_ref().err(), Some(reason.clone())).err();
                self.reports.push(CutReport::refused(cut.id, refused.unwrap_or(Refusal::Own(reason))));
            }
            if stopped.is_ok() {
                threads::go();
            }
        }
        phasecast_mpi::end_meetings();
        let s = session();
        let (rank, size) = (s.place.0 as u32, s.place.1 as u32);
        let report = CheckpointReport {
            rank,
            size,
            events: s.events,
            mpi: s.library.version(),
            abi: format!("{:?}", s.library.abi),
            cuts: self.reports.clone(),
            later: phasecast_process::read_later(),
            made: phasecast_process::made_later(),
        };
        drop(s);
        write_report(&self.plan.images, rank, &report);
    }
}
