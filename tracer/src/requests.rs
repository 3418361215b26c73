//! What is known of requests under way (and of matched messages): receives, persistent requests, new communicators.
//!
//! Sends and nonblocking collectives are events where they start, so their requests are not kept. A handle may be used
//! again as soon as MPI has freed it, perhaps by another thread before this one has taken notice: each entry has a
//! number of its own, and only that very entry is removed.
use crate::comms::Comm;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// What a request is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum What {
    /// A receive.
    Recv,
    /// The receive of a nonblocking send-receive; some libraries leave its status as it was.
    Exchange,
    /// A persistent send.
    Send,
    /// The same in partitions.
    Parts,
    /// A persistent collective.
    Collective,
    /// A communicator that is being made.
    NewComm,
}

/// A request or matched message. The order of the fields is that of memory, so that it is copied in whole words.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Tracked {
    /// Its communicator.
    pub comm: &'static Comm,
    /// Bytes of a send or collective, or of the buffer of an exchange; the address where a new communicator's handle will
    /// stand.
    pub bytes: u64,
    /// Destination, root or requested source, as in a trace.
    pub peer: i32,
    /// Tag, as in a trace; of a new communicator, its number among those of its parent.
    pub tag: i32,
    /// Set by the table.
    pub serial: u32,
    /// What it is of.
    pub what: What,
    /// It can be started again.
    pub persistent: bool,
    /// It has been started and not completed.
    pub active: bool,
}

/// A hash table with open addressing, by handle (never 0).
#[derive(Default)]
pub struct Table {
    slots: Vec<Option<(usize, Tracked)>>,
    used: usize,
    serial: u32,
}

const FIRST: usize = 1024;

impl Table {
    #[inline(always)]
    fn home(&self, handle: usize) -> usize {
        let mixed = (handle as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        mixed as usize & (self.slots.len() - 1)
    }

    /// Where a handle is, or where it would go.
    #[inline(always)]
    fn place(&self, handle: usize) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.home(handle);
        while self.slots[at].as_ref().is_some_and(|(key, _)| *key != handle) {
            at = (at + 1) & mask;
        }
        at
    }

    /// What is known of a handle.
    #[inline(always)]
    pub fn get(&self, handle: usize) -> Option<&Tracked> {
        self.find(handle).map(|(_, tracked)| tracked)
    }

    /// What is known of a handle, and where it stands until the table is changed.
    #[inline(always)]
    pub fn find(&self, handle: usize) -> Option<(usize, &Tracked)> {
        if self.used == 0 {
            return None;
        }
        let at = self.place(handle);
        self.slots[at].as_ref().map(|(_, tracked)| (at, tracked))
    }

    /// Notes a request, in place of what was known of its handle.
    #[inline(always)]
    pub fn insert(&mut self, handle: usize, tracked: Tracked) {
        if (self.used + 1) * 2 > self.slots.len() {
            self.grow();
        }
        self.serial = self.serial.wrapping_add(1);
        let at = self.place(handle);
        self.used += usize::from(self.slots[at].is_none());
        self.slots[at] = Some((handle, Tracked { serial: self.serial, ..tracked }));
    }

    #[cold]
    fn grow(&mut self) {
        let length = (self.slots.len() * 2).max(FIRST);
        let old = std::mem::replace(&mut self.slots, vec![None; length]);
        for (handle, tracked) in old.into_iter().flatten() {
            let at = self.place(handle);
            self.slots[at] = Some((handle, tracked));
        }
    }

    /// Removes a handle, whatever is known of it.
    #[inline]
    pub fn forget(&mut self, handle: usize) {
        if self.used > 0 {
            let at = self.place(handle);
            self.remove_at(at);
        }
    }

    /// Notes that a request is complete: a persistent one is no longer active, another is gone.
    #[inline(always)]
    pub fn complete(&mut self, handle: usize, serial: u32) {
        if self.used == 0 {
            return;
        }
        let at = self.place(handle);
        match &mut self.slots[at] {
            Some((_, tracked)) if tracked.serial == serial && tracked.persistent => tracked.active = false,
            Some((_, tracked)) if tracked.serial == serial => self.remove_at(at),
            _ => {}
        }
    }

    /// As [`Table::complete`], of a handle that was found at `at` and not changed since. Returns what is known of it.
    #[inline(always)]
    pub fn complete_at(&mut self, at: usize, handle: usize) -> Option<Tracked> {
        match self.slots.get_mut(at)? {
            Some((key, tracked)) if *key == handle => {
                let known = *tracked;
                if known.persistent {
                    tracked.active = false
                } else {
                    self.remove_at(at)
                }
                Some(known)
            }
            _ => None,
        }
    }

    /// Notes that a persistent request is started, whose handle now is `now`.
    pub fn start(&mut self, handle: usize, now: usize) {
        if self.used == 0 {
            return;
        }
        let at = self.place(handle);
        let Some((_, tracked)) = &mut self.slots[at] else { return };
        tracked.active = true;
        if now != handle {
            let tracked = *tracked;
            self.remove_at(at);
            self.insert(now, tracked);
        }
    }

