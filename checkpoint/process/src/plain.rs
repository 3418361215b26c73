//! What the overlay asks of files and does with them: by raw system calls, on paths that end with a zero byte.
use crate::overlay::machine;
use crate::sys::{self, error, failed, syscall};
use crate::text::{MOST, Text, digits};
use libc::{AT_FDCWD, EEXIST, c_int};

/// Whether a path lies in a file system that other machines do not see: names there are each machine's own.
pub(crate) fn on_a_disk_of_its_own(path: &[u8], folder: &mut Text) -> bool {
    const LOCAL: [libc::c_long; 8] = [
        libc::EXT4_SUPER_MAGIC,
        libc::XFS_SUPER_MAGIC,
        libc::BTRFS_SUPER_MAGIC,
        libc::F2FS_SUPER_MAGIC,
        libc::TMPFS_MAGIC,
        libc::OVERLAYFS_SUPER_MAGIC,
        0x8584_58f6, // ramfs
        0x2fc1_2fc1, // ZFS
    ];
    let mut end = path.len();
    // The nearest folder above that exists.
    while let Some(slash) = path.get(..end).and_then(|path| path.iter().rposition(|byte| *byte == b'/')) {
        let above: &[u8] = if slash == 0 { b"/" } else { &path[..slash] };
        // SAFETY: a path that ends with a zero byte, and a structure to fill.
        unsafe {
            let mut about: libc::statfs = std::mem::zeroed();
            if folder.set(&[above]) && !failed(syscall!(libc::SYS_statfs, folder.address(), &raw mut about)) {
                return LOCAL.contains(&about.f_type);
            }
        }
        end = slash;
    }
    true
}

/// Whether a path is of a device, /proc or /sys. (What lies in /dev/shm are files.)
pub fn is_special(path: &[u8]) -> bool {
    let special: [&[u8]; 3] = [b"/dev/", b"/proc/", b"/sys/"];
    !path.starts_with(b"/dev/shm/") && special.iter().any(|s| path.starts_with(s))
}

pub(crate) fn remove(path: &Text) {
    // SAFETY: a path that ends with a zero byte, in the scratch folder.
    unsafe { syscall!(libc::SYS_unlinkat, AT_FDCWD, path.address(), 0) };
}

pub(crate) fn create(path: &Text) {
    // SAFETY: a path that ends with a zero byte, in the scratch folder.
    unsafe {
        let file = syscall!(libc::SYS_openat, AT_FDCWD, path.address(), libc::O_CREAT | libc::O_WRONLY, 0o600);
        syscall!(libc::SYS_close, file);
    }
}

/// The type of the file behind a path.
pub(crate) fn kind(path: &Text) -> Option<libc::mode_t> {
    kind_by(path, 0)
}

/// The type of what has this path, which may be a link.
pub(crate) fn kind_itself(path: &Text) -> Option<libc::mode_t> {
    kind_by(path, libc::AT_SYMLINK_NOFOLLOW)
}

fn kind_by(path: &Text, flags: c_int) -> Option<libc::mode_t> {
    // SAFETY: a path that ends with a zero byte, and a structure to fill.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        let result = syscall!(libc::SYS_newfstatat, AT_FDCWD, path.address(), &raw mut stat, flags);
        (!failed(result)).then_some(stat.st_mode & libc::S_IFMT)
    }
}

/// Fills `text` with what a link says. An error if it is none.
pub(crate) fn link_text(link: &Text, text: &mut Text) -> isize {
    // SAFETY: a path that ends with a zero byte, and a buffer that is longer than said.
    let len = unsafe { syscall!(libc::SYS_readlinkat, AT_FDCWD, link.address(), text.bytes.as_mut_ptr(), MOST) };
    if !failed(len) {
        text.cut(len as usize);
    }
    len
}

/// Makes the same link under another name.
pub(crate) fn duplicate_link(from: &Text, to: &Text, text: &mut Text) -> isize {
    let len = link_text(from, text);
    // SAFETY: paths that end with a zero byte.
    if failed(len) { len } else { unsafe { syscall!(libc::SYS_symlinkat, text.address(), AT_FDCWD, to.address()) } }
}

/// Copies what a file holds in as many bytes, and leaves out its holes. Zero, or an error.
///
/// # Safety
/// Descriptors of files that are the caller's, at their beginnings.
pub(crate) unsafe fn copy_data(source: isize, target: isize, size: usize) -> isize {
    let mut at = 0;
    // SAFETY: the caller's descriptors.
    unsafe {
        while at < size {
            let data = syscall!(libc::SYS_lseek, source, at, libc::SEEK_DATA);
            if data == error(libc::ENXIO) {
                break;
            }
            let hole = syscall!(libc::SYS_lseek, source, data, libc::SEEK_HOLE);
            if failed(data) || failed(hole) {
                return if failed(data) { data } else { hole };
            }
            (at, _) = (data as usize, syscall!(libc::SYS_lseek, source, data, libc::SEEK_SET));
            syscall!(libc::SYS_lseek, target, data, libc::SEEK_SET);
            while at < hole as usize {
                let count = syscall!(libc::SYS_sendfile, target, source, 0, hole as usize - at);
                if count <= 0 {
                    // Shorter than it was.
                    return count;
                }
                at += count as usize;
            }
        }
        syscall!(libc::SYS_ftruncate, target, size)
    }
}

/// A name in the scratch folder that no other thread has now.
pub(crate) fn name_draft(scratch: &Text, draft: &mut Text) -> bool {
    draft.set(&[scratch.get(), b"/draft.", &digits::<8>((sys::gettid() ^ machine()).into())])
}

/// Copies a file. The copy appears whole or not at all; if another process was first, its copy stays.
pub(crate) fn duplicate(from: &Text, to: &Text, draft: &Text) -> isize {
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
        let result = copy_data(source, target, stat.st_size as usize);
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
