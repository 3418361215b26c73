//! The topologies that are recognised: what each is called, its directions, and so its graph.
use super::graph::Graph;
use super::mesh::{Dimension, Links, Mesh};
use super::spectrum;
use serde::{Deserialize, Serialize};

/// A topology with a numbering of its positions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topology {
    /// A line, ring, grid, torus, or hypercube.
    Mesh(Mesh),
    /// The 3-point stencil of NPB's CG: each row sums up by recursive halving, and the vector is transposed. There are
    /// as many columns as rows, or twice as many. Both are powers of two.
    Transpose {
        /// Rows.
        rows: u32,
        /// Columns.
        columns: u32,
    },
    /// A tree, filled level by level: the parent of position p is (p - 1) / arity.
    Tree {
        /// Positions.
        positions: u32,
        /// Children of a position.
        arity: u32,
    },
    /// A binomial tree: the parent of position p is p without its lowest bit.
    BinomialTree {
        /// Positions.
        positions: u32,
    },
    /// Position 0 with all others.
    Star {
        /// Positions.
        positions: u32,
    },
    /// The butterfly network: levels of 2^order rows, each row linked on the next level with itself and with that row which differs
    /// in one bit.
    Butterfly {
        /// Bits of a row.
        order: u32,
        /// Whether the last level is linked with the first; there are then `order` levels, else one more.
        wrapped: bool,
    },
    /// Each with each.
    AllToAll {
        /// Positions.
        positions: u32,
    },
}

/// A direction of a topology: its name, and for each position who lies there.
pub type Toward = (String, Vec<Option<u32>>);

impl Topology {
    /// Positions.
    pub fn positions(&self) -> u32 {
        match *self {
            Topology::Mesh(ref mesh) => mesh.positions(),
            Topology::Transpose { rows, columns } => rows * columns,
            Topology::Tree { positions, .. }
            | Topology::BinomialTree { positions }
            | Topology::Star { positions }
            | Topology::AllToAll { positions } => positions,
            Topology::Butterfly { order, wrapped } => (order + u32::from(!wrapped)) << order,
        }
    }

    /// Its directions. A position may lie in a direction from itself (the diagonal of a transposition).
    pub fn directions(&self) -> Vec<Toward> {
        let all = 0..self.positions();
        let toward =
            |name: String, to: &dyn Fn(u32) -> Option<u32>| -> Toward { (name, all.clone().map(to).collect()) };
        match *self {
            Topology::Mesh(ref mesh) => {
                let steps = mesh.steps();
                steps.iter().map(|step| toward(mesh.step_name(step), &|at| mesh.moved(at, step))).collect()
            }
            Topology::Transpose { rows, columns } => {
                let wide = columns / rows;
                let transposed = |at: u32| wide * (at / wide % rows * rows + at / wide / rows) + at % wide;
                let mut directions: Vec<Toward> = (0..columns.ilog2())
                    .rev()
                    .enumerate()
                    .map(|(i, bit)| toward(format!("REDUCE_{}", i + 1), &|at| Some(at ^ (1 << bit))))
                    .collect();
                directions.push(toward("TRANSPOSE".into(), &|at| Some(transposed(at))));
                directions
            }
            Topology::Tree { positions, arity } => {
                let child = |at: u32, i: u32| at.checked_mul(arity)?.checked_add(i).filter(|&to| to < positions);
                let mut directions = vec![toward("PARENT".into(), &|at| Some(at.checked_sub(1)? / arity))];
                directions.extend((1..=arity).map(|i| toward(format!("CHILD_{i}"), &|at| child(at, i))));
                directions
            }
            Topology::BinomialTree { positions } => {
                let lowest = |at: u32| if at == 0 { u32::MAX } else { at & at.wrapping_neg() };
                let child = |at: u32, bit: u32| (bit < lowest(at)).then_some(at | bit).filter(|&to| to < positions);
                let mut directions = vec![toward("PARENT".into(), &|at| (at > 0).then(|| at & (at - 1)))];
                let bits = (0..32).map(|i| 1 << i).take_while(|&bit: &u32| bit < positions);
                directions.extend(bits.map(|bit| toward(format!("CHILD_{bit}"), &|at| child(at, bit))));
                directions
            }
            Topology::Star { positions } => {
                let mut directions = vec![toward("CENTRE".into(), &|at| (at > 0).then_some(0))];
                directions.extend((1..positions).map(|i| toward(format!("LEAF_{i}"), &|at| (at == 0).then_some(i))));
                directions
            }
            Topology::Butterfly { order, wrapped } => {
                let levels = order + u32::from(!wrapped);
                let step = move |at: u32, down: bool, cross: bool| {
                    let (level, row) = (at >> order, at & ((1 << order) - 1));
                    let to = match (down, wrapped) {
                        (true, true) => (level + 1) % levels,
                        (false, true) => (level + levels - 1) % levels,
                        (true, false) => Some(level + 1).filter(|&to| to < levels)?,
                        (false, false) => level.checked_sub(1)?,
                    };
                    // The bit is that of the upper one of both levels.
                    let bit = if down { level } else { to };
                    Some(to << order | row ^ (u32::from(cross) << bit))
                };
                [("DOWN", true, false), ("DOWN_CROSS", true, true), ("UP", false, false), ("UP_CROSS", false, true)]
                    .map(|(name, down, cross)| toward(name.into(), &|at| step(at, down, cross)))
                    .into()
            }
            Topology::AllToAll { positions } => {
                (1..positions).map(|by| toward(format!("OFFSET_{by}"), &|at| Some((at + by) % positions))).collect()
            }
        }
    }

