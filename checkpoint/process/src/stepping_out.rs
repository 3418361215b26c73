//! Calls that a thread steps out of, to make them again: in the upper half it can be stopped and saved, which within the host
//! it cannot. And calls of the host's own, in the form of the gate's.
use crate::gate::Frame;
use crate::{segments, stub};
use std::arch::naked_asm;

/// Steps out of a call: goes back to the upper half with all registers as they were, to the [stub](stub::AGAIN) that makes the
/// call again after other threads have had the processor. What the frames in between own is not dropped.
///
/// # Safety
/// The frame is that of the call which the calling thread is in, with the lower half's thread pointer.
#[unsafe(naked)]
pub unsafe extern "C" fn again(frame: *mut Frame) -> ! {
    naked_asm!(
        "mov rsp, rdi",
        "mov rcx, [rsp + 8]",
        "cmp rcx, [rip + {by_segment}]",
        "jne 3f",
        "mov ecx, {upper}",
        "mov fs, ecx",
        "2:",
        "mov dword ptr [rsp + 4], 0",
        "mov r10d, [rsp]",
        "add rsp, 24",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop r8",
        "pop r9",
        "pop rbx",
        "pop rbp",
        "pop r12",
        "pop r13",
        "pop r14",
        "pop r15",
        "movabs r11, {stub}",
        "jmp r11",
        "3:",
        "wrfsbase rcx",
        "jmp 2b",
        by_segment = sym segments::UPPER_BASE,
        upper = const segments::UPPER,
        stub = const stub::AGAIN,
    )
}

/// The most arguments of a call that is made.
const MOST: usize = 14;

/// A call of the host's own in the form of one of the upper half.
#[repr(C)]
pub struct Made {
    frame: Frame,
    /// The arguments beyond the sixth.
    above: [usize; MOST - 6],
}

impl Made {
    /// A call of procedure `index`, as the thread with this pointer of the upper half would make it.
    pub fn new(index: usize, fs: usize, args: [usize; MOST]) -> Made {
        let frame = Frame {
            index: index as u32,
            mark: 0,
            fs,
            gap: 0,
            registers: std::array::from_fn(|at| args[at]),
            saved: [0; 6],
            ret: 0,
        };
        Made { frame, above: std::array::from_fn(|at| args[6 + at]) }
    }

    /// Its frame, which has the arguments behind it.
    pub fn frame(&mut self) -> *mut Frame {
        (&raw mut *self).cast()
    }
}
