//! Memory that MPI lends to a program. It must be the program's own, so that an image has it: it is taken from the upper
//! half's range.
use crate::allocated::Allocated;
use crate::blocks::Blocks;
use crate::calls::lower;
use crate::dispatch::Call;
use crate::forward::{arguments, forward_with};
use crate::session::{Session, session};
use crate::shared::Shared;
use crate::words::read_handle;
use phasecast_abi::{Domain, Kind};
use phasecast_process::space;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// The greatest tag that a program is told of: what libraries on target machines are known to allow, as some take their
/// tags from the top. (Intel MPI 2021 has 524287 on some networks, MPICH 4.0 and 5.0 2^28 - 1 and 2^29 - 1, Open MPI
/// 2^31 - 1.)
pub const TAG_BOUND: i32 = (1 << 19) - 1;

/// Memory that was lent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lent {
    blocks: Blocks,
    /// Windows with memory of their own.
    pub allocated: Vec<Allocated>,
    /// Windows on memory that the ranks of a node share.
    pub shared: Vec<Shared>,
    /// The page with values of predefined attributes, and how much of it is used.
    values: Option<(usize, usize)>,
    /// Values that were copied: the library's address, ours.
    copies: Vec<(usize, usize)>,
    /// The buffer that is attached for buffered sends: address and size.
    pub attached: Option<(usize, usize)>,
}

impl Lent {
    fn allocate(&mut self, size: usize) -> Option<usize> {
        self.blocks.take(size, |length| space::lend(None, length).ok())
    }

    /// Forgets which values have been copied: the library has others now.
    pub fn forget_values(&mut self) {
        self.copies.clear();
    }

    /// Where the memory begins that came with a window.
    fn base(&self, window: usize) -> Option<usize> {
        self.shared(window).map(Shared::own_base).or_else(|| Some(self.allocated(window)?.whole().start))
    }

    /// The window on shared memory with this handle of the program.
    pub fn shared(&self, window: usize) -> Option<&Shared> {
        self.shared.iter().find(|shared| shared.window == window)
    }

    /// The window with memory of its own that has this handle of the program.
    pub fn allocated(&self, window: usize) -> Option<&Allocated> {
        self.allocated.iter().find(|allocated| allocated.window == window)
    }

    /// Takes back the memory that came with a window.
    fn free_window(&mut self, window: usize) {
        let shared = self.shared.iter().position(|shared| shared.window == window);
        let allocated = self.allocated.iter().position(|allocated| allocated.window == window);
        let shared = shared.map(|at| self.shared.swap_remove(at).whole());
        let allocated = allocated.map(|at| self.allocated.swap_remove(at).whole());
        for whole in [shared, allocated].into_iter().flatten() {
            space::take_back(whole.start, whole.len());
        }
    }

    fn free(&mut self, at: usize) -> bool {
        self.blocks.give_back(at, space::take_back)
    }
}

/// The memory that the library or other ranks map as well: the addresses of each piece, and of what this rank's image
/// holds of it.
pub fn shared_memory() -> Vec<(Range<usize>, Range<usize>)> {
    let s = session();
    let shared = s.memory.shared.iter().map(|shared| (shared.whole(), shared.own()));
    shared.chain(s.memory.allocated.iter().map(|allocated| (allocated.whole(), allocated.whole()))).collect()
}

/// The error of a call that wants more memory than there is.
pub fn no_memory(s: &Session) -> usize {
    s.values.above("MPI_ERR_NO_MEM").unwrap_or(34)
}

/// `MPI_Alloc_mem`.
///
/// # Safety
/// A call of the gate.
pub unsafe fn allocate(call: &mut Call) -> usize {
    let mut s = session();
    let Some(at) = s.memory.allocate(call.arg(0)) else { return no_memory(&s) };
    // SAFETY: the caller's: where the address goes.
    unsafe { *(call.arg(2) as *mut usize) = at };
    0
}

/// `MPI_Free_mem`.
///
/// # Safety
/// A call of the gate.
pub unsafe fn free(call: &mut Call) -> usize {
    let mut s = session();
    if s.memory.free(call.arg(0)) { 0 } else { s.values.above("MPI_ERR_BASE").unwrap_or(46) }
}

/// `MPI_Win_allocate` and `MPI_Win_allocate_shared`.
///
/// # Safety
/// A call of the gate.
pub unsafe fn window(call: &mut Call) -> usize {
    // SAFETY: the caller's.
    if let Some(result) = unsafe { window_of_one(call) } {
        return result;
    }
    let shape = call.shape;
    let args = arguments(call, shape.lanes.len());
    // SAFETY: the caller's.
    let result = unsafe { crate::route::again(call.index, shape, &args) };
    if result as i32 == 0 {
        session().event();
    }
    result
}

/// A window for one rank alone with memory that comes with it, where the library makes none on memory of ours (Open MPI
/// 4.1): it is on the library's own, and the program cannot be saved any more. None for others.
///
/// # Safety
/// A call of the gate of `MPI_Win_allocate` or `MPI_Win_allocate_shared`.
unsafe fn window_of_one(call: &mut Call) -> Option<usize> {
    let mut s = session();
    let (library, own, comm) = (s.library, s.private_self, s.down_handle(Kind::Communicator, call.arg(3)));
    drop(s);
    let (mut size, mut window) = (0i32, 0usize);
    lower!(library, MPI_Comm_size(comm, &raw mut size));
    if size != 1 {
        return None;
    }
    let info = library.constant("MPI_INFO_NULL").unwrap_or(0);
    if lower!(library, MPI_Win_create(0usize, 0usize, 1usize, info, own, &raw mut window)) == 0 {
        lower!(library, MPI_Win_free(&raw mut window));
        return None;
    }
    // SAFETY: the caller's.
    let result = unsafe { crate::forward::forward(call) };
    if result as i32 == 0 {
        let mut s = session();
        s.unsaveable.push(format!("{} makes a window for one rank alone only on memory of its own", library.name));
        s.event();
    }
    Some(result)
}

