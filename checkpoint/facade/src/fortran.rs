//! Fortran's entries to MPI whose work an MPI library does inside itself and not by its C procedures: attribute keys, attributes,
//! error handlers. The program's own library is idle, so these entries are the facade's, and call its C procedures. The
//! entries themselves are generated from the table of procedures; here is what they share.
//!
//! An attribute that Fortran sets is a number. For C it is a pointer to that number, as the standard says: to a cell.
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Bytes of a cell: room for a number, or for what is known of a key.
const CELL: usize = 64;
/// Bytes of a chunk of cells.
const CHUNK: usize = 1 << 16;
/// The most chunks.
const CHUNKS: usize = 1024;

/// Cells lie in memory that MPI lends, which an image holds.
pub(crate) struct Cells {
    busy: AtomicBool,
    free: AtomicPtr<u8>,
    chunks: [AtomicUsize; CHUNKS],
    used: AtomicUsize,
}

pub(crate) static CELLS: Cells = Cells {
    busy: AtomicBool::new(false),
    free: AtomicPtr::new(null_mut()),
    chunks: [const { AtomicUsize::new(0) }; CHUNKS],
    used: AtomicUsize::new(0),
};

impl Cells {
    fn locked<T>(&self, work: impl FnOnce() -> T) -> T {
        while self.busy.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        let result = work();
        self.busy.store(false, Ordering::Release);
        result
    }

    /// A cell; null if there is no memory.
    pub(crate) fn take(&self) -> *mut u8 {
        self.locked(|| {
            let first = self.free.load(Ordering::Relaxed);
            if !first.is_null() {
                // SAFETY: a free cell begins with the address of the next.
                self.free.store(unsafe { first.cast::<*mut u8>().read() }, Ordering::Relaxed);
                return first;
            }
            let Some(chunk) = self.chunks.get(self.used.load(Ordering::Relaxed)) else { return null_mut() };
            let mut at = 0usize;
            // SAFETY: the facade's procedure; the info is not looked at.
            let lent = unsafe {
                let lend: unsafe extern "C" fn(usize, usize, *mut usize) -> i32 =
                    core::mem::transmute(crate::symbols::MPI_Alloc_mem as unsafe extern "C" fn());
                lend(CHUNK, 0, &raw mut at)
            };
            if lent != 0 || at == 0 {
                return null_mut();
            }
            chunk.store(at, Ordering::Relaxed);
            self.used.fetch_add(1, Ordering::Relaxed);
            for cell in (1..CHUNK / CELL).map(|i| (at + i * CELL) as *mut u8) {
                // SAFETY: within the new chunk.
                unsafe { cell.cast::<*mut u8>().write(self.free.load(Ordering::Relaxed)) };
                self.free.store(cell, Ordering::Relaxed);
            }
            at as *mut u8
        })
    }

    fn holds(&self, address: usize) -> bool {
        let chunks = self.chunks.iter().take(self.used.load(Ordering::Relaxed));
        address.is_multiple_of(CELL)
            && chunks.into_iter().any(|c| address.wrapping_sub(c.load(Ordering::Relaxed)) < CHUNK)
    }

    pub(crate) fn give_back(&self, address: usize) {
        if self.holds(address) {
            self.locked(|| {
                // SAFETY: a cell that nobody uses any more.
                unsafe { (address as *mut *mut u8).write(self.free.load(Ordering::Relaxed)) };
                self.free.store(address as *mut u8, Ordering::Relaxed);
            });
        }
    }
}

/// Fills the variables that MPICH's library for C fills for that of Fortran in `MPI_Init`, which is not called there.
pub(crate) fn initialise() {
    for (of_c, of_fortran) in crate::entries::ADDRESSES {
        let (from, to) = (phasecast_preload::anywhere(of_c), phasecast_preload::anywhere(of_fortran));
        if !from.is_null() && !to.is_null() {
            // SAFETY: variables of MPICH's libraries, each an address.
            unsafe { to.cast::<usize>().write(from.cast::<usize>().read()) };
        }
    }
}

/// `MPI_X_c2f` or `MPI_X_f2c`.
pub(crate) type Convert = unsafe extern "C" fn();

/// The handle of C for one of Fortran.
///
/// # Safety
/// `by` is the facade's `MPI_X_f2c`.
pub(crate) unsafe fn to_c(by: Convert, handle: i32) -> usize {
    // SAFETY: the caller's.
    unsafe { core::mem::transmute::<Convert, unsafe extern "C" fn(i32) -> usize>(by)(handle) }
}

/// The handle of Fortran for one of C.
///
/// # Safety
/// `by` is the facade's `MPI_X_c2f`.
pub(crate) unsafe fn to_fortran(by: Convert, handle: usize) -> i32 {
    // SAFETY: the caller's.
    unsafe { core::mem::transmute::<Convert, unsafe extern "C" fn(usize) -> i32>(by)(handle) }
}

/// Calls a C procedure of the facade.
///
/// # Safety
/// It takes these arguments, which are at most eleven.
pub(crate) unsafe fn call(procedure: unsafe extern "C" fn(), arguments: &[usize]) -> i32 {
    type Word = usize;
    type All = unsafe extern "C" fn(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word) -> i32;
    let a: [Word; 11] = core::array::from_fn(|i| arguments.get(i).copied().unwrap_or(0));
    // SAFETY: the caller's; arguments beyond those of the procedure are not looked at.
    unsafe {
        let procedure = core::mem::transmute::<unsafe extern "C" fn(), All>(procedure);
        procedure(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10])
    }
}

