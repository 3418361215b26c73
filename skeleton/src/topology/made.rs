//! Communication matrices made after NPB's own formulas, for tests and benchmarks at the seed's sizes, which cannot be
//! run on every machine. They know nothing of the topologies that are to be recognised in them.
use super::matrix::{Matrix, Traffic};
use super::shapes::Topology;

const ITERATIONS: u64 = 200;

fn face(bytes: u64) -> Traffic {
    Traffic { messages: ITERATIONS, bytes: ITERATIONS * bytes }
}

/// Rank 0 hands out the input in one large message to each: traffic of the set-up, which says nothing of the topology.
fn with_input(mut matrix: Matrix) -> Matrix {
    (1..matrix.ranks()).for_each(|rank| matrix.add(0, rank, Traffic { messages: 1, bytes: 1 << 20 }));
    matrix
}

/// BT and SP on `p` x `p` ranks: faces to the successors and predecessors of `make_set`, three of each, as the cells of a
/// rank lie on a diagonal.
pub fn bt(p: u32) -> Matrix {
    let mut matrix = Matrix::new(p * p);
    for rank in 0..p * p {
        let (i, j) = (rank % p, rank / p);
        let (up, down) = (|k: u32| (k + 1) % p, |k: u32| (k + p - 1) % p);
        for to in
            [down(i) + p * j, i + p * down(j), up(i) + p * down(j), up(i) + p * j, i + p * up(j), down(i) + p * up(j)]
        {
            matrix.add(rank, to, face(20_000));
        }
    }
    with_input(matrix)
}

/// LU: north and south by one rank, west and east by a row of ranks (`neighbors`); no exchange beyond an edge.
pub fn lu(rows: u32, columns: u32) -> Matrix {
    let mut matrix = Matrix::new(rows * columns);
    for rank in 0..rows * columns {
        if rank % rows + 1 < rows {
            matrix.add(rank, rank + 1, face(1300));
            matrix.add(rank + 1, rank, face(1300));
        }
        if rank / rows + 1 < columns {
            matrix.add(rank, rank + rows, face(2600));
            matrix.add(rank + rows, rank, face(2600));
        }
    }
    with_input(matrix)
}

/// CG: sums along rows by recursive halving, and the transposition (`setup_submatrix_info`); ranks on the diagonal send to
/// themselves.
pub fn cg(ranks: u32) -> Matrix {
    let rows = 1 << (ranks.ilog2() / 2);
    let columns = ranks / rows;
    let mut matrix = Matrix::new(ranks);
    for rank in 0..ranks {
        let (row, column) = (rank / columns, rank % columns);
        let mut width = columns;
        while width > 1 {
            let partner = (column + width / 2) % width + column / width * width;
            matrix.add(rank, row * columns + partner, face(9000));
            width /= 2;
        }
        let transposed = if rows == columns {
            rank % rows * rows + rank / rows
        } else {
            2 * (rank / 2 % rows * rows + rank / 2 / rows) + rank % 2
        };
        matrix.add(rank, transposed, face(9000));
    }
    with_input(matrix)
}

/// MG: both neighbours in three dimensions (`setup`), and at the coarse levels, where some ranks are dead, those two and
/// four steps away, with little data.
pub fn mg(ranks: u32) -> Matrix {
    let all = ranks.ilog2();
    let sizes = [all / 3, (all - all / 3) / 2, all - all / 3 - (all - all / 3) / 2].map(|bits| 1u32 << bits);
    let mut matrix = Matrix::new(ranks);
    for rank in 0..ranks {
        let mut stride = 1;
        for (size, axis) in sizes.into_iter().zip(1..) {
            let at = rank / stride % size;
            for step in [1, size - 1] {
                matrix.add(rank, rank - at * stride + (at + step) % size * stride, face(30_000 / axis));
            }
            for step in [2, 4].into_iter().filter(|step| at % step == 0 && size > *step) {
                let to = rank - at * stride + (at + step) % size * stride;
                matrix.add(rank, to, Traffic { messages: ITERATIONS, bytes: ITERATIONS * 100 });
            }
            stride *= size;
        }
    }
    with_input(matrix)
}

/// Each position of a topology sends this to all around it.
pub fn of(topology: &Topology, traffic: Traffic) -> Matrix {
    let graph = topology.graph();
    let mut matrix = Matrix::new(topology.positions());
    for rank in 0..topology.positions() {
        graph.neighbours(rank).iter().for_each(|&to| matrix.add(rank, to, traffic));
    }
    matrix
}
