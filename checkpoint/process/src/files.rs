//! The program's files: what its descriptors stand for, for an image; and the numbers that are kept free for them.
use crate::Error;
use crate::channels::{self, Channel};
use crate::descriptors::{OWN, RESERVED, program};
pub use crate::reopen::{clear, restore, stand_in};
pub use crate::same::{Number, number};
use crate::same::{Stream, is_terminal, metadata, same};
use crate::written::{self, Content, MadeAfter, Written};
use crate::{named, overlay, working_folder};
use libc::c_int;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Files without a name are saved whole up to this size, in bytes.
const LARGEST_UNNAMED: u64 = 256 << 20;
/// What a pipe holds, in bytes.
const PIPE: usize = 64 << 10;

/// Where the kernel tells a process about itself.
const SELF: &str = "/proc/self";

/// Copies of the launcher's standard descriptors.
pub(crate) static STANDARD: [AtomicI32; 3] = [const { AtomicI32::new(-1) }; 3];

/// What a descriptor stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// What the launcher gave as standard input (0), output (1) or error (2).
    Standard(i32),
    /// The same open file as another descriptor, which comes earlier.
    Same(i32),
    /// A file with a name.
    Named {
        /// Its absolute path.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
    },
    /// A directory or a device.
    Special(PathBuf),
    /// A file whose name was removed, with its content; or what waited in standard input.
    Unnamed(#[serde(with = "serde_bytes")] Vec<u8>),
    /// A pipe or the like, which the program has to itself.
    Channel(Channel),
}

/// An open descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFile {
    /// Its number.
    pub fd: i32,
    /// The flags of `open`, as the kernel shows them.
    pub flags: i32,
    /// Where the next byte is read or written.
    pub offset: i64,
    /// Device and number of what it stands for.
    pub number: Number,
    /// What it stands for.
    pub what: What,
}

impl OpenFile {
    /// Whether it can be read.
    pub(crate) fn reads(&self) -> bool {
        self.flags & libc::O_ACCMODE != libc::O_WRONLY
    }

    /// Whether it can be written.
    pub(crate) fn writes(&self) -> bool {
        named::writes(self.flags)
    }

    /// The path of a file with a name.
    fn named(&self) -> Option<&Path> {
        if let What::Named { path, .. } = &self.what { Some(path) } else { None }
    }
}

/// What an image must hold of a program's files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// The program's own file.
    pub program: PathBuf,
    /// Its working folder.
    pub folder: PathBuf,
    /// The one in which it was started.
    pub started: PathBuf,
    /// Its mask of permissions.
    pub umask: u32,
    /// Its descriptors, ascending.
    pub files: Vec<OpenFile>,
    /// What it has written so far.
    pub written: Vec<Written>,
}

impl FileState {
    /// The files that a restart reads and the image does not hold: they must be there.
    pub fn needed(&self) -> Vec<&Path> {
        let held = |path: &Path| {
            self.written
                .iter()
                .any(|file| file.path == path && matches!(file.content, Content::File(_) | Content::Same(_)))
        };
        let read = self.files.iter().filter(|file| file.reads()).filter_map(OpenFile::named);
        read.filter(|path| !held(path) && !path.starts_with(SELF)).collect()
    }
}

/// Numbers that a program's own files get first.
const FIRST: std::ops::Range<c_int> = 3..64;
/// Descriptors that the launcher left open go beyond this number.
pub(crate) const INHERITED: c_int = 600;

/// Makes the low numbers free for programs, whatever launcher is used, and keeps the standard descriptors, for restarts
/// that the program had closed or replaced them in. Where a script has started the program, those of the launcher are
/// [set aside](set_aside) before the script begins, and the files that the script has opened are the program's. A pipe of the
/// script, as a shell leaves one open for `2> >(filter)`, is not: no cut could be saved.
pub(crate) fn prepare(by_script: bool) {
    written::prepare();
    let (files, others): (Vec<_>, Vec<_>) = inherited().partition(|&(fd, _)| by_script && has_path(fd));
    files.iter().for_each(|&(fd, _)| OWN.add(fd as usize));
    move_up(others);
    reserve(FIRST);
    for (fd, keep) in STANDARD.iter().enumerate() {
        // SAFETY: makes new descriptors only.
        let copy = [900, 3]
            .iter()
            .map(|least| unsafe { libc::fcntl(fd as c_int, libc::F_DUPFD_CLOEXEC, *least) })
            .find(|c| *c >= 0);
        keep.store(copy.unwrap_or(-1), Relaxed);
        OWN.add(fd);
    }
}

/// Launchers leave pipes and sockets open, with numbers that differ between them: an image's files could not have theirs
/// back. Those that are named in the environment (`PMI_FD`) are renamed there.
///
/// To be called while there is one thread.
pub fn set_aside() {
    move_up(inherited());
}

