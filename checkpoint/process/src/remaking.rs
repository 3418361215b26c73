//! Makes the channels of an image again, with what waits in them.
use crate::Error;
use crate::channels::{Channel, Ends, paired};
use crate::files::{INHERITED, OpenFile, What};
use libc::c_int;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Channels that are being made again: ends whose numbers are yet to come, by the descriptor of the other end.
#[derive(Default)]
pub(crate) struct Remaking {
    ends: BTreeMap<RawFd, OwnedFd>,
}

impl Remaking {
    /// Makes a channel, or takes the end that is left of one; `flags` are those of the descriptor.
    pub(crate) fn make(&mut self, fd: RawFd, flags: c_int, channel: &Channel) -> io::Result<OwnedFd> {
        let end = match channel {
            Channel::End { other, waiting, of } => {
                let (end, written) = match other {
                    Some(other) => (self.left(*other)?, *other),
                    None => {
                        let (own, other) = pair(*of, flags & libc::O_ACCMODE == libc::O_RDONLY)?;
                        (own, self.keep(fd, &other)?)
                    }
                };
                put(written, waiting)?;
                end
            }
            Channel::Counter { count, semaphore } => {
                let kind = if *semaphore { libc::EFD_SEMAPHORE } else { 0 };
                // SAFETY: makes a descriptor, which is ours.
                let end = made(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | kind) })?;
                if *count > 0 {
                    put(end.as_raw_fd(), &count.to_ne_bytes())?;
                }
                end
            }
            Channel::Timer { clock, time, ticks } => timer(*clock, time, *ticks)?,
            Channel::Signals(set) => {
                let (at, bytes) = (std::ptr::from_ref(set), size_of_val(set));
                // SAFETY: as above, of signals in a word.
                let fd = unsafe { libc::syscall(libc::SYS_signalfd4, -1, at, bytes, libc::SFD_CLOEXEC) };
                made(fd as c_int)?
            }
            // SAFETY: as above.
            Channel::Watcher(_) => made(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?,
        };
        let kept = libc::O_NONBLOCK | libc::O_APPEND;
        // SAFETY: sets flags of what was just made.
        unsafe { libc::fcntl(end.as_raw_fd(), libc::F_SETFL, flags & kept) };
        Ok(end)
    }

    /// Keeps the other end of what `fd` is an end of, where no program's descriptors are.
    fn keep(&mut self, fd: RawFd, end: &OwnedFd) -> io::Result<RawFd> {
        // SAFETY: copies a descriptor.
        let kept = made(unsafe { libc::fcntl(end.as_raw_fd(), libc::F_DUPFD_CLOEXEC, INHERITED) })?;
        let number = kept.as_raw_fd();
        self.ends.insert(fd, kept);
        Ok(number)
    }

    fn left(&mut self, other: RawFd) -> io::Result<OwnedFd> {
        self.ends.remove(&other).ok_or_else(|| io::Error::other("the other end of it is missing"))
    }
}

/// Makes something with two ends; the first is the one for reading, if it is to read.
fn pair(of: Ends, reads: bool) -> io::Result<(OwnedFd, OwnedFd)> {
    match of {
        Ends::Pipe(room) => {
            let (from, to) = io::pipe()?;
            // SAFETY: sets a size.
            let given = unsafe { libc::fcntl(to.as_raw_fd(), libc::F_SETPIPE_SZ, room) };
            if given < room {
                return Err(io::Error::other(format!("a pipe of {room} bytes cannot be had here")));
            }
            let (from, to): (OwnedFd, OwnedFd) = (from.into(), to.into());
            Ok(if reads { (from, to) } else { (to, from) })
        }
        Ends::Sockets(kind) => {
            let mut ends = [0; 2];
            // SAFETY: room for two descriptors, which are ours.
            let result = unsafe { libc::socketpair(libc::AF_UNIX, kind | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()) };
            let ends = [made(if result < 0 { result } else { ends[0] })?, made(ends[1])?];
            paired(ends[0].as_raw_fd(), ends[1].as_raw_fd());
            let [own, other] = ends;
            Ok((own, other))
        }
    }
}

/// Makes a timer that rings when it would have, by what was left, and has rung as often.
fn timer(clock: c_int, time: &[i64; 4], ticks: u64) -> io::Result<OwnedFd> {
    /// Sets how often a timer has rung: `_IOW('T', 0, u64)`.
    const SET_TICKS: libc::c_ulong = 0x4008_5400;
    // SAFETY: makes a descriptor, which is ours.
    let end = made(unsafe { libc::timerfd_create(clock, libc::TFD_CLOEXEC) })?;
    // SAFETY: an `itimerspec` in its fields, and a word.
    let set = unsafe {
        libc::timerfd_settime(end.as_raw_fd(), 0, time.as_ptr().cast(), std::ptr::null_mut()) == 0
            && (ticks == 0 || libc::ioctl(end.as_raw_fd(), SET_TICKS, &raw const ticks) == 0)
    };
    if set { Ok(end) } else { Err(io::Error::last_os_error()) }
}

fn made(fd: c_int) -> io::Result<OwnedFd> {
    // SAFETY: a new descriptor, which is ours.
    if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(unsafe { OwnedFd::from_raw_fd(fd) }) }
}

/// Writes what waits at the other end, for which there must be room.
fn put(fd: RawFd, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    // SAFETY: the descriptor stays open; its flags are as before at the end.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
        let written = ManuallyDrop::new(File::from_raw_fd(fd)).write_all(bytes);
        libc::fcntl(fd, libc::F_SETFL, flags);
        written
    }
}

/// Lets watchers watch what they did, once all descriptors are in their places.
///
/// # Errors
/// If one cannot be watched here.
pub(crate) fn watch(files: &[OpenFile]) -> Result<(), Error> {
    for file in files {
        let What::Channel(Channel::Watcher(list)) = &file.what else { continue };
        for watched in list {
            let mut event = libc::epoll_event { events: watched.events, u64: watched.data };
            // SAFETY: both descriptors are the program's.
            let result = unsafe { libc::epoll_ctl(file.fd, libc::EPOLL_CTL_ADD, watched.fd, &raw mut event) };
            // What a launcher gives may be a file, which none can watch.
            if result < 0 && watched.fd > libc::STDERR_FILENO {
                let path = format!("/proc/self/fd/{}", watched.fd).into();
                return Err(Error::File { fd: file.fd, path, cause: io::Error::last_os_error() });
            }
        }
    }
    Ok(())
}
