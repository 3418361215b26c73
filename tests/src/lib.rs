//! End-to-end tests: what they share. They run the real command on the programs of `examples/` under real MPIs; an MPI
//! that is missing is a failure, which names `cargo xtask setup`.

pub mod bench;
pub mod example;
pub mod half;
pub mod matrix;
pub mod mpi;
pub mod network;
pub mod place;
pub mod process;
pub mod program;
pub mod release;
pub mod split;
pub mod traced;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace").to_path_buf()
}

/// Where cargo, and the examples' compilers, put what they build.
pub fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// A private Python environment of the set-up.
pub fn venv(name: &str) -> PathBuf {
    root().join(".phasecast/venvs").join(name)
}

/// The `phasecast` command: what the environment variable `PHASECAST` names (`cargo xtask test` does), else the one of this
/// profile, which is brought up to date first.
pub fn phasecast() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("PHASECAST") {
        Some(given) => root().join(given),
        None => {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
            let build =
                Command::new(cargo).args(["build", "--quiet", "--profile", profile]).current_dir(root()).status();
            assert!(build.is_ok_and(|status| status.success()), "cargo build --profile {profile} failed");
            target().join(if profile == "dev" { "debug" } else { profile }).join("phasecast")
        }
    })
}
