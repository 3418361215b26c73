//! Children of this process. One of the program's that runs at a cut is in no image; those that the MPI library has started
//! for itself are not the program's, nor those of a script that has become the program, as a shell's `>(filter)`.
use crate::Error;
use std::collections::BTreeSet;
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

fn of_others() -> MutexGuard<'static, BTreeSet<u32>> {
    static OF_OTHERS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
    OF_OTHERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes those that run now for a script's: to be called before the program runs.
pub(crate) fn prepare() {
    of_others().extend(running());
}

/// Does something in which only the library may start processes.
pub fn of_library<T>(act: impl FnOnce() -> T) -> T {
    let before = running();
    let result = act();
    of_others().extend(running().difference(&before));
    result
}

/// The processes that this one's threads have started and that have not ended; none where the kernel does not tell.
fn running() -> BTreeSet<u32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let pids: Vec<u32> = lists.flat_map(|list| numbers(&list)).collect();
    pids.into_iter().filter(|&pid| runs(pid)).collect()
}

fn numbers(list: &str) -> Vec<u32> {
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Whether a process has not ended: one that has waits only to be asked for.
fn runs(pid: u32) -> bool {
    state_and_parent(pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

/// The letter for what a process does, and its parent; none if there is no such process.
pub fn state_and_parent(pid: u32) -> Option<(char, u32)> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // They stand after the name, which may hold any bytes.
    let name_ends = line.iter().rposition(|&byte| byte == b')')?;
    let mut words = str::from_utf8(&line[name_ends + 1..]).ok()?.split_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

/// Refuses a cut at which a child of the program runs.
///
/// # Errors
/// If there is one.
pub fn none_runs() -> Result<(), Error> {
    match running().difference(&of_others()).next() {
        Some(_) => Err(Error::Obstacle("a child process runs".into())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_with_a_name_of_any_bytes_has_a_parent() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join(OsStr::from_bytes(b") Z 1 \xff"));
        fs::copy("/bin/cat", &program).expect("there is cat");
        let mut child = Command::new(program).stdin(Stdio::piped()).spawn().expect("a child");
        let (state, parent) = state_and_parent(child.id()).expect("it runs");
        assert_eq!((state == 'Z', parent), (false, std::process::id()));
        drop(child.stdin.take());
        child.wait().expect("its end");
        assert_eq!(state_and_parent(child.id()), None);
    }

    #[test]
    fn a_child_is_seen_until_it_ends() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a child");
        assert!(running().contains(&child.id()));
        drop(child.stdin.take());
        while runs(child.id()) {
            std::thread::yield_now();
        }
        assert!(!running().contains(&child.id()), "it has ended, and nobody has asked for it");
        child.wait().expect("its end");
        let mut later = of_library(|| Command::new("cat").stdin(Stdio::piped()).spawn()).expect("a child");
        assert!(of_others().contains(&later.id()));
        drop(later.stdin.take());
        later.wait().expect("its end");
    }
}
