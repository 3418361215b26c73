//! The table of procedures against what libraries export, against the prototypes of a header, and against the standard's
//! text where it is short.

mod common;

use common::{Compiler, REMEDY, find_below, mpi5_include, words, workspace};
use phasecast_abi::{
    CType, Callers, Class, Kind, PROCEDURES, Passing, Pattern, Procedure, Return, SendMode, Timing, Vector, Version,
    Which, by_name,
};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn get(name: &str) -> &'static Procedure {
    by_name(name).and_then(|id| id.get()).unwrap_or_else(|| panic!("{name} is not in the table"))
}

/// Names in a library's list of dynamic symbols that are procedures of MPI: functions made to be passed as callbacks are
/// in capitals, and some C forms of Fortran functions end so.
fn exported(compiler: &Compiler) -> BTreeSet<String> {
    let source = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n#include <mpi.h>\nint main(void) {\n\
                  Dl_info info; if (!dladdr((void *)&MPI_Type_size, &info)) return 1; puts(info.dli_fname); return 0; }";
    let library = compiler.run(source, &["-ldl"]).expect("the probe compiles");
    let out = Command::new("nm").args(["-D", "--defined-only"]).arg(library.trim()).output();
    let out = out.unwrap_or_else(|e| panic!("cannot run nm ({e}): {REMEDY}"));
    assert!(out.status.success(), "{}", words(&out));
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.lines()
        .filter_map(|l| {
            let mut parts = l.split_whitespace().skip(1);
            let (kind, name) = (parts.next()?, parts.next()?);
            let mixed = name.strip_prefix("MPI_")?.chars().any(|c| c.is_lowercase());
            (matches!(kind, "T" | "W" | "i") && mixed).then(|| name.split('@').next().unwrap_or(name).to_owned())
        })
        .collect()
}

fn all_known(compiler: &Compiler, least: usize) -> BTreeSet<String> {
    let names = exported(compiler);
    assert!(names.len() >= least, "only {} procedures found", names.len());
    let unknown: Vec<&String> = names.iter().filter(|n| by_name(n).is_none()).collect();
    assert!(unknown.is_empty(), "exported, but not in the table: {unknown:?}");
    names
}

#[test]
fn every_procedure_of_open_mpi_is_known() {
    let names = all_known(&Compiler::Wrapper("mpicc.openmpi"), 380);
    // Macros in Open MPI's header, not functions of its library.
    let macros = ["MPI_Aint_add", "MPI_Aint_diff"];
    let optional = |name: &str| name.contains("f08") || name.starts_with("MPI_T_") || macros.contains(&name);
    let lacking: Vec<&str> = PROCEDURES
        .iter()
        .filter(|p| p.since <= Version(3, 1) && !optional(p.name) && !names.contains(p.name))
        .map(|p| p.name)
        .collect();
    assert!(lacking.is_empty(), "of MPI 3.1 says the table, but not exported: {lacking:?}");
}

#[test]
fn every_procedure_of_mpich_is_known() {
    let names = all_known(&Compiler::Wrapper("mpicc.mpich"), 550);
    // Macros in MPICH's header before 4.2, and a large-count form that MPICH 4.0 had not.
    let optional = |name: &str| {
        name.ends_with("_c2f") || name.ends_with("_f2c") || name.contains("f08") || name == "MPI_Status_set_elements_c"
    };
    let lacking: Vec<&str> = PROCEDURES
        .iter()
        .filter(|p| p.since <= Version(4, 0) && !optional(p.name) && !names.contains(p.name))
        .map(|p| p.name)
        .collect();
    assert!(lacking.is_empty(), "of MPI 4.0 says the table, but not exported: {lacking:?}");
}

/// C type of a parameter of a prototype, whether it is a pointer or an array, and its name.
fn parse(parameter: &str) -> (CType, bool, String) {
    let text = parameter.replace("const ", "").replace("char* const*", "char **");
    let pointer = text.contains('*') || text.contains('[');
    let text = text.split('[').next().unwrap_or_default().replace('*', " ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let ctype = match words[0] {
        "void" => CType::Void,
        "char" => CType::Char,
        "int" | "MPI_T_source_order" | "MPI_T_cb_safety" => CType::Int,
        "MPI_Aint" => CType::Aint,
        "MPI_Count" => CType::Count,
        "MPI_Offset" => CType::Offset,
        "MPI_Fint" => CType::Fint,
        "MPI_Status" => CType::Status,
        "MPI_F08_status" => CType::F08Status,
        "..." => CType::Varargs,
        t if t.contains("_function") || t.ends_with("_fn") => CType::Function,
        t if t.starts_with("MPI_T_") => CType::Opaque,
        t if t.starts_with("MPI_") => CType::Handle,
        other => panic!("unknown type {other} in {parameter}"),
    };
    // C turns a parameter that is a function into a pointer to it.
    let pointer = pointer || ctype == CType::Function;
    (ctype, pointer, words.get(1).copied().unwrap_or_default().to_owned())
}

