//! Writes Fortran's entries for procedures whose work an MPI library's Fortran interface does not pass on to C.
use phasecast_abi::{
    Abi, CType, Direction, Domain, Kind, PROCEDURES, Param, Passing, Procedure, Return, Value, constants,
};
use std::fmt::Write;

/// The entries, and what else of `src/fortran.rs` follows from tables.
pub fn entries() -> String {
    let mut text = String::new();
    for procedure in PROCEDURES.iter().filter(|p| is_internal(p) || crate::each::is(p)) {
        entry(&mut text, procedure);
    }
    predefined(&mut text);
    crate::each::constants(&mut text);
    addresses(&mut text);
    text
}

/// Whether an MPI library carries out Fortran's procedure inside itself: where attributes and callbacks of error handlers and of
/// requests are other ones than C's, and where a datatype is looked up.
fn is_internal(procedure: &Procedure) -> bool {
    let has = |kind: Kind| procedure.params.iter().any(|p| p.kind == kind);
    let callback = has(Kind::Errhandler) && has(Kind::Function);
    let of_requests = has(Kind::Request) && has(Kind::Function);
    let looked_up = procedure.params.iter().any(|p| p.name == "typeclass" && p.passing == Passing::Value);
    let convertible = |p: &Param| p.ctype != CType::Handle || word(p.kind).is_some();
    let wanted = has(Kind::Keyval) || callback || of_requests || (looked_up && has(Kind::Datatype));
    wanted && procedure.returns == Return::ErrorCode && procedure.params.iter().all(convertible)
}

/// The part of the names of conversions that says of what they are.
fn word(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::Communicator => "Comm",
        Kind::Datatype => "Type",
        Kind::Window => "Win",
        Kind::File => "File",
        Kind::Errhandler => "Errhandler",
        Kind::Info => "Info",
        Kind::Request => "Request",
        _ => return None,
    })
}

fn entry(text: &mut String, procedure: &Procedure) {
    let name = procedure.name;
    let (elsewhere, ranks) = crate::each::around(procedure);
    let tail = name.trim_start_matches("MPI_");
    // The kind of object that has the attributes or the error handler: the first part of the name, or a communicator.
    let of = ["Comm", "Type", "Win", "File"].into_iter().find(|of| tail.starts_with(of)).unwrap_or("Comm");
    // The procedures of MPI 1 have integers where later ones have addresses.
    let short = tail.starts_with("Attr_") || tail.starts_with("Keyval_");
    let (mut given, mut before, mut after) = (Vec::new(), String::new(), String::new());
    let mut types = Vec::new();
    for (i, p) in procedure.params.iter().enumerate() {
        let pointer = match p.kind {
            Kind::Function => "usize",
            Kind::ExtraState | Kind::AttributeValue => "*mut u8",
            _ => "*mut i32",
        };
        types.push(format!("a{i}: {pointer}"));
        let (lines, argument, results) = parameter(procedure, i, p, of, short);
        before += &lines;
        after += &results;
        given.push(argument);
    }
    let lower = name.to_lowercase();
    if !after.is_empty() {
        after = format!("        if result == 0 {{\n{after}        }}\n");
    }
    let _ = write!(
        text,
        "/// Fortran's `{name}`.\n///\n/// # Safety\n/// Called by Fortran.\nunsafe extern \"C\" fn f_{lower}({}, error: *mut i32) {{\n    \
         // SAFETY: Fortran hands over the addresses of its arguments, of the types that the standard says.\n    \
         unsafe {{\n{elsewhere}{before}{ranks}        let result = call(s::{name}, &[{}]);\n{after}        \
         if !error.is_null() {{\n            *error = result;\n        }}\n    }}\n}}\n",
        types.join(", "),
        given.join(", "),
    );
    for alias in aliases(name) {
        let _ = writeln!(
            text,
            "#[unsafe(naked)]\n#[unsafe(no_mangle)]\nunsafe extern \"C\" fn {alias}() {{\n    core::arch::naked_asm!(\"jmp {{to}}\", to = sym f_{lower})\n}}"
        );
    }
}

