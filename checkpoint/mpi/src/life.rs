//! The program's MPI from its first call to its last: `MPI_Init`, `MPI_Finalize`, and the clock.
use crate::callbacks::{self, QUIET};
use crate::calls::{call_double, lower};
use crate::dispatch::{Call, dispatch};
use crate::library::{Library, Versions};
use crate::session::{Hooks, Session, install, installed, session};
use crate::upper::Upper;
use phasecast_abi::{Abi, Domain, Kind};
use phasecast_process::complain;
use phasecast_process::gate::Frame;
use std::ffi::OsString;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

static HOST: OnceLock<(Library, Hooks)> = OnceLock::new();

/// Sets the library and the host's part, before the program starts. The program will end as it does natively, by what the
/// library has registered for its end, too: MPICH 5 tells its launcher only then that it is done, and kills the ranks that
/// are left when one has not told.
pub fn prepare(library: Library, hooks: Hooks) -> &'static Library {
    phasecast_process::on_exit(|code| {
        end_without_world();
        std::process::exit(code)
    });
    &HOST.get_or_init(|| (library, hooks)).0
}

/// The environment for a program. Python's mpi4py loads a library once it runs, the one that it finds in the process first:
/// as it finds the facade, which speaks for any, it is told which interface the launcher's MPI has.
pub fn environment(library: &Library) -> Vec<(OsString, OsString)> {
    const NAME: &str = "MPI4PY_MPIABI";
    let mut all: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    if !all.iter().any(|(name, _)| name == NAME) {
        let interface = match library.abi {
            Abi::OpenMpi => "openmpi",
            Abi::Mpich => "mpich",
            Abi::Standard => "mpiabi",
        };
        all.push((NAME.into(), interface.into()));
    }
    all
}

/// The library and the host's part.
///
/// # Panics
/// Before [`prepare`].
pub fn host() -> (&'static Library, Hooks) {
    match HOST.get() {
        Some((library, hooks)) => (library, *hooks),
        None => panic!("the host prepares MPI before it runs a program"),
    }
}

/// The program's first call: now its libraries are there to be looked at.
///
/// # Safety
/// As for [`dispatch`].
#[cold]
#[inline(never)]
pub unsafe fn before_session(frame: *mut Frame, index: usize) -> usize {
    if index >= phasecast_abi::PROCEDURES.len() {
        // SAFETY: the gate's frame.
        return unsafe { crate::hide::answer(&*frame, index) };
    }
    let (library, hooks) = host();
    let Some(program) = Upper::find(hooks.within) else {
        // SAFETY: the caller's.
        if let Some(result) = unsafe { before_library(library, &*frame, index) } {
            return result;
        }
        complain(format_args!(
            "the program calls {} and has no MPI library of Open MPI's, MPICH's or MPI 5's interface as a shared object. Link it dynamically.",
            crate::calls::name(index)
        ));
        std::process::exit(1);
    };
    let mut session = Session::new(library, program, hooks);
    // The host says where to stop once there is an event.
    session.next_stop = 0;
    install(session);
    // SAFETY: the caller's.
    unsafe { dispatch(frame, index) }
}

/// A call before the program has loaded its MPI library: what it may ask to find out which one to load. None for others.
///
/// # Safety
/// As for [`dispatch`].
unsafe fn before_library(library: &Library, frame: &Frame, index: usize) -> Option<usize> {
    let procedure = &phasecast_abi::PROCEDURES[index];
    // SAFETY: the caller's: an argument of the procedure.
    let given = |i: usize| unsafe { frame.arg(i) } as *mut i32;
    // SAFETY: the caller's: where the answers go; the library's procedures take the same addresses.
    unsafe {
        match procedure.name {
            "MPI_Initialized" | "MPI_Finalized" => *given(0) = 0,
            "MPI_Get_version" | "MPI_Get_library_version" | "MPI_Abi_get_version" => {
                match library.function(index) {
                    Some(function) => return Some(crate::calls::call(function, &[frame.arg(0), frame.arg(1)])),
                    // There is no such interface.
                    None => (*given(0), *given(1)) = (-1, -1),
                }
            }
            _ => return None,
        }
    }
    Some(0)
}

