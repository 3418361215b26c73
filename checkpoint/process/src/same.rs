//! Which descriptors stand for one open file or one stream.
use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// Device and number of a file.
pub type Number = (u64, u64);

/// Device and number of a file.
pub fn number(data: &Metadata) -> Number {
    (data.dev(), data.ino())
}

/// What the kernel tells of what a descriptor stands for.
pub(crate) fn metadata(fd: i32) -> std::io::Result<Metadata> {
    fs::metadata(format!("/proc/self/fd/{fd}"))
}

/// Whether two descriptors stand for one open file. Where the kernel does not say (in containers it may not be asked), those
/// of one pipe, socket or device do, and of one file those that are open in the same way and move together.
pub(crate) fn same(a: i32, b: i32) -> bool {
    const KCMP_FILE: libc::c_int = 0;
    let pid = std::process::id();
    if a < 0 || b < 0 {
        return false;
    }
    // SAFETY: compares, takes no pointers.
    match unsafe { libc::syscall(libc::SYS_kcmp, pid, pid, KCMP_FILE, a, b) } {
        -1 => alike(a).is_some_and(|a| alike(b) == Some(a)) && move_together(a, b),
        order => order == 0,
    }
}

/// Whether one descriptor moves as the other is moved; true of what has no place.
fn move_together(a: i32, b: i32) -> bool {
    // SAFETY: moves what this process has open, and back.
    unsafe {
        let at = libc::lseek(a, 0, libc::SEEK_CUR);
        if at < 0 || libc::lseek(a, at + 1, libc::SEEK_SET) < 0 {
            return true;
        }
        let moved = libc::lseek(b, 0, libc::SEEK_CUR) == at + 1;
        libc::lseek(a, at, libc::SEEK_SET);
        moved
    }
}

/// Device and number of what a descriptor stands for, and how and where it is open.
fn alike(fd: i32) -> Option<(Number, String)> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
    let open = |line: &&str| line.starts_with("pos:") || line.starts_with("flags:");
    Some((number(&metadata(fd).ok()?), info.lines().filter(open).collect()))
}

/// A pipe or terminal.
pub(crate) struct Stream {
    number: Number,
    access: libc::c_int,
}

impl Stream {
    /// Of a descriptor; none if it stands for something else.
    pub(crate) fn of(fd: i32) -> Option<Stream> {
        let data = metadata(fd).ok()?;
        // SAFETY: asks for flags.
        let access = unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_ACCMODE;
        (data.file_type().is_fifo() || is_terminal(&data)).then(|| Stream { number: number(&data), access })
    }

    /// Whether it serves for another one, which was opened by itself.
    pub(crate) fn serves(&self, other: &Stream) -> bool {
        self.number == other.number && (self.access == other.access || self.access == libc::O_RDWR)
    }
}

pub(crate) fn is_terminal(data: &Metadata) -> bool {
    // `/dev/tty` and the masters of pseudo-terminals, the consoles, pseudo-terminals.
    data.file_type().is_char_device() && matches!(libc::major(data.rdev()), 4 | 5 | 136..=143)
}
