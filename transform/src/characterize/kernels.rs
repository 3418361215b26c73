//! Computation: five small kernels, each bound by something else, timed with all ranks computing at once, as those of a
//! program do. What they compute is the same on every machine, so that the ratio of two machines' times is K.
use super::clock::{now, processor_now};
use super::command::Command;
use super::mpi::Mpi;
use std::hint::black_box;

/// Doubles of each of the three arrays of `stream`: 16 MiB each, more than caches hold.
const STREAM: usize = 2 << 20;
/// Side of the grid of `stencil`: two grids of 2 MiB.
const GRID: usize = 512;
/// Sweeps over it in a pass.
const SWEEPS: usize = 12;
/// Side of the matrices of `dense`.
const MATRIX: usize = 192;
/// Instructions of the little machine of `branchy`, and those it carries out in a pass.
const PROGRAM: usize = 1 << 14;
const STEPS: usize = 400_000;
/// Numbers in the memory of `random`: 32 MiB, and those visited in a pass.
const CHAIN: usize = 8 << 20;
const VISITS: usize = 40_000;

/// A kernel: memory, and one pass over it.
pub struct Kernel {
    pub name: &'static str,
    make: fn() -> Box<dyn FnMut() -> f64>,
}

/// All kernels.
pub const ALL: [Kernel; 5] = [
    Kernel { name: "stream", make: stream },
    Kernel { name: "stencil", make: stencil },
    Kernel { name: "dense", make: dense },
    Kernel { name: "branchy", make: branchy },
    Kernel { name: "random", make: random },
];

/// The floating-point operations of one pass of a kernel; none of those that do no such arithmetic.
pub fn operations(name: &str) -> Option<f64> {
    match name {
        "stream" => Some(2.0 * STREAM as f64),
        "stencil" => Some((4 * SWEEPS * (GRID - 2) * (GRID - 2)) as f64),
        "dense" => Some(2.0 * (MATRIX as f64).powi(3)),
        _ => None,
    }
}

/// Kernels with their memory, each made when it is first wanted.
#[derive(Default)]
pub struct Made([Option<Box<dyn FnMut() -> f64>>; ALL.len()]);

/// A rank's part in a block of one kernel: so many passes, by the time of the processor if `compute_ns` is not 0. The times
/// in ns are those of all ranks, on rank 0.
pub fn take_part(mpi: &Mpi, command: &Command, made: &mut Made) -> Vec<i64> {
    let which = command.which as usize % ALL.len();
    let pass = made.0[which].get_or_insert_with(ALL[which].make);
    let mut times = vec![0i64; command.repetitions as usize];
    let now = if command.compute_ns > 0 { processor_now } else { now };
    black_box(pass());
    mpi.barrier(mpi.world);
    for time in &mut times {
        let start = now();
        black_box(pass());
        *time = now() - start;
    }
    mpi.gathered(mpi.world, &times)
}

/// Numbers without order (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Bound by the bandwidth of memory: a = b + s c.
fn stream() -> Box<dyn FnMut() -> f64> {
    let (mut a, b, c) = (vec![0.5; STREAM], vec![1.5; STREAM], vec![2.5; STREAM]);
    Box::new(move || {
        let scale = black_box(3.0);
        for ((a, b), c) in a.iter_mut().zip(&b).zip(&c) {
            *a = b + scale * c;
        }
        a[STREAM / 2]
    })
}

/// Bound by caches and additions: the mean of four neighbours, as in the seed's heat plate.
fn stencil() -> Box<dyn FnMut() -> f64> {
    let (mut old, mut new) = (vec![1.0; GRID * GRID], vec![1.0; GRID * GRID]);
    old[GRID + 1] = 100.0;
    Box::new(move || {
        for _ in 0..SWEEPS {
            for row in 1..GRID - 1 {
                let at = row * GRID;
                let (above, here, below) = (&old[at - GRID..at], &old[at..at + GRID], &old[at + GRID..at + 2 * GRID]);
                let out = &mut new[at..at + GRID];
                for column in 1..GRID - 1 {
                    out[column] = 0.25 * (above[column] + below[column] + here[column - 1] + here[column + 1]);
                }
            }
            std::mem::swap(&mut old, &mut new);
        }
        old[GRID + 1]
    })
}

