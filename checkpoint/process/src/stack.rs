//! A program's first stack, as the kernel's exec leaves it: arguments, environment, auxiliary vector.
use crate::Error;
use crate::space;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;

/// The least size of a stack; a larger limit of the process is followed.
const LEAST: usize = 64 << 20;
/// A program may raise its limit when it runs: to so much, if the hard limit lets it.
const RAISED: u64 = 1 << 30;
/// What stands for "unlimited".
const MOST: usize = 16 << 30;
/// Pages below the stack that catch an overflow.
const GUARD: usize = 256 * 4096;

/// What the auxiliary vector tells a program of its own image.
pub(crate) struct Image {
    /// Address of its program headers.
    pub headers: usize,
    /// Their number.
    pub header_count: usize,
    /// Its entry point.
    pub entry: usize,
    /// Base of its dynamic linker.
    pub linker: usize,
}

fn text(value: OsString) -> Result<CString, Error> {
    CString::new(value.into_vec()).map_err(|e| Error::ZeroByte(String::from_utf8_lossy(&e.into_vec()).into_owned()))
}

/// Maps a stack; returns its lowest usable address and the one after its last.
pub(crate) fn map(executable: bool) -> Result<(usize, usize), Error> {
    // SAFETY: fills the structure; a failure leaves it zero.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit);
        limit.rlim_cur.max(limit.rlim_max.min(RAISED))
    };
    let wanted = usize::try_from(limit).unwrap_or(MOST).clamp(LEAST, MOST) & !4095;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    let protection = libc::PROT_READ | libc::PROT_WRITE | if executable { libc::PROT_EXEC } else { 0 };
    let try_map = |len| space::map("the stack", None, len, protection, flags, -1, 0).map(|bottom| (bottom, len));
    let (bottom, len) = try_map(wanted).or_else(|_| try_map(LEAST))?;
    // The kernel's own stacks grow page by page and so get no huge pages.
    // SAFETY: the mapping just made, which nobody uses yet.
    unsafe {
        libc::madvise(bottom as *mut libc::c_void, len, libc::MADV_NOHUGEPAGE);
        libc::mprotect(bottom as *mut libc::c_void, GUARD, libc::PROT_NONE);
    }
    let area = (bottom + GUARD, bottom + len);
    space::set_stack(area);
    Ok(area)
}

/// Fills a new stack; returns the stack pointer for the entry point.
pub(crate) fn fill(
    (bottom, top): (usize, usize),
    args: Vec<OsString>,
    env: Vec<OsString>,
    path: OsString,
    image: &Image,
) -> Result<usize, Error> {
    let args = args.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let env = env.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let path = text(path)?;
    let strings: usize = args.iter().chain(&env).map(|s| s.as_bytes_with_nul().len()).sum();
    if strings + (args.len() + env.len()) * 8 > top - bottom - (1 << 20) {
        return Err(Error::NoRoom { bytes: strings });
    }
    let mut at = top - 8;
    let mut push = |bytes: &[u8]| {
        at -= bytes.len();
        // SAFETY: within the new stack: what is pushed was measured above, and a megabyte is left for the rest.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
        at
    };
    let path = push(path.as_bytes_with_nul());
    let mut pointers = |list: &[CString]| -> Vec<usize> {
        let mut places: Vec<usize> = list.iter().rev().map(|s| push(s.as_bytes_with_nul())).collect();
        places.reverse();
        places
    };
    let (env, args) = (pointers(&env), pointers(&args));
    let platform = push(b"x86_64\0");
    let mut random = [0u8; 16];
    // SAFETY: fills the buffer; if the kernel cannot, it stays zero, which only weakens the program's canaries.
    unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
    let random = push(&random);

    // SAFETY: asks for numbers.
    let host = |kind: u64| unsafe { libc::getauxval(kind) } as usize;
    let mut auxiliary = vec![
        (libc::AT_PHDR, image.headers),
        (libc::AT_PHENT, 56),
        (libc::AT_PHNUM, image.header_count),
        (libc::AT_PAGESZ, 4096),
        (libc::AT_BASE, image.linker),
        (libc::AT_FLAGS, 0),
        (libc::AT_ENTRY, image.entry),
        (libc::AT_UID, host(libc::AT_UID)),
        (libc::AT_EUID, host(libc::AT_EUID)),
        (libc::AT_GID, host(libc::AT_GID)),
        (libc::AT_EGID, host(libc::AT_EGID)),
        (libc::AT_SECURE, 0),
        (libc::AT_CLKTCK, host(libc::AT_CLKTCK)),
        (libc::AT_HWCAP, host(libc::AT_HWCAP)),
        (libc::AT_HWCAP2, host(libc::AT_HWCAP2)),
        (libc::AT_PLATFORM, platform),
        (libc::AT_RANDOM, random),
        (libc::AT_EXECFN, path),
    ];
    let frame = host(libc::AT_MINSIGSTKSZ);
    if frame != 0 {
        auxiliary.push((libc::AT_MINSIGSTKSZ, frame));
    }
    auxiliary.push((libc::AT_NULL, 0));

    let mut words = vec![args.len()];
    words.extend(args);
    words.push(0);
    words.extend(env);
    words.push(0);
    words.extend(auxiliary.into_iter().flat_map(|(kind, value)| [kind as usize, value]));
    let stack = (at - words.len() * 8) & !15;
    // SAFETY: below what was pushed and above the guard.
    unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), stack as *mut usize, words.len()) };
    Ok(stack)
}
