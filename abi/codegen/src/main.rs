//! Makes phasecast's table of MPI procedures from the `apis.json` of the PyPI package pympistandard:
//! `phasecast-abi-codegen --apis PATH/apis.json --out abi/src/generated/procedures.rs`.

mod bind;
mod emit;
mod json;
mod kinds;
#[allow(dead_code)]
#[path = "../../src/model/mod.rs"]
mod model;
mod rules;

use anyhow::{Context, Result, bail};
use std::path::PathBuf;

const USAGE: &str = "usage: phasecast-abi-codegen --apis PATH/apis.json --out PROCEDURES.rs";

fn main() -> Result<()> {
    let (mut apis, mut out) = (None, None);
    let mut args = std::env::args_os().skip(1);
    while let Some(flag) = args.next() {
        let slot = match flag.to_str() {
            Some("--apis") => &mut apis,
            Some("--out") => &mut out,
            _ => bail!("unknown argument {}; {USAGE}", flag.display()),
        };
        *slot = Some(PathBuf::from(args.next().with_context(|| format!("{} needs a path; {USAGE}", flag.display()))?));
    }
    let (Some(apis), Some(out)) = (apis, out) else { bail!(USAGE) };
    let version = json::package_version(&apis)?;
    let procedures = bind::procedures(&json::read(&apis)?)?;
    let text = emit::table(&procedures, &version);
    std::fs::write(&out, text).with_context(|| format!("cannot write {}", out.display()))?;
    eprintln!("{}: {} procedures from pympistandard {version}", out.display(), procedures.len());
    Ok(())
}
