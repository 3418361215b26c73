//! Channels that a program has to itself: pipes and pairs of sockets of which it holds both ends (or of which the other is
//! closed), counters of events, and what watches descriptors. Interpreters and event loops wake themselves up by these.
use crate::Error;
use crate::files::{INHERITED, OpenFile, What};
use crate::own::Guarded;
use crate::same::Number;
use crate::sys::{failed, syscall};
use libc::{c_int, c_short};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

/// What a channel is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Channel {
    /// An end of a pipe.
    Pipe {
        /// The descriptor of the other end, if that comes earlier.
        other: Option<i32>,
        /// What is to be read, at the end for reading.
        #[serde(with = "serde_bytes")]
        waiting: Vec<u8>,
        /// How much it takes, in bytes.
        room: i32,
    },
    /// An end of a pair of sockets.
    Socket {
        /// The descriptor of the other end, if that comes earlier.
        other: Option<i32>,
        /// What is to be read at this end.
        #[serde(with = "serde_bytes")]
        waiting: Vec<u8>,
        /// `SOCK_STREAM`, `SOCK_DGRAM` or `SOCK_SEQPACKET`.
        kind: i32,
    },
    /// A counter of events (`eventfd`).
    Counter {
        /// Its value.
        count: u64,
        /// Whether a read takes one of it.
        semaphore: bool,
    },
    /// What watches descriptors (`epoll`).
    Watcher(Vec<Watched>),
}

/// A descriptor that is watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    fd: i32,
    events: u32,
    data: u64,
}

/// As many bytes wait in a socket that is made again: any system takes them.
const MOST_WAITING: usize = 64 << 10;
/// As many pairs of sockets are known by their ends.
const PAIRS: usize = 1024;

struct Pairs {
    next: usize,
    /// Numbers of sockets.
    ends: [(u64, u64); PAIRS],
}

impl Pairs {
    fn add(&mut self, ends: (u64, u64)) {
        self.ends[self.next % PAIRS] = ends;
        self.next += 1;
    }
}

static SOCKETS: Guarded<Pairs> = Guarded::new(Pairs { next: 0, ends: [(0, 0); PAIRS] });

fn inode(fd: c_int) -> u64 {
    let mut data = [0u64; size_of::<libc::stat>().div_ceil(8)];
    // SAFETY: the kernel fills in its structure, which has room.
    let result = unsafe { syscall!(libc::SYS_fstat, fd, data.as_mut_ptr()) };
    // SAFETY: as above.
    if failed(result) { 0 } else { unsafe { (*data.as_ptr().cast::<libc::stat>()).st_ino } }
}

/// The program has made a pair of sockets: in the trap handler.
pub(crate) fn paired(one: c_int, other: c_int) {
    let ends = (inode(one), inode(other));
    SOCKETS.lock_blocked().add(ends);
}

/// What a descriptor is the end of, if the program has it to itself. `path` is what the kernel calls it, `info` what it tells
/// of it in `/proc`, `earlier` are the descriptors with lower numbers, `all` the program's.
pub(crate) fn find(
    fd: RawFd,
    flags: c_int,
    (path, info): (&Path, &str),
    number: Number,
    earlier: &[OpenFile],
    all: impl Iterator<Item = RawFd>,
) -> Option<Channel> {
    let name = path.to_str()?;
    if flags & libc::O_ASYNC != 0 {
        return None;
    }
    if name.starts_with("pipe:[") {
        return pipe(fd, flags, number, earlier, all);
    }
    if name.starts_with("socket:[") {
        return socket(fd, number, earlier, all);
    }
    match name {
        "anon_inode:[eventfd]" => counter(fd, info),
        "anon_inode:[eventpoll]" => watcher(info, all),
        _ => None,
    }
}

