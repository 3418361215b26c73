//! In which order a program touches its memory for the first time. The kernel gives pages out in that order: those of an array
//! that is touched by itself lie side by side in the machine's memory, those of arrays that are touched in turn do not, and
//! the processor is slower there. Memory that is restored is to lie as the program's own would.
//!
//! The page faults of the main thread are taken from the kernel while the program is saved, where it tells of them
//! (`kernel.perf_event_paranoid` of 2 at most). What was not seen counts as touched by itself.
use crate::memory::MemoryError;
use crate::restore_huge;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::Pid;
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler, data::Record};
use phasecast_image::{ImageError, PAGE, State};
use phasecast_process::{space, threads};
use phasecast_trace::codec;
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

/// Bytes for faults that are not taken yet. Without privileges a user may have about twice as much for each processor.
const BUFFER: usize = 256 << 10;
/// Pages of a block: of all of them it is said together how they were touched.
const BLOCK: u64 = 64;
/// Fewer pages of a block say nothing.
const FEW: u32 = 16;
/// Every so many pages of a block one is touched, then those beside them: none is to lie beside the one before it.
const STRIDE: usize = 7;
/// The section of an image that says which memory is [`Interleaved`].
const SECTION: &str = "interleaved";

/// The faults of a thread, as they come.
pub(crate) struct Touches(Arc<Mutex<Watch>>);

struct Watch {
    sampler: Sampler,
    order: Order,
}

impl Touches {
    /// Sees the page faults of a thread of this process from soon on; what it yields waits until it does, and is none where
    /// the kernel does not tell. The first watch on a machine takes the kernel ten milliseconds and more, in which it waits
    /// for all processors: so the thread that takes the faults is the one that waits.
    pub(crate) fn watch(thread: Pid) -> impl FnOnce() -> Option<Touches> {
        let (tell, told) = mpsc::channel();
        let take = move || {
            if let Some((watch, file)) = Watch::of(thread) {
                let watch = Arc::new(Mutex::new(watch));
                let _ = tell.send(Touches(Arc::clone(&watch)));
                while is_half_full(&file) && locked(&watch).take().is_some() {}
            }
        };
        let started = threads::without_signals(|| thread::Builder::new().name("touches".into()).spawn(take));
        move || started.ok().and_then(|_| told.recv().ok())
    }

    /// Puts into an image which memory of the program was so far touched in turn with other.
    pub(crate) fn save(&self, state: &mut State) {
        let ranges = self.interleaved();
        let own: Vec<Range<u64>> = ranges.into_iter().filter(|range| space::contains(range.start as usize)).collect();
        state.sections.insert(SECTION.into(), codec::to_bytes(&own));
    }

    fn interleaved(&self) -> Vec<Range<u64>> {
        let mut watch = locked(&self.0);
        let _ = watch.take();
        watch.order.interleaved()
    }
}

impl Drop for Touches {
    fn drop(&mut self) {
        // The thread sleeps from now on. If the kernel goes on counting, that costs a little time.
        let _ = locked(&self.0).sampler.disable();
    }
}

fn locked(watch: &Mutex<Watch>) -> MutexGuard<'_, Watch> {
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until there is much to take; no if there never will be.
fn is_half_full(file: &OwnedFd) -> bool {
    let mut files = [PollFd::new(file.as_fd(), PollFlags::POLLIN)];
    match poll(&mut files, PollTimeout::NONE) {
        Ok(_) => files[0].revents() == Some(PollFlags::POLLIN),
        Err(error) => error == Errno::EINTR,
    }
}

impl Watch {
    /// The watch of a thread, and its file.
    fn of(thread: Pid) -> Option<(Watch, OwnedFd)> {
        let mut builder = Builder::new(Software::PAGE_FAULTS);
        builder.observe_pid(thread.as_raw());
        builder.sample_period(1).sample(SampleFlag::ADDR).wakeup_watermark(BUFFER / 2);
        let mut sampler = builder.build().and_then(|counter| counter.sampled(BUFFER)).ok()?;
        // SAFETY: the sampler's own file, which is open during the call.
        let file = unsafe { BorrowedFd::borrow_raw(sampler.as_raw_fd()) }.try_clone_to_owned().ok()?;
        sampler.enable().ok()?;
        Some((Watch { sampler, order: Order::default() }, file))
    }

    /// Takes the faults that are there; none if they are not understood.
    fn take(&mut self) -> Option<()> {
        while let Some(record) = self.sampler.next_record() {
            if let Record::Sample(sample) = record.parse_record().ok()? {
                self.order.add(sample.addr()? / PAGE as u64);
            }
        }
        Some(())
    }
}

/// Ascending ranges of addresses, in whole blocks, whose pages were touched in turn with others.
#[derive(Debug, Default)]
pub(crate) struct Interleaved(Vec<Range<u64>>);

impl Interleaved {
    /// What an image says.
    ///
    /// # Errors
    /// If that is damaged.
    pub(crate) fn of(state: &State) -> Result<Interleaved, MemoryError> {
        let Some(bytes) = state.sections.get(SECTION) else { return Ok(Interleaved::default()) };
        let file = State::file_name(state.cut, state.rank);
        let damaged = |reason| ImageError::corrupt(Path::new(&file), format!("section {SECTION}: {reason}"));
        let ranges: Vec<Range<u64>> = codec::from_bytes(bytes).map_err(|error| damaged(error.to_string()))?;
        let ascend = ranges.is_sorted_by(|before, after| before.end <= after.start);
        if !ascend || ranges.iter().any(Range::is_empty) {
            return Err(damaged("its ranges do not ascend".into()).into());
        }
        Ok(Interleaved(ranges))
    }

