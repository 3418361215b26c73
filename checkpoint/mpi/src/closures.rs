//! Functions of the program that are called in another way than C's, those of C++ and error handlers of Fortran: the facade has
//! a function of its own called in their place, and puts it there as a closure.
use crate::callbacks::HAND_ON;
use crate::log::Argument;
use crate::session::session;
use crate::words::{handle_bytes, read_handle};
use phasecast_abi::Kind;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A function of the program that is called in another way than C's: what the facade hands over in its place, with [`MARK`] set
/// in the address. As in the facade's `closures`.
#[repr(C)]
struct Closure {
    /// The facade's function, which is given this closure.
    code: usize,
    data: usize,
    /// The program's function and extra state, if the closure has replaced them.
    function: usize,
    extra: usize,
}

/// The bit that no function's address has.
const MARK: usize = 1 << 63;

/// What to call for a function, and the closure, or zero.
///
/// # Safety
/// A function of the program that is in use, or what the facade has put in its place.
pub unsafe fn called(function: &AtomicUsize) -> (usize, usize) {
    let function = function.load(Relaxed);
    if function & MARK == 0 {
        return (function, 0);
    }
    let closure = function & !MARK;
    // SAFETY: the caller's.
    (unsafe { (*(closure as *const Closure)).code }, closure)
}

/// Where the functions of an object are, by its kind (its place in [`REPLACED`]) and its number.
static FUNCTIONS: Mutex<BTreeMap<(usize, u32), Vec<&'static AtomicUsize>>> = Mutex::new(BTreeMap::new());

/// Kinds of objects whose functions the facade replaces: as there.
const REPLACED: [Kind; 3] = [Kind::Operation, Kind::Errhandler, Kind::Keyval];

/// Takes note of the functions of an object that a call has made, if it has; yields its number.
///
/// # Safety
/// The program's handle is at `place`, if the call has succeeded.
pub unsafe fn made(result: usize, kind: Kind, place: usize, functions: Vec<&'static AtomicUsize>) -> Option<u32> {
    if result as i32 != 0 {
        return None;
    }
    let s = session();
    // SAFETY: the caller's.
    let handle = unsafe { read_handle(place, handle_bytes(s.values.upper, kind)) };
    let number = s.objects.decode(kind, handle)?;
    let which = REPLACED.iter().position(|&of| of == kind)?;
    FUNCTIONS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert((which, number), functions);
    Some(number)
}

/// The facade puts closures in the place of functions with which an object was made, now and where it is made again.
///
/// # Safety
/// Asked by the facade: closures of this life of the program.
pub unsafe fn replace(which: usize, handle: usize, closures: [usize; 2]) {
    let Some(&kind) = REPLACED.get(which) else { return };
    let mut s = session();
    let Some(number) = s.objects.decode(kind, handle) else { return };
    let record = s.objects.get(kind, number).and_then(|object| object.record);
    let Some(record) = record.and_then(|record| s.log.records.get_mut(&record)) else { return };
    let known = FUNCTIONS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let functions = known.get(&(which, number)).map_or(&[][..], Vec::as_slice);
    let extra = match record.arguments.get(3) {
        Some(Argument::Word(extra)) => *extra,
        _ => 0,
    };
    for ((function, closure), argument) in functions.iter().zip(closures).zip(&mut record.arguments) {
        let before = function.load(Relaxed);
        if closure & MARK == 0 || before <= HAND_ON {
            continue;
        }
        // SAFETY: the caller's.
        unsafe {
            let closure = (closure & !MARK) as *mut Closure;
            ((*closure).function, (*closure).extra) = (before, extra);
        }
        function.store(closure, Relaxed);
        *argument = Argument::Word(closure);
    }
}
