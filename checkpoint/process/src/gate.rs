//! The gate between the halves. The upper half calls in through a page at a fixed address; the crossing saves the
//! caller's registers in a [`Frame`] on the caller's stack, switches the thread pointer (FS) to the lower half's and
//! calls the dispatcher. How a thread goes on after a call in another process, which has the same memory, says
//! [`Returned`](crate::threads::Returned).
pub use crate::entering::enter;
pub(crate) use crate::entering::{leave, leave_handler, resume};
pub use crate::stepping_out::{Made, again};
use crate::{gate_clock, segments, threads};
use std::arch::naked_asm;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Address of the gate's page: below the upper half's range, so that no image holds it and every host maps its own.
pub const GATE: usize = 0x1fff_fff0_0000;

/// What the gate's page holds, by index of 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The crossing.
    Crossing = 0,
    /// `clock_gettime` that works without a thread pointer of its own.
    ClockGettime = 1,
    /// `gettimeofday`, the same.
    Gettimeofday = 2,
    /// `time`, the same.
    Time = 3,
}

/// A call from the upper half: its arguments and what is needed to return from it. It lies on the caller's stack, with
/// the arguments beyond the sixth above it.
#[repr(C)]
#[derive(Debug)]
pub struct Frame {
    /// The procedure, by its index.
    pub index: u32,
    /// [`MARK`] until the call returns: a frame can be told from what else lies on the stack.
    pub mark: u32,
    /// The caller's thread pointer.
    pub fs: usize,
    /// The dispatcher's stack must be aligned.
    pub(crate) gap: usize,
    pub(crate) registers: [usize; 6],
    /// What the caller finds again: rbx, rbp, r12 to r15.
    pub(crate) saved: [usize; 6],
    /// Where the call returns to.
    pub ret: usize,
}

// The facade tells so to who unwinds the stack (`phasecast_facade_calls`).
const _: () = assert!(std::mem::offset_of!(Frame, saved) == 72 && size_of::<Frame>() == 128);

/// The mark of a call that has not returned.
pub const MARK: u32 = 0x7068_6173;

impl Frame {
    /// Argument `i` of the call.
    ///
    /// # Safety
    /// The called procedure has so many arguments, all of them integers or pointers.
    #[inline(always)]
    pub unsafe fn arg(&self, i: usize) -> usize {
        let first = if i < 6 { &raw const self.registers as *const usize } else { &raw const self.ret };
        // SAFETY: the caller's: arguments beyond the sixth lie above the return address. Word by word, as they were just
        // stored: a wider piece has to wait until the stores have reached the cache.
        unsafe { first.add(if i < 6 { i } else { i - 5 }).read_volatile() }
    }
}

/// Carries out call `index` of the upper half. It runs with the lower half's thread pointer, on the caller's stack.
pub type Dispatch = unsafe extern "C" fn(frame: *mut Frame, index: usize) -> usize;

static DISPATCH: AtomicUsize = AtomicUsize::new(0);
static MAIN_UPPER: AtomicUsize = AtomicUsize::new(0);
pub(crate) static MAIN_LOWER: AtomicUsize = AtomicUsize::new(0);

