//! The recording from the start of the process to its end: when it begins, pauses, goes on and stops.
use crate::finish;
use crate::hide;
use crate::plan::{Plan, names};
use crate::real::{Library, library, mpi, passed_by};
use crate::record::{Call, failed, handle_at};
use crate::requests::MULTIPLE;
use crate::sink::{Sink, say};
use crate::slot::{Slot, slot};
use crate::thread::Thread;
use crate::{awaited, clock, comms, counters, delay};
use phasecast_abi::{Class as Does, Layout};
use phasecast_trace::codec;
use phasecast_trace::frame::{Frame, Kind};
use phasecast_trace::model::{Class, Ending, Flags, PEER_NONE, RankHeader, TAG_NONE, boot_id};
use phasecast_trace::writer::LEVEL;
use std::ffi::c_void;
use std::fs;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

const OFF: u8 = 0;
const ON: u8 = 1;
const PAUSED: u8 = 2;
/// Recording, with counts.
const COUNTING: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(OFF);
/// How it is recorded while it is: [`ON`] or [`COUNTING`].
static MODE: AtomicU8 = AtomicU8::new(ON);
/// Counts the datatypes that were freed: what a thread remembers of sizes is void when it has changed.
pub static TYPES: AtomicU32 = AtomicU32::new(1);
static BEGUN: AtomicBool = AtomicBool::new(false);
/// Sessions that were started and not ended.
static SESSIONS: AtomicI32 = AtomicI32::new(0);
static RANK: OnceLock<Rank> = OnceLock::new();
static THREADS: Mutex<Threads> = Mutex::new(Threads { all: Vec::new(), free: Vec::new() });
static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// What the recording of this rank works with.
pub struct Rank {
    /// Its file.
    pub sink: Sink,
    /// Size of the world.
    pub size: u32,
    /// Process id, which a forked child does not have.
    pub pid: u32,
    /// Cost of recording a call in ns.
    pub cost: Mutex<f64>,
    layout: &'static Layout,
    base: u64,
}

struct Threads {
    all: Vec<&'static AtomicPtr<Thread>>,
    free: Vec<*mut Thread>,
}

// SAFETY: a recorder is used by the thread that it was given to, until that thread ends.
unsafe impl Send for Threads {}

/// The rank, once recording has begun.
pub fn rank() -> Option<&'static Rank> {
    RANK.get()
}

/// Whether calls are followed, recorded or not.
#[inline(always)]
pub fn on() -> bool {
    STATE.load(Relaxed) != OFF
}

/// Whether calls are recorded without counts.
#[inline(always)]
pub fn recording() -> bool {
    STATE.load(Relaxed) == ON
}

/// Whether calls are recorded with counts.
pub fn counting() -> bool {
    STATE.load(Relaxed) == COUNTING
}

/// Ends the recording for good.
pub fn stop() {
    STATE.store(OFF, Relaxed);
}

/// Whether the program has ended all its sessions, which to it is what `MPI_Finalize` is to others.
pub fn sessions_over() -> bool {
    BEGUN.load(Relaxed) && SESSIONS.load(Relaxed) == 0 && WITH_SESSIONS.load(Relaxed)
}

static WITH_SESSIONS: AtomicBool = AtomicBool::new(false);

extern "C" fn construct() {
    clock::start();
    if std::env::var_os("PHASECAST_TRACE").is_some() {
        hide::fit();
    } else {
        awaited::become_host(not_for_children);
    }
}

