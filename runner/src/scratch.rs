//! Folders for what is needed only while a command runs, in places that all ranks reach. One that is killed leaves them
//! behind, with memory of a program in them: a later one at the same place removes them.
use crate::output::note;
use anyhow::{Context, Result};
use nix::fcntl::{Flock, FlockArg};
use phasecast_trace::model::boot_id;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// How their names begin.
const PREFIX: &str = ".phasecast-";
/// The file in each that tells of its owner: it holds the boot id of the owner's machine, and is locked while the owner lives.
/// It has this name only once it is locked.
const OWNER: &str = "owner";

/// Such a folder, which only its owner may enter; removed when dropped.
pub struct Scratch {
    folder: TempDir,
    /// Not where files cannot be locked: then nobody else removes the folder.
    _owner: Option<Flock<File>>,
}

impl Scratch {
    /// In the working folder, because the ranks must all reach it.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn here() -> Result<Scratch> {
        std::env::current_dir()
            .and_then(|place| Scratch::beside(&place))
            .context("cannot make a folder in the working folder, where all ranks must be able to write")
    }

    /// In a folder.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn beside(place: &Path) -> io::Result<Scratch> {
        sweep(place);
        let private = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(place)?;
        let owner = own(folder.path()).ok();
        Ok(Scratch { folder, _owner: owner })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Makes this process the owner of a folder. Programs that it starts do not inherit the lock.
fn own(folder: &Path) -> io::Result<Flock<File>> {
    let unlocked = folder.join("owner.part");
    let mut file = File::create_new(&unlocked)?;
    file.write_all(boot_id().as_bytes())?;
    let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error)?;
    fs::rename(unlocked, folder.join(OWNER))?;
    Ok(lock)
}

/// Removes what processes of this machine that are no more have left in a folder.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let named = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        if named && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let folder = entry.path();
            if let Some(_alone) = abandoned(&folder).filter(|_| remove(&folder).is_ok()) {
                note(&format!("{} is removed: a phasecast that was killed had left it", folder.display()));
            }
        }
    }
}

/// Removes a folder under another name: ranks that live on for a moment put nothing more into it.
fn remove(folder: &Path) -> io::Result<()> {
    let left = folder.with_extension("left");
    fs::rename(folder, &left)?;
    fs::remove_dir_all(left)
}

/// The lock of a folder's owner, if that is gone. Of other machines' processes, and of those before this one was started,
/// nobody here can tell.
fn abandoned(folder: &Path) -> Option<Flock<File>> {
    let mut file = File::options().read(true).write(true).open(folder.join(OWNER)).ok()?;
    let (mut of, here) = (String::new(), boot_id());
    file.read_to_string(&mut of).ok()?;
    if here.is_empty() || of != here {
        return None;
    }
    Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn only_what_nobody_owns_any_more_is_removed() {
        let place = tempfile::tempdir().expect("a folder");
        let left_with = |boot: &str| {
            let Scratch { folder, _owner: owner } = Scratch::beside(place.path()).expect("a folder");
            drop(owner);
            fs::write(folder.path().join(OWNER), boot).expect("it is there");
            folder.keep()
        };
        let owned = Scratch::beside(place.path()).expect("a folder");
        let elsewhere = left_with("another machine");
        let strange = place.path().join(".phasecast-notes");
        fs::create_dir(&strange).expect("a folder");
        let left = left_with(&boot_id());
        fs::write(left.join("image"), "a secret").expect("it is there");
        let stop = AtomicBool::new(false);
        let next = std::thread::scope(|scope| {
            // A rank that lives on for a moment.
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let _ = fs::write(left.join("progress"), "7");
                    let _ = fs::remove_file(left.join("progress"));
                }
            });
            let next = Scratch::beside(place.path());
            stop.store(true, Ordering::Relaxed);
            next.expect("a folder")
        });
        assert!(!left.exists());
        for kept in [owned.path(), &elsewhere, &strange, next.path()] {
            assert!(kept.exists(), "{}", kept.display());
        }
        let mode = fs::metadata(next.path()).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
