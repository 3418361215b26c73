//! Makes phasecast's table of MPI procedures from the `apis.json` of the PyPI package pympistandard:
//! `phasecast-abi-codegen --apis PATH/apis.json --out abi/src/generated/procedures.rs [--tracer-out tracer/src/generated.rs]`.

mod bind;
mod emit;
mod json;
mod kinds;
#[allow(dead_code)]
#[path = "../../src/model/mod.rs"]
mod model;
mod rules;
mod wrappers;

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

const USAGE: &str = "usage: phasecast-abi-codegen --apis PATH/apis.json --out PROCEDURES.rs [--tracer-out WRAPPERS.rs]";

fn main() -> Result<()> {
    let (mut apis, mut out, mut tracer) = (None, None, None);
    let mut args = std::env::args_os().skip(1);
    while let Some(flag) = args.next() {
        let slot = match flag.to_str() {
            Some("--apis") => &mut apis,
            Some("--out") => &mut out,
            Some("--tracer-out") => &mut tracer,
            _ => bail!("unknown argument {}; {USAGE}", flag.display()),
        };
        *slot = Some(PathBuf::from(args.next().with_context(|| format!("{} needs a path; {USAGE}", flag.display()))?));
    }
    let (Some(apis), Some(out)) = (apis, out) else { bail!(USAGE) };
    let version = json::package_version(&apis)?;
    let procedures = bind::procedures(&json::read(&apis)?)?;
    write(&out, &emit::table(&procedures, &version))?;
    if let Some(tracer) = tracer {
        write(&tracer, &wrappers::list(&procedures, &version))?;
    }
    eprintln!("{}: {} procedures from pympistandard {version}", out.display(), procedures.len());
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
