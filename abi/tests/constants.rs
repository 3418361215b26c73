//! The table of constants, the layouts and the statuses against the machine's own MPIs: small C programs compiled by each.
//! The newest header is the source of a column, so an older one may lack a name, but only a young name.

mod common;

use common::{Compiler, mpi5_include};
use phasecast_abi::{Abi, CountLayout, Domain, Kind, Status, Value, constants};

/// Constants younger than MPI 3.1, or optional: the only ones that a header may lack.
const YOUNG: [&str; 37] = [
    "MPI_BUFFER_AUTOMATIC",
    "MPI_COMBINER_VALUE_INDEX",
    "MPI_COMM_TYPE_HW_GUIDED",
    "MPI_COMM_TYPE_HW_UNGUIDED",
    "MPI_COMM_TYPE_RESOURCE_GUIDED",
    "MPI_COMPLEX4",
    "MPI_ERRORS_ABORT",
    "MPI_ERR_ABI",
    "MPI_ERR_ERRHANDLER",
    "MPI_ERR_PROC_ABORTED",
    "MPI_ERR_SESSION",
    "MPI_ERR_VALUE_TOO_LARGE",
    "MPI_INTEGER16",
    "MPI_LOGICAL1",
    "MPI_LOGICAL2",
    "MPI_LOGICAL4",
    "MPI_LOGICAL8",
    "MPI_LOGICAL16",
    "MPI_MAX_PSET_NAME_LEN",
    "MPI_MAX_STRINGTAG_LEN",
    "MPI_REAL2",
    "MPI_SESSION_NULL",
    "MPI_T_ERR_NOT_ACCESSIBLE",
    "MPI_T_ERR_NOT_SUPPORTED",
    "MPI_CXX_BOOL",
    "MPI_CXX_FLOAT_COMPLEX",
    "MPI_CXX_DOUBLE_COMPLEX",
    "MPI_CXX_LONG_DOUBLE_COMPLEX",
    "MPI_REAL16",
    "MPI_COMPLEX32",
    "MPI_INFO_ENV",
    "MPI_LB",
    "MPI_UB",
    "MPIR_ERRORS_THROW_EXCEPTIONS",
    "MPIX_SHORT_FLOAT",
    "MPIX_C_SHORT_FLOAT_COMPLEX",
    "MPIX_CXX_SHORT_FLOAT_COMPLEX",
];

fn check(abi: Abi, compiler: &Compiler, head: &str) {
    let names: Vec<&str> = constants().filter(|c| c.value(abi) != Value::Absent).map(|c| c.name).collect();
    let symbolic = abi == Abi::OpenMpi;
    let handle = |name: &str| constants().any(|c| c.name == name && matches!(c.domain, Domain::Handle(_)));
    let (found, absent) = compiler.run_names(head, &names, |name| {
        if symbolic && handle(name) {
            // Open MPI's handles are addresses: the probe's text says of which symbol.
            format!("(void)sizeof({name}); printf(\"{name} %s\\n\", TEXT({name}));\n")
        } else {
            format!("printf(\"{name} %lld\\n\", (long long)({name}));\n")
        }
    });
    let mut wrong = Vec::new();
    let mut checked = 0;
    let null = |name: &str| found.get(name).and_then(|v| v.parse::<i64>().ok());
    for c in constants().filter(|c| c.value(abi) != Value::Absent) {
        let Some(value) = found.get(c.name) else {
            if !YOUNG.contains(&c.name) {
                wrong.push(format!("{} is not in the header", c.name));
            }
            continue;
        };
        let right = match c.value(abi) {
            Value::Number(n) => {
                let narrow = matches!(c.domain, Domain::Handle(k) if abi.layout().handle_bytes_of(k) == 4);
                let value = value.parse::<i64>().ok().map(|v| if narrow { v & 0xffff_ffff } else { v });
                let missing = null("MPI_DATATYPE_NULL").filter(|_| narrow && YOUNG.contains(&c.name));
                value == Some(n) || (missing.is_some() && value == missing)
            }
            Value::Symbol(symbol) => value.split(|ch: char| !ch.is_alphanumeric() && ch != '_').any(|w| w == symbol),
            Value::Variable(_) => value != "0",
            Value::Absent => false,
        };
        checked += 1;
        if !right {
            wrong.push(format!("{} is {value}, the table says {:?}", c.name, c.value(abi)));
        }
    }
    assert!(wrong.is_empty(), "{abi:?}: {} of {} constants differ:\n{}", wrong.len(), names.len(), wrong.join("\n"));
    assert!(checked >= 250, "{abi:?}: only {checked} constants were compared; absent: {absent:?}");
}

fn check_layout(abi: Abi, compiler: &Compiler, head: &str) {
    let source = format!(
        "#include <stdio.h>\n#include <stddef.h>\n{head}\nint main(void) {{ printf(\"%zu %zu %zu %zu %zu %zu %zu %zu %zu\",\
         sizeof(MPI_Status), offsetof(MPI_Status, MPI_SOURCE), offsetof(MPI_Status, MPI_TAG),\
         offsetof(MPI_Status, MPI_ERROR), sizeof(MPI_Request), sizeof(MPI_Comm), sizeof(MPI_File), sizeof(MPI_Aint),\
         sizeof(MPI_Count)); return 0; }}"
    );
    let out = compiler.run(&source, &[]).expect("the probe of layouts compiles");
    let sizes: Vec<usize> = out.split(' ').map(|w| w.parse().expect("a number")).collect();
    let layout = abi.layout();
    let s = layout.status;
    let ours = [s.size, s.source, s.tag, s.error, layout.handle_bytes, layout.handle_bytes, 8, 8, 8];
    assert_eq!(sizes, ours, "{abi:?}");
    assert_eq!(layout.handle_bytes_of(Kind::File), sizes[6]);
}