/// Bound by multiplications: the product of two matrices.
fn dense() -> Box<dyn FnMut() -> f64> {
    let mut numbers = Numbers(88_172_645_463_325_252);
    let mut matrix = || (0..MATRIX * MATRIX).map(|_| (numbers.next() >> 40) as f64 / 1e7).collect::<Vec<f64>>();
    let (a, b, mut c) = (matrix(), matrix(), vec![0.0; MATRIX * MATRIX]);
    Box::new(move || {
        c.fill(0.0);
        for (a, c) in a.chunks_exact(MATRIX).zip(c.chunks_exact_mut(MATRIX)) {
            for (factor, b) in a.iter().zip(b.chunks_exact(MATRIX)) {
                for (c, b) in c.iter_mut().zip(b) {
                    *c += factor * b;
                }
            }
        }
        c[MATRIX + 1]
    })
}

/// Bound by branches that cannot be foretold: a little machine that carries out instructions without order.
fn branchy() -> Box<dyn FnMut() -> f64> {
    let mut numbers = Numbers(2_463_534_242);
    let program: Vec<u8> = (0..PROGRAM).map(|_| (numbers.next() >> 32) as u8).collect();
    let mut state = [1u64; 8];
    Box::new(move || {
        let mut at = 0;
        for step in 0..STEPS as u64 {
            let code = program[at];
            let (a, b) = (usize::from(code >> 3 & 7), usize::from(code >> 5));
            match code & 7 {
                0 => state[a] = state[a].wrapping_add(state[b]),
                1 => state[a] ^= state[b].rotate_left(7),
                2 => state[a] = state[b].wrapping_mul(0x9e37_79b9_7f4a_7c15),
                3 if state[a] & 1 == 0 => state[a] >>= 1,
                3 => state[a] = state[a].wrapping_mul(3).wrapping_add(1),
                4 if state[a] > state[b] => state.swap(a, b),
                4 => state[b] = state[b].wrapping_sub(state[a]),
                5 => state[a] = state[a].leading_zeros().into(),
                6 => at = (at + (state[a] & 63) as usize) % PROGRAM,
                _ => state[a] = state[a].wrapping_add(step),
            }
            at = (at + 1) % PROGRAM;
        }
        state.iter().fold(0, |sum: u64, x| sum.wrapping_add(*x)) as f64
    })
}

/// Bound by the latency of memory: a chain through it that comes by every place once, without order (Sattolo's shuffle).
fn random() -> Box<dyn FnMut() -> f64> {
    let mut numbers = Numbers(123_456_789);
    let mut next: Vec<u32> = (0..CHAIN as u32).collect();
    for i in (1..CHAIN).rev() {
        next.swap(i, numbers.next() as usize % i);
    }
    let mut at = 0;
    Box::new(move || {
        for _ in 0..VISITS {
            at = next[at as usize];
        }
        f64::from(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_compute() {
        for kernel in &ALL {
            let mut pass = (kernel.make)();
            let (first, second) = (pass(), pass());
            assert!(first.is_finite() && second.is_finite(), "{}", kernel.name);
            match kernel.name {
                "stream" => assert_eq!(first, 9.0),
                // The chain and the machine go on where they were, the heat spreads.
                "random" | "branchy" | "stencil" => assert_ne!(first, second, "{}", kernel.name),
                _ => assert_eq!(first, second),
            }
        }
    }

    #[test]
    fn the_chain_comes_by_every_place() {
        let mut numbers = Numbers(5);
        let mut next: Vec<usize> = (0..100).collect();
        for i in (1..100).rev() {
            next.swap(i, numbers.next() as usize % i);
        }
        let visited: std::collections::BTreeSet<usize> =
            std::iter::successors(Some(0), |&at| Some(next[at])).take(100).collect();
        assert_eq!(visited.len(), 100);
    }
}