/// What comes before the call for an argument, what the call is given, and what comes after it.
fn parameter(procedure: &Procedure, i: usize, p: &Param, of: &str, short: bool) -> (String, String, String) {
    let none = String::new;
    let value = p.passing == Passing::Value;
    match p.kind {
        Kind::Function if procedure.param_index(Kind::Request).is_some() => {
            let which = ["query", "free", "cancel"][i];
            (none(), format!("generalized::{which} as *const () as usize"), none())
        }
        Kind::ExtraState if procedure.param_index(Kind::Request).is_some() => {
            (none(), format!("generalized::state(a0, a1, a2, a{i})"), none())
        }
        Kind::Function if procedure.params.iter().any(|p| p.kind == Kind::ExtraState) => {
            let which = if i == 0 { "copy" } else { "delete" };
            (none(), format!("fortran::{which} as *const () as usize"), none())
        }
        Kind::Function => (none(), format!("closures::of_fortran(a{i}, s::MPI_{of}_c2f)"), none()),
        Kind::ExtraState => (none(), format!("fortran::key(a0, a1, a{i}, s::MPI_{of}_c2f, {short})"), none()),
        Kind::AttributeValue if p.direction == Direction::In => {
            (none(), format!("fortran::value_in(a{i}, {short})"), none())
        }
        Kind::AttributeValue => {
            let key = procedure.param_index(Kind::Keyval).unwrap_or(1);
            let flag = procedure.param_index(Kind::Flag).unwrap_or(3);
            let before = format!("        let mut value = 0usize;\n        let (key, kind) = predefined(*a{key});\n");
            let after = format!(
                "            if *a{flag} != 0 {{\n                fortran::value_out(a{i}, {short}, value, kind);\n            }}\n"
            );
            (before, "&raw mut value as usize".into(), after)
        }
        Kind::Buffer => (format!("        let buffer{i} = each::buffer(a{i});\n"), format!("buffer{i}"), none()),
        Kind::Datatype if p.passing == Passing::Array => (none(), crate::each::types(procedure, i), none()),
        Kind::Keyval if value && procedure.output_index(Kind::AttributeValue).is_some() => {
            (none(), "key as u32 as usize".into(), none())
        }
        _ if p.ctype == CType::Handle && value => {
            let of = word(p.kind).unwrap_or("Comm");
            let before = format!("        let handle{i} = fortran::to_c(s::MPI_{of}_f2c, *a{i});\n");
            (before, format!("handle{i}"), none())
        }
        _ if p.ctype == CType::Handle => {
            let of = word(p.kind).unwrap_or("Comm");
            let first = if p.direction == Direction::Out {
                "0usize".into()
            } else {
                format!("fortran::to_c(s::MPI_{of}_f2c, *a{i})")
            };
            let before = format!("        let mut handle{i} = {first};\n");
            let after = format!("            *a{i} = fortran::to_fortran(s::MPI_{of}_c2f, handle{i});\n");
            (before, format!("&raw mut handle{i} as usize"), after)
        }
        _ if value => (none(), format!("*a{i} as u32 as usize"), none()),
        _ => (none(), format!("a{i} as usize"), none()),
    }
}

/// The names that compilers give to a Fortran procedure, and those by which an MPI library's own parts call it.
fn aliases(name: &str) -> Vec<String> {
    let tail = name.trim_start_matches("MPI_").to_lowercase();
    let mut names = vec![format!("ompi_{tail}_f"), format!("pompi_{tail}_f"), format!("pmpir_{tail}_f08_")];
    for first in ["", "P"] {
        let name = format!("{first}{name}");
        let lower = name.to_lowercase();
        names.push(format!("{lower}_f08_"));
        names.extend([format!("{lower}_"), format!("{lower}__"), lower, name.to_uppercase()]);
        names.extend([format!("{name}_f"), format!("{name}_f08")]);
    }
    names
}

/// Predefined keys: Fortran's number to C's, and how C has the value.
fn predefined(text: &mut String) {
    text.push_str("/// C's number of an attribute key, and what its attribute is if it is predefined.\n");
    text.push_str("fn predefined(key: i32) -> (i32, Option<fortran::Predefined>) {\n    let kind = match key {\n");
    let mut shifted = Vec::new();
    for constant in constants().filter(|c| c.domain == Domain::Keyval && c.name != "MPI_KEYVAL_INVALID") {
        let kind = match constant.name {
            "MPI_WIN_BASE" => "Itself",
            "MPI_WIN_SIZE" => "Address",
            _ => "Int",
        };
        for abi in Abi::ALL {
            let Value::Number(number) = constant.value(abi) else { continue };
            let _ = writeln!(text, "        {number} => fortran::Predefined::{kind},");
            if abi == Abi::Mpich {
                // MPICH tells by the last bit for which language the value is.
                shifted.push(format!("{}", number + 1));
                let _ = writeln!(text, "        {} => fortran::Predefined::{kind},", number + 1);
            }
        }
    }
    let _ = writeln!(
        text,
        "        _ => return (key, None),\n    }};\n    let c = if matches!(key, {}) {{ key - 1 }} else {{ key }};\n    (c, Some(kind))\n}}",
        shifted.join(" | ")
    );
}

/// The constants of MPICH's C interface that are variables, and where its Fortran library keeps their values.
fn addresses(text: &mut String) {
    text.push_str("/// Variables of MPICH's libraries: that of C, and that of Fortran for it.\n");
    text.push_str("pub(crate) const ADDRESSES: &[(&core::ffi::CStr, &core::ffi::CStr)] = &[\n");
    for constant in constants() {
        if let Value::Variable(name) = constant.value(Abi::Mpich) {
            let _ = writeln!(text, "    (c\"{name}\", c\"MPIR_C_{name}\"),");
        }
    }
    text.push_str("];\n");
}
