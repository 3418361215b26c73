//! Procedures that the machine's library lacks, and that can be carried out without it: those for large counts (`_c`) by the
//! plain ones, as far as the counts fit; the fields of a status; texts of an info.
use crate::calls::{MOST, call as invoke, lower};
use crate::forward::returned;
use crate::hand_out;
use crate::session::{Access, Session, session};
use crate::shape::Shape;
use crate::words::Scratch;
use phasecast_abi::{CType, Direction, Kind, Passing, Procedure, by_name};
use std::sync::Once;

/// What a library cannot do at all, and what it cannot do with so large a count.
const UNSUPPORTED: &str = "MPI_ERR_UNSUPPORTED_OPERATION";
const TOO_LARGE: &str = "MPI_ERR_COUNT";

/// Carries out a call of a procedure that the library lacks.
///
/// # Safety
/// `args` are those of the procedure.
pub unsafe fn call(shape: &'static Shape, args: &[usize; MOST]) -> usize {
    let name = shape.procedure.name;
    if let Some(at) = field(&session(), name) {
        // SAFETY: the caller's: a status, and a number or where one goes.
        return unsafe { of_status(shape, (args[0] + at) as *mut i32, args[1]) };
    }
    if name == "MPI_Info_get_string" {
        // SAFETY: the caller's.
        return unsafe { info_text(args) };
    }
    // SAFETY: the caller's.
    unsafe { by_plain(shape, args) }
}

/// Where in a status of the program the field is that `MPI_Status_get_X` or `MPI_Status_set_X` is about.
fn field(s: &Session, name: &str) -> Option<usize> {
    let layout = &s.values.upper.layout().status;
    let of = name.strip_prefix("MPI_Status_")?;
    match of.strip_prefix("get_").or_else(|| of.strip_prefix("set_"))? {
        "source" => Some(layout.source),
        "tag" => Some(layout.tag),
        "error" => Some(layout.error),
        _ => None,
    }
}

/// # Safety
/// At `field` is one of a status; `other` is the number that it is given, or where its own goes.
unsafe fn of_status(shape: &Shape, field: *mut i32, other: usize) -> usize {
    // SAFETY: the caller's.
    unsafe {
        match shape.procedure.params[1].passing {
            Passing::Value => field.write_unaligned(other as i32),
            _ => (other as *mut i32).write_unaligned(field.read_unaligned()),
        }
    }
    0
}

/// `MPI_Info_get_string`, by the procedures that it has replaced.
///
/// # Safety
/// `args` are those of the procedure.
unsafe fn info_text(args: &[usize; MOST]) -> usize {
    let mut s = session();
    let (library, info) = (s.library, s.down_handle(Kind::Info, args[0]));
    let [_, key, room, value, flag, ..] = *args;
    let (room, flag) = (room as *mut i32, flag as *mut i32);
    let (mut length, mut found) = (0i32, 0i32);
    let mut code = lower!(library, MPI_Info_get_valuelen(info, key, &raw mut length, &raw mut found));
    if code == 0 && found != 0 {
        // SAFETY: the caller's: how much room there is for the text, its end included.
        let given = unsafe { room.read_unaligned() };
        if given > 1 {
            code = lower!(library, MPI_Info_get(info, key, given - 1, value, &raw mut found));
        } else if given == 1 {
            // SAFETY: as above.
            unsafe { *(value as *mut u8) = 0 };
        }
        // SAFETY: the caller's.
        unsafe { room.write_unaligned(length + 1) };
    }
    // SAFETY: the caller's.
    unsafe { flag.write_unaligned(found) };
    s.up_error(code as u32 as usize)
}

/// What the library has in place of a procedure for large counts: that of MPI 3 for one large count, else the plain one.
fn stand_in(s: &Session, shape: &Shape) -> Option<(&'static Procedure, usize)> {
    let stem = shape.procedure.name.strip_suffix("_c")?;
    // The functions that the program gives to these take large counts themselves.
    if shape.procedure.params.iter().any(|param| param.ctype == CType::Function) {
        return None;
    }
    ["_x", ""].iter().find_map(|tail| {
        let id = by_name(&format!("{stem}{tail}"))?;
        Some((id.get()?, s.library.function(usize::from(id.0))?))
    })
}

/// Bytes of a number.
fn width(ctype: CType) -> usize {
    if matches!(ctype, CType::Int | CType::Fint) { 4 } else { 8 }
}

/// A call in the form of the plain procedure.
struct Narrowed {
    /// The library's function.
    function: usize,
    /// The arguments that stand for those of the procedure, and which of these the plain one has.
    below: [usize; MOST],
    given: Vec<usize>,
    /// What the library writes as narrow numbers: where to, for whom, how many.
    widen: Vec<(usize, usize, usize)>,
}

