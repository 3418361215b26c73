//! Entering an upper half, by its entry point or in the middle, and leaving it: the main thread's ways between the host's own
//! stack and the program's.
use crate::gate::MAIN_LOWER;
use crate::segments;
use std::arch::naked_asm;
use std::sync::atomic::AtomicUsize;

static HOST_STACK: AtomicUsize = AtomicUsize::new(0);

/// Saves what a caller of the host expects to find again, and where.
macro_rules! save_host {
    () => {
        concat!(
            "push rbx\n push rbp\n push r12\n push r13\n push r14\n push r15\n",
            "sub rsp, 8\n stmxcsr [rsp]\n fnstcw [rsp + 4]\n",
            "mov [rip + {host}], rsp",
        )
    };
}

/// Brings back what [`save_host`] has saved.
macro_rules! restore_host {
    () => {
        concat!(
            "mov rsp, [rip + {host}]\n",
            "ldmxcsr [rsp]\n fldcw [rsp + 4]\n add rsp, 8\n",
            "pop r15\n pop r14\n pop r13\n pop r12\n pop rbp\n pop rbx",
        )
    };
}

/// Starts an upper half: jumps to `entry` with the stack pointer `stack`, as the kernel's exec does. Returns what
/// [`leave`] is given, if the upper half does not end the process.
///
/// # Safety
/// The address is the entry point of a loaded program, and the stack holds its arguments, environment and auxiliary
/// vector. Called by the main thread.
#[unsafe(naked)]
pub unsafe extern "C" fn enter(entry: usize, stack: usize) -> usize {
    naked_asm!(
        save_host!(),
        "mov rsp, rsi",
        "mov rax, rdi",
        "xor edx, edx",
        "xor ebp, ebp",
        "xor edi, edi",
        "xor esi, esi",
        "jmp rax",
        host = sym HOST_STACK,
    )
}

/// Continues the main thread of an upper half: returns from the signal whose frame is at this address, with the thread pointer
/// that [`set_main_upper`](crate::gate::set_main_upper) was told. Returns as [`enter`] does.
///
/// # Safety
/// The frame is a live one of this process, or one whose memory was restored with all that the upper half had mapped.
/// Called by the main thread.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn resume(fs: usize, frame: usize) -> usize {
    naked_asm!(
        save_host!(),
        "mov rsp, rsi",
        "cmp rdi, [rip + {by_segment}]",
        "jne 3f",
        "mov ecx, {upper}",
        "mov fs, ecx",
        "2:",
        "mov eax, 15",
        "syscall",
        "ud2",
        "3:",
        "wrfsbase rdi",
        "jmp 2b",
        host = sym HOST_STACK,
        by_segment = sym segments::UPPER_BASE,
        upper = const segments::UPPER,
    )
}

/// The same as [`leave`] from within a signal's handler, under the upper half's thread pointer.
///
/// # Safety
/// As for [`leave`].
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn leave_handler(why: usize) -> ! {
    naked_asm!(
        "cmp qword ptr [rip + {by_segment}], 0",
        "je 3f",
        "mov ecx, {lower}",
        "mov fs, ecx",
        "jmp {leave}",
        "3:",
        "mov rcx, [rip + {main_lower}]",
        "wrfsbase rcx",
        "jmp {leave}",
        by_segment = sym segments::UPPER_BASE,
        lower = const segments::LOWER,
        main_lower = sym MAIN_LOWER,
        leave = sym leave,
    )
}

/// Goes back to the host's own stack, out of the last [`enter`] or [`resume`], which returns `why`. What the frames in
/// between own is not dropped.
///
/// # Safety
/// Called on the main thread with the lower half's thread pointer, from within a dispatch; nothing on the stack that is
/// left holds a lock.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn leave(why: usize) -> ! {
    naked_asm!(
        "mov rax, rdi",
        restore_host!(),
        "cld",
        "ret",
        host = sym HOST_STACK,
    )
}
