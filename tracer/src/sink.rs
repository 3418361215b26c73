//! The file of a rank while the program runs: frames are appended, whole or not at all.
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use phasecast_trace::reader::file_name;
use phasecast_trace::tail::{self, CAPACITY};

/// Space that is kept behind the end of the file, for when the disk is full: a last chunk, however badly it compresses, and
/// the end record go there. It belongs to the file, so that no other rank can take it.
const RESERVE: u64 = CAPACITY as u64 + 16 * 1024;

/// A rank's file, and the folder that it stands in.
pub struct Sink {
    /// The trace's folder.
    pub folder: PathBuf,
    /// The rank.
    pub rank: u32,
    state: Mutex<State>,
}

/// What is guarded: the file, and how far it is good.
pub struct State {
    file: File,
    length: u64,
    /// Nothing more is to be written: the end was, or writing failed for this reason.
    closed: Option<Option<String>>,
}

impl Sink {
    /// Makes the file of a rank.
    ///
    /// # Errors
    /// If there is one already, or it cannot be made.
    pub fn create(folder: &Path, rank: u32) -> io::Result<Sink> {
        let file = OpenOptions::new().read(true).append(true).create_new(true).open(folder.join(file_name(rank)))?;
        let state = Mutex::new(State { file, length: 0, closed: None });
        Ok(Sink { folder: folder.to_owned(), rank, state })
    }

    /// Where the file is.
    pub fn path(&self) -> PathBuf {
        self.folder.join(file_name(self.rank))
    }

    /// The guarded state: while it is held, no thread writes a chunk.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a frame and then calls `done`, both before any other thread writes. If that fails, what was written of it
    /// is cut off, the reason said once, and nothing more written.
    pub fn append(&self, frame: &[u8], done: impl FnOnce()) -> bool {
        let mut state = self.lock();
        match state.append(frame) {
            Ok(true) => {
                done();
                true
            }
            Ok(false) => false,
            Err(error) => {
                self.give_up(&mut state, &error);
                false
            }
        }
    }

    /// Notes that nothing more can be recorded, and says so.
    pub fn give_up(&self, state: &mut State, error: &io::Error) {
        if state.closed.is_none() {
            let reason = format!("cannot write {} ({error})", self.path().display());
            say(&format!("rank {}: {reason}; recording stops here, the program goes on", self.rank));
            state.closed = Some(Some(reason));
        }
    }

    /// Makes and maps the tail of a thread; all of its space is taken, so that a full disk shows now and not as a signal.
    ///
    /// # Errors
    /// If there is no space for it.
    pub fn map_tail(&self, thread: u16) -> io::Result<*mut u8> {
        let path = self.folder.join(tail::file_name(self.rank, thread));
        let path = CString::new(path.as_os_str().as_bytes())?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC;
        // SAFETY: a valid path.
        let fd = unsafe { libc::open(path.as_ptr(), flags, 0o666) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: an open file.
        let error = unsafe { libc::posix_fallocate(fd, 0, tail::LENGTH as i64) };
        let map = if error != 0 {
            Err(io::Error::from_raw_os_error(error))
        } else {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
            // SAFETY: a new mapping of the whole file.
            let map = unsafe { libc::mmap(std::ptr::null_mut(), tail::LENGTH, protection, flags, fd, 0) };
            if map == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(map.cast::<u8>()) }
        };
        // SAFETY: closes what was opened here; a mapping stays.
        unsafe {
            libc::close(fd);
            if map.is_err() {
                libc::unlink(path.as_ptr());
            }
        }
        map
    }
}

impl State {
    /// Appends a frame; false if the file is closed.
    ///
    /// # Errors
    /// If it cannot be written; the file is as it was.
    pub fn append(&mut self, frame: &[u8]) -> io::Result<bool> {
        if self.closed.is_some() {
            return Ok(false);
        }
        self.keep(frame.len() as u64 + RESERVE)?;
        self.write(frame)?;
        Ok(true)
    }

    /// Appends the end record after writing has failed, and before it the chunks that the tails hold if there is room for all:
    /// true if there was. They go where space was kept; what they leave of it is given back.
    ///
    /// # Errors
    /// If not even the end record can be written; the file is as it was.
    pub fn append_end(&mut self, rest: &[Vec<u8>], end: &[u8]) -> io::Result<bool> {
        let all = [&rest.concat(), end].concat();
        let whole = self.keep(all.len() as u64).is_ok();
        self.write(if whole { &all } else { end })?;
        self.file.set_len(self.length)?;
        Ok(whole)
    }

    /// Takes space on the disk behind the end of the file. Where the file system cannot, none is kept.
    ///
    /// # Errors
    /// If the disk or the user's share of it is full; what was kept before stays.
    fn keep(&self, bytes: u64) -> io::Result<()> {
        // SAFETY: an open file; its length and contents stay.
        let done = unsafe {
            libc::fallocate(self.file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, self.length as i64, bytes as i64)
        };
        let error = io::Error::last_os_error();
        let full = matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT));
        if done != 0 && full { Err(error) } else { Ok(()) }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(bytes) {
            // If this fails too, the file ends within a frame, which readers understand.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Lets nothing more be written by threads that are still at it.
    pub fn close(&mut self) {
        self.closed.get_or_insert(None);
    }

    /// Why writing was given up, if it was.
    pub fn failure(&self) -> Option<&str> {
        self.closed.as_ref()?.as_deref()
    }

    /// Whether the last record was written or writing failed.
    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// The file and its good length.
    pub fn file(&self) -> (&File, u64) {
        (&self.file, self.length)
    }
}

/// One line to the user.
pub fn say(what: &str) {
    let _ = io::stderr().write_all(format!("phasecast: {what}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_second_process_does_not_get_the_same_rank() {
        let folder = tempfile::tempdir().expect("a folder");
        let _first = Sink::create(folder.path(), 3).expect("made");
        let error = Sink::create(folder.path(), 3).map(|_| ()).expect_err("it is there");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_full_disk_closes_the_file_where_it_is_good() {
        let folder = tempfile::tempdir().expect("a folder");
        let sink = Sink::create(folder.path(), 0).expect("made");
        assert!(sink.append(b"good", || ()));
        sink.lock().file = OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        assert!(!sink.append(b"bad", || panic!("it is not done")));
        assert!(!sink.append(b"more", || panic!("it is not done")));
        assert!(sink.lock().failure().is_some_and(|reason| reason.contains("No space left")));
        assert_eq!(std::fs::read(sink.path()).expect("readable"), b"good");
    }

    #[test]
    fn a_place_for_the_end_is_kept_until_the_end_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let sink = Sink::create(folder.path(), 0).expect("made");
        let taken =
            || std::fs::metadata(sink.path()).map(|file| (file.len(), file.blocks() * 512)).expect("it is there");
        for frames in 1..4 {
            assert!(sink.append(&[1; 10_000], || ()));
            let (length, space) = taken();
            assert_eq!(length, frames * 10_000);
            assert!(space >= length + RESERVE, "{space}");
        }
        assert!(sink.lock().append_end(&[vec![2; 500]], &[3; 500]).expect("there is room"));
        let (length, space) = taken();
        assert_eq!(length, 31_000);
        assert!(space < length + RESERVE / 2, "{space}");
    }
}
