//! Channels that a program has to itself: pipes and pairs of sockets of which it holds both ends (or of which the other is
//! closed), counters of events, timers and signals that are read, and what watches descriptors. Interpreters and event loops
//! wake themselves up by these.
use crate::files::OpenFile;
use crate::own::Guarded;
use crate::same::Number;
use crate::sys::{failed, syscall};
use libc::{c_int, c_short};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// What a channel is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Channel {
    /// An end of a pipe or of a pair of sockets.
    End {
        /// The descriptor of the other end, if that comes earlier.
        other: Option<i32>,
        /// What is to be read at this end.
        #[serde(with = "serde_bytes")]
        waiting: Vec<u8>,
        /// Of what.
        of: Ends,
    },
    /// A counter of events (`eventfd`).
    Counter {
        /// Its value.
        count: u64,
        /// Whether a read takes one of it.
        semaphore: bool,
    },
    /// A timer (`timerfd`).
    Timer {
        /// The clock that it goes by.
        clock: i32,
        /// Its interval, and what is left until it rings, each in seconds and nanoseconds.
        time: [i64; 4],
        /// How often it has rung since it was read.
        ticks: u64,
    },
    /// Signals that are read (`signalfd`), one bit for each.
    Signals(u64),
    /// What watches descriptors (`epoll`).
    Watcher(Vec<Watched>),
}

/// What has two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ends {
    /// A pipe, which takes so many bytes.
    Pipe(i32),
    /// A pair of sockets: `SOCK_STREAM`, `SOCK_DGRAM` or `SOCK_SEQPACKET`.
    Sockets(i32),
}

/// A descriptor that is watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    pub(crate) fd: i32,
    pub(crate) events: u32,
    pub(crate) data: u64,
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

/// The program has a pair of sockets. Usable from the trap handler.
pub(crate) fn paired(one: c_int, other: c_int) {
    let ends = (inode(one), inode(other));
    SOCKETS.lock().add(ends);
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
        "anon_inode:[timerfd]" => timer(fd, info),
        "anon_inode:[signalfd]" => Some(Channel::Signals(u64::from_str_radix(field(info, "sigmask:")?, 16).ok()?)),
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
    Some(Channel::End { other, waiting, of: Ends::Pipe(room) })
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
    Some(Channel::End { other, waiting, of: Ends::Sockets(kind) })
}

/// What the kernel tells under a name in `/proc`.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn counter(fd: RawFd, info: &str) -> Option<Channel> {
    let count = u64::from_str_radix(field(info, "eventfd-count:")?, 16).ok()?;
    let semaphore = match field(info, "eventfd-semaphore:") {
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

fn timer(fd: RawFd, info: &str) -> Option<Channel> {
    let clock = field(info, "clockid:")?.parse().ok()?;
    let set: c_int = i32::from_str_radix(field(info, "settime flags:")?, 8).ok()?;
    if set & libc::TFD_TIMER_CANCEL_ON_SET != 0 {
        return None;
    }
    let left = || {
        let mut time = [0i64; 4];
        // SAFETY: room for an `itimerspec`.
        let asked = unsafe { libc::timerfd_gettime(fd, time.as_mut_ptr().cast()) };
        // Those of its interval are counted when it is asked for.
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok().filter(|_| asked == 0)?;
        Some(Channel::Timer { clock, time, ticks: field(&info, "ticks:")?.parse().ok()? })
    };
    let is_set = |timer: &Channel| !matches!(timer, Channel::Timer { time: [.., 0, 0], .. });
    // The kernel tells the same of one that is due, but has not rung yet, as of one that is not set.
    for _ in 0..3 {
        match left() {
            Some(timer) if !is_set(&timer) => sleep(Duration::from_millis(1)),
            told => return told,
        }
    }
    left()
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
