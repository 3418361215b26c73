//! The upper half's system calls that name a file. In a program that is replayed they are carried out on what stands for the
//! file, see [`overlay`](crate::overlay); in one that runs from its start, what is opened for writing is noted for the images.
//! Part of the trap handler: raw system calls, no allocation.
use crate::descriptors;
use crate::overlay::{self, Buffers, Seen};
use crate::own::Lock;
use crate::plain;
use crate::sys::{error, failed, syscall};
use crate::text::Text;
use crate::trap::Call;
use libc::{AT_FDCWD, EEXIST, ENOENT, c_int};

/// What a call does with the file that it names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    /// Makes, removes, renames, links or cuts it off.
    Change,
    /// Tells about it.
    Tell,
    /// Sets its mode, times, owner or attributes.
    Set,
}
use Does::{Change, Set, Tell};

/// Calls that name a file and give no descriptor, with the place of the path. Where one that tells or sets has it at 1, 0 is
/// a folder.
#[rustfmt::skip]
pub(crate) const CALLS: &[(i64, usize, Does)] = &[
    (libc::SYS_unlink, 0, Change), (libc::SYS_unlinkat, 1, Change), (libc::SYS_rename, 0, Change),
    (libc::SYS_renameat, 1, Change), (libc::SYS_renameat2, 1, Change), (libc::SYS_truncate, 0, Change),
    (libc::SYS_mkdir, 0, Change), (libc::SYS_mkdirat, 1, Change), (libc::SYS_rmdir, 0, Change),
    (libc::SYS_link, 0, Change), (libc::SYS_linkat, 1, Change), (libc::SYS_symlink, 1, Change),
    (libc::SYS_symlinkat, 2, Change), (libc::SYS_mknod, 0, Change), (libc::SYS_mknodat, 1, Change),
    (libc::SYS_readlink, 0, Tell), (libc::SYS_readlinkat, 1, Tell),
    (libc::SYS_stat, 0, Tell), (libc::SYS_lstat, 0, Tell), (libc::SYS_newfstatat, 1, Tell), (libc::SYS_statx, 1, Tell),
    (libc::SYS_access, 0, Tell), (libc::SYS_faccessat, 1, Tell), (libc::SYS_faccessat2, 1, Tell),
    (libc::SYS_statfs, 0, Tell), (libc::SYS_getxattr, 0, Tell), (libc::SYS_lgetxattr, 0, Tell),
    (libc::SYS_listxattr, 0, Tell), (libc::SYS_llistxattr, 0, Tell),
    (libc::SYS_setxattr, 0, Set), (libc::SYS_lsetxattr, 0, Set), (libc::SYS_removexattr, 0, Set),
    (libc::SYS_lremovexattr, 0, Set), (libc::SYS_chown, 0, Set), (libc::SYS_lchown, 0, Set), (libc::SYS_fchownat, 1, Set),
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

/// Whether an open with these flags wants that nothing is there.
pub(crate) fn excludes(flags: c_int) -> bool {
    flags & (libc::O_CREAT | libc::O_EXCL) == libc::O_CREAT | libc::O_EXCL
}

/// A name that a call is given for what it makes, writes or reads.
struct Target {
    folder: usize,
    path: usize,
    writes: bool,
    /// Whether it makes what is not there.
    makes: bool,
}

/// What a call names, if it is noted.
unsafe fn target(call: &Call) -> Option<Target> {
    let (args, here) = (call.args, AT_FDCWD as usize);
    let (folder, path) = match call.number {
        libc::SYS_rename => (here, args[1]),
        libc::SYS_renameat | libc::SYS_renameat2 => (args[2], args[3]),
        libc::SYS_truncate | libc::SYS_mkdir => (here, args[0]),
        libc::SYS_link | libc::SYS_symlink => (here, args[1]),
        libc::SYS_linkat => (args[2], args[3]),
        libc::SYS_symlinkat => (args[1], args[2]),
        libc::SYS_mkdirat => (args[0], args[1]),
        _ => {
            // SAFETY: the arguments as the program gave them.
            let (folder, path, flags, _) = unsafe { asked(call) }?;
            let named = flags & libc::O_TMPFILE != libc::O_TMPFILE;
            return named.then_some(Target { folder, path, writes: writes(flags), makes: flags & libc::O_CREAT != 0 });
        }
    };
    Some(Target { folder, path, writes: true, makes: call.number != libc::SYS_truncate })
}

/// Carries out a call on the file that it names, and notes what one that succeeds lets the program write, read or make, for
/// the images of this run.
pub(crate) unsafe fn noted(call: &mut Call, carry_out: impl FnOnce(&mut Call) -> isize) -> isize {
    // SAFETY: throughout: the arguments as the program gave them.
    unsafe {
        let Some(Target { folder, path, writes, makes }) = target(call) else { return carry_out(call) };
        let args = call.args;
        let made = makes && overlay::tables().lacks(folder, path);
        let result = carry_out(call);
        if !failed(result) {
            let mut buffers = overlay::tables();
            buffers.note(folder, path, writes, made);
            match call.number {
                libc::SYS_rename => buffers.note_moved([folder, args[0], folder, path]),
                libc::SYS_renameat | libc::SYS_renameat2 => buffers.note_moved([args[0], args[1], folder, path]),
                _ => {}
            }
        }
        result
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
                if !buffers.resolve(folder, path) {
                    return None;
                }
                if flags & libc::O_NOFOLLOW == 0 && !excludes(flags) {
                    buffers.follow();
                }
                if plain::kind_itself(&buffers.copy) == Some(libc::S_IFIFO) {
                    return Some(open_pipe(call, buffers, flags));
                }
                buffers.open(flags, mode)
            }
            libc::SYS_unlink => buffers.resolve(here, args[0]).then(|| buffers.hide(false)),
            libc::SYS_unlinkat => {
                let folder = args[2] & libc::AT_REMOVEDIR as usize != 0;
                buffers.resolve(args[0], args[1]).then(|| buffers.hide(folder))
            }
            libc::SYS_rmdir => buffers.resolve(here, args[0]).then(|| buffers.hide(true)),
            libc::SYS_rename => rename(&mut buffers, [here, args[0], here, args[1], 0]),
            libc::SYS_renameat => rename(&mut buffers, [args[0], args[1], args[2], args[3], 0]),
            libc::SYS_renameat2 => rename(&mut buffers, [args[0], args[1], args[2], args[3], args[4]]),
            libc::SYS_link => link(&mut buffers, [here, args[0], here, args[1], 0]),
            libc::SYS_linkat => link(&mut buffers, [args[0], args[1], args[2], args[3], args[4]]),
            libc::SYS_symlink => {
                buffers.turn_all();
                make(&mut buffers, here, args[1], |copy| syscall!(libc::SYS_symlink, args[0], copy))
            }
            libc::SYS_symlinkat => {
                buffers.turn_all();
                make(&mut buffers, args[1], args[2], |copy| syscall!(libc::SYS_symlink, args[0], copy))
            }
            libc::SYS_mkdir => make(&mut buffers, here, args[0], |copy| syscall!(libc::SYS_mkdir, copy, args[1])),
            libc::SYS_mkdirat => make(&mut buffers, args[0], args[1], |copy| syscall!(libc::SYS_mkdir, copy, args[2])),
            libc::SYS_mknod => {
                make(&mut buffers, here, args[0], |copy| syscall!(libc::SYS_mknod, copy, args[1], args[2]))
            }
            libc::SYS_mknodat => {
                make(&mut buffers, args[0], args[1], |copy| syscall!(libc::SYS_mknod, copy, args[2], args[3]))
            }
            libc::SYS_truncate => buffers.resolve(here, args[0]).then(|| {
                buffers.follow();
                match buffers.open(libc::O_WRONLY, 0) {
                    Some(fd) if !failed(fd) => {
                        let result = syscall!(libc::SYS_ftruncate, fd, args[1]);
                        syscall!(libc::SYS_close, fd);
                        descriptors::forget(fd as usize);
                        result
                    }
                    other => other.unwrap_or(0),
                }
            }),
            _ => about(&mut buffers, call),
        }
    }
}

