//! Unpacks the images of one rank to a folder, from which it restarts several times faster than from compressed blocks.
use crate::named::{Named, pieces};
use crate::store::{Store, file_name, page_hash, write_private};
use crate::{Content, ImageError, Images, PAGE, State};
use std::path::Path;

/// Pages that are unpacked at once.
const SPACE: usize = 4096;

/// Unpacks the images of `rank` at these cuts to an existing folder, as they were before they were packed. The
/// pages are not synced: they are a copy. Returns the bytes of the store.
///
/// # Errors
/// If an image is missing or damaged, or the folder holds images of the rank or cannot be written.
pub fn unpack(images: &Images, rank: u32, cuts: &[u32], folder: &Path) -> Result<u64, ImageError> {
    let mut named = Named::default();
    let mut states = cuts.iter().map(|&cut| images.state(cut, rank)).collect::<Result<Vec<State>, _>>()?;
    for state in &states {
        named.add(state).map_err(|what| ImageError::corrupt(images.path(), what))?;
    }
    let store = Store::create(folder, rank)?;
    let mut space = vec![0; named.numbers.len().min(SPACE) * PAGE];
    for (numbers, hashes) in named.numbers.chunks(SPACE).zip(named.hashes.chunks_mut(SPACE)) {
        let space = &mut space[..numbers.len() * PAGE];
        images.fetch(rank, pieces(numbers, hashes, space))?;
        let mut rest = &space[..];
        for stretch in numbers.chunk_by(|a, b| a + 1 == *b) {
            let (bytes, others) = rest.split_at(stretch.len() * PAGE);
            store.put(bytes, stretch[0])?;
            rest = others;
        }
        hashes.iter_mut().zip(space.chunks_exact(PAGE)).for_each(|(hash, page)| *hash = page_hash(page));
    }
    for state in &mut states {
        let runs = state.regions.iter().flat_map(|region| &region.runs);
        let first = |page| named.numbers.partition_point(|&number| number < page);
        state.hashes = runs
            .filter_map(|run| match run.content {
                Content::Data(page) => Some(&named.hashes[first(page)..][..run.pages as usize]),
                _ => None,
            })
            .collect::<Vec<_>>()
            .concat();
        write_private(&folder.join(State::file_name(state.cut, rank)), &state.to_bytes(true)?)?;
    }
    let about = std::fs::metadata(folder.join(file_name(rank)));
    about.map(|about| about.len()).map_err(ImageError::io(folder, "read"))
}
