//! What a machine must offer for a split process.
use crate::Error;
use crate::sys::{failed, syscall};

/// Whether this machine can run a split process; the error names what is missing.
///
/// # Errors
/// [`Error::Unsupported`] with the reason.
pub fn check() -> Result<(), Error> {
    const FSGSBASE: u64 = 2;
    const SECCOMP_GET_ACTION_AVAIL: usize = 2;
    // SAFETY: asks for a number.
    if unsafe { libc::getauxval(libc::AT_HWCAP2) } & FSGSBASE == 0 {
        return Err(Error::Unsupported(
            "it has no fsgsbase (a kernel of 5.9 or later and a processor of 2012 or later have it); use live prediction",
        ));
    }
    let action = libc::SECCOMP_RET_TRAP;
    // SAFETY: reads the word `action`.
    if failed(unsafe { syscall!(libc::SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) }) {
        return Err(Error::Unsupported("its kernel or container has no seccomp filters; use live prediction"));
    }
    // SAFETY: asks for a number.
    if unsafe { libc::sysconf(libc::_SC_PAGESIZE) } != 4096 {
        return Err(Error::Unsupported("its pages are not of 4 KB; use live prediction"));
    }
    Ok(())
}