extern "C" fn destruct() {
    finish::at_exit();
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCT: extern "C" fn() = construct;
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCT: extern "C" fn() = destruct;

/// `MPI_Init` and its kin: recording begins when the real one has returned.
pub fn init(plan: &'static Plan, site: usize, call: &mut dyn FnMut() -> usize) -> usize {
    let slot = slot();
    let Some(_inside) = slot.enter() else { return call() };
    let enter = clock::raw();
    let rc = call();
    let exit = if clock::is_computing() { clock::returned(enter) } else { clock::raw() };
    if failed(rc) {
        return rc;
    }
    if let Does::SessionInit = plan.class {
        SESSIONS.fetch_add(1, Relaxed);
        WITH_SESSIONS.store(true, Relaxed);
    } else if !BEGUN.load(Relaxed) {
        let library = library();
        let named = |name| library.and_then(|library| library.constant(name));
        if let Some(world) = named("MPI_COMM_WORLD") {
            begin(world, named("MPI_COMM_SELF"));
        }
    }
    if on()
        // SAFETY: the recorder of this thread.
        && let Some(thread) = unsafe { thread(slot).as_mut() }
    {
        let call = Call { plan, site, enter: clock::units(enter), exit: clock::units(exit) };
        thread.record(&call, &call.shape(Class::Setup, Flags::default(), PEER_NONE, TAG_NONE, 0, 0));
        if counting() {
            counters::begin();
        }
    }
    rc
}

/// A communicator made from a group while nothing is recorded: the first one of a session stands for the world.
///
/// # Safety
/// `args` are those of the procedure.
#[cold]
pub unsafe fn first_of_session(plan: &Plan, args: &[usize]) {
    if let Does::CommConstructor { parent: None, child, .. } = plan.class
        && let Some(library) = library()
        && SESSIONS.load(Relaxed) > 0
        && !BEGUN.load(Relaxed)
    {
        // SAFETY: the caller's.
        begin(unsafe { handle_at(library.abi.layout(), args[child as usize]) }, None);
    }
}

/// Begins to record, if `phasecast trace` has asked for it.
fn begin(world: usize, own: Option<usize>) {
    if BEGUN.swap(true, Relaxed) {
        return;
    }
    let (Some(folder), Some(library)) = (std::env::var_os("PHASECAST_TRACE").map(PathBuf::from), library()) else {
        return;
    };
    let (mut rank, mut size, mut level) = (0i32, 0i32, 0i32);
    mpi!(MPI_Comm_rank(world, &raw mut rank));
    mpi!(MPI_Comm_size(world, &raw mut size));
    mpi!(MPI_Query_thread(&raw mut level));
    let layout = library.abi.layout();
    MULTIPLE.store(level >= layout.thread_levels[3], Relaxed);
    let clock = clock::calibrate();
    let base = clock.units;
    if let Err(error) = delay::load(rank as u32) {
        return say(&format!("{error}: nothing is recorded"));
    }
    let sink = match Sink::create(&folder, rank as u32) {
        Ok(sink) => sink,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return say(&format!(
                "another process claims rank {rank} in {} (launcher and MPI library do not belong together, or the \
                 output exists already): nothing is recorded",
                folder.display()
            ));
        }
        Err(error) => {
            let file = folder.join(phasecast_trace::reader::file_name(rank as u32));
            return say(&format!("cannot make {} ({error}): nothing is recorded", file.display()));
        }
    };
    let rank = Rank { sink, size: size as u32, pid: std::process::id(), cost: Mutex::new(0.0), layout, base };
    let rank = RANK.get_or_init(|| rank);
    if let Some(tool) = (rank.sink.rank == 0).then(passed_by).flatten() {
        say(&format!(
            "{tool} stands between the program and its MPI: calls are recorded before they come to it, and go on without it. \
             Link it into the program itself to have it called"
        ));
    }
    let header = header(rank, clock, library);
    let counters = counters::start(rank.sink.rank == 0);
    let head = if counters.is_some() { Frame::counted_header() } else { Frame::new(Kind::Header) };
    finish::append(&head.with_payload(&codec::to_bytes(&header), Some(LEVEL)));
    if let Some(counters) = &counters {
        finish::append(&Frame::new(Kind::Counters).with_payload(&codec::to_bytes(counters), None));
        MODE.store(COUNTING, Relaxed);
    }
    comms::start(world, own);
    not_for_children();
    // SAFETY: handlers that do nothing but store a word.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    STATE.store(MODE.load(Relaxed), Relaxed);
    // SAFETY: the recorder of this thread.
    if let Some(thread) = unsafe { thread(slot()).as_mut() } {
        let counting = if counters.is_some() { counters::cost() } else { 0.0 };
        *rank.cost.lock().unwrap_or_else(PoisonError::into_inner) = thread.calibrate() + counting;
    }
    if counters.is_some() {
        clock::count();
    }
}

extern "C" fn forked() {
    stop();
}

fn header(rank: &Rank, start: phasecast_trace::model::ClockStart, library: &Library) -> RankHeader {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let command = fs::read("/proc/self/cmdline").unwrap_or_default();
    let mut words = command.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let first = words.next().unwrap_or_default();
    let mut args: Vec<String> = words.collect();
    args.pop();
    let mut version = vec![0u8; library.abi.layout().max_library_version.max(8192) + 1];
    let mut length = 0i32;
    mpi!(MPI_Get_library_version(version.as_mut_ptr(), &raw mut length));
    let version = String::from_utf8_lossy(&version);
    let line = version.split(['\0', '\n']).next().unwrap_or_default();
    let version = line.split_whitespace().collect::<Vec<_>>().join(" ");
    RankHeader {
        rank: rank.sink.rank,
        size: rank.size,
        host: read("/proc/sys/kernel/hostname"),
        boot_id: if clock::is_computing() { phasecast_trace::model::COMPUTING_CLOCK.to_owned() } else { boot_id() },
        pid: rank.pid,
        program: fs::read_link("/proc/self/exe").map_or(first, |path| path.to_string_lossy().into_owned()),
        args,
        mpi: version,
        abi: ["openmpi", "mpich", "standard"][library.abi as usize].to_owned(),
        writer: concat!("phasecast ", env!("CARGO_PKG_VERSION")).to_owned(),
        clock: start,
        procedures: names(),
    }
}

