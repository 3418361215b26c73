//! Compiling the programs of `examples/`, once for each MPI.

use crate::mpi::{Language, Mpi};
use crate::process::run;
use crate::{root, target, venv};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::SystemTime;

/// Held while anything is compiled: tests that run at the same time want the same programs.
static COMPILING: Mutex<()> = Mutex::new(());

/// The program built from `examples/<source>` (a file, or a folder of C files) for an MPI, compiled if it is not up to
/// date.
///
/// # Panics
/// Where it does not compile, with the compiler's words.
pub fn compiled(mpi: Mpi, source: &str) -> PathBuf {
    let _guard = COMPILING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let path = root().join("examples").join(source);
    let language = match path.extension().and_then(|e| e.to_str()) {
        None | Some("c") => Language::C,
        Some("cpp") => Language::Cxx,
        _ => Language::Fortran,
    };
    let folder = target().join("examples").join(mpi.builder().name());
    let program = folder.join(path.file_stem().expect("an example has a name"));
    let sources = if path.is_dir() { files(&path, "c") } else { vec![path.clone()] };
    let headers = [files(&root().join("examples"), "h"), files(&path, "h")].concat();
    if !newer(&program, sources.iter().chain(&headers)) {
        fs::create_dir_all(&folder).expect("the target folder can be written to");
        let fresh = program.with_extension("new");
        let mut compiler = Command::new(mpi.compiler(language));
        compiler.current_dir(&folder).arg("-O2").args(&sources).arg("-o").arg(&fresh).args(["-lm", "-pthread"]);
        run(&mut compiler).succeeded();
        fs::rename(&fresh, &program).expect("a file can be renamed");
    }
    program
}

/// The rsmpi program of `examples/rust`, in a target folder of its own for each MPI: mpi-sys does not notice a change of
/// `MPICC`.
///
/// # Panics
/// Where it does not compile.
pub fn rust(mpi: Mpi) -> PathBuf {
    let _guard = COMPILING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = target().join("examples").join(mpi.name()).join("rust");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--locked", "--quiet", "--manifest-path"]).arg(root().join("examples/rust/Cargo.toml"));
    let built = build.arg("--target-dir").arg(&folder).env("MPICC", mpi.compiler(Language::C)).output();
    let built = built.expect("cargo can be run");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    folder.join("debug/ring")
}

/// The command that runs `examples/<script>` by mpi4py.
pub fn python(script: &str) -> [PathBuf; 2] {
    [venv("mpi4py").join("bin/python3"), root().join("examples").join(script)]
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    found.sort();
    found
}

/// Whether the program exists and none of its sources was changed since.
pub(crate) fn newer<'a>(program: &Path, mut sources: impl Iterator<Item = &'a PathBuf>) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|m| m.modified());
    let Ok(built) = changed(program) else { return false };
    sources.all(|source| changed(source).unwrap_or(SystemTime::now()) < built)
}
