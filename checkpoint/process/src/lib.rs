//! A process in a process: loads a program with a dynamic linker and a C library of its own into a reserved range of
//! addresses (the *upper half*), and keeps its memory, signals, files and threads apart from those of the host (the
//! *lower half*), so that they can be saved and brought back elsewhere.
//!
//! Order of a start: [`prepare`], [`files::release`], [`gate::install`], [`fence::install`], [`run`]. Order of a restart
//! in place of [`run`]: [`signal_state::take_none`], memory, [`space::set_state`], [`files::restore`], [`signal_state::restore`], [`settings::restore`],
//! [`threads::restore_main`], [`threads::recreate`], [`processor_time::go_on`], [`signal_state::start_timers`],
//! [`threads::release`], [`threads::resume`].
pub mod apart;
mod asking;
mod channels;
pub mod children;
mod descriptors;
pub mod elf;
mod ending;
mod entering;
mod error;
mod exec;
pub mod fence;
pub mod fence_cost;
pub mod files;
mod folders;
pub mod gate;
mod gate_clock;
mod identity;
mod late_binding;
pub mod loader;
mod mappings;
mod named;
mod numbers;
mod overlay;
mod own;
mod parking;
mod plain;
pub mod processor_time;
pub mod processors;
mod rebirth;
mod remaking;
mod reopen;
mod repeat;
mod resolving;
mod returned;
mod same;
mod segments;
pub mod settings;
pub mod signal_state;
pub mod signals;
pub mod space;
mod stack;
mod stepping_out;
mod stub;
pub mod support;
mod sys;
mod system_v;
mod text;
pub mod threads;
mod timers;
mod trap;
mod working_folder;
mod written;
mod xstate;

pub use error::{COMPLAINT, Error, complain};
pub use exec::run;
pub use loader::{Cpu, Loaded, Start, start};
pub use trap::on_exit;
pub use written::{Content, MadeAfter, Written, made_later, read_later};

/// Makes the host ready for an upper half: tables, the first state of signals and files, the spare threads. To be called
/// once, by the main thread, with [`files::reserve`] before MPI is initialised and everything else after it. `by_script`
/// says that a script or a tool has started the program, with files of its own.
///
/// # Errors
/// If the machine cannot run a split process.
pub fn prepare(by_script: bool) -> Result<(), Error> {
    support::check()?;
    own::prepare()?;
    // Before there is a second thread: the kernel lets a process wait for all processors as its table of descriptors grows.
    files::prepare(by_script);
    children::prepare();
    segments::borrow();
    space::prepare();
    processors::prepare();
    settings::prepare();
    stub::prepare()?;
    threads::register_main()?;
    Ok(())
}
