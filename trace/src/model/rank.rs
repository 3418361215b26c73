//! What a rank's file says of itself: its head, communicators, its end, and where it breaks off.
use crate::units::{Nanos, Rank};
use serde::{Deserialize, Serialize};

/// A communicator as one rank knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CommDef {
    /// The rank's own number for it, from 0 (`MPI_COMM_WORLD`), 1 (`MPI_COMM_SELF`) up.
    pub local: u32,
    /// World ranks of its (local) group, by their rank in it.
    pub members: Vec<u32>,
    /// World ranks of the remote group of an intercommunicator; else empty.
    pub remote: Vec<u32>,
}

/// How a communicator came to be, as all of its members say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The rank's own number for the communicator.
    pub local: u32,
    /// A hash of which of its parent's it is, and of its parent's own origin; not 0.
    pub number: u64,
}

/// The boot id: hosts that share it share CLOCK_MONOTONIC.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// In the place of [`RankHeader::boot_id`]: time passes only while the rank computes, and stands still in MPI.
pub const COMPUTING_CLOCK: &str = "computing";
/// The environment variable by which `phasecast trace` asks the tracer for that clock; its value is [`COMPUTING_CLOCK`].
pub const CLOCK_VARIABLE: &str = "PHASECAST_CLOCK";
/// The environment variable by which the tracer knows the process that `phasecast trace` has become; its value is the
/// process id.
pub const PROCESS_VARIABLE: &str = "PHASECAST_PROCESS";
/// Where launchers say which rank a process will be. What a shell in an allocation hands on to another launcher comes last.
const RANK_VARIABLES: [&str; 5] =
    ["OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];

/// The rank that the launcher says this process will be.
pub fn launcher_rank() -> Option<u32> {
    RANK_VARIABLES.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// The last part of a program's path.
pub fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// How a clock reading becomes nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockStart {
    /// Whether units are `rdtsc >> shift`; else they are nanoseconds of CLOCK_MONOTONIC `>> shift`.
    pub tsc: bool,
    /// By how many bits a reading is shifted to give a unit.
    pub shift: u8,
    /// Units at the start of the process.
    pub units: u64,
    /// CLOCK_MONOTONIC in ns at the same moment.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME in ns at the same moment.
    pub realtime_ns: u64,
    /// Units and CLOCK_MONOTONIC in ns a while later (after MPI_Init): the first calibration.
    pub later: (u64, u64),
}

/// The first frame of a rank's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankHeader {
    /// This rank.
    pub rank: u32,
    /// Size of `MPI_COMM_WORLD`.
    pub size: u32,
    /// Host name.
    pub host: String,
    /// Identity of the host's clock (boot id): ranks with the same one share CLOCK_MONOTONIC.
    pub boot_id: String,
    /// Process id.
    pub pid: u32,
    /// The program's path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// `MPI_Get_library_version`, first line, or what an importer knows.
    pub mpi: String,
    /// The binary interface: `openmpi`, `mpich`, `standard`, or `imported`.
    pub abi: String,
    /// Version of phasecast that wrote the trace.
    pub writer: String,
    /// The clock.
    pub clock: ClockStart,
    /// Names of procedures; a [`ProcId`] of this file is an index into it.
    pub procedures: Vec<String>,
}

/// How a rank's recording ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// MPI_Finalize was reached.
    Finalized,
    /// MPI_Abort was called with this code.
    Aborted(i32),
    /// The process exited without MPI_Finalize.
    Exited,
    /// Recording was given up, for this reason (a full disk); the program went on.
    Stopped(String),
}

/// The last frame of a rank's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trailer {
    /// How it ended.
    pub ending: Ending,
    /// Calls recorded.
    pub calls: u64,
    /// The end of the rank's run in clock units.
    pub end_units: u64,
    /// Time spent in the tracer itself, as it estimates it, in ns.
    pub own_ns: u64,
    /// Executable mappings, to name call sites: (first address, last address + 1, file offset, path).
    pub modules: Vec<(u64, u64, u64, String)>,
}

/// Where a rank's recording breaks off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// The rank.
    pub rank: Rank,
    /// Calls that were recorded.
    pub calls: u64,
    /// The exit of the last of them.
    pub at: Nanos,
    /// Why, as far as the file tells.
    pub reason: String,
}
