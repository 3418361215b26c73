//! What the fence costs: a system call that it holds up takes a signal more, some microseconds, and what the handler does beside
//! the call. Times that are measured are without these.
use crate::gate;
use crate::space::{PAGE, RANGE};
use crate::sys::{CALLS, syscall};
use std::arch::x86_64::_rdtsc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Calls of the program's main thread that were held up.
static HELD: AtomicU64 = AtomicU64::new(0);
/// Cycles that their handler took beside the calls themselves.
static CYCLES: AtomicU64 = AtomicU64::new(0);

/// So many cycles the handler takes at most beside a call: in a longer one the program waits.
const MOST: u64 = 60_000;

/// The beginning of the handler.
pub(crate) struct Begun {
    cycles: u64,
    calls: u32,
}

impl Begun {
    #[inline(always)]
    pub(crate) fn now() -> Begun {
        // SAFETY: reads a counter.
        Begun { cycles: unsafe { _rdtsc() }, calls: CALLS.load(Relaxed) }
    }

    /// The handler has carried out a call. Of its own calls one is taken for that of the program, and all for equally long.
    #[inline(always)]
    pub(crate) fn ends(self) {
        if gate::thread_pointer() != gate::main_upper() {
            return;
        }
        // SAFETY: reads a counter.
        let took = unsafe { _rdtsc() }.saturating_sub(self.cycles);
        let calls = u64::from(CALLS.load(Relaxed).wrapping_sub(self.calls)).max(1);
        // One thread alone counts.
        HELD.store(HELD.load(Relaxed) + 1, Relaxed);
        CYCLES.store(CYCLES.load(Relaxed) + (took - took / calls).min(MOST), Relaxed);
    }
}

/// What was held up of the program's main thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    calls: u64,
    /// Those of the handler beside the calls.
    cycles: u64,
}

impl Held {
    /// So far.
    pub fn so_far() -> Held {
        Held { calls: HELD.load(Relaxed), cycles: CYCLES.load(Relaxed) }
    }
}

/// What it costs to hold up calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// The signal, for each, in ns.
    signal_ns: f64,
    /// A cycle in ns.
    cycle_ns: f64,
}

impl Cost {
    /// What it has cost from one moment to another, in ns.
    pub fn between(&self, from: Held, to: Held) -> u64 {
        let calls = (to.calls - from.calls) as f64 * self.signal_ns;
        (calls + (to.cycles - from.cycles) as f64 * self.cycle_ns) as u64
    }
}

/// Finds out what it costs now, by calls that the fence holds up, in a millisecond. To be asked behind it, while nothing of
/// the upper half runs; none where it cannot be found out.
pub fn measure() -> Option<Cost> {
    const ROUNDS: usize = 16;
    const CALLS: u32 = 16;
    // The upper half's memory grows from both ends.
    const PLACE: usize = usize::midpoint(RANGE.start, RANGE.end);
    // mov eax, SYS_getpid; syscall; ret
    const CODE: [u8; 8] = [0xb8, libc::SYS_getpid as u8, 0, 0, 0, 0x0f, 0x05, 0xc3];
    let timed = |call: &dyn Fn() -> isize| {
        let round = |_| {
            let begun = Instant::now();
            for _ in 0..CALLS {
                std::hint::black_box(call());
            }
            begun.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
        };
        let mut rounds: Vec<f64> = (0..ROUNDS).map(round).collect();
        rounds.sort_by(f64::total_cmp);
        rounds[ROUNDS / 2]
    };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: a page of our own where the upper half will have its memory, with code that asks for a number and returns.
    unsafe {
        let page = libc::mmap(PLACE as *mut _, PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if page == libc::MAP_FAILED {
            return None;
        }
        page.cast::<[u8; CODE.len()]>().write(CODE);
        let ready = page as usize == PLACE && libc::mprotect(page, PAGE, libc::PROT_READ | libc::PROT_EXEC) == 0;
        let (begun, cycles) = (Instant::now(), _rdtsc());
        let held_up = ready.then(|| {
            let call: extern "C" fn() -> isize = std::mem::transmute(page);
            timed(&|| call())
        });
        let by_itself = timed(&|| syscall!(libc::SYS_getpid));
        let cycle_ns = begun.elapsed().as_secs_f64() * 1e9 / (_rdtsc() - cycles).max(1) as f64;
        libc::munmap(page, PAGE);
        Some(Cost { signal_ns: (held_up? - by_itself).max(0.0), cycle_ns })
    }
}
