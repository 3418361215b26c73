//! From a path as the program names it to its absolute form, and to what stands for it in the scratch folder: see
//! [`overlay`](crate::overlay). Part of the trap handler: buffers of its own, raw system calls.
use crate::overlay::{Buffers, machine};
use crate::plain::{is_special, on_a_disk_of_its_own};
use crate::sys::syscall;
use crate::text::{MOST, Text, name};
use libc::{AT_FDCWD, c_int};

/// What comes after `folder` in a path to it or within it; none of an empty one.
fn within<'a>(path: &'a [u8], folder: &[u8]) -> Option<&'a [u8]> {
    path.strip_prefix(folder).filter(|rest| !folder.is_empty() && matches!(rest.first(), None | Some(b'/')))
}

/// Makes `name` that of the folder a descriptor is open for, or of the process's working folder. False if there is none.
fn name_folder(dirfd: c_int, name: &mut Text) -> bool {
    let buffer = name.bytes.as_mut_ptr();
    // SAFETY: fills the buffer, which is as long as said.
    let len = unsafe {
        if dirfd == AT_FDCWD {
            syscall!(libc::SYS_getcwd, buffer, MOST) - 1
        } else {
            let mut link = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
            let mut rest = dirfd as u32;
            let digits = rest.checked_ilog10().map_or(1, |d| d as usize + 1).min(10);
            for at in (14..14 + digits).rev() {
                link[at] = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            syscall!(libc::SYS_readlink, link.as_ptr(), buffer, MOST)
        }
    };
    name.len = usize::try_from(len).unwrap_or(0);
    name.len > 0
}

impl Buffers {
    /// Makes `path` the absolute form of a path of the program. False if it is none, or of a device, /proc or /sys.
    pub(crate) unsafe fn locate(&mut self, dirfd: usize, path: usize) -> bool {
        if path == 0 {
            return false;
        }
        // SAFETY: the program's pointer to a text that ends with a zero byte, as the kernel would read it.
        let given = unsafe {
            let mut len = 0;
            while len < MOST && *(path as *const u8).wrapping_add(len) != 0 {
                len += 1;
            }
            std::slice::from_raw_parts(path as *const u8, len)
        };
        self.path.len = 0;
        if given.first() != Some(&b'/') {
            let Self { path, folder, at, followed, .. } = self;
            let known = if dirfd as c_int == AT_FDCWD && at.len > 0 {
                *followed = true;
                path.set(&[at.get()])
            } else {
                name_folder(dirfd as c_int, folder) && path.walk(folder.get())
            };
            if !known {
                return false;
            }
        }
        self.path.walk(given) && !is_special(self.path.get())
    }

    /// Makes `path` the absolute form of a path of the program, `copy` and `gone` what stands for it. False if it is not
    /// one to be kept apart: those that [`Buffers::locate`] refuses, the scratch folder itself.
    pub(crate) unsafe fn resolve(&mut self, dirfd: usize, path: usize) -> bool {
        self.followed = false;
        // SAFETY: the caller's.
        let located = unsafe { self.locate(dirfd, path) };
        located && !self.path.get().starts_with(self.scratch.get()) && self.find()
    }

    /// Makes `copy` and `gone` what stands for `path`. One in a folder that is missing here becomes one in what stands for it.
    fn find(&mut self) -> bool {
        let Self { path, here, home, gone: known, .. } = self;
        let inside = within(path.get(), home.get());
        let fits = match inside.or_else(|| within(path.get(), here.get())) {
            Some(rest) => known.set(&[home.get(), rest]),
            None => known.set(&[path.get()]),
        };
        if inside.is_some() {
            let rest = home.len;
            path.set(&[here.get(), known.get().get(rest..).unwrap_or_default()]);
            self.followed = true;
        }
        let machine = if on_a_disk_of_its_own(self.path.get(), &mut self.folder) { machine() } else { 0 };
        let name = name(self.gone.get(), machine);
        fits && self.copy.set(&[self.scratch.get(), b"/", &name])
            && self.gone.set(&[self.scratch.get(), b"/", &name, b".gone"])
    }

    /// Goes on to where the path leads, if it is a link that the program has made. Where that is not to be kept apart it stays:
    /// the link itself leads there.
    pub(crate) fn follow(&mut self) {
        // As many as the kernel follows.
        for _ in 0..40 {
            let Self { path, folder, copy, .. } = &mut *self;
            // SAFETY: a path that ends with a zero byte, and a buffer that is as long as said.
            let len =
                unsafe { syscall!(libc::SYS_readlinkat, AT_FDCWD, copy.address(), folder.bytes.as_mut_ptr(), MOST) };
            if len <= 0 {
                return;
            }
            folder.len = len as usize;
            if folder.get().starts_with(b"/") {
                path.len = 0;
            } else {
                path.walk(b"..");
            }
            if !path.walk(folder.get()) || is_special(path.get()) || !self.find() {
                return;
            }
            self.followed = true;
        }
    }
}
