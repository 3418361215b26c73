//! An image's files brought back under their old numbers, and closed again.
use crate::descriptors::{OWN, RESERVED, set_program};
use crate::files::{FileState, OpenFile, STANDARD, What};
use crate::remaking::{self, Remaking};
use crate::same::{Number, metadata, number};
use crate::{Error, apart, numbers, overlay, working_folder, written};
use libc::{EBUSY, c_int};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

/// Brings back the files of an image under their old numbers. What the run had written is put into the folder `scratch`
/// first; other files that are open for writing are copied there as far as they went, and so is whatever the program opens
/// for writing later: nothing outside it is changed. The folder is that of all ranks of a launch; [`clear`] empties it.
///
/// # Errors
/// If a file is missing or its number is taken: see [`reserve`](crate::files::reserve).
pub fn restore(state: &FileState, scratch: &Path) -> Result<(), Error> {
    overlay::enable(scratch);
    set_program(&state.program);
    working_folder::restore(&state.folder, &state.started);
    // SAFETY: sets a number.
    unsafe { libc::umask(state.umask) };
    written::restore(&state.written).map_err(|(path, cause)| Error::Copy { path, cause })?;
    let mut have: Vec<i32> = Vec::new();
    let mut remaking = Remaking::default();
    for file in &state.files {
        let path = match &file.what {
            What::Named { path, .. } | What::Special(path) => path.clone(),
            _ => PathBuf::from(format!("/proc/self/fd/{}", file.fd)),
        };
        let wrap = |cause| Error::File { fd: file.fd, path: path.clone(), cause };
        let taken = !OWN.has(file.fd as usize) && !RESERVED.has(file.fd as usize);
        // SAFETY: asks for flags.
        if file.fd < 0 || taken && unsafe { libc::fcntl(file.fd, libc::F_GETFD) } >= 0 {
            return Err(wrap(io::Error::from_raw_os_error(EBUSY)));
        }
        reopen(file, scratch, &mut remaking).map_err(wrap)?;
        OWN.add(file.fd as usize);
        have.push(file.fd);
    }
    drop(remaking);
    remaking::watch(&state.files)?;
    for fd in (0..3).filter(|fd| !have.contains(fd)) {
        // The program had closed it; the lower half must not get the number.
        OWN.take(fd as usize);
        if let Ok(null) = File::open("/dev/null") {
            // SAFETY: replaces a standard descriptor, of which a copy is kept.
            unsafe { libc::dup2(null.as_raw_fd(), fd) };
        }
    }
    Ok(())
}

/// Lets a file stand for one without a name, of this old number, under the numbers of descriptors that the program had of it. It
/// gets what the other held.
///
/// # Errors
/// If it cannot be written or opened.
pub fn stand_in(state: &FileState, old: Number, with: &File) -> io::Result<()> {
    for file in state.files.iter().filter(|file| file.number == old) {
        match &file.what {
            What::Unnamed(content) => {
                with.write_all_at(content, 0)?;
                open_at(file, Path::new(&format!("/proc/self/fd/{}", with.as_raw_fd())))?;
            }
            What::Same(other) => place(file, *other)?,
            _ => {}
        }
    }
    Ok(())
}

/// Puts what is open under a number also under that of a file.
fn place(file: &OpenFile, from: i32) -> io::Result<()> {
    let cloexec = file.flags & libc::O_CLOEXEC;
    // SAFETY: the number is the program's or reserved for it.
    let placed = unsafe { if from == file.fd { from } else { libc::dup3(from, file.fd, cloexec) } };
    check(placed.into()).map(|_| ())
}

fn check(result: i64) -> io::Result<i64> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn reopen(file: &OpenFile, scratch: &Path, remaking: &mut Remaking) -> io::Result<()> {
    let path = match &file.what {
        What::Standard(i) => {
            let keep = STANDARD.get(*i as usize).map_or(-1, |s| s.load(Relaxed));
            place(file, keep)?;
            if *i == 0 {
                // SAFETY: moves in what is open; where that cannot be, it has no place.
                unsafe { libc::lseek(file.fd, file.offset, libc::SEEK_SET) };
            }
            return Ok(());
        }
        What::Same(other) => return place(file, *other),
        What::Channel(channel) => {
            let made = remaking.make(file.fd, file.flags, channel)?;
            place(file, made.as_raw_fd())?;
            if made.as_raw_fd() == file.fd {
                // SAFETY: sets a flag of what has its place now.
                unsafe { libc::fcntl(made.into_raw_fd(), libc::F_SETFD, i32::from(closes(file)) * libc::FD_CLOEXEC) };
            }
            return Ok(());
        }
        // A folder that the run has made is where its copies are.
        What::Special(path) => apart::find(path),
        What::Named { path, size } => {
            let read = file.reads().then(|| apart::as_long(path, *size)).transpose()?;
            match read {
                Some(read) if !file.writes() => read,
                _ => apart::copy(path, *size, None)?,
            }
        }
        What::Unnamed(content) => {
            let mut copy = tempfile::NamedTempFile::new_in(scratch)?;
            copy.write_all(content)?;
            copy.keep()?.1
        }
    };
    open_at(file, &path)?;
    if let What::Unnamed(_) = file.what {
        fs::remove_file(&path)?;
    }
    Ok(())
}

/// Whether a file is to be closed at an exec.
fn closes(file: &OpenFile) -> bool {
    file.flags & libc::O_CLOEXEC != 0
}

/// Opens what stands for a file under its number, as it was open, and where it was.
fn open_at(file: &OpenFile, path: &Path) -> io::Result<()> {
    let made = libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC;
    let made = if matches!(file.what, What::Unnamed(_)) { made | libc::O_TMPFILE } else { made };
    let flags = file.flags & !made | libc::O_CLOEXEC;
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: opens a file by a name that ends with a zero byte.
    let opened = check(unsafe { libc::open(name.as_ptr(), flags) }.into())? as i32;
    place(file, opened)?;
    // SAFETY: moves in and closes what was just opened.
    unsafe {
        libc::lseek(file.fd, file.offset, libc::SEEK_SET);
        if opened != file.fd {
            libc::close(opened);
        } else if !closes(file) {
            libc::fcntl(opened, libc::F_SETFD, 0);
        }
    }
    numbers::add(number(&metadata(file.fd)?), file.number);
    Ok(())
}

/// What an exec does: files that are to be closed then are.
pub(crate) fn exec() {
    for fd in OWN.list() {
        // SAFETY: the program's own descriptor.
        unsafe {
            let flags = libc::fcntl(fd as c_int, libc::F_GETFD);
            if flags >= 0 && flags & libc::FD_CLOEXEC != 0 {
                OWN.take(fd);
                libc::close(fd as c_int);
            }
        }
    }
}

/// Closes the program's files; reserved numbers stay reserved, the standard ones are the launcher's again.
pub fn clear() {
    overlay::disable();
    numbers::clear();
    let null = File::open("/dev/null").ok();
    for fd in OWN.list().filter(|fd| *fd > 2) {
        OWN.take(fd);
        // SAFETY: the program's own descriptor, and the program is gone.
        unsafe {
            match &null {
                Some(null) if RESERVED.has(fd) => libc::dup3(null.as_raw_fd(), fd as c_int, libc::O_CLOEXEC),
                _ => libc::close(fd as c_int),
            };
        }
    }
    for (fd, keep) in STANDARD.iter().enumerate() {
        // SAFETY: puts the launcher's descriptor in its place.
        unsafe { libc::dup2(keep.load(Relaxed), fd as c_int) };
        OWN.add(fd);
    }
}
