//! `libphasecast_tracer.so`: records the communication of an unmodified MPI program that it is preloaded into.
//!
//! It is built with no MPI present and serves every MPI. It defines `MPI_X` and `PMPI_X` of each procedure ([`entry`]),
//! finds the real ones at run time ([`real`]), and hides from the program those that its MPI lacks ([`hide`]).
//!
//! * [`plan`]: which argument of a procedure is what, worked out from the table of `phasecast-abi` at compile time
//! * [`record`], [`collective`], [`completion`]: what each class of call says about communication
//! * [`delay`]: delays before calls, for the verdict on a program's stability
//! * [`counters`]: counters of the processor around calls, where they are asked for
//! * [`comms`], [`requests`]: communicators and requests of the program
//! * [`thread`], [`sink`]: chunks of a thread, the file of a rank
//! * [`awaited`]: where a program is to be saved, and a script or a tool starts it
//! * [`life`], [`finish`]: from the start of the process to its end
mod awaited;
mod clock;
mod collective;
mod comms;
mod completion;
mod counters;
mod delay;
mod elf;
mod entry;
mod finish;
mod hide;
mod life;
mod plan;
mod real;
mod record;
mod requests;
mod sink;
mod slot;
mod thread;

phasecast_preload::dlopen!();
phasecast_preload::dlsym!();
