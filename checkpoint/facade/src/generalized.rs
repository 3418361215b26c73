//! Generalized requests of Fortran: C's functions of them, which call those of the program. The program's own library would
//! mark its request as one of Fortran's, which a virtual one cannot be.
use crate::fortran::CELLS;

/// What C has as the extra state: the program's functions, and where its own extra state is. It lies in a cell.
#[repr(C)]
pub(crate) struct State {
    query: usize,
    free: usize,
    cancel: usize,
    extra: *mut u8,
}

/// The state of a new request; null if there is no memory.
///
/// # Safety
/// The functions are Fortran's, as the standard says of `MPI_Grequest_start`.
pub(crate) unsafe fn state(query: usize, free: usize, cancel: usize, extra: *mut u8) -> usize {
    let cell = CELLS.take();
    if !cell.is_null() {
        // SAFETY: the cell is large enough.
        unsafe { cell.cast::<State>().write(State { query, free, cancel, extra }) };
    }
    cell as usize
}

/// Fills in a status, which in Fortran is C's in integers.
///
/// # Safety
/// Called by MPI.
pub(crate) unsafe extern "C" fn query(state: *const State, status: *mut u8) -> i32 {
    type Query = unsafe extern "C" fn(*mut u8, *mut u8, *mut i32);
    let mut error = 0;
    // SAFETY: of [`state`].
    unsafe { core::mem::transmute::<usize, Query>((*state).query)((*state).extra, status, &raw mut error) };
    error
}

/// The request is gone.
///
/// # Safety
/// Called by MPI.
pub(crate) unsafe extern "C" fn free(state: *const State) -> i32 {
    type Free = unsafe extern "C" fn(*mut u8, *mut i32);
    let mut error = 0;
    // SAFETY: of [`state`].
    unsafe { core::mem::transmute::<usize, Free>((*state).free)((*state).extra, &raw mut error) };
    CELLS.give_back(state as usize);
    error
}

/// The request is cancelled; `complete` says whether it was complete.
///
/// # Safety
/// Called by MPI.
pub(crate) unsafe extern "C" fn cancel(state: *const State, complete: i32) -> i32 {
    type Cancel = unsafe extern "C" fn(*mut u8, *mut i32, *mut i32);
    let (mut error, mut truth) = (0, i32::from(complete != 0));
    // SAFETY: of [`state`].
    unsafe { core::mem::transmute::<usize, Cancel>((*state).cancel)((*state).extra, &raw mut truth, &raw mut error) };
    error
}
