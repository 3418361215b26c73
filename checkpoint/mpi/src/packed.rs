//! Packed data of any length, as the library is told of it: a count has no more than 31 bits, a datatype of blocks has.
use crate::calls::lower;
use crate::library::Library;

/// The most bytes of a block.
const BLOCK: usize = 1 << 30;

/// A count and a datatype that stand for so many bytes of packed data.
pub struct Packed {
    library: &'static Library,
    /// The count.
    pub count: i32,
    /// The library's datatype.
    pub datatype: usize,
    /// Whether it was made for this.
    made: bool,
}

impl Packed {
    /// Those of `length` bytes.
    pub fn of(library: &'static Library, length: usize) -> Packed {
        let byte = library.constant("MPI_PACKED").unwrap_or(0);
        if let Ok(count) = i32::try_from(length) {
            return Packed { library, count, datatype: byte, made: false };
        }
        let places: Vec<usize> = (0..length).step_by(BLOCK).collect();
        let lengths: Vec<i32> = places.iter().map(|&at| BLOCK.min(length - at) as i32).collect();
        let (blocks, mut datatype) = (places.len() as i32, 0usize);
        let (long, at) = (lengths.as_ptr(), places.as_ptr());
        lower!(library, MPI_Type_create_hindexed(blocks, long, at, byte, &raw mut datatype));
        lower!(library, MPI_Type_commit(&raw mut datatype));
        Packed { library, count: 1, datatype, made: true }
    }
}

impl Drop for Packed {
    fn drop(&mut self) {
        if self.made {
            lower!(self.library, MPI_Type_free(&raw mut self.datatype));
        }
    }
}
