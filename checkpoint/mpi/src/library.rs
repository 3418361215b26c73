//! The machine's MPI library, which the lower half loads at run time: which of them belongs to the launcher that started
//! this process, and where its procedures are.
use crate::calls::lower;
use phasecast_abi::{Abi, PROCEDURES, Symbols, constant};
use phasecast_process::children::state_and_parent;
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, CString};
use std::fs;
use std::path::PathBuf;

/// Why there is no MPI library.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// None of the names could be loaded.
    #[error(
        "no MPI library can be loaded for this launcher ({tried}): {reason}. Install the MPI that the launcher belongs to, or name its library in PHASECAST_MPI."
    )]
    NotFound {
        /// Names that were tried.
        tried: String,
        /// What the dynamic linker said of the last.
        reason: String,
    },
    /// It is not one that we know.
    #[error(
        "{0} is no MPI library that phasecast knows: it has the interface of neither Open MPI nor MPICH nor MPI 5."
    )]
    Unknown(String),
}

/// A loaded MPI library.
pub struct Library {
    /// The interface that it speaks.
    pub abi: Abi,
    /// The name under which it was loaded.
    pub name: String,
    /// `MPI_REQUEST_NULL`, which every completion needs.
    pub request_null: usize,
    handle: usize,
    functions: Vec<usize>,
}

impl Library {
    /// Loads the library that belongs to the launcher of this process: the one that `PHASECAST_MPI` names; Open MPI's
    /// where its launcher has set `OMPI_COMM_WORLD_RANK`, one of MPICH's kin where it has set `PMI_RANK` or `PMI_FD`; else
    /// the first of all these that there is. It is looked for in `LD_LIBRARY_PATH`, then beside the launcher, as several
    /// may be installed, then wherever the dynamic linker looks.
    ///
    /// # Errors
    /// If there is none.
    pub fn load() -> Result<Library, LibraryError> {
        let set = |name: &str| std::env::var_os(name).is_some();
        // Open MPI's, then those of MPICH's kin.
        let all = ["libmpi.so.40", "libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.0", "libmpi_abi.so.1"];
        let names = if set("OMPI_COMM_WORLD_RANK") {
            &all[..1]
        } else if set("PMI_RANK") || set("PMI_FD") {
            &all[1..]
        } else {
            &all[..]
        };
        let candidates = match std::env::var("PHASECAST_MPI") {
            Ok(named) => vec![named],
            Err(_) => {
                let told = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
                let folders: Vec<PathBuf> = std::env::split_paths(&told).chain(beside_launcher()).collect();
                let in_folders = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
                let found = in_folders.filter(|file| file.is_file()).map(|file| file.to_string_lossy().into_owned());
                found.chain(names.iter().map(|&name| name.to_owned())).collect()
            }
        };
        let mut reason = String::new();
        for name in &candidates {
            let Ok(text) = CString::new(name.as_str()) else { continue };
            // SAFETY: a valid name; the constructors of an MPI library do no harm.
            let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
            if handle.is_null() {
                // SAFETY: dlerror returns a text or null.
                let said = unsafe { libc::dlerror() };
                if !said.is_null() {
                    // SAFETY: as above.
                    reason = unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned();
                }
                continue;
            }
            return Library::loaded(name, handle as usize);
        }
        Err(LibraryError::NotFound { tried: candidates.join(", "), reason })
    }

    fn loaded(name: &str, handle: usize) -> Result<Library, LibraryError> {
        let exists = |symbol: &str| find(handle, symbol).is_some();
        let abi = Abi::of_library(name)
            .or_else(|| Abi::of_symbols(exists))
            .ok_or_else(|| LibraryError::Unknown(name.to_owned()))?;
        // What the standard took in later may be an extension with the same arguments: persistent collectives in Open MPI 4.1.
        let extension = |name: &str| find(handle, &format!("PMPIX_{}", name.strip_prefix("MPI_")?));
        let function = |name: &str| find(handle, &format!("P{name}")).or_else(|| extension(name));
        let functions = PROCEDURES.iter().map(|p| function(p.name).unwrap_or(0)).collect();
        let mut library = Library { abi, name: name.to_owned(), request_null: 0, handle, functions };
        library.request_null = library.constant("MPI_REQUEST_NULL").unwrap_or(0);
        Ok(library)
    }

    /// Address of the procedure with this index in the table; none if the library lacks it.
    #[inline(always)]
    pub fn function(&self, index: usize) -> Option<usize> {
        self.functions.get(index).copied().filter(|&address| address != 0)
    }

    /// The bits of a predefined handle or other constant.
    pub fn constant(&self, name: &str) -> Option<usize> {
        use phasecast_abi::Value;
        match constant(name)?.value(self.abi) {
            Value::Absent => None,
            Value::Number(number) => Some(number as usize),
            Value::Symbol(symbol) => self.address(symbol),
            Value::Variable(symbol) => self.variable(symbol),
        }
    }

    /// The library's version in one line.
    pub fn version(&self) -> String {
        let text = self.versions().text;
        let first = text.lines().next().unwrap_or_default();
        first.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// What the library tells of its versions.
    pub fn versions(&self) -> Versions {
        let mut text = vec![0u8; 8192 + 1];
        let (mut length, mut version, mut subversion) = (0i32, 0i32, 0i32);
        // No interface allows a longer text.
        lower!(self, MPI_Get_library_version(text.as_mut_ptr(), &raw mut length));
        lower!(self, MPI_Get_version(&raw mut version, &raw mut subversion));
        let text = CStr::from_bytes_until_nul(&text).map(CStr::to_string_lossy).unwrap_or_default().into_owned();
        Versions { standard: (version, subversion), text, length }
    }
}

/// What a library tells of its versions, and a program goes by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Versions {
    /// Of the MPI standard: version and subversion.
    pub standard: (i32, i32),
    /// The library's own, as a text.
    pub text: String,
    /// How long it says that the text is: Open MPI counts its end.
    pub length: i32,
}

/// The folders of libraries that were installed together with the launcher's programs on this machine, which are what lies
/// between this process and the `phasecast` that began all, or the end of the line.
fn beside_launcher() -> Vec<PathBuf> {
    let program = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let parent = |&pid: &u32| state_and_parent(pid).map(|(_, parent)| parent).filter(|&parent| parent > 1);
    let own = std::process::id();
    let ancestors = std::iter::successors(parent(&own), parent).map_while(program);
    let launchers = ancestors.take_while(|ancestor| Some(ancestor) != program(own).as_ref());
    let prefixes = launchers.filter_map(|launcher| Some(launcher.parent()?.parent()?.to_owned()));
    prefixes.flat_map(|prefix| ["lib", "lib64"].map(|folder| prefix.join(folder))).collect()
}

impl Symbols for Library {
    fn address(&self, symbol: &str) -> Option<usize> {
        find(self.handle, symbol)
    }

    fn variable(&self, symbol: &str) -> Option<usize> {
        // SAFETY: a variable of the library that holds a pointer.
        find(self.handle, symbol).map(|at| unsafe { *(at as *const usize) })
    }
}

fn find(handle: usize, symbol: &str) -> Option<usize> {
    let name = CString::new(symbol).ok()?;
    // SAFETY: a handle of dlopen and a valid name.
    let found = unsafe { libc::dlsym(handle as *mut libc::c_void, name.as_ptr()) };
    (!found.is_null()).then_some(found as usize)
}
