//! Folders of a replayed program, and what is removed in them: see [`overlay`](crate::overlay). One that only the program has
//! made is a folder in the scratch folder, and what holds of it the kernel knows. One that is there on its own account may have
//! copies there of files in it. Part of the trap handler: buffers of its own, raw system calls.
use crate::overlay::{Buffers, Seen};
use crate::plain::kind_itself;
use crate::resolving::next;
use crate::sys::{error, failed, syscall};
use crate::text::Text;
use libc::{AT_FDCWD, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY};

/// Where the name stands in an entry of a list that the kernel gives of a folder, and where its length.
const NAME: usize = 19;
const LENGTH: usize = 16;

/// The first name in a list that the kernel has given of a folder, and the rest of the list.
fn entry(list: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = list.get(LENGTH..NAME - 1)?;
    let (entry, rest) = list.split_at_checked(u16::from_ne_bytes(length.try_into().ok()?).into())?;
    let name = entry.get(NAME..)?.split(|byte| *byte == 0).next()?;
    Some((name, rest))
}

impl Buffers {
    /// Where the name of the folder ends in which the copy lies, if that is there.
    pub(crate) fn last_folder(&mut self) -> Option<usize> {
        let slash = self.copy.get().iter().rposition(|byte| *byte == b'/')?;
        (self.copy.up_to(slash, kind_itself) == Some(libc::S_IFDIR)).then_some(slash)
    }

    /// Makes the folders in which the copy lies. (Within one of the program's own they are there, or it is an error.)
    pub(crate) fn make_room(&mut self) {
        if self.within || self.last_folder().is_some() {
            return;
        }
        let Self { copy, scratch, .. } = self;
        let mut at = scratch.len;
        while let Some(slash) = next(copy, at) {
            // SAFETY: a path that ends with a zero byte, in the scratch folder.
            copy.up_to(slash, |folder| unsafe { syscall!(libc::SYS_mkdir, folder.address(), 0o777) });
            at = slash;
        }
    }

    /// Puts away the folder that has the copies that were reached by a link of the base run, which goes.
    pub(crate) fn clear(&mut self) {
        let Self { copy, gone, other, .. } = self;
        if kind_itself(copy) == Some(libc::S_IFDIR) && other.set(&[gone.get(), b".old"]) {
            // SAFETY: paths that end with a zero byte, in the scratch folder.
            unsafe { syscall!(libc::SYS_rename, copy.address(), other.address()) };
        }
    }

    /// Whether nothing is to be seen in the folder that has the path, but for copies.
    fn is_empty(&mut self) -> bool {
        let len = self.path.len;
        let mut empty = true;
        // SAFETY: a path that ends with a zero byte, a descriptor that is made here, and a buffer that is as long as said.
        unsafe {
            let flags = libc::O_DIRECTORY | libc::O_CLOEXEC;
            let list = syscall!(libc::SYS_openat, AT_FDCWD, self.path.address(), flags, 0);
            while empty && !failed(list) {
                let Text { bytes, .. } = &mut self.other;
                let count = syscall!(libc::SYS_getdents64, list, bytes.as_mut_ptr(), bytes.len());
                if count <= 0 {
                    break;
                }
                let mut at = 0;
                while let Some((name, rest)) = self.other.bytes.get(at..count as usize).and_then(entry) {
                    at = count as usize - rest.len();
                    if !matches!(name, b"." | b"..") {
                        empty &= self.path.walk(name) && self.find() && self.seen() == Seen::Nothing;
                        self.path.cut(len);
                    }
                }
            }
            if !failed(list) {
                syscall!(libc::SYS_close, list);
            }
        }
        self.find() && empty
    }

    /// Removes what the path stands for, a folder or anything else. A folder that is not there may be one that the program had
    /// made before the cut.
    pub(crate) fn hide(&mut self, folder: bool) -> isize {
        let remove = |copy: &Text| {
            let flags = if folder { libc::AT_REMOVEDIR } else { 0 };
            // SAFETY: a path that ends with a zero byte, in the scratch folder.
            unsafe { syscall!(libc::SYS_unlinkat, AT_FDCWD, copy.address(), flags) }
        };
        let result = match (self.seen(), kind_itself(&self.path)) {
            (Seen::Copy, _) => {
                // Nobody is to see the original in between.
                self.mark(folder);
                return remove(&self.copy);
            }
            (Seen::Original, Some(libc::S_IFDIR)) if !folder => error(EISDIR),
            (Seen::Original, Some(libc::S_IFDIR)) => {
                if remove(&self.copy) == error(ENOTEMPTY) || !self.is_empty() {
                    error(ENOTEMPTY)
                } else {
                    0
                }
            }
            (Seen::Original, Some(_)) if folder => error(ENOTDIR),
            (Seen::Original, Some(_)) => {
                self.clear();
                0
            }
            (Seen::Original, None) if folder => 0,
            (Seen::Original, None) | (Seen::Nothing, _) => error(ENOENT),
        };
        if !failed(result) {
            self.mark(folder);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_the_lists_of_the_kernel() {
        let mut list = Vec::new();
        for name in ["a", "longer name"] {
            let length = (NAME + name.len() + 1).next_multiple_of(8);
            list.extend([0; LENGTH]);
            list.extend((length as u16).to_ne_bytes());
            list.push(libc::DT_REG);
            list.extend(name.bytes());
            list.resize(list.len() + length - NAME - name.len(), 0);
        }
        let (first, rest) = entry(&list).unwrap();
        let (second, end) = entry(rest).unwrap();
        assert_eq!((first, second, end), (&b"a"[..], &b"longer name"[..], &[][..]));
        assert_eq!((entry(end), entry(&list[..20])), (None, None));
    }
}
