//! What stands in memory for the time of a call or in the program: scratch for translated arguments, handles, statuses.
use crate::shape::Shape;
use phasecast_abi::{Kind, Status};
use std::mem::MaybeUninit;

/// Words of a call's memory that need no allocation.
const FIXED: usize = 48;

/// Memory for translated arrays and handles, for the time of a call.
pub struct Scratch {
    fixed: MaybeUninit<[u64; FIXED]>,
    used: usize,
    more: Vec<Box<[u64]>>,
}

impl Scratch {
    /// No memory in use.
    #[inline(always)]
    pub fn new() -> Scratch {
        Scratch { fixed: MaybeUninit::uninit(), used: 0, more: Vec::new() }
    }

    /// For the arguments of a procedure: memory of [`Scratch::lasting`] where it is needed for as long as a request is under
    /// way.
    #[inline(always)]
    pub fn of(shape: &Shape) -> Scratch {
        let mut scratch = Scratch::new();
        if shape.lasting {
            scratch.used = FIXED;
        }
        scratch
    }

    /// The memory, which stays in its place as long as this is kept.
    pub fn lasting(&mut self) -> Vec<Box<[u64]>> {
        std::mem::take(&mut self.more)
    }

    /// Address of `bytes` bytes, which are zero.
    #[inline(always)]
    pub fn take(&mut self, bytes: usize) -> usize {
        let words = bytes.div_ceil(8).max(1);
        if self.used + words.max(3) <= FIXED {
            // SAFETY: within the array; the words are set to zero before anybody reads them.
            let at = unsafe {
                let at = self.fixed.as_mut_ptr().cast::<u64>().add(self.used);
                // Without a call for the few words of a handle or status.
                match words {
                    1 => at.write(0),
                    2..=3 => at.cast::<[u64; 3]>().write([0; 3]),
                    _ => at.write_bytes(0, words),
                }
                at
            };
            self.used += words;
            return at as usize;
        }
        let mut block = vec![0u64; words].into_boxed_slice();
        let at = block.as_mut_ptr() as usize;
        self.more.push(block);
        at
    }
}

/// Reads a handle of so many bytes.
///
/// # Safety
/// It stands there.
#[inline(always)]
pub unsafe fn read_handle(at: usize, bytes: usize) -> usize {
    // SAFETY: the caller's.
    unsafe {
        if bytes == 4 { (at as *const u32).read_unaligned() as usize } else { (at as *const usize).read_unaligned() }
    }
}

/// Writes a handle of so many bytes.
///
/// # Safety
/// There is room for it.
#[inline(always)]
pub unsafe fn write_handle(at: usize, bytes: usize, handle: usize) {
    // SAFETY: the caller's.
    unsafe {
        if bytes == 4 {
            (at as *mut u32).write_unaligned(handle as u32)
        } else {
            (at as *mut usize).write_unaligned(handle)
        }
    }
}

/// Bytes of a handle (or attribute key) in an interface.
#[inline(always)]
pub fn handle_bytes(abi: phasecast_abi::Abi, kind: Kind) -> usize {
    if kind == Kind::Keyval { 4 } else { abi.layout().handle_bytes_of(kind) }
}

/// Reads a status.
///
/// # Safety
/// One of this interface stands there.
#[inline(always)]
pub unsafe fn read_status(abi: phasecast_abi::Abi, at: usize) -> Status {
    // SAFETY: the caller's.
    let raw = unsafe { std::slice::from_raw_parts(at as *const u8, abi.layout().status.size) };
    Status::read(abi, raw).unwrap_or_default()
}

/// Writes a status.
///
/// # Safety
/// There is room for one of this interface.
pub unsafe fn write_status(abi: phasecast_abi::Abi, at: usize, status: &Status) {
    // SAFETY: the caller's.
    let raw = unsafe { std::slice::from_raw_parts_mut(at as *mut u8, abi.layout().status.size) };
    let _ = status.write(abi, raw);
}

/// Writes the status of a call that yields one: the error in it stays as it was, as the standard has it.
///
/// # Safety
/// One of this interface stands there.
pub unsafe fn write_one_status(abi: phasecast_abi::Abi, at: usize, status: &Status) {
    let error = (at + abi.layout().status.error) as *mut i32;
    // SAFETY: the caller's.
    unsafe {
        let kept = error.read_unaligned();
        write_status(abi, at, status);
        error.write_unaligned(kept);
    }
}
