//! Functions of the program that the library calls: reduction operations, copying and deleting attributes, error
//! handlers, generalized requests. They run with the upper half's thread pointer, on handles in the program's form; an
//! exception that leaves one goes on where the program has called MPI.
//!
//! A callback that is not told whose it is (an operation, an error handler) gets a few instructions of its own that say so.
use crate::closures::{called, made};
use crate::forward::forward_with;
use crate::session::session;
use crate::upper::{self, Upper};
use crate::words::{handle_bytes, read_handle, write_handle};
use phasecast_abi::{Abi, Kind, Symbols};
use phasecast_process::gate::{Frame, call_upper};
use std::arch::{asm, naked_asm};
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};

thread_local! {
    /// The frame of the call that the calling thread of the upper half is in.
    pub static FRAME: Cell<*mut Frame> = const { Cell::new(std::ptr::null_mut()) };
    /// The stack pointer with which the calling thread has gone into a function of the program that MPI called, and in
    /// which of the [`LIVES`]; zero outside of one.
    static CALLED: Cell<(usize, u32)> = const { Cell::new((0, 0)) };
    /// A code of the library, and what the last error handler has made of it, if that counts.
    static MADE_OF: Cell<Option<(i32, i32)>> = const { Cell::new(None) };
}

/// What an error handler of a program of MPICH's interface has made of the library's code that this call returns.
pub fn made_of(code: i32) -> Option<i32> {
    MADE_OF.take().filter(|&(of, _)| of == code).map(|(_, made)| made)
}

/// Threads that are in a function of the program that MPI called.
static CALLBACKS: AtomicU32 = AtomicU32::new(0);

/// How often the program's threads have been ended here, wherever they were.
static LIVES: AtomicU32 = AtomicU32::new(0);

/// The program's threads have been ended: none is in a function that MPI called.
pub fn forget() {
    LIVES.fetch_add(1, Relaxed);
    CALLBACKS.store(0, Relaxed);
}

/// Whether the calling thread is in a function of the program that MPI called: what it calls there are no events. One
/// that was left by `longjmp` is seen to be over by its stack being gone.
#[inline(always)]
pub fn inside() -> bool {
    let (called, life) = CALLED.get();
    called != 0 && still_inside(called, life)
}

#[cold]
fn still_inside(called: usize, life: u32) -> bool {
    let same = life == LIVES.load(Relaxed);
    let inside = same && stack_pointer() < called;
    if !inside {
        CALLED.set((0, 0));
        CALLBACKS.fetch_sub(u32::from(same), Relaxed);
    }
    inside
}

/// Whether any thread is in one: the call that it belongs to is not complete.
pub fn any_inside() -> bool {
    inside() || CALLBACKS.load(Relaxed) > 0
}

#[inline(always)]
fn stack_pointer() -> usize {
    let here: usize;
    // SAFETY: reads the stack pointer.
    unsafe { asm!("mov {}, rsp", out(reg) here, options(nomem, nostack, preserves_flags)) };
    here
}

/// Objects are made again or freed for the sake of an image: the program must not hear of it.
pub static QUIET: AtomicBool = AtomicBool::new(false);

/// Where the facade's function is that calls functions of the program.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Takes note of where the program has the facade.
pub fn prepare(program: &Upper) {
    CALLS.store(program.address(upper::CALLS).unwrap_or(0), Relaxed);
}

/// Calls a function of the program.
///
/// # Safety
/// It takes these arguments; the thread is in a call of the gate.
pub unsafe fn upper(function: usize, args: [usize; 6]) -> usize {
    let frame = FRAME.get();
    let outermost = !inside();
    if outermost {
        CALLED.set((stack_pointer(), LIVES.load(Relaxed)));
        CALLBACKS.fetch_add(1, Relaxed);
    }
    // SAFETY: the caller's; this thread has come from the upper half with this thread pointer.
    let result = unsafe {
        match CALLS.load(Relaxed) {
            0 => call_upper((*frame).fs, function, &args),
            calls => call_upper((*frame).fs, calls, &[frame as usize, function, &raw const args as usize, 0, 0, 0]),
        }
    };
    // The function may have called MPI.
    FRAME.set(frame);
    if outermost {
        CALLED.set((0, 0));
        CALLBACKS.fetch_sub(1, Relaxed);
    }
    result
}

/// Code of our own that loads r10 with a number and jumps to `entry`. It is never freed.
fn thunk(number: usize, entry: unsafe extern "C" fn()) -> usize {
    static PAGE: Mutex<(usize, usize)> = Mutex::new((0, 4096));
    const SIZE: usize = 32;
    let mut page = PAGE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // SAFETY: pages that only this function writes to, a thunk at a time, before its address is known to anybody; those
    // beside it may run.
    unsafe {
        if page.1 + SIZE > 4096 {
            let new = libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert!(new != libc::MAP_FAILED, "there is no memory for a function of the program that MPI calls");
            *page = (new as usize, 0);
        }
        let at = page.0 + page.1;
        page.1 += SIZE;
        let code = at as *mut u8;
        // mov r10, number; mov r11, entry; jmp r11
        code.copy_from_nonoverlapping([0x49, 0xba].as_ptr(), 2);
        code.add(2).cast::<usize>().write_unaligned(number);
        code.add(10).copy_from_nonoverlapping([0x49, 0xbb].as_ptr(), 2);
        code.add(12).cast::<usize>().write_unaligned(entry as usize);
        code.add(20).copy_from_nonoverlapping([0x41, 0xff, 0xe3].as_ptr(), 3);
        at
    }
}