/// `MPI_Win_free`, with the memory that came with the window.
///
/// # Safety
/// A call of the gate.
pub unsafe fn free_window(call: &mut Call) -> usize {
    let s = session();
    let bytes = crate::words::handle_bytes(s.values.upper, Kind::Window);
    // SAFETY: the caller's: a window.
    let handle = unsafe { read_handle(call.arg(0), bytes) };
    drop(s);
    // SAFETY: the caller's.
    let result = unsafe { crate::forward::forward(call) };
    if result as i32 == 0 {
        let mut s = session();
        s.memory.free_window(handle);
        s.one_sided.freed(handle);
        s.event();
    }
    result
}

/// `MPI_Buffer_attach` and `MPI_Buffer_detach`.
///
/// # Safety
/// A call of the gate.
pub unsafe fn buffer(call: &mut Call) -> usize {
    // SAFETY: the caller's.
    let result = unsafe { crate::forward::forward(call) };
    if result as i32 == 0 {
        let mut s = session();
        let name = call.shape.procedure.name;
        if name.contains("attach") {
            let size = if name.ends_with("_c") { call.arg(1) } else { call.arg(1) as u32 as usize };
            s.memory.attached = Some((call.arg(0), size));
        } else if let Some((at, _)) = s.memory.attached.take() {
            // It may be the constant for memory that the library finds by itself.
            // SAFETY: the caller's: where the address goes.
            unsafe { *(call.arg(0) as *mut usize) = at };
        }
    }
    result
}

/// Asks for an attribute: values of predefined ones lie in the library's memory, the program gets a copy.
///
/// # Safety
/// A call of the gate.
pub unsafe fn attribute(call: &mut Call) -> usize {
    let s = session();
    let shape = call.shape;
    let args = arguments(call, 4);
    // The value of this one is the address that the program gave, or none.
    let address = s.values.above("MPI_WIN_BASE") == Some(args[1] as u32 as usize);
    drop(s);
    // SAFETY: the caller's.
    let result = unsafe { forward_with(call.index, shape, &args, |_| {}) };
    let mut s = session();
    // SAFETY: the caller's: the flag and the value.
    unsafe {
        let found = result as i32 == 0 && *(args[3] as *const i32) != 0;
        let value = args[2] as *mut usize;
        if found
            && address
            && let Some(base) = s.memory.base(args[0] & s.values.upper.layout().handle_mask as usize)
        {
            // MPICH 4.0 rounds it down to a multiple of 8.
            *value = base;
        }
        if !found || address || s.objects.decode(Kind::Keyval, args[1]).is_some() || (s.hooks.within)(*value) {
            return result;
        }
        let object = args[..2].try_into().expect("an object and a key");
        if let Some((_, copy)) = s.memory.copies.iter().find(|(from, _)| from == &*value) {
            *(*copy as *mut u64) = s.attribute_up(object, (*value as *const u64).read_unaligned());
            *value = *copy;
            return result;
        }
        let (page, used) = match s.memory.values {
            Some((page, used)) if used + 8 <= PAGE => (page, used),
            _ => match s.memory.allocate(PAGE) {
                Some(page) => (page, 0),
                None => return result,
            },
        };
        let copy = (page + used) as *mut u64;
        copy.write(s.attribute_up(object, (*value as *const u64).read_unaligned()));
        let from = std::mem::replace(&mut *value, copy as usize);
        s.memory.copies.push((from, copy as usize));
        s.memory.values = Some((page, used + 8));
    }
    result
}

impl Session {
    /// The value of a predefined attribute in the program's form; of an object and its key.
    fn attribute_up(&self, [object, key]: [usize; 2], value: u64) -> u64 {
        let named = |name| self.values.above(name) == Some(key as u32 as usize);
        let number = value as u32 as i32;
        let up = |domain| self.values.up(domain, number.into(), self.library) as i32;
        let window = object & self.values.upper.layout().handle_mask as usize;
        let allocated = self.memory.allocated(window);
        if let Some(allocated) = allocated.filter(|_| named("MPI_WIN_SIZE")) {
            return allocated.size as u64;
        }
        let above = if named("MPI_HOST") || named("MPI_IO") {
            up(Domain::Rank)
        } else if named("MPI_TAG_UB") {
            number.min(TAG_BOUND)
        } else if named("MPI_WIN_CREATE_FLAVOR") {
            // Windows with memory may be made on memory of ours: to the library, the program has made it.
            let flavor = match (self.memory.shared(window), allocated) {
                (Some(_), _) => self.values.above("MPI_WIN_FLAVOR_SHARED"),
                (None, Some(_)) => self.values.above("MPI_WIN_FLAVOR_ALLOCATE"),
                (None, None) => None,
            };
            flavor.map_or_else(|| up(Domain::WindowFlavor), |flavor| flavor as i32)
        } else if let Some(allocated) = allocated.filter(|_| named("MPI_WIN_DISP_UNIT")) {
            allocated.unit()
        } else if named("MPI_WIN_MODEL") {
            up(Domain::WindowModel)
        } else if named("MPI_LASTUSEDCODE") && !(self.values.same() && self.errors.is_empty()) {
            let last = if self.values.same() { number } else { 0 };
            last.max(self.values.above("MPI_ERR_LASTCODE").unwrap_or(0) as i32).max(self.errors.last())
        } else {
            return value;
        };
        u64::from(above as u32)
    }
}