    /// Has the kernel back memory that was just mapped with pages of its own, in the order in which the program had it.
    pub(crate) fn touch(&self, memory: Range<u64>) {
        let first = self.0.partition_point(|range| range.end <= memory.start);
        let mut at = memory.start;
        for range in self.0[first..].iter().take_while(|range| range.start < memory.end) {
            let (from, to) = (range.start.max(at), range.end.min(memory.end));
            restore_huge::touch(at, from - at, true);
            (from..to).step_by((BLOCK * PAGE as u64) as usize).for_each(|block| in_turn(block..to));
            at = to;
        }
        restore_huge::touch(at, memory.end - at, true);
    }
}

/// Touches the pages of a block so that none gets the place beside its neighbour's.
fn in_turn(memory: Range<u64>) {
    let pages = (memory.start..memory.end).step_by(PAGE).take(BLOCK as usize);
    (0..STRIDE).for_each(|first| pages.clone().skip(first).step_by(STRIDE).for_each(restore_huge::touch_write));
}

/// What is kept of the order: for each page whether it was touched, and whether right after the one before it.
#[derive(Default)]
struct Order {
    last: u64,
    blocks: BTreeMap<u64, Block>,
}

/// A bit for each page.
#[derive(Default)]
struct Block {
    touched: u64,
    next: u64,
}

impl Block {
    fn is_interleaved(&self) -> bool {
        let touched = self.touched.count_ones();
        touched >= FEW && 2 * self.next.count_ones() < touched
    }
}

impl Order {
    /// A page was touched; a later touch of the same counts, as it is of another page of the machine's.
    fn add(&mut self, page: u64) {
        let (block, bit) = (self.blocks.entry(page / BLOCK).or_default(), 1 << (page % BLOCK));
        block.touched |= bit;
        block.next = if page == self.last + 1 { block.next | bit } else { block.next & !bit };
        self.last = page;
    }

    fn interleaved(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for (&block, _) in self.blocks.iter().filter(|(_, block)| block.is_interleaved()) {
            let start = block * BLOCK * PAGE as u64;
            let end = start + BLOCK * PAGE as u64;
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::gettid;
    use std::ptr;

    /// First and last of blocks that follow one another.
    fn blocks(pages: impl IntoIterator<Item = u64>) -> Vec<[u64; 2]> {
        let mut order = Order::default();
        pages.into_iter().for_each(|page| order.add(page));
        order.interleaved().into_iter().map(|range| [range.start / BYTES, range.end / BYTES - 1]).collect()
    }

    const BYTES: u64 = BLOCK * PAGE as u64;

    #[test]
    fn pages_that_are_touched_in_turn_are_told_from_those_that_follow_one_another() {
        let (a, b) = (64, 640);
        assert_eq!(blocks(a..a + 64), [[0; 2]; 0]);
        assert_eq!(blocks((0..128).flat_map(|i| [a + i, b + i])), [[1, 2], [10, 11]]);
        // Two at a time, each of which has the other beside it; every second page; too few pages to say.
        assert_eq!(blocks((0..64).step_by(2).flat_map(|i| [a + i, a + i + 1, b + i, b + i + 1])), [[0; 2]; 0]);
        assert_eq!(blocks((0..64).step_by(2).map(|i| a + i)), [[1, 1]]);
        assert_eq!(blocks((0..15).map(|i| a + 2 * i)), [[0; 2]; 0]);
        // Given back and touched again, the other way.
        assert_eq!(blocks((0..64).flat_map(|i| [a + i, b + i]).chain(a..a + 64)), [[10, 10]]);
    }

    #[test]
    fn the_kernel_tells_of_a_threads_own_faults() {
        // Where it does not, memory is restored in the order of its addresses.
        let Some(touches) = Touches::watch(gettid())() else { return };
        let length = 8 * BYTES as usize;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, small pages of which are touched below.
        let at = unsafe {
            let at = libc::mmap(ptr::null_mut(), 2 * length, protection, flags, -1, 0);
            assert_ne!(at, libc::MAP_FAILED);
            libc::madvise(at, 2 * length, libc::MADV_NOHUGEPAGE);
            for page in (0..length).step_by(PAGE) {
                at.cast::<u8>().add(page).write_volatile(1);
            }
            for page in (0..length / 2).step_by(PAGE) {
                for half in 0..2 {
                    at.cast::<u8>().add(length + half * length / 2 + page).write_volatile(1);
                }
            }
            at as u64
        };
        let found = touches.interleaved();
        let is_interleaved = |address: u64| found.iter().any(|range| range.contains(&address));
        let middle = |of: usize| at + of as u64 + BYTES;
        assert!(!is_interleaved(middle(length / 2)));
        assert!(is_interleaved(middle(length)) && is_interleaved(middle(length + length / 2)), "{found:x?}");
        // SAFETY: the mapping of this test.
        unsafe { libc::munmap(at as *mut _, 2 * length) };
    }
}
