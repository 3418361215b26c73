//! Keeps what a replayed program writes apart from the originals: files that it opens for writing are copied to a scratch
//! folder first and opened there, files it removes or renames are only marked. The trap handler does this: buffers of its
//! own, raw system calls. What `stat` tells of such a file is the original's.
use crate::descriptors;
use crate::own::Guarded;
use crate::sys::{self, error, failed, syscall};
use crate::text::{MOST, Text, name};
use crate::trap::Call;
use libc::{AT_FDCWD, EEXIST, ENAMETOOLONG, ENOENT, c_int};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

struct Buffers {
    scratch: Text,
    folder: Text,
    path: Text,
    copy: Text,
    gone: Text,
    other: Text,
}

static ON: AtomicBool = AtomicBool::new(false);
static BUFFERS: Guarded<Buffers> = Guarded::new(Buffers {
    scratch: Text::new(),
    folder: Text::new(),
    path: Text::new(),
    copy: Text::new(),
    gone: Text::new(),
    other: Text::new(),
});

/// The program is gone: files are what they are again.
pub(crate) fn disable() {
    if !ON.swap(false, Relaxed) {
        return;
    }
    let mut scratch = Vec::with_capacity(MOST);
    scratch.extend_from_slice(BUFFERS.lock().scratch.get());
    for entry in std::fs::read_dir(OsStr::from_bytes(&scratch)).into_iter().flatten().flatten() {
        // What cannot be removed is found again by the next program, as it would be without this folder.
        let _ = std::fs::remove_file(entry.path());
    }
}

/// From now on nothing outside `scratch` is written.
pub(crate) fn enable(scratch: &Path) {
    let mut buffers = BUFFERS.lock();
    let fits = buffers.scratch.set(&[scratch.as_os_str().as_bytes()]);
    ON.store(fits, Relaxed);
}

impl Buffers {
    /// Makes `path` the absolute form of a path of the program, `copy` and `gone` what stands for it. False if it is not
    /// one to be kept apart: devices, /proc, /sys, the scratch folder itself.
    unsafe fn resolve(&mut self, dirfd: usize, path: usize) -> bool {
        // SAFETY: the program's pointer to a text that ends with a zero byte, as the kernel would read it.
        let given = unsafe {
            let mut len = 0;
            while len < MOST && *(path as *const u8).wrapping_add(len) != 0 {
                len += 1;
            }
            std::slice::from_raw_parts(path as *const u8, len)
        };
        self.path.len = 0;
        if given.first() != Some(&b'/') {
            let buffer = self.folder.bytes.as_mut_ptr();
            // SAFETY: fills the buffer, which is as long as said.
            let len = unsafe {
                if dirfd as c_int == AT_FDCWD {
                    syscall!(libc::SYS_getcwd, buffer, MOST) - 1
                } else {
                    let mut link = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
                    let mut rest = dirfd as u32;
                    let digits = rest.checked_ilog10().map_or(1, |d| d as usize + 1).min(10);
                    for at in (14..14 + digits).rev() {
                        link[at] = b'0' + (rest % 10) as u8;
                        rest /= 10;
                    }
                    syscall!(libc::SYS_readlink, link.as_ptr(), buffer, MOST)
                }
            };
            if len <= 0 {
                return false;
            }
            self.folder.len = len as usize;
            if !self.path.walk(self.folder.get()) {
                return false;
            }
        }
        if !self.path.walk(given) {
            return false;
        }
        let special: [&[u8]; 3] = [b"/dev/", b"/proc/", b"/sys/"];
        let path = self.path.get();
        if special.iter().any(|s| path.starts_with(s)) || path.starts_with(self.scratch.get()) {
            return false;
        }
        let name = name(path);
        self.copy.set(&[self.scratch.get(), b"/", &name]) && self.gone.set(&[self.scratch.get(), b"/", &name, b".gone"])
    }

