//! The shortest nest of all of a short sequence, by trying all: of each stretch the best of its splits into two, and of
//! the loop that it is as a whole. Time n^3 / 6, memory n^2.
use crate::nest::Node;

/// The longest sequence that is tried whole.
pub const MOST: usize = 256;

/// What stretches cost, and how they are made.
struct Table {
    length: usize,
    /// Symbols written and loops of the stretch from `i` to `j`, at `i (length + 1) + j`, in that order of weight.
    costs: Vec<u32>,
    /// Where it is split, or the period of the loop that it is plus [`LOOP`].
    ways: Vec<u16>,
}

const LOOP: u16 = 1 << 15;
const SYMBOL: u32 = 1 << 12;

/// The nest with the fewest symbols written, and of those with the fewest loops; none if the sequence is longer than
/// [`MOST`].
pub fn shortest(sequence: &[u32]) -> Option<Vec<Node<u32>>> {
    let n = sequence.len();
    if n > MOST {
        return None;
    }
    let mut table = Table { length: n, costs: vec![0; (n + 1) * (n + 1)], ways: vec![0; (n + 1) * (n + 1)] };
    for i in (0..n).rev() {
        // The shortest period of each prefix of what begins here (Knuth, Morris and Pratt).
        let here = &sequence[i..];
        let mut border = vec![0usize; here.len() + 1];
        let mut k = 0;
        for j in 1..here.len() {
            while k > 0 && here[j] != here[k] {
                k = border[k];
            }
            k += usize::from(here[j] == here[k]);
            border[j + 1] = k;
        }
        table.set(i, i + 1, SYMBOL, 0);
        for j in i + 2..=n {
            let period = (j - i) - border[j - i];
            let (mut best, mut way) = (u32::MAX, 0);
            if period < j - i && (j - i).is_multiple_of(period) {
                (best, way) = (table.cost(i, i + period) + 1, LOOP | period as u16);
            }
            for k in i + 1..j {
                let cost = table.cost(i, k) + table.cost(k, j);
                if cost < best {
                    (best, way) = (cost, k as u16);
                }
            }
            table.set(i, j, best, way);
        }
    }
    let mut nodes = Vec::new();
    table.write(sequence, 0, n, &mut nodes);
    Some(nodes)
}

impl Table {
    #[inline]
    fn cost(&self, i: usize, j: usize) -> u32 {
        self.costs[i * (self.length + 1) + j]
    }

    fn set(&mut self, i: usize, j: usize, cost: u32, way: u16) {
        self.costs[i * (self.length + 1) + j] = cost;
        self.ways[i * (self.length + 1) + j] = way;
    }

    fn write(&self, sequence: &[u32], i: usize, j: usize, into: &mut Vec<Node<u32>>) {
        let way = self.ways[i * (self.length + 1) + j];
        if i + 1 == j {
            into.push(Node::Item(sequence[i]));
        } else if way & LOOP != 0 {
            let period = usize::from(way & !LOOP);
            let mut body = Vec::new();
            self.write(sequence, i, i + period, &mut body);
            into.push(Node::Loop { count: ((j - i) / period) as u64, body });
        } else if i < j {
            self.write(sequence, i, usize::from(way), into);
            self.write(sequence, usize::from(way), j, into);
        }
    }
}