/// An operation is called: its number goes into the fifth argument.
#[unsafe(naked)]
unsafe extern "C" fn operation_entry() {
    naked_asm!("mov r8, r10", "jmp {call}", call = sym operation)
}

/// An operation of the program.
struct Operation {
    function: AtomicUsize,
    /// Number of its object, once it is made.
    number: AtomicU32,
    /// The program's function takes a large count, and the library knows int counts only.
    widen: bool,
}

/// # Safety
/// Called by the library with the address of an [`Operation`].
unsafe extern "C" fn operation(input: usize, output: usize, length: usize, datatype: usize, which: usize) {
    // SAFETY: leaked by `create_operation`.
    let operation = unsafe { &*(which as *const Operation) };
    let mut above = 0usize;
    {
        let mut s = session();
        // SAFETY: the library's: the datatype.
        let below = unsafe { read_handle(datatype, s.values.lower.layout().handle_bytes) };
        let handle = s.callback_handle(Kind::Datatype, below);
        let (at, bytes) = (&raw mut above as usize, s.values.upper.layout().handle_bytes);
        // SAFETY: there is room.
        unsafe {
            if s.objects.is_marked(Kind::Operation, operation.number.load(Relaxed)) {
                write_handle(at, 4, crate::convert::number_of(&s, Kind::Datatype, handle) as u32 as usize);
            } else {
                write_handle(at, bytes, handle);
            }
        }
    }
    // SAFETY: the program's operation with what the standard says.
    unsafe {
        let wide = if operation.widen { i64::from(*(length as *const i32)) } else { 0 };
        let length = if operation.widen { &raw const wide as usize } else { length };
        let (function, closure) = called(&operation.function);
        upper(function, [input, output, length, &raw mut above as usize, closure, 0]);
    }
}

/// `MPI_Op_create`.
///
/// # Safety
/// As for [`forward_with`].
pub unsafe fn create_operation(index: usize, shape: &'static crate::shape::Shape, args: &[usize; 14]) -> usize {
    let widen = shape.procedure.name == "MPI_Op_create_c" && session().library.function(index).is_none();
    let index = if widen { crate::calls::index("MPI_Op_create") } else { index };
    let operation = Operation { function: AtomicUsize::new(args[0]), number: AtomicU32::new(u32::MAX), widen };
    let operation: &'static Operation = Box::leak(Box::new(operation));
    let entry = thunk(std::ptr::from_ref(operation) as usize, operation_entry);
    // SAFETY: the caller's.
    let result = unsafe { forward_with(index, shape, args, |below| below[0] = entry) };
    // SAFETY: the caller's: the new handle.
    if let Some(number) = unsafe { made(result, Kind::Operation, args[2], vec![&operation.function]) } {
        operation.number.store(number, Relaxed);
    }
    result
}

/// An error handler is called: its number goes into the third argument.
#[unsafe(naked)]
unsafe extern "C" fn handler_entry() {
    naked_asm!("mov rdx, r10", "jmp {call}", call = sym handler)
}

/// What an error handler's closure is told of the kind of object: its place here, as MPICH's library for C++ counts.
const OF_HANDLERS: [Kind; 4] = [Kind::Communicator, Kind::File, Kind::Window, Kind::Session];

/// Kinds of objects that have error handlers, and the function of the program.
struct Handler(Kind, AtomicUsize);

/// # Safety
/// Called by the library with the address of a [`Handler`].
unsafe extern "C" fn handler(object: usize, code: usize, which: usize) {
    // SAFETY: leaked by `create_handler`.
    let Handler(kind, function) = unsafe { &*(which as *const Handler) };
    let mut above = 0usize;
    let (abi, told, mut error);
    {
        let mut s = session();
        // SAFETY: the library's: the object and the code.
        unsafe {
            let below = read_handle(object, handle_bytes(s.values.lower, *kind));
            let handle = s.callback_handle(*kind, below);
            write_handle(&raw mut above as usize, handle_bytes(s.values.upper, *kind), handle);
            told = s.up_error(*(code as *const i32) as u32 as usize) as i32;
            (abi, error) = (s.values.upper, told);
        }
    }
    // SAFETY: the program's handler with what the standard says.
    unsafe {
        let (function, closure) = called(function);
        let kind = OF_HANDLERS.iter().position(|of| of == kind).unwrap_or(0);
        upper(function, [&raw mut above as usize, &raw mut error as usize, closure, kind, 0, 0]);
        // MPICH returns from its call what the handler makes of the code, and Open MPI does not.
        let made = (abi == Abi::Mpich && error != told).then_some((*(code as *const i32), error));
        MADE_OF.set(made);
        if made.is_some() {
            *(code as *mut i32) = code_of(error as u32 as usize);
        }
    }
}

