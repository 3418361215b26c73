//! The few procedures of MPI that measuring takes, called by address: one phasecast for any MPI library.
use phasecast_abi::by_name;
use phasecast_mpi::Library;

/// The machine's MPI library, initialised.
pub struct Mpi {
    library: Library,
    /// All ranks.
    pub world: Comm,
    /// The library in one line.
    pub version: String,
    byte: usize,
    double: usize,
    sum: usize,
    status_ignore: usize,
}

/// A communicator that this rank belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Comm {
    handle: usize,
    /// This process's rank in it.
    pub rank: u32,
    /// Its ranks.
    pub size: u32,
}

/// A request, as long as the longest handle.
pub struct Request(usize);

/// Calls a procedure by its name in our source. What fails ends the program: such is MPI's own error handler.
macro_rules! call {
    ($mpi:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        static INDEX: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        let index = *INDEX.get_or_init(|| by_name(stringify!($name)).map_or(usize::MAX, |id| usize::from(id.0)));
        match $mpi.library.function(index) {
            // SAFETY: the arguments are as the standard says, in the form of the library's own interface; memory that
            // they name is as long as they say and lives until the operation is complete.
            Some(function) => unsafe { phasecast_mpi::call(function, &[$($argument as usize),*]) },
            None => absent(stringify!($name)),
        }
    }};
}

fn absent(name: &str) -> usize {
    eprintln!("phasecast host: the MPI library has no {name}");
    std::process::exit(1);
}

/// A collective to be called.
pub struct Call {
    operation: Operation,
    bytes: usize,
    counts: Vec<i32>,
}

impl Call {
    /// A collective of so many ranks, with so many bytes as a trace's event has them.
    pub fn new(operation: Operation, bytes: usize, ranks: u32) -> Call {
        let counts = vec![(bytes / size_of::<f64>() / ranks as usize) as i32; ranks as usize];
        Call { operation, bytes, counts }
    }
}

/// The collectives that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Barrier,
    Bcast,
    Reduce,
    Allreduce,
    ReduceScatter,
    Scan,
    Exscan,
    Gather,
    Allgather,
    Scatter,
    Alltoall,
}

impl Mpi {
    /// Loads and initialises the library that belongs to the launcher of this process.
    pub fn start() -> Result<Mpi, String> {
        let library = Library::load().map_err(|error| error.to_string())?;
        let (_, (rank, size)) = phasecast_mpi::start_library(&library, 0)?;
        let constant = |name: &str| library.constant(name).ok_or_else(|| format!("{} has no {name}", library.name));
        let world = Comm { handle: constant("MPI_COMM_WORLD")?, rank: rank as u32, size: size as u32 };
        let (byte, double, sum) = (constant("MPI_BYTE")?, constant("MPI_DOUBLE")?, constant("MPI_SUM")?);
        let status_ignore = constant("MPI_STATUS_IGNORE")?;
        let version = library.version();
        Ok(Mpi { library, world, version, byte, double, sum, status_ignore })
    }

    /// Ends its use.
    pub fn finish(self) {
        phasecast_mpi::finish_library(&self.library);
    }

    /// The first `ranks` ranks as a communicator of their own; none on the others. All of the world call it.
    pub fn first(&self, ranks: u32) -> Option<Comm> {
        let inside = self.world.rank < ranks;
        let mut handle = 0usize;
        call!(self, MPI_Comm_split(self.world.handle, u32::from(!inside), self.world.rank, &raw mut handle));
        inside.then_some(Comm { handle, rank: self.world.rank, size: ranks })
    }

    /// `MPI_Send` to a rank of the world.
    #[inline(always)]
    pub fn send(&self, data: &[u8], to: u32, tag: i32) {
        call!(self, MPI_Send(data.as_ptr(), data.len(), self.byte, to, tag, self.world.handle));
    }

    /// `MPI_Recv` from a rank of the world.
    #[inline(always)]
    pub fn receive(&self, data: &mut [u8], from: u32, tag: i32) {
        let (at, length) = (data.as_mut_ptr(), data.len());
        call!(self, MPI_Recv(at, length, self.byte, from, tag, self.world.handle, self.status_ignore));
    }

