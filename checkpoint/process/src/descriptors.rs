//! The program's descriptors: which are its own. The lower half's are hidden from it: it can neither close them nor put
//! others in their place. The trap handler keeps the account.
use crate::own::{Who, who};
use crate::sys::{error, failed, syscall};
use crate::trap::Call;
use crate::{channels, named, overlay};
use libc::{EBADF, EBUSY};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Descriptors beyond these are taken for the program's.
const MOST: usize = 65_536;
/// A set of descriptors.
pub(crate) struct Set([AtomicU64; MOST / 64]);

impl Set {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; MOST / 64])
    }

    fn word(&self, fd: usize) -> Option<(&AtomicU64, u64)> {
        self.0.get(fd / 64).map(|word| (word, 1 << (fd % 64)))
    }

    pub(crate) fn has(&self, fd: usize) -> bool {
        self.word(fd).is_none_or(|(word, bit)| word.load(Relaxed) & bit != 0)
    }

    pub(crate) fn add(&self, fd: usize) {
        if let Some((word, bit)) = self.word(fd) {
            word.fetch_or(bit, Relaxed);
        }
    }

    pub(crate) fn take(&self, fd: usize) {
        if let Some((word, bit)) = self.word(fd) {
            word.fetch_and(!bit, Relaxed);
        }
    }

    pub(crate) fn list(&self) -> impl Iterator<Item = usize> {
        (0..MOST).filter(|fd| self.has(*fd))
    }
}

/// The program's.
pub(crate) static OWN: Set = Set::new();
/// Those that are kept free for it.
pub(crate) static RESERVED: Set = Set::new();
static PROGRAM: AtomicUsize = AtomicUsize::new(0);

/// Tells the program's own file, which /proc/self/exe must name.
pub(crate) fn set_program(path: &Path) {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
    // The handler may read the old name at any time: it stays.
    PROGRAM.store(path.into_raw() as usize, Relaxed);
}

/// The address of the program's name, which ends with a zero byte.
pub(crate) fn program() -> usize {
    PROGRAM.load(Relaxed)
}

/// Whether a path (an address within the program) is a name in /proc for the program's own file.
pub(crate) unsafe fn names_program(path: usize) -> bool {
    if path == 0 || program() == 0 {
        return false;
    }
    let is = |name: &[u8]| {
        // SAFETY: the program's pointer, as the kernel would read it; the comparison stops at the first difference.
        name.iter().enumerate().all(|(i, byte)| unsafe { *(path as *const u8).wrapping_add(i) } == *byte)
    };
    if is(b"/proc/self/exe\0") || is(b"/proc/thread-self/exe\0") {
        return true;
    }
    let mut own = [0u8; 24];
    own[..6].copy_from_slice(b"/proc/");
    let mut pid = crate::identity::told();
    let digits = pid.checked_ilog10().map_or(1, |d| d as usize + 1).min(10);
    for at in (6..6 + digits).rev() {
        own[at] = b'0' + (pid % 10) as u8;
        pid /= 10;
    }
    own[6 + digits..11 + digits].copy_from_slice(b"/exe\0");
    is(&own[..11 + digits])
}

/// The upper half's readlink and readlinkat.
pub(crate) unsafe fn trapped_readlink(call: &mut Call) -> isize {
    let at = if call.number == libc::SYS_readlink { 0 } else { 1 };
    let (path, buffer, size) = (call.args[at], call.args[at + 1], call.args[at + 2]);
    // SAFETY: the program's pointers, as the kernel would use them; the name ends with a zero byte.
    unsafe {
        if names_program(path) && (size as isize) > 0 {
            let name = program() as *const u8;
            let mut len = 0;
            while len < size && *name.wrapping_add(len) != 0 {
                *(buffer as *mut u8).wrapping_add(len) = *name.wrapping_add(len);
                len += 1;
            }
            return len as isize;
        }
        if (size as isize) > 0 && overlay::on() && who() == Who::Program {
            let mut buffers = overlay::tables();
            let folder = if at == 0 { libc::AT_FDCWD as usize } else { call.args[0] };
            if buffers.named_by(folder, path) {
                let len = buffers.folder.len.min(size);
                std::ptr::copy_nonoverlapping(buffers.folder.address(), buffer as *mut u8, len);
                return len as isize;
            }
        }
        call.pass()
    }
}

/// The upper half's calls that make, copy or close descriptors.
pub(crate) unsafe fn trapped(call: &mut Call) -> isize {
    let args = call.args;
    let (first, second) = (args[0] as u32 as usize, args[1] as u32 as usize);
    // SAFETY: throughout: the call is the upper half's own, its arguments as it gave them.
    unsafe {
        match call.number {
            libc::SYS_close => {
                if !OWN.has(first) {
                    return error(EBADF);
                }
                OWN.take(first);
                call.pass()
            }
            libc::SYS_close_range => close_range(first, second, args[2] as u32),
            libc::SYS_dup2 | libc::SYS_dup3 => {
                if !OWN.has(first) {
                    return error(EBADF);
                }
                let ours = !OWN.has(second) && !RESERVED.has(second);
                if ours && !failed(syscall!(libc::SYS_fcntl, second, libc::F_GETFD)) {
                    return error(EBUSY);
                }
                let result = call.pass();
                if !failed(result) {
                    OWN.add(second);
                }
                result
            }
            libc::SYS_dup | libc::SYS_fcntl if !OWN.has(first) => error(EBADF),
            libc::SYS_pipe | libc::SYS_pipe2 | libc::SYS_socketpair => {
                let result = call.pass();
                if !failed(result) {
                    let pair = if call.number == libc::SYS_socketpair { args[3] } else { args[0] } as *const u32;
                    let (one, other) = (pair.read_unaligned(), pair.wrapping_add(1).read_unaligned());
                    OWN.add(one as usize);
                    OWN.add(other as usize);
                    if call.number == libc::SYS_socketpair {
                        channels::paired(one as i32, other as i32);
                    }
                }
                result
            }
            libc::SYS_fstat => call.pass(),
            number if named::listed(number).is_some() => call.pass(),
            number => {
                let path = match number {
                    libc::SYS_open | libc::SYS_creat => Some(0),
                    libc::SYS_openat | libc::SYS_openat2 => Some(1),
                    _ => None,
                };
                if let Some(path) = path
                    && names_program(args[path])
                {
                    call.args[path] = program();
                }
                let result = call.pass_open();
                note(result);
                result
            }
        }
    }
}

/// Records a new descriptor of the program.
pub(crate) fn note(result: isize) {
    if !failed(result) {
        OWN.add(result as usize);
    }
}

/// Forgets a descriptor that the handler itself closed.
pub(crate) fn forget(fd: usize) {
    OWN.take(fd);
}

unsafe fn close_range(first: usize, last: usize, flags: u32) -> isize {
    for fd in first..=last.min(MOST - 1) {
        if OWN.has(fd) {
            // SAFETY: the program's own descriptor.
            unsafe {
                if flags & libc::CLOSE_RANGE_CLOEXEC != 0 {
                    syscall!(libc::SYS_fcntl, fd, libc::F_SETFD, libc::FD_CLOEXEC);
                } else {
                    OWN.take(fd);
                    syscall!(libc::SYS_close, fd);
                }
            }
        }
    }
    0
}
