//! Stopping the upper half's threads at a cut, letting them go on. A stopped thread stands in the handler of a
//! signal; the frame that the kernel put on its stack holds all its registers.
use crate::processor_time;
use crate::processors::{self, Places};
use crate::repeat::{Waiting, repeat};
use crate::space::{self, in_range, is_upper_pointer};
use crate::sys::{self, error, failed, syscall};
use crate::{Error, asking, gate, identity, segments, signals, stub, xstate};
use libc::{REG_RIP, REG_RSP, c_int};
use serde::{Deserialize, Serialize};
use std::arch::naked_asm;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};

/// As many threads can be stopped.
const MOST: usize = 4096;
/// Marks the host's signals; the slot is added.
pub(crate) const MARK: usize = 0x7068_6173_0000_0000;
/// The slot of a signal that the host sends itself to see a frame.
const PROBE: usize = 0xffff_ffff;
/// How long threads may take to come out of MPI or the host.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// What a slot's thread was asked or has answered.
const ASKED: u32 = 0;
const PARKED: u32 = 1;
const BUSY: u32 = 2;

/// The name of a thread, which ends with a zero byte.
pub(crate) type Name = [u8; 16];

/// A stopped thread, or the one in whose call a position was reached, for an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadState {
    /// Its number.
    pub number: u32,
    /// Address of the `ucontext` in its signal frame.
    pub frame: usize,
    /// Its thread pointer.
    pub fs: usize,
    /// The base of the other segment, which only few programs use.
    pub gs: usize,
    /// Where the C library keeps its number, zero if nowhere.
    pub tid_address: usize,
    /// Its list of robust locks: address and size of the head.
    pub robust: (usize, usize),
    /// Where it is pinned to.
    pub places: Places,
    /// Its name.
    pub name: Name,
}

struct Slot {
    state: AtomicU32,
    waiting: Waiting,
    frame: AtomicUsize,
    fs: AtomicUsize,
    gs: AtomicUsize,
    tid_address: AtomicUsize,
    robust: [AtomicUsize; 2],
}

static SLOTS: [Slot; MOST] = [const {
    Slot {
        state: AtomicU32::new(ASKED),
        waiting: Waiting::new(),
        frame: AtomicUsize::new(0),
        fs: AtomicUsize::new(0),
        gs: AtomicUsize::new(0),
        tid_address: AtomicUsize::new(0),
        robust: [const { AtomicUsize::new(0) }; 2],
    }
}; MOST];
/// Stopped threads wait for its next value.
static ROUND: AtomicU32 = AtomicU32::new(0);
/// What they do then: go on, or end; the main thread leaves the upper half.
static END: AtomicU32 = AtomicU32::new(0);
/// Why it leaves.
static WHY: AtomicUsize = AtomicUsize::new(0);
static ON_STOPPING: AtomicUsize = AtomicUsize::new(0);
/// Threads are being stopped, or are.
static STOPPING: AtomicBool = AtomicBool::new(false);

/// What the kernel calls for the stop signal: the host's are handled here, the program's own go the common way.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn stop_entry() {
    naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "call {stopped}",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "test eax, eax",
        "jz {entry}",
        "ret",
        stopped = sym stopped,
        entry = sym signals::entry,
    )
}

/// Parks the thread if the signal is the host's. Zero if it is the program's own and handled.
unsafe extern "C" fn stopped(signal: c_int, info: *const libc::siginfo_t, context: *mut libc::ucontext_t) -> c_int {
    // SAFETY: the kernel's records of this signal.
    let (code, mark, state) = unsafe {
        let mark = (*info).si_value().sival_ptr as usize;
        ((*info).si_code, mark, (*context).uc_mcontext.fpregs as usize)
    };
    if code != libc::SI_QUEUE || mark & !0xffff_ffff != MARK {
        return c_int::from(signals::foreign(signal) == 0);
    }
    if mark & 0xffff_ffff == PROBE {
        // SAFETY: the kernel's record of the processor's state.
        unsafe { xstate::learn(state) };
        return 1;
    }
    if mark & 0xffff_ffff == asking::ASK {
        // SAFETY: the kernel's record of the interrupted thread's registers.
        unsafe { asking::answer((*context).uc_mcontext.gregs[REG_RSP as usize] as usize) };
        return 1;
    }
    let Some(slot) = SLOTS.get(mark & 0xffff_ffff) else { return 1 };
    let round = ROUND.load(Acquire);
    let fs = gate::thread_pointer();
    // SAFETY: the kernel's record, which the return from the signal puts back.
    let registers = unsafe { &mut (*context).uc_mcontext.gregs };
    let at = registers[REG_RIP as usize] as usize;
    if !is_upper_pointer(fs) || !(space::contains_blocked(at) || stub::contains(at)) {
        slot.state.store(BUSY, Release);
        sys::wake(&slot.state);
        return 1;
    }
    repeat(registers, &slot.waiting);
    slot.frame.store(context as usize, Relaxed);
    slot.fs.store(fs, Relaxed);
    slot.gs.store(segments::gs(), Relaxed);
    let (tid_address, robust) = known(fs);
    slot.tid_address.store(tid_address, Relaxed);
    slot.robust[0].store(robust.0, Relaxed);
    slot.robust[1].store(robust.1, Relaxed);
    let is_main = sys::gettid() == sys::getpid();
    if is_main {
        processor_time::stopped();
    }
    slot.state.store(PARKED, Release);
    sys::wake(&slot.state);
    while ROUND.load(Acquire) == round {
        sys::wait(&ROUND, round);
    }
    if END.load(Acquire) != 0 && is_main {
        // Nothing of the host or the library is on the stack that is left.
        sys::set_mask(signals::visible(!0));
        // SAFETY: the main thread, which was in the upper half.
        unsafe { gate::leave_handler(WHY.load(Acquire)) };
    } else if END.load(Acquire) != 0 {
        // SAFETY: ends this thread alone.
        unsafe { syscall!(libc::SYS_exit, 0) };
    }
    1
}