    /// Its graph: who lies in any direction of whom.
    pub fn graph(&self) -> Graph {
        let directions = self.directions();
        let edges = directions
            .iter()
            .flat_map(|(_, peers)| peers.iter().enumerate().filter_map(|(at, to)| Some((at as u32, (*to)?))));
        Graph::new(self.positions(), edges)
    }

    /// Whether its graph may have so many edges, as far as that is quickly told.
    pub fn may_have(&self, edges: usize) -> bool {
        let n = self.positions() as usize;
        match self {
            Topology::Tree { .. } | Topology::BinomialTree { .. } | Topology::Star { .. } => edges == n - 1,
            Topology::AllToAll { .. } => edges == n * (n - 1) / 2,
            Topology::Mesh(_) | Topology::Transpose { .. } | Topology::Butterfly { .. } => true,
        }
    }

    /// The degrees of all positions, ascending.
    pub fn degrees(&self) -> Vec<u32> {
        match *self {
            Topology::Mesh(ref mesh) => mesh.degrees(),
            Topology::Tree { positions, arity } => {
                let children = |at: u32| (positions - 1).saturating_sub(at.saturating_mul(arity)).min(arity);
                let mut degrees: Vec<u32> = (0..positions).map(|at| children(at) + u32::from(at > 0)).collect();
                degrees.sort_unstable();
                degrees
            }
            Topology::AllToAll { positions } => vec![positions - 1; positions as usize],
            _ => self.graph().degrees(),
        }
    }

    /// The eigenvalues of its graph, ascending.
    pub fn spectrum(&self) -> Vec<f64> {
        match *self {
            Topology::Mesh(ref mesh) => mesh.spectrum(),
            Topology::AllToAll { positions } => {
                let mut values = vec![-1.0; positions as usize];
                values.last_mut().into_iter().for_each(|value| *value = f64::from(positions - 1));
                values
            }
            _ => spectrum::of(&self.graph()),
        }
    }

    /// The same topology with its positions numbered in each way that programs number their ranks; itself among them.
    pub fn numberings(&self) -> Vec<Topology> {
        match self {
            Topology::Mesh(mesh) => {
                let mut all = mesh.orders();
                if mesh.links == Links::SouthWest {
                    all.extend(mesh.orders().into_iter().map(|mesh| Mesh { links: Links::SouthEast, ..mesh }));
                }
                all.into_iter().map(Topology::Mesh).collect()
            }
            _ => vec![self.clone()],
        }
    }