/// Maps the gate's page and opens it. To be called once, by the host's main thread.
///
/// # Errors
/// If the address is taken.
pub fn install(dispatch: Dispatch) -> std::io::Result<()> {
    let size = 4096;
    // SAFETY: a new page at an address that must be free.
    let page = unsafe {
        libc::mmap(
            GATE as *mut libc::c_void,
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if page as usize != GATE {
        return Err(std::io::Error::last_os_error());
    }
    DISPATCH.store(dispatch as *const () as usize, Relaxed);
    MAIN_LOWER.store(thread_pointer(), Relaxed);
    MAIN_UPPER.store(0, Relaxed);
    let set = |slot: Slot, address: usize| {
        // SAFETY: the page was just mapped.
        unsafe { *(GATE as *mut usize).add(slot as usize) = address }
    };
    set(Slot::Crossing, crossing as *const () as usize);
    let [clock_gettime, gettimeofday, time] = gate_clock::entries();
    set(Slot::ClockGettime, clock_gettime);
    set(Slot::Gettimeofday, gettimeofday);
    set(Slot::Time, time);
    Ok(())
}

/// The thread pointer of the calling thread.
#[inline(always)]
pub fn thread_pointer() -> usize {
    let fs: usize;
    // SAFETY: reads a register; the host refuses to run on a processor or kernel without the instruction.
    unsafe { std::arch::asm!("rdfsbase {}", out(reg) fs, options(nomem, nostack, preserves_flags)) };
    fs
}

/// The thread pointer of the upper half's main thread, once it has made a call.
pub fn main_upper() -> usize {
    MAIN_UPPER.load(Relaxed)
}

/// The thread pointer of the lower half's main thread.
pub fn main_lower() -> usize {
    MAIN_LOWER.load(Relaxed)
}

/// From the upper half: r10 is the index of the procedure, everything else as the caller left it. The thread pointer is set
/// first: without a segment that waits for what was stored before, and the frame is many stores. Its word 0 holds the pointer
/// itself, by the processor's ABI; to read that takes less time than `rdfsbase`.
#[unsafe(naked)]
unsafe extern "C" fn crossing() {
    naked_asm!(
        "mov rax, fs:[0]",
        "cmp rax, [rip + {by_segment}]",
        "jne 3f",
        "mov r11d, {lower}",
        "mov fs, r11d",
        "2:",
        "push r15",
        "push r14",
        "push r13",
        "push r12",
        "push rbp",
        "push rbx",
        "push r9",
        "push r8",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "sub rsp, 24",
        "mov [rsp + 8], rax",
        "mov [rsp], r10d",
        "mov dword ptr [rsp + 4], {mark}",
        "mov rdi, rsp",
        "mov rsi, r10",
        "call [rip + {dispatch}]",
        "jmp {finish}",
        "3:",
        "rdfsbase rax",
        "mov r11, [rip + {main_lower}]",
        "cmp rax, [rip + {main_upper}]",
        "je 4f",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push r10",
        "push rax",
        "sub rsp, 8",
        "mov rdi, rax",
        "call {unknown}",
        "mov r11, rax",
        "add rsp, 8",
        "pop rax",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "4:",
        "wrfsbase r11",
        "jmp 2b",
        by_segment = sym segments::UPPER_BASE,
        lower = const segments::LOWER,
        main_upper = sym MAIN_UPPER,
        main_lower = sym MAIN_LOWER,
        dispatch = sym DISPATCH,
        mark = const MARK,
        unknown = sym unknown,
        finish = sym finish,
    )
}

/// Returns from a call: rsp is the frame's address, rax the result. A result that is a `double` travels as its bits.
#[unsafe(naked)]
unsafe extern "C" fn finish() {
    naked_asm!(
        "mov rcx, [rsp + 8]",
        "cmp rcx, [rip + {by_segment}]",
        "jne 3f",
        "mov ecx, {upper}",
        "mov fs, ecx",
        "2:",
        "mov dword ptr [rsp + 4], 0",
        "movq xmm0, rax",
        "add rsp, 72",
        "pop rbx",
        "pop rbp",
        "pop r12",
        "pop r13",
        "pop r14",
        "pop r15",
        "ret",
        "3:",
        "wrfsbase rcx",
        "jmp 2b",
        by_segment = sym segments::UPPER_BASE,
        upper = const segments::UPPER,
    )
}

/// The lower thread pointer for a thread that has not called before. It runs with the upper half's: no thread-local
/// storage, no allocation.
extern "C" fn unknown(upper: usize) -> usize {
    // SAFETY: system calls without arguments.
    let (thread, process): (usize, usize);
    // SAFETY: gettid and getpid change rcx and r11 only.
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") 186usize => thread, out("rcx") _, out("r11") _, options(nostack));
        std::arch::asm!("syscall", inlateout("rax") 39usize => process, out("rcx") _, out("r11") _, options(nostack));
    }
    if thread == process {
        set_main_upper(upper);
        return MAIN_LOWER.load(Relaxed);
    }
    threads::lower_fs(upper)
}

/// Says which thread pointer the main thread will have in an upper half that is continued by [`resume`]: signals from now on
/// are the upper half's.
pub(crate) fn set_main_upper(pointer: usize) {
    MAIN_UPPER.store(pointer, Relaxed);
    segments::set_upper(pointer);
}

/// Calls a function of the upper half from the lower one, with the upper thread pointer `fs`.
///
/// # Safety
/// `fs` is the thread pointer that the calling thread has in the upper half; the function takes so many integers or
/// pointers, and MPI may call it now.
#[unsafe(naked)]
pub unsafe extern "C" fn call_upper(fs: usize, function: usize, args: &[usize; 6]) -> usize {
    naked_asm!(
        "push rbx",
        "push r12",
        "sub rsp, 8",
        "rdfsbase rbx",
        "mov r12, rsi",
        "mov rax, rdi",
        "mov r10, rdx",
        "mov rdi, [r10]",
        "mov rsi, [r10 + 8]",
        "mov rdx, [r10 + 16]",
        "mov rcx, [r10 + 24]",
        "mov r8, [r10 + 32]",
        "mov r9, [r10 + 40]",
        "wrfsbase rax",
        "xor eax, eax",
        "call r12",
        "wrfsbase rbx",
        "add rsp, 8",
        "pop r12",
        "pop rbx",
        "ret",
    )
}
