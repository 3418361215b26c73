//! What the libraries share that are put in front of a program's MPI, the tracer and the facade: their procedures are found
//! also by a program that asks the dynamic linker for those of its MPI library, by the library's handle (Python's `ctypes`,
//! numba), or that opens a library of its own in such a way that its references go to what it needs first
//! (`RTLD_DEEPBIND`: PHP). These searches begin at the library, so that nothing that was loaded before it counts.
#![no_std]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

type Lookup = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// Defines `dlsym` in a library. Where the search depends on who asks (`RTLD_NEXT`, `RTLD_DEFAULT`), it is passed on as if
/// the asker had called the C library.
#[macro_export]
macro_rules! dlsym {
    () => {
        /// # Safety
        /// As `dlsym` of the C library.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn dlsym() {
            core::arch::naked_asm!(
                "lea rax, [rdi + 1]",
                "cmp rax, 1",
                "jbe 2f",
                "jmp {by_handle}",
                "2:",
                "jmp {to_libc}",
                by_handle = sym $crate::by_handle,
                to_libc = sym $crate::to_dlsym,
            )
        }
    };
}

/// Defines `dlopen` in a library. It is passed on as if the asker had called the C library, whose search depends on that, but
/// for `RTLD_DEEPBIND`: a library that is opened so would find the MPI that it needs, or the C library's `dlopen` and `dlsym`,
/// before this one's.
#[macro_export]
macro_rules! dlopen {
    () => {
        /// # Safety
        /// As `dlopen` of the C library.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn dlopen() {
            core::arch::naked_asm!(
                "and esi, {kept}",
                "jmp {to_libc}",
                kept = const $crate::KEPT,
                to_libc = sym $crate::to_dlopen,
            )
        }
    };
}

/// All flags of `dlopen` but `RTLD_DEEPBIND`.
#[doc(hidden)]
pub const KEPT: c_int = !libc::RTLD_DEEPBIND;

/// Goes on with the C library's procedure of two arguments, which sees the asker as its caller.
macro_rules! goes_on {
    ($name:ident, $of_libc:path) => {
        #[doc(hidden)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "push rdi",
                "push rsi",
                "sub rsp, 8",
                "call {of_libc}",
                "add rsp, 8",
                "pop rsi",
                "pop rdi",
                "jmp rax",
                of_libc = sym $of_libc,
            )
        }
    };
}

goes_on!(to_dlopen, dlopen_of_libc);
goes_on!(to_dlsym, dlsym_of_libc);

extern "C" fn dlopen_of_libc() -> usize {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    once(&FOUND, || behind(c"dlopen"))
}

extern "C" fn dlsym_of_libc() -> usize {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: names that end in zero; the version is the oldest of this architecture, and every C library's.
    once(&FOUND, || unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), c"GLIBC_2.2.5".as_ptr()) })
}

/// What is found, which is looked for once.
fn once(found: &AtomicUsize, find: impl FnOnce() -> *mut c_void) -> usize {
    if found.load(Relaxed) == 0 {
        found.store(find() as usize, Relaxed);
    }
    found.load(Relaxed)
}

/// Where the program and the libraries that it was started with have this name; null if they do not.
pub fn anywhere(name: &CStr) -> *mut c_void {
    found(libc::RTLD_DEFAULT, name)
}

/// The same of the libraries that come after this one.
pub fn behind(name: &CStr) -> *mut c_void {
    found(libc::RTLD_NEXT, name)
}

fn found(among: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the C library's procedure, and a name that ends in zero.
    unsafe {
        let lookup = core::mem::transmute::<usize, Lookup>(dlsym_of_libc());
        let found = lookup(among, name.as_ptr());
        if found.is_null() {
            // Nobody asked for it, so nobody is to be told of it.
            libc::dlerror();
        }
        found
    }
}

/// What a library has by this name, or this library's own where that is a procedure of an MPI library.
///
/// # Safety
/// As `dlsym`.
#[doc(hidden)]
pub unsafe extern "C" fn by_handle(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe {
        let lookup = core::mem::transmute::<usize, Lookup>(dlsym_of_libc());
        let found = lookup(handle, name);
        let text = CStr::from_ptr(name).to_bytes();
        let is_procedure = !found.is_null() && (text.starts_with(b"MPI_") || text.starts_with(b"PMPI_"));
        if is_procedure { own(lookup, handle, name, found).unwrap_or(found) } else { found }
    }
}

/// This library's own, if `found` is an MPI library's, and not that of a tool around one or of a stub.
unsafe fn own(lookup: Lookup, handle: *mut c_void, name: *const c_char, found: *mut c_void) -> Option<*mut c_void> {
    // SAFETY: the caller's handle, and names that end in zero.
    unsafe {
        let proof = lookup(handle, c"PMPI_Init".as_ptr());
        if proof.is_null() {
            // Nobody asked for it, so nobody is to be told of it.
            libc::dlerror();
            return None;
        }
        let own = lookup(libc::RTLD_DEFAULT, name);
        (object(proof)? == object(found)? && object(own)? == object(by_handle as *mut c_void)?).then_some(own)
    }
}

/// The beginning of the object that holds an address.
fn object(address: *mut c_void) -> Option<*mut c_void> {
    // SAFETY: a record of numbers and pointers, which is written to.
    let mut info = unsafe { core::mem::zeroed::<libc::Dl_info>() };
    // SAFETY: as above.
    (unsafe { libc::dladdr(address, &raw mut info) } != 0).then_some(info.dli_fbase)
}
