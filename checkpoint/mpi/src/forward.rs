//! Passing a call on: arguments down, the library's procedure, results up.
use crate::calls::{FEW, MOST, WORDS, call as invoke};
use crate::dispatch::Call;
use crate::session::{Access, Session, session};
use crate::shape::{Lane, Shape, Word};
use crate::words::{Scratch, handle_bytes, read_handle, write_handle};
use phasecast_abi::{Direction, Kind};

/// All arguments of a call, of which there are `count`: at most `N`.
#[inline(always)]
pub fn arguments<const N: usize>(call: &Call, count: usize) -> [usize; N] {
    // Not a loop over `count`, so that they can stay in registers.
    std::array::from_fn(|i| if i < 6 || i < count { call.arg(i) } else { 0 })
}

/// Passes a call on and takes note of what it made, changed or freed.
///
/// # Safety
/// A call of the gate, of a procedure without a treatment of its own.
pub unsafe fn forward(call: &mut Call) -> usize {
    let shape = call.shape;
    let args = arguments(call, shape.lanes.len());
    // SAFETY: the caller's.
    unsafe { forward_args(call.index, shape, &args) }
}

/// Passes a call on, the shortest way that there is for it.
///
/// # Safety
/// As for [`forward`].
#[inline(always)]
pub unsafe fn passed_on(call: &mut Call) -> usize {
    // SAFETY: the caller's.
    unsafe { if call.shape.direct { direct(call) } else { forward(call) } }
}

/// `MPI_Aint_add` and `MPI_Aint_diff`, which some libraries have in their header only.
///
/// # Safety
/// As for [`forward`].
pub unsafe fn calculate(call: &mut Call) -> usize {
    let (a, b) = (call.arg(0), call.arg(1));
    if crate::calls::name(call.index) == "MPI_Aint_diff" { a.wrapping_sub(b) } else { a.wrapping_add(b) }
}

/// Passes a call on that is [`Shape::direct`], or is so without a status.
///
/// # Safety
/// As for [`forward`].
pub unsafe fn direct(call: &mut Call) -> usize {
    // SAFETY: the caller's.
    unsafe { words::<WORDS>(call, session(), 0) }
}

/// Passes a call on that is [`Shape::posted`], and has the library's request written to a place of ours.
///
/// # Safety
/// As for [`forward`].
#[inline(always)]
pub unsafe fn posted(call: &mut Call, s: Access, request: &mut usize) -> usize {
    // SAFETY: the caller's.
    unsafe { words::<FEW>(call, s, &raw mut *request as usize) }
}

/// Passes a call on whose arguments are words, `AT_MOST` so many, one of them perhaps where its request goes. They stay in
/// registers: what was just stored at a place that had to be worked out is waited for when it is loaded.
///
/// # Safety
/// As for [`forward`].
#[inline(always)]
unsafe fn words<const AT_MOST: usize>(call: &mut Call, mut s: Access, request: usize) -> usize {
    let shape = call.shape;
    let count = shape.lanes.len();
    let of = &mut (&*call, &mut *s, request);
    // A loop would not be unrolled, nor a closure be put in place.
    let [a, b, c, d, e, f] = [word(of, 0), word(of, 1), word(of, 2), word(of, 3), word(of, 4), word(of, 5)];
    // SAFETY: the caller's; the procedure has at most so many arguments.
    let result = unsafe {
        if count <= 6 {
            drop(s);
            invoke(shape.function, &[a, b, c, d, e, f])
        } else if AT_MOST <= FEW || count <= FEW {
            let [g, h] = [word(of, 6), word(of, 7)];
            drop(s);
            invoke(shape.function, &[a, b, c, d, e, f, g, h])
        } else {
            let [g, h, i, j] = [word(of, 6), word(of, 7), word(of, 8), word(of, 9)];
            let [k, l] = [word(of, 10), word(of, 11)];
            drop(s);
            invoke(shape.function, &[a, b, c, d, e, f, g, h, i, j, k, l])
        }
    };
    if result as i32 != 0 {
        return session().up_error(result);
    }
    result
}

/// Argument `i` in the library's form, if it is a word; `request` if a request is written there.
#[inline(always)]
fn word((call, s, request): &mut (&Call, &mut Session, usize), i: usize) -> usize {
    if i >= 6 && i >= call.shape.lanes.len() {
        return 0;
    }
    let given = call.arg(i);
    let word = call.shape.words[i];
    // One after the other, as a jump into a table is foretold less often.
    if matches!(word, Word::Same) {
        given
    } else if let Word::Handle(kind) = word {
        s.down_handle(kind, given)
    } else if matches!(word, Word::Request) {
        *request
    } else {
        s.down_word(call.shape.lanes[i], given)
    }
}

