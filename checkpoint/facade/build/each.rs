//! What Fortran's entries have of their own for collectives with a datatype for each rank. Open MPI's Fortran library reads out
//! of the communicator itself how many there are, and out of a virtual one it reads nonsense.
use phasecast_abi::{Abi, Class, Kind, Procedure, Timing, Value, Vector, constant};
use std::fmt::Write;

/// When such a collective, which may be in Fortran, is carried out.
fn timing(procedure: &Procedure) -> Option<Timing> {
    match procedure.class {
        Class::Collective { vector: Vector::CountsAndTypes, neighbourhood: false, timing, .. } => {
            Some(timing).filter(|_| !procedure.is_large_count())
        }
        _ => None,
    }
}

/// Whether a procedure is such a collective.
pub fn is(procedure: &Procedure) -> bool {
    timing(procedure).is_some()
}

/// What comes first in the entry: the way to the procedure of another library. And what comes just before the call: with how
/// many ranks something is exchanged.
pub fn around(procedure: &Procedure) -> (String, String) {
    if !is(procedure) {
        return (String::new(), String::new());
    }
    let lower = procedure.name.to_lowercase();
    let count = procedure.params.len();
    let pointers = vec!["*mut i32"; count + 1].join(", ");
    let names: Vec<String> = (0..count).map(|i| format!("a{i}")).collect();
    let comm = procedure.param_index(Kind::Communicator).unwrap_or(count - 1);
    let elsewhere = format!(
        "        static ELSEWHERE: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);\n        \
         if let Some(other) = each::elsewhere(&ELSEWHERE, c\"{lower}_\") {{\n            \
         return core::mem::transmute::<usize, unsafe extern \"C\" fn({pointers})>(other)({}, error);\n        }}\n",
        names.join(", ")
    );
    (elsewhere, format!("        let ranks = each::ranks(handle{comm});\n"))
}

/// What the call is given for an array of datatypes. The library reads that of a persistent request until this is freed.
pub fn types(procedure: &Procedure, i: usize) -> String {
    let side = procedure.sides.iter().find(|side| side.datatype == Some(i as u8));
    let buffer = side.map_or(0, |side| side.buffer);
    let until = if timing(procedure) == Some(Timing::Persistent) { "keep" } else { "lend" };
    format!("each::Types::new(a{i}, ranks, buffer{buffer}).{until}()")
}

/// The constants of Open MPI's C interface that are a buffer, or a kind of topology.
pub fn constants(text: &mut String) {
    for name in ["MPI_BOTTOM", "MPI_IN_PLACE", "MPI_CART", "MPI_GRAPH"] {
        let Some(Value::Number(number)) = constant(name).map(|c| c.value(Abi::OpenMpi)) else {
            panic!("{name} is a number of Open MPI");
        };
        let _ = writeln!(
            text,
            "/// Open MPI's `{name}` in C.\npub(crate) const {}: usize = {number};",
            &name["MPI_".len()..]
        );
    }
}
