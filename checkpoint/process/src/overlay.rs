//! Keeps what a replayed program writes apart from the originals: files that it opens for writing are copied to a scratch
//! folder first and opened there, files it removes or renames are only marked, and links and folders that it makes are made
//! there. Copies lie there as the originals do, under the same path, so that a folder of the program's own is what the kernel
//! makes of it. All ranks share the scratch folder, as they do the originals; files on a disk of one machine are that machine's
//! there, too.
//! The trap handler does this: buffers of its own, raw system calls.
use crate::descriptors;
use crate::named::{excludes, writes};
use crate::own::{Guarded, Lock};
use crate::plain::{create, duplicate, duplicate_link, kind, kind_itself, name_draft};
use crate::sys::{error, failed, syscall};
use crate::text::{MOST, Text};
use crate::written::{MadeAfter, Paths};
use libc::{AT_FDCWD, EEXIST, ENAMETOOLONG, ENOENT, EXDEV, c_int};
use std::ffi::{CString, NulError, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// What is in the scratch folder as soon as a program's path may lead elsewhere than it says: [`Buffers::turn_all`].
const TURNED: &[u8] = b"/turned";

pub(crate) struct Buffers {
    pub(crate) scratch: Text,
    pub(crate) folder: Text,
    pub(crate) path: Text,
    pub(crate) copy: Text,
    pub(crate) gone: Text,
    pub(crate) other: Text,
    /// Where this rank was started, if the folder of the base run is missing on this machine, and that folder: the first stands
    /// for the other, whose paths are those that the base run knew.
    pub(crate) here: Text,
    pub(crate) home: Text,
    /// The program's working folder, if the process cannot be in it; else nothing.
    pub(crate) at: Text,
    /// Whether `path` is not what the program has named: where a link of its own leads, or what stands for a missing folder.
    pub(crate) followed: bool,
    /// Whether `path` lies within a folder that the program has made or removed: there are no originals.
    pub(crate) within: bool,
    /// What the program has written in this run: before a restart only.
    pub(crate) written: Paths,
    /// What it has opened for reading since it was first saved.
    pub(crate) read: Paths,
}

/// What an open leads to.
pub(crate) enum Opened {
    /// The file of the name that was given.
    Given,
    /// The copy, with these flags.
    Copy(c_int),
    /// Nothing: an error.
    Failed(isize),
}

/// What is to be seen of a path.
#[derive(PartialEq, Eq)]
pub(crate) enum Seen {
    /// Its copy, if there is one: the kernel knows.
    Copy,
    /// The file of that name.
    Original,
    /// Nothing: the program has removed it.
    Nothing,
}

static ON: AtomicBool = AtomicBool::new(false);
/// The last cut at which the program was saved, plus 1.
static SAVED: AtomicU32 = AtomicU32::new(0);
static MACHINE: AtomicU32 = AtomicU32::new(0);
static BUFFERS: Guarded<Buffers> = Guarded::new(Buffers {
    scratch: Text::new(),
    folder: Text::new(),
    path: Text::new(),
    copy: Text::new(),
    gone: Text::new(),
    other: Text::new(),
    here: Text::new(),
    home: Text::new(),
    at: Text::new(),
    followed: false,
    within: false,
    written: Paths::new(),
    read: Paths::new(),
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
        let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let _ = if folder { std::fs::remove_dir_all(entry.path()) } else { std::fs::remove_file(entry.path()) };
    }
}

/// From now on nothing outside `scratch` is written.
pub(crate) fn enable(scratch: &Path) {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    MACHINE.store(machine.bytes().fold(0, |hash: u32, byte| hash.wrapping_mul(31) ^ u32::from(byte)), Relaxed);
    let mut buffers = BUFFERS.lock();
    // Links in /proc have no links in them.
    let scratch = scratch.canonicalize().unwrap_or_else(|_| scratch.to_owned());
    let fits = buffers.scratch.set(&[scratch.as_os_str().as_bytes()]);
    (buffers.here.len, buffers.home.len, buffers.at.len) = (0, 0, 0);
    ON.store(fits, Relaxed);
}

/// The folder `home`, in which the program was started, is missing on this machine: `here` stands for it.
pub(crate) fn stand_for(home: &Path, here: &Path) {
    let mut buffers = BUFFERS.lock();
    let Buffers { here: place, home: of, .. } = &mut *buffers;
    // A path without its last slash: of the root, nothing is left.
    if !(place.walk(here.as_os_str().as_bytes()) && of.walk(home.as_os_str().as_bytes())) {
        (place.len, of.len) = (0, 0);
    }
}

/// The program is in a folder in which the process cannot be.
pub(crate) fn work_in(folder: &Path) {
    BUFFERS.lock().at.set(&[folder.as_os_str().as_bytes()]);
}

/// The tables, for the trap handler.
pub(crate) fn tables() -> Lock<'static, Buffers> {
    BUFFERS.lock_blocked()
}

