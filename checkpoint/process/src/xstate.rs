//! The extended processor state in a thread's signal frame. Its size and features are those of the processor that wrote
//! it; the return from the signal on another one would silently drop the wide registers, or end the process. So frames
//! from elsewhere are rewritten for this processor before the return.
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Where the kernel's own words lie in the state: magic, whole size, features, size.
const WORDS: usize = 464;
/// Where the header lies: features in use, layout.
const HEADER: usize = 512;
const MAGIC1: u32 = 0x4650_5853;
const MAGIC2: u32 = 0x4650_5845;
/// x87, SSE and AVX: their places are the same on every processor.
const COMMON: u64 = 7;
const AVX: u64 = 4;
/// Masks and registers of AVX-512.
const WIDE: u64 = 0xe0;

static SIZE: AtomicU32 = AtomicU32::new(0);
static FEATURES: AtomicU64 = AtomicU64::new(0);

/// What a frame says of its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    features: u64,
    size: u32,
}

unsafe fn read<T: Copy>(state: usize, at: usize) -> T {
    // SAFETY: the caller's: the state reaches so far.
    unsafe { ((state + at) as *const T).read_unaligned() }
}

unsafe fn write<T>(state: usize, at: usize, value: T) {
    // SAFETY: the caller's: the state reaches so far.
    unsafe { ((state + at) as *mut T).write_unaligned(value) }
}

/// None for the old layout without extensions, which is the same everywhere.
unsafe fn layout(state: usize) -> Option<Layout> {
    // SAFETY: the caller's: a state of 512 bytes at least.
    unsafe {
        (state != 0 && read::<u32>(state, WORDS) == MAGIC1)
            .then(|| Layout { features: read(state, WORDS + 8), size: read(state, WORDS + 16) })
    }
}

/// Learns this processor's layout from a signal frame's state.
///
/// # Safety
/// The address is that of a state the kernel just wrote, or zero.
pub(crate) unsafe fn learn(state: usize) {
    // SAFETY: the caller's.
    if let Some(here) = unsafe { layout(state) } {
        SIZE.store(here.size, Relaxed);
        FEATURES.store(here.features, Relaxed);
    }
}

/// Rewrites a state from another processor for this one. False if wide registers are in use that stand in another place
/// there: they are lost.
///
/// # Safety
/// The address is that of a state in restored memory, as the kernel wrote it, or zero.
pub(crate) unsafe fn fit(state: usize) -> bool {
    let here = Layout { features: FEATURES.load(Relaxed), size: SIZE.load(Relaxed) };
    // SAFETY: the caller's; what is written lies within the state, which only shrinks.
    unsafe {
        let Some(there) = layout(state) else { return true };
        if there == here {
            return true;
        }
        let keep = there.features & here.features & COMMON;
        let size: u32 = if keep & AVX != 0 { 832 } else { 576 };
        if there.size < size {
            return true;
        }
        write(state, WORDS + 4, size + 4);
        write(state, WORDS + 8, keep);
        write(state, WORDS + 16, size);
        let used: u64 = read(state, HEADER);
        write(state, HEADER, used & keep);
        write(state, HEADER + 8, [0u64; 7]);
        write(state, size as usize, MAGIC2);
        used & WIDE == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wider_state_shrinks_to_what_both_processors_have() {
        let mut state = vec![0u8; 2696 + 4];
        let at = state.as_mut_ptr() as usize;
        // SAFETY: within the vector.
        unsafe {
            write(at, WORDS, MAGIC1);
            write(at, WORDS + 4, 2700u32);
            write(at, WORDS + 8, 0xe7u64);
            write(at, WORDS + 16, 2696u32);
            write(at, HEADER, 0xe6u64);
            write(at, 2696, MAGIC2);
            SIZE.store(832, Relaxed);
            FEATURES.store(7, Relaxed);
            assert!(!fit(at), "wide registers were in use");
            assert_eq!(layout(at), Some(Layout { features: 7, size: 832 }));
            assert_eq!((read::<u64>(at, HEADER), read::<u32>(at, 832)), (6, MAGIC2));
            SIZE.store(576, Relaxed);
            FEATURES.store(3, Relaxed);
            assert!(fit(at));
            assert_eq!(layout(at), Some(Layout { features: 3, size: 576 }));
            assert_eq!((read::<u64>(at, HEADER), read::<u32>(at, 576)), (2, MAGIC2));
        }
        if std::arch::is_x86_feature_detected!("avx") {
            the_kernel_takes_a_rewritten_frame();
        }
    }
    unsafe extern "C" fn narrow(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
        SIZE.store(832, Relaxed);
        FEATURES.store(COMMON, Relaxed);
        // SAFETY: the kernel's own frame.
        unsafe {
            let state = (*context).uc_mcontext.fpregs as usize;
            assert!(fit(state) || is_x86_feature_detected!("avx512f"));
            assert_eq!(layout(state), Some(Layout { features: COMMON, size: 832 }));
        }
    }

    /// A wide register survives a signal whose frame was rewritten as for a processor with AVX and no more.
    fn the_kernel_takes_a_rewritten_frame() {
        let before: [u8; 32] = std::array::from_fn(|i| i as u8 + 1);
        let mut after = [0u8; 32];
        // SAFETY: a handler for a signal that nobody else uses here; the registers named are saved around the block.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = narrow as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            assert_eq!(libc::sigaction(libc::SIGWINCH, &raw const action, std::ptr::null_mut()), 0);
            std::arch::asm!(
                "vmovdqu ymm15, [{before}]",
                "syscall",
                "vmovdqu [{after}], ymm15",
                before = in(reg) before.as_ptr(),
                after = in(reg) after.as_mut_ptr(),
                inlateout("rax") libc::SYS_tgkill => _,
                in("rdi") std::process::id(),
                in("rsi") crate::sys::gettid(),
                in("rdx") libc::SIGWINCH,
                out("rcx") _, out("r11") _, out("xmm15") _,
            );
        }
        assert_eq!((after, SIZE.load(Relaxed)), (before, 832));
    }
}
