//! Waiting where several threads call MPI at once. A call that waits is carried out by its nonblocking counterpart, tests and
//! [waits](crate::wakeups) that can be ended, so that its thread can step out of it as others stand still for a cut: it goes
//! back to the program's side, where it can be saved, and makes the call again. What it had posted is a request like those
//! of the program.
use crate::calls::MOST;
use crate::dispatch::Call;
use crate::requests::Stage;
use crate::session::{current, session};
use crate::shape::Shape;
use crate::words::read_handle;
use crate::{callbacks, wakeups};
use phasecast_abi::{Class, Kind, PROCEDURES, Procedure, SendMode, Side, Timing, Which};
use phasecast_process::gate::{self, Frame, Made};
use phasecast_process::threads;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::sync::OnceLock;

/// A procedure by which another one waits, or does a part of what it does.
#[derive(Debug)]
pub struct Counterpart {
    index: usize,
    /// The argument that each of its own is; none where it has a flag or a request of ours.
    args: Vec<Option<usize>>,
}

/// A call that its thread has stepped out of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteppedOut {
    procedure: String,
    /// The requests that it still waits for.
    awaited: Vec<Awaited>,
    /// Events that it has not counted yet.
    events: u64,
}

/// A request that a call has posted: its handle, and where the status goes, both in the program's form.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Awaited {
    request: usize,
    status: usize,
}

thread_local! {
    /// The procedure of a call that counts the events of its parts at its end, and how many there are.
    static DEFERRED: Cell<Option<(u32, u64)>> = const { Cell::new(None) };
}

/// How many of these events, of a call of the calling thread, are to be counted now. What was deferred in a call that an
/// exception has left is over: the thread is in another one, or in one that has begun anew.
pub fn deferred(events: u64) -> u64 {
    // SAFETY: the frame of the call that the thread is in.
    let index = unsafe { callbacks::FRAME.get().as_ref() }.map(|frame| frame.index);
    match DEFERRED.get() {
        Some((of, before)) if Some(of) == index => {
            DEFERRED.set(Some((of, before + events)));
            0
        }
        _ => events,
    }
}

fn deferred_now() -> u64 {
    DEFERRED.take().map_or(0, |(_, events)| events)
}

/// The counterparts of a procedure that waits; none of others.
pub fn counterparts(procedure: &Procedure) -> Vec<Counterpart> {
    let (blocking, timing) = (false, Timing::Nonblocking);
    let sends = procedure.send_sides().next().zip(procedure.send_tag());
    let receives = procedure.recv_sides().next().zip(procedure.recv_tag());
    let parts = match procedure.class {
        Class::Send { timing: Timing::Blocking, mode } if mode != SendMode::Buffered => {
            vec![part(procedure, Class::Send { timing, mode }, sends)]
        }
        Class::Recv { timing: Timing::Blocking } => vec![part(procedure, Class::Recv { timing }, receives)],
        Class::SendRecv { timing: Timing::Blocking, replace: false } => {
            let mode = SendMode::Standard;
            let send = part(procedure, Class::Send { timing, mode }, sends);
            vec![send, part(procedure, Class::Recv { timing }, receives)]
        }
        Class::Completion { blocking: true, which } => vec![test(procedure, Class::Completion { blocking, which })],
        Class::Probe { blocking: true, matched } => vec![test(procedure, Class::Probe { blocking, matched })],
        _ => Vec::new(),
    };
    parts.into_iter().collect::<Option<_>>().unwrap_or_default()
}

fn of_class(class: Class, large: bool) -> Option<(usize, &'static Procedure)> {
    PROCEDURES.iter().enumerate().find(|(_, p)| p.class == class && p.is_large_count() == large)
}

/// The procedure that posts what this one sends or receives.
fn part(procedure: &Procedure, class: Class, side: Option<(&Side, usize)>) -> Option<Counterpart> {
    let (index, other) = of_class(class, procedure.is_large_count())?;
    let (side, tag) = side?;
    let from = |kind| match kind {
        Kind::Request => Some(None),
        Kind::Buffer => Some(Some(usize::from(side.buffer))),
        Kind::Count => Some(side.count.map(usize::from)),
        Kind::Datatype => Some(side.datatype.map(usize::from)),
        Kind::Tag => Some(Some(tag)),
        kind => procedure.param_index(kind).map(Some),
    };
    Some(Counterpart { index, args: other.params.iter().map(|param| from(param.kind)).collect::<Option<_>>()? })
}

