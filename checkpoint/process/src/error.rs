//! What can go wrong when a program is loaded, saved or brought back.
use std::io::{self, Write};
use std::path::PathBuf;

/// How the lines begin that [`complain`] writes.
pub const COMPLAINT: &str = "phasecast host: ";

/// Tells the runner, which keeps the lines that begin so, why this process cannot go on: in one write, so that what the
/// other ranks say does not come between.
pub fn complain(why: impl std::fmt::Display) {
    let line = format!("{COMPLAINT}{why}\n");
    // Without error output nobody listens.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Why a split process cannot be started, saved or restored.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("cannot read the program {}: {cause}", path.display())]
    Read { path: PathBuf, cause: io::Error },
    #[error("the program {} is not a file that can be executed: set its execute permission", path.display())]
    NotExecutable { path: PathBuf },
    #[error("{} is neither an ELF program nor a script that begins with #!: {reason}", path.display())]
    NotAProgram { path: PathBuf, reason: &'static str },
    #[error("{} is built for another processor than x86-64: build it for this one", path.display())]
    Architecture { path: PathBuf },
    #[error("{} is statically linked; a program needs a dynamic linker of its own to be saved: link it without -static", path.display())]
    Static { path: PathBuf },
    #[error("the script {} names interpreters more than four levels deep", path.display())]
    ScriptDepth { path: PathBuf },
    #[error("{} is damaged: {reason}", path.display())]
    Damaged { path: PathBuf, reason: &'static str },
    #[error("the kernel refuses {what}: {cause}")]
    Kernel { what: &'static str, cause: io::Error },
    #[error("cannot map {what} of {bytes} bytes at {address:#x}: {cause}")]
    Map { what: &'static str, address: usize, bytes: usize, cause: io::Error },
    #[error("no room for {bytes} bytes in the program's range of addresses: use a program with less memory")]
    NoRoom { bytes: usize },
    #[error("the argument or variable {0:?} holds a zero byte: remove it")]
    ZeroByte(String),
    #[error("{0:?} names no processor baseline: choose x86-64-v2, x86-64-v3 or native")]
    Cpu(String),
    #[error("this machine cannot run a split process: {0}")]
    Unsupported(&'static str),
    #[error("the program cannot be saved here: {0}")]
    Obstacle(String),
    #[error("cannot bring back file {} as descriptor {fd}: {cause}", path.display())]
    File { fd: i32, path: PathBuf, cause: io::Error },
    #[error("cannot bring back file {}, which the run had written: {cause}", path.display())]
    Copy { path: PathBuf, cause: io::Error },
    #[error("cannot bring back a thread: {0}")]
    Thread(io::Error),
}
