//! Undirected graphs without loops: neighbours in ascending order.

/// An undirected graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    neighbours: Vec<Vec<u32>>,
    edges: usize,
}

impl Graph {
    /// A graph with these edges; loops and repeated edges are left out.
    ///
    /// # Panics
    /// If an edge ends at a vertex that does not exist.
    pub fn new(vertices: u32, edges: impl IntoIterator<Item = (u32, u32)>) -> Graph {
        let mut neighbours = vec![Vec::new(); vertices as usize];
        for (a, b) in edges.into_iter().filter(|(a, b)| a != b) {
            neighbours[a as usize].push(b);
            neighbours[b as usize].push(a);
        }
        for row in &mut neighbours {
            row.sort_unstable();
            row.dedup();
        }
        let edges = neighbours.iter().map(Vec::len).sum::<usize>() / 2;
        Graph { neighbours, edges }
    }

    /// Vertices.
    pub fn vertices(&self) -> usize {
        self.neighbours.len()
    }

    /// Edges.
    pub fn edges(&self) -> usize {
        self.edges
    }

    /// The neighbours of a vertex, ascending.
    pub fn neighbours(&self, vertex: u32) -> &[u32] {
        &self.neighbours[vertex as usize]
    }

    /// Whether two vertices are neighbours.
    pub fn joined(&self, a: u32, b: u32) -> bool {
        self.neighbours[a as usize].binary_search(&b).is_ok()
    }

    /// The degrees of all vertices, ascending.
    pub fn degrees(&self) -> Vec<u32> {
        let mut degrees: Vec<u32> = self.neighbours.iter().map(|row| row.len() as u32).collect();
        degrees.sort_unstable();
        degrees
    }

    /// The connected components, by their least vertices; each ascending.
    pub fn components(&self) -> Vec<Vec<u32>> {
        let mut seen = vec![false; self.vertices()];
        let mut components = Vec::new();
        for start in 0..self.vertices() as u32 {
            if std::mem::replace(&mut seen[start as usize], true) {
                continue;
            }
            let (mut component, mut at) = (vec![start], 0);
            while let Some(&vertex) = component.get(at) {
                at += 1;
                for &next in self.neighbours(vertex) {
                    if !std::mem::replace(&mut seen[next as usize], true) {
                        component.push(next);
                    }
                }
            }
            component.sort_unstable();
            components.push(component);
        }
        components
    }

    /// The graph of some vertices and the edges between them; vertex i is the i-th of them, which are to be ascending.
    #[must_use]
    pub fn of(&self, vertices: &[u32]) -> Graph {
        let row = |&vertex: &u32| {
            let places = self.neighbours(vertex).iter().filter_map(|next| vertices.binary_search(next).ok());
            places.map(|place| place as u32).collect()
        };
        let neighbours: Vec<Vec<u32>> = vertices.iter().map(row).collect();
        let edges = neighbours.iter().map(Vec::len).sum::<usize>() / 2;
        Graph { neighbours, edges }
    }

    /// Whether `place` (of each vertex here, one there) maps this graph onto the other.
    pub fn maps_onto(&self, other: &Graph, place: &[u32]) -> bool {
        let mut taken = vec![false; other.vertices()];
        let fresh = |&to: &u32| taken.get_mut(to as usize).is_some_and(|taken| !std::mem::replace(taken, true));
        place.len() == self.vertices()
            && self.vertices() == other.vertices()
            && self.edges == other.edges
            && place.iter().all(fresh)
            && (0..self.vertices() as u32).all(|a| {
                self.neighbours(a).iter().all(|&b| a > b || other.joined(place[a as usize], place[b as usize]))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_and_degrees() {
        let graph = Graph::new(7, [(0, 2), (2, 4), (4, 0), (1, 3), (0, 2), (5, 5)]);
        assert_eq!((graph.edges(), graph.degrees()), (4, vec![0, 0, 1, 1, 2, 2, 2]));
        assert_eq!(graph.components(), [vec![0, 2, 4], vec![1, 3], vec![5], vec![6]]);
        let triangle = graph.of(&[0, 2, 4]);
        assert_eq!((triangle.edges(), triangle.vertices()), (3, 3));
        assert!(triangle.maps_onto(&Graph::new(3, [(0, 1), (1, 2), (0, 2)]), &[2, 0, 1]));
        assert!(!triangle.maps_onto(&Graph::new(3, [(0, 1), (1, 2), (0, 2)]), &[2, 0, 0]));
        assert!(!graph.maps_onto(&Graph::new(7, [(0, 1)]), &[0, 1, 2, 3, 4, 5, 6]));
    }
}
