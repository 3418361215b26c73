//! Grids, tori and what lies between them, in any number of dimensions, with or without diagonals; the hypercube is
//! the one whose sizes are all 2.
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Names of the steps up and down a dimension, the dimension in which neighbours have neighbouring numbers first: rank
/// 1 is east of rank 0, and in a 4x4 torus rank 4 is south of it (seed 002, Table 1).
const AXES: [(&str, &str); 4] = [("EAST", "WEST"), ("SOUTH", "NORTH"), ("UP", "DOWN"), ("LATER", "EARLIER")];

/// Which neighbours of a position are linked with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Links {
    /// Those one step along one dimension.
    Axes,
    /// Those of the axes, and in two dimensions south-west and north-east: the 6-point stencil of NPB's BT and SP.
    SouthWest,
    /// Its mirror image, with south-east and north-west.
    SouthEast,
    /// Those at most one step away in each dimension.
    Diagonals,
}

/// A dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Dimension {
    /// Positions, at least 2.
    pub size: u32,
    /// Whether the last position is next to the first. Of two positions it does not matter: each is next to the other,
    /// and the step from one to the other has one name.
    pub periodic: bool,
}

/// A mesh. Position p has the coordinate `p % size` in the first dimension, `p / size % ...` in the second.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Mesh {
    /// The dimensions.
    pub dimensions: Vec<Dimension>,
    /// Who is linked with whom.
    pub links: Links,
}

impl Dimension {
    fn wraps(self) -> bool {
        self.periodic || self.size == 2
    }

    /// Steps that lead to different neighbours.
    fn steps(self) -> &'static [i32] {
        if self.size == 2 { &[1] } else { &[1, -1] }
    }

    /// Where a step leads to.
    fn moved(self, coordinate: u32, step: i32) -> Option<u32> {
        let to = i64::from(coordinate) + i64::from(step);
        let inside = (0..i64::from(self.size)).contains(&to);
        (inside || self.wraps()).then(|| to.rem_euclid(i64::from(self.size)) as u32)
    }

    /// The shortest step from one coordinate to another.
    fn between(self, from: u32, to: u32) -> i32 {
        let step = i64::from(to) - i64::from(from);
        if !self.wraps() {
            return step as i32;
        }
        let up = step.rem_euclid(i64::from(self.size));
        (if 2 * up <= i64::from(self.size) { up } else { up - i64::from(self.size) }) as i32
    }

    /// The number of neighbours at each coordinate.
    fn degree(self, coordinate: u32) -> u32 {
        self.steps().iter().filter(|&&step| self.moved(coordinate, step).is_some()).count() as u32
    }

    /// The eigenvalues of a line or ring.
    fn spectrum(self) -> impl Iterator<Item = f64> + Clone {
        let of = |k: u32, n: u32| 2.0 * (PI * f64::from(k) / f64::from(n)).cos();
        let ring = self.wraps() && self.size > 2;
        (0..self.size).map(move |k| if ring { of(2 * k, self.size) } else { of(k + 1, self.size + 1) })
    }
}

impl Mesh {
    /// Positions.
    pub fn positions(&self) -> u32 {
        self.dimensions.iter().map(|dimension| dimension.size).product()
    }

    /// Whether it is a hypercube.
    pub fn is_hypercube(&self) -> bool {
        self.links == Links::Axes && self.dimensions.len() > 2 && self.dimensions.iter().all(|d| d.size == 2)
    }

