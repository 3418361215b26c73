//! The upper half's signals. Dispositions are virtual: the kernel holds a wrapper that calls the program's handler with
//! the program's thread pointer, wherever the signal struck. SIGSYS (the fence) and one more (stopping threads) are the
//! host's; they are never blocked, and what the program wants of them is only noted.
use crate::identity;
use crate::own::Who;
use crate::space::is_upper_pointer;
use crate::sys::{self, error, failed, syscall};
use crate::{threads, trap};
use libc::{EINVAL, SIG_DFL, SIG_IGN, SIGSYS, c_int};
use serde::{Deserialize, Serialize};
use std::arch::naked_asm;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The signal that stops threads and asks hosts. The program may use it too: the host's carry a mark.
pub const STOP: c_int = 63;
/// Signals that are never blocked.
pub(crate) const HIDDEN: u64 = bit(SIGSYS) | bit(STOP);
pub(crate) const SIGNALS: usize = 64;
const SA_RESTORER: usize = 0x0400_0000;
const SA_RESETHAND: usize = 0x8000_0000;

/// The mask's bit of a signal.
pub(crate) const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// The kernel's `struct sigaction`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// `SIG_DFL`, `SIG_IGN` or the handler's address.
    pub handler: usize,
    /// `SA_` flags.
    pub flags: usize,
    /// Where the handler returns to.
    pub restorer: usize,
    /// What is blocked meanwhile.
    pub mask: u64,
}

pub(crate) struct Slot {
    pub(crate) handler: AtomicUsize,
    flags: AtomicUsize,
    restorer: AtomicUsize,
    mask: AtomicU64,
}

pub(crate) static SLOTS: [Slot; SIGNALS] = [const {
    Slot {
        handler: AtomicUsize::new(0),
        flags: AtomicUsize::new(0),
        restorer: AtomicUsize::new(0),
        mask: AtomicU64::new(0),
    }
}; SIGNALS];

impl Slot {
    pub(crate) fn load(&self) -> Action {
        Action {
            handler: self.handler.load(Relaxed),
            flags: self.flags.load(Relaxed),
            restorer: self.restorer.load(Relaxed),
            mask: self.mask.load(Relaxed),
        }
    }

    pub(crate) fn store(&self, action: &Action) {
        self.handler.store(action.handler, Relaxed);
        self.flags.store(action.flags, Relaxed);
        self.restorer.store(action.restorer, Relaxed);
        self.mask.store(action.mask, Relaxed);
    }
}

fn slot(signal: usize) -> Option<&'static Slot> {
    SLOTS.get(signal.wrapping_sub(1))
}

/// Takes the hidden signals out of a mask.
pub(crate) fn visible(mask: u64) -> u64 {
    mask & !HIDDEN
}

/// Returns from a signal handler of the host.
#[unsafe(naked)]
unsafe extern "C" fn host_restorer() {
    naked_asm!("mov eax, 15", "syscall")
}

/// Hands a signal of the host to `handler`, with all signals blocked meanwhile.
pub(crate) fn set_host(signal: c_int, handler: usize, flags: c_int) {
    let action = Action {
        handler,
        flags: flags as usize | libc::SA_SIGINFO as usize | SA_RESTORER,
        restorer: host_restorer as *const () as usize,
        mask: !0,
    };
    // SAFETY: a sound handler of this crate.
    unsafe { syscall!(libc::SYS_rt_sigaction, signal, &raw const action, 0, 8) };
}

fn kernel_action(signal: usize) -> Action {
    let mut action = Action::default();
    // SAFETY: fills the structure.
    unsafe { syscall!(libc::SYS_rt_sigaction, signal, 0, &raw mut action, 8) };
    action
}

/// Tells the kernel what a signal does.
pub(crate) fn register(signal: usize, action: &Action) -> isize {
    let mut real = *action;
    real.mask = visible(real.mask);
    if action.handler != SIG_DFL && action.handler != SIG_IGN {
        real.handler = entry as *const () as usize;
        real.flags |= libc::SA_SIGINFO as usize;
        if real.flags & SA_RESTORER == 0 {
            real.flags |= SA_RESTORER;
            real.restorer = host_restorer as *const () as usize;
        }
    }
    // SAFETY: the handler is the wrapper below, or none.
    unsafe { syscall!(libc::SYS_rt_sigaction, signal, &raw const real, 0, 8) }
}