    /// All topologies of so many positions, each in one numbering; those with the most dimensions come first.
    pub fn catalogue(positions: u32) -> Vec<Topology> {
        let mut meshes: Vec<Mesh> = factorings(positions).iter().flat_map(|sizes| meshes(sizes)).collect();
        meshes.sort_by_key(|mesh| (mesh.links, std::cmp::Reverse(mesh.dimensions.len())));
        let mut all: Vec<Topology> = meshes.into_iter().map(Topology::Mesh).collect();
        if positions >= 8 && positions.is_power_of_two() {
            let rows = 1 << (positions.ilog2() / 2);
            all.push(Topology::Transpose { rows, columns: positions / rows });
        }
        for (order, wrapped) in (2..24).flat_map(|order| [(order, false), (order, true)]) {
            let butterfly = Topology::Butterfly { order, wrapped };
            if butterfly.positions() == positions && (order > 2 || !wrapped) {
                all.push(butterfly);
            }
        }
        if positions >= 4 {
            all.push(Topology::Star { positions });
            all.extend((2..positions - 1).map(|arity| Topology::Tree { positions, arity }));
            all.push(Topology::BinomialTree { positions });
            all.push(Topology::AllToAll { positions });
        }
        all
    }
}

/// The meshes of these sizes.
fn meshes(sizes: &[u32]) -> Vec<Mesh> {
    let wide: Vec<usize> = (0..sizes.len()).filter(|&at| sizes[at] > 2).collect();
    let mesh = |mask: u64, links| Mesh {
        dimensions: sizes
            .iter()
            .zip(0..)
            .map(|(&size, at)| Dimension { size, periodic: mask >> at & 1 == 1 })
            .collect(),
        links,
    };
    let torus: u64 = wide.iter().map(|&at| 1 << at).sum();
    let mut all = vec![mesh(0, Links::Axes)];
    if torus != 0 {
        all.push(mesh(torus, Links::Axes));
    }
    // Some dimensions periodic: of equal sizes the first ones, and not 4, which is 2x2.
    for mask in (0..1u64 << wide.len()).map(|mask| wide.iter().zip(0..).map(|(&at, i)| (mask >> i & 1) << at).sum()) {
        let twice = |&at: &usize| at > 0 && sizes[at] == sizes[at - 1] && mask >> at & 1 > mask >> (at - 1) & 1;
        let four = |&at: &usize| sizes[at] == 4 && mask >> at & 1 == 1;
        if mask != 0 && mask != torus && !wide.iter().any(|at| twice(at) || four(at)) {
            all.push(mesh(mask, Links::Axes));
        }
    }
    if (2..=4).contains(&sizes.len()) {
        all.push(mesh(0, Links::Diagonals));
        if torus != 0 {
            all.push(mesh(torus, Links::Diagonals));
        }
    }
    if let [a, b] = *sizes
        && a > 2
        && b > 2
    {
        all.push(mesh(torus, Links::SouthWest));
    }
    all
}

/// All ways to write `n` as a product of numbers from 2 up, each descending.
fn factorings(n: u32) -> Vec<Vec<u32>> {
    fn go(n: u32, most: u32, first: &mut Vec<u32>, all: &mut Vec<Vec<u32>>) {
        if n == 1 {
            return all.push(first.clone());
        }
        for factor in (2..=most.min(n)).rev().filter(|&factor| n.is_multiple_of(factor)) {
            first.push(factor);
            go(n / factor, factor, first, all);
            first.pop();
        }
    }
    let mut all = Vec::new();
    if n > 1 {
        go(n, n, &mut Vec::new(), &mut all);
    }
    all
}

impl std::fmt::Display for Topology {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Topology::Mesh(mesh) => mesh.fmt(f),
            Topology::Transpose { rows, columns } => write!(f, "{rows}x{columns} 3-p stencil"),
            Topology::Tree { positions, arity: 2 } => write!(f, "binary tree of {positions}"),
            Topology::Tree { positions, arity } => write!(f, "{arity}-ary tree of {positions}"),
            Topology::BinomialTree { positions } => write!(f, "binomial tree of {positions}"),
            Topology::Star { positions } => write!(f, "star of {positions}"),
            Topology::Butterfly { order, wrapped: false } => write!(f, "butterfly of {}x{}", order + 1, 1 << order),
            Topology::Butterfly { order, wrapped: true } => write!(f, "wrapped butterfly of {order}x{}", 1 << order),
            Topology::AllToAll { positions } => write!(f, "all-to-all of {positions}"),
        }
    }
}