    unsafe fn open(&mut self, flags: c_int, mode: usize) -> Option<isize> {
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY || flags & (libc::O_CREAT | libc::O_TRUNC) != 0;
        let open = |path: &Text, flags: c_int| {
            // SAFETY: a path that ends with a zero byte.
            let result = unsafe { syscall!(libc::SYS_openat, AT_FDCWD, path.address(), flags, mode) };
            descriptors::note(result);
            Some(result)
        };
        if flags & libc::O_TMPFILE == libc::O_TMPFILE {
            return open(&self.scratch, flags);
        }
        if flags & (libc::O_DIRECTORY | libc::O_PATH) != 0 {
            return None;
        }
        let (has_copy, gone) = (exists(&self.copy), exists(&self.gone));
        if has_copy {
            return open(&self.copy, flags);
        }
        if !writes {
            return gone.then_some(error(ENOENT));
        }
        let kind = if gone { None } else { kind(&self.path) };
        match kind {
            None if flags & libc::O_CREAT == 0 => Some(error(ENOENT)),
            None => {
                remove(&self.gone);
                open(&self.copy, flags)
            }
            Some(libc::S_IFREG) if flags & (libc::O_CREAT | libc::O_EXCL) == libc::O_CREAT | libc::O_EXCL => {
                Some(error(EEXIST))
            }
            Some(libc::S_IFREG) => {
                if flags & libc::O_TRUNC == 0 {
                    let result = duplicate(&self.path, &self.copy, &mut self.other, usize::MAX);
                    if failed(result) {
                        return Some(result);
                    }
                }
                open(&self.copy, flags | libc::O_CREAT)
            }
            Some(_) => None,
        }
    }

    /// Marks the path as removed.
    fn hide(&mut self) -> isize {
        let had = exists(&self.copy) || (!exists(&self.gone) && kind(&self.path).is_some());
        remove(&self.copy);
        create(&self.gone);
        if had { 0 } else { error(ENOENT) }
    }
}

fn exists(path: &Text) -> bool {
    // SAFETY: a path that ends with a zero byte.
    !failed(unsafe { syscall!(libc::SYS_faccessat, AT_FDCWD, path.address(), libc::F_OK) })
}

fn remove(path: &Text) {
    // SAFETY: a path that ends with a zero byte, in the scratch folder.
    unsafe { syscall!(libc::SYS_unlinkat, AT_FDCWD, path.address(), 0) };
}

fn create(path: &Text) {
    // SAFETY: a path that ends with a zero byte, in the scratch folder.
    unsafe {
        let file = syscall!(libc::SYS_openat, AT_FDCWD, path.address(), libc::O_CREAT | libc::O_WRONLY, 0o600);
        syscall!(libc::SYS_close, file);
    }
}

/// The type of the file behind a path.
fn kind(path: &Text) -> Option<libc::mode_t> {
    // SAFETY: a path that ends with a zero byte, and a structure to fill.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        let result = syscall!(libc::SYS_newfstatat, AT_FDCWD, path.address(), &raw mut stat, 0);
        (!failed(result)).then_some(stat.st_mode & libc::S_IFMT)
    }
}

