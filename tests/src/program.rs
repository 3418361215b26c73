//! The programs of `tests/programs`: what their heads say of them, and building them for each MPI.
//!
//! A head is the lines that begin with `// ` (in Fortran with `! `) at the top: first what the program is about, then `ranks:`
//! (3 if not given), `flags:` for the compiler, `arguments:`, `module:` (it is also built as a module beside the program),
//! `stride:` (only every so many cuts is taken), `cut: middle` (where one cut is taken it is the middle one: what the program
//! is about is not there all the time), `mpi: 4` (it needs a library with what is new there), `setting:` (of the
//! environment, `NAME=value`, in which `{module}` is the module's path) and `refuses:`, a part of the reason for which a cut
//! may be refused, once for each reason.

use crate::example::newer;
use crate::mpi::{Language, Mpi};
use crate::process::run;
use crate::{root, target, venv};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// What a line of a head may tell.
const KEYS: [&str; 9] = ["ranks", "flags", "arguments", "module", "stride", "cut", "mpi", "setting", "refuses"];

/// A program of `tests/programs`.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name, which it prints at its end.
    pub name: String,
    /// Ranks to run it on.
    pub ranks: u32,
    /// Of these one is in the reason where a cut is refused; none may be refused if there is none.
    pub refuses: Vec<String>,
    /// Only every so many cuts is taken.
    pub stride: usize,
    /// The first cut to take is the middle one.
    pub middle: bool,
    /// Its procedures are those of this version of MPI.
    pub mpi: u32,
    source: PathBuf,
    flags: Vec<String>,
    arguments: Vec<String>,
    settings: Vec<(String, String)>,
    module: bool,
}

/// All programs, by name.
///
/// # Panics
/// Where their folder cannot be read.
pub fn programs() -> Vec<Program> {
    let folder = root().join("tests/programs");
    let files = |folder: PathBuf| {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        entries.map(|entry| entry.expect("a folder can be listed").path())
    };
    let all = files(folder.clone()).chain(files(folder.join("rust/src/bin")));
    let sources = all.filter(|path| ["c", "cpp", "f", "f90", "py", "rs"].contains(&extension(path)));
    let mut programs: Vec<Program> = sources.map(Program::read).collect();
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    programs
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|e| e.to_str()).unwrap_or_default()
}

