//! Which pages of a rank's store its states name: all others are left behind.
use crate::{Content, PAGE, PageHash, Piece, State};
use std::ops::Range;

/// The pages of a rank that states name, by ascending number.
#[derive(Default)]
pub(crate) struct Named {
    pub(crate) numbers: Vec<u64>,
    /// One for each number; zeros if the states have none.
    pub(crate) hashes: Vec<PageHash>,
}

impl Named {
    /// Adds those of a state.
    ///
    /// # Errors
    /// If another state says that one of these pages has another content.
    pub(crate) fn add(&mut self, state: &State) -> Result<(), String> {
        let runs = state.regions.iter().flat_map(|region| &region.runs);
        let mut stretches: Vec<Range<u64>> = runs
            .filter_map(|run| match run.content {
                Content::Data(first) => Some(first..first + run.pages),
                _ => None,
            })
            .collect();
        if state.hashes.is_empty() {
            // Nothing else bounds how often pages are named.
            stretches = merged(stretches);
        }
        let hashes = state.hashes.iter().copied().chain(std::iter::repeat(0));
        let mut all: Vec<(u64, PageHash)> = self.numbers.drain(..).zip(self.hashes.drain(..)).collect();
        all.extend(stretches.into_iter().flatten().zip(hashes));
        all.sort_unstable();
        all.dedup();
        if let Some(pair) = all.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(format!("its states disagree about the content of page {}", pair[0].0));
        }
        (self.numbers, self.hashes) = all.into_iter().unzip();
        Ok(())
    }
}

fn merged(mut stretches: Vec<Range<u64>>) -> Vec<Range<u64>> {
    stretches.sort_unstable_by_key(|stretch| stretch.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for stretch in stretches {
        match merged.last_mut() {
            Some(last) if last.end >= stretch.start => last.end = last.end.max(stretch.end),
            _ => merged.push(stretch),
        }
    }
    merged
}

/// Pieces that read these pages, one after the other, to `space`.
pub(crate) fn pieces<'a>(numbers: &[u64], hashes: &'a [PageHash], mut space: &'a mut [u8]) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    for stretch in numbers.chunk_by(|a, b| a + 1 == *b) {
        let (out, rest) = space.split_at_mut(stretch.len() * PAGE);
        pieces.push(Piece { page: stretch[0], hashes: &hashes[at..at + stretch.len()], out });
        at += stretch.len();
        space = rest;
    }
    pieces
}
