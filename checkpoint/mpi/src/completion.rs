//! Wait*, Test*: requests of the program in terms of the library's, and those that were done at a
//! cut.
use crate::calls::{FEW, call as invoke};
use crate::dispatch::Call;
use crate::forward::arguments;
use crate::outcome::Outcome;
use crate::requests::Stage;
use crate::session::{Access, Session, session};
use crate::shape::Shape;
use crate::waits;
use crate::words::{Scratch, read_handle, write_handle};
use phasecast_abi::{Class, Kind, Procedure, Which};

/// The most arguments of a procedure that completes a request by itself.
const ONE: usize = 3;

/// Where the arguments of a completion are.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    count: Option<usize>,
    /// The requests.
    pub requests: usize,
    /// Where it says whether something is complete.
    pub flag: Option<usize>,
    /// Where it says how many are.
    pub outcount: Option<usize>,
    /// Where it says which.
    pub indices: Option<usize>,
    /// Where its statuses go.
    pub status: usize,
    /// How many of the requests it completes.
    pub which: Which,
}

impl Places {
    /// Those of a procedure, if it is one.
    pub fn of(p: &Procedure) -> Option<Places> {
        let Class::Completion { which, .. } = p.class else { return None };
        let outcount =
            p.params.iter().position(|p| p.kind == Kind::ArrayLength && p.direction != phasecast_abi::Direction::In);
        Some(Places {
            count: (which != Which::One).then_some(0),
            requests: p.param_index(Kind::Request)?,
            flag: p.param_index(Kind::Flag),
            outcount,
            indices: p.param_index(Kind::Index),
            status: p.param_index(Kind::Status)?,
            which,
        })
    }

    /// The handles of the program's requests, of so many bytes each.
    ///
    /// # Safety
    /// The arguments of a call of the procedure, which has not returned while they are read.
    #[inline(always)]
    pub unsafe fn handles(&self, arg: impl Fn(usize) -> usize, bytes: usize) -> impl ExactSizeIterator<Item = usize> {
        let count = self.count.map_or(1, |at| (arg(at) as i32).max(0) as usize);
        let first = arg(self.requests);
        // SAFETY: the caller's: so many requests stand there.
        (0..count).map(move |at| unsafe { read_handle(first + at * bytes, bytes) })
    }
}

/// Completes requests.
///
/// # Safety
/// A call of the gate.
pub unsafe fn complete(call: &mut Call) -> usize {
    if waits::apply(call.shape) {
        // SAFETY: the caller's.
        return unsafe { waits::until_found(call) };
    }
    let s = session();
    let shape = call.shape;
    let Some(places) = shape.completion.as_ref().filter(|_| shape.function != 0) else { return 1 };
    let one = places.which == Which::One && shape.lanes.len() <= ONE && s.requests.done == 0;
    // SAFETY: the caller's.
    unsafe { if one { complete_one(call, s, shape, places) } else { complete_several(call, s, shape, places) } }
}

/// As [`complete`], with memory for as many as there are.
///
/// # Safety
/// A call of the gate.
#[inline(never)]
unsafe fn complete_several(call: &Call, mut s: Access, shape: &'static Shape, places: &'static Places) -> usize {
    let (upper, lower) = (s.values.upper, s.values.lower);
    let (above, under) = (upper.layout().handle_bytes, lower.layout().handle_bytes);
    // SAFETY: the caller's.
    let asked = unsafe { places.handles(|at| call.arg(at), above) };
    let count = asked.len();
    let mut scratch = Scratch::new();
    let handles = scratch.take(count * under);
    let numbers = scratch.take(count * 4) as *mut u32;
    let size = lower.layout().status.size;
    let statuses = scratch.take(if places.which == Which::Any { 1 } else { count } * size);
    let null = s.library.request_null;
    for (i, handle) in asked.enumerate() {
        let number = s.objects.decode(Kind::Request, handle);
        // SAFETY: the array of ours is as long.
        unsafe { numbers.add(i).write(number.unwrap_or(u32::MAX)) };
    }
    // SAFETY: filled in above.
    let numbers = unsafe { std::slice::from_raw_parts_mut(numbers, count) };
    if matches!(places.which, Which::Any | Which::Some) && !s.recorded.is_empty() {
        s.choose_recorded(numbers);
    }
    let mut done = 0;
    for (i, &number) in numbers.iter().enumerate() {
        let mut below = null;
        if number != u32::MAX {
            if s.requests.done > 0 && s.is_done(number) {
                done += 1;
            } else {
                below = s.objects.get(Kind::Request, number).map_or(null, |object| object.lower);
            }
        }
        // SAFETY: the array of ours is as long.
        unsafe { write_handle(handles + i * under, under, below) };
    }
    let mut out = Outcome { call, places, above, numbers, handles };
    if done > 0 && out.places.which != Which::All {
        // SAFETY: the caller's.
        let (comm, error) = unsafe { out.take_done(&mut s) };
        drop(s);
        return crate::hand_out::raise(comm, error);
    }
    drop(s);
    let mut below: [usize; FEW] = arguments(call, shape.lanes.len());
    below[out.places.requests] = handles;
    below[out.places.status] = statuses;
    // SAFETY: the caller's; the arrays are as long as the library will take them to be.
    let result = unsafe { invoke(shape.function, &below[..shape.lanes.len()]) };
    let mut s = session();
    // SAFETY: the library has filled in what it says.
    unsafe { out.after(&mut s, result, statuses, size) }
}

/// Completes a request by itself that the library knows: nothing was done at a cut.
///
/// # Safety
/// A call of the gate.
#[inline(always)]
unsafe fn complete_one(call: &Call, s: Access, shape: &'static Shape, places: &'static Places) -> usize {
    let above = s.values.upper.layout().handle_bytes;
    // SAFETY: the caller's: a request stands there.
    let handle = unsafe { read_handle(call.arg(places.requests), above) };
    let number = s.objects.decode(Kind::Request, handle);
    let object = number.and_then(|number| s.objects.get(Kind::Request, number));
    let mut request = object.map_or(s.library.request_null, |object| object.lower);
    let mut status = [0u64; 4];
    let size = s.values.lower.layout().status.size;
    drop(s);
    let (handles, statuses) = (&raw mut request as usize, &raw mut status as usize);
    // Chosen, so that they can stay in registers.
    let below: [usize; ONE] = std::array::from_fn(|i| match i {
        i if i == places.requests => handles,
        i if i == places.status => statuses,
        i => call.arg(i),
    });
    // SAFETY: the caller's; no interface has a longer status or handle.
    let result = unsafe { invoke(shape.function, &below) };
    let numbers = &[number.unwrap_or(u32::MAX)];
    let mut out = Outcome { call, places, above, numbers, handles };
    let mut s = session();
    if result as i32 != 0 {
        // SAFETY: the library has filled in what it says.
        return unsafe { out.after(&mut s, result, statuses, size) };
    }
    // SAFETY: as above.
    unsafe {
        if places.flag.is_none_or(|flag| (call.arg(flag) as *const i32).read_unaligned() != 0) {
            out.take(&mut s, 0, 0, Some(statuses));
        }
    }
    0
}

impl Session {
    /// Whether a request was done at a cut.
    pub fn is_done(&self, number: u32) -> bool {
        matches!(self.requests.get(number).map(|r| r.stage), Some(Stage::Done(_)))
    }
}