/// Sends a signal of the host to a thread.
pub(crate) fn send(tid: u32, slot: usize) -> isize {
    // SAFETY: a record of the shape that the kernel wants for a queued signal.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        info.si_signo = signals::STOP;
        info.si_code = libc::SI_QUEUE;
        (&raw mut info).cast::<usize>().add(3).write(MARK | slot);
        syscall!(libc::SYS_rt_tgsigqueueinfo, sys::getpid(), tid, signals::STOP, &raw const info)
    }
}

/// Looks at a signal frame of this processor.
pub(crate) fn probe() {
    send(sys::gettid(), PROBE);
}

/// A thread's name; empty if it has ended.
pub(crate) fn name(tid: u32) -> Name {
    let told = fs::read(format!("/proc/self/task/{tid}/comm")).unwrap_or_default();
    let mut name = Name::default();
    name.iter_mut()
        .take(size_of::<Name>() - 1)
        .zip(told.strip_suffix(b"\n").unwrap_or(&told))
        .for_each(|(to, byte)| *to = *byte);
    name
}

/// Where the C library keeps the calling thread's number, and its list of robust locks. Its thread pointer is `fs` in the upper
/// half. Usable from a handler.
pub(crate) fn known(fs: usize) -> (usize, (usize, usize)) {
    let (mut tid_address, mut head, mut len) = (0usize, 0usize, 0usize);
    // SAFETY: fills local words.
    unsafe {
        if failed(syscall!(libc::SYS_prctl, libc::PR_GET_TID_ADDRESS, &raw mut tid_address, 0, 0, 0)) {
            tid_address = guess(fs);
        }
        syscall!(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut len);
    }
    (tid_address, (head, len))
}

/// For kernels that do not tell: the C library keeps the number near the thread pointer.
fn guess(fs: usize) -> usize {
    let is_main = sys::gettid() == sys::getpid();
    let tid = if is_main { identity::told() } else { sys::gettid() };
    let mut found = (0x200..0x400).step_by(4).map(|at| fs + at).filter(|at| {
        // SAFETY: within the C library's record of the thread, which is larger.
        is_upper_pointer(fs) && unsafe { *(*at as *const u32) } == tid
    });
    match (found.next(), found.next()) {
        (Some(one), None) => one,
        _ => 0,
    }
}

/// All threads of the process but the calling one.
pub(crate) fn others() -> Result<impl Iterator<Item = u32>, Error> {
    let list = fs::read_dir("/proc/self/task").map_err(Error::Thread)?;
    let me = sys::gettid();
    Ok(list.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).filter(move |tid| *tid != me))
}

/// Whether a thread is the upper half's; none if it cannot be told yet.
pub(crate) fn is_upper(tid: u32) -> Option<bool> {
    let (mut head, mut len) = (0usize, 0usize);
    // SAFETY: fills local words.
    if failed(unsafe { syscall!(libc::SYS_get_robust_list, tid, &raw mut head, &raw mut len) }) {
        return Some(false);
    }
    if head != 0 {
        return Some(in_range(head) || space::contains(head));
    }
    // A C library that registers no list, or a thread at its very start: where is its stack?
    let Ok(line) = fs::read_to_string(format!("/proc/self/task/{tid}/syscall")) else { return Some(false) };
    let stack =
        line.split_whitespace().rev().nth(1).and_then(|w| usize::from_str_radix(w.strip_prefix("0x")?, 16).ok());
    stack.map(in_range)
}

/// What is called as threads are to be stopped, for those that wait.
pub fn on_stopping(hook: fn()) {
    ON_STOPPING.store(hook as *const () as usize, Release);
}