/// As [`forward`], with other arguments than the program's.
///
/// # Safety
/// As for [`forward`].
pub unsafe fn forward_args(index: usize, shape: &'static Shape, args: &[usize; MOST]) -> usize {
    // SAFETY: the caller's.
    unsafe { forward_with(index, shape, args, |_| {}) }
}

/// As [`forward_args`]; `adjust` changes what the library is given.
///
/// # Safety
/// As for [`forward`].
pub unsafe fn forward_with(
    index: usize,
    shape: &'static Shape,
    args: &[usize; MOST],
    adjust: impl FnOnce(&mut [usize; MOST]),
) -> usize {
    let mut scratch = Scratch::of(shape);
    let mut below = *args;
    let count = shape.lanes.len();
    let mut s = session();
    // Not always the shape's own: a plain procedure may stand in for one with large counts.
    let function = s.shape(index).function;
    if function == 0 {
        drop(s);
        // SAFETY: the caller's.
        return unsafe { crate::absent::call(shape, args) };
    }
    let freed = shape.frees.and_then(|(at, kind)| {
        // SAFETY: the caller's: a handle stands there.
        let handle = unsafe { read_handle(args[at], handle_bytes(s.values.upper, kind)) };
        Some((at, kind, s.objects.decode(kind, handle)?))
    });
    if let Some((at, kind, index)) = freed
        && s.one_less(kind, index)
    {
        // SAFETY: as above.
        unsafe { write_handle(args[at], handle_bytes(s.values.upper, kind), s.values.null(kind).unwrap_or(0)) };
        return 0;
    }
    for i in shape.down.iter().map(|&i| usize::from(i)) {
        // SAFETY: the caller's.
        below[i] = unsafe { s.down_arg(shape, args, i, &mut scratch) };
    }
    if let Some(target) = &shape.target {
        below[target.displacement] = s.displacement_below(target, args);
    }
    let ends = freed.and_then(|(at, kind, index)| Some((at, kind, s.objects.may_die(kind, index)?)));
    drop(s);
    adjust(&mut below);
    // SAFETY: the caller's; the arguments are in the library's form.
    let result = unsafe { invoke(function, &below[..count]) };
    if result as i32 == 0 && shape.up.is_empty() && shape.change.is_none() {
        return result;
    }
    let mut s = session();
    if let Some((at, kind, lower)) = ends {
        // SAFETY: our own place for the handle, which the library has set to null if it has freed the object.
        let now = unsafe { read_handle(below[at], handle_bytes(s.values.lower, kind)) };
        s.objects.has_died(kind, lower, now != lower);
    }
    // SAFETY: as above.
    unsafe { returned(&mut s, shape, args, &below, result, &mut scratch) }
}

/// Brings up what a call has yielded, or why it has failed. `scratch` has what the library may read as long as the request
/// that was made is under way.
///
/// # Safety
/// The library has returned `result` to a call with `below` in place of `args`.
pub unsafe fn returned(
    s: &mut Session,
    shape: &'static Shape,
    args: &[usize; MOST],
    below: &[usize; MOST],
    result: usize,
    scratch: &mut Scratch,
) -> usize {
    if result as i32 == 0 {
        // SAFETY: the call has succeeded.
        unsafe { bring_up(s, shape, args, below) };
        if let Some(at) = shape.point.request.filter(|_| shape.lasting) {
            // SAFETY: the program's variable, which holds the new handle.
            let handle = unsafe { read_handle(args[at], handle_bytes(s.values.upper, Kind::Request)) };
            if let Some(number) = s.objects.decode(Kind::Request, handle) {
                s.keep(shape, number, scratch);
            }
        }
        return result;
    }
    for (i, lane) in shape.lanes.iter().enumerate() {
        match *lane {
            // A status is filled in where a message was too long for its buffer.
            // SAFETY: the library has written it, or it is zero.
            Lane::StatusOut => unsafe { _ = s.up_arg(shape, args, below, i) },
            // SAFETY: the program's place for a handle, and ours.
            Lane::HandleAt(kind, Direction::Out) => unsafe { s.up_if_null(kind, args[i], below[i]) },
            _ => {}
        }
    }
    s.up_error(result)
}

/// Brings up what a call has yielded, and takes note of what it made or changed.
///
/// # Safety
/// The call has succeeded with `below` in place of `args`.
pub unsafe fn bring_up(s: &mut Session, shape: &'static Shape, args: &[usize; MOST], below: &[usize; MOST]) {
    for i in shape.up.iter().map(|&i| usize::from(i)) {
        // SAFETY: the caller's.
        if let Some((kind, new)) = unsafe { s.up_arg(shape, args, below, i) } {
            // SAFETY: as above.
            unsafe { crate::log::made(s, shape, args, i, kind, new) };
        }
    }
    // SAFETY: as above.
    unsafe { crate::changes::changed(s, shape, args) };
}
