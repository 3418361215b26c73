//! The isomorphism test (seed 002, section 2), which finds the relabelling: colour refinement of both graphs together, and
//! where vertices stay alike, a choice of one, with a way back. Work is bounded by a budget.
//!
//! Vertices are in cells. A cell is split by how many neighbours its members have in another cell, until no cell splits
//! any more. All cells must have as many vertices of one graph as of the other, else the graphs differ. If a cell then
//! still has several of each, one vertex of the second graph is put in a cell of its own with each of the first in turn.
//! In a torus or hypercube any choice is right, so that there is no way back to go; and cells whose members are
//! joined with all or none of each other cell (leaves of a star, ranks of an all-to-all) need no choice.
//!
//! Edges may be of several kinds, each a layer: then each layer must be mapped onto its own.
use super::graph::Graph;

/// Steps (edges looked at, vertices copied) after which the search gives up.
pub const BUDGET: u64 = 30_000_000;

/// What the test found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The graphs are isomorphic: where in the second each vertex of the first lies.
    Relabelling(Vec<u32>),
    /// They are not.
    Different,
    /// The budget was spent.
    GivenUp,
}

/// Whether two graphs are isomorphic, and how.
pub fn isomorphism(first: &Graph, second: &Graph, budget: u64) -> Found {
    layered(std::slice::from_ref(first), std::slice::from_ref(second), budget)
}

/// Whether there is one isomorphism for all layers: graphs of the same vertices.
pub fn layered(first: &[Graph], second: &[Graph], budget: u64) -> Found {
    let alike = |(a, b): (&Graph, &Graph)| a.vertices() == b.vertices() && a.edges() == b.edges();
    if first.len() != second.len() || !first.iter().zip(second).all(alike) {
        return Found::Different;
    }
    let n = first.first().map_or(0, Graph::vertices);
    if n == 0 {
        return Found::Relabelling(Vec::new());
    }
    let mut search = Search { first, second, n: n as u32, left: budget, counts: vec![0; 2 * n], touched: Vec::new() };
    let mut cells = Cells::new(n as u32);
    let begun = search.refine(&mut cells, vec![0]).and_then(|()| search.extend(cells));
    match begun {
        Ok(place) => Found::Relabelling(place),
        Err(Stop::Different) => Found::Different,
        Err(Stop::GivenUp) => Found::GivenUp,
    }
}

enum Stop {
    Different,
    GivenUp,
}

/// A partition of the vertices of both graphs: 0 to n - 1 of the first, n to 2n - 1 of the second.
#[derive(Clone)]
struct Cells {
    /// Vertices, cell after cell.
    order: Vec<u32>,
    /// Where a vertex is in it.
    at: Vec<u32>,
    /// The cell of a vertex: where the cell starts.
    cell: Vec<u32>,
    /// The length of the cell that starts here.
    length: Vec<u32>,
}

impl Cells {
    fn new(n: u32) -> Cells {
        let mut length = vec![0; 2 * n as usize];
        length[0] = 2 * n;
        Cells { order: (0..2 * n).collect(), at: (0..2 * n).collect(), cell: vec![0; 2 * n as usize], length }
    }

    fn members(&self, cell: u32) -> &[u32] {
        &self.order[cell as usize..(cell + self.length[cell as usize]) as usize]
    }

    /// The cells from the first on.
    fn starts(&self) -> impl Iterator<Item = u32> + '_ {
        let end = self.order.len() as u32;
        std::iter::successors(Some(0), move |&cell| Some(cell + self.length[cell as usize]).filter(|&next| next < end))
    }

    /// Puts these vertices, members of `cell` and not all of them, at its end as a cell of their own, which it returns.
    fn split(&mut self, cell: u32, apart: &[u32]) -> u32 {
        let rest = self.length[cell as usize] - apart.len() as u32;
        let start = cell + rest;
        for (vertex, to) in apart.iter().zip(start..) {
            // What is at `to` has not been moved yet, so that the swap takes none back.
            let (from, other) = (self.at[*vertex as usize], self.order[to as usize]);
            self.order.swap(from as usize, to as usize);
            (self.at[*vertex as usize], self.at[other as usize]) = (to, from);
            self.cell[*vertex as usize] = start;
        }
        (self.length[cell as usize], self.length[start as usize]) = (rest, apart.len() as u32);
        start
    }
}