/// Copies up to `most` bytes. The copy appears whole or not at all; if another process was first, its copy stays.
fn duplicate(from: &Text, to: &Text, draft: &mut Text, most: usize) -> isize {
    let mut number = *b".0000000000";
    let mut rest = sys::gettid();
    for digit in number[1..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    if !draft.set(&[to.get(), &number]) {
        return error(ENAMETOOLONG);
    }
    // SAFETY: paths that end with a zero byte, and descriptors that are made here.
    unsafe {
        let source = syscall!(libc::SYS_openat, AT_FDCWD, from.address(), libc::O_RDONLY | libc::O_CLOEXEC, 0);
        if failed(source) {
            return source;
        }
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC;
        let target = syscall!(libc::SYS_openat, AT_FDCWD, draft.address(), flags, 0o600);
        if failed(target) {
            syscall!(libc::SYS_close, source);
            return target;
        }
        let mut stat: libc::stat = std::mem::zeroed();
        if !failed(syscall!(libc::SYS_fstat, source, &raw mut stat)) {
            syscall!(libc::SYS_fchmod, target, stat.st_mode & 0o777 | 0o600);
        }
        let mut left = most;
        let result = loop {
            let count = syscall!(libc::SYS_sendfile, target, source, 0, left.min(1 << 30));
            if count <= 0 {
                break count;
            }
            left = left.saturating_sub(count as usize);
            if left == 0 {
                break 0;
            }
        };
        syscall!(libc::SYS_close, source);
        syscall!(libc::SYS_close, target);
        let linked = if failed(result) {
            result
        } else {
            syscall!(libc::SYS_linkat, AT_FDCWD, draft.address(), AT_FDCWD, to.address(), 0)
        };
        remove(draft);
        if linked == error(EEXIST) { 0 } else { linked }
    }
}

/// Carries out a call that names a file, if a program is replayed and the file must be kept apart.
pub(crate) unsafe fn trapped(call: &mut Call) -> Option<isize> {
    if !ON.load(Relaxed) {
        return None;
    }
    let args = call.args;
    let here = AT_FDCWD as usize;
    // SAFETY: throughout: the arguments as the program gave them.
    unsafe {
        let mut buffers = BUFFERS.lock_blocked();
        match call.number {
            libc::SYS_open | libc::SYS_openat | libc::SYS_creat | libc::SYS_openat2 => {
                let (folder, path, flags, mode) = match call.number {
                    libc::SYS_open => (here, args[0], args[1] as c_int, args[2]),
                    libc::SYS_creat => (here, args[0], libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, args[1]),
                    libc::SYS_openat => (args[0], args[1], args[2] as c_int, args[3]),
                    _ => {
                        let how = args[2] as *const [u64; 2];
                        let [flags, mode] = if args[3] >= 16 { how.read_unaligned() } else { return None };
                        (args[0], args[1], flags as c_int, mode as usize)
                    }
                };
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
            _ => None,
        }
    }
}

/// Folders are neither made nor removed: files in them have their copies elsewhere.
unsafe fn folder(buffers: &mut Buffers, dirfd: usize, path: usize, make: bool) -> Option<isize> {
    // SAFETY: the caller's.
    let ours = unsafe { buffers.resolve(dirfd, path) };
    ours.then(|| if make && kind(&buffers.path).is_some() { error(EEXIST) } else { 0 })
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
        let source = name(buffers.path.get());
        create(&buffers.gone);
        if !buffers.resolve(to_dir, to) {
            return Some(error(libc::EXDEV));
        }
        remove(&buffers.gone);
        let Buffers { scratch, other, copy, .. } = buffers;
        if !other.set(&[scratch.get(), b"/", &source]) {
            return Some(error(ENAMETOOLONG));
        }
        Some(syscall!(libc::SYS_renameat2, AT_FDCWD, other.address(), AT_FDCWD, copy.address(), 0))
    }
}

fn copy_path(path: &Path, scratch: &Path) -> PathBuf {
    let name = name(path.as_os_str().as_bytes());
    scratch.join(OsStr::from_bytes(&name))
}

/// A copy of the first `size` bytes of a file, in the scratch folder; zeros stand for what is missing.
pub(crate) fn copy(path: &Path, size: u64, scratch: &Path) -> io::Result<PathBuf> {
    let to = copy_path(path, scratch);
    if to.exists() {
        return Ok(to);
    }
    let text = |path: &Path| {
        let mut text = Box::new(Text::new());
        let fits = text.set(&[CString::new(path.as_os_str().as_bytes())?.as_bytes()]);
        if fits { Ok(text) } else { Err(io::Error::from_raw_os_error(ENAMETOOLONG)) }
    };
    let (source, target) = (text(path)?, text(&to)?);
    let most = usize::try_from(size).unwrap_or(usize::MAX);
    if most > 0 && exists(&source) {
        let result = duplicate(&source, &target, &mut Text::new(), most);
        if failed(result) {
            return Err(io::Error::from_raw_os_error(-result as i32));
        }
    }
    let file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(&to)?;
    if file.metadata()?.len() < size {
        file.set_len(size)?;
    }
    Ok(to)
}

/// Where a file is read: its copy if there is one.
pub(crate) fn find(path: &Path, scratch: &Path) -> PathBuf {
    let copy = copy_path(path, scratch);
    if copy.exists() { copy } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_size_it_had_and_stays_if_it_exists() {
        let scratch = std::env::temp_dir().join(format!("phasecast-overlay-{}", std::process::id()));
        std::fs::create_dir(&scratch).unwrap();
        let original = scratch.join("original");
        std::fs::write(&original, b"0123456789").unwrap();
        let first = copy(&original, 4, &scratch).unwrap();
        assert_eq!(std::fs::read(&first).unwrap(), b"0123");
        std::fs::write(&first, b"new").unwrap();
        assert_eq!(std::fs::read(copy(&original, 3, &scratch).unwrap()).unwrap(), b"new");
        let missing = copy(&scratch.join("missing"), 3, &scratch).unwrap();
        assert_eq!(std::fs::read(&missing).unwrap(), [0; 3]);
        assert_eq!(find(&original, &scratch), first);
        std::fs::remove_dir_all(&scratch).unwrap();
    }
}
