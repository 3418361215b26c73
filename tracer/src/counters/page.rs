//! A counter read in user space: the page that the kernel shares of it (`struct perf_event_mmap_page` in
//! `linux/perf_event.h`, whose protocol this follows), and the processor's instruction.
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicI64, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed, compiler_fence};

/// Bytes of the mapping.
pub const LENGTH: usize = 4096;
/// `cap_user_rdpmc`: the instruction may be used.
const MAY_READ: u64 = 1 << 2;

/// The head of the page.
#[repr(C)]
#[derive(Default)]
pub struct Page {
    version: AtomicU32,
    compat_version: AtomicU32,
    /// Changes whenever the kernel changes what follows.
    lock: AtomicU32,
    /// One more than the number of the counter on the processor; 0 while it is on none.
    index: AtomicU32,
    /// What is to be added to the counter.
    offset: AtomicI64,
    time_enabled: AtomicU64,
    time_running: AtomicU64,
    capabilities: AtomicU64,
    /// Bits of the counter.
    width: AtomicU16,
}

/// The value of a counter; none if only the kernel can tell: it is not on the processor, must not be read from here, or
/// had to share its place with others, so that its times count too.
#[inline]
pub fn read(page: &Page, rdpmc: impl Fn(u32) -> u64) -> Option<u64> {
    loop {
        let lock = page.lock.load(Relaxed);
        // The kernel changes the page on this very processor: what must not happen is that the compiler moves a reading.
        compiler_fence(SeqCst);
        let (index, width) = (page.index.load(Relaxed), u32::from(page.width.load(Relaxed)));
        let shared = page.time_enabled.load(Relaxed) != page.time_running.load(Relaxed);
        let may = page.capabilities.load(Relaxed) & MAY_READ != 0;
        let value = (may && index != 0 && !shared && (1..=64).contains(&width)).then(|| {
            let unused = 64 - width;
            let counted = (rdpmc(index - 1) << unused).cast_signed() >> unused;
            page.offset.load(Relaxed).wrapping_add(counted).cast_unsigned()
        });
        compiler_fence(SeqCst);
        if page.lock.load(Relaxed) == lock {
            return value;
        }
    }
}

/// The instruction.
#[inline]
pub fn rdpmc(counter: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: only called where the kernel says that it may be used (`cap_user_rdpmc`).
    unsafe {
        std::arch::asm!("rdpmc", in("ecx") counter, out("eax") low, out("edx") high, options(nomem, nostack));
    }
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        let page = Page::default();
        page.index.store(3, Relaxed);
        page.offset.store(1000, Relaxed);
        page.capabilities.store(MAY_READ, Relaxed);
        page.width.store(48, Relaxed);
        page
    }

    #[test]
    fn fields_lie_where_the_kernel_has_them() {
        assert_eq!(std::mem::offset_of!(Page, lock), 8);
        assert_eq!(std::mem::offset_of!(Page, offset), 16);
        assert_eq!(std::mem::offset_of!(Page, capabilities), 40);
        assert_eq!(std::mem::offset_of!(Page, width), 48);
    }

    #[test]
    fn a_counter_is_of_its_width_and_signed() {
        let page = page();
        let asked = |value: u64| move |counter: u32| if counter == 2 { value } else { 0 };
        assert_eq!(read(&page, asked(5)), Some(1005));
        assert_eq!(read(&page, asked((1 << 48) - 5)), Some(995));
        assert_eq!(read(&page, asked(0xab << 48 | 5)), Some(1005), "bits beyond its width mean nothing");
    }

    #[test]
    fn the_kernel_is_asked_where_the_page_does_not_tell() {
        let never = |_: u32| panic!("the instruction must not be used");
        for spoil in [
            |page: &Page| page.index.store(0, Relaxed),
            |page: &Page| page.capabilities.store(0, Relaxed),
            |page: &Page| page.time_enabled.store(1, Relaxed),
            |page: &Page| page.width.store(65, Relaxed),
        ] {
            let page = page();
            spoil(&page);
            assert_eq!(read(&page, never), None);
        }
    }

    #[test]
    fn a_reading_during_which_the_page_changed_is_made_again() {
        let page = page();
        let times = std::cell::Cell::new(0);
        let value = read(&page, |_| {
            times.set(times.get() + 1);
            if times.get() == 1 {
                page.lock.store(7, Relaxed);
                page.offset.store(2000, Relaxed);
            }
            1
        });
        assert_eq!((value, times.get()), (Some(2001), 2));
    }
}
