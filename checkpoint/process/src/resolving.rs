//! From a path as the program names it to its absolute form, and to what stands for it in the scratch folder, and back: see
//! [`overlay`](crate::overlay). Part of the trap handler: buffers of its own, raw system calls.
use crate::overlay::{self, Buffers, machine};
use crate::plain::{is_special, kind, kind_itself, link_text, on_a_disk_of_its_own};
use crate::sys::{error, failed, syscall};
use crate::text::{MOST, Text, digits, name};
use libc::{AT_FDCWD, EINVAL, c_int};

/// In the scratch folder copies lie in a tree for each machine, whose name has so many bytes, in folders as the originals do.
const TREE: usize = 9;
/// As many links as the kernel follows.
const LINKS: usize = 40;

/// What comes after `folder` in a path to it or within it; none of an empty one.
pub(crate) fn within<'a>(path: &'a [u8], folder: &[u8]) -> Option<&'a [u8]> {
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

/// Where the name ends that begins at a slash, if others come after it.
pub(crate) fn next(path: &Text, slash: usize) -> Option<usize> {
    path.get().get(slash + 1..)?.iter().position(|byte| *byte == b'/').map(|len| slash + 1 + len)
}

/// What is in the path of a copy behind the name of its tree: the path that it stands for.
fn stands_for<'a>(copy: &'a [u8], scratch: &[u8]) -> Option<&'a [u8]> {
    let rest = within(copy, scratch)?.get(TREE..)?;
    Some(if rest.is_empty() { b"/" } else { rest }).filter(|path| path.starts_with(b"/"))
}

impl Buffers {
    /// Makes `folder` the path that the name of a link in /proc stands for, if that leads to a copy.
    pub(crate) unsafe fn named_by(&mut self, dirfd: usize, link: usize) -> bool {
        let Self { folder, gone, scratch, .. } = self;
        // SAFETY: the program's path, and a buffer that is as long as said.
        let len = unsafe { syscall!(libc::SYS_readlinkat, dirfd, link, gone.bytes.as_mut_ptr(), MOST) };
        gone.len = usize::try_from(len).unwrap_or(0);
        stands_for(gone.get(), scratch.get()).is_some_and(|path| folder.set(&[path]))
    }

    /// Makes `folder` the path that a descriptor's copy stands for, if it is open for one.
    pub(crate) fn folder_of(&mut self, fd: usize) -> bool {
        let Self { folder, gone, scratch, .. } = self;
        let known = name_folder(fd as c_int, gone) && !gone.get().ends_with(b" (deleted)");
        known && stands_for(gone.get(), scratch.get()).is_some_and(|path| folder.set(&[path]))
    }

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
            let known = if dirfd as c_int == AT_FDCWD && self.at.len > 0 {
                self.followed = true;
                self.path.set(&[self.at.get()])
            } else if overlay::on() && self.folder_of(dirfd) {
                self.followed = true;
                self.path.walk(self.folder.get())
            } else {
                name_folder(dirfd as c_int, &mut self.folder) && self.path.walk(self.folder.get())
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
        located && within(self.path.get(), self.scratch.get()).is_none() && self.find()
    }

    /// Makes `copy` and `gone` what stands for `path`, and follows links above it that the program has made.
    pub(crate) fn find(&mut self) -> bool {
        for _ in 0..LINKS {
            let Some(machine) = self.place() else { return false };
            match self.descend(machine) {
                None => return true,
                Some(link) if !self.turn(link) => break,
                Some(_) => self.followed = true,
            }
        }
        // The kernel is to say what is wrong with it, or to go where nothing is kept apart.
        self.within = true;
        true
    }

    /// Makes `copy` and `gone` what stands for `path`. One in a folder that is missing here becomes one in what stands for it.
    /// None if it is too long, else the machine that it is of.
    fn place(&mut self) -> Option<u32> {
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
        let fits = fits
            && self.copy.set(&[self.scratch.get(), b"/", &digits::<8>(machine.into()), self.gone.get()])
            && self.gone.set(&[self.scratch.get(), b"/", &name, b".gone"]);
        fits.then_some(machine)
    }

    /// Goes down through the folders of the copy, and sees whether one of them is the program's own, or one that it has removed.
    /// If one of them is a link: where its name ends.
    fn descend(&mut self, machine: u32) -> Option<usize> {
        let turned = self.is_turned();
        // Where there are no links, it is enough that the last folder is there.
        let above = if turned { None } else { self.last_folder() };
        let Self { path, copy, folder, home, scratch, within: inside, .. } = self;
        let root = scratch.len + TREE;
        let known = copy.get().get(root..).and_then(|path| within(path, home.get())).map_or(0, |_| home.len);
        *inside = false;
        let mut last = above.unwrap_or(root);
        while let Some(slash) = next(copy, last) {
            let len = copy.up_to(slash, |above| link_text(above, folder));
            if !failed(len) {
                return Some(slash);
            }
            if len != error(EINVAL) {
                break;
            }
            last = slash;
        }
        // Of a folder that is there on its own account only the files that were changed lie below the copy.
        if last > root && last - root >= known {
            let original = path.len - (copy.len - last);
            *inside = path.up_to(original, kind) != Some(libc::S_IFDIR);
        }
        if *inside || !turned {
            return None;
        }
        let Self { copy, folder, scratch, within: inside, .. } = self;
        let mut last = root;
        while let Some(slash) = next(copy, last).filter(|_| !*inside) {
            let name = name(copy.get().get(root..slash).unwrap_or(&[]), machine);
            *inside = folder.set(&[scratch.get(), b"/", &name, b".gone"]) && kind_itself(folder).is_some();
            last = slash;
        }
        None
    }

    /// Goes on to where the link leads whose name ends here in the path of the copy, and whose text is in `folder`. False if
    /// that is not to be kept apart: `copy` stays.
    fn turn(&mut self, link: usize) -> bool {
        let Self { path, folder, copy, gone, .. } = self;
        let rest = copy.get().get(link..).unwrap_or(&[]);
        let above = path.len - rest.len();
        path.cut(above);
        if folder.get().starts_with(b"/") {
            path.cut(0);
        } else {
            path.walk(b"..");
        }
        gone.set(&[rest]) && path.walk(folder.get()) && path.walk(gone.get()) && !is_special(path.get())
    }

    /// Goes on to where the path leads, if it is a link that the program has made. Where that is not to be kept apart it stays:
    /// the link itself leads there.
    pub(crate) fn follow(&mut self) {
        for _ in 0..LINKS {
            if failed(link_text(&self.copy, &mut self.folder)) || !self.turn(self.copy.len) || !self.find() {
                return;
            }
            self.followed = true;
        }
    }
}
