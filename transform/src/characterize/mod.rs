//! Measuring a machine: what runs on each rank under the machine's own launcher (seed 000, section 4.1: "all elements of
//! communication cost are extracted from traces of communication benchmarks").
//!
//! Rank 0 leads: it tells the others, by messages, what to do next ([`command`]), measures with a partner what messages
//! cost ([`pairs`]), with all of them what collectives cost ([`collectives`]) and how fast all compute at once
//! ([`kernels`]), in rounds over everything ([`lead`]), so that a disturbance falls on all alike. Before, all watch whether
//! something stops them ([`stops`]).
mod clock;
mod collectives;
mod command;
mod hosts;
mod kernels;
mod lead;
mod links;
mod mpi;
mod pairs;
mod samples;
mod stops;

pub use kernels::operations;

use command::{Command, What};
use mpi::Mpi;
use std::path::Path;
use std::time::{Duration, Instant};

/// Tag of the messages that are measured.
const TAG_DATA: i32 = 1;
/// Tag of the messages by which two ranks come together.
const TAG_READY: i32 = 2;
/// Tag of commands.
const TAG_COMMAND: i32 = 3;
/// The longest message measured, in bytes.
const LONGEST: u64 = 4 << 20;
/// The most memory for the data of a collective on one rank, in bytes.
const MOST: u64 = 64 << 20;
/// So often a rank with nothing to do looks for a command...
const IDLE: Duration = Duration::from_micros(200);
/// ... unless it had one so recently: then all the time.
const AWAKE_NS: i64 = 2_000_000;

/// What rank 0 leaves in the folder when it is done: the machine file.
pub const RESULT: &str = "machine.toml";
/// What [`live`] leaves there.
pub const LIFE: &str = "life";
/// What rank 0 leaves there meanwhile: blocks done and to do.
pub const PROGRESS: &str = "progress";

/// How it is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Rounds over everything.
    pub rounds: u32,
    /// Wall time after which no further round begins, in seconds.
    pub limit_s: f64,
    /// Time for one point in a round, in seconds, if the fewest repetitions take less.
    pub point_s: f64,
    /// Fewest and most repetitions of a point in a round.
    pub repetitions: (u64, u64),
}

impl Effort {
    /// The usual: half a minute.
    pub const FULL: Effort = Effort { rounds: 8, limit_s: 40.0, point_s: 15e-3, repetitions: (5, 60) };
    /// A first look: some seconds.
    pub const QUICK: Effort = Effort { rounds: 2, limit_s: 5.0, point_s: 3e-3, repetitions: (3, 12) };
}

/// One rank of a measurement among `ranks`, which the launcher has started: rank 0 leaves the machine file in `folder`.
///
/// # Errors
/// If there is no MPI library that belongs to the launcher, the number of ranks is not the one asked for, or the result
/// cannot be written.
pub fn run(folder: &Path, ranks: u32, effort: &Effort) -> Result<(), String> {
    let mpi = Mpi::start()?;
    if mpi.world.size != ranks {
        return Err(format!(
            "the launcher started {} ranks instead of {ranks}. Does it belong to {}? Does it say -n {{n}}?",
            mpi.world.size, mpi.version
        ));
    }
    let comms = collectives::communicators(&mpi);
    let mut data = Data::new(ranks);
    if mpi.world.rank == 0 {
        let machine = lead::lead(&mpi, &comms, &mut data, folder, effort)?;
        let path = folder.join(RESULT);
        std::fs::write(&path, machine.text()).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Command::new(What::Stop).tell_all(&mpi, ranks);
    } else {
        follow(&mpi, &comms, &mut data);
    }
    mpi.finish();
    Ok(())
}

/// Starts and ends MPI and no more: rank 0 leaves in the folder what that took ([`LIFE`]): `MPI_Init`, `MPI_Finalize`,
/// and all from the start of the process, in seconds.
///
/// # Errors
/// If there is no MPI library that belongs to the launcher, or the result cannot be written.
pub fn live(folder: &Path) -> Result<(), String> {
    let begun = Instant::now();
    let mpi = Mpi::start()?;
    let (init, rank) = (begun.elapsed().as_secs_f64(), mpi.world.rank);
    let ending = Instant::now();
    mpi.finish();
    if rank == 0 {
        let path = folder.join(LIFE);
        let text = format!("{init} {} {}\n", ending.elapsed().as_secs_f64(), begun.elapsed().as_secs_f64());
        std::fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(())
}

/// Does what rank 0 says until it says to stop.
fn follow(mpi: &Mpi, comms: &[mpi::Comm], data: &mut Data) {
    let (mut offset_ns, mut made) = (0, kernels::Made::default());
    loop {
        let since = clock::now();
        while !mpi.probe(0, TAG_COMMAND) {
            if clock::now() - since > AWAKE_NS {
                std::thread::sleep(IDLE);
            }
        }
        let command = Command::hear(mpi);
        match command.what {
            What::Stop => return,
            What::Clocks => offset_ns = clock::follow(mpi),
            What::Collective => drop(collectives::take_part(mpi, &command, comms, data, offset_ns)),
            What::Kernel => drop(kernels::take_part(mpi, &command, &mut made)),
            What::Hosts => drop(hosts::hosts(mpi)),
            What::Watch => drop(stops::take_part(mpi, &command)),
            _ => pairs::follow(mpi, &command, data),
        }
    }
}

/// Memory for what is sent and received, each page touched.
struct Data {
    send: Vec<u8>,
    receive: Vec<u8>,
}

impl Data {
    fn new(ranks: u32) -> Data {
        let bytes = MOST.min(LONGEST * u64::from(ranks)) as usize;
        Data { send: vec![1; bytes], receive: vec![2; bytes] }
    }
}
