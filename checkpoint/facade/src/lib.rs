//! What a program in the upper half calls instead of its MPI library: every `MPI_X` and `PMPI_X` as a jump through the
//! gate, and the clocks, which go to the lower half's vDSO because the upper one has none; those entries of Fortran
//! that do not come to C's by themselves ([`fortran`]), and what libraries for C++ ask of theirs for C ([`cxx`]). Almost all state is the host's.
//!
//! It uses nothing of std that is more than an instruction: it is mapped into a libc that is not the host's.

mod closures;
mod cxx;
mod each;
mod fortran;
mod generalized;

/// Fortran's entries.
#[allow(non_snake_case, clippy::collapsible_if)]
mod entries {
    use crate::closures;
    use crate::each;
    use crate::fortran::{self, call};
    use crate::generalized;
    use crate::symbols as s;
    include!(concat!(env!("OUT_DIR"), "/entries.rs"));
}

/// The symbols.
///
/// SAFETY of all: they touch only registers that a caller does not keep, and leave the arguments as they are.
#[allow(non_snake_case)]
mod symbols {
    include!(concat!(env!("OUT_DIR"), "/symbols.rs"));
}

phasecast_preload::dlopen!();
phasecast_preload::dlsym!();

#[used]
#[unsafe(link_section = ".init_array")]
static START: unsafe extern "C" fn() = symbols::phasecast_facade_starts;

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: unsafe extern "C" fn(usize, *mut *mut u8, *mut *mut u8) = begin;

/// Prepares the program's libraries, and takes what the host has put into the environment out of it again, so that the
/// program's children do not inherit it.
///
/// # Safety
/// Called by the dynamic linker with the program's arguments and environment.
unsafe extern "C" fn begin(_: usize, _: *mut *mut u8, environment: *mut *mut u8) {
    fortran::initialise();
    let (mut from, mut to) = (environment, environment);
    // SAFETY: the environment is an array of texts that ends with a null pointer; it is only made shorter.
    unsafe {
        while !(*from).is_null() {
            let text = *from;
            let keep = if starts(text, b"LD_PRELOAD=") {
                drop_first(text, 11)
            } else {
                !starts(text, b"LD_BIND_NOW=1") && !starts(text, b"GLIBC_TUNABLES=glibc.pthread.rseq=0")
            };
            if keep {
                *to = text;
                to = to.add(1);
            }
            from = from.add(1);
        }
        *to = core::ptr::null_mut();
    }
}

/// Calls a function of the program for the host: `frame` is that of the program's call in which MPI calls it. To who unwinds
/// the stack, the function is called from where the program calls MPI: an exception goes there, past the library, as with
/// `longjmp`.
///
/// # Safety
/// `frame` is a live frame of the gate; the function takes these arguments.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn phasecast_facade_calls(frame: usize, function: usize, args: &[usize; 6]) -> usize {
    // The frame's end, above the address to return to, and the registers below it: as in `phasecast_process::gate::Frame`.
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rbx",
        "mov rbx, rdi",
        ".cfi_def_cfa rbx, 128",
        ".cfi_offset rbx, -56",
        ".cfi_offset rbp, -48",
        ".cfi_offset r12, -40",
        ".cfi_offset r13, -32",
        ".cfi_offset r14, -24",
        ".cfi_offset r15, -16",
        "mov r11, rsi",
        "mov r10, rdx",
        "mov rdi, [r10]",
        "mov rsi, [r10 + 8]",
        "mov rdx, [r10 + 16]",
        "mov rcx, [r10 + 24]",
        "mov r8, [r10 + 32]",
        "mov r9, [r10 + 40]",
        "xor eax, eax",
        "call r11",
        "pop rbx",
        "ret",
        ".cfi_endproc",
    )
}

unsafe extern "C" {
    fn __errno_location() -> *mut i32;
}

/// What a clock returns that the kernel has answered with an error.
extern "C" fn tell_error(answer: i32) -> i32 {
    // SAFETY: the program's C library has this word for each thread.
    unsafe { *__errno_location() = -answer };
    -1
}

/// # Safety
/// `text` ends in zero.
unsafe fn starts(text: *const u8, with: &[u8]) -> bool {
    // SAFETY: the first difference, at the latest the zero at the end, stops the search.
    with.iter().enumerate().all(|(i, &byte)| unsafe { *text.add(i) == byte })
}

/// Removes the first entry of a list with colons that begins at `at`; false if nothing is left.
///
/// # Safety
/// `text` ends in zero and is longer than `at`.
unsafe fn drop_first(text: *mut u8, at: usize) -> bool {
    // SAFETY: reads and writes stay before the zero at the end.
    unsafe {
        let mut from = text.add(at);
        while *from != b':' {
            if *from == 0 {
                return false;
            }
            from = from.add(1);
        }
        let mut to = text.add(at);
        loop {
            from = from.add(1);
            *to = *from;
            if *from == 0 {
                return true;
            }
            to = to.add(1);
        }
    }
}
