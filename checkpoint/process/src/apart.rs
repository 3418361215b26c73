//! Files of a replayed program for the host: what stands for them in the scratch folder, for descriptors and MPI files that
//! are opened again and for what MPI opens and deletes by name.
use crate::overlay::{self, Opened, Seen};
pub use crate::overlay::{lacks, note};
use crate::plain::copy_data;
pub use crate::plain::is_special;
use crate::space::PAGE;
use crate::sys::{error, failed};
use libc::{EEXIST, ENOENT, c_int};
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind::AlreadyExists};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where the copy of a file is or would be, which is kept apart; none if no program is replayed or for devices.
pub fn copy_of(path: &Path) -> Option<PathBuf> {
    both(path).map(|(copy, _)| copy)
}

/// Likewise, with where the original is.
fn both(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut buffers = overlay::of(path)?;
    buffers.follow();
    Some((buffers.copy.path(), buffers.path.path()))
}

/// Makes sure that there is a copy of the first `size` bytes of a file: `content`, or else what is found under its name,
/// or on a machine that never saw it zeros. A copy that is there stays: all ranks may ask for it.
///
/// # Errors
/// If it cannot be made.
pub fn copy(path: &Path, size: u64, content: Option<&[u8]>) -> io::Result<PathBuf> {
    let Some((copy, path)) = both(path) else { return Ok(path.to_owned()) };
    if copy.exists() {
        return Ok(copy);
    }
    let folder = copy.parent().unwrap_or(&copy);
    fs::create_dir_all(folder)?;
    let draft = tempfile::NamedTempFile::new_in(folder)?;
    match content {
        // Zeros are left out: holes stay holes.
        Some(content) => {
            let mut pages = content.chunks(PAGE).enumerate().filter(|(_, page)| page.iter().any(|byte| *byte != 0));
            pages.try_for_each(|(at, page)| draft.as_file().write_all_at(page, (at * PAGE) as u64))?;
        }
        None if path.is_file() => {
            let from = File::open(path)?;
            let mode = from.metadata()?.permissions().mode() & 0o777 | 0o600;
            draft.as_file().set_permissions(Permissions::from_mode(mode))?;
            // SAFETY: open files, at their beginnings.
            let copied = unsafe { copy_data(from.as_raw_fd() as isize, draft.as_raw_fd() as isize, size as usize) };
            if failed(copied) {
                return Err(io::Error::from_raw_os_error(-copied as i32));
            }
        }
        None => {}
    }
    draft.as_file().set_len(size)?;
    match fs::hard_link(draft.path(), &copy) {
        Err(error) if error.kind() != AlreadyExists => Err(error),
        _ => Ok(copy),
    }
}

/// What stands for a file that the program reads. One that is shorter than at the cut is another one.
///
/// # Errors
/// If it is not there, or is another one.
pub fn as_long(path: &Path, size: u64) -> io::Result<PathBuf> {
    let path = find(path);
    let found = if size > 0 { fs::metadata(&path)?.len() } else { 0 };
    if found < size {
        return Err(io::Error::other(format!("it has {found} bytes, and had {size} when the image was made")));
    }
    Ok(path)
}

/// Marks a file as removed that was so at the cut.
pub(crate) fn gone(path: &Path) {
    if let Some(mut buffers) = overlay::of(path) {
        let folder = buffers.path.path().is_dir();
        buffers.mark(folder);
    }
}

/// Makes a link that was there at the cut, unless another rank has.
pub(crate) fn link(path: &Path, text: &Path) -> io::Result<()> {
    // Another rank may have put there what it wrote through the link.
    if let Some(mut buffers) = overlay::of(path) {
        buffers.clear();
        buffers.turn_all();
    }
    made(path, |copy| std::os::unix::fs::symlink(text, copy))
}

/// Makes a path another name of a file, unless another rank has.
pub(crate) fn same(path: &Path, other: &Path) -> io::Result<()> {
    made(path, |copy| fs::hard_link(copy_of(other).ok_or(io::ErrorKind::NotFound)?, copy))
}

/// Makes a folder that was there at the cut, where there is none.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    if path.is_dir() { Ok(()) } else { made(path, fs::create_dir) }
}

