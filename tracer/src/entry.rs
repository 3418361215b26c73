//! The procedures that a program calls: `MPI_X` and `PMPI_X` of every procedure in `generated.rs`, and the way from
//! there to what is recorded of it.
//!
//! All arguments of MPI are integers or pointers. A naked function hands them on as they came, with the address that the
//! call returns to between those in registers and those on the stack.
use crate::plan::PLANS;
use crate::record::{self, Call, constructor, matched, message, other};
use crate::slot::slot;
use crate::{collective, completion, delay, hide, life, real};
use phasecast_abi::Class;
use std::mem::transmute;

/// A pair of exported symbols.
pub struct Export {
    /// Index in the table of procedures.
    pub index: usize,
    /// Our procedure.
    pub wrapper: unsafe extern "C-unwind" fn(),
    /// Says whether there is one: see [`hide`].
    pub resolver: extern "C" fn() -> usize,
}

/// The ways that a call can go. Numbers rather than an enum: the compiler drops the ways that a procedure does not go
/// before it generates code for them, which for hundreds of procedures is minutes.
mod way {
    use crate::plan::Plan;
    use phasecast_abi::{Class, Pattern, Timing};

    pub const INIT: u8 = 0;
    pub const PASS: u8 = 1;
    pub const SEND: u8 = 2;
    pub const RECV: u8 = 3;
    pub const POST: u8 = 4;
    pub const COMPLETE: u8 = 5;
    pub const START: u8 = 6;
    pub const COLLECTIVE: u8 = 7;
    pub const MATCH: u8 = 8;
    pub const COMM: u8 = 9;
    pub const FINALIZE: u8 = 10;
    pub const PCONTROL: u8 = 11;
    pub const ABORT: u8 = 12;
    pub const OTHER: u8 = 13;
    pub const PLAIN: u8 = 14;

    /// The way of a procedure.
    pub const fn of(plan: &Plan) -> u8 {
        match plan.class {
            Class::Init | Class::SessionInit => INIT,
            Class::DatatypeFree => OTHER,
            _ if !plan.recorded() => PASS,
            Class::Send { timing: Timing::Blocking, .. } => SEND,
            Class::Recv { timing: Timing::Blocking } | Class::SendRecv { timing: Timing::Blocking, .. } => RECV,
            Class::Send { .. } | Class::Recv { .. } | Class::SendRecv { .. } => POST,
            Class::Completion { .. } => COMPLETE,
            Class::Start { .. } => START,
            Class::Collective {
                timing: Timing::Blocking,
                pattern: Pattern::Barrier | Pattern::Bcast | Pattern::Reduce | Pattern::Allreduce | Pattern::Scan,
                ..
            } => PLAIN,
            Class::Collective { .. } => COLLECTIVE,
            Class::Probe { .. } | Class::MatchedRecv { .. } => MATCH,
            Class::CommConstructor { .. } => COMM,
            Class::Finalize | Class::SessionFinalize => FINALIZE,
            Class::Pcontrol => PCONTROL,
            Class::Abort => ABORT,
            _ => OTHER,
        }
    }
}