fn move_up(descriptors: impl IntoIterator<Item = (c_int, c_int)>) {
    for (fd, flags) in descriptors {
        // SAFETY: copies a descriptor, and closes the old number.
        let new = unsafe {
            let copy = if flags & libc::FD_CLOEXEC == 0 { libc::F_DUPFD } else { libc::F_DUPFD_CLOEXEC };
            let new = libc::fcntl(fd, copy, INHERITED);
            if new >= 0 {
                libc::close(fd);
            }
            new
        };
        let value = fd.to_string();
        let names = std::env::vars().filter(|(name, v)| name.ends_with("_FD") && *v == value);
        for (name, _) in names.collect::<Vec<_>>().into_iter().filter(|_| new >= 0) {
            // SAFETY: the host, and who sets aside, has no other threads yet.
            unsafe { std::env::set_var(name, new.to_string()) };
        }
    }
}

/// Whether it is of a file: not of a pipe or socket without a name.
fn has_path(fd: c_int) -> bool {
    fs::read_link(format!("/proc/self/fd/{fd}")).is_ok_and(|path| path.is_absolute())
}

/// The descriptors but the standard ones that were open as this process began, with their flags.
fn inherited() -> impl Iterator<Item = (c_int, c_int)> {
    let list = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<c_int> = list.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    // SAFETY: asks for flags; the list's own descriptor is closed by now.
    let flagged = open.into_iter().map(|fd| (fd, unsafe { libc::fcntl(fd, libc::F_GETFD) }));
    flagged.filter(|&(fd, flags)| (3..INHERITED).contains(&fd) && flags >= 0)
}

/// Keeps numbers free of the lower half's files: to be called before MPI is initialised, with the numbers that images
/// need. The first ones are kept from the start.
pub fn reserve(numbers: impl IntoIterator<Item = i32>) {
    let Ok(null) = File::open("/dev/null") else { return };
    for fd in numbers {
        // SAFETY: fills a number that is not open; if it is, it is left.
        unsafe {
            let free = fd > 2 && libc::fcntl(fd, libc::F_GETFD) < 0;
            if fd == null.as_raw_fd() || free && libc::dup3(null.as_raw_fd(), fd, libc::O_CLOEXEC) == fd {
                RESERVED.add(fd as usize);
            }
        }
    }
    if RESERVED.has(null.as_raw_fd() as usize) {
        std::mem::forget(null);
    }
}

/// Frees what is reserved: before a program starts.
pub fn release() {
    for fd in RESERVED.list().filter(|fd| !OWN.has(*fd)) {
        RESERVED.take(fd);
        // SAFETY: opened by `reserve`.
        unsafe { libc::close(fd as c_int) };
    }
}

/// Files that the program has open for writing: path, device and number.
pub fn open_for_writing() -> Vec<(PathBuf, Number)> {
    let writes = |fd: &c_int| {
        // SAFETY: asks for flags.
        let flags = unsafe { libc::fcntl(*fd, libc::F_GETFL) };
        flags >= 0 && named::writes(flags)
    };
    let file = |fd| Some((fs::read_link(format!("/proc/self/fd/{fd}")).ok()?, number(&metadata(fd).ok()?)));
    OWN.list().map(|fd| fd as c_int).filter(writes).filter_map(file).collect()
}

/// The program's files, for the image of a cut. `by_mpi`: those that it has open by MPI and may read.
///
/// # Errors
/// If there is one that cannot be saved: a connection to others.
pub fn save(by_mpi: Vec<PathBuf>, cut: u32) -> Result<FileState, Error> {
    let read = |path: &str| fs::read_to_string(path).map_err(|cause| Error::Read { path: path.into(), cause });
    let status = read("/proc/self/status")?;
    let umask =
        status.lines().find_map(|l| l.strip_prefix("Umask:")).and_then(|v| u32::from_str_radix(v.trim(), 8).ok());
    let mut files: Vec<OpenFile> = Vec::new();
    let own_proc = format!("/proc/{}", std::process::id());
    let standard = STANDARD.each_ref().map(|fd| fd.load(Relaxed));
    let streams = standard.map(Stream::of);
    for fd in OWN.list() {
        let link = PathBuf::from(format!("/proc/self/fd/{fd}"));
        let Ok(path) = fs::read_link(&link) else { continue };
        let path = path.strip_prefix(&own_proc).map_or(path.clone(), |about| Path::new(SELF).join(about));
        let Ok(info) = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")) else { continue };
        let field = |name: &str| info.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
        let offset = field("pos:").and_then(|v| v.parse().ok()).unwrap_or(0);
        let flags = field("flags:").and_then(|v| i32::from_str_radix(v, 8).ok()).unwrap_or(0);
        let fd = fd as i32;
        let data = metadata(fd).map_err(|cause| Error::Read { path: path.clone(), cause })?;
        let standard = standard.iter().position(|one| same(*one, fd)).or_else(|| {
            let other = Stream::of(fd)?;
            streams.iter().position(|one| one.as_ref().is_some_and(|one| one.serves(&other)))
        });
        let input = files.iter().find(|f| standard == Some(0) && matches!(f.what, What::Unnamed(_)) && same(f.fd, fd));
        let what = if let Some(input) = input {
            What::Same(input.fd)
        } else if let Some(waiting) = (standard == Some(0)).then(|| waiting(fd)).flatten() {
            What::Unnamed(waiting)
        } else if let Some(i) = standard {
            What::Standard(i as i32)
        } else if let Some(other) = files.iter().find(|f| same(f.fd, fd)) {
            What::Same(other.fd)
        } else {
            match channels::find(fd, flags, (&path, &info), number(&data), &files, OWN.list().map(|fd| fd as i32)) {
                Some(channel) => What::Channel(channel),
                None => describe(fd, &link, path, &data)?,
            }
        };
        files.push(OpenFile { fd, flags, offset, number: number(&data), what });
    }
    let mut read = by_mpi;
    read.extend(files.iter().filter(|file| file.reads()).filter_map(OpenFile::named).map(Path::to_owned));
    let program = program() as *const libc::c_char;
    let program = if program.is_null() {
        PathBuf::new()
    } else {
        // SAFETY: set by `set_program`, never freed.
        PathBuf::from(std::ffi::OsStr::from_bytes(unsafe { std::ffi::CStr::from_ptr(program) }.to_bytes()))
    };
    let folder = std::env::current_dir().map_err(|cause| Error::Read { path: ".".into(), cause })?;
    overlay::saved(cut);
    let started = working_folder::started().to_owned();
    Ok(FileState { program, folder, started, umask: umask.unwrap_or(0o22), files, written: written::save(&read) })
}

