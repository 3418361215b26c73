//! Running a program, and the programs that it replaces itself by: an exec of the upper half loads the next program in
//! place of the last, as a wrapper script's `exec` needs. Programs that cannot be loaded here are left to the kernel.
use crate::sys::{self, error};
use crate::{Error, Start, gate, loader, reopen, signal_state, signals, space, threads};
use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What [`gate::leave`] is given when the program wants to be replaced.
const REPLACE: usize = usize::MAX;

struct Next {
    start: Start,
    name: OsString,
}

static NEXT: Mutex<Option<Next>> = Mutex::new(None);
static LAST: Mutex<Option<Start>> = Mutex::new(None);
static RUNS: AtomicBool = AtomicBool::new(false);

/// Loads and runs a program, with the gate and the fence in place. Returns what [`gate::leave`] was given, if the program
/// does not end the process.
///
/// # Errors
/// If the program, or one that it replaces itself by, cannot be loaded.
///
/// # Safety
/// Called by the main thread, once, after [`gate::install`] and [`crate::fence::install`].
pub unsafe fn run(start: &Start) -> Result<usize, Error> {
    let mut next = Next { name: start.program.clone().into_os_string(), start: start.clone() };
    loop {
        let loaded = loader::load(&next.start, next.name)?;
        *LAST.lock().unwrap_or_else(|e| e.into_inner()) = Some(next.start);
        RUNS.store(true, Relaxed);
        // SAFETY: the program was just loaded; the caller's otherwise.
        let why = unsafe { gate::enter(loaded.entry, loaded.stack) };
        RUNS.store(false, Relaxed);
        let wanted = NEXT.lock().unwrap_or_else(|e| e.into_inner()).take();
        match wanted {
            Some(wanted) if why == REPLACE => next = wanted,
            _ => return Ok(why),
        }
        threads::end()?;
        signal_state::exec();
        reopen::exec();
        space::unmap_all();
    }
}

/// Whether the calling thread's exec can be carried out here.
pub(crate) fn applies() -> bool {
    RUNS.load(Relaxed) && sys::getpid() == sys::gettid()
}

unsafe fn list(mut at: *const *const libc::c_char) -> Vec<OsString> {
    let mut list = Vec::new();
    // SAFETY: the caller's: a list of texts that ends with a null pointer, or none.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            list.push(OsStr::from_bytes(CStr::from_ptr(*at).to_bytes()).to_owned());
            at = at.add(1);
        }
    }
    list
}

/// Notes the program that is to come. Runs with the lower half's thread pointer, on the upper half's stack. Returns a
/// negative number if the kernel must carry out the call.
///
/// # Safety
/// The arguments are those of an execve.
pub(crate) unsafe extern "C" fn note(
    path: *const libc::c_char,
    args: *const *const libc::c_char,
    env: *const *const libc::c_char,
) -> isize {
    // SAFETY: the caller's.
    let (path, args, env) = unsafe { (CStr::from_ptr(path), list(args), list(env)) };
    let last = LAST.lock().unwrap_or_else(|e| e.into_inner());
    let (Some(last), Some(name)) = (&*last, args.first()) else { return error(libc::EINVAL) };
    let pair = |text: &OsString| {
        let bytes = text.as_bytes();
        let at = bytes.iter().position(|b| *b == b'=')?;
        Some((OsStr::from_bytes(&bytes[..at]).to_owned(), OsStr::from_bytes(&bytes[at + 1..]).to_owned()))
    };
    let start = Start {
        program: PathBuf::from(OsStr::from_bytes(path.to_bytes())),
        args: args[1..].to_vec(),
        env: env.iter().filter_map(pair).collect(),
        facade: last.facade.clone(),
        cpu: last.cpu,
    };
    if loader::check(&start.program, &start.args).is_err() {
        return error(libc::ENOEXEC);
    }
    *NEXT.lock().unwrap_or_else(|e| e.into_inner()) = Some(Next { name: name.clone(), start });
    0
}

/// Leaves the upper half for the noted program. The mask of signals stays the program's.
///
/// # Safety
/// On the main thread, with the lower half's thread pointer, in the trap handler.
pub(crate) unsafe extern "C" fn replace(mask: u64) -> ! {
    sys::set_mask(signals::visible(mask));
    // SAFETY: the caller's; the handler holds no lock.
    unsafe { gate::leave(REPLACE) }
}