/// What is to be seen at an end.
fn seen(fd: RawFd) -> c_short {
    let mut poll = libc::pollfd { fd, events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: asks about one descriptor, and does not wait.
    unsafe { libc::poll(&raw mut poll, 1, 0) };
    poll.revents
}

/// How many bytes can be read.
fn length(fd: RawFd) -> Option<usize> {
    let mut length: c_int = 0;
    // SAFETY: asks how much there is.
    let asked = unsafe { libc::ioctl(fd, libc::FIONREAD, &raw mut length) };
    usize::try_from(length).ok().filter(|_| asked == 0)
}

fn access(fd: RawFd) -> c_int {
    // SAFETY: asks for flags.
    unsafe { libc::fcntl(fd, libc::F_GETFL) & libc::O_ACCMODE }
}

fn pipe(
    fd: RawFd,
    flags: c_int,
    number: Number,
    earlier: &[OpenFile],
    mut all: impl Iterator<Item = RawFd>,
) -> Option<Channel> {
    let (own, reads) = (flags & libc::O_ACCMODE, flags & libc::O_ACCMODE == libc::O_RDONLY);
    if own == libc::O_RDWR || flags & libc::O_DIRECT != 0 {
        return None;
    }
    let ends: Vec<&OpenFile> = earlier.iter().filter(|file| file.number == number).collect();
    if ends.iter().any(|end| end.flags & libc::O_ACCMODE == own) {
        // An end that was opened once more.
        return None;
    }
    let other = ends.first().map(|end| end.fd);
    let closed = if reads { libc::POLLHUP } else { libc::POLLERR };
    let opposite = |other: RawFd| other != fd && inode(other) == number.1 && access(other) != own;
    if other.is_none() && seen(fd) & closed == 0 && !all.any(opposite) {
        return None;
    }
    // SAFETY: asks for a size.
    let room = unsafe { libc::fcntl(fd, libc::F_GETPIPE_SZ) };
    let waiting = if reads { look(fd)? } else { Vec::new() };
    Some(Channel::Pipe { other, waiting, room })
}

/// What waits in a pipe, and stays there.
pub(crate) fn look(fd: RawFd) -> Option<Vec<u8>> {
    let length = length(fd)?;
    let mut waiting = vec![0; length];
    if length > 0 {
        let (mut copy, to) = io::pipe().ok()?;
        // SAFETY: makes our pipe as large, and copies from a pipe to another without waiting.
        let copied = unsafe {
            libc::fcntl(to.as_raw_fd(), libc::F_SETPIPE_SZ, libc::fcntl(fd, libc::F_GETPIPE_SZ));
            libc::tee(fd, to.as_raw_fd(), length, libc::SPLICE_F_NONBLOCK)
        };
        drop(to);
        if copied != length as isize {
            return None;
        }
        copy.read_exact(&mut waiting).ok()?;
    }
    Some(waiting)
}

fn socket(fd: RawFd, number: Number, earlier: &[OpenFile], mut all: impl Iterator<Item = RawFd>) -> Option<Channel> {
    let table = SOCKETS.lock();
    let of = |&(one, other): &(u64, u64)| {
        if one == number.1 { Some(other) } else { (other == number.1).then_some(one) }
    };
    let peer = table.ends.iter().find_map(of);
    drop(table);
    let peer = peer?;
    let other = earlier.iter().find(|file| file.number.1 == peer).map(|file| file.fd);
    let hung_up = seen(fd) & (libc::POLLHUP | libc::POLLRDHUP) != 0;
    if hung_up || other.is_none() && !all.any(|other| inode(other) == peer) {
        return None;
    }
    let (mut kind, mut size): (c_int, libc::socklen_t) = (0, size_of::<c_int>() as libc::socklen_t);
    // SAFETY: room for a number.
    unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_TYPE, (&raw mut kind).cast(), &raw mut size) };
    let mut waiting = vec![0u8; length(fd).filter(|&length| length <= MOST_WAITING)?];
    if !waiting.is_empty() {
        let mut part = libc::iovec { iov_base: waiting.as_mut_ptr().cast(), iov_len: waiting.len() };
        // SAFETY: plain numbers and null pointers.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        // SAFETY: room for as much, which stays there.
        let seen = unsafe { libc::recvmsg(fd, &raw mut message, libc::MSG_PEEK | libc::MSG_DONTWAIT) };
        // Messages are not to be told apart in this way, and descriptors may be among them.
        if kind != libc::SOCK_STREAM || seen != waiting.len() as isize || message.msg_flags & libc::MSG_CTRUNC != 0 {
            return None;
        }
    }
    Some(Channel::Socket { other, waiting, kind })
}