/// Programs that this process starts from now on are not its rank.
fn not_for_children() {
    let Some(preloaded) = std::env::var_os("LD_PRELOAD") else { return };
    let preloaded = preloaded.to_string_lossy().into_owned();
    let others: Vec<&str> =
        preloaded.split([':', ' ']).filter(|p| !p.is_empty() && !p.ends_with("libphasecast_tracer.so")).collect();
    // SAFETY: the program has only begun, or MPI has just been started, by the only thread that may use it.
    unsafe {
        if others.is_empty() {
            std::env::remove_var("LD_PRELOAD");
        } else {
            std::env::set_var("LD_PRELOAD", others.join(":"));
        }
    }
}

/// Gives the calling thread a recorder; null if there can be none.
#[cold]
pub fn thread(slot: &Slot) -> *mut Thread {
    let had = slot.thread.get();
    let Some(rank) = rank().filter(|_| had.is_null()) else { return had };
    let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let thread = threads.free.pop().or_else(|| {
        let number = u16::try_from(threads.all.len()).ok()?;
        let tail = match rank.sink.map_tail(number) {
            Ok(tail) => tail,
            Err(error) => {
                rank.sink.give_up(&mut rank.sink.lock(), &error);
                stop();
                return None;
            }
        };
        let thread = Box::into_raw(Box::new(Thread::new(rank.layout, &rank.sink, number, tail, rank.base)));
        threads.all.push(Box::leak(Box::new(AtomicPtr::new(thread))));
        Some(thread)
    });
    let thread = thread.unwrap_or(ptr::null_mut());
    slot.thread.set(thread);
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: a new key, whose destructor is `ended`.
        unsafe { libc::pthread_key_create(&mut key, Some(ended)) };
        key
    });
    // SAFETY: a key that was made.
    unsafe { libc::pthread_setspecific(*key, thread.cast()) };
    thread
}

/// A thread has ended: the next new one goes on with its recorder, and so with its number.
unsafe extern "C" fn ended(thread: *mut c_void) {
    slot().thread.set(ptr::null_mut());
    THREADS.lock().unwrap_or_else(PoisonError::into_inner).free.push(thread.cast());
}

/// All recorders.
pub fn threads() -> Vec<*mut Thread> {
    let threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    threads.all.iter().map(|thread| thread.load(Relaxed)).collect()
}

/// `MPI_Pcontrol` has returned.
pub fn pcontrol(thread: &mut Thread, call: &Call, level: i32) {
    let class = if level == 0 { Class::Pause } else { Class::Resume };
    if class == Class::Resume {
        let _ = STATE.compare_exchange(PAUSED, MODE.load(Relaxed), Relaxed, Relaxed);
    }
    thread.record(call, &call.shape(class, Flags::default(), PEER_NONE, TAG_NONE, 0, 0));
    if class == Class::Pause {
        let _ = STATE.compare_exchange(MODE.load(Relaxed), PAUSED, Relaxed, Relaxed);
    }
}

/// `MPI_Finalize` has returned, or the end of a session.
pub fn finalized(thread: &mut Thread, call: &Call, rc: usize) {
    if failed(rc) {
        return call.failed(thread);
    }
    thread.record(call, &call.shape(Class::Setup, Flags::default(), PEER_NONE, TAG_NONE, 0, 0));
    if let Does::SessionFinalize = call.plan.class {
        SESSIONS.fetch_sub(1, Relaxed);
    } else {
        finish::end(Ending::Finalized);
    }
}

/// `MPI_Abort` is about to be called, from wherever.
pub fn abort(site: usize, code: i32) {
    if !on() {
        return;
    }
    const PLAN: usize = crate::plan::index("MPI_Abort");
    let slot = slot();
    let now = clock::now();
    let call = Call { plan: &crate::plan::PLANS[PLAN], site, enter: now, exit: now };
    // From inside another procedure (an error handler), the recorder is at rest too: it works only when those return.
    // SAFETY: the recorder of this thread.
    if let Some(thread) = unsafe { thread(slot).as_mut() } {
        thread.record(&call, &call.shape(Class::Setup, Flags::default(), PEER_NONE, TAG_NONE, 0, 0));
    }
    finish::end(Ending::Aborted(code));
}
