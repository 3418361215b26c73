//! Which processors threads may run on. A program that pins its threads does so once, when it makes them: an image says of
//! each to which of the processors that the launcher gave it is pinned, by their places among these, and a restart pins it to
//! those of the same places here.
use crate::sys::{failed, syscall};
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// As many processors a machine may have.
const MOST: usize = 8192;

/// A set of processors, as the kernel has it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mask([u64; MOST / 64]);

/// Places among the processors that the launcher gave, of the first 1024; none for a thread that is not pinned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places([u64; 16]);

/// Those that the launcher gave.
static GIVEN: OnceLock<Mask> = OnceLock::new();
/// Whether the program has asked which it may use: OpenMP and others make as many threads.
static ASKED: AtomicBool = AtomicBool::new(false);
/// Those of a thread that is not pinned: MPI may have changed what the launcher gave.
static HOST: OnceLock<Mask> = OnceLock::new();

fn list(words: &[u64]) -> impl Iterator<Item = usize> {
    (0..64 * words.len()).filter(|bit| words[bit / 64] >> (bit % 64) & 1 != 0)
}

impl Mask {
    /// The processors of a thread; none if it has ended.
    fn of(tid: u32) -> Option<Self> {
        let mut mask = Self([0; MOST / 64]);
        // SAFETY: fills the local mask, which is as long as said.
        let result = unsafe { syscall!(libc::SYS_sched_getaffinity, tid, size_of::<Self>(), &raw mut mask) };
        (!failed(result)).then_some(mask)
    }

    /// Gives the calling thread these processors; it keeps its own if the machine refuses. Usable without a thread pointer.
    pub(crate) fn set(&self) {
        // SAFETY: reads the mask, which is as long as said.
        unsafe { syscall!(libc::SYS_sched_setaffinity, 0, size_of::<Self>(), &raw const *self) };
    }

    /// Where this is less than what was `given`: its places among that.
    fn places(&self, given: &Self) -> Places {
        let mut places = Places::default();
        let inside = self.0.iter().zip(&given.0).all(|(own, given)| own & !given == 0);
        if inside && self != given {
            for (place, cpu) in list(&given.0).enumerate() {
                if self.0[cpu / 64] >> (cpu % 64) & 1 != 0 {
                    match places.0.get_mut(place / 64) {
                        Some(word) => *word |= 1 << (place % 64),
                        None => return Places::default(),
                    }
                }
            }
        }
        places
    }
}

impl Places {
    /// The processors of these places; none if there are no places, or if fewer processors are `given`.
    fn mask(&self, given: &Mask) -> Option<Mask> {
        let cpus: Vec<usize> = list(&given.0).collect();
        let mut mask = Mask([0; MOST / 64]);
        for place in list(&self.0) {
            let cpu = *cpus.get(place)?;
            mask.0[cpu / 64] |= 1 << (cpu % 64);
        }
        (*self != Self::default()).then_some(mask)
    }
}

/// Takes what the launcher gave: to be called at the start.
pub(crate) fn prepare() {
    if let Some(mask) = Mask::of(0) {
        let _ = GIVEN.set(mask);
    }
}

/// The program asks which processors it may use.
pub(crate) fn ask() {
    ASKED.store(true, Relaxed);
}

/// How many the launcher gave, if the program has asked.
pub(crate) fn told() -> Option<u32> {
    ASKED.load(Relaxed).then(given)
}

/// How many the launcher gave.
pub fn given() -> u32 {
    GIVEN.get().map_or(0, |given| list(&given.0).count() as u32)
}

/// To which places a thread is pinned.
pub(crate) fn places(tid: u32) -> Places {
    let own = GIVEN.get().and_then(|given| Some(Mask::of(tid)?.places(given)));
    own.unwrap_or_default()
}

/// The processors here for a thread of an image. To be asked first before the main thread is pinned.
pub(crate) fn here(places: &Places) -> Option<Mask> {
    if HOST.get().is_none() {
        let _ = HOST.set(Mask::of(0)?);
    }
    places.mask(GIVEN.get()?).or_else(|| HOST.get().copied())
}

/// The calling thread, the main one of an image that is gone, is no longer pinned.
pub(crate) fn free() {
    if let Some(host) = HOST.get() {
        host.set();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(cpus: &[usize]) -> Mask {
        let mut mask = Mask([0; MOST / 64]);
        cpus.iter().for_each(|cpu| mask.0[cpu / 64] |= 1 << (cpu % 64));
        mask
    }

    #[test]
    fn threads_keep_their_places_among_other_processors() {
        let (there, here) = (mask(&[2, 3, 70, 8191]), mask(&[0, 1, 4, 5, 6]));
        let places = mask(&[3, 8191]).places(&there);
        assert_eq!(places.mask(&here).map(|mask| list(&mask.0).collect::<Vec<_>>()), Some(vec![1, 5]));
        assert!(places.mask(&there) == Some(mask(&[3, 8191])) && places.mask(&mask(&[0, 1, 2])).is_none());
    }

    #[test]
    fn who_is_not_pinned_stays_so() {
        let given = mask(&[0, 1, 4]);
        for own in [given, mask(&[0, 1, 4, 5]), mask(&[7])] {
            assert!(own.places(&given) == Places::default() && own.places(&given).mask(&given).is_none());
        }
        let most: Vec<usize> = (0..2000).collect();
        assert!(mask(&[1500]).places(&mask(&most)) == Places::default());
    }

    #[test]
    fn a_pinned_thread_is_found_so() {
        prepare();
        let given = *GIVEN.get().unwrap();
        assert_eq!(places(0), Places::default());
        let first = list(&given.0).next().unwrap();
        std::thread::spawn(move || {
            mask(&[first]).set();
            assert!(Mask::of(0) == Some(mask(&[first])) && places(0) == mask(&[first]).places(&given));
        })
        .join()
        .unwrap();
    }
}