    /// The steps that it links, each as one number a dimension: those along a dimension first.
    pub fn steps(&self) -> Vec<Vec<i32>> {
        let none = || vec![0; self.dimensions.len()];
        let mut steps = Vec::new();
        for (at, dimension) in self.dimensions.iter().enumerate() {
            for &step in dimension.steps() {
                steps.push(none());
                steps.last_mut().expect("it was just pushed")[at] = step;
            }
        }
        match self.links {
            Links::Axes => {}
            Links::SouthWest => steps.extend([vec![-1, 1], vec![1, -1]]),
            Links::SouthEast => steps.extend([vec![1, 1], vec![-1, -1]]),
            Links::Diagonals => {
                let mut all = vec![none()];
                for (at, dimension) in self.dimensions.iter().enumerate() {
                    for step in all.clone() {
                        for &by in dimension.steps() {
                            all.push(step.clone());
                            all.last_mut().expect("it was just pushed")[at] = by;
                        }
                    }
                }
                steps.extend(all.into_iter().filter(|step| step.iter().filter(|&&by| by != 0).count() > 1));
            }
        }
        steps
    }

    /// Where a step from a position leads to; none beyond an edge.
    pub fn moved(&self, mut position: u32, step: &[i32]) -> Option<u32> {
        let (mut to, mut stride) = (0, 1);
        for (dimension, &by) in self.dimensions.iter().zip(step) {
            to += stride * dimension.moved(position % dimension.size, by)?;
            position /= dimension.size;
            stride *= dimension.size;
        }
        Some(to)
    }

    /// The shortest step from one position to another.
    pub fn between(&self, mut from: u32, mut to: u32) -> Vec<i32> {
        let mut step = Vec::with_capacity(self.dimensions.len());
        for dimension in &self.dimensions {
            step.push(dimension.between(from % dimension.size, to % dimension.size));
            (from, to) = (from / dimension.size, to / dimension.size);
        }
        step
    }

    /// The name of a step: `EAST`, `SOUTHWEST`, `UP_EAST`, `EAST_2` for two steps east, `XOR_4` in a hypercube.
    pub fn step_name(&self, step: &[i32]) -> String {
        if self.is_hypercube() {
            let mask: u64 = step.iter().enumerate().map(|(at, by)| u64::from(*by != 0) << at).sum();
            return format!("XOR_{mask}");
        }
        if let &[by] = step {
            if self.dimensions[0].size == 2 {
                return "OTHER".into();
            }
            let name = if by > 0 { "RIGHT" } else { "LEFT" };
            return if by.abs() == 1 { name.into() } else { format!("{name}_{}", by.unsigned_abs()) };
        }
        let mut words: Vec<String> = Vec::new();
        // North and south are said before east and west, and what is beyond the plane before both.
        for (at, &by) in step.iter().enumerate().rev().filter(|(_, by)| **by != 0) {
            let name = match AXES.get(at) {
                Some((up, down)) => (if by > 0 { up } else { down }).to_string(),
                None => format!("{}_{}", if by > 0 { "PLUS" } else { "MINUS" }, (b'A' + (at % 26) as u8) as char),
            };
            words.push(if by.abs() == 1 { name } else { format!("{name}_{}", by.unsigned_abs()) });
        }
        match &words[..] {
            [first, second] if step[..2].iter().all(|by| by.abs() == 1) => format!("{first}{second}"),
            _ => words.join("_"),
        }
    }

    /// The degrees of all positions, ascending.
    pub fn degrees(&self) -> Vec<u32> {
        let mut degrees = vec![if self.links == Links::Diagonals { 1 } else { 0 }];
        for dimension in &self.dimensions {
            let more = |&sum: &u32| {
                let more = move |at| match self.links {
                    Links::Diagonals => sum * (1 + dimension.degree(at)),
                    _ => sum + dimension.degree(at),
                };
                (0..dimension.size).map(more)
            };
            degrees = degrees.iter().flat_map(more).collect();
        }
        for degree in &mut degrees {
            match self.links {
                Links::Axes => {}
                Links::SouthWest | Links::SouthEast => *degree += 2,
                Links::Diagonals => *degree -= 1,
            }
        }
        degrees.sort_unstable();
        degrees
    }