/// Tells this machine from others.
pub(crate) fn machine() -> u32 {
    MACHINE.load(Relaxed)
}

/// Whether a program is replayed.
pub(crate) fn on() -> bool {
    ON.load(Relaxed)
}

/// What the program has written in this run, oldest first.
pub(crate) fn written() -> Vec<PathBuf> {
    BUFFERS.lock().written.list()
}

/// From now on what the program opens for reading is noted, and what it makes: it is saved.
pub(crate) fn saved(cut: u32) {
    SAVED.store(cut.saturating_add(1), Relaxed);
}

/// The last cut at which the program was saved.
fn last_cut() -> Option<u32> {
    SAVED.load(Relaxed).checked_sub(1)
}

/// What the program has made since it was first saved, oldest first.
pub(crate) fn made() -> Vec<MadeAfter> {
    BUFFERS.lock().written.made()
}

/// What the program has opened for reading since it was first saved, oldest first.
pub(crate) fn read() -> Vec<PathBuf> {
    BUFFERS.lock().read.list()
}

/// A path as a call names it.
fn text(path: &Path) -> Result<CString, NulError> {
    CString::new(path.as_os_str().as_bytes())
}

/// Notes a file that the program has opened by MPI, for the images of this run: whether it may write it, and has
/// [made](lacks) it.
pub fn note(path: &Path, writes: bool, made: bool) {
    if let Ok(name) = text(path) {
        // SAFETY: a text that ends with a zero byte.
        unsafe { BUFFERS.lock().note(AT_FDCWD as usize, name.as_ptr() as usize, writes, made) }
    }
}

/// Whether a program that has been saved would make this file if it now did.
pub fn lacks(path: &Path) -> bool {
    // SAFETY: a text that ends with a zero byte.
    text(path).is_ok_and(|name| unsafe { BUFFERS.lock().lacks(AT_FDCWD as usize, name.as_ptr() as usize) })
}

/// The tables, made to stand for a path; none if no program is replayed or the path is not to be kept apart.
pub(crate) fn of(path: &Path) -> Option<Lock<'static, Buffers>> {
    let name = text(path).ok()?;
    let mut buffers = on().then(|| BUFFERS.lock())?;
    // SAFETY: a text that ends with a zero byte.
    unsafe { buffers.resolve(AT_FDCWD as usize, name.as_ptr() as usize) }.then_some(buffers)
}

impl Buffers {
    /// Notes a file, link or folder that the program may have made or written (or else only reads, after it was saved), if it
    /// is there under the name that its path has without links; not in a program that is replayed, of which no images are made.
    /// `made`: it was not there before.
    pub(crate) unsafe fn note(&mut self, dirfd: usize, path: usize, writes: bool, made: bool) {
        // SAFETY: the caller's.
        if on() || !(writes || last_cut().is_some()) || !unsafe { self.locate(dirfd, path) } {
            return;
        }
        if let Some(libc::S_IFREG | libc::S_IFLNK | libc::S_IFDIR) = kind_itself(&self.path) {
            let Self { path, written, read, .. } = self;
            let noted = if writes { written } else { read };
            noted.add(path.get(), last_cut().filter(|_| made));
        }
    }

    /// Notes what the program has moved with a folder, which had the first name and has the other.
    pub(crate) unsafe fn note_moved(&mut self, [from_dir, from, to_dir, to]: [usize; 4]) {
        // SAFETY: the caller's.
        let known = !on()
            && unsafe { self.locate(from_dir, from) && self.other.set(&[self.path.get()]) && self.locate(to_dir, to) };
        if known && kind_itself(&self.path) == Some(libc::S_IFDIR) {
            let Self { path, other, folder, written, .. } = self;
            written.moved([other.get(), path.get()], last_cut(), folder);
        }
    }

    /// Whether nothing has this path in a program that has been saved and is not replayed.
    pub(crate) unsafe fn lacks(&mut self, dirfd: usize, path: usize) -> bool {
        // SAFETY: the caller's.
        !on() && last_cut().is_some() && unsafe { self.locate(dirfd, path) } && kind_itself(&self.path).is_none()
    }

    /// What is to be seen of the path: the copy, the original, or nothing.
    pub(crate) fn seen(&self) -> Seen {
        let gone = || kind_itself(&self.gone).is_some();
        let copy = if self.within { return Seen::Copy } else { kind_itself(&self.copy) };
        match copy {
            // A folder that is there on its own account, with copies in it.
            Some(libc::S_IFDIR) if kind(&self.path) == Some(libc::S_IFDIR) && !gone() => Seen::Original,
            None if gone() => Seen::Nothing,
            None => Seen::Original,
            Some(_) => Seen::Copy,
        }
    }

