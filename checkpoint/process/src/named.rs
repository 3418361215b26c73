//! The upper half's system calls that name a file. In a program that is replayed they are carried out on what stands for the
//! file, see [`overlay`](crate::overlay); in one that runs from its start, what is opened for writing is noted for the images.
//! Part of the trap handler: raw system calls, no allocation.
use crate::descriptors;
use crate::overlay::{self, Buffers, Seen};
use crate::sys::{error, failed, syscall};
use crate::trap::Call;
use libc::{AT_FDCWD, EEXIST, ENOENT, c_int};

/// What a call does with the file that it names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    /// Makes, removes, renames or cuts it off.
    Change,
    /// Tells about it.
    Tell,
    /// Sets its mode or times.
    Set,
}
use Does::{Change, Set, Tell};

/// Calls that name a file and give no descriptor, with the place of the path; where that is 1, 0 is a folder.
#[rustfmt::skip]
pub(crate) const CALLS: &[(i64, usize, Does)] = &[
    (libc::SYS_unlink, 0, Change), (libc::SYS_unlinkat, 1, Change), (libc::SYS_rename, 0, Change),
    (libc::SYS_renameat, 1, Change), (libc::SYS_renameat2, 1, Change), (libc::SYS_truncate, 0, Change),
    (libc::SYS_mkdir, 0, Change), (libc::SYS_mkdirat, 1, Change), (libc::SYS_rmdir, 0, Change),
    (libc::SYS_stat, 0, Tell), (libc::SYS_lstat, 0, Tell), (libc::SYS_newfstatat, 1, Tell), (libc::SYS_statx, 1, Tell),
    (libc::SYS_access, 0, Tell), (libc::SYS_faccessat, 1, Tell), (libc::SYS_faccessat2, 1, Tell),
    (libc::SYS_chmod, 0, Set), (libc::SYS_fchmodat, 1, Set), (libc::SYS_fchmodat2, 1, Set), (libc::SYS_utime, 0, Set),
    (libc::SYS_utimes, 0, Set), (libc::SYS_futimesat, 1, Set), (libc::SYS_utimensat, 1, Set),
];

/// The place of a call's path and what is done, if the call is one of [`CALLS`].
pub(crate) fn listed(number: i64) -> Option<(usize, Does)> {
    CALLS.iter().find(|call| call.0 == number).map(|call| (call.1, call.2))
}

/// What a call that opens a file asks for: folder, path, flags and mode.
unsafe fn asked(call: &Call) -> Option<(usize, usize, c_int, usize)> {
    let (args, here) = (call.args, AT_FDCWD as usize);
    match call.number {
        libc::SYS_open => Some((here, args[0], args[1] as c_int, args[2])),
        libc::SYS_creat => Some((here, args[0], libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, args[1])),
        libc::SYS_openat => Some((args[0], args[1], args[2] as c_int, args[3])),
        libc::SYS_openat2 if args[3] >= 16 => {
            // SAFETY: the program's pointer, as the kernel would read it.
            let [flags, mode] = unsafe { (args[2] as *const [u64; 2]).read_unaligned() };
            Some((args[0], args[1], flags as c_int, mode as usize))
        }
        _ => None,
    }
}

/// Whether an open with these flags may change the file.
pub(crate) fn writes(flags: c_int) -> bool {
    flags & libc::O_ACCMODE != libc::O_RDONLY || flags & (libc::O_CREAT | libc::O_TRUNC) != 0
}

/// Notes what a call that has succeeded lets the program write, for the images of this run.
pub(crate) unsafe fn note(call: &Call, result: isize) {
    if failed(result) {
        return;
    }
    let args = call.args;
    // SAFETY: the arguments as the program gave them.
    unsafe {
        let (folder, path) = match call.number {
            libc::SYS_rename => (AT_FDCWD as usize, args[1]),
            libc::SYS_renameat | libc::SYS_renameat2 => (args[2], args[3]),
            libc::SYS_truncate => (AT_FDCWD as usize, args[0]),
            _ => match asked(call) {
                Some((folder, path, flags, _)) if writes(flags) && flags & libc::O_TMPFILE != libc::O_TMPFILE => {
                    (folder, path)
                }
                _ => return,
            },
        };
        overlay::tables().note(folder, path);
    }
}

