//! The procedures of the MPI library that the program uses, found at run time.
use crate::elf::{Object, find_object};
use crate::plan::{COUNT, PLANS, Plan};
use phasecast_abi::{Abi, Value, constant};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static REAL: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];
static LIBRARY: OnceLock<Library> = OnceLock::new();

/// The MPI library.
pub struct Library {
    object: Object,
    /// The binary interface that it speaks.
    pub abi: Abi,
}

impl Library {
    /// The value of a predefined handle or other constant of this library's interface.
    pub fn constant(&self, name: &str) -> Option<usize> {
        match constant(name)?.value(self.abi) {
            Value::Absent => None,
            Value::Number(number) => Some(number as usize),
            Value::Symbol(symbol) => self.address(symbol),
            // SAFETY: a variable of the library that holds a pointer.
            Value::Variable(symbol) => self.address(symbol).map(|at| unsafe { *(at as *const usize) }),
        }
    }

    fn address(&self, symbol: &str) -> Option<usize> {
        let name = std::ffi::CString::new(symbol).ok()?;
        // SAFETY: a valid name. The program may have a copy of the variable, which then is the one that counts.
        let global = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if global.is_null() { address_in(&self.object, symbol.as_bytes()) } else { Some(global as usize) }
    }
}

/// The MPI library, once it is mapped.
pub fn library() -> Option<&'static Library> {
    if let Some(library) = LIBRARY.get() {
        return Some(library);
    }
    let (object, path) = mapped()?;
    let named = |symbol: &str| object.find(symbol.as_bytes()).is_some();
    let abi = Abi::of_library(&path).or_else(|| Abi::of_symbols(named))?;
    Some(LIBRARY.get_or_init(|| Library { object, abi }))
}

fn mapped() -> Option<(Object, String)> {
    let ours = mapped as *const () as usize;
    find_object(|object, path| {
        let found = !object.contains(ours) && object.find(b"PMPI_Init").is_some();
        found.then(|| (*object, path.to_string_lossy().into_owned()))
    })
}

fn address_in(object: &Object, name: &[u8]) -> Option<usize> {
    // SAFETY: an entry of a mapped symbol table.
    object.find(name).map(|symbol| object.base() + unsafe { (*symbol).value } as usize)
}

/// Whether a library with MPI is mapped and, if so, where its own form of this procedure is. Allocates nothing and
/// calls no dynamic linker, so that a symbol's resolver may use it.
pub fn lookup(procedure: usize) -> Option<Option<usize>> {
    let mut name = [0u8; 80];
    let plain = PLANS[procedure].name.as_bytes();
    name[0] = b'P';
    name[1..=plain.len()].copy_from_slice(plain);
    let name = &name[..=plain.len()];
    let ours = lookup as *const () as usize;
    let mut library = false;
    let found = find_object(|object, _| {
        if object.contains(ours) {
            return None;
        }
        library = library || object.find(b"PMPI_Init").is_some();
        address_in(object, name)
    });
    if found.is_some() || library { Some(found) } else { None }
}

/// The path of a library that has a procedure of MPI without its own form for tools (`PMPI_X`): a tool between the program
/// and MPI, which is passed by. One that is part of the program comes before this library, and is called as ever.
pub fn passed_by() -> Option<String> {
    let ours = passed_by as *const () as usize;
    find_object(|object, path| {
        let wraps = |plan: &Plan| {
            object.find(plan.name.as_bytes()).is_some() && object.find(format!("P{}", plan.name).as_bytes()).is_none()
        };
        let tool = !path.is_empty() && !object.contains(ours) && PLANS.iter().any(wraps);
        tool.then(|| path.to_string_lossy().into_owned())
    })
}

/// Address of the real procedure with this index in the table.
#[inline(always)]
pub fn function(procedure: usize) -> usize {
    match REAL[procedure].load(Relaxed) {
        0 => resolve(procedure),
        address => address,
    }
}

/// Whether the MPI library has this procedure.
pub fn exists(procedure: usize) -> bool {
    function(procedure) != absent as *const () as usize
}

#[cold]
fn resolve(procedure: usize) -> usize {
    let found = lookup(procedure).flatten().unwrap_or(absent as *const () as usize);
    REAL[procedure].store(found, Relaxed);
    found
}

/// What a program gets that calls a procedure its MPI library does not have.
extern "C" fn absent() -> usize {
    library().and_then(|library| library.constant("MPI_ERR_UNSUPPORTED_OPERATION")).unwrap_or(1)
}

/// Calls the real form of a procedure that is named in our source, with arguments that fit registers.
macro_rules! mpi {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        const INDEX: usize = $crate::plan::index(stringify!($name));
        let function = $crate::real::function(INDEX);
        type Function = unsafe extern "C-unwind" fn($($crate::real::word!($argument)),*) -> i32;
        // SAFETY: every procedure of MPI takes integers and pointers only; the caller passes as many as the standard says.
        unsafe { std::mem::transmute::<usize, Function>(function)($($argument as usize),*) }
    }};
}

/// The type of an argument.
macro_rules! word {
    ($argument:expr) => {
        usize
    };
}
pub(crate) use {mpi, word};
