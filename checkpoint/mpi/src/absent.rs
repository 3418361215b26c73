//! Procedures that the machine's library lacks. Those for large counts (`_c`) are carried out by the plain ones, as far
//! as the counts fit.
use crate::calls::{MOST, call as invoke};
use crate::session::{Session, session};
use crate::shape::Shape;
use crate::words::Scratch;
use phasecast_abi::{CType, Direction, Passing, by_name};

/// Carries out a call of a procedure that the library lacks.
///
/// # Safety
/// `args` are those of the procedure.
pub unsafe fn call(index: usize, shape: &'static Shape, args: &[usize; MOST]) -> usize {
    let _ = index;
    let mut s = session();
    let unsupported = s.values.above("MPI_ERR_UNSUPPORTED_OPERATION").unwrap_or(1);
    let plain = shape.procedure.name.strip_suffix("_c").and_then(by_name);
    let Some((plain, function)) = plain.and_then(|id| Some((id, s.library.function(usize::from(id.0))?))) else {
        return unsupported;
    };
    let plain = &s.shapes[usize::from(plain.0)];
    if plain.lanes.len() != shape.lanes.len() {
        return unsupported;
    }
    let mut scratch = Scratch::new();
    let mut below = [0; MOST];
    let mut widen = Vec::new();
    let too_large = s.values.above("MPI_ERR_COUNT").unwrap_or(2);
    for (i, (wide, param)) in shape.procedure.params.iter().zip(plain.procedure.params).enumerate() {
        // SAFETY: the caller's.
        below[i] = unsafe { s.down_arg(shape, args, i, &mut scratch) };
        if wide.ctype == param.ctype || below[i] == 0 {
            continue;
        }
        match wide.passing {
            Passing::Value if i32::try_from(below[i] as i64).is_err() => return too_large,
            Passing::Value => {}
            _ if wide.direction == Direction::Out => {
                // SAFETY: the caller's.
                let length = unsafe { s.length(shape, args, wide.length) };
                let at = scratch.take(length * 4);
                widen.push((at, args[i], length));
                below[i] = at;
            }
            _ => {
                // SAFETY: the caller's.
                let length = unsafe { s.length(shape, args, wide.length) };
                let at = scratch.take(length * 4);
                for j in 0..length {
                    // SAFETY: the caller's: so many numbers of 8 bytes.
                    let value = unsafe { (below[i] as *const i64).add(j).read_unaligned() };
                    let Ok(narrow) = i32::try_from(value) else { return too_large };
                    // SAFETY: there is room.
                    unsafe { (at as *mut i32).add(j).write(narrow) };
                }
                below[i] = at;
            }
        }
    }
    drop(s);
    // SAFETY: the caller's; the arguments are in the library's form.
    let result = unsafe { invoke(function, &below[..shape.lanes.len()]) };
    let mut s = session();
    if result as i32 != 0 {
        return s.up_error(result);
    }
    for (from, to, length) in widen {
        for j in 0..length {
            // SAFETY: written by the library; the program's array is as long.
            unsafe {
                let value = (from as *const i32).add(j).read();
                (to as *mut i64).add(j).write_unaligned(value.into());
            }
        }
    }
    for i in 0..shape.lanes.len() {
        // SAFETY: the call has succeeded.
        if let Some((kind, new)) = unsafe { s.up_arg(shape, args, &below, i) } {
            // SAFETY: as above.
            unsafe { crate::log::made(&mut s, shape, args, i, kind, new) };
        }
    }
    // SAFETY: as above.
    unsafe { crate::changes::changed(&mut s, shape, args) };
    result
}

/// The plain procedure that carries out one for large counts whose arguments are the same but for the width of counts by
/// value; none if there is none, or if a count does not fit.
pub fn plain(s: &Session, shape: &Shape, args: &[usize; MOST]) -> Option<usize> {
    let id = shape.procedure.name.strip_suffix("_c").and_then(by_name)?;
    let mut params = shape.procedure.params.iter().zip(args);
    let fits = params.all(|(p, &arg)| p.ctype != CType::Count || i32::try_from(arg as i64).is_ok());
    s.library.function(usize::from(id.0)).filter(|_| fits)
}
