//! What a run writes goes into its images: the files that it has opened for writing, as they are at the cut, since by its end
//! they may be gone or others, and on another machine they never were.
use crate::resolving::within;
use crate::same::{Number, number};
use crate::text::{START, Text, hash};
use crate::{apart, overlay, working_folder};
use serde::{Deserialize, Serialize};
use std::collections::btree_map::{BTreeMap, Entry};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, SystemTime};

/// When the host began. A file that was changed later was changed in this run.
static BEGAN: OnceLock<SystemTime> = OnceLock::new();

/// From now on a file that changes has changed in this run.
pub(crate) fn prepare() {
    BEGAN.get_or_init(SystemTime::now);
    working_folder::started();
}

/// Files that the program has open for reading are saved whole up to this size, in bytes.
const LARGEST_READ: u64 = 64 << 20;
/// Of all others so many bytes are saved: most are results, which nobody reads, and every image has them anew.
const MOST_OTHERS: u64 = 8 << 20;

/// Files are noted up to this number; those opened later are taken as a restart finds them.
const MOST: usize = 4096;
/// Bytes of their paths.
const ROOM: usize = 256 << 10;

/// Paths that a program has opened for writing, each once. The trap handler adds to it: nothing is allocated.
pub(crate) struct Paths {
    hashes: [u64; MOST],
    /// How it came to each: 0 if something was there, else the cut before plus 1.
    made: [u32; MOST],
    count: usize,
    /// One after the other, each with a zero byte behind it.
    text: [u8; ROOM],
    len: usize,
}

impl Paths {
    pub(crate) const fn new() -> Self {
        Self { hashes: [0; MOST], made: [0; MOST], count: 0, text: [0; ROOM], len: 0 }
    }

    /// Adds a path. `made`: the last cut before the program has made what it names, if it has.
    pub(crate) fn add(&mut self, path: &[u8], made: Option<u32>) {
        let hash = hash(path, START);
        let (Some(known), Some(room)) = (self.hashes.get(..self.count), self.text.get_mut(self.len..)) else { return };
        if known.contains(&hash) || self.count == MOST || path.len() >= room.len() {
            return;
        }
        room[..path.len()].copy_from_slice(path);
        room[path.len()] = 0;
        self.len += path.len() + 1;
        self.hashes[self.count] = hash;
        self.made[self.count] = made.map_or(0, |cut| cut.saturating_add(1));
        self.count += 1;
    }

    /// Adds what the paths within a folder have become, which was moved.
    pub(crate) fn moved(&mut self, [from, to]: [&[u8]; 2], made: Option<u32>, path: &mut Text) {
        let (mut at, end) = (0, self.len);
        while let Some(known) = self.text.get(at..end).filter(|rest| !rest.is_empty()) {
            let known = known.split(|byte| *byte == 0).next().unwrap_or(&[]);
            at += known.len() + 1;
            if within(known, from).is_some_and(|rest| path.set(&[to, rest])) {
                self.add(path.get(), made);
            }
        }
    }

    /// The paths in the order in which they came.
    pub(crate) fn list(&self) -> Vec<PathBuf> {
        let text = self.text.get(..self.len).unwrap_or(&[]);
        text.split(|byte| *byte == 0).filter(|p| !p.is_empty()).map(|p| PathBuf::from(OsStr::from_bytes(p))).collect()
    }

    /// Those that the program has made after a cut.
    pub(crate) fn made(&self) -> Vec<MadeAfter> {
        let made = self.list().into_iter().zip(self.made);
        made.filter_map(|(path, after)| Some(MadeAfter { cut: after.checked_sub(1)?, path })).collect()
    }
}

/// A file, link or folder that a run has made after it was saved: a restart of an earlier cut must not find it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MadeAfter {
    /// The number of the last cut before it was made.
    pub cut: u32,
    /// Its absolute path.
    pub path: PathBuf,
}

/// A file that a run has written, at a cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Its absolute path.
    pub path: PathBuf,
    /// What it is.
    pub content: Content,
}

/// What has a path at a cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// Nothing any more.
    Gone,
    /// A file, with what is in it.
    File(#[serde(with = "serde_bytes")] Vec<u8>),
    /// A symbolic link, with where it leads, as the program gave it.
    Link(PathBuf),
    /// A folder.
    Folder,
    /// The file that is told under this other name of it.
    Same(PathBuf),
}

