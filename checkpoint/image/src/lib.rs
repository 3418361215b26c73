//! The file format of checkpoint images: the state of each rank at each cut, and the pages that they share.
//!
//! While a program is saved, a folder holds for each rank one store of pages (`rank-00000.store`, [`store`]) and for each
//! cut a small file that says which pages lie where ([`state`], `cut-0003.rank-00000.state`). A page that does not change
//! between two cuts is in the store once. For shipping, [`pack()`] makes one file of the folder, where pages are shared across
//! ranks too and stand in blocks that can be read one by one, compressed where that pays. [`Images`] reads both forms. This crate is data
//! only: it knows nothing of processes, and nothing that it reads can make it panic.
//!
//! * [`state`]: what is saved of a rank at a cut
//! * [`store`]: appends pages, each content once
//! * [`images`]: opens a folder or a packed file; [`fetch`]: reads pages of it in parallel
//! * [`pack`]: folder to packed file; [`packed`]: the layout of that file
//! * [`verify`]: every checksum of a set
pub mod error;
pub mod fetch;
pub mod images;
mod named;
pub mod pack;
pub mod packed;
pub mod state;
pub mod store;
pub mod verify;

pub use error::ImageError;
pub use fetch::Piece;
pub use images::Images;
pub use pack::{Packed, pack, pack_file};
pub use state::{Backing, Content, Flags, HugePolicy, PageHash, Protection, Region, Run, Shared, State};
pub use store::{Store, create_private, write_private};
pub use verify::Verified;

/// Bytes of a page: the unit of stores.
pub const PAGE: usize = 4096;
/// Pages of a huge page (2 MB).
pub const HUGE_PAGES: u64 = 512;