impl FileState {
    /// Takes what is here and was made after the cut for gone: the program had not made it yet.
    pub fn before(&mut self, made: &[MadeAfter], cut: u32) {
        let later = made.iter().filter(|made| made.cut >= cut && made.path.symlink_metadata().is_ok());
        self.written.extend(later.map(|made| Written { path: made.path.clone(), content: Content::Gone }));
    }
}

/// What a launcher has passed on through a pipe and nobody has read yet; it stays there. None if it is not a pipe, or may be
/// only the beginning: a pipe is filled again as it is read.
fn waiting(fd: i32) -> Option<Vec<u8>> {
    let is_pipe = metadata(fd).is_ok_and(|data| data.file_type().is_fifo());
    is_pipe.then(|| channels::look(fd)).flatten().filter(|waiting| waiting.len() < PIPE)
}

fn describe(fd: i32, link: &Path, path: PathBuf, data: &Metadata) -> Result<What, Error> {
    let kind = data.file_type();
    if kind.is_file() && data.nlink() == 0 {
        if data.len() > LARGEST_UNNAMED {
            return Err(Error::Obstacle(format!(
                "descriptor {fd} is a file without a name that is too large to be copied"
            )));
        }
        return Ok(What::Unnamed(fs::read(link).map_err(|cause| Error::Read { path, cause })?));
    }
    match () {
        () if kind.is_file() => Ok(What::Named { path, size: data.len() }),
        () if kind.is_dir() || kind.is_block_device() || kind.is_char_device() && !is_terminal(data) => {
            Ok(What::Special(path))
        }
        () => Err(Error::Obstacle(format!("descriptor {fd} is {}, which no other machine has", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Read, Write};

    #[test]
    fn what_waits_in_a_pipe_is_seen_and_stays_there() {
        let (mut from, mut to) = io::pipe().expect("a pipe");
        assert_eq!(waiting(from.as_raw_fd()), Some(Vec::new()));
        to.write_all(b"one\ntwo\n").expect("there is room");
        let mut line = [0; 4];
        from.read_exact(&mut line).expect("there is a line");
        assert_eq!((&line, waiting(from.as_raw_fd())), (b"one\n", Some(b"two\n".to_vec())));
        from.read_exact(&mut line).expect("it is still there");
        assert_eq!(&line, b"two\n");
        to.write_all(&[0; PIPE]).expect("there is room");
        assert_eq!(waiting(from.as_raw_fd()), None);
        assert_eq!(waiting(File::open("/dev/null").expect("a device").as_raw_fd()), None);
    }

    #[test]
    fn what_is_read_and_not_in_the_image_is_needed() {
        let open = |fd, flags, what| OpenFile { fd, flags, offset: 0, number: (0, 0), what };
        let named = |path: &str| What::Named { path: path.into(), size: 1 };
        let files = vec![
            open(0, libc::O_RDONLY, What::Standard(0)),
            open(3, libc::O_RDONLY, named("/input")),
            open(4, libc::O_RDWR, named("/scratch")),
            open(5, libc::O_RDWR, named("/large")),
            open(6, libc::O_WRONLY, named("/log")),
            open(7, libc::O_RDONLY, What::Special("/dev/urandom".into())),
            open(8, libc::O_RDONLY, named("/proc/self/statm")),
        ];
        let written = |path: &str, content| Written { path: path.into(), content };
        let written = vec![written("/scratch", Content::File(vec![1])), written("/large", Content::Gone)];
        let state = FileState { files, written, ..FileState::default() };
        assert_eq!(state.needed(), [Path::new("/input"), Path::new("/large")]);
    }
}
