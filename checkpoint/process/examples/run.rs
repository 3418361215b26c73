//! `run PROGRAM ARGS`: runs a program in the upper half, with no MPI behind the gate. `PHASECAST_FACADE` names a library
//! to preload, `PHASECAST_CPU` a processor baseline.
use phasecast_process::{Cpu, Start, fence, files, gate, prepare, start};

unsafe extern "C" fn dispatch(_frame: *mut gate::Frame, _index: usize) -> usize {
    0
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let program = args.next().ok_or("usage: run PROGRAM ARGS")?.into();
    prepare()?;
    files::reserve(3..64);
    let cpu = std::env::var("PHASECAST_CPU").map_or(Ok(Cpu::Native), |name| name.parse())?;
    let facade = std::env::var_os("PHASECAST_FACADE").map(Into::into);
    let env = std::env::vars_os().filter(|(n, _)| n != "PHASECAST_FACADE" && n != "PHASECAST_CPU").collect();
    let loaded = start(&Start { program, args: args.collect(), env, facade, cpu })?;
    files::release();
    gate::install(dispatch)?;
    fence::install()?;
    // SAFETY: the program was just loaded; this is the main thread.
    unsafe { gate::enter(loaded.entry, loaded.stack) };
    Ok(())
}

fn main() {
    if let Err(error) = run() {
        eprintln!("run: {error}");
        std::process::exit(127);
    }
}