/// What this run has written, for an image: the files of `read`, which the program has open for reading, each up to
/// [`LARGEST_READ`] bytes; then those that are only noted, the newest first, up to [`MOST_OTHERS`]; links and folders that it
/// has made; and what is gone. To close a file ends all locks (`F_SETLK`) that a process has on it, so that this is done by a
/// thread with a table of descriptors of its own.
pub(crate) fn save(read: &[PathBuf]) -> Vec<Written> {
    let noted = overlay::written();
    if read.is_empty() && noted.is_empty() {
        return Vec::new();
    }
    thread::scope(|scope| {
        let saved = scope.spawn(|| {
            // SAFETY: copies a table. Where that fails, a lock may be lost.
            unsafe { libc::unshare(libc::CLONE_FILES) };
            gather(read, noted)
        });
        saved.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn gather(read: &[PathBuf], written: Vec<PathBuf>) -> Vec<Written> {
    let mut all: Vec<Written> = Vec::new();
    let is_file = |path: &Path| fs::metadata(path).ok().filter(|facts| facts.is_file() && is_new(facts));
    for path in read.iter().filter_map(|path| std::path::absolute(path).ok()) {
        // Those of /proc say that they are empty, and are not to be read.
        let saved = is_file(&path).filter(|facts| (1..=LARGEST_READ).contains(&facts.len()));
        if saved.is_some() && all.iter().all(|file| file.path != path) {
            all.extend(content(&path));
        }
    }
    let mut noted = Vec::new();
    for path in written {
        // What is written by a link's name is where it leads.
        let (made, path) = made(path);
        all.extend(made);
        noted.extend(path);
    }
    // What was written through a link within a path is there by its own, too, which holds without the link.
    let mut aliases = Vec::new();
    for path in noted.clone() {
        if let Some(real) = without_links(&path).filter(|real| *real != path) {
            if real.symlink_metadata().is_ok() {
                noted.retain(|named| *named != path);
                aliases.push(Written { path, content: Content::Same(real.clone()) });
            }
            noted.push(real);
        }
    }
    noted.retain(|path| all.iter().all(|file| file.path != *path));
    noted.sort_unstable();
    noted.dedup();
    let (there, gone): (Vec<_>, Vec<_>) = noted.into_iter().partition(|path| path.symlink_metadata().is_ok());
    let mut there: Vec<(PathBuf, Metadata)> =
        there.into_iter().filter_map(|path| is_file(&path).map(|facts| (path, facts))).collect();
    there.sort_by_key(|(_, facts)| std::cmp::Reverse(facts.modified().ok()));
    let mut room = MOST_OTHERS;
    for (path, facts) in there {
        if let Some(left) = room.checked_sub(facts.len()) {
            room = left;
            all.extend(content(&path));
        }
    }
    tell_once(&mut all);
    aliases.retain(|alias| all.iter().any(|file| alias.content == Content::Same(file.path.clone())));
    all.extend(aliases);
    all.extend(gone.into_iter().map(|path| Written { path, content: Content::Gone }));
    all
}

/// The path of what has this name in the folder to which its path leads.
fn without_links(path: &Path) -> Option<PathBuf> {
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}

/// Of a file that has several of these names, only the first has what is in it.
fn tell_once(all: &mut [Written]) {
    let mut first: BTreeMap<Number, PathBuf> = BTreeMap::new();
    for file in all.iter_mut().filter(|file| matches!(file.content, Content::File(_))) {
        let Some(facts) = fs::metadata(&file.path).ok().filter(|facts| facts.nlink() > 1) else { continue };
        match first.entry(number(&facts)) {
            Entry::Vacant(place) => _ = place.insert(file.path.clone()),
            Entry::Occupied(other) => file.content = Content::Same(other.get().clone()),
        }
    }
}

/// Files that the program has opened for reading since it was first saved and has not made itself: those that a restart may
/// open, too.
pub fn read_later() -> Vec<PathBuf> {
    let mut read = overlay::read();
    read.retain(|path| fs::metadata(path).is_ok_and(|facts| facts.is_file() && !is_new(&facts)));
    read
}

/// What the program has made since it was first saved, and what is there still.
pub fn made_later() -> Vec<MadeAfter> {
    let mut made = overlay::made();
    made.retain(|made| made.path.symlink_metadata().is_ok());
    made
}

/// What has a path that was noted, if it is a link or folder of this run, and the path of the file that may have been written,
/// if any.
fn made(path: PathBuf) -> (Option<Written>, Option<PathBuf>) {
    let Some(facts) = path.symlink_metadata().ok().filter(is_new) else { return (None, Some(path)) };
    if facts.is_dir() {
        return (Some(Written { path, content: Content::Folder }), None);
    }
    match fs::read_link(&path) {
        Ok(text) => {
            let target = path.parent().map(|folder| folder.join(&text));
            (Some(Written { path, content: Content::Link(text) }), target)
        }
        Err(_) => (None, Some(path)),
    }
}

/// What cannot be read is taken as a restart finds it.
fn content(path: &Path) -> Option<Written> {
    Some(Written { path: path.to_owned(), content: Content::File(fs::read(path).ok()?) })
}

/// Whether a file was changed in this run. File systems' clocks may be a little behind.
fn is_new(file: &Metadata) -> bool {
    let began = BEGAN.get().copied().unwrap_or(SystemTime::UNIX_EPOCH);
    file.modified().is_ok_and(|changed| changed + Duration::from_secs(1) >= began)
}

/// Makes the copies of what a run had made and written, and marks what it had removed.
///
/// # Errors
/// If a copy cannot be made: with the file's path.
pub(crate) fn restore(all: &[Written]) -> Result<(), (PathBuf, io::Error)> {
    // By a link, others may be named.
    let leads = |file: &&Written| matches!(file.content, Content::Link(_) | Content::Folder);
    for file in all.iter().filter(leads).chain(all.iter().filter(|file| !leads(file))) {
        let made = match &file.content {
            Content::File(content) => apart::copy(&file.path, content.len() as u64, Some(content)).map(|_| ()),
            Content::Link(text) => apart::link(&file.path, text),
            Content::Folder => apart::folder(&file.path),
            Content::Same(other) => apart::same(&file.path, other),
            Content::Gone => {
                apart::gone(&file.path);
                Ok(())
            }
        };
        made.map_err(|cause| (file.path.clone(), cause))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::fd::AsRawFd;

    proptest! {
        #[test]
        fn paths_are_kept_once_in_their_order(paths in prop::collection::vec("/[a-c]{1,3}", 0..60)) {
            let mut list = Box::new(Paths::new());
            let mut expected: Vec<PathBuf> = Vec::new();
            for path in &paths {
                list.add(path.as_bytes(), None);
                if !expected.contains(&PathBuf::from(path)) {
                    expected.push(path.into());
                }
            }
            prop_assert_eq!(list.list(), expected);
        }
    }

    #[test]
    fn what_is_moved_with_its_folder_is_known_by_its_new_name() {
        let mut list = Box::new(Paths::new());
        ["/a/x", "/ab", "/a/y/z", "/a"].iter().for_each(|path| list.add(path.as_bytes(), None));
        list.moved([b"/a", b"/c/d"], Some(3), &mut Text::new());
        assert_eq!(list.list()[4..], ["/c/d/x", "/c/d/y/z", "/c/d"].map(PathBuf::from));
        assert_eq!(list.made()[1], MadeAfter { cut: 3, path: "/c/d/y/z".into() });
    }

    #[test]
    fn saving_a_file_leaves_locks_on_it() {
        let named = tempfile::NamedTempFile::new().unwrap();
        fs::write(named.path(), b"1").unwrap();
        // SAFETY: a record of numbers.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = libc::F_WRLCK as _;
        // SAFETY: an open file and a record of this process.
        assert_eq!(unsafe { libc::fcntl(named.as_file().as_raw_fd(), libc::F_SETLK, &raw const lock) }, 0);
        let saved = save(&[named.path().into()]);
        assert_eq!(saved, [Written { path: named.path().into(), content: Content::File(b"1".into()) }]);
        let other = fs::OpenOptions::new().write(true).open(named.path()).unwrap();
        // SAFETY: as above. A lock of the process is in the way of one of an open file.
        assert_eq!(unsafe { libc::fcntl(other.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) }, 0);
        assert_eq!(i32::from(lock.l_type), libc::F_WRLCK);
    }

    #[test]
    fn links_and_folders_of_the_run_are_told_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("there", at("link")).unwrap();
        let link = Written { path: at("link"), content: Content::Link("there".into()) };
        assert_eq!(made(at("link")), (Some(link), Some(at("there"))));
        let own = Written { path: folder.path().into(), content: Content::Folder };
        assert_eq!(made(folder.path().into()), (Some(own), None));
        fs::write(at("there"), b"1").unwrap();
        for file in ["there", "gone"] {
            assert_eq!(made(at(file)), (None, Some(at(file))));
        }
    }

    #[test]
    fn a_full_list_leaves_out_the_rest() {
        let mut list = Box::new(Paths::new());
        for i in 0..2 * MOST {
            list.add(format!("/{i}").as_bytes(), Some(i as u32));
        }
        assert_eq!(list.list().len(), MOST);
        list.add(b"/7", Some(0));
        assert_eq!(list.made()[7], MadeAfter { cut: 7, path: "/7".into() });
        let mut list = Box::new(Paths::new());
        for i in 0..100 {
            list.add(format!("/{i:04095}").as_bytes(), None);
        }
        assert_eq!(list.list().len(), ROOM / 4097);
    }
}