/// Gives the upper half the dispositions it would find after an exec: what was ignored stays so, all else is default.
/// Handlers that the host's runtime or MPI's set for crashes go, as they would run with a strange thread pointer.
pub(crate) fn prepare() {
    for signal in 1..=SIGNALS {
        let now = kernel_action(signal);
        let ignored = now.handler == SIG_IGN && signal as c_int != libc::SIGPIPE;
        let action = Action { handler: if ignored { SIG_IGN } else { SIG_DFL }, ..Action::default() };
        if let Some(slot) = slot(signal) {
            slot.store(&action);
        }
        const CRASHES: [c_int; 7] =
            [libc::SIGPIPE, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGTRAP];
        if CRASHES.contains(&(signal as c_int)) {
            register(signal, &action);
        }
    }
    set_stack((0, libc::SS_DISABLE, 0));
    set_hosts();
}

/// Hands the hidden signals to the host.
fn set_hosts() {
    trap::install();
    set_host(STOP, threads::stop_entry as *const () as usize, libc::SA_RESTART);
}

/// Does something in which libraries of the lower half may take signals for themselves, as LLVM does, which drivers for
/// OpenCL bring into `MPI_Init`. Afterwards all signals, and the main thread's alternate stack, are the host's and the
/// program's again: a handler of the lower half would run with a strange thread pointer, and without SIGSYS there is no
/// fence. To be called by the main thread, behind the fence.
pub fn kept<T>(act: impl FnOnce() -> T) -> T {
    let stack = stack();
    let result = act();
    set_hosts();
    for (i, slot) in SLOTS.iter().enumerate() {
        if HIDDEN & bit(i as c_int + 1) == 0 {
            register(i + 1, &slot.load());
        }
    }
    set_stack(stack);
    result
}

/// The calling thread's alternate stack: address, flags, size.
pub(crate) fn stack() -> (usize, i32, usize) {
    // SAFETY: the pointer is to a local structure of the right shape.
    unsafe {
        let mut stack: libc::stack_t = std::mem::zeroed();
        syscall!(libc::SYS_sigaltstack, 0, &raw mut stack);
        (stack.ss_sp as usize, stack.ss_flags, stack.ss_size)
    }
}

pub(crate) fn set_stack((address, flags, size): (usize, i32, usize)) {
    const SS_ONSTACK: i32 = 1;
    let stack = libc::stack_t { ss_sp: address as *mut libc::c_void, ss_flags: flags & !SS_ONSTACK, ss_size: size };
    // SAFETY: no handler runs on the stack that is replaced.
    unsafe { syscall!(libc::SYS_sigaltstack, &raw const stack, 0) };
}

/// The upper half's rt_sigaction.
///
/// # Safety
/// Called by the trap handler with the arguments of the call.
pub(crate) unsafe fn trapped_sigaction(who: Who, args: [usize; 6]) -> isize {
    let [signal, new, old, size, ..] = args;
    let unchangeable = signal == libc::SIGKILL as usize || signal == libc::SIGSTOP as usize;
    let Some(slot) = slot(signal).filter(|_| size == 8 && !(unchangeable && new != 0)) else { return error(EINVAL) };
    let before = slot.load();
    if new != 0 {
        // SAFETY: the program's pointer, as the kernel would read it.
        let action = unsafe { (new as *const Action).read_unaligned() };
        let hidden = HIDDEN & bit(signal as c_int) != 0;
        if who != Who::Sharing {
            slot.store(&action);
        }
        let result = if hidden { 0 } else { register(signal, &action) };
        if failed(result) {
            slot.store(&before);
            return result;
        }
    }
    if old != 0 {
        // SAFETY: the program's pointer, as the kernel would write it.
        unsafe { (old as *mut Action).write_unaligned(before) };
    }
    0
}