/// What is done with a call of a procedure: `call` calls a function with such arguments.
///
/// # Safety
/// `args` are the arguments of procedure `P` as the program passed them.
#[inline(always)]
unsafe fn wrap<const P: usize, const N: usize>(
    args: [usize; N],
    site: usize,
    call: impl Fn(usize, [usize; N]) -> usize,
) -> usize {
    let plan = &PLANS[P];
    let function = real::function(P);
    if const { way::of(&PLANS[P]) == way::INIT } {
        return life::init(plan, site, &mut || call(function, args));
    }
    if const { way::of(&PLANS[P]) == way::ABORT } {
        life::abort(site, args[1] as i32);
    }
    if !life::on() {
        let rc = call(function, args);
        if const { way::of(&PLANS[P]) == way::COMM } && !record::failed(rc) {
            // SAFETY: these are the arguments of the procedure.
            unsafe { life::first_of_session(plan, &args) };
        }
        return rc;
    }
    let slot = slot();
    let Some(_inside) = slot.enter() else { return call(function, args) };
    if const { way::of(&PLANS[P]) == way::PASS } {
        return call(function, args);
    }
    let thread = match slot.thread.get() {
        thread if thread.is_null() => life::thread(slot),
        thread => thread,
    };
    // SAFETY: a thread's recorder lives as long as the process, and `enter` has seen to it that it is used once at a time.
    let Some(thread) = (unsafe { thread.as_mut() }) else { return call(function, args) };
    if delay::wanted() {
        delay::before(site, thread.last());
    }
    let mut now = Call::new(plan, site);
    // SAFETY: the arguments are those of the procedure that the plan is of.
    unsafe {
        match const { way::of(&PLANS[P]) } {
            way::SEND => {
                let rc = now.time(|| call(function, args));
                message::send(thread, &now, &args, rc);
                rc
            }
            way::RECV => {
                let mut args = args;
                let mut own = record::OwnStatus::default();
                own.lend(thread, plan, &mut args);
                let rc = now.time(|| call(function, args));
                message::received(thread, &now, &args, rc);
                rc
            }
            way::POST => {
                let rc = now.time(|| call(function, args));
                message::posted(thread, &now, &args, rc);
                rc
            }
            way::COMPLETE => {
                let mut args = args;
                let waiting = completion::before(thread, plan, &mut args);
                let rc = now.time(|| call(function, args));
                completion::after(thread, &now, &args, rc, &waiting);
                rc
            }
            way::START => {
                message::starting(thread, plan, &args);
                let rc = now.time(|| call(function, args));
                message::started(thread, &now, &args, rc);
                rc
            }
            way::COLLECTIVE => {
                let rc = now.time(|| call(function, args));
                collective::record(thread, &now, &args, rc);
                rc
            }
            way::PLAIN => {
                let rc = now.time(|| call(function, args));
                collective::record_plain(thread, &now, &args, rc);
                rc
            }
            way::MATCH => {
                let mut args = args;
                let mut own = record::OwnStatus::default();
                own.lend(thread, plan, &mut args);
                let noted = matched::before(thread, plan, &args);
                let rc = now.time(|| call(function, args));
                matched::record(thread, &now, &args, rc, noted);
                rc
            }
            way::COMM => {
                constructor::before(thread, plan, &args);
                let rc = now.time(|| call(function, args));
                constructor::record(thread, &now, &args, rc);
                rc
            }
            way::FINALIZE => {
                let rc = now.time(|| call(function, args));
                life::finalized(thread, &now, rc);
                rc
            }
            way::PCONTROL => {
                let rc = now.time(|| call(function, args));
                life::pcontrol(thread, &now, args[0] as i32);
                rc
            }
            _ => {
                let freed = other::before(thread, plan, &args);
                let rc = now.time(|| call(function, args));
                other::record(thread, &now, &args, rc, freed);
                rc
            }
        }
    }
}

/// Functions with the arguments of a procedure as the naked ones hand them on: six in registers (`r`), those of the
/// procedure first; then the return address, twice; then those on the stack (`s`).
macro_rules! entries {
    ($($name:ident $count:literal [$($r:ident)*] [$($unused:ident)*] [$($s:ident)*];)*) => { $(
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C-unwind" fn $name<const P: usize>(
            $($r: usize,)* $($unused: usize,)* site: usize, _return: usize, $($s: usize,)*
        ) -> usize {
            // SAFETY: these are the arguments of the procedure as the program passed them.
            unsafe {
                wrap::<P, $count>([$($r,)* $($s,)*], site, |function, [$($r,)* $($s,)*]| {
                    // SAFETY: the real procedure has as many arguments, all of them integers or pointers.
                    let function = transmute::<usize, unsafe extern "C-unwind" fn($(real::word!($r),)* $(real::word!($s),)*) -> usize>(function);
                    function($($r,)* $($s,)*)
                })
            }
        }
    )* };
}

entries! {
    entry0 0 [] [_u0 _u1 _u2 _u3 _u4 _u5] [];
    entry1 1 [a0] [_u1 _u2 _u3 _u4 _u5] [];
    entry2 2 [a0 a1] [_u2 _u3 _u4 _u5] [];
    entry3 3 [a0 a1 a2] [_u3 _u4 _u5] [];
    entry4 4 [a0 a1 a2 a3] [_u4 _u5] [];
    entry5 5 [a0 a1 a2 a3 a4] [_u5] [];
    entry6 6 [a0 a1 a2 a3 a4 a5] [] [];
    entry7 7 [a0 a1 a2 a3 a4 a5] [] [a6];
    entry8 8 [a0 a1 a2 a3 a4 a5] [] [a6 a7];
    entry9 9 [a0 a1 a2 a3 a4 a5] [] [a6 a7 a8];
    entry10 10 [a0 a1 a2 a3 a4 a5] [] [a6 a7 a8 a9];
    entry11 11 [a0 a1 a2 a3 a4 a5] [] [a6 a7 a8 a9 a10];
    entry12 12 [a0 a1 a2 a3 a4 a5] [] [a6 a7 a8 a9 a10 a11];
    entry13 13 [a0 a1 a2 a3 a4 a5] [] [a6 a7 a8 a9 a10 a11 a12];
}

