//! Error classes and codes of the program's own (`MPI_Add_error_class`, `MPI_Remove_error_class` and their kin): the
//! library chooses their numbers, and after a restart another library has chosen others. So the program keeps the ones
//! it got first.
use crate::callbacks;
use crate::calls::lower;
use crate::dispatch::Call;
use crate::forward::{arguments, forward, forward_with};
use crate::library::Library;
use crate::session::{Session, session};
use phasecast_abi::{Domain, Kind, Passing};
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

/// A class or a code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Number {
    /// The program's.
    above: i32,
    /// The class that it is of, as the program knows it; its own number for a class.
    class: i32,
    /// Its text, once it has one.
    text: Option<CString>,
    /// The library's, in this process.
    #[serde(skip)]
    below: i32,
}

/// All that the program has added, in its order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Own(Vec<Number>);

impl Own {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The greatest number that the program knows; 0 if there is none.
    pub fn last(&self) -> i32 {
        self.0.iter().map(|n| n.above).max().unwrap_or(0)
    }

    /// The program's number for one of the library's.
    pub fn up(&self, below: i32) -> Option<i32> {
        self.0.iter().find(|n| n.below == below).map(|n| n.above)
    }

    fn get(&mut self, above: i32) -> Option<&mut Number> {
        self.0.iter_mut().find(|n| n.above == above)
    }
}

/// What the library has been made to add in this process: class (none for classes), number, and whether a program uses it.
/// Libraries have room for few and forget none, so what one image needed serves the next.
static ADDED: Mutex<Vec<(Option<i32>, i32, bool)>> = Mutex::new(Vec::new());

/// Adds a class, or a code of a class; or takes one that an image before has left.
fn add_below(library: &Library, class: Option<i32>) -> Result<i32, i32> {
    let mut added = ADDED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(left) = added.iter_mut().find(|(of, _, used)| !used && *of == class) {
        left.2 = true;
        return Ok(left.1);
    }
    let mut number = 0i32;
    let code = match class {
        None => lower!(library, MPI_Add_error_class(&raw mut number)),
        Some(class) => lower!(library, MPI_Add_error_code(class as u32, &raw mut number)),
    };
    if code != 0 {
        return Err(code);
    }
    added.push((class, number, true));
    Ok(number)
}

impl Session {
    /// The program's form of an error code.
    pub fn up_error(&self, code: usize) -> usize {
        if let Some(above) = callbacks::made_of(code as i32).or_else(|| self.errors.up(code as i32)) {
            return above as u32 as usize;
        }
        if self.values.same() || code as i32 == 0 {
            return code;
        }
        let neutral = self.values.lower.error_class_to_neutral(code as i32);
        let above = self.values.upper.from_neutral(Domain::ErrorClass, neutral.into(), self.library);
        above.unwrap_or(1) as usize
    }

    /// Whether an error code of the library says that a message was too long for its buffer: it has been received then.
    pub fn truncated(&self, code: i32) -> bool {
        let mut class = 0i32;
        lower!(self.library, MPI_Error_class(code, &raw mut class));
        self.library.constant("MPI_ERR_TRUNCATE") == Some(class as usize)
    }

    /// The same of an error code in the program's form.
    pub fn truncated_above(&self, code: i32) -> bool {
        if self.values.same() {
            return self.truncated(code);
        }
        self.values.above("MPI_ERR_TRUNCATE") == Some(code as usize)
    }

    /// The library's form of an error class or code.
    pub fn down_error(&mut self, above: i32) -> i32 {
        match self.errors.get(above) {
            Some(number) => number.below,
            None => self.values.down(Domain::ErrorClass, above.into(), self.library) as i32,
        }
    }

    /// The number that the program gets for a new one of the library's.
    fn new_above(&self, below: i32) -> i32 {
        if self.values.same() && self.errors.0.iter().all(|n| n.above != below) {
            return below;
        }
        self.errors.last().max(self.values.above("MPI_ERR_LASTCODE").unwrap_or(0) as i32) + 1
    }