/// Initialises the library with a level of thread support in neutral form; yields the level given and this process's
/// rank and number of ranks.
///
/// # Errors
/// If it fails, or if the launcher says that there are more ranks than the library sees.
pub fn start_library(library: &Library, level: i32) -> Result<(i32, (i32, i32)), String> {
    let below = library.abi.from_neutral(Domain::ThreadLevel, level.into(), library).unwrap_or(0) as usize;
    let mut provided = 0i32;
    let rc = phasecast_process::threads::without_signals(|| {
        phasecast_process::children::of_library(|| lower!(library, MPI_Init_thread(0, 0, below, &raw mut provided)))
    });
    if rc != 0 {
        return Err(format!("MPI_Init_thread of {} failed with {rc}", library.name));
    }
    let world = library.constant("MPI_COMM_WORLD").unwrap_or(0);
    let (mut rank, mut size) = (0i32, 0i32);
    lower!(library, MPI_Comm_rank(world, &raw mut rank));
    lower!(library, MPI_Comm_size(world, &raw mut size));
    let told =
        ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"].iter().find_map(|name| std::env::var(name).ok()?.parse::<i32>().ok());
    if let Some(told) = told.filter(|&told| told != size) {
        return Err(format!(
            "the launcher started {told} ranks, but {} sees {size}: it does not belong to this launcher. Name the right library in PHASECAST_MPI.",
            library.name
        ));
    }
    let given = library.abi.to_neutral(Domain::ThreadLevel, provided.into(), library).unwrap_or(0);
    Ok((given as i32, (rank, size)))
}

/// Ends the library's use after a replay, whose program is gone: attributes that it has set on communicators that are never
/// freed are deleted without it. Returns how long `MPI_Finalize` took where all ranks call it at once.
pub fn finish_library(library: &Library) -> Duration {
    QUIET.store(true, Relaxed);
    lower!(library, MPI_Barrier(library.constant("MPI_COMM_WORLD").unwrap_or(0)));
    let begun = Instant::now();
    lower!(library, MPI_Finalize());
    begun.elapsed()
}

impl Session {
    /// Takes note of the initialised library.
    pub fn started(&mut self, level: i32, place: (i32, i32)) {
        let library = self.library;
        self.place = place;
        self.thread_level = Some(level);
        let most = library.abi.layout().thread_levels[3];
        self.multiple = self.values.lower.from_neutral(Domain::ThreadLevel, level.into(), library) == Some(most.into());
        if self.traffic.sent.is_empty() {
            self.traffic.sent = vec![0; place.1 as usize];
            self.traffic.received = vec![0; place.1 as usize];
        }
        let (world, own) = (library.constant("MPI_COMM_WORLD"), library.constant("MPI_COMM_SELF"));
        lower!(library, MPI_Comm_dup(world.unwrap_or(0), &raw mut self.private));
        lower!(library, MPI_Comm_dup(own.unwrap_or(0), &raw mut self.private_self));
        let mask = library.abi.layout().handle_mask as usize;
        (self.private, self.private_self) = (self.private & mask, self.private_self & mask);
        // What goes wrong there is told to the program's own communicator.
        let told = library.constant("MPI_ERRORS_RETURN").unwrap_or(0);
        lower!(library, MPI_Comm_set_errhandler(self.private_self, told));
        if let Some(throws) = self.values.above("MPIR_ERRORS_THROW_EXCEPTIONS") {
            let mut handler = 0usize;
            lower!(library, MPI_Comm_create_errhandler(callbacks::nothing as *const () as usize, &raw mut handler));
            self.values.stand(Kind::Errhandler, throws, handler & mask);
        }
    }
}

/// `MPI_Init` and `MPI_Init_thread`.
///
/// # Safety
/// A call of the gate.
pub unsafe fn init(call: &mut Call) -> usize {
    let s = session();
    let threads = call.shape.procedure.params.len() == 4;
    let required = if threads { call.arg(2) as i32 } else { s.values.upper.layout().thread_levels[0] };
    let level = s.values.upper.to_neutral(Domain::ThreadLevel, required.into(), s.library).unwrap_or(0) as i32;
    let library = s.library;
    // The library is initialised already where sessions came first.
    let of_sessions = s.thread_level.filter(|_| !s.world);
    drop(s);
    // SAFETY: the caller's.
    let given = of_sessions.unwrap_or_else(|| begin(library, level, unsafe { (*call.frame).fs }));
    let mut s = session();
    (s.world, s.begun) = (true, true);
    // A position before the first event.
    s.look();
    if threads {
        let above = s.values.upper.from_neutral(Domain::ThreadLevel, given.into(), library).unwrap_or(0);
        // SAFETY: the caller's: where the level goes.
        unsafe { *(call.arg(3) as *mut i32) = above as i32 };
    }
    0
}

/// Initialises the library for the program, at a level of thread support (in neutral form, as the one that it gives, which is
/// yielded), in the thread with this thread pointer.
fn begin(library: &'static Library, level: i32, thread: usize) -> i32 {
    let started = phasecast_process::signals::kept(|| start_library(library, level));
    let (given, place) = started.unwrap_or_else(|reason| {
        complain(reason);
        std::process::exit(1);
    });
    let mut s = session();
    s.started(given, place);
    s.main_thread = thread;
    s.first_comms();
    s.fortran = crate::convert::Fortran::find(&s.values, library);
    given
}

