//! Between C and Fortran: handles by the numbers that Fortran has for them, and statuses.
use crate::calls::{call as invoke, index};
use crate::dispatch::Call;
use crate::library::Library;
use crate::session::{Session, session};
use crate::values::Values;
use phasecast_abi::{Abi, Kind, Return};
use serde::{Deserialize, Serialize};

/// Fortran handles of predefined objects: slot of the kind, Fortran handle, the program's C handle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fortran(Vec<(u8, i32, usize)>);

/// The tail of a procedure's name by which kinds are converted.
const NAMES: [(Kind, &str); 10] = [
    (Kind::Communicator, "Comm"),
    (Kind::Group, "Group"),
    (Kind::Datatype, "Type"),
    (Kind::File, "File"),
    (Kind::Errhandler, "Errhandler"),
    (Kind::Operation, "Op"),
    (Kind::Info, "Info"),
    (Kind::Window, "Win"),
    (Kind::Message, "Message"),
    (Kind::Request, "Request"),
];

impl Fortran {
    /// Asks the library, once it is initialised, where it speaks the program's interface and that interface has numbers of
    /// its own for Fortran.
    pub fn find(values: &Values, library: &Library) -> Fortran {
        if values.upper != Abi::OpenMpi || !values.same() {
            return Fortran::default();
        }
        let mut list = Vec::new();
        for (kind, name) in NAMES {
            let Some(function) = library.function(index(&format!("MPI_{name}_c2f"))) else { continue };
            for (_, above, below) in values.predefined().filter(|(of, ..)| *of == kind) {
                // SAFETY: a procedure that takes a handle and returns a number.
                let number = unsafe { invoke(function, &[below]) } as i32;
                list.push((crate::objects::slot(kind) as u8, number, above));
            }
        }
        Fortran(list)
    }

    /// The Fortran handle; of none of these the same number, or the one that an interface with numbers of its own has for
    /// what is no handle.
    fn number(&self, kind: Kind, handle: usize) -> i32 {
        let slot = crate::objects::slot(kind) as u8;
        let found = self.0.iter().find(|(of, _, above)| *of == slot && *above == handle);
        found.map_or(if self.0.is_empty() { handle as i32 } else { -1 }, |(_, number, _)| *number)
    }

    /// The program's C handle; of none of these the same number, or null where the interface has numbers of its own.
    fn handle(&self, kind: Kind, number: i32) -> usize {
        let slot = crate::objects::slot(kind) as u8;
        let found = self.0.iter().find(|(of, has, _)| *of == slot && *has == number);
        found.map_or(if self.0.is_empty() { number as u32 as usize } else { 0 }, |(.., above)| *above)
    }
}

/// `MPI_X_c2f` and `MPI_X_toint`.
///
/// # Safety
/// A call of the gate.
pub unsafe fn to_fortran(call: &mut Call) -> usize {
    let s = session();
    let kind = call.shape.procedure.params[0].kind;
    let handle = call.arg(0);
    number_of(&s, kind, handle) as u32 as usize
}

/// The Fortran handle of an object with this handle of the program.
pub fn number_of(s: &Session, kind: Kind, handle: usize) -> i32 {
    match s.objects.decode(kind, handle) {
        Some(number) => s.objects.fortran(kind, number),
        None => s.fortran.number(kind, handle),
    }
}

/// `MPI_X_f2c` and `MPI_X_fromint`.
///
/// # Safety
/// A call of the gate.
pub unsafe fn from_fortran(call: &mut Call) -> usize {
    let s = session();
    let Return::Handle(kind) = call.shape.procedure.returns else { return 0 };
    let number = call.arg(0) as i32;
    match s.objects.of_fortran(kind, number) {
        Some(found) => s.objects.encode(kind, found),
        None => s.fortran.handle(kind, number),
    }
}

/// Between statuses of C and of Fortran: the same bytes.
///
/// # Safety
/// A call of the gate.
pub unsafe fn status(call: &mut Call) -> usize {
    let s = session();
    let size = s.values.upper.layout().status.size;
    // SAFETY: the caller's: a status here, room for one there.
    unsafe { std::ptr::copy(call.arg(0) as *const u8, call.arg(1) as *mut u8, size) };
    0
}