    /// Makes them again under the library of this process.
    ///
    /// # Errors
    /// If it refuses one.
    pub fn errors_again(&mut self) -> Result<(), String> {
        ADDED.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(|(.., used)| *used = false);
        let library = self.library;
        for i in 0..self.errors.0.len() {
            let Number { above, class, text, .. } = self.errors.0[i].clone();
            let class = (class != above).then(|| self.down_error(class));
            let below = add_below(library, class)
                .map_err(|code| format!("an error class or code cannot be made again: error {code}"))?;
            self.errors.0[i].below = below;
            if let Some(text) = text {
                lower!(library, MPI_Add_error_string(below as u32, text.as_ptr()));
            }
        }
        Ok(())
    }
}

/// `MPI_Add_error_class`, `MPI_Add_error_code` and `MPI_Add_error_string`.
///
/// # Safety
/// A call of the gate.
pub unsafe fn add(call: &mut Call) -> usize {
    let mut s = session();
    let library = s.library;
    let name = call.shape.procedure.name;
    if name == "MPI_Add_error_string" {
        // SAFETY: the caller's: a text.
        let text = unsafe { std::ffi::CStr::from_ptr(call.arg(1) as *const libc::c_char) }.to_owned();
        let Some(number) = s.errors.get(call.arg(0) as i32) else {
            drop(s);
            // SAFETY: the caller's.
            return unsafe { forward(call) };
        };
        let code = lower!(library, MPI_Add_error_string(number.below as u32, text.as_ptr()));
        number.text = Some(text);
        return s.up_error(code as u32 as usize);
    }
    let of_class = name == "MPI_Add_error_code";
    let class = of_class.then(|| s.down_error(call.arg(0) as i32));
    let below = match add_below(library, class) {
        Ok(below) => below,
        Err(code) => return s.up_error(code as u32 as usize),
    };
    let above = s.new_above(below);
    let class = if of_class { call.arg(0) as i32 } else { above };
    s.errors.0.push(Number { above, class, text: None, below });
    // SAFETY: the caller's: where the number goes.
    unsafe { *(call.arg(usize::from(of_class)) as *mut i32) = above };
    0
}

/// `MPI_Remove_error_class`, `MPI_Remove_error_code` and `MPI_Remove_error_string`.
///
/// # Safety
/// A call of the gate.
pub unsafe fn remove(call: &mut Call) -> usize {
    let mut s = session();
    let (library, above) = (s.library, call.arg(0) as i32);
    let Some(number) = s.errors.get(above) else {
        drop(s);
        // SAFETY: the caller's.
        return unsafe { forward(call) };
    };
    let below = number.below;
    let name = call.shape.procedure.name;
    let code = match name {
        // What a library cannot forget it keeps for the next one.
        _ if call.shape.function == 0 => 0,
        "MPI_Remove_error_class" => lower!(library, MPI_Remove_error_class(below as u32)),
        "MPI_Remove_error_code" => lower!(library, MPI_Remove_error_code(below as u32)),
        _ => lower!(library, MPI_Remove_error_string(below as u32)),
    };
    if code != 0 {
        return s.up_error(code as u32 as usize);
    }
    if name == "MPI_Remove_error_string" {
        number.text = None;
        return 0;
    }
    s.errors.0.retain(|number| number.above != above);
    let mut added = ADDED.lock().unwrap_or_else(PoisonError::into_inner);
    if call.shape.function == 0 {
        added.iter_mut().filter(|(_, number, _)| *number == below).for_each(|(.., used)| *used = false);
    } else {
        added.retain(|(_, number, _)| *number != below);
    }
    0
}

/// What is asked about, or done with, an error code that may be the program's own.
///
/// # Safety
/// A call of the gate.
pub unsafe fn ask(call: &mut Call) -> usize {
    let mut s = session();
    let shape = call.shape;
    let is_code = |p: &phasecast_abi::Param| p.kind == Kind::ErrorCode && p.passing == Passing::Value;
    let at = shape.procedure.params.iter().position(is_code).unwrap_or(0);
    let Some(number) = s.errors.get(call.arg(at) as i32).cloned() else {
        drop(s);
        // SAFETY: the caller's.
        return unsafe { forward(call) };
    };
    drop(s);
    if shape.procedure.name == "MPI_Error_class" {
        // SAFETY: the caller's: where the class goes.
        unsafe { *(call.arg(1) as *mut i32) = number.class };
        return 0;
    }
    let args = arguments(call, shape.lanes.len());
    // SAFETY: the caller's.
    unsafe { forward_with(call.index, shape, &args, |below| below[at] = number.below as u32 as usize) }
}
