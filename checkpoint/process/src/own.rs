//! Which process this is: the program itself, a copy that it forked, or a child that still shares its memory (vfork,
//! posix_spawn). A page that the kernel clears at a fork tells them apart; the lock of the tables lies in it too, so
//! that a forked child never waits for a thread it does not have.
use crate::Error;
use crate::sys::{self, getpid};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

#[repr(C)]
struct Page {
    pid: AtomicU32,
    lock: AtomicU32,
}

static PAGE: AtomicPtr<Page> = AtomicPtr::new(std::ptr::null_mut());
static FIRST: AtomicU32 = AtomicU32::new(0);

/// What a process is to the tables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// The program: everything is recorded.
    Program,
    /// A child with a copy of the memory: its mappings and handlers go on to be kept, its files are its own affair.
    Forked,
    /// A child that shares the memory until its exec: it must not touch the tables of handlers and files.
    Sharing,
}

fn page() -> &'static Page {
    // SAFETY: set by `prepare` to a page that is never unmapped, before anything else in this crate runs.
    unsafe { &*PAGE.load(Relaxed) }
}

/// Makes the page.
pub(crate) fn prepare() -> Result<(), Error> {
    // SAFETY: a new anonymous page, and advice for it.
    let page = unsafe {
        let page = libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if page == libc::MAP_FAILED || libc::madvise(page, 4096, libc::MADV_WIPEONFORK) != 0 {
            return Err(Error::Kernel {
                what: "a page that is cleared at a fork",
                cause: std::io::Error::last_os_error(),
            });
        }
        page
    };
    PAGE.store(page.cast(), Relaxed);
    FIRST.store(getpid(), Relaxed);
    self::page().pid.store(getpid(), Relaxed);
    Ok(())
}

/// Which process this is.
pub(crate) fn who() -> Who {
    let pid = getpid();
    if pid == FIRST.load(Relaxed) {
        return Who::Program;
    }
    match page().pid.compare_exchange(0, pid, Relaxed, Relaxed) {
        Ok(_) => Who::Forked,
        Err(known) if known == pid => Who::Forked,
        Err(_) => Who::Sharing,
    }
}

/// A table that the trap handler and the host share.
pub(crate) struct Guarded<T>(UnsafeCell<T>);

// SAFETY: reached only through `lock`, which admits one thread at a time.
unsafe impl<T> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// The table, locked. All signals are blocked meanwhile: a handler on this thread that traps would wait for ever.
    /// One lock serves all tables; no two are held at once.
    pub(crate) fn lock(&self) -> Lock<'_, T> {
        let mask = sys::set_mask(!0);
        let mut lock = self.lock_blocked();
        lock.mask = Some(mask);
        lock
    }

    /// The same for the trap handler, which runs with all signals blocked.
    pub(crate) fn lock_blocked(&self) -> Lock<'_, T> {
        let lock = &page().lock;
        let mut tries = 0u32;
        while lock.compare_exchange_weak(0, 1, Acquire, Relaxed).is_err() {
            tries = tries.wrapping_add(1);
            if tries.is_multiple_of(64) {
                // SAFETY: takes and changes nothing.
                unsafe { sys::call(libc::SYS_sched_yield as usize, [0; 6]) };
            }
            std::hint::spin_loop();
        }
        // SAFETY: the lock is held until the guard is dropped.
        Lock { table: unsafe { &mut *self.0.get() }, mask: None }
    }
}

/// A locked table.
pub(crate) struct Lock<'a, T> {
    table: &'a mut T,
    mask: Option<u64>,
}

impl<T> Deref for Lock<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.table
    }
}

impl<T> DerefMut for Lock<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.table
    }
}

impl<T> Drop for Lock<'_, T> {
    fn drop(&mut self) {
        page().lock.store(0, Release);
        if let Some(mask) = self.mask {
            sys::set_mask(mask);
        }
    }
}
