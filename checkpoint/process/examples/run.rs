//! `run PROGRAM ARGS`: runs a program in the upper half, with no MPI behind the gate. `PHASECAST_FACADE` names a library
//! to preload, `PHASECAST_CPU` a processor baseline.
use phasecast_process::{Cpu, Start, fence, files, gate, prepare, start};
use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// Call 3 uses what a library uses: memory, thread-local storage, time; it returns how often the thread called. Call 4
/// calls the function in its first argument with the second, as MPI calls a user's operation.
unsafe extern "C" fn dispatch(frame: *mut gate::Frame, index: usize) -> usize {
    match index {
        3 => {
            let text: Vec<String> = (0..100).map(|i| i.to_string()).collect();
            let end = Instant::now() + Duration::from_millis(1);
            while Instant::now() < end {}
            CALLS.set(CALLS.get() + text.len() / 100);
            CALLS.get()
        }
        // SAFETY: the test program's own call: a function of one argument.
        4 => unsafe {
            let frame = &*frame;
            gate::call_upper(frame.fs, frame.arg(0), &[frame.arg(1), 0, 0, 0, 0, 0])
        },
        _ => 0,
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let program = args.next().ok_or("usage: run PROGRAM ARGS")?.into();
    prepare()?;
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
