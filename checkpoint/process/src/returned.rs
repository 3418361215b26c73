//! The thread in whose call a position was reached. It is written as the stopped ones are: by the frame of a signal, as if
//! one had interrupted it just after the call.
use crate::gate::Frame;
use crate::parking::{self, ThreadState};
use crate::processors;
use crate::signal_state::Held;
use crate::{segments, signals, sys};
use libc::{REG_CSGSFS, REG_R12, REG_R13, REG_R14, REG_R15, REG_RAX, REG_RBP, REG_RBX, REG_RIP, REG_RSP};
use std::arch::asm;

/// The state of the processor's wider registers as FXSAVE lays it out: what a call does not keep is zero.
#[repr(C, align(64))]
struct Wide([u32; 128]);

/// Places in it, in words: how the x87 unit (behind it, in the same word, which exceptions it has seen) and SSE round and which
/// exceptions they want, and the first register of SSE.
const X87_CONTROL: usize = 0;
const SSE_CONTROL: usize = 6;
const XMM0: usize = 40;

/// The frame of a thread's call as that of a signal. It must lie on the stack of the thread while memory is saved: what is
/// below it there is not needed.
#[repr(C)]
pub struct Returned {
    wide: Wide,
    context: libc::ucontext_t,
}

impl Returned {
    /// Room for one.
    pub fn new() -> Self {
        // SAFETY: zero is a value of all that is in it.
        unsafe { std::mem::zeroed() }
    }

    /// Writes the calling thread, which is in the call of `frame`, as it will be when the call has returned `result`. `held`: the
    /// signals that it blocks. To be called within the call: MPI leaves the controls of floating point as they are.
    pub fn write(&mut self, frame: &Frame, result: usize, held: &Held) -> ThreadState {
        let (mut code, mut stack): (u16, u16);
        // SAFETY: each stores registers.
        unsafe {
            let x87 = &raw mut self.wide.0[X87_CONTROL];
            asm!("fnstcw [{0}]", "fnstsw [{0} + 2]", in(reg) x87, options(nostack, preserves_flags));
            asm!("stmxcsr [{}]", in(reg) &raw mut self.wide.0[SSE_CONTROL], options(nostack, preserves_flags));
            asm!("mov {:x}, cs", out(reg) code, options(nomem, nostack, preserves_flags));
            asm!("mov {:x}, ss", out(reg) stack, options(nomem, nostack, preserves_flags));
        }
        // A result that is a `double` travels as its bits.
        (self.wide.0[XMM0], self.wide.0[XMM0 + 1]) = (result as u32, (result >> 32) as u32);
        let context = &mut self.context;
        let registers = &mut context.uc_mcontext.gregs;
        let places = [REG_RBX, REG_RBP, REG_R12, REG_R13, REG_R14, REG_R15];
        places.iter().zip(frame.saved).for_each(|(&place, value)| registers[place as usize] = value as i64);
        registers[REG_RAX as usize] = result as i64;
        registers[REG_RIP as usize] = frame.ret as i64;
        registers[REG_RSP as usize] = std::ptr::from_ref(frame).wrapping_add(1) as i64;
        registers[REG_CSGSFS as usize] = i64::from(code) | i64::from(stack) << 48;
        context.uc_mcontext.fpregs = (&raw mut self.wide).cast();
        let (address, flags, size) = signals::stack();
        context.uc_stack = libc::stack_t { ss_sp: address as *mut libc::c_void, ss_flags: flags, ss_size: size };
        // SAFETY: the kernel's mask is the first word of the library's larger one.
        unsafe { (&raw mut context.uc_sigmask).cast::<u64>().write(held.0) };
        let (number, (tid_address, robust)) = (sys::gettid(), parking::known(frame.fs));
        ThreadState {
            number,
            frame: std::ptr::from_ref(context) as usize,
            fs: frame.fs,
            gs: segments::gs(),
            tid_address,
            robust,
            places: processors::places(number),
            name: parking::name(number),
        }
    }
}

impl Default for Returned {
    fn default() -> Self {
        Self::new()
    }
}