macro_rules! naked {
    ($symbol:ident $entry:ident $index:literal) => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C-unwind" fn $symbol() {
            std::arch::naked_asm!(
                ".cfi_startproc",
                "push qword ptr [rsp]",
                ".cfi_adjust_cfa_offset 8",
                "call {entry}",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "ret",
                ".cfi_endproc",
                entry = sym $entry::<$index>,
            )
        }
    };
}

/// Picks the entry by the number of arguments.
macro_rules! both {
    ($mpi:ident $pmpi:ident $index:literal []) => {
        naked!($mpi entry0 $index);
        naked!($pmpi entry0 $index);
    };
    ($mpi:ident $pmpi:ident $index:literal [$a0:ident]) => {
        naked!($mpi entry1 $index);
        naked!($pmpi entry1 $index);
    };
    ($mpi:ident $pmpi:ident $index:literal [$a0:ident $a1:ident]) => {
        naked!($mpi entry2 $index);
        naked!($pmpi entry2 $index);
    };
    ($mpi:ident $pmpi:ident $index:literal [$a0:ident $a1:ident $a2:ident]) => {
        naked!($mpi entry3 $index);
        naked!($pmpi entry3 $index);
    };
    ($mpi:ident $pmpi:ident $index:literal [$a0:ident $a1:ident $a2:ident $a3:ident]) => {
        naked!($mpi entry4 $index);
        naked!($pmpi entry4 $index);
    };
    ($mpi:ident $pmpi:ident $index:literal [$a0:ident $a1:ident $a2:ident $a3:ident $a4:ident]) => {
        naked!($mpi entry5 $index);
        naked!($pmpi entry5 $index);
    };
    ($mpi:ident $pmpi:ident $index:literal [$a0:ident $a1:ident $a2:ident $a3:ident $a4:ident $a5:ident]) => {
        naked!($mpi entry6 $index);
        naked!($pmpi entry6 $index);
    };
    ($mpi:ident $pmpi:ident $index:literal [$a0:ident $a1:ident $a2:ident $a3:ident $a4:ident $a5:ident $a6:ident]) => {
        naked!($mpi entry7 $index);
        naked!($pmpi entry7 $index);
    };
    ($mpi:ident $pmpi:ident $index:literal [$a0:ident $a1:ident $a2:ident $a3:ident $a4:ident $a5:ident $a6:ident $a7:ident]) => {
        naked!($mpi entry8 $index);
        naked!($pmpi entry8 $index);
    };
    ($mpi:ident $pmpi:ident $index:literal [$a0:ident $a1:ident $a2:ident $a3:ident $a4:ident $a5:ident $a6:ident $a7:ident $a8:ident]) => {
        naked!($mpi entry9 $index);
        naked!($pmpi entry9 $index);
    };
    ($mpi:ident $pmpi:ident $index:literal [$a0:ident $a1:ident $a2:ident $a3:ident $a4:ident $a5:ident $a6:ident $a7:ident $a8:ident $a9:ident]) => {
        naked!($mpi entry10 $index);
        naked!($pmpi entry10 $index);
    };
    ($mpi:ident $pmpi:ident $index:literal [$a0:ident $a1:ident $a2:ident $a3:ident $a4:ident $a5:ident $a6:ident $a7:ident $a8:ident $a9:ident $a10:ident]) => {
        naked!($mpi entry11 $index);
        naked!($pmpi entry11 $index);
    };
    ($mpi:ident $pmpi:ident $index:literal [$a0:ident $a1:ident $a2:ident $a3:ident $a4:ident $a5:ident $a6:ident $a7:ident $a8:ident $a9:ident $a10:ident $a11:ident]) => {
        naked!($mpi entry12 $index);
        naked!($pmpi entry12 $index);
    };
    ($mpi:ident $pmpi:ident $index:literal [$a0:ident $a1:ident $a2:ident $a3:ident $a4:ident $a5:ident $a6:ident $a7:ident $a8:ident $a9:ident $a10:ident $a11:ident $a12:ident]) => {
        naked!($mpi entry13 $index);
        naked!($pmpi entry13 $index);
    };
}

macro_rules! wrappers {
    ($(($index:literal $mpi:ident $pmpi:ident $class:ident [$($argument:ident)*]))*) => {
        $(both!($mpi $pmpi $index [$($argument)*]);)*

        /// All exported procedures, by index.
        pub static EXPORTS: &[Export] = &[
            $(Export { index: $index, wrapper: $mpi, resolver: hide::resolve::<$index> },)*
        ];

        const _: () = {
            $(assert!(matches!(PLANS[$index].class, Class::$class { .. }), "generated.rs is out of date");)*
        };
    };
}

include!("generated.rs");