/// Carries out a call that names a file, if a program is replayed and the file must be kept apart.
pub(crate) unsafe fn trapped(call: &mut Call) -> Option<isize> {
    if !overlay::on() {
        return None;
    }
    let args = call.args;
    let here = AT_FDCWD as usize;
    // SAFETY: throughout: the arguments as the program gave them.
    unsafe {
        let mut buffers = overlay::tables();
        match call.number {
            libc::SYS_open | libc::SYS_openat | libc::SYS_creat | libc::SYS_openat2 => {
                let (folder, path, flags, mode) = asked(call)?;
                if buffers.resolve(folder, path) { buffers.open(flags, mode) } else { None }
            }
            libc::SYS_unlink => buffers.resolve(here, args[0]).then(|| buffers.hide()),
            libc::SYS_unlinkat if args[2] & libc::AT_REMOVEDIR as usize == 0 => {
                buffers.resolve(args[0], args[1]).then(|| buffers.hide())
            }
            libc::SYS_rename => rename(&mut buffers, [here, args[0], here, args[1]]),
            libc::SYS_renameat | libc::SYS_renameat2 => rename(&mut buffers, [args[0], args[1], args[2], args[3]]),
            libc::SYS_truncate => buffers.resolve(here, args[0]).then(|| match buffers.open(libc::O_WRONLY, 0) {
                Some(fd) if !failed(fd) => {
                    let result = syscall!(libc::SYS_ftruncate, fd, args[1]);
                    syscall!(libc::SYS_close, fd);
                    descriptors::forget(fd as usize);
                    result
                }
                other => other.unwrap_or(0),
            }),
            libc::SYS_mkdir => folder(&mut buffers, here, args[0], true),
            libc::SYS_mkdirat => folder(&mut buffers, args[0], args[1], true),
            libc::SYS_rmdir => folder(&mut buffers, here, args[0], false),
            libc::SYS_unlinkat => folder(&mut buffers, args[0], args[1], false),
            _ => about(&mut buffers, call),
        }
    }
}

/// What is told or set about a file is told or set about its copy; the original is not changed.
unsafe fn about(buffers: &mut Buffers, call: &mut Call) -> Option<isize> {
    let (at, does) = listed(call.number)?;
    let (folder, path) = if at == 0 { (AT_FDCWD as usize, call.args[0]) } else { (call.args[0], call.args[1]) };
    // SAFETY: the arguments as the program gave them; the copy's path ends with a zero byte.
    unsafe {
        // Without a name it is about the descriptor.
        if path == 0 || *(path as *const u8) == 0 || !buffers.resolve(folder, path) {
            return None;
        }
        match buffers.seen() {
            Seen::Copy => {
                call.args[0] = AT_FDCWD as usize;
                call.args[at] = buffers.copy.address() as usize;
                Some(call.pass())
            }
            Seen::Nothing => Some(error(ENOENT)),
            Seen::Original if does == Set => {
                Some(if overlay::kind(&buffers.path).is_some() { 0 } else { error(ENOENT) })
            }
            Seen::Original => None,
        }
    }
}

/// Folders are neither made nor removed: files in them have their copies elsewhere.
unsafe fn folder(buffers: &mut Buffers, dirfd: usize, path: usize, make: bool) -> Option<isize> {
    // SAFETY: the caller's.
    let ours = unsafe { buffers.resolve(dirfd, path) };
    ours.then(|| if make && overlay::kind(&buffers.path).is_some() { error(EEXIST) } else { 0 })
}

unsafe fn rename(buffers: &mut Buffers, [from_dir, from, to_dir, to]: [usize; 4]) -> Option<isize> {
    // SAFETY: the caller's; paths end with a zero byte.
    unsafe {
        if !buffers.resolve(from_dir, from) {
            return None;
        }
        // A copy of the source is needed, since the target is one.
        match buffers.open(libc::O_WRONLY, 0) {
            Some(fd) if !failed(fd) => {
                syscall!(libc::SYS_close, fd);
                descriptors::forget(fd as usize);
            }
            other => return Some(other.unwrap_or(0)),
        }
        let Buffers { copy, other, .. } = &mut *buffers;
        other.set(&[copy.get()]);
        buffers.mark();
        if !buffers.resolve(to_dir, to) {
            return Some(error(libc::EXDEV));
        }
        overlay::remove(&buffers.gone);
        let (source, target) = (buffers.other.address(), buffers.copy.address());
        Some(syscall!(libc::SYS_renameat2, AT_FDCWD, source, AT_FDCWD, target, 0))
    }
}
