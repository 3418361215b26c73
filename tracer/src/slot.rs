//! What a thread keeps between calls, in thread-local storage of the initial-exec model: it is read with two
//! instructions, where that of a shared library otherwise takes a call. (A preloaded library may use that model, because
//! it is there when the program starts. Rust cannot ask for it, hence the assembler.)
use crate::thread::Thread;
use std::arch::{asm, global_asm};
use std::cell::Cell;

/// The thread's place.
#[repr(C)]
pub struct Slot {
    /// Stack pointer in the outermost procedure of MPI that is under way, or 0.
    outermost: Cell<usize>,
    /// The thread's recorder, once it has one.
    pub thread: Cell<*mut Thread>,
}

global_asm!(
    ".pushsection .tbss.phasecast, \"awT\", @nobits",
    ".globl phasecast_slot",
    ".hidden phasecast_slot",
    ".type phasecast_slot, @object",
    ".size phasecast_slot, 16",
    ".balign 16",
    "phasecast_slot:",
    ".zero 16",
    ".popsection",
);

/// The place of the calling thread.
#[inline(always)]
pub fn slot() -> &'static Slot {
    let at: *const Slot;
    // SAFETY: the address of a thread-local variable: its offset, which the linker leaves in the global offset table,
    // from the thread pointer, which stands at fs:0.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + phasecast_slot@GOTTPOFF]",
            "add {0}, qword ptr fs:[0]",
            out(reg) at,
            options(pure, nomem, nostack)
        );
        // SAFETY: zero bytes are a valid Slot, and only this thread refers to it while it lives.
        &*at
    }
}

/// While it lives, procedures of MPI that this thread calls are called from inside MPI.
pub struct Inside<'a>(&'a Slot);

impl Slot {
    /// Notes that a procedure is under way; `None` if one was already. A call that was left by `longjmp` is seen to be
    /// over by its stack being gone.
    #[inline(always)]
    pub fn enter(&self) -> Option<Inside<'_>> {
        let here: usize;
        // SAFETY: reads the stack pointer.
        unsafe { asm!("mov {}, rsp", out(reg) here, options(nomem, nostack, preserves_flags)) };
        if here < self.outermost.get() {
            return None;
        }
        self.outermost.set(here);
        Some(Inside(self))
    }
}

impl Drop for Inside<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.outermost.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_from_inside_are_told_and_threads_are_apart() {
        #[inline(never)]
        fn nested() -> bool {
            std::hint::black_box([0u8; 256]);
            slot().enter().is_some()
        }
        let inside = slot().enter();
        assert!(inside.is_some());
        assert!(!nested());
        assert!(std::thread::spawn(nested).join().expect("the thread ends"));
        drop(inside);
        assert!(nested());
    }
}
