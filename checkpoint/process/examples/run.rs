//! `run PROGRAM ARGS`: runs a program in the upper half, with no MPI behind the gate. `PHASECAST_FACADE` names a library
//! to preload, `PHASECAST_CPU` a processor baseline; with `PHASECAST_EXIT` the program's end is told.
use phasecast_process::{Cpu, Start, fence, files, gate, on_exit, prepare};
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
    prepare(false)?;
    let cpu = std::env::var("PHASECAST_CPU").map_or(Ok(Cpu::Native), |name| name.parse())?;
    let facade = std::env::var_os("PHASECAST_FACADE").map(Into::into);
    let env = std::env::vars_os()
        .filter(|(n, _)| n != "PHASECAST_FACADE" && n != "PHASECAST_CPU" && n != "PHASECAST_EXIT")
        .collect();
    files::release();
    gate::install(dispatch)?;
    fence::install()?;
    if std::env::var_os("PHASECAST_EXIT").is_some() {
        on_exit(|code| {
            let calls: String = CALLS.get().to_string();
            println!("exit {code} after {calls} calls");
        });
    }
    // SAFETY: the main thread; gate and fence are in place.
    unsafe { phasecast_process::run(&Start { program, args: args.collect(), env, facade, cpu })? };
    Ok(())
}

fn main() {
    if let Err(error) = run() {
        eprintln!("run: {error}");
        std::process::exit(127);
    }
}