/// The upper half's rt_sigprocmask: changes the mask that the return from the trap puts back.
///
/// # Safety
/// Called by the trap handler with the arguments of the call and its context's mask.
pub(crate) unsafe fn trapped_sigprocmask(args: [usize; 6], mask: &mut u64) -> isize {
    let [how, new, old, size, ..] = args;
    if size != 8 {
        return error(EINVAL);
    }
    let before = *mask;
    if new != 0 {
        // SAFETY: the program's pointer, as the kernel would read it.
        let set = unsafe { (new as *const u64).read_unaligned() };
        let after = match how as c_int {
            libc::SIG_BLOCK => before | set,
            libc::SIG_UNBLOCK => before & !set,
            libc::SIG_SETMASK => set,
            _ => return error(EINVAL),
        };
        *mask = visible(after) & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP));
    }
    if old != 0 {
        // SAFETY: the program's pointer, as the kernel would write it.
        unsafe { (old as *mut u64).write_unaligned(before) };
    }
    0
}

/// The program's handler of a signal and the thread pointer it wants; zero for "none" and "the present one".
#[repr(C)]
struct Target {
    handler: usize,
    fs: usize,
}

/// What the kernel calls for every signal that the program handles. Where the signal struck in the upper half, it jumps
/// to the handler and leaves nothing on the stack, since the stack may be saved meanwhile.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn entry() {
    naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "rdfsbase rcx",
        "call {pick}",
        "mov rcx, rdx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jz 3f",
        "test rcx, rcx",
        "jnz 2f",
        "jmp rax",
        "2:",
        "push rbx",
        "rdfsbase rbx",
        "wrfsbase rcx",
        "call rax",
        "wrfsbase rbx",
        "pop rbx",
        "3:",
        "ret",
        pick = sym pick,
    )
}

/// Calls the program's handler from within a handler of the host.
pub(crate) fn call(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    type Entry = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::ucontext_t);
    // SAFETY: the wrapper takes what the kernel gives a handler.
    unsafe {
        let entry: Entry = std::mem::transmute(entry as *const ());
        entry(signal, info, context);
    }
}

/// Chooses what a signal calls.
unsafe extern "C" fn pick(signal: c_int, info: *mut libc::siginfo_t, _context: usize, fs: usize) -> Target {
    let none = Target { handler: 0, fs: 0 };
    let Some(slot) = slot(signal as usize) else { return none };
    let handler = slot.handler.load(Relaxed);
    if handler == SIG_DFL || handler == SIG_IGN {
        return none;
    }
    let upper = if is_upper_pointer(fs) { 0 } else { threads::upper_of(fs) };
    if !is_upper_pointer(fs) && upper == 0 {
        forward(signal, info);
        return none;
    }
    // SAFETY: the kernel's own record of the signal, which is the handler's.
    unsafe { identity::sign(&mut *info) };
    if slot.flags.load(Relaxed) & SA_RESETHAND != 0 {
        slot.handler.store(SIG_DFL, Relaxed);
    }
    Target { handler, fs: upper }
}

/// A signal that struck a thread of the lower half goes to the program's main thread; a crash there stays a crash.
fn forward(signal: c_int, info: *const libc::siginfo_t) {
    // SAFETY: the kernel's own record of the signal.
    let code = unsafe { (*info).si_code };
    let crash = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP].contains(&signal) && code > 0;
    let (pid, tid) = (sys::getpid(), sys::gettid());
    if crash {
        register(signal as usize, &Action::default());
    } else if pid != tid {
        // SAFETY: the record is valid; a process may send itself any.
        unsafe { syscall!(libc::SYS_rt_tgsigqueueinfo, pid, pid, signal, info) };
    }
}

/// A SIGSYS or stop signal that is not the host's: what the program wants of it.
pub(crate) fn foreign(signal: c_int) -> usize {
    match slot(signal as usize).map_or(SIG_DFL, |s| s.handler.load(Relaxed)) {
        SIG_IGN => 0,
        SIG_DFL => {
            let (pid, tid) = (sys::getpid(), sys::gettid());
            // SAFETY: the default of both signals ends the process, as the sender wants.
            unsafe {
                let default = Action::default();
                syscall!(libc::SYS_rt_sigaction, signal, &raw const default, 0, 8);
                syscall!(libc::SYS_tgkill, pid, tid, signal);
            }
            sys::set_mask(!bit(signal));
            0
        }
        _ => 1,
    }
}