/// The procedure that tests for what this one waits for: the same arguments, perhaps with a flag.
fn test(procedure: &Procedure, class: Class) -> Option<Counterpart> {
    let (index, other) = of_class(class, false)?;
    let args = other.params.iter().map(|param| procedure.param_named(param.name));
    Some(Counterpart { index, args: args.collect() })
}

/// Whether a call waits in this way.
#[inline(always)]
pub fn apply(shape: &Shape) -> bool {
    threads::several() && steps_out(shape)
}

#[cold]
fn steps_out(shape: &Shape) -> bool {
    // SAFETY: the level of thread support does not change.
    let multiple = unsafe { current() }.is_some_and(|s| s.multiple);
    multiple && !shape.waits.is_empty() && !callbacks::inside()
}

/// Sends, receives, or both.
///
/// # Safety
/// A call of the gate, whose shape [applies](apply).
pub unsafe fn message(call: &mut Call) -> usize {
    // SAFETY: the caller's.
    let fs = unsafe { (*call.frame).fs };
    let name = call.shape.procedure.name;
    let before = session().stepped_out.remove(&fs).filter(|before| before.procedure == name);
    let (mut code, mut awaited) = (0, Vec::new());
    DEFERRED.set(Some((call.index as u32, before.as_ref().map_or(0, |before| before.events))));
    match before {
        Some(before) => awaited = before.awaited,
        None => {
            for part in &call.shape.waits {
                // SAFETY: the caller's.
                match unsafe { post(call, part) } {
                    Ok(posted) => awaited.push(posted),
                    Err(failure) => code = failure,
                }
            }
        }
    }
    while let Some(&one) = awaited.last() {
        // SAFETY: the caller's.
        match unsafe { tested(call, one) } {
            Some(result) => {
                code = if code == 0 { result } else { code };
                awaited.pop();
            }
            None if threads::stopping() => {
                let (procedure, events) = (name.to_owned(), deferred_now());
                session().stepped_out.insert(fs, SteppedOut { procedure, awaited, events });
                // SAFETY: the call's frame; nothing that is left has anything to drop.
                unsafe { gate::again(call.frame) }
            }
            None => wait_for(&[one.request], true),
        }
    }
    let events = deferred_now();
    session().count(events);
    code
}

/// Waits for requests, or for a message.
///
/// # Safety
/// A call of the gate, whose shape [applies](apply).
pub unsafe fn until_found(call: &mut Call) -> usize {
    let shape = call.shape;
    let Some(counterpart) = shape.waits.first() else { return 1 };
    let outcount = shape.completion.as_ref().and_then(|places| places.outcount);
    loop {
        let mut flag = 0i32;
        // SAFETY: the caller's.
        let code = unsafe { made(call, counterpart, &raw mut flag as usize) };
        // SAFETY: the caller's: where the call says how many it has found.
        let found = outcount.map_or(flag, |at| unsafe { (call.arg(at) as *const i32).read_unaligned() });
        if code as i32 != 0 || found != 0 {
            return code;
        }
        if threads::stopping() {
            // SAFETY: the call's frame; nothing that is left has anything to drop.
            unsafe { gate::again(call.frame) }
        }
        match &shape.completion {
            Some(places) => {
                let bytes = session().values.upper.layout().handle_bytes;
                // SAFETY: the caller's.
                let handles = unsafe { places.handles(|at| call.arg(at), bytes) };
                wait_for(&handles.collect::<Vec<usize>>(), places.which == Which::All);
            }
            // The library has no wait for a message that could be ended.
            None => std::thread::yield_now(),
        }
    }
}

/// Waits in the library until one of these requests of the program is complete, or all are, and notes it; or until the thread
/// is to step out.
fn wait_for(handles: &[usize], all: bool) {
    let s = session();
    let number = |handle: &usize| s.objects.decode(Kind::Request, *handle);
    let active = |number: &u32| s.requests.get(*number).is_some_and(|request| request.stage == Stage::Active);
    let mut numbers: Vec<u32> = handles.iter().filter_map(number).filter(active).collect();
    let null = s.library.request_null;
    let below = |number: &u32| s.objects.get(Kind::Request, *number).map_or(null, |object| object.lower);
    let mut requests: Vec<usize> = numbers.iter().map(below).collect();
    drop(s);
    while let Some(mut done) = wakeups::wait_any(&requests) {
        let number = numbers.swap_remove(done.index);
        requests.swap_remove(done.index);
        session().completed(number, done.code, done.handle, done.status.as_mut_ptr() as usize);
        if !all || numbers.is_empty() {
            break;
        }
    }
}

