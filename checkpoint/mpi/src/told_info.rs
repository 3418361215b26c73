//! Infos in which a library tells something (`MPI_Comm_get_info`, `MPI_Get_hw_resource_info`): they are made again as they
//! were told, as the next library would tell something else, or know nothing of it.
use crate::calls::{MOST, by_name_index, lower};
use crate::changes::changed;
use crate::log::keep as keep_record;
use crate::session::Session;
use crate::words::{handle_bytes, read_handle};
use phasecast_abi::Kind;

/// Keeps the records of an info that has been told: as of an empty one to which the same entries are added.
///
/// # Safety
/// At `at` stands the program's handle of it; `new` is its number.
pub unsafe fn keep(s: &mut Session, at: usize, new: u32) {
    let (Some(create), Some(set)) = (by_name_index("MPI_Info_create"), by_name_index("MPI_Info_set")) else { return };
    let mut args = [0; MOST];
    args[0] = at;
    let shapes = s.shapes;
    // SAFETY: the caller's: arguments of `MPI_Info_create`.
    unsafe { keep_record(s, &shapes[create], &args, 0, Kind::Info, new) };
    // SAFETY: the caller's.
    args[0] = unsafe { read_handle(at, handle_bytes(s.values.upper, Kind::Info)) };
    for (key, value) in entries(s, args[0]) {
        (args[1], args[2]) = (key.as_ptr() as usize, value.as_ptr() as usize);
        // SAFETY: a handle and two texts, which end with a zero byte.
        unsafe { changed(s, &shapes[set], &args) };
    }
}

/// Keys and values, each with the byte that ends it.
fn entries(s: &mut Session, handle: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (library, info) = (s.library, s.down_handle(Kind::Info, handle));
    let (mut count, mut found) = (0i32, Vec::new());
    lower!(library, MPI_Info_get_nkeys(info, &raw mut count));
    for n in 0..count {
        // No interface has longer keys.
        let (mut key, mut length, mut there) = (vec![0u8; 1024], 0i32, 0i32);
        lower!(library, MPI_Info_get_nthkey(info, n, key.as_mut_ptr()));
        lower!(library, MPI_Info_get_valuelen(info, key.as_ptr(), &raw mut length, &raw mut there));
        let mut value = vec![0u8; length.max(0) as usize + 1];
        lower!(library, MPI_Info_get(info, key.as_ptr(), length, value.as_mut_ptr(), &raw mut there));
        if there != 0 {
            found.push((key, value));
        }
    }
    found
}
