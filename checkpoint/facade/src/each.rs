//! What the entries of Fortran share that are given a datatype for each rank. They are for Open MPI: other libraries pass
//! what they are given on to C, where handles are Fortran's numbers.
use crate::entries::{BOTTOM, IN_PLACE};
use crate::fortran::{call, to_c};
use crate::symbols as s;
use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
}

/// The procedure of the program's own library, if that is not Open MPI. `found` keeps it: 1 for none.
pub(crate) fn elsewhere(found: &AtomicUsize, name: &CStr) -> Option<usize> {
    if found.load(Relaxed) == 0 {
        let is_open_mpi = !phasecast_preload::anywhere(c"ompi_mpi_comm_world").is_null();
        let other = if is_open_mpi { 0 } else { phasecast_preload::behind(name) as usize };
        found.store(other.max(1), Relaxed);
    }
    Some(found.load(Relaxed)).filter(|&other| other > 1)
}

/// C's address of a buffer: some of Fortran's constants are variables.
pub(crate) fn buffer(at: *mut i32) -> usize {
    static CONSTANTS: [(AtomicUsize, &CStr, usize); 2] = [
        (AtomicUsize::new(0), c"mpi_fortran_in_place_", IN_PLACE),
        (AtomicUsize::new(0), c"mpi_fortran_bottom_", BOTTOM),
    ];
    for (found, name, of_c) in &CONSTANTS {
        if found.load(Relaxed) == 0 {
            found.store((phasecast_preload::anywhere(name) as usize).max(1), Relaxed);
        }
        if found.load(Relaxed) == at as usize {
            return *of_c;
        }
    }
    at as usize
}

/// With how many ranks a rank of a communicator exchanges something.
///
/// # Safety
/// A handle of C.
pub(crate) unsafe fn ranks(comm: usize) -> usize {
    let (mut inter, mut ranks) = (0i32, 0i32);
    // SAFETY: procedures that write an integer.
    unsafe {
        call(s::MPI_Comm_test_inter, &[comm, &raw mut inter as usize]);
        let size = if inter != 0 { s::MPI_Comm_remote_size } else { s::MPI_Comm_size };
        call(size, &[comm, &raw mut ranks as usize]);
    }
    ranks.max(0) as usize
}

/// C's handles for the datatypes that Fortran hands over for each rank; null if there is no memory, or where none are looked at.
pub(crate) struct Types(*mut usize);

impl Types {
    /// For what is sent from, or received into, `buffer` of C.
    ///
    /// # Safety
    /// So many stand at `at`, unless the buffer is in place.
    pub(crate) unsafe fn new(at: *const i32, ranks: usize, buffer: usize) -> Self {
        if buffer == IN_PLACE {
            return Self(null_mut());
        }
        // SAFETY: as many words as are written; the rest is the caller's.
        unsafe {
            let types = malloc(ranks.max(1) * size_of::<usize>()).cast::<usize>();
            for i in (0..ranks).take_while(|_| !types.is_null()) {
                types.add(i).write(to_c(s::MPI_Type_f2c, at.add(i).read()));
            }
            Self(types)
        }
    }

    /// Where they are, as long as this lives.
    pub(crate) fn lend(&self) -> usize {
        self.0 as usize
    }

    /// Where they are from now on.
    pub(crate) fn keep(self) -> usize {
        core::mem::ManuallyDrop::new(self).lend()
    }
}

impl Drop for Types {
    fn drop(&mut self) {
        // SAFETY: of `malloc`, or null.
        unsafe { free(self.0.cast()) }
    }
}