/// Without what is defined to be no expression, as it was removed.
const HEAD: &str = "#include <mpi.h>\n#define TEXT_(x) #x\n#define TEXT(x) TEXT_(x)\n#if defined(OPEN_MPI) && !OMPI_ENABLE_MPI1_COMPAT\n#undef MPI_LB\n#undef MPI_UB\n#endif";

#[test]
fn open_mpi_constants_are_those_of_its_header() {
    check(Abi::OpenMpi, &Compiler::Wrapper("mpicc.openmpi"), HEAD);
}

#[test]
fn mpich_constants_are_those_of_its_header() {
    check(Abi::Mpich, &Compiler::Wrapper("mpicc.mpich"), HEAD);
}

#[test]
fn standard_constants_are_those_of_its_header() {
    check(Abi::Standard, &Compiler::Headers(mpi5_include()), "#include <mpi_abi.h>");
}

#[test]
fn layouts_are_those_of_the_headers() {
    check_layout(Abi::OpenMpi, &Compiler::Wrapper("mpicc.openmpi"), "#include <mpi.h>");
    check_layout(Abi::Mpich, &Compiler::Wrapper("mpicc.mpich"), "#include <mpi.h>");
    check_layout(Abi::Standard, &Compiler::Headers(mpi5_include()), "#include <mpi_abi.h>");
}

/// The standard names no fields for the number of bytes: a real receive shows where they are.
const SELF_MESSAGE: &str = r#"
#include <stdio.h>
#include <string.h>
#include <MPI_HEADER>
int main(int argc, char **argv) {
    unsigned char text[sizeof(MPI_Status)];
    int out[77] = {0}, in[77];
    MPI_Status status;
    MPI_Init(&argc, &argv);
    memset(&status, 0x5a, sizeof status);
    MPI_Sendrecv(out, 77, MPI_INT, 0, 4242, in, 77, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &status);
    memcpy(text, &status, sizeof status);
    for (size_t i = 0; i < sizeof status; i++) printf("%02x", text[i]);
    printf("\n");
    MPI_Status_set_elements_x(&status, MPI_BYTE, 0x123456789ALL);
    MPI_Status_set_cancelled(&status, 1);
    memcpy(text, &status, sizeof status);
    for (size_t i = 0; i < sizeof status; i++) printf("%02x", text[i]);
    printf("\n");
    MPI_Finalize();
    return 0;
}
"#;

fn check_status(abi: Abi, compiler: &Compiler, header: &str, args: &[&str]) {
    let out = compiler.run(&SELF_MESSAGE.replace("MPI_HEADER", header), args).expect("the probe compiles");
    let raw: Vec<Vec<u8>> = out
        .lines()
        .map(|l| (0..l.len() / 2).map(|i| u8::from_str_radix(&l[2 * i..2 * i + 2], 16).expect("hex")).collect())
        .collect();
    let received = Status::read(abi, &raw[0]).expect("a whole status");
    assert_eq!((received.source, received.tag, received.bytes, received.cancelled), (0, 4242, 308, false), "{abi:?}");
    let set = Status::read(abi, &raw[1]).expect("a whole status");
    assert_eq!((set.source, set.tag, set.bytes, set.cancelled), (0, 4242, 0x12_3456_789a, true), "{abi:?}");
    let mut again = vec![0xff; raw[1].len()];
    set.write(abi, &mut again).expect("it fits");
    let layout = abi.layout().status;
    let fields = match layout.count {
        CountLayout::Apart { bytes, cancelled } => [layout.source, layout.tag, bytes, bytes + 4, cancelled],
        CountLayout::Packed { low, high } => [layout.source, layout.tag, low, high, high],
    };
    for at in fields {
        assert_eq!(
            again[at..at + 4],
            raw[1][at..at + 4],
            "{abi:?}: what is written is what the library wrote, at {at}"
        );
    }
}

#[test]
fn open_mpi_status_is_as_its_library_writes_it() {
    check_status(Abi::OpenMpi, &Compiler::Wrapper("mpicc.openmpi"), "mpi.h", &[]);
}

#[test]
fn mpich_status_is_as_its_library_writes_it() {
    check_status(Abi::Mpich, &Compiler::Wrapper("mpicc.mpich"), "mpi.h", &[]);
}

#[test]
fn standard_status_is_as_a_library_of_it_writes_it() {
    let include = mpi5_include();
    let lib = include.parent().expect("a prefix").join("lib");
    let (search, path) = (format!("-L{}", lib.display()), format!("-Wl,-rpath,{}", lib.display()));
    check_status(Abi::Standard, &Compiler::Headers(include), "mpi_abi.h", &[&search, &path, "-lmpi_abi"]);
}
