//! Work over ranks (or other numbered tasks) in several threads, with results in order, so that the number of threads
//! never shows in them.
use crossbeam_channel::RecvTimeoutError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Tells how far the work is: units done, of how many in all.
pub type Progress<'a> = &'a dyn Fn(u64, u64);

/// A share of the whole work: a pass that starts where the ones before it ended.
pub struct Stage<'a> {
    progress: Progress<'a>,
    start: u64,
    of: u64,
}

impl<'a> Stage<'a> {
    /// A stage before which `start` of `of` units are done.
    pub fn new(progress: Progress<'a>, start: u64, of: u64) -> Stage<'a> {
        Stage { progress, start, of }
    }

    /// Tells that `done` units of this stage are done.
    pub fn tell(&self, done: u64) {
        (self.progress)((self.start + done).min(self.of), self.of);
    }
}

/// Runs `work(task, counter)` for the tasks 0 to `tasks` in `threads` threads; `work` adds what it has done to the
/// counter, which the calling thread passes on to `stage`.
///
/// # Errors
/// The first error by the order of the tasks.
pub fn map<T: Send, E: Send>(
    tasks: usize,
    threads: usize,
    stage: &Stage<'_>,
    work: impl Fn(usize, &AtomicU64) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let done = AtomicU64::new(0);
    if threads <= 1 || tasks <= 1 {
        let mut results = Vec::with_capacity(tasks);
        for task in 0..tasks {
            results.push(work(task, &done)?);
            stage.tell(done.load(Ordering::Relaxed));
        }
        return Ok(results);
    }
    let next = AtomicUsize::new(0);
    let (sender, receiver) = crossbeam_channel::unbounded();
    let mut results: Vec<Option<Result<T, E>>> = (0..tasks).map(|_| None).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(tasks) {
            let (sender, next, done, work) = (sender.clone(), &next, &done, &work);
            scope.spawn(move || {
                loop {
                    let task = next.fetch_add(1, Ordering::Relaxed);
                    if task >= tasks {
                        return;
                    }
                    if sender.send((task, work(task, done))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(Duration::from_millis(50)) {
                Ok((task, result)) => results[task] = Some(result),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            stage.tell(done.load(Ordering::Relaxed));
        }
    });
    results.into_iter().map(|result| result.expect("every task sends its result")).collect()
}
