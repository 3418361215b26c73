//! Making an image's threads again: a new thread that returns from the signal that stopped the old one is the old one.
use crate::parking::{Name, ThreadState};
use crate::processor_time::{self, Used};
use crate::processors::{self, Mask};
use crate::sys::{self, failed, syscall};
use crate::xstate;
use crate::{Error, gate, identity, late_binding, segments};
use serde::{Deserialize, Serialize};
use std::arch::{asm, naked_asm};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering::*};

/// What an image must hold of the main thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MainState {
    /// What it must hold of any.
    pub thread: ThreadState,
    /// Processor time.
    pub used: Used,
    /// The number of the process, as the program knows it.
    pub process: u32,
}

/// Takes the main thread out of those of a program.
///
/// # Errors
/// If it is not among them.
pub fn main_state(threads: &mut Vec<ThreadState>) -> Result<MainState, Error> {
    let at = threads.iter().position(|thread| thread.number == sys::getpid());
    let at = at.ok_or_else(|| Error::Obstacle("its main thread has ended".into()))?;
    Ok(MainState { thread: threads.swap_remove(at), used: processor_time::used(), process: identity::told() })
}

/// The instruction that calls the kernel.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// New threads wait until this is not zero.
static RELEASED: AtomicU32 = AtomicU32::new(0);

/// What a new thread needs to become an old one.
#[repr(C)]
struct Birth {
    state: ThreadState,
    mask: Option<Mask>,
    /// Its number, once it needs nothing more of this.
    number: AtomicU32,
}

/// Tells the C library the calling thread's number, and the kernel what it has to know of the thread.
///
/// # Safety
/// The addresses are those of the thread that is brought back, in restored memory.
unsafe fn adopt(number: u32, tid_address: usize, robust: (usize, usize), name: &Name) {
    // SAFETY: the caller's; the name ends with a zero byte.
    unsafe {
        syscall!(libc::SYS_prctl, libc::PR_SET_NAME, name.as_ptr());
        if tid_address != 0 {
            let known = tid_address as *mut u32;
            // Zero: the main thread, which has ended for the program.
            if known.read_volatile() != 0 {
                known.write_volatile(number);
            }
            syscall!(libc::SYS_set_tid_address, tid_address);
        }
        if robust.0 != 0 {
            syscall!(libc::SYS_set_robust_list, robust.0, robust.1);
        }
    }
}

/// Makes the calling thread, the main one, the main thread of an image. From now on signals are the upper half's.
///
/// # Safety
/// The state is of the image whose memory was restored.
///
/// # Errors
/// If what depends on the processor cannot be written into its memory.
pub unsafe fn restore_main(state: &MainState) -> Result<(), Error> {
    late_binding::fit().map_err(|error| Error::Obstacle(format!("its memory cannot be written to: {error}")))?;
    let thread = &state.thread;
    if let Some(mask) = processors::here(&thread.places) {
        mask.set();
    }
    identity::tell(state.process);
    // SAFETY: the caller's.
    unsafe { adopt(identity::told(), thread.tid_address, thread.robust, &thread.name) }
    // SAFETY: nothing of the host uses it.
    unsafe { segments::set_gs(thread.gs) };
    gate::set_main_upper(thread.fs);
    Ok(())
}

/// Brings the wide registers of a stopped thread into the form of this processor.
///
/// # Safety
/// The memory of the thread's image is restored.
///
/// # Errors
/// If what it computes with would be lost.
unsafe fn fit(state: &ThreadState) -> Result<(), Error> {
    // SAFETY: the caller's: a frame, and the instructions that the thread was at.
    unsafe {
        let context = &*(state.frame as *const libc::ucontext_t);
        // A thread that waits in the kernel expects nothing of its wide registers.
        let instruction = context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize;
        let calls = |at: usize| *(at as *const [u8; 2]) == SYSCALL;
        if !xstate::fit(context.uc_mcontext.fpregs as usize) && !calls(instruction) && !calls(instruction - 2) {
            return Err(Error::Obstacle(
                "a thread computes with registers of AVX-512, which this processor keeps in another way".into(),
            ));
        }
    }
    Ok(())
}