/// Opens a pipe with a name. That may wait for its other end: the tables are free meanwhile.
#[inline(never)]
unsafe fn open_pipe(call: &mut Call, buffers: Lock<'_, Buffers>, flags: c_int) -> isize {
    let mut name = Text::new();
    name.set(&[buffers.copy.get()]);
    drop(buffers);
    (call.number, call.args) =
        (libc::SYS_openat, [AT_FDCWD as usize, name.address() as usize, flags as usize, 0, 0, 0]);
    // SAFETY: a path that ends with a zero byte.
    let result = unsafe { call.pass_open() };
    descriptors::note(result);
    result
}

/// Whether a call is about what a link leads to, and not about the link.
fn follows(call: &Call) -> bool {
    let flags = match call.number {
        libc::SYS_lstat
        | libc::SYS_readlink
        | libc::SYS_readlinkat
        | libc::SYS_lchown
        | libc::SYS_lgetxattr
        | libc::SYS_llistxattr
        | libc::SYS_lsetxattr
        | libc::SYS_lremovexattr => libc::AT_SYMLINK_NOFOLLOW as usize,
        libc::SYS_fchownat => call.args[4],
        libc::SYS_newfstatat | libc::SYS_faccessat2 | libc::SYS_fchmodat2 | libc::SYS_utimensat => call.args[3],
        libc::SYS_statx => call.args[2],
        _ => 0,
    };
    flags & libc::AT_SYMLINK_NOFOLLOW as usize == 0
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
        if follows(call) {
            buffers.follow();
        }
        let place = match buffers.seen() {
            Seen::Copy => &buffers.copy,
            Seen::Nothing => return Some(error(ENOENT)),
            Seen::Original if does == Set => {
                return Some(if plain::kind(&buffers.path).is_some() { 0 } else { error(ENOENT) });
            }
            Seen::Original if buffers.followed => &buffers.path,
            Seen::Original => return None,
        };
        call.args[0] = AT_FDCWD as usize;
        call.args[at] = place.address() as usize;
        Some(call.pass())
    }
}