/// Carries out a counterpart of a call; `own` is the address of our flag or request.
///
/// # Safety
/// A call of the gate.
unsafe fn made(call: &Call, counterpart: &Counterpart, own: usize) -> usize {
    let mut args = [0; MOST];
    for (to, from) in args.iter_mut().zip(&counterpart.args) {
        *to = from.map_or(own, |at| call.arg(at));
    }
    // SAFETY: the caller's.
    unsafe { carried_out(call.frame, counterpart.index, args) }
}

/// Carries out a call of our own as if the thread of this frame had made it.
///
/// # Safety
/// The arguments are those of the procedure.
unsafe fn carried_out(frame: *mut Frame, index: usize, args: [usize; MOST]) -> usize {
    // SAFETY: the caller's.
    let mut made = Made::new(index, unsafe { (*frame).fs }, args);
    let shape = session().shape(index);
    // SAFETY: the route of this procedure, with its frame.
    unsafe { (shape.route)(&mut Call { index, frame: made.frame(), shape }) }
}

/// Posts a part of a call.
///
/// # Safety
/// A call of the gate.
unsafe fn post(call: &Call, part: &Counterpart) -> Result<Awaited, usize> {
    let mut request = 0u64;
    let at = &raw mut request as usize;
    // SAFETY: the caller's.
    let code = unsafe { made(call, part, at) };
    if code as i32 != 0 {
        return Err(code);
    }
    let s = session();
    let receives = matches!(PROCEDURES[part.index].class, Class::Recv { .. });
    let status = call.shape.point.status.filter(|_| receives).map(|at| call.arg(at));
    Ok(Awaited {
        // SAFETY: the call has written a handle there.
        request: unsafe { read_handle(at, s.values.upper.layout().handle_bytes) },
        status: status.unwrap_or(s.values.upper.layout().status_ignore),
    })
}

/// Tests a request; the result once it is complete.
///
/// # Safety
/// A call of the gate.
unsafe fn tested(call: &Call, one: Awaited) -> Option<usize> {
    static TEST: OnceLock<usize> = OnceLock::new();
    let index = *TEST.get_or_init(|| crate::calls::index("MPI_Test"));
    let (mut request, mut flag, mut args) = (one.request as u64, 0i32, [0; MOST]);
    args[..3].copy_from_slice(&[&raw mut request as usize, &raw mut flag as usize, one.status]);
    // SAFETY: the caller's.
    let code = unsafe { carried_out(call.frame, index, args) };
    (code as i32 != 0 || flag != 0).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_has_counterparts() {
        let of = |name: &str| {
            let parts = counterparts(&PROCEDURES[crate::calls::index(name)]);
            parts.into_iter().map(|part| (crate::calls::name(part.index), part.args)).collect::<Vec<_>>()
        };
        let all = |n: usize| (0..n).map(Some).chain([None]).collect::<Vec<_>>();
        assert_eq!(of("MPI_Send"), [("MPI_Isend", all(6))]);
        assert_eq!(of("MPI_Ssend_c"), [("MPI_Issend_c", all(6))]);
        assert_eq!(of("MPI_Recv"), [("MPI_Irecv", all(6))]);
        let some = |places: &[usize]| places.iter().copied().map(Some).chain([None]).collect::<Vec<_>>();
        let both = [("MPI_Isend", some(&[0, 1, 2, 3, 4, 10])), ("MPI_Irecv", some(&[5, 6, 7, 8, 9, 10]))];
        assert_eq!(of("MPI_Sendrecv"), both);
        assert_eq!(of("MPI_Wait"), [("MPI_Test", vec![Some(0), None, Some(1)])]);
        assert_eq!(of("MPI_Waitall"), [("MPI_Testall", vec![Some(0), Some(1), None, Some(2)])]);
        assert_eq!(of("MPI_Waitany"), [("MPI_Testany", vec![Some(0), Some(1), Some(2), None, Some(3)])]);
        assert_eq!(of("MPI_Waitsome"), [("MPI_Testsome", (0..5).map(Some).collect())]);
        assert_eq!(of("MPI_Probe"), [("MPI_Iprobe", vec![Some(0), Some(1), Some(2), None, Some(3)])]);
        assert_eq!(of("MPI_Mprobe"), [("MPI_Improbe", vec![Some(0), Some(1), Some(2), None, Some(3), Some(4)])]);
        for name in ["MPI_Bsend", "MPI_Isend", "MPI_Test", "MPI_Iprobe", "MPI_Sendrecv_replace", "MPI_Barrier"] {
            assert_eq!(of(name), []);
        }
    }
}