/// # Errors
/// The name of the error, if it cannot.
///
/// # Safety
/// `args` are those of the procedure.
unsafe fn narrowed(
    s: &mut Session,
    shape: &'static Shape,
    args: &[usize; MOST],
    scratch: &mut Scratch,
) -> Result<Narrowed, &'static str> {
    let (plain, function) = stand_in(s, shape).ok_or(UNSUPPORTED)?;
    let mut call = Narrowed { function, below: [0; MOST], given: Vec::new(), widen: Vec::new() };
    let mut of_plain = plain.params.iter().peekable();
    for (i, param) in shape.procedure.params.iter().enumerate() {
        let Some(narrow) = of_plain.next_if(|narrow| narrow.name == param.name) else {
            // The large counts of a datatype: those that the library has are made without.
            if param.passing == Passing::Pointer {
                // SAFETY: the caller's: where their number goes.
                unsafe { (args[i] as *mut i64).write_unaligned(0) };
            }
            continue;
        };
        call.given.push(i);
        // SAFETY: the caller's.
        call.below[i] = unsafe { s.down_arg(shape, args, i, scratch) };
        if width(param.ctype) == width(narrow.ctype) || param.ctype == CType::Handle || call.below[i] == 0 {
            continue;
        }
        if param.passing == Passing::Value {
            i32::try_from(call.below[i] as i64).map_err(|_| TOO_LARGE)?;
            continue;
        }
        if param.root_only && !s.at_root(shape, args) {
            continue;
        }
        // SAFETY: the caller's.
        let length = unsafe { s.length(shape, args, param.length) };
        let at = scratch.take(length * 4);
        if param.direction != Direction::Out {
            for j in 0..length {
                // SAFETY: the caller's: so many numbers of 8 bytes.
                let value = unsafe { (args[i] as *const i64).add(j).read_unaligned() };
                let value = i32::try_from(value).map_err(|_| TOO_LARGE)?;
                // SAFETY: there is room.
                unsafe { (at as *mut i32).add(j).write(value) };
            }
        }
        if param.direction != Direction::In {
            call.widen.push((at, args[i], length));
        }
        call.below[i] = at;
    }
    if of_plain.next().is_some() {
        return Err(UNSUPPORTED);
    }
    if let Some(target) = &shape.target {
        call.below[target.displacement] = s.displacement_below(target, args);
    }
    Ok(call)
}

/// # Safety
/// `args` are those of the procedure.
unsafe fn by_plain(shape: &'static Shape, args: &[usize; MOST]) -> usize {
    let mut s = session();
    let mut scratch = Scratch::of(shape);
    // SAFETY: the caller's.
    let call = match unsafe { narrowed(&mut s, shape, args, &mut scratch) } {
        Ok(call) => call,
        Err(name) => return raise(s, shape, args, name),
    };
    drop(s);
    let words: Vec<usize> = call.given.iter().map(|&i| call.below[i]).collect();
    // SAFETY: the caller's; the arguments are in the library's form.
    let result = unsafe { invoke(call.function, &words) };
    let mut s = session();
    for (from, to, length) in call.widen.into_iter().filter(|_| result as i32 == 0) {
        for j in 0..length {
            // SAFETY: written by the library; the program's array is as long.
            unsafe {
                let value = (from as *const i32).add(j).read();
                (to as *mut i64).add(j).write_unaligned(value.into());
            }
        }
    }
    // SAFETY: what the library has returned.
    unsafe { returned(&mut s, shape, args, &call.below, result, &mut scratch) }
}

/// An error of a call that the library does not see: the program's error handler is called as the library would. (Errors of
/// files are returned unless a program asks for more.) Yields the code for the program.
pub fn raise(s: Access, shape: &Shape, args: &[usize; MOST], name: &'static str) -> usize {
    let given = |kind| {
        let mut params = shape.procedure.params.iter().zip(args);
        params.find(|(param, _)| param.kind == kind && param.direction == Direction::In).map(|(_, arg)| *arg)
    };
    if given(Kind::File).is_some() {
        return s.values.above(name).unwrap_or(1);
    }
    let own = s.values.above("MPI_COMM_SELF").unwrap_or(0);
    let library = s.library;
    // Who reads the error output may be slow: the program's other threads do not wait for that.
    drop(s);
    if name == UNSUPPORTED {
        static TOLD: Once = Once::new();
        let (library, procedure) = (&library.name, shape.procedure.name);
        TOLD.call_once(|| eprintln!("phasecast: {library} has no {procedure}, which the program calls"));
    }
    let code = library.constant(name).unwrap_or(1) as i32;
    // What is made has no handler yet: the one that it is to have is called.
    let makes = |kind| shape.procedure.output_index(kind).is_some();
    match given(Kind::Errhandler).filter(|_| makes(Kind::Communicator) || makes(Kind::Session)) {
        Some(handler) => hand_out::call_this_handler(own, handler, code),
        None => hand_out::call_handler(session(), given(Kind::Communicator).unwrap_or(own), code),
    }
}

/// The function that carries out a procedure here whose plain form takes as many arguments, and the arguments in its form.
///
/// # Errors
/// The name of the error, if it cannot.
///
/// # Safety
/// `args` are those of the procedure.
pub unsafe fn lowered(
    s: &mut Session,
    index: usize,
    args: &[usize; MOST],
    scratch: &mut Scratch,
) -> Result<(usize, [usize; MOST]), &'static str> {
    let shape = &s.shapes[index];
    let Some(function) = s.library.function(index) else {
        // SAFETY: the caller's.
        return unsafe { narrowed(s, shape, args, scratch) }.map(|call| (call.function, call.below));
    };
    let mut below = [0; MOST];
    for (i, below) in below.iter_mut().enumerate().take(shape.lanes.len()) {
        // SAFETY: the caller's.
        *below = unsafe { s.down_arg(shape, args, i, scratch) };
    }
    Ok((function, below))
}

impl Session {
    /// Whether what counts at the root of a collective only counts at this rank.
    fn at_root(&mut self, shape: &Shape, args: &[usize; MOST]) -> bool {
        let at = |kind| shape.procedure.param_index(kind).map(|at| args[at]);
        let (Some(root), Some(comm)) = (at(Kind::Root), at(Kind::Communicator)) else { return true };
        let of_group = self.values.upper.layout().root;
        self.comm(comm).is_none_or(|comm| root as i32 == if comm.inter { of_group } else { comm.rank })
    }
}