    /// `MPI_Isend`. The data must stay until [`Mpi::wait`] has returned.
    #[inline(always)]
    pub fn isend(&self, data: &[u8], to: u32, tag: i32) -> Request {
        let mut request = Request(0);
        call!(self, MPI_Isend(data.as_ptr(), data.len(), self.byte, to, tag, self.world.handle, &raw mut request.0));
        request
    }

    /// `MPI_Irecv`. The data must stay until [`Mpi::wait`] has returned.
    #[inline(always)]
    pub fn irecv(&self, data: &mut [u8], from: u32, tag: i32) -> Request {
        let mut request = Request(0);
        let (at, length) = (data.as_mut_ptr(), data.len());
        call!(self, MPI_Irecv(at, length, self.byte, from, tag, self.world.handle, &raw mut request.0));
        request
    }

    /// `MPI_Wait`.
    #[inline(always)]
    pub fn wait(&self, mut request: Request) {
        call!(self, MPI_Wait(&raw mut request.0, self.status_ignore));
    }

    /// Whether a message from that rank of the world has come.
    pub fn probe(&self, from: u32, tag: i32) -> bool {
        let mut flag = 0i32;
        call!(self, MPI_Iprobe(from, tag, self.world.handle, &raw mut flag, self.status_ignore));
        flag != 0
    }

    /// `MPI_Barrier`.
    pub fn barrier(&self, comm: Comm) {
        call!(self, MPI_Barrier(comm.handle));
    }

    /// A number of rank 0, on all.
    pub fn shared(&self, comm: Comm, mut number: i64) -> i64 {
        call!(self, MPI_Bcast(&raw mut number, size_of::<i64>(), self.byte, 0, comm.handle));
        number
    }

    /// Data of all ranks, equally long, in their order; what the others get is of no use.
    pub fn gathered<T: Copy + Default>(&self, comm: Comm, own: &[T]) -> Vec<T> {
        let mut all = vec![T::default(); own.len() * comm.size as usize];
        let bytes = size_of_val(own);
        call!(self, MPI_Gather(own.as_ptr(), bytes, self.byte, all.as_mut_ptr(), bytes, self.byte, 0, comm.handle));
        all
    }

    /// Runs a collective with rank 0 as the root.
    ///
    /// # Panics
    /// If the memory is shorter than that takes.
    #[inline(always)]
    pub fn collective(&self, operation: &Call, send: &[u8], receive: &mut [u8], comm: Comm) {
        let Call { operation, bytes, counts } = operation;
        let (operation, bytes) = (*operation, *bytes);
        let ranks = comm.size as usize;
        let blocks = match operation {
            Operation::Gather | Operation::Allgather | Operation::Scatter => ranks,
            _ => 1,
        };
        assert!(bytes * blocks <= send.len().min(receive.len()));
        let (from, to) = (send.as_ptr(), receive.as_mut_ptr());
        let (byte, double, sum, handle) = (self.byte, self.double, self.sum, comm.handle);
        let doubles = bytes / size_of::<f64>();
        let part = bytes / ranks;
        match operation {
            Operation::Barrier => call!(self, MPI_Barrier(handle)),
            Operation::Bcast => call!(self, MPI_Bcast(to, bytes, byte, 0, handle)),
            Operation::Reduce => call!(self, MPI_Reduce(from, to, doubles, double, sum, 0, handle)),
            Operation::Allreduce => call!(self, MPI_Allreduce(from, to, doubles, double, sum, handle)),
            Operation::ReduceScatter => {
                call!(self, MPI_Reduce_scatter(from, to, counts.as_ptr(), double, sum, handle))
            }
            Operation::Scan => call!(self, MPI_Scan(from, to, doubles, double, sum, handle)),
            Operation::Exscan => call!(self, MPI_Exscan(from, to, doubles, double, sum, handle)),
            Operation::Gather => call!(self, MPI_Gather(from, bytes, byte, to, bytes, byte, 0, handle)),
            Operation::Allgather => call!(self, MPI_Allgather(from, bytes, byte, to, bytes, byte, handle)),
            Operation::Scatter => call!(self, MPI_Scatter(from, bytes, byte, to, bytes, byte, 0, handle)),
            Operation::Alltoall => call!(self, MPI_Alltoall(from, part, byte, to, part, byte, handle)),
        };
    }
}