/// Makes something under the name of the path's copy.
unsafe fn make(
    buffers: &mut Buffers,
    dirfd: usize,
    path: usize,
    make: impl FnOnce(*const u8) -> isize,
) -> Option<isize> {
    // SAFETY: the caller's.
    let ours = unsafe { buffers.resolve(dirfd, path) };
    ours.then(|| {
        if buffers.shown().is_some() {
            return error(EEXIST);
        }
        buffers.make_room();
        make(buffers.copy.address())
    })
}

/// A second name for a file: for its copy, since the target's name is one. A file without a name lies in the scratch folder.
unsafe fn link(buffers: &mut Buffers, [from_dir, from, to_dir, to, flags]: [usize; 5]) -> Option<isize> {
    // SAFETY: the caller's; paths end with a zero byte.
    unsafe {
        let named = buffers.resolve(from_dir, from);
        if named {
            if flags & libc::AT_SYMLINK_FOLLOW as usize != 0 {
                buffers.follow();
            }
            if buffers.shown() == Some(libc::S_IFDIR) {
                return Some(error(libc::EPERM));
            }
            let secured = buffers.secure();
            if failed(secured) {
                return Some(secured);
            }
            let Buffers { copy, other, .. } = &mut *buffers;
            other.set(&[copy.get()]);
        }
        if !buffers.resolve(to_dir, to) {
            return named.then_some(error(libc::EXDEV));
        }
        if buffers.shown().is_some() {
            return Some(error(EEXIST));
        }
        buffers.make_room();
        let (other, copy) = (buffers.other.address(), buffers.copy.address());
        let (dir, name, flags) = if named { (AT_FDCWD as usize, other as usize, 0) } else { (from_dir, from, flags) };
        Some(syscall!(libc::SYS_linkat, dir, name, AT_FDCWD, copy, flags))
    }
}

/// A folder of the base run keeps its name: files in it have their copies elsewhere.
unsafe fn rename(buffers: &mut Buffers, [from_dir, from, to_dir, to, flags]: [usize; 5]) -> Option<isize> {
    let exchanges = flags == libc::RENAME_EXCHANGE as usize;
    // SAFETY: the caller's; paths end with a zero byte.
    unsafe {
        if !buffers.resolve(from_dir, from) {
            return None;
        }
        // A copy of the source is needed, since the target is one.
        let secured = buffers.secure();
        let folder = buffers.shown() == Some(libc::S_IFDIR);
        if failed(secured) {
            return Some(secured);
        }
        if !buffers.resolve(to_dir, to) {
            return Some(error(libc::EXDEV));
        }
        let refused = match buffers.shown() {
            _ if !exchanges && flags & !libc::RENAME_NOREPLACE as usize != 0 => error(libc::EINVAL),
            None if exchanges => error(ENOENT),
            Some(_) if exchanges => buffers.secure(),
            Some(_) if flags != 0 => error(EEXIST),
            Some(libc::S_IFDIR) if !folder => error(libc::EISDIR),
            Some(libc::S_IFDIR) if buffers.seen() == Seen::Original => buffers.hide(true),
            Some(kind) if folder && kind != libc::S_IFDIR => error(libc::ENOTDIR),
            _ => 0,
        };
        if failed(refused) || !buffers.resolve(from_dir, from) {
            return Some(refused);
        }
        let Buffers { copy, other, .. } = &mut *buffers;
        other.set(&[copy.get()]);
        if !exchanges {
            buffers.mark(folder);
        }
        buffers.resolve(to_dir, to);
        buffers.make_room();
        let (source, target) = (buffers.other.address(), buffers.copy.address());
        let flags = if exchanges { libc::RENAME_EXCHANGE } else { 0 };
        Some(syscall!(libc::SYS_renameat2, AT_FDCWD, source, AT_FDCWD, target, flags))
    }
}