/// `MPI_Session_init`: the library is initialised for our own communication too.
///
/// # Safety
/// A call of the gate.
pub unsafe fn session_init(call: &mut Call) -> usize {
    let s = session();
    let (library, running) = (s.library, s.thread_level.is_some());
    drop(s);
    if !running {
        const MULTIPLE: &str = "MPI_THREAD_MULTIPLE";
        let level = phasecast_abi::constant(MULTIPLE).map_or(0, |c| match c.value(Abi::Standard) {
            phasecast_abi::Value::Number(level) => level as i32,
            _ => 0,
        });
        // SAFETY: the caller's.
        begin(library, level, unsafe { (*call.frame).fs });
    }
    // SAFETY: the caller's.
    unsafe { crate::forward::forward(call) }
}

/// `MPI_Finalize`.
///
/// # Safety
/// A call of the gate.
pub unsafe fn finalize(_: &mut Call) -> usize {
    end()
}

/// A program that has initialised MPI by sessions only, and has finalised them, ends. Where it has left one open, the
/// launcher is to hear of it from the library, as natively.
fn end_without_world() {
    if !installed() {
        return;
    }
    let s = session();
    let begun = s.thread_level.is_some() && !s.world && !s.finalized;
    let open = !s.objects.in_use(Kind::Session).is_empty();
    drop(s);
    if begun && !open {
        end();
    }
}

fn end() -> usize {
    let hooks = session().hooks;
    (hooks.finalize)();
    let mut s = session();
    s.end_wakeups();
    let library = s.library;
    let (mut private, mut own) = (s.private, s.private_self);
    drop(s);
    lower!(library, MPI_Comm_free(&raw mut private));
    lower!(library, MPI_Comm_free(&raw mut own));
    // Attributes of MPI_COMM_SELF are deleted first, by functions of the program that may ask whether it is over.
    let result = lower!(library, MPI_Finalize()) as u32 as usize;
    session().finalized = true;
    result
}

/// `MPI_Initialized`, `MPI_Finalized`, `MPI_Query_thread` and `MPI_Is_thread_main`: answered for the program, which knows
/// nothing of restarts.
///
/// # Safety
/// A call of the gate.
pub unsafe fn ask(call: &mut Call) -> usize {
    let s = session();
    let name = call.shape.procedure.name;
    let value = match name {
        "MPI_Initialized" => i32::from(s.world),
        "MPI_Finalized" => i32::from(s.finalized),
        // SAFETY: the caller's.
        "MPI_Is_thread_main" => i32::from(s.main_thread == unsafe { (*call.frame).fs }),
        _ => {
            let level = s.thread_level.unwrap_or(0);
            s.values.upper.from_neutral(Domain::ThreadLevel, level.into(), s.library).unwrap_or(0) as i32
        }
    };
    // SAFETY: the caller's: where the answer goes.
    unsafe { *(call.arg(0) as *mut i32) = value };
    0
}

/// `MPI_Get_version` and `MPI_Get_library_version`: after a restart as before it, as the program goes by them in what it
/// calls.
///
/// # Safety
/// A call of the gate.
pub unsafe fn version(call: &mut Call) -> usize {
    let s = session();
    let Some(Versions { standard: (version, subversion), text, length }) = &s.started_with else {
        drop(s);
        // SAFETY: the caller's.
        return unsafe { crate::forward::forward(call) };
    };
    let (first, second) = (call.arg(0), call.arg(1) as *mut i32);
    // SAFETY: the caller's: where the answers go, with room for what its own library tells.
    unsafe {
        if call.shape.procedure.name == "MPI_Get_version" {
            (*(first as *mut i32), *second) = (*version, *subversion);
        } else {
            std::ptr::copy_nonoverlapping(text.as_ptr(), first as *mut u8, text.len());
            *((first + text.len()) as *mut u8) = 0;
            *second = *length;
        }
    }
    0
}

/// `MPI_Wtime` and `MPI_Wtick`, whose result travels as its bits.
///
/// # Safety
/// A call of the gate.
pub unsafe fn clock(call: &mut Call) -> usize {
    let s = session();
    let Some(function) = s.library.function(call.index) else { return 0 };
    let wtime = call.shape.procedure.name == "MPI_Wtime";
    let offset = if wtime { s.clock_offset } else { 0.0 };
    drop(s);
    // SAFETY: a procedure that returns a double.
    let bits = unsafe { call_double(function) } as u64;
    (f64::from_bits(bits) + offset).to_bits() as usize
}

/// The library's clock, in seconds.
pub fn wtime(library: &Library) -> f64 {
    let function = library.function(crate::calls::index("MPI_Wtime"));
    // SAFETY: a procedure that returns a double.
    function.map_or(0.0, |function| f64::from_bits(unsafe { call_double(function) } as u64))
}

/// `MPI_Pcontrol`: nothing here listens.
///
/// # Safety
/// A call of the gate.
pub unsafe fn nothing(_: &mut Call) -> usize {
    0
}
