//! Calling procedures of MPI by address: all their arguments are integers or pointers.
use phasecast_abi::{PROCEDURES, by_name};
use std::hint::black_box;

/// The most arguments that a procedure has.
pub const MOST: usize = 14;

/// The most arguments of a procedure that is passed on word by word.
pub const WORDS: usize = 12;

/// The most arguments of one that is, and makes a request or completes some.
pub const FEW: usize = 8;

/// Index in the table of procedures, by name; for names in our own source.
///
/// # Panics
/// If there is no such procedure.
pub fn index(name: &str) -> usize {
    match by_name(name) {
        Some(id) => id.0 as usize,
        None => panic!("{name} is no procedure of MPI"),
    }
}

/// Index in the table of procedures, by name; none if there is no such procedure.
pub fn by_name_index(name: &str) -> Option<usize> {
    by_name(name).map(|id| usize::from(id.0))
}

/// Calls a procedure with up to [`MOST`] arguments.
///
/// # Safety
/// At `function` is a procedure of MPI that takes these arguments, with the meaning that its interface gives them.
#[inline(always)]
pub unsafe fn call(function: usize, args: &[usize]) -> usize {
    type W = usize;
    type Short = unsafe extern "C-unwind" fn(W, W, W, W, W, W) -> W;
    type Few = unsafe extern "C-unwind" fn(W, W, W, W, W, W, W, W) -> W;
    type Words = unsafe extern "C-unwind" fn(W, W, W, W, W, W, W, W, W, W, W, W) -> W;
    type Long = unsafe extern "C-unwind" fn(W, W, W, W, W, W, W, W, W, W, W, W, W, W) -> W;
    let a = |i: usize| args.get(i).copied().unwrap_or(0);
    // SAFETY: the caller's; arguments beyond those that a procedure has are not looked at, the caller takes them off.
    unsafe {
        if args.len() <= 6 {
            let function: Short = std::mem::transmute(function);
            return function(a(0), a(1), a(2), a(3), a(4), a(5));
        }
        // Word by word: they may just have been stored so, and be read in one piece only once they are in the cache.
        let b = |i: usize| black_box(a(i));
        if args.len() <= FEW {
            let function: Few = std::mem::transmute(function);
            return function(a(0), a(1), a(2), a(3), a(4), a(5), b(6), b(7));
        }
        if args.len() <= WORDS {
            let function: Words = std::mem::transmute(function);
            return function(a(0), a(1), a(2), a(3), a(4), a(5), b(6), b(7), b(8), b(9), b(10), b(11));
        }
        let function: Long = std::mem::transmute(function);
        function(a(0), a(1), a(2), a(3), a(4), a(5), a(6), a(7), a(8), a(9), a(10), a(11), a(12), a(13))
    }
}

/// Calls a procedure that returns a `double`, whose bits are returned.
///
/// # Safety
/// As for [`call`].
pub unsafe fn call_double(function: usize) -> usize {
    // SAFETY: the caller's.
    let function: unsafe extern "C-unwind" fn() -> f64 = unsafe { std::mem::transmute(function) };
    // SAFETY: the caller's.
    unsafe { function() }.to_bits() as usize
}

/// Name of a procedure.
pub fn name(index: usize) -> &'static str {
    PROCEDURES[index].name
}

/// Calls a procedure of the lower half's library that is named in our source. Yields its return code; 1 if the library
/// lacks it.
macro_rules! lower {
    ($library:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        static INDEX: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        let index = *INDEX.get_or_init(|| $crate::calls::index(stringify!($name)));
        match $library.function(index) {
            // SAFETY: the arguments are as the standard says, in the form of the library's own interface.
            Some(function) => unsafe { $crate::calls::call(function, &[$($argument as usize),*]) as i32 },
            None => 1,
        }
    }};
}
pub(crate) use lower;
