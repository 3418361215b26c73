//! Reads many stretches of pages at once, on all cores that this process may use.
use crate::{ImageError, PAGE, PageHash};
use std::num::NonZero;
use std::sync::Mutex;
use std::thread;

/// Pages that are read, checked and unpacked in one go, while they are in the cache; a block of a packed set.
pub const BLOCK: u64 = 64;
/// Fewer bytes than this are read without starting threads.
const ALONE: usize = 4 << 20;
const MOST_THREADS: usize = 8;

/// What is done to memory just before pages are read to it.
pub type Prepare<'a> = dyn Fn(&mut [u8]) + Sync + 'a;

/// Pages that are wanted.
#[derive(Debug)]
pub struct Piece<'a> {
    /// Number of the first in the rank's store.
    pub page: u64,
    /// Their hashes, if they are to be compared (a packed set has checksums of its own and needs none).
    pub hashes: &'a [PageHash],
    /// Where they go: whole pages.
    pub out: &'a mut [u8],
}

impl<'a> Piece<'a> {
    /// How many pages.
    pub fn pages(&self) -> u64 {
        (self.out.len() / PAGE) as u64
    }

    /// The first `pages` of it, and the rest.
    pub(crate) fn split(self, pages: u64) -> (Piece<'a>, Piece<'a>) {
        let pages = pages.min(self.pages()) as usize;
        let (hashes, other_hashes) = self.hashes.split_at(pages.min(self.hashes.len()));
        let (out, other) = self.out.split_at_mut(pages * PAGE);
        let rest = Piece { page: self.page.saturating_add(pages as u64), hashes: other_hashes, out: other };
        (Piece { page: self.page, hashes, out }, rest)
    }
}

/// Cuts pieces so that none crosses a multiple of [`BLOCK`] and sorts them by `page`; what belongs to one block makes a group.
pub(crate) fn groups(pieces: Vec<Piece<'_>>) -> Vec<Vec<Piece<'_>>> {
    let mut parts = Vec::with_capacity(pieces.len());
    for mut rest in pieces {
        while !rest.out.is_empty() {
            let room = BLOCK - rest.page % BLOCK;
            let (part, other) = rest.split(room);
            parts.push(part);
            rest = other;
        }
    }
    parts.sort_unstable_by_key(|part| part.page);
    let mut groups: Vec<Vec<Piece<'_>>> = Vec::new();
    for part in parts {
        match groups.last_mut() {
            Some(group) if group[0].page / BLOCK == part.page / BLOCK => group.push(part),
            _ => groups.push(vec![part]),
        }
    }
    groups
}

/// Gives every item to `work` on some thread, in about their order. `state` makes what a thread keeps.
///
/// # Errors
/// The first error of any thread; the others then stop.
pub(crate) fn on_all_cores<T: Send, S>(
    items: Vec<T>,
    bytes: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) -> Result<(), ImageError> + Sync,
) -> Result<(), ImageError> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
    if bytes < ALONE || cores == 1 {
        let mut state = state();
        return items.into_iter().try_for_each(|item| work(&mut state, item));
    }
    let queue = Mutex::new(items.into_iter());
    let failed = Mutex::new(None);
    let run = || {
        let mut state = state();
        loop {
            let item = lock(&queue).next();
            let Some(item) = item.filter(|_| lock(&failed).is_none()) else { return };
            if let Err(error) = work(&mut state, item) {
                lock(&failed).get_or_insert(error);
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..cores {
            // If no thread can be made, those that there are do the work.
            let _ = thread::Builder::new().spawn_scoped(scope, run);
        }
        run();
    });
    match failed.into_inner() {
        Ok(None) => Ok(()),
        Ok(Some(error)) => Err(error),
        Err(poisoned) => poisoned.into_inner().map_or(Ok(()), Err),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