#[test]
fn arguments_are_those_of_the_prototypes() {
    let header = std::fs::read_to_string(mpi5_include().join("mpi_abi.h")).expect("mpi_abi.h");
    let mut checked = 0;
    let mut wrong = Vec::new();
    for line in header.lines() {
        let Some((head, rest)) = line.split_once('(') else { continue };
        let Some((returns, name)) = head.rsplit_once(' ') else { continue };
        let Some((list, _)) = rest.rsplit_once(')') else { continue };
        if !name.starts_with("MPI_") || returns.contains("typedef") || returns.starts_with('#') {
            continue;
        }
        let list = list.split(')').next().unwrap_or(list);
        let Some(p) = by_name(name).and_then(|id| id.get()) else {
            wrong.push(format!("{name} is not in the table"));
            continue;
        };
        let theirs: Vec<_> =
            list.split(',').map(str::trim).filter(|a| !a.is_empty() && *a != "void").map(parse).collect();
        let ours: Vec<_> = p.params.iter().map(|q| (q.ctype, q.passing != Passing::Value)).collect();
        let plain: Vec<_> = theirs.iter().map(|(t, pointer, _)| (*t, *pointer)).collect();
        if ours != plain {
            wrong.push(format!("{name}: header {theirs:?}, table {ours:?}"));
        }
        let result = match returns.trim_start_matches("extern ") {
            "double" => p.returns == Return::Double,
            "MPI_Aint" => p.returns == Return::Aint,
            "int" | "MPI_Fint" => matches!(p.returns, Return::ErrorCode | Return::Int),
            _ => matches!(p.returns, Return::Handle(_)),
        };
        if !result {
            wrong.push(format!("{name} returns {returns}, the table says {:?}", p.returns));
        }
        checked += 1;
    }
    assert!(wrong.is_empty(), "{} of {checked} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 600, "only {checked} prototypes were found");
}

#[test]
fn the_table_is_sorted_and_its_indices_hold() {
    assert!(PROCEDURES.windows(2).all(|w| w[0].name < w[1].name));
    for (i, p) in PROCEDURES.iter().enumerate() {
        assert_eq!(by_name(p.name).map(|id| usize::from(id.0)), Some(i));
        for side in p.sides {
            assert_eq!(p.params[usize::from(side.buffer)].kind, Kind::Buffer, "{}", p.name);
            assert!(side.count.is_none_or(|c| p.params[usize::from(c)].kind == Kind::Count), "{}", p.name);
            assert!(side.datatype.is_none_or(|d| p.params[usize::from(d)].kind == Kind::Datatype), "{}", p.name);
        }
    }
    assert_eq!(by_name("MPI_Sende"), None);
    assert_eq!(by_name(""), None);
}

#[test]
fn a_large_count_procedure_is_the_plain_one_with_wider_numbers() {
    let mut pairs = 0;
    for p in PROCEDURES.iter().filter(|p| p.is_large_count()) {
        let plain = get(p.name.strip_suffix("_c").expect("a large-count name ends in _c"));
        assert_eq!(p.class, plain.class, "{}", p.name);
        assert!(p.since >= Version(4, 0), "{}", p.name);
        pairs += 1;
    }
    assert!(pairs > 150, "only {pairs} large-count procedures");
}

#[test]
fn classes_are_what_the_standard_says() {
    use Timing::{Blocking, Nonblocking, Partitioned, Persistent};
    let class = |name: &str| get(name).class;
    assert_eq!(class("MPI_Issend"), Class::Send { timing: Nonblocking, mode: SendMode::Synchronous });
    assert_eq!(class("MPI_Irsend_c"), Class::Send { timing: Nonblocking, mode: SendMode::Ready });
    assert_eq!(class("MPI_Bsend_init"), Class::Send { timing: Persistent, mode: SendMode::Buffered });
    assert_eq!(class("MPI_Psend_init"), Class::Send { timing: Partitioned, mode: SendMode::Standard });
    assert_eq!(class("MPI_Isendrecv_replace"), Class::SendRecv { timing: Nonblocking, replace: true });
    assert_eq!(class("MPI_Improbe"), Class::Probe { blocking: false, matched: true });
    assert_eq!(class("MPI_Testsome"), Class::Completion { blocking: false, which: Which::Some });
    assert_eq!(class("MPI_Test_cancelled"), Class::Other);
    assert_eq!(class("MPI_Request_get_status"), Class::Other);
    let alltoallw = Class::Collective {
        pattern: Pattern::Alltoall,
        timing: Nonblocking,
        neighbourhood: true,
        vector: Vector::CountsAndTypes,
        root: None,
    };
    assert_eq!(class("MPI_Ineighbor_alltoallw_c"), alltoallw);
    let timing = |p: &Procedure| match p.class {
        Class::Collective { timing, .. } => Some(timing),
        _ => None,
    };
    let count = |t: Timing| PROCEDURES.iter().filter(|p| timing(p) == Some(t) && !p.is_large_count()).count();
    // MPI 4.0: 17 collectives and 5 among neighbours, each in three forms.
    assert_eq!([count(Blocking), count(Nonblocking), count(Persistent)], [22; 3]);
    for p in PROCEDURES.iter().filter(|p| timing(p).is_some()) {
        let needs = usize::from(timing(p) != Some(Blocking));
        let requests = p.params.iter().filter(|q| q.kind == Kind::Request).count();
        assert_eq!(requests, needs, "{}", p.name);
    }
    let together: Vec<&str> =
        PROCEDURES.iter().filter(|p| p.synchronises() && !p.is_large_count()).map(|p| p.name).collect();
    assert_eq!(together, ["MPI_Allgather", "MPI_Allreduce", "MPI_Alltoall", "MPI_Barrier", "MPI_Reduce_scatter_block"]);
    let of =
        |test: fn(&Class) -> bool| PROCEDURES.iter().filter(|p| test(&p.class)).map(|p| p.name).collect::<Vec<_>>();
    assert_eq!(of(|c| matches!(c, Class::CommFree { .. })), ["MPI_Comm_disconnect", "MPI_Comm_free"]);
    assert_eq!(of(|c| matches!(c, Class::Completion { .. })).len(), 8);
    assert_eq!(of(|c| matches!(c, Class::CommConstructor { .. })).len(), 23);
    let some_call = of(|c| matches!(c, Class::CommConstructor { parent: Some(_), callers: Callers::Members, .. }));
    assert_eq!(some_call, ["MPI_Comm_create_group"]);
    let both_call = of(|c| matches!(c, Class::CommConstructor { callers: Callers::BothGroups, .. }));
    assert_eq!(both_call, ["MPI_Intercomm_create"]);
    let of_no_parent = of(|c| matches!(c, Class::CommConstructor { parent: None, callers: Callers::Parent, .. }));
    assert!(of_no_parent.is_empty(), "{of_no_parent:?}");
    assert_eq!(of(|c| *c == Class::DatatypeFree), ["MPI_Type_free"]);
    assert_eq!(of(|c| matches!(c, Class::Pready)).len(), 3);
}

#[test]
fn sides_and_tags_are_where_the_bindings_have_them() {
    let sendrecv = get("MPI_Sendrecv");
    assert_eq!((sendrecv.send_tag(), sendrecv.recv_tag()), (Some(4), Some(9)));
    let replace = get("MPI_Sendrecv_replace");
    assert_eq!((replace.send_tag(), replace.recv_tag()), (Some(4), Some(6)));
    assert_eq!((replace.send_sides().count(), replace.recv_sides().count()), (1, 1));
    let allreduce: Vec<_> = get("MPI_Allreduce").sides.iter().map(|s| (s.buffer, s.count, s.datatype)).collect();
    assert_eq!(allreduce, [(0, Some(2), Some(3)), (1, Some(2), Some(3))]);
    let alltoallv: Vec<_> = get("MPI_Alltoallv").sides.iter().map(|s| (s.buffer, s.count, s.datatype)).collect();
    assert_eq!(alltoallv, [(0, Some(1), Some(3)), (4, Some(5), Some(7))]);
    let swap = get("MPI_Compare_and_swap").sides[0];
    assert_eq!((swap.count, swap.datatype), (None, Some(3)));
    assert_eq!(get("MPI_Psend_init").sides[0].partitions, Some(1));
    assert_eq!(get("MPI_Recv").recv_sides().count(), 1);
    assert_eq!(get("MPI_Isend").output_index(Kind::Request), Some(6));
    assert!(get("MPI_Pcontrol").is_variadic());
}

#[test]
fn the_committed_table_is_what_the_generator_makes() {
    let venv = workspace().join(".phasecast/venvs/pympistandard");
    let apis = find_below(&venv, "pympistandard/data/apis.json")
        .unwrap_or_else(|| panic!("no apis.json below {}: {REMEDY}", venv.display()));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let made = folder.path().join("procedures.rs");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut generate = Command::new(cargo);
    generate.args(["run", "--quiet", "-p", "phasecast-abi-codegen", "--", "--apis"]).arg(&apis);
    let wrappers = folder.path().join("wrappers.rs");
    generate.arg("--out").arg(&made).arg("--tracer-out").arg(&wrappers);
    let out = generate.current_dir(workspace()).output().expect("run the generator");
    assert!(out.status.success(), "{}", words(&out));
    let committed = workspace().join("abi/src/generated/procedures.rs");
    let read = |path: &Path| std::fs::read_to_string(path).expect("a table");
    assert!(read(&wrappers).contains("MPI_Send PMPI_Send Send [a0 a1 a2 a3 a4 a5])"), "MPI_Send is not wrapped");
    assert!(!read(&wrappers).contains("MPI_Get_version"), "programs probe for MPI_Get_version");
    let listed = workspace().join("tracer/src/generated.rs");
    assert!(read(&listed) == read(&wrappers), "the list is out of date: run `cargo xtask codegen` and commit it");
    assert!(read(&committed) == read(&made), "the table is out of date: run `cargo xtask codegen` and commit it");
}
