//! The clocks that the gate lends to the upper half: the kernel's, which need no thread pointer, but for the two of processor
//! time, which go on over a restart.
use crate::processor_time;
use std::arch::naked_asm;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static CLOCK_GETTIME: AtomicUsize = AtomicUsize::new(0);

/// Where the gate's `clock_gettime`, `gettimeofday` and `time` are.
pub(crate) fn entries() -> [usize; 3] {
    let clock = vdso(c"__vdso_clock_gettime").unwrap_or(plain_clock_gettime as *const () as usize);
    CLOCK_GETTIME.store(clock, Relaxed);
    [
        clock_gettime as *const () as usize,
        vdso(c"__vdso_gettimeofday").unwrap_or(plain_gettimeofday as *const () as usize),
        vdso(c"__vdso_time").unwrap_or(plain_time as *const () as usize),
    ]
}

fn vdso(name: &std::ffi::CStr) -> Option<usize> {
    // SAFETY: asks for a library that is loaded or none; both calls take valid names.
    let found = unsafe {
        let library = libc::dlopen(c"linux-vdso.so.1".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        if library.is_null() { library } else { libc::dlsym(library, name.as_ptr()) }
    };
    (!found.is_null()).then_some(found as usize)
}

/// The kernel's own, but for the two clocks of processor time.
#[unsafe(naked)]
unsafe extern "C" fn clock_gettime() {
    naked_asm!(
        "lea eax, [rdi - {first}]",
        "cmp eax, 1",
        "jbe {processor_time}",
        "jmp [rip + {kernel}]",
        first = const libc::CLOCK_PROCESS_CPUTIME_ID,
        processor_time = sym processor_time::clock_gettime,
        kernel = sym CLOCK_GETTIME,
    )
}

#[unsafe(naked)]
unsafe extern "C" fn plain_clock_gettime() {
    naked_asm!("mov eax, 228", "syscall", "ret")
}

#[unsafe(naked)]
unsafe extern "C" fn plain_gettimeofday() {
    naked_asm!("mov eax, 96", "syscall", "ret")
}

#[unsafe(naked)]
unsafe extern "C" fn plain_time() {
    naked_asm!("mov eax, 201", "syscall", "ret")
}