/// `MPI_Comm_create_errhandler` and its kin.
///
/// # Safety
/// As for [`forward_with`].
pub unsafe fn create_handler(index: usize, shape: &'static crate::shape::Shape, args: &[usize; 14]) -> usize {
    let name = shape.procedure.name;
    let kind = match name {
        _ if name.contains("Win") => Kind::Window,
        _ if name.contains("File") => Kind::File,
        _ if name.contains("Session") => Kind::Session,
        _ => Kind::Communicator,
    };
    let which: &'static Handler = Box::leak(Box::new(Handler(kind, AtomicUsize::new(args[0]))));
    let entry = thunk(std::ptr::from_ref(which) as usize, handler_entry);
    // SAFETY: the caller's.
    unsafe {
        let result = forward_with(index, shape, args, |below| below[0] = entry);
        made(result, Kind::Errhandler, args[1], vec![&which.1]);
        result
    }
}

/// The handler that has exceptions of C++ thrown: the program's library for C++ throws them, by the code that is returned.
pub unsafe extern "C" fn nothing(_object: usize, _code: usize) {}

/// The functions of an attribute key.
struct Keyval {
    kind: Kind,
    copy: AtomicUsize,
    delete: AtomicUsize,
    extra: usize,
}

/// What a function of the program has returned, as the library's error code.
fn code_of(returned: usize) -> i32 {
    if returned as i32 == 0 { 0 } else { session().down_error(returned as i32) }
}

/// Constants that stand for functions: none, and the one that hands the value on.
const NO_FUNCTION: usize = 0;
pub const HAND_ON: usize = 1;

/// # Safety
/// Called by the library with the address of a [`Keyval`].
unsafe extern "C" fn copy_entry(object: usize, key: usize, which: usize, value: usize, new: usize, flag: usize) -> i32 {
    // SAFETY: leaked by `create_keyval`; the library's places for the new value and the flag.
    unsafe {
        let keyval = &*(which as *const Keyval);
        let (copy, closure) = called(&keyval.copy);
        match copy {
            _ if QUIET.load(Relaxed) => {
                *(flag as *mut i32) = 0;
                0
            }
            NO_FUNCTION => {
                *(flag as *mut i32) = 0;
                0
            }
            HAND_ON => {
                *(flag as *mut i32) = 1;
                *(new as *mut usize) = value;
                0
            }
            function => {
                let (object, key) = {
                    let mut s = session();
                    (s.callback_handle(keyval.kind, object), s.callback_handle(Kind::Keyval, key & 0xffff_ffff))
                };
                let extra = if closure == 0 { keyval.extra } else { closure };
                code_of(upper(function, [object, key, extra, value, new, flag]))
            }
        }
    }
}

/// # Safety
/// As for [`copy_entry`].
unsafe extern "C" fn delete_entry(object: usize, key: usize, value: usize, which: usize) -> i32 {
    // SAFETY: as for `copy_entry`.
    unsafe {
        let keyval = &*(which as *const Keyval);
        if QUIET.load(Relaxed) {
            return 0;
        }
        session().attribute_deleted(keyval.kind, object, value);
        let (delete, closure) = called(&keyval.delete);
        if delete <= HAND_ON {
            return 0;
        }
        let (object, key) = {
            let mut s = session();
            (s.callback_handle(keyval.kind, object), s.callback_handle(Kind::Keyval, key & 0xffff_ffff))
        };
        let extra = if closure == 0 { keyval.extra } else { closure };
        code_of(upper(delete, [object, key, value, extra, 0, 0]))
    }
}

/// `MPI_Comm_create_keyval` and its kin.
///
/// # Safety
/// As for [`forward_with`].
pub unsafe fn create_keyval(index: usize, shape: &'static crate::shape::Shape, args: &[usize; 14]) -> usize {
    let name = shape.procedure.name;
    let kind = match name {
        _ if name.contains("Type") => Kind::Datatype,
        _ if name.contains("Win") => Kind::Window,
        _ => Kind::Communicator,
    };
    let [copy, delete] = [args[0], args[1]].map(AtomicUsize::new);
    let keyval: &'static Keyval = Box::leak(Box::new(Keyval { kind, copy, delete, extra: args[3] }));
    // SAFETY: the caller's.
    unsafe {
        let result = forward_with(index, shape, args, |below| {
            below[0] = copy_entry as *const () as usize;
            below[1] = delete_entry as *const () as usize;
            below[3] = std::ptr::from_ref(keyval) as usize;
        });
        made(result, Kind::Keyval, args[2], vec![&keyval.copy, &keyval.delete]);
        result
    }
}

impl crate::session::Session {
    /// The program's form of a handle that a callback is given.
    fn callback_handle(&mut self, kind: Kind, below: usize) -> usize {
        if let Some(number) = self.objects.by_lower_still(kind, below) {
            return self.objects.encode(kind, number);
        }
        if kind == Kind::Keyval {
            return below;
        }
        self.values.handle_up(kind, below).unwrap_or(below)
    }
}
