//! Windows with memory that the library chooses (`MPI_Win_allocate`): it takes memory that other ranks of the node reach
//! directly, where it can, and that is what such windows are for. So the memory is the library's, mapped once more at an
//! address of the upper half, from a page of its own on. Its window begins at the library's own place and has units of a
//! byte; where the program puts or gets is reckoned for each rank. Memory that the library shares with nobody cannot be
//! mapped again: then the window is on memory of ours.
use crate::calls::{MOST, lower};
use crate::forward::bring_up;
use crate::memory::PAGE;
use crate::session::{Session, session};
use crate::shape::{Shape, Target};
use crate::shared::{CHUNK, agreed, stretches, touch};
use crate::words::{handle_bytes, read_handle};
use phasecast_abi::Kind;
use phasecast_process::space;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A window with memory of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Allocated {
    /// The program's handle.
    pub window: usize,
    /// Bytes that the program asked for.
    pub size: usize,
    at: usize,
    rank: usize,
    /// For each rank of the window.
    places: Vec<Place>,
}

/// Where a rank's memory lies in the library's window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Place {
    /// The first byte.
    first: u64,
    /// The unit of the program's displacements in bytes.
    unit: u64,
}

impl Allocated {
    /// Bytes and address of a rank's memory, or of the first that there is, as far as the program may use it by itself: it
    /// may be told of none (MPI 4.1, section 12.2.3), as of what is another's here.
    pub fn told(&self, rank: Option<usize>) -> (usize, usize) {
        let own = self.rank == rank.unwrap_or(0) && (rank.is_some() || self.size > 0);
        if own { (self.size, self.at) } else { (0, 0) }
    }

    /// The addresses of the memory.
    pub fn whole(&self) -> Range<usize> {
        self.at..self.at + pages(self.size)
    }

    /// The unit of displacements in this rank's memory in bytes.
    pub fn unit(&self) -> i32 {
        self.places.get(self.rank).map_or(1, |place| place.unit as i32)
    }

    fn displacement(&self, rank: i32, displacement: usize) -> usize {
        let place = usize::try_from(rank).ok().and_then(|rank| self.places.get(rank));
        let below = |place: &Place| displacement.wrapping_mul(place.unit as usize).wrapping_add(place.first as usize);
        place.map_or(displacement, below)
    }
}

impl Session {
    /// The displacement that means to the library what the one among `args` means to the program.
    pub fn displacement_below(&self, target: &Target, args: &[usize; MOST]) -> usize {
        let displacement = args[target.displacement];
        let window = args[target.window] & self.values.upper.layout().handle_mask as usize;
        match self.memory.allocated(window) {
            Some(allocated) => allocated.displacement(args[target.rank] as i32, displacement),
            None => displacement,
        }
    }
}

fn pages(size: usize) -> usize {
    size.max(1).checked_next_multiple_of(PAGE).unwrap_or(size)
}

/// Copies what the image has brought to where the library's memory is mapped; the memory in which it came is given up
/// meanwhile.
///
/// # Safety
/// Both are mapped; nobody else uses the first, and of the second only this rank's part.
unsafe fn give_back(old: &Range<usize>, new: usize) {
    for stretch in stretches(old) {
        for at in stretch.clone().step_by(CHUNK) {
            let length = CHUNK.min(stretch.end - at);
            // SAFETY: the caller's.
            unsafe {
                std::ptr::copy_nonoverlapping(at as *const u8, (new + at - old.start) as *mut u8, length);
                libc::madvise(at as *mut _, length, libc::MADV_REMOVE);
            }
        }
    }
}

/// Makes a window with memory of its own: for the program, or again after a restart.
///
/// # Safety
/// `args` are those of `MPI_Win_allocate`, in the program's form.
pub unsafe fn allocate(_: usize, shape: &'static Shape, args: &[usize; MOST]) -> usize {
    let mut s = session();
    let library = s.library;
    let (info, comm) = (s.down_handle(Kind::Info, args[2]), s.down_handle(Kind::Communicator, args[3]));
    let old = s.made_again().and_then(|window| s.memory.allocated(window)).cloned();
    let no_memory = crate::memory::no_memory(&s);
    drop(s);
    let (size, length) = (args[0], pages(args[0]));
    let (mut rank, mut ranks) = (0i32, 0i32);
    lower!(library, MPI_Comm_rank(comm, &raw mut rank));
    lower!(library, MPI_Comm_size(comm, &raw mut ranks));
    let (mut window, mut base) = (0usize, 0usize);
    // A size that is none is the library's to refuse.
    let asked = if (size as isize) < 0 { size } else { length + PAGE };
    let result = lower!(library, MPI_Win_allocate(asked, 1, info, comm, &raw mut base, &raw mut window));
    if result != 0 {
        return session().up_error(result as usize);
    }
    let start = base.next_multiple_of(PAGE);
    // SAFETY: the library has made the window with a page more.
    let again = unsafe { space::again(None, length, start) };
    let (at, first) = if agreed(library, comm, again.is_ok()) {
        let new = again.unwrap_or_default();
        let at = match &old {
            None => new,
            Some(old) => {
                // SAFETY: the image's memory, in which nothing runs yet, and the library's; the place is that of the old.
                let back = unsafe {
                    give_back(&old.whole(), new);
                    space::again(Some(old.at), length, start)
                };
                space::take_back(new, length);
                if let Err(error) = back {
                    session().trouble = Some(error.to_string());
                    return no_memory;
                }
                old.at
            }
        };
        (at, start - base)
    } else {
        again.into_iter().for_each(|at| space::take_back(at, length));
        lower!(library, MPI_Win_free(&raw mut window));
        let Some(at) = old.as_ref().map(|old| old.at).or_else(|| space::lend(None, length).ok()) else {
            return no_memory;
        };
        let result = lower!(library, MPI_Win_create(at, size, 1, info, comm, &raw mut window));
        if result != 0 {
            return session().up_error(result as usize);
        }
        (at, 0)
    };
    let own = [first as u64, u64::from(args[1] as u32)];
    let mut all = vec![[0u64; 2]; ranks as usize];
    let word = library.constant("MPI_UNSIGNED_LONG").unwrap_or(0);
    lower!(library, MPI_Allgather(own.as_ptr(), 2, word, all.as_mut_ptr(), 2, word, comm));
    let places = all.into_iter().map(|[first, unit]| Place { first, unit }).collect();
    let mut below = *args;
    below[5] = &raw const window as usize;
    let mut s = session();
    // SAFETY: the caller's: the window is made, its handle goes where the program wants it, as does the address: which it
    // has after a restart, while its variable may be gone.
    let handle = unsafe {
        bring_up(&mut s, shape, args, &below);
        if !s.restoring {
            *(args[4] as *mut usize) = at;
        }
        read_handle(args[5], handle_bytes(s.values.upper, Kind::Window))
    };
    let made = Allocated { window: handle, size, at, rank: rank as usize, places };
    match s.memory.allocated.iter_mut().find(|known| known.window == handle) {
        Some(known) => {
            touch(&made.whole());
            *known = made;
        }
        None => s.memory.allocated.push(made),
    }
    0
}
