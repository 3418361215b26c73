//! Writes the facade's symbols from the table of procedures: for each of them `MPI_X` and `PMPI_X`, which go through the
//! gate with the procedure's index, each with a resolver behind it, which asks the host whether the program is to see it;
//! and Fortran's entries.
mod each;
mod fortran;

use phasecast_abi::PROCEDURES;
use std::fmt::Write;

/// Where every host maps the gate: `phasecast_process::gate::GATE`.
const GATE: &str = "0x1ffffff00000";
/// Where the resolver of a symbol is, from there: `hide::RESOLVER` of the host.
const RESOLVER: usize = 32;

fn main() -> std::io::Result<()> {
    let mut text = String::new();
    let mut symbol = |name: &str, body: &str| {
        let head = "#[unsafe(naked)]\n#[unsafe(no_mangle)]\npub(crate) unsafe extern \"C\" fn";
        let _ = writeln!(
            text,
            "{head} {name}() {{\n    core::arch::naked_asm!(\"2:\", \"movabs r11, {GATE}\", {body})\n}}"
        );
    };
    let call = |index: usize| format!("\"mov r10d, {index}\", \"jmp [r11]\"");
    // What the host is asked, with an address in the facade.
    let ask = |which: usize| format!("\"lea rdi, [rip + 2b]\", {}", call(PROCEDURES.len() + which));
    for (index, procedure) in PROCEDURES.iter().enumerate() {
        for prefix in ["", "P"] {
            let gap = format!("\".skip {RESOLVER} - (. - 2b), 0xcc\", \"movabs r11, {GATE}\"");
            symbol(&format!("{prefix}{}", procedure.name), &format!("{}, {gap}, {}", call(index), ask(index)));
        }
    }
    symbol("phasecast_facade_starts", &ask(PROCEDURES.len()));
    symbol("phasecast_facade_replaces", &call(2 * PROCEDURES.len() + 1));
    for (name, slot) in [("clock_gettime", 1), ("gettimeofday", 2)] {
        let call = format!("\"sub rsp, 8\", \"call [r11 + {}]\", \"add rsp, 8\"", 8 * slot);
        let tell = "\"test eax, eax\", \"js 3f\", \"ret\", \"3:\", \"mov edi, eax\", \"jmp {tell}\"";
        symbol(name, &format!("{call}, {tell}, tell = sym crate::tell_error"));
    }
    symbol("time", "\"jmp [r11 + 24]\"");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    std::fs::write(out.join("symbols.rs"), text)?;
    std::fs::write(out.join("entries.rs"), fortran::entries())?;
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,now");
    Ok(())
}