/// Whether threads are being stopped: one that waits in a call has to [step out](crate::gate::again) of it.
#[inline(always)]
pub fn stopping() -> bool {
    STOPPING.load(Relaxed)
}

/// Stops all other threads of the upper half. Called with the lower thread pointer.
///
/// # Errors
/// If one is inside MPI or the host for too long; then all go on.
pub fn stop() -> Result<Vec<ThreadState>, Error> {
    STOPPING.store(true, Release);
    let hook = ON_STOPPING.load(Acquire);
    if hook != 0 {
        // SAFETY: stored by `on_stopping`.
        unsafe { std::mem::transmute::<usize, fn()>(hook)() };
    }
    let result = stop_all();
    if result.is_err() {
        go();
    }
    result
}

fn stop_all() -> Result<Vec<ThreadState>, Error> {
    let deadline = Instant::now() + PATIENCE;
    let late = |what: String| if Instant::now() > deadline { Err(Error::Obstacle(what)) } else { Ok(()) };
    let mut stopped: Vec<u32> = Vec::new();
    let mut quiet = false;
    loop {
        let mut news = false;
        for tid in others()? {
            if stopped.contains(&tid) {
                continue;
            }
            match is_upper(tid) {
                Some(false) => continue,
                None => {
                    late(format!("it cannot be told whose thread {tid} is"))?;
                    news = true;
                    continue;
                }
                Some(true) => news = true,
            }
            if stop_one(tid, stopped.len(), &late)? {
                stopped.push(tid);
            }
        }
        // A thread may have been made after the list was read: only a second look without news is the end.
        if !news && (quiet || stopped.is_empty()) {
            break;
        }
        quiet = !news;
    }
    let state = |(slot, tid): (&Slot, &u32)| ThreadState {
        number: *tid,
        frame: slot.frame.load(Relaxed),
        fs: slot.fs.load(Relaxed),
        gs: slot.gs.load(Relaxed),
        tid_address: slot.tid_address.load(Relaxed),
        robust: (slot.robust[0].load(Relaxed), slot.robust[1].load(Relaxed)),
        places: processors::places(*tid),
        name: name(*tid),
    };
    Ok(SLOTS.iter().zip(&stopped).map(state).collect())
}

/// Stops a thread. False if it has ended.
fn stop_one(tid: u32, slot: usize, late: &dyn Fn(String) -> Result<(), Error>) -> Result<bool, Error> {
    let place = SLOTS.get(slot).ok_or_else(|| Error::Obstacle(format!("it has more than {MOST} threads")))?;
    place.state.store(ASKED, Release);
    let ask = || {
        place.waiting.note(tid);
        send(tid, slot)
    };
    let mut result = ask();
    let mut why = "does not stop";
    loop {
        if result == error(libc::ESRCH) {
            return Ok(false);
        }
        if failed(result) {
            late(format!("thread {tid} cannot be asked to stop"))?;
            std::thread::sleep(Duration::from_millis(1));
            result = ask();
            continue;
        }
        match place.state.load(Acquire) {
            PARKED => return Ok(true),
            BUSY => {
                why = "is inside the MPI library";
                late(format!("thread {tid} {why}"))?;
                std::thread::sleep(Duration::from_millis(1));
                place.state.store(ASKED, Release);
                result = ask();
            }
            _ => {
                late(format!("thread {tid} {why}"))?;
                let limit = libc::timespec { tv_sec: 0, tv_nsec: 5_000_000 };
                // SAFETY: the word and the time live through the call.
                unsafe { syscall!(libc::SYS_futex, place.state.as_ptr(), libc::FUTEX_WAIT, ASKED, &raw const limit) };
                // SAFETY: sends no signal.
                result = unsafe { syscall!(libc::SYS_tgkill, sys::getpid(), tid, 0) };
            }
        }
    }
}

/// Stopped threads go on, or end.
pub(crate) fn next_round(end: u32) {
    END.store(end, Release);
    STOPPING.store(false, Release);
    ROUND.fetch_add(1, AcqRel);
    sys::wake(&ROUND);
}

/// Lets stopped threads go on.
pub fn go() {
    next_round(0);
}

/// Has the main thread leave the upper half, whose [`resume`](crate::threads::resume) returns `why`. If the calling thread is
/// another one, all others and itself end.
///
/// # Errors
/// If one cannot be stopped; then all go on.
///
/// # Safety
/// Called with the lower half's thread pointer, from within a dispatch; nothing on the stack that is left holds a lock.
pub unsafe fn leave(why: usize) -> Result<std::convert::Infallible, Error> {
    if sys::gettid() == sys::getpid() {
        // SAFETY: the caller's.
        unsafe { gate::leave(why) }
    }
    stop()?;
    WHY.store(why, Release);
    next_round(1);
    loop {
        // SAFETY: ends this thread alone.
        unsafe { syscall!(libc::SYS_exit, 0) };
    }
}