    /// Empties a slot.
    #[inline(always)]
    fn remove_at(&mut self, at: usize) {
        if self.slots[at].is_none() {
            return;
        }
        self.used -= 1;
        self.slots[at] = None;
        if self.slots[(at + 1) & (self.slots.len() - 1)].is_some() {
            self.close_up(at);
        }
    }

    /// Moves up the entries behind an empty slot that then are nearer to their home.
    #[cold]
    fn close_up(&mut self, mut hole: usize) {
        let mask = self.slots.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let Some((handle, _)) = &self.slots[at] else { break };
            let home = self.home(*handle);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.slots[hole] = self.slots[at].take();
                hole = at;
            }
        }
    }
}

/// A table that all threads share, locked only if several may be in MPI at a time.
pub struct Shared {
    table: UnsafeCell<Table>,
    locked: AtomicBool,
}

/// Whether `MPI_THREAD_MULTIPLE` was granted.
pub static MULTIPLE: AtomicBool = AtomicBool::new(false);
/// Requests of the program.
pub static REQUESTS: Shared = Shared::new();
/// Messages that were matched and wait for their receive.
pub static MESSAGES: Shared = Shared::new();

// SAFETY: below MPI_THREAD_MULTIPLE the program calls MPI from one thread at a time; else `lock` locks.
unsafe impl Sync for Shared {}

impl Shared {
    const fn new() -> Shared {
        let table = Table { slots: Vec::new(), used: 0, serial: 0 };
        Shared { table: UnsafeCell::new(table), locked: AtomicBool::new(false) }
    }

    /// Whether several threads may change it at a time.
    #[inline(always)]
    pub fn shared(&self) -> bool {
        MULTIPLE.load(Relaxed)
    }

    /// The table, for as long as the result lives; it must not be asked for again meanwhile.
    #[inline(always)]
    pub fn lock(&self) -> Locked<'_> {
        let shared = self.shared();
        if shared {
            while self.locked.swap(true, Acquire) {
                std::hint::spin_loop();
            }
        }
        Locked { of: self, shared }
    }
}

/// A table that this thread has for itself.
pub struct Locked<'a> {
    of: &'a Shared,
    shared: bool,
}

impl Deref for Locked<'_> {
    type Target = Table;

    #[inline(always)]
    fn deref(&self) -> &Table {
        // SAFETY: no other thread is in here: see the implementation of Sync.
        unsafe { &*self.of.table.get() }
    }
}

impl DerefMut for Locked<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Table {
        // SAFETY: as above.
        unsafe { &mut *self.of.table.get() }
    }
}

impl Drop for Locked<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.shared {
            self.of.locked.store(false, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn tracked(peer: i32, persistent: bool) -> Tracked {
        let comm = crate::comms::for_tests();
        Tracked { what: What::Recv, persistent, active: !persistent, peer, tag: 0, bytes: 0, comm, serial: 0 }
    }

    proptest! {
        #[test]
        fn as_a_map(steps in prop::collection::vec((0u8..5, 1usize..60, any::<i32>()), 1..400)) {
            let mut table = Table::default();
            let mut model: HashMap<usize, (i32, bool, bool)> = HashMap::new();
            for (step, handle, peer) in steps {
                // Handles of one home, as pointers to objects of one size may be.
                let key = handle << 32;
                match step {
                    0 | 1 => {
                        table.insert(key, tracked(peer, step == 1));
                        model.insert(key, (peer, step == 1, step == 0));
                    }
                    2 => {
                        table.forget(key);
                        model.remove(&key);
                    }
                    3 => {
                        let now = if peer % 3 == 0 { (peer.unsigned_abs() as usize % 59 + 1) << 32 } else { key };
                        table.start(key, now);
                        if let Some(known) = model.remove(&key) {
                            model.insert(now, (known.0, known.1, true));
                        }
                    }
                    _ => if let Some(known) = table.get(key).copied() {
                        table.complete(key, known.serial.wrapping_add(1));
                        prop_assert!(table.get(key).is_some(), "another entry was completed");
                        if handle % 2 == 0 {
                            table.complete(key, known.serial);
                        } else {
                            let at = table.find(key).map_or(0, |(at, _)| at);
                            prop_assert!(table.complete_at(at, key + 1).is_none(), "another entry was completed");
                            prop_assert_eq!(table.complete_at(at, key).map(|t| t.peer), Some(known.peer));
                        }
                        match model.get_mut(&key) {
                            Some(entry) if entry.1 => entry.2 = false,
                            _ => { model.remove(&key); }
                        }
                    },
                }
                for handle in 1..60 {
                    let known = table.get(handle << 32).map(|t| (t.peer, t.persistent, t.active));
                    prop_assert_eq!(known, model.get(&(handle << 32)).copied());
                }
                prop_assert_eq!(table.used, model.len());
            }
        }
    }

    #[test]
    fn it_grows() {
        let mut table = Table::default();
        for handle in 1..10_000 {
            table.insert(handle * 48, tracked(handle as i32, false));
        }
        for handle in 1..10_000 {
            assert_eq!(table.get(handle * 48).map(|t| t.peer), Some(handle as i32));
            table.forget(handle * 48);
        }
        assert_eq!(table.used, 0);
    }
}