fn counter(fd: RawFd, info: &str) -> Option<Channel> {
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let count = u64::from_str_radix(field("eventfd-count:")?, 16).ok()?;
    let semaphore = match field("eventfd-semaphore:") {
        Some(told) => told != "0",
        None => takes_one(fd, count)?,
    };
    Some(Channel::Counter { count, semaphore })
}

/// Whether a read takes one of a counter, which has its value again after that: older kernels do not tell.
fn takes_one(fd: RawFd, count: u64) -> Option<bool> {
    // SAFETY: the descriptor stays the program's.
    let mut file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    file.write_all(&2u64.to_ne_bytes()).ok()?;
    let mut taken = [0u8; 8];
    file.read_exact(&mut taken).ok()?;
    let semaphore = u64::from_ne_bytes(taken) == 1;
    if semaphore {
        file.read_exact(&mut taken).ok()?;
    } else if count > 0 {
        file.write_all(&count.to_ne_bytes()).ok()?;
    }
    Some(semaphore)
}

fn watcher(info: &str, all: impl Iterator<Item = RawFd>) -> Option<Channel> {
    let all: Vec<RawFd> = all.collect();
    let watched = |line: &str| {
        let after = |name: &str| line.split_once(name)?.1.split_whitespace().next();
        let hex = |name| u64::from_str_radix(after(name)?, 16).ok();
        let fd = after("tfd:")?.parse().ok().filter(|fd| all.contains(fd))?;
        // Another file may have the number of one that was closed.
        hex(" ino:").filter(|&number| number == inode(fd))?;
        Some(Watched { fd, events: u32::try_from(hex("events:")?).ok()?, data: hex("data:")? })
    };
    let lines = info.lines().filter(|line| line.starts_with("tfd:"));
    lines.map(watched).collect::<Option<Vec<_>>>().map(Channel::Watcher)
}

/// Channels that are being made again: ends whose numbers are yet to come, by the descriptor of the other end.
#[derive(Default)]
pub(crate) struct Remaking {
    ends: BTreeMap<RawFd, OwnedFd>,
}

impl Remaking {
    /// Makes a channel, or takes the end that is left of one; `flags` are those of the descriptor.
    pub(crate) fn make(&mut self, fd: RawFd, flags: c_int, channel: &Channel) -> io::Result<OwnedFd> {
        let end = match channel {
            Channel::Pipe { other, waiting, room } => {
                let reads = flags & libc::O_ACCMODE == libc::O_RDONLY;
                let (end, written) = match other {
                    Some(other) => (self.left(*other)?, *other),
                    None => {
                        let (from, to) = io::pipe()?;
                        // SAFETY: sets a size.
                        let given = unsafe { libc::fcntl(to.as_raw_fd(), libc::F_SETPIPE_SZ, *room) };
                        if given < *room {
                            return Err(io::Error::other(format!("a pipe of {room} bytes cannot be had here")));
                        }
                        let (from, to): (OwnedFd, OwnedFd) = (from.into(), to.into());
                        let (own, other) = if reads { (from, to) } else { (to, from) };
                        (own, self.keep(fd, &other)?)
                    }
                };
                put(written, waiting)?;
                end
            }
            Channel::Socket { other, waiting, kind } => {
                let (end, written) = match other {
                    Some(other) => (self.left(*other)?, *other),
                    None => {
                        let mut ends = [0; 2];
                        // SAFETY: room for two descriptors, which are ours.
                        let (own, other) = unsafe {
                            if libc::socketpair(libc::AF_UNIX, kind | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()) < 0 {
                                return Err(io::Error::last_os_error());
                            }
                            (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
                        };
                        SOCKETS.lock().add((inode(ends[0]), inode(ends[1])));
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