    /// The type of what is to be seen of the path, which may be a link; none if nothing is.
    pub(crate) fn shown(&self) -> Option<libc::mode_t> {
        match self.seen() {
            Seen::Copy => kind_itself(&self.copy),
            Seen::Original => kind_itself(&self.path),
            Seen::Nothing => None,
        }
    }

    /// Makes sure that what is to be seen of the path is a copy. An error if what is there cannot be copied, or nothing is that
    /// might be.
    pub(crate) fn secure(&mut self) -> isize {
        match self.seen() {
            Seen::Copy => return 0,
            Seen::Nothing => return error(ENOENT),
            Seen::Original => {}
        }
        let kind = kind_itself(&self.path);
        match kind {
            Some(libc::S_IFDIR) => {}
            Some(libc::S_IFLNK) => {
                self.clear();
                self.turn_all();
            }
            _ => self.clear(),
        }
        self.make_room();
        let Self { path, copy, other, scratch, .. } = self;
        let made = match kind {
            Some(libc::S_IFREG) if name_draft(scratch, other) => duplicate(path, copy, other),
            Some(libc::S_IFREG) => error(ENAMETOOLONG),
            Some(libc::S_IFLNK) => duplicate_link(path, copy, other),
            // SAFETY: a path that ends with a zero byte.
            Some(libc::S_IFIFO) => unsafe {
                syscall!(libc::SYS_mknodat, AT_FDCWD, copy.address(), libc::S_IFIFO | 0o600, 0)
            },
            Some(_) => error(EXDEV),
            None => error(ENOENT),
        };
        if made == error(EEXIST) { 0 } else { made }
    }

    /// What an open of the path leads to. The copy is made if it is needed.
    pub(crate) fn choose(&mut self, flags: c_int) -> Opened {
        let gone = match self.seen() {
            Seen::Copy => return Opened::Copy(flags),
            seen => seen == Seen::Nothing,
        };
        if !writes(flags) {
            return if gone { Opened::Failed(error(ENOENT)) } else { Opened::Given };
        }
        let kind = if gone { None } else { kind(&self.path) };
        match kind {
            None if flags & libc::O_CREAT == 0 => Opened::Failed(error(ENOENT)),
            None => {
                self.make_room();
                Opened::Copy(flags)
            }
            Some(libc::S_IFREG) if excludes(flags) => Opened::Failed(error(EEXIST)),
            Some(libc::S_IFREG) => {
                self.make_room();
                if flags & libc::O_TRUNC == 0 {
                    let fits = name_draft(&self.scratch, &mut self.other);
                    let result = duplicate(&self.path, &self.copy, &self.other);
                    if !fits || failed(result) {
                        return Opened::Failed(if fits { result } else { error(ENAMETOOLONG) });
                    }
                }
                Opened::Copy(flags | libc::O_CREAT)
            }
            Some(_) => Opened::Given,
        }
    }

    /// Opens what the path leads to; none where the program's own call does.
    pub(crate) unsafe fn open(&mut self, flags: c_int, mode: usize) -> Option<isize> {
        // The mode of what the program does not make is anything.
        let made = libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY);
        let mode = if flags & made == 0 { 0o600 } else { mode };
        let open = |path: &Text, flags: c_int| {
            // SAFETY: a path that ends with a zero byte.
            let result = unsafe { syscall!(libc::SYS_openat, AT_FDCWD, path.address(), flags, mode) };
            descriptors::note(result);
            Some(result)
        };
        if flags & libc::O_TMPFILE == libc::O_TMPFILE {
            return open(&self.scratch, flags);
        }
        let chosen = if flags & (libc::O_DIRECTORY | libc::O_PATH) == 0 {
            self.choose(flags)
        } else {
            match self.seen() {
                Seen::Copy => Opened::Copy(flags),
                Seen::Original => Opened::Given,
                Seen::Nothing => Opened::Failed(error(ENOENT)),
            }
        };
        match chosen {
            Opened::Given if self.followed => open(&self.path, flags),
            Opened::Given => None,
            Opened::Copy(flags) => open(&self.copy, flags),
            Opened::Failed(error) => Some(error),
        }
    }

    /// Marks the path as removed: what is to be seen of it is the copy, if there is one.
    pub(crate) fn mark(&mut self, folder: bool) {
        if self.within {
            return;
        }
        if folder {
            self.turn_all();
        }
        create(&self.gone);
    }

    /// From now on the program has a link of its own, or has removed a folder: all ranks look for such above what they name.
    pub(crate) fn turn_all(&mut self) {
        if self.folder.set(&[self.scratch.get(), TURNED]) {
            create(&self.folder);
        }
    }

    /// Whether a rank has a link of its own, or has removed a folder.
    pub(crate) fn is_turned(&mut self) -> bool {
        self.folder.set(&[self.scratch.get(), TURNED]) && kind_itself(&self.folder).is_some()
    }
}
