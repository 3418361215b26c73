//! Writes the facade's symbols from the table of procedures: for each of them `MPI_X` and `PMPI_X`, which go through the
//! gate with the procedure's index; and Fortran's entries.
mod fortran;

use phasecast_abi::PROCEDURES;
use std::fmt::Write;

/// Where every host maps the gate: `phasecast_process::gate::GATE`.
const GATE: &str = "0x1ffffff00000";

fn main() -> std::io::Result<()> {
    let mut text = String::new();
    let mut symbol = |name: &str, body: &str| {
        let head = "#[unsafe(naked)]\n#[unsafe(no_mangle)]\npub(crate) unsafe extern \"C\" fn";
        let _ = writeln!(text, "{head} {name}() {{\n    core::arch::naked_asm!(\"movabs r11, {GATE}\", {body})\n}}");
    };
    for (index, procedure) in PROCEDURES.iter().enumerate() {
        for prefix in ["", "P"] {
            symbol(&format!("{prefix}{}", procedure.name), &format!("\"mov r10d, {index}\", \"jmp [r11]\""));
        }
    }
    for (name, slot) in [("clock_gettime", 1), ("gettimeofday", 2), ("time", 3)] {
        symbol(name, &format!("\"jmp [r11 + {}]\"", 8 * slot));
    }
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    std::fs::write(out.join("symbols.rs"), text)?;
    std::fs::write(out.join("entries.rs"), fortran::entries())?;
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,now");
    Ok(())
}
