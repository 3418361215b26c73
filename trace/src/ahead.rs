//! Blocks of many ranks made ahead of a consumer that takes them in an order of its own. Memory is bounded by two blocks
//! of each rank.
use crossbeam_channel::Receiver;
use std::sync::{Mutex, PoisonError};

/// Gives the next block of a rank: one that was made ahead, or else made now rather than waited for.
pub type Blocks<'a, B> = Box<dyn FnMut(usize) -> B + 'a>;

/// Calls `body` with what gives the next block of a rank, which `block` makes of the rank's source; with more than one
/// thread, all but one make blocks ahead of it. The blocks of a rank come in their order.
pub fn with_blocks<S: Send, B: Send, R>(
    mut sources: Vec<S>,
    threads: usize,
    block: impl Fn(&mut S) -> B + Sync,
    body: impl FnOnce(Blocks<'_, B>) -> R,
) -> R {
    if threads <= 1 {
        return body(Box::new(move |rank| block(&mut sources[rank])));
    }
    let ranks = sources.len();
    let (requests, wanted) = crossbeam_channel::unbounded::<usize>();
    let (mut blocks, mut shared) = (Vec::with_capacity(ranks), Vec::with_capacity(ranks));
    for source in sources {
        let (sender, receiver) = crossbeam_channel::unbounded::<B>();
        blocks.push(receiver);
        shared.push(Mutex::new((source, sender)));
    }
    for rank in (0..ranks).chain(0..ranks) {
        let _ = requests.send(rank);
    }
    std::thread::scope(|scope| {
        let (shared, block) = (&shared, &block);
        for _ in 1..threads {
            let wanted = wanted.clone();
            scope.spawn(move || {
                for rank in wanted {
                    // The lock is held until the block is on its way, so that a rank's blocks stay in order.
                    let Ok(mut source) = shared[rank].lock() else { return };
                    let made = block(&mut source.0);
                    if source.1.send(made).is_err() {
                        return;
                    }
                }
            });
        }
        drop(wanted);
        body(Box::new(move |rank| {
            let ahead = |blocks: &[Receiver<B>]| {
                let made = blocks[rank].try_recv().ok()?;
                // There is no one to ask once the last worker has gone: then blocks are made here.
                let _ = requests.send(rank);
                Some(made)
            };
            if let Some(made) = ahead(&blocks) {
                return made;
            }
            let mut source = shared[rank].lock().unwrap_or_else(PoisonError::into_inner);
            ahead(&blocks).unwrap_or_else(|| block(&mut source.0))
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    #[test]
    fn blocks_come_in_order_whatever_the_number_of_threads() {
        for threads in 1..4 {
            let sources: Vec<Range<u32>> = (0..5).map(|rank| rank * 100..rank * 100 + 50).collect();
            let taken = with_blocks(sources, threads, Iterator::next, |mut next| {
                // Ranks in turn, the last one first, then all that is left of rank 0.
                let mut taken: Vec<Option<u32>> = (0..20).map(|at| next(4 - at % 5)).collect();
                taken.extend((0..47).map(|_| next(0)));
                taken
            });
            let turns = (0..20u32).map(|at| Some((4 - at % 5) * 100 + at / 5));
            let rest = (4..50).map(Some).chain([None]);
            assert_eq!(taken, turns.chain(rest).collect::<Vec<_>>(), "{threads} threads");
        }
    }
}
