//! Functions of the program that MPI is to call in another way than C's: the facade's own function is called in their place,
//! and is handed what it needs to know.
use crate::fortran::{CELLS, Convert, call, to_fortran};

/// What the host takes in place of the address of a function, with [`MARK`] set. It lies in a cell. As in the host's `closures`.
#[repr(C)]
pub(crate) struct Closure {
    /// The function to call. An operation has this closure as its fifth argument; an error handler as its third, and the kind of
    /// object as its fourth; what copies and deletes attributes has it in place of the extra state.
    pub(crate) code: usize,
    /// Of the code's own.
    pub(crate) data: usize,
    /// The program's function; where this is put in its place, the host writes it here.
    pub(crate) function: usize,
    /// The program's extra state, likewise.
    pub(crate) extra: usize,
}

/// The bit that no function's address has.
const MARK: usize = 1 << 63;

/// A new one, for the host; zero if there is no memory.
pub(crate) fn new(closure: Closure) -> usize {
    let cell = CELLS.take();
    if cell.is_null() {
        return 0;
    }
    // SAFETY: the cell is large enough.
    unsafe { cell.cast::<Closure>().write(closure) };
    cell as usize | MARK
}

/// Kinds of objects whose functions are replaced: as in the host's `closures`.
pub(crate) const OPERATION: usize = 0;
pub(crate) const HANDLER: usize = 1;
pub(crate) const KEY: usize = 2;

/// Puts closures in the place of functions that an object was made with.
///
/// # Safety
/// The handle is that of an object of this kind.
pub(crate) unsafe fn replace(kind: usize, handle: usize, closures: [usize; 2]) {
    // SAFETY: the caller's.
    unsafe { call(crate::symbols::phasecast_facade_replaces, &[kind, handle, closures[0], closures[1]]) };
}

/// What C has as the function of an error handler of Fortran; zero if there is no memory.
pub(crate) fn of_fortran(function: usize, c2f: Convert) -> usize {
    new(Closure { code: handle as *const () as usize, data: c2f as *const () as usize, function, extra: 0 })
}

/// An error handler of Fortran is called.
///
/// # Safety
/// Called for the closure, with MPI's arguments for the handler.
unsafe extern "C" fn handle(object: *const usize, code: *mut i32, closure: &Closure) {
    // SAFETY: of [`of_fortran`].
    unsafe {
        let c2f: Convert = core::mem::transmute(closure.data);
        let function: unsafe extern "C" fn(*mut i32, *mut i32) = core::mem::transmute(closure.function);
        let mut object = to_fortran(c2f, *object);
        function(&raw mut object, code);
    }
}