impl Program {
    fn read(source: PathBuf) -> Program {
        let text = fs::read_to_string(&source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
        let prefix = if extension(&source).starts_with('f') { "! " } else { "// " };
        let head: Vec<&str> = text.lines().map_while(|line| line.strip_prefix(prefix)).collect();
        let pairs = head.iter().skip(1).filter_map(|line| line.split_once(':')).filter(|(key, _)| !key.contains(' '));
        let pairs: Vec<(&str, &str)> = pairs.collect();
        for (key, _) in &pairs {
            assert!(KEYS.contains(key), "{}: '{key}' is none of {KEYS:?}", source.display());
        }
        let all = |key: &'static str| pairs.iter().filter(move |(of, _)| *of == key).map(|(_, value)| value.trim());
        let told = |key| all(key).next();
        let number = |key| told(key).map(|n| n.parse().unwrap_or_else(|_| panic!("{}: {key}: {n}", source.display())));
        let words = |key| told(key).map(words).unwrap_or_default();
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Program {
            name: source.file_stem().and_then(|name| name.to_str()).expect("a program has a name").to_owned(),
            ranks: number("ranks").unwrap_or(3),
            refuses: all("refuses").map(str::to_owned).collect(),
            stride: number("stride").unwrap_or(1) as usize,
            mpi: number("mpi").unwrap_or(3),
            middle: told("cut").is_some_and(|place| place == "middle" || panic!("{}: cut: {place}", source.display())),
            flags: words("flags"),
            arguments: words("arguments"),
            settings: told("setting").and_then(|of| of.split_once('=')).map(owned).into_iter().collect(),
            module: told("module").is_some(),
            source,
        }
    }

    /// The program built for an MPI and its arguments; whatever is not up to date is compiled.
    ///
    /// # Panics
    /// Where it does not compile, with the compiler's words.
    pub fn command(&self, mpi: Mpi) -> Vec<String> {
        let mut command = match extension(&self.source) {
            "py" => vec![venv("mpi4py").join("bin/python3"), self.source.clone()],
            "rs" => vec![self.cargo(mpi)],
            _ => vec![self.compiled(mpi)],
        };
        let as_text = |path: PathBuf| path.into_os_string().into_string().expect("the path is UTF-8");
        command.drain(..).map(as_text).chain(self.arguments.iter().cloned()).collect()
    }

    /// Adds to a launcher what this program needs of its environment.
    pub fn prepare(&self, mpi: Mpi, command: &mut Command) {
        if extension(&self.source) == "py" {
            mpi.for_python(command);
        }
        let module = self.folder(mpi).join(&self.name).with_extension("so");
        let filled = |value: &String| value.replace("{module}", &module.to_string_lossy());
        command.envs(self.settings.iter().map(|(name, value)| (name, filled(value))));
    }

    /// Where it is built for an MPI.
    fn folder(&self, mpi: Mpi) -> PathBuf {
        target().join("programs").join(mpi.builder().name())
    }

    fn compiled(&self, mpi: Mpi) -> PathBuf {
        // Tests beside each other may want the same program.
        static BUILDING: Mutex<()> = Mutex::new(());
        let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = self.folder(mpi);
        let program = folder.join(&self.name);
        if newer(&program, with_included(&self.source).iter()) {
            return program;
        }
        fs::create_dir_all(&folder).expect("the target folder can be written to");
        let language = match extension(&self.source) {
            "c" => Language::C,
            "cpp" => Language::Cxx,
            _ => Language::Fortran,
        };
        let build = |flags: &[&str], to: &Path| {
            let mut compiler = Command::new(mpi.compiler(language));
            compiler.current_dir(&folder).args(["-O1", "-g", "-w"]).args(flags).arg(&self.source).arg("-o").arg(to);
            run(compiler.args(&self.flags).arg("-pthread")).succeeded();
        };
        if self.module {
            build(&["-shared", "-fPIC", "-DMODULE"], &program.with_extension("so"));
        }
        let fresh = program.with_extension("new");
        build(&[], &fresh);
        fs::rename(&fresh, &program).expect("a file can be renamed");
        program
    }

    fn cargo(&self, mpi: Mpi) -> PathBuf {
        let folder = target().join("examples").join(mpi.name()).join("rust");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--locked", "--quiet", "--bin", &self.name, "--manifest-path"]);
        build.arg(root().join("tests/programs/rust/Cargo.toml"));
        let built = build.arg("--target-dir").arg(&folder).env("MPICC", mpi.compiler(Language::C)).output();
        let built = built.expect("cargo can be run");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        folder.join("debug").join(&self.name)
    }
}

/// A source and those that it includes.
fn with_included(source: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    let in_c = |line| -> Option<&str> { str::strip_prefix(line, "#include \"")?.strip_suffix('"') };
    let in_fortran = |line| -> Option<&str> { str::trim_start(line).strip_prefix("include '")?.strip_suffix('\'') };
    let names = text.lines().filter_map(|line| in_c(line).or_else(|| in_fortran(line)));
    // What is not beside the source is MPI's own.
    let files = names.map(|name| source.with_file_name(name)).filter(|file| file.exists());
    let included = files.flat_map(|file| with_included(&file));
    std::iter::once(source.to_owned()).chain(included).collect()
}

/// The words of a line, of which some are in quotation marks.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (i, part) in line.split('"').enumerate() {
        if i % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "'refuse' is none of")]
    fn a_key_that_is_none_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("a.c");
        fs::write(&source, "// A program: it does nothing.\n// refuse: all\nint main(void) {}\n").expect("a file");
        Program::read(source);
    }

    #[test]
    fn what_is_included_is_a_source() {
        let folder = root().join("tests/programs");
        let names = ["win_allocate_apart.c", "win_allocate.c", "state.h"].map(|name| folder.join(name));
        assert_eq!(with_included(&names[0]), names);
        let names = ["f77_requests.f", "check.inc"].map(|name| folder.join(name));
        assert_eq!(with_included(&names[0]), names);
    }
}
