//! What the tests share: where the machine's MPIs and the set-up's packages are, and how to compile and run a probe in C.
//! A missing piece is a failure that names the remedy, never a skip.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What to do when something is missing.
pub const REMEDY: &str = "run `cargo xtask setup`";

/// Root of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("abi/ is in the workspace").to_owned()
}

/// The first path below `start` that ends in `tail`.
pub fn find_below(start: &Path, tail: &str) -> Option<PathBuf> {
    let mut folders = vec![start.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let path = entry.path();
            if path.ends_with(tail) {
                return Some(path);
            }
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                folders.push(path);
            }
        }
    }
    None
}

/// The folder of the header of the MPI-5 ABI.
pub fn mpi5_include() -> PathBuf {
    if let Some(folder) = std::env::var_os("PHASECAST_MPI5_INCLUDE") {
        let folder = PathBuf::from(folder);
        let header = folder.join("mpi_abi.h");
        assert!(header.exists(), "PHASECAST_MPI5_INCLUDE: there is no {}: unset it, or {REMEDY}", header.display());
        return folder;
    }
    let venv = workspace().join(".phasecast/venvs/mpich5");
    let header =
        find_below(&venv, "mpi_abi.h").unwrap_or_else(|| panic!("no mpi_abi.h below {}: {REMEDY}", venv.display()));
    header.parent().expect("a file has a folder").to_owned()
}

/// An MPI to compile a probe with.
pub enum Compiler {
    /// A compiler wrapper, by name.
    Wrapper(&'static str),
    /// The C compiler, with this folder of headers; the probe must call no MPI.
    Headers(PathBuf),
}

impl Compiler {
    fn command(&self) -> Command {
        match self {
            Compiler::Wrapper(name) => Command::new(name),
            Compiler::Headers(folder) => {
                let mut cc = Command::new("cc");
                cc.arg("-I").arg(folder);
                cc
            }
        }
    }

    /// Compiles `source` and runs it; `Err` holds the compiler's words.
    pub fn run(&self, source: &str, args: &[&str]) -> Result<String, String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (c, exe) = (folder.path().join("probe.c"), folder.path().join("probe"));
        std::fs::write(&c, source).expect("write the probe");
        let compile = self.command().arg("-w").arg("-o").arg(&exe).arg(&c).args(args).env("LC_ALL", "C").output();
        let compile = compile.unwrap_or_else(|e| panic!("cannot run {:?} ({e}): {REMEDY}", self.command()));
        if !compile.status.success() {
            return Err(String::from_utf8_lossy(&compile.stderr).into_owned());
        }
        let run = Command::new(&exe)
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .output()
            .expect("run the probe");
        assert!(run.status.success(), "the probe failed: {}", words(&run));
        Ok(String::from_utf8(run.stdout).expect("the probe prints text"))
    }

    /// Like [`Compiler::run`], but without the names in `names` that the header lacks; returns those too. `line` makes
    /// the statement of a name.
    pub fn run_names(
        &self,
        head: &str,
        names: &[&str],
        line: impl Fn(&str) -> String,
    ) -> (BTreeMap<String, String>, BTreeSet<String>) {
        let mut absent = BTreeSet::new();
        loop {
            let known = names.iter().filter(|n| !absent.contains(**n));
            let body: String = known.map(|n| line(n)).collect();
            match self.run(&format!("#include <stdio.h>\n{head}\nint main(void) {{\n{body}return 0;\n}}\n"), &[]) {
                Ok(out) => {
                    let pairs = out.lines().filter_map(|l| l.split_once(' '));
                    return (pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).collect(), absent);
                }
                Err(words) => {
                    let missing = undeclared(&words);
                    assert!(!missing.is_subset(&absent), "the probe does not compile:\n{words}");
                    absent.extend(missing);
                }
            }
        }
    }
}

/// Names that gcc or clang say are not declared.
fn undeclared(words: &str) -> BTreeSet<String> {
    words
        .lines()
        .filter(|l| l.contains("undeclared"))
        .filter_map(|l| l.split('\'').find(|w| ["MPI_", "MPIX_", "MPIR_"].iter().any(|head| w.starts_with(head))))
        .map(str::to_owned)
        .collect()
}

/// Both outputs of a program.
pub fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
