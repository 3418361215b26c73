//! What rank 0 tells the others to do next.
use super::TAG_COMMAND;
use super::mpi::Mpi;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum What {
    Stop,
    /// Tell where you are: all.
    Hosts,
    /// Compare clocks with rank 0.
    Clocks,
    /// Wait in `MPI_Recv` for messages that rank 0 sends.
    Receive,
    /// Send messages to rank 0 once it is ready.
    Send,
    /// Return messages.
    Return,
    /// Receive, but late.
    Late,
    /// Exchange messages with rank 0 while computing.
    Exchange,
    /// Take part in a collective: all of a communicator.
    Collective,
    /// Compute: all.
    Kernel,
    /// Watch for stops: all.
    Watch,
}

const ALL: [What; 11] = [
    What::Stop,
    What::Hosts,
    What::Clocks,
    What::Receive,
    What::Send,
    What::Return,
    What::Late,
    What::Exchange,
    What::Collective,
    What::Kernel,
    What::Watch,
];

/// One block of work.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// What is to be done.
    pub what: What,
    /// Length of a message, or of a trace's event.
    pub bytes: u64,
    /// How often.
    pub repetitions: u64,
    /// How long to compute in between, in ns.
    pub compute_ns: u64,
    /// Which collective or kernel.
    pub which: u64,
    /// Which communicator.
    pub comm: u64,
}

impl Command {
    /// To do that, with all else 0.
    pub fn new(what: What) -> Command {
        Command { what, bytes: 0, repetitions: 0, compute_ns: 0, which: 0, comm: 0 }
    }

    /// Tells a rank.
    pub fn tell(&self, mpi: &Mpi, rank: u32) {
        let words = [self.what as u64, self.bytes, self.repetitions, self.compute_ns, self.which, self.comm];
        mpi.send(words.map(u64::to_ne_bytes).as_flattened(), rank, TAG_COMMAND);
    }

    /// Tells all ranks but 0 of the first `ranks`.
    pub fn tell_all(&self, mpi: &Mpi, ranks: u32) {
        (1..ranks).for_each(|rank| self.tell(mpi, rank));
    }

    /// Hears of the next from rank 0.
    pub fn hear(mpi: &Mpi) -> Command {
        let mut words = [[0u8; 8]; 6];
        mpi.receive(words.as_flattened_mut(), 0, TAG_COMMAND);
        let [what, bytes, repetitions, compute_ns, which, comm] = words.map(u64::from_ne_bytes);
        let what = ALL.get(what as usize).copied().unwrap_or(What::Stop);
        Command { what, bytes, repetitions, compute_ns, which, comm }
    }
}
