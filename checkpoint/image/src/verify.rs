//! Checks a whole set: every rank has every cut, every state is sound, every page has its content.
use crate::named::{Named, pieces};
use crate::{ImageError, Images, PAGE};
use std::collections::BTreeMap;

/// Pages that are read at once.
const SPACE: usize = 4096;

/// What was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// States.
    pub states: usize,
    /// Different cuts.
    pub cuts: usize,
    /// Ranks of the run.
    pub ranks: u32,
    /// Pages in the stores that a state names.
    pub pages: u64,
}

impl Images {
    /// Checks that the set is complete and undamaged.
    ///
    /// # Errors
    /// What is missing or damaged.
    pub fn verify(&self) -> Result<Verified, ImageError> {
        let mut done = Verified { ranks: self.complete()?, ..Verified::default() };
        let mut last = None;
        let mut ranks: BTreeMap<u32, Named> = BTreeMap::new();
        for (cut, rank) in self.list()? {
            let state = self.state(cut, rank)?;
            if state.size != done.ranks {
                let what =
                    format!("cut {cut} of rank {rank} is of a run of {} ranks, others of {}", state.size, done.ranks);
                return Err(ImageError::corrupt(self.path(), what));
            }
            done.states += 1;
            done.cuts += usize::from(last != Some(cut));
            last = Some(cut);
            let named = ranks.entry(rank).or_default();
            named.add(&state).map_err(|what| ImageError::corrupt(self.path(), what))?;
        }
        if let Some(set) = self.packed() {
            set.check_blocks()?;
        }
        for (rank, named) in ranks {
            done.pages += named.numbers.len() as u64;
            // Of a packed set, the blocks were checked, and with each state that its pages are there.
            if self.packed().is_none() {
                self.check_pages(rank, &named)?;
            }
        }
        Ok(done)
    }

    /// Checks that every rank has a state for every cut; returns the number of ranks.
    ///
    /// # Errors
    /// If there is no state at all, or the first that is missing.
    pub fn complete(&self) -> Result<u32, ImageError> {
        let list = self.list()?;
        let Some(&(cut, rank)) = list.first() else {
            return Err(ImageError::Foreign { path: self.path().into(), found: "there is no state in it".into() });
        };
        let size = self.state(cut, rank)?.size;
        let mut expected = list.first().map(|&(cut, _)| (cut, 0));
        for (cut, rank) in list {
            match expected {
                Some(next) if next == (cut, rank) => {}
                Some((cut, rank)) if rank < size => return Err(self.missing(cut, rank)),
                _ if rank != 0 => return Err(self.missing(cut, 0)),
                _ => {}
            }
            expected = Some((cut, rank + 1));
        }
        match expected {
            Some((cut, rank)) if rank < size => Err(self.missing(cut, rank)),
            _ => Ok(size),
        }
    }

    fn missing(&self, cut: u32, rank: u32) -> ImageError {
        ImageError::Missing { path: self.path().into(), rank, cut }
    }

    fn check_pages(&self, rank: u32, named: &Named) -> Result<(), ImageError> {
        let mut space = vec![0; named.numbers.len().min(SPACE) * PAGE];
        for (numbers, hashes) in named.numbers.chunks(SPACE).zip(named.hashes.chunks(SPACE)) {
            self.fetch(rank, pieces(numbers, hashes, &mut space))?;
        }
        Ok(())
    }
}