/// Writes a number of Fortran: an address, or, for the procedures of MPI 1, an integer.
///
/// # Safety
/// There is room.
unsafe fn write(at: *mut u8, short: bool, value: i64) {
    // SAFETY: the caller's.
    unsafe {
        if short { at.cast::<i32>().write_unaligned(value as i32) } else { at.cast::<i64>().write_unaligned(value) }
    }
}

/// # Safety
/// It stands there.
unsafe fn read(at: *const u8, short: bool) -> i64 {
    // SAFETY: the caller's.
    unsafe { if short { at.cast::<i32>().read_unaligned().into() } else { at.cast::<i64>().read_unaligned() } }
}

/// What C has as an attribute for Fortran's number at `at`: the address of a cell with it.
///
/// # Safety
/// A number stands there.
pub(crate) unsafe fn value_in(at: *const u8, short: bool) -> usize {
    // SAFETY: the caller's.
    cell_with(unsafe { read(at, short) })
}

fn cell_with(value: i64) -> usize {
    let cell = CELLS.take();
    if !cell.is_null() {
        // SAFETY: a cell of ours.
        unsafe { cell.cast::<i64>().write(value) };
    }
    cell as usize
}

/// Fortran's number for an attribute of C.
fn number_of(value: usize) -> i64 {
    // SAFETY: a cell holds a number.
    if CELLS.holds(value) { unsafe { (value as *const i64).read() } } else { value as i64 }
}

/// Predefined attributes: what C has of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Predefined {
    /// A pointer to an int.
    Int,
    /// A pointer to an address.
    Address,
    /// The value itself.
    Itself,
}

/// Hands an attribute out to Fortran.
///
/// # Safety
/// `at` is where its value goes; `value` is what C has.
pub(crate) unsafe fn value_out(at: *mut u8, short: bool, value: usize, predefined: Option<Predefined>) {
    // SAFETY: the caller's; predefined attributes are pointers to what they are.
    unsafe {
        let number = match predefined {
            Some(Predefined::Int) => (value as *const i32).read_unaligned().into(),
            Some(Predefined::Address) => (value as *const i64).read_unaligned(),
            Some(Predefined::Itself) => value as i64,
            None => number_of(value),
        };
        write(at, short, number);
    }
}

/// A key that Fortran has made; it lies in a cell.
#[repr(C)]
pub(crate) struct Key {
    copy: usize,
    delete: usize,
    extra: i64,
    c2f: Convert,
    short: bool,
}

/// What C has as the extra state of a key that Fortran makes; null if there is no memory.
///
/// # Safety
/// `extra` is Fortran's extra state, the functions are Fortran's, `c2f` is for what has the attributes.
pub(crate) unsafe fn key(copy: usize, delete: usize, extra: *const u8, c2f: Convert, short: bool) -> usize {
    let cell = CELLS.take();
    if !cell.is_null() {
        // SAFETY: the caller's; the cell is large enough.
        unsafe { cell.cast::<Key>().write(Key { copy, delete, extra: read(extra, short), c2f, short }) };
    }
    cell as usize
}

/// The copy function of keys of Fortran.
///
/// # Safety
/// Called by MPI.
pub(crate) unsafe extern "C" fn copy(
    object: usize,
    key: i32,
    extra: *mut Key,
    value: usize,
    new: *mut usize,
    flag: *mut i32,
) -> i32 {
    type Copy = unsafe extern "C" fn(*mut i32, *mut i32, *mut u8, *mut u8, *mut u8, *mut i32, *mut i32);
    // SAFETY: the cell that `key` has made; the program's function with what the standard says.
    unsafe {
        let (mut object, mut key, mut error, mut truth) = (to_fortran((*extra).c2f, object), key, 0i32, 0i32);
        let (mut from, mut to) = (number_of(value), 0i64);
        let function: Copy = core::mem::transmute((*extra).copy);
        let (state, from) = ((&raw mut (*extra).extra).cast(), (&raw mut from).cast());
        function(&raw mut object, &raw mut key, state, from, (&raw mut to).cast(), &raw mut truth, &raw mut error);
        *flag = i32::from(truth != 0);
        if truth != 0 && error == 0 {
            *new = cell_with(read((&raw const to).cast(), (*extra).short));
        }
        error
    }
}

/// The delete function of keys of Fortran.
///
/// # Safety
/// Called by MPI.
pub(crate) unsafe extern "C" fn delete(object: usize, key: i32, value: usize, extra: *mut Key) -> i32 {
    type Delete = unsafe extern "C" fn(*mut i32, *mut i32, *mut u8, *mut u8, *mut i32);
    // SAFETY: as for `copy`.
    unsafe {
        let (mut object, mut key, mut error, mut from) =
            (to_fortran((*extra).c2f, object), key, 0i32, number_of(value));
        let function: Delete = core::mem::transmute((*extra).delete);
        let (from, state) = ((&raw mut from).cast(), (&raw mut (*extra).extra).cast());
        function(&raw mut object, &raw mut key, from, state, &raw mut error);
        if error == 0 {
            CELLS.give_back(value);
        }
        error
    }
}