struct Search<'a> {
    first: &'a [Graph],
    second: &'a [Graph],
    n: u32,
    left: u64,
    /// Neighbours in the cell in hand, of each vertex that has any.
    counts: Vec<u32>,
    touched: Vec<u32>,
}

impl Search<'_> {
    /// The neighbours of a vertex of either graph in that graph's own numbers, and what to add to these.
    fn neighbours(&self, layer: usize, vertex: u32) -> (&[u32], u32) {
        match vertex.checked_sub(self.n) {
            None => (self.first[layer].neighbours(vertex), 0),
            Some(vertex) => (self.second[layer].neighbours(vertex), self.n),
        }
    }

    fn spend(&mut self, steps: usize) -> Result<(), Stop> {
        self.left = self.left.checked_sub(steps as u64).ok_or(Stop::GivenUp)?;
        Ok(())
    }

    /// Splits cells by the numbers of neighbours in each of the cells `todo`, and in those that come of it.
    fn refine(&mut self, cells: &mut Cells, mut todo: Vec<u32>) -> Result<(), Stop> {
        let mut queued = vec![false; cells.order.len()];
        todo.iter().for_each(|&cell| queued[cell as usize] = true);
        while let Some(cell) = todo.pop() {
            queued[cell as usize] = false;
            // The cell itself may be split while its layers are gone through.
            let members = cells.members(cell).to_vec();
            for layer in 0..self.first.len() {
                self.refine_by(&members, layer, cells, &mut todo, &mut queued)?;
            }
        }
        Ok(())
    }

    /// Splits cells by the numbers of neighbours among these vertices in one layer.
    fn refine_by(
        &mut self,
        members: &[u32],
        layer: usize,
        cells: &mut Cells,
        todo: &mut Vec<u32>,
        queued: &mut [bool],
    ) -> Result<(), Stop> {
        let mut counts = std::mem::take(&mut self.counts);
        let mut touched = std::mem::take(&mut self.touched);
        let mut steps = 0;
        for &member in members {
            let (neighbours, base) = self.neighbours(layer, member);
            steps += 1 + neighbours.len();
            for &next in neighbours {
                let next = next + base;
                if counts[next as usize] == 0 {
                    touched.push(next);
                }
                counts[next as usize] += 1;
            }
        }
        // By cell, and in it by count: vertices of the same cell and count go on together.
        touched.sort_unstable_by_key(|&vertex| (cells.cell[vertex as usize], counts[vertex as usize]));
        let (mut balanced, mut rest) = (true, &touched[..]);
        while let Some(&next) = rest.first() {
            let among = cells.cell[next as usize];
            let length = rest.iter().take_while(|&&vertex| cells.cell[vertex as usize] == among).count();
            balanced &= self.divide(cells, &rest[..length], &counts, todo, queued);
            rest = &rest[length..];
        }
        touched.iter().for_each(|&vertex| counts[vertex as usize] = 0);
        touched.clear();
        (self.counts, self.touched) = (counts, touched);
        self.spend(steps)?;
        if balanced { Ok(()) } else { Err(Stop::Different) }
    }

    /// Splits a cell, some members of which are `touched`, by their counts. False if a part has more vertices of one graph.
    fn divide(
        &self,
        cells: &mut Cells,
        touched: &[u32],
        counts: &[u32],
        todo: &mut Vec<u32>,
        queued: &mut [bool],
    ) -> bool {
        let cell = cells.cell[touched[0] as usize];
        let parts = touched.chunk_by(|&a, &b| counts[a as usize] == counts[b as usize]);
        let mut made = vec![cell];
        for part in parts {
            let of_first = part.iter().filter(|&&vertex| vertex < self.n).count();
            if 2 * of_first != part.len() {
                return false;
            }
            if part.len() < cells.length[cell as usize] as usize {
                made.push(cells.split(cell, part));
            }
        }
        // If the cell waits to be looked at, all its parts must; else all but the largest tell as much.
        let largest = made.iter().copied().max_by_key(|&part| cells.length[part as usize]);
        let spare = if queued[cell as usize] { None } else { largest };
        for part in made {
            if Some(part) != spare && !std::mem::replace(&mut queued[part as usize], true) {
                todo.push(part);
            }
        }
        true
    }

    /// A relabelling that agrees with the cells, which do not split any more.
    fn extend(&mut self, cells: Cells) -> Result<Vec<u32>, Stop> {
        self.spend(cells.order.len())?;
        let Some(cell) = self.choice(&cells)? else { return self.read(&cells) };
        let members = cells.members(cell);
        let target = members.iter().copied().filter(|&vertex| vertex >= self.n).min().ok_or(Stop::Different)?;
        let mut choices: Vec<u32> = members.iter().copied().filter(|&vertex| vertex < self.n).collect();
        choices.sort_unstable();
        for vertex in choices {
            self.spend(4 * cells.order.len())?;
            let mut tried = cells.clone();
            let apart = tried.split(cell, &[vertex, target]);
            match self.refine(&mut tried, vec![apart]).and_then(|()| self.extend(tried)) {
                Err(Stop::Different) => {}
                done => return done,
            }
        }
        Err(Stop::Different)
    }

    /// The smallest cell whose members are not all alike to the vertices of some cell.
    fn choice(&mut self, cells: &Cells) -> Result<Option<u32>, Stop> {
        let mut best: Option<(u32, u32)> = None;
        let mut steps = 0;
        for cell in cells.starts() {
            let length = cells.length[cell as usize];
            if length == 2 || best.is_some_and(|(least, _)| least <= length) {
                continue;
            }
            for layer in 0..self.first.len() {
                let (neighbours, base) = self.neighbours(layer, cells.members(cell)[0]);
                steps += neighbours.len();
                let mut into: Vec<u32> = neighbours.iter().map(|&next| cells.cell[(next + base) as usize]).collect();
                into.sort_unstable();
                let all = |to: &[u32]| {
                    let there = cells.length[to[0] as usize] as usize / 2;
                    to.len() == if to[0] == cell { there - 1 } else { there }
                };
                if !into.chunk_by(|a, b| a == b).all(all) {
                    best = Some((length, cell));
                    break;
                }
            }
        }
        self.spend(steps)?;
        Ok(best.map(|(_, cell)| cell))
    }

    /// The relabelling that cells without a choice mean; checked edge by edge.
    fn read(&mut self, cells: &Cells) -> Result<Vec<u32>, Stop> {
        let mut place = vec![0; self.n as usize];
        for cell in cells.starts() {
            let (mut of_first, mut of_second): (Vec<u32>, Vec<u32>) =
                cells.members(cell).iter().partition(|&&vertex| vertex < self.n);
            of_first.sort_unstable();
            of_second.sort_unstable();
            for (from, to) in of_first.into_iter().zip(of_second) {
                place[from as usize] = to - self.n;
            }
        }
        self.spend(self.first.iter().map(Graph::edges).sum())?;
        let maps = self.first.iter().zip(self.second).all(|(first, second)| first.maps_onto(second, &place));
        if maps { Ok(place) } else { Err(Stop::Different) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::shapes::Topology;
    use proptest::prelude::*;

    fn shuffled(graph: &Graph, number: &[u32]) -> Graph {
        let edges = (0..graph.vertices() as u32).flat_map(|a| {
            graph.neighbours(a).iter().map(move |&b| (number[a as usize], number[b as usize])).collect::<Vec<_>>()
        });
        Graph::new(graph.vertices() as u32, edges)
    }

    fn numbers(n: u32) -> impl Strategy<Value = Vec<u32>> {
        Just((0..n).collect::<Vec<u32>>()).prop_shuffle()
    }

    proptest! {
        #[test]
        fn a_random_graph_is_found_again(
            n in 1u32..24, edges in prop::collection::vec((0u32..24, 0u32..24), 0..80), seed in any::<prop::sample::Index>(),
            number in numbers(24),
        ) {
            let graph = Graph::new(n, edges.into_iter().map(|(a, b)| (a % n, b % n)));
            let number: Vec<u32> = number.into_iter().filter(|&to| to < n).collect();
            let other = shuffled(&graph, &number);
            let Found::Relabelling(place) = isomorphism(&graph, &other, BUDGET) else { panic!("not found") };
            prop_assert!(graph.maps_onto(&other, &place));
            // One edge more or less is another graph.
            if graph.edges() > 0 {
                let all: Vec<(u32, u32)> = (0..n)
                    .flat_map(|a| other.neighbours(a).iter().map(move |&b| (a, b)).collect::<Vec<_>>())
                    .filter(|(a, b)| a < b)
                    .collect();
                let gone = seed.index(all.len());
                let fewer = all.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, &edge)| edge);
                prop_assert_eq!(isomorphism(&graph, &Graph::new(n, fewer), BUDGET), Found::Different);
            }
        }

        #[test]
        fn any_two_graphs_end_within_the_budget(
            n in 1u32..40, degree in 1u32..8, a in numbers(40), b in numbers(40), budget in 0u64..5000,
        ) {
            // Two regular graphs of the same degree: chords over a shuffled circle.
            let circle = |order: &[u32]| {
                let order: Vec<u32> = order.iter().copied().filter(|&v| v < n).collect();
                let edges: Vec<(u32, u32)> = (0..n)
                    .flat_map(|i| (1..=degree).map(move |by| (i, (i + by * by) % n)))
                    .map(|(i, j)| (order[i as usize], order[j as usize]))
                    .collect();
                Graph::new(n, edges)
            };
            let (first, second) = (circle(&a), circle(&b));
            match isomorphism(&first, &second, budget) {
                Found::Relabelling(place) => prop_assert!(first.maps_onto(&second, &place)),
                Found::Different => prop_assert!(false, "they are the same graph"),
                Found::GivenUp => {}
            }
        }
    }

    #[test]
    fn graphs_that_only_the_search_tells_apart() {
        // The 4x4 rook's graph and Shrikhande's: strongly regular with the same parameters, hence the same spectrum.
        let at = |x: i32, y: i32| (x.rem_euclid(4) + 4 * y.rem_euclid(4)) as u32;
        let all = || (0..4).flat_map(|x| (0..4).map(move |y| (x, y)));
        let rook =
            all().flat_map(|(x, y)| (1..4).flat_map(move |by| [(at(x, y), at(x + by, y)), (at(x, y), at(x, y + by))]));
        let shrikhande = all().flat_map(|(x, y)| [(1, 0), (0, 1), (1, 1)].map(|(i, j)| (at(x, y), at(x + i, y + j))));
        let (rook, shrikhande) = (Graph::new(16, rook), Graph::new(16, shrikhande));
        assert!(crate::topology::spectrum::same(
            &crate::topology::spectrum::of(&rook),
            &crate::topology::spectrum::of(&shrikhande)
        ));
        assert_eq!(isomorphism(&rook, &shrikhande, BUDGET), Found::Different);
    }

    #[test]
    fn large_and_symmetric_graphs_take_little_work() {
        for topology in Topology::catalogue(1024) {
            if matches!(topology, Topology::Tree { arity, .. } if arity > 4)
                || matches!(topology, Topology::AllToAll { .. })
            {
                continue;
            }
            if matches!(&topology, Topology::Mesh(mesh) if mesh.dimensions.len() > 5 && !mesh.is_hypercube()) {
                continue;
            }
            let graph = topology.graph();
            let number: Vec<u32> = (0..1024).map(|rank| rank * 389 % 1024).collect();
            let found = isomorphism(&shuffled(&graph, &number), &graph, BUDGET);
            assert!(matches!(found, Found::Relabelling(_)), "{topology}: {found:?}");
        }
    }
}
