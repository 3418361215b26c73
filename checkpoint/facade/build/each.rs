//! Writes Fortran's entries for collectives with a datatype for each rank. Open MPI's Fortran library reads out of the
//! communicator itself how many there are, and out of a virtual one it reads nonsense.
use crate::fortran::{aliased, word};
use phasecast_abi::{CType, Class, Direction, Kind, PROCEDURES, Param, Passing, Procedure, Timing, Vector};
use std::fmt::Write;

/// The entries.
pub fn entries(text: &mut String) {
    PROCEDURES.iter().filter(|p| !p.is_large_count()).for_each(|procedure| {
        if let Class::Collective { vector: Vector::CountsAndTypes, neighbourhood: false, timing, .. } = procedure.class
        {
            entry(text, procedure, timing);
        }
    });
}

fn entry(text: &mut String, procedure: &Procedure, timing: Timing) {
    let (name, lower) = (procedure.name, procedure.name.to_lowercase());
    let count = procedure.params.len();
    let comm = procedure.param_index(Kind::Communicator).unwrap_or(8);
    let (mut given, mut before, mut after, mut last) = (Vec::new(), String::new(), String::new(), String::new());
    for (i, p) in procedure.params.iter().enumerate() {
        given.push(match (p.kind, p.passing) {
            (Kind::Buffer, _) => format!("each::buffer(a{i})"),
            (Kind::Datatype, Passing::Array) => {
                let side = procedure.sides.iter().find(|side| side.datatype == Some(i as u8));
                let buffer = side.map_or(0, |side| side.buffer);
                let _ = writeln!(before, "        let types{i} = each::types(a{i}, ranks, a{buffer});");
                // The library reads those of a request until that is freed.
                if timing != Timing::Persistent {
                    let _ = writeln!(last, "        each::forget(types{i});");
                }
                format!("types{i} as usize")
            }
            _ if p.ctype == CType::Handle => handle(p, i, &mut before, &mut after),
            _ => format!("a{i} as usize"),
        });
    }
    if !after.is_empty() {
        after = format!("        if result == 0 {{\n{after}        }}\n");
    }
    let types: Vec<String> = (0..count).map(|i| format!("a{i}: *mut i32")).collect();
    let pointers = vec!["*mut i32"; count + 1].join(", ");
    let names: Vec<String> = (0..count).map(|i| format!("a{i}")).collect();
    let _ = write!(
        text,
        "/// Fortran's `{name}`.\n///\n/// # Safety\n/// Called by Fortran.\nunsafe extern \"C\" fn f_{lower}({}, error: *mut i32) {{\n    \
         static ELSEWHERE: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);\n    \
         // SAFETY: Fortran hands over the addresses of its arguments, of the types that the standard says.\n    \
         unsafe {{\n        if let Some(other) = each::elsewhere(&ELSEWHERE, c\"{lower}_\") {{\n            \
         return core::mem::transmute::<usize, unsafe extern \"C\" fn({pointers})>(other)({}, error);\n        }}\n        \
         let ranks = each::ranks(fortran::to_c(s::MPI_Comm_f2c, *a{comm}));\n{before}        \
         let result = call(s::{name}, &[{}]);\n{last}        \
         {after}        \
         if !error.is_null() {{\n            *error = result;\n        }}\n    }}\n}}\n",
        types.join(", "),
        names.join(", "),
        given.join(", "),
    );
    aliased(text, name);
}

/// What the call is given for a handle.
fn handle(p: &Param, i: usize, before: &mut String, after: &mut String) -> String {
    let of = word(p.kind).unwrap_or("Comm");
    if p.passing == Passing::Value {
        return format!("fortran::to_c(s::MPI_{of}_f2c, *a{i})");
    }
    assert_eq!(p.direction, Direction::Out, "only new handles are passed by address");
    let _ = writeln!(before, "        let mut handle{i} = 0usize;");
    let _ = writeln!(after, "            *a{i} = fortran::to_fortran(s::MPI_{of}_c2f, handle{i});");
    format!("&raw mut handle{i} as usize")
}