/// Makes the threads of an image but for the main one. They wait for [`release`].
///
/// # Safety
/// The memory of the image is restored, and its signals.
///
/// # Errors
/// If the kernel grants no more threads, or one computes with what this processor has not.
pub unsafe fn recreate(threads: &[ThreadState]) -> Result<(), Error> {
    RELEASED.store(0, Release);
    let mask = sys::set_mask(!0);
    let result = threads.iter().try_for_each(|state| {
        let birth = Birth { state: *state, mask: processors::here(&state.places), number: AtomicU32::new(0) };
        let flags = libc::CLONE_VM
            | libc::CLONE_FS
            | libc::CLONE_FILES
            | libc::CLONE_SIGHAND
            | libc::CLONE_THREAD
            | libc::CLONE_SYSVSEM;
        // Below the frame lies only what the handler used, on the thread's own stack.
        let stack = (state.frame - 512) & !15;
        // SAFETY: the caller's: frame and stack are in restored memory; `birth` lives until the thread is done with it.
        let result = unsafe {
            fit(state)?;
            clone(flags as usize, stack, &birth)
        };
        if failed(result) {
            return Err(Error::Thread(io::Error::from_raw_os_error(-result as i32)));
        }
        while birth.number.load(Acquire) == 0 {
            sys::wait(&birth.number, 0);
        }
        identity::add(state.number, birth.number.load(Acquire));
        Ok(())
    });
    sys::set_mask(mask);
    result
}

/// Lets the threads run on from where they were stopped.
pub fn release() {
    RELEASED.store(1, Release);
    sys::wake(&RELEASED);
}

/// Lets the main thread of an image run on from where it was stopped; returns why it [leaves](crate::threads::leave).
///
/// # Safety
/// The memory of the image is in place, with all that the upper half had; called by its main thread.
///
/// # Errors
/// If it computes with what this processor has not.
pub unsafe fn resume(state: &MainState) -> Result<usize, Error> {
    // SAFETY: the caller's.
    unsafe {
        fit(&state.thread)?;
        Ok(gate::resume(state.thread.fs, state.thread.frame))
    }
}

#[unsafe(naked)]
unsafe extern "C" fn clone(flags: usize, stack: usize, birth: *const Birth) -> isize {
    naked_asm!(
        "mov r9, rdx",
        "xor edx, edx",
        "xor r10d, r10d",
        "xor r8d, r8d",
        "mov eax, 56",
        "syscall",
        "test rax, rax",
        "jz 2f",
        "ret",
        "2:",
        "xor ebp, ebp",
        "mov rdi, r9",
        "call {born}",
        "ud2",
        born = sym born,
    )
}

/// The new thread: no thread-local storage of either half until the old one's is set.
unsafe extern "C" fn born(birth: *const Birth) -> ! {
    // SAFETY: the maker waits for `number`; the frame is one that the kernel wrote in the thread's former life.
    unsafe {
        let state = (*birth).state;
        asm!("wrfsbase {}", in(reg) state.fs, options(nomem, nostack, preserves_flags));
        segments::set_gs(state.gs);
        let number = sys::gettid();
        adopt(number, state.tid_address, state.robust, &state.name);
        if let Some(mask) = &(*birth).mask {
            mask.set();
        }
        let done = (*birth).number.as_ptr();
        AtomicU32::from_ptr(done).store(number, Release);
        syscall!(libc::SYS_futex, done, libc::FUTEX_WAKE, 1);
        while RELEASED.load(Acquire) == 0 {
            sys::wait(&RELEASED, 0);
        }
        asm!("mov rsp, {}", "mov eax, 15", "syscall", "ud2", in(reg) state.frame, options(noreturn))
    }
}