fn made(path: &Path, make: impl FnOnce(PathBuf) -> io::Result<()>) -> io::Result<()> {
    let copy = overlay::of(path).map(|buffers| buffers.copy.path());
    let folder = copy.as_deref().and_then(Path::parent).map_or(Ok(()), fs::create_dir_all);
    match folder.and_then(|()| copy.map_or(Ok(()), make)) {
        Err(error) if error.kind() != AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Where a file is read: its copy if there is one.
pub fn find(path: &Path) -> PathBuf {
    let Some(mut buffers) = overlay::of(path) else { return path.to_owned() };
    buffers.follow();
    if buffers.seen() == Seen::Copy { buffers.copy.path() } else { buffers.path.path() }
}

/// The file that a program gets that opens a path with the flags of `open`: its copy, which is made if it is to be written,
/// or none where the original itself is right. It is not there if the program has removed it. `removed`: the program has it
/// removed when it is closed.
///
/// # Errors
/// If it cannot be copied.
pub fn opened(path: &Path, flags: c_int, removed: bool) -> io::Result<Option<PathBuf>> {
    let Some(mut buffers) = overlay::of(path) else { return Ok(None) };
    buffers.follow();
    match buffers.choose(flags) {
        Opened::Given => Ok(buffers.followed.then(|| buffers.path.path())),
        Opened::Failed(result) if result == error(EEXIST) => Ok(None),
        Opened::Failed(result) if result != error(ENOENT) => Err(io::Error::from_raw_os_error(-result as i32)),
        _ => {
            if removed {
                buffers.mark(false);
            }
            Ok(Some(buffers.copy.path()))
        }
    }
}

/// Removes what stands for a path. False if there is nothing to remove.
pub fn remove(path: &Path) -> bool {
    overlay::of(path).is_some_and(|mut buffers| !failed(buffers.hide(false)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn files_of_a_replayed_program_are_kept_apart() {
        let folder = tempfile::tempdir().unwrap();
        let (original, missing) = (folder.path().join("original"), folder.path().join("missing"));
        fs::write(&original, b"0123456789").unwrap();
        assert_eq!(copy_of(&original), None);
        assert!(opened(&original, libc::O_RDWR, false).unwrap().is_none() && !remove(&original));
        crate::own::prepare().unwrap();
        let scratch = folder.path().join("scratch");
        fs::create_dir(&scratch).unwrap();
        overlay::enable(&scratch);

        assert_eq!(opened(&original, libc::O_RDONLY, false).unwrap(), None);
        assert_eq!(opened(&original, libc::O_CREAT | libc::O_EXCL, false).unwrap(), None);
        let first = copy(&original, 4, None).unwrap();
        assert_eq!((fs::read(&first).unwrap().as_slice(), find(&original)), (&b"0123"[..], first.clone()));
        fs::write(&first, b"new").unwrap();
        assert_eq!(fs::read(copy(&original, 3, None).unwrap()).unwrap(), b"new");
        assert_eq!(fs::read(copy(&missing, 3, None).unwrap()).unwrap(), [0; 3]);
        assert_eq!(opened(&original, libc::O_RDONLY, false).unwrap(), Some(first.clone()));
        assert!(remove(&original) && !remove(&original) && !first.exists());
        assert_eq!(opened(&original, libc::O_RDONLY, false).unwrap(), Some(first.clone()));
        assert_eq!(fs::read(copy(&original, 2, Some(b"saved")).unwrap()).unwrap(), b"sa");
        assert_eq!(opened(&original, libc::O_WRONLY, true).unwrap(), Some(first.clone()));
        fs::remove_file(&first).unwrap();
        assert_eq!(opened(&original, libc::O_RDONLY, false).unwrap(), Some(first));

        let (newest, made) = (folder.path().join("newest"), folder.path().join("made"));
        link(&newest, Path::new("original")).unwrap();
        link(&newest, Path::new("missing")).unwrap();
        assert_eq!(copy_of(&newest), copy_of(&original));
        assert!(remove(&newest) && !remove(&newest) && copy_of(&newest) != copy_of(&original));
        super::folder(&made).unwrap();
        super::folder(folder.path()).unwrap();
        assert!(copy_of(&made).unwrap().is_dir() && !remove(&made) && find(folder.path()) == folder.path());

        // Holes stay holes, whoever copies.
        let sparse = ["sparse", "again"].map(|name| folder.path().join(name));
        for path in &sparse {
            let file = File::create(path).unwrap();
            file.set_len(9 << 20).unwrap();
            file.write_all_at(b"deep", 5 << 20).unwrap();
        }
        let all = fs::read(&sparse[0]).unwrap();
        let held = copy(&folder.path().join("held"), 9 << 20, Some(&all)).unwrap();
        let first_written = opened(&sparse[1], libc::O_RDWR, false).unwrap().unwrap();
        let copies = [copy(&sparse[0], 8 << 20, None).unwrap(), first_written, held];
        for (copied, length) in copies.iter().zip([8 << 20, 9 << 20, 9 << 20]) {
            let content = fs::read(copied).unwrap();
            assert!(content.len() == length && content[5 << 20..].starts_with(b"deep"));
            assert!(fs::metadata(copied).unwrap().blocks() * 512 < 1 << 20);
        }
        assert!(as_long(&sparse[1], 9 << 20).is_ok() && as_long(&sparse[1], (9 << 20) + 1).is_err());
        assert!(as_long(&folder.path().join("nowhere"), 1).is_err());

        // The program was in a folder that is missing here.
        overlay::stand_for(Path::new("/missing/run"), folder.path());
        let of_base = |name: &str| Path::new("/missing/run").join(name);
        fs::write(folder.path().join("input"), b"12345").unwrap();
        assert_eq!(find(&of_base("input")), folder.path().join("input"));
        assert_eq!(opened(&of_base("input"), libc::O_RDONLY, false).unwrap(), Some(folder.path().join("input")));
        assert_eq!(opened(&folder.path().join("input"), libc::O_RDONLY, false).unwrap(), None);
        let log = copy(&of_base("log"), 3, Some(b"old")).unwrap();
        assert_eq!((find(&folder.path().join("log")), find(&of_base("log"))), (log.clone(), log));
        let part = copy(&of_base("input"), 2, None).unwrap();
        assert_eq!((fs::read(&part).unwrap().as_slice(), find(&folder.path().join("input"))), (&b"12"[..], part));
        assert_ne!(copy_of(Path::new("/missing/runs")), copy_of(&folder.path().join("s")));

        overlay::disable();
        assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
        assert_eq!((copy_of(&original), fs::read(&original).unwrap().as_slice()), (None, &b"0123456789"[..]));
    }
}