    /// The eigenvalues of its graph, ascending, from those of its dimensions: they add up along axes, and with diagonals
    /// one plus them multiplies. The graph of the 6-point stencil is a Cayley graph, so its eigenvalues are sums of
    /// characters.
    pub fn spectrum(&self) -> Vec<f64> {
        let mut values = match (self.links, &self.dimensions[..]) {
            (Links::SouthWest | Links::SouthEast, [a, b]) => {
                let angle = |k: u32, n: u32| 2.0 * PI * f64::from(k) / f64::from(n);
                let of = |(i, j)| {
                    let (x, y): (f64, f64) = (angle(i, a.size), angle(j, b.size));
                    2.0 * (x.cos() + y.cos() + (x - y).cos())
                };
                (0..a.size).flat_map(|i| (0..b.size).map(move |j| (i, j))).map(of).collect()
            }
            (Links::Diagonals, dimensions) => {
                let times = |values: Vec<f64>, dimension: &Dimension| {
                    values.iter().flat_map(|value| dimension.spectrum().map(move |x| value * (1.0 + x))).collect()
                };
                dimensions.iter().fold(vec![1.0], times).into_iter().map(|value| value - 1.0).collect::<Vec<f64>>()
            }
            (_, dimensions) => {
                let plus = |values: Vec<f64>, dimension: &Dimension| {
                    values.iter().flat_map(|value| dimension.spectrum().map(move |x| value + x)).collect()
                };
                dimensions.iter().fold(vec![0.0], plus)
            }
        };
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    /// The same mesh with its dimensions in each other order in which it differs: rank numbers may run along any first.
    pub fn orders(&self) -> Vec<Mesh> {
        let mut left = self.dimensions.clone();
        left.sort_unstable_by(|a, b| b.cmp(a));
        let mut orders = Vec::new();
        permute(&mut Vec::new(), &mut left, &mut |dimensions| {
            orders.push(Mesh { dimensions: dimensions.to_vec(), links: self.links });
        });
        orders
    }
}

/// Calls `each` with the different orders of `left` after `first`.
fn permute(first: &mut Vec<Dimension>, left: &mut Vec<Dimension>, each: &mut dyn FnMut(&[Dimension])) {
    if left.is_empty() {
        return each(first);
    }
    for at in 0..left.len() {
        if left[..at].contains(&left[at]) {
            continue;
        }
        first.push(left.remove(at));
        permute(first, left, each);
        left.insert(at, first.pop().expect("it was just pushed"));
    }
}

impl std::fmt::Display for Mesh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let joined = |sizes: Vec<u32>| sizes.iter().map(u32::to_string).collect::<Vec<_>>().join("x");
        let sizes = |which: &dyn Fn(&Dimension) -> bool| {
            let mut sizes: Vec<u32> = self.dimensions.iter().filter(|d| which(d)).map(|d| d.size).collect();
            sizes.sort_unstable_by(|a, b| b.cmp(a));
            joined(sizes)
        };
        let all = sizes(&|_| true);
        let periodic = |d: &Dimension| d.periodic && d.size > 2;
        let open = |d: &Dimension| !d.periodic && d.size > 2;
        let (some_periodic, some_open) = (self.dimensions.iter().any(periodic), self.dimensions.iter().any(open));
        if self.is_hypercube() {
            return write!(f, "hypercube of {}", self.positions());
        }
        match (&self.dimensions[..], self.links) {
            ([_], Links::Axes) => return write!(f, "{} of {all}", if some_periodic { "ring" } else { "line" }),
            (_, Links::SouthWest | Links::SouthEast) => return write!(f, "{all} 6-p stencil"),
            _ => {}
        }
        match (some_periodic, some_open) {
            (true, false) => write!(f, "{all} torus")?,
            (true, true) => write!(f, "{all} grid, periodic in {}", sizes(&periodic))?,
            (false, _) => write!(f, "{all} grid")?,
        }
        if self.links == Links::Diagonals { f.write_str(" with diagonals") } else { Ok(()) }
    }
}
