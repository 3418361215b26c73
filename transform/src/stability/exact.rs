//! The distance of two small graphs as it is defined (seed 000, section 3.2.3): by their largest common induced subgraph,
//! found by search. A vertex may only stand for one of the same task and symbol, and of any two vertices the order must be
//! the same in both graphs. What is found is a common subsequence of each task, so the distance by longest common
//! subsequences is never above this one.
use std::collections::HashMap;

/// The most vertices of a graph.
pub const MOST: usize = 64;

/// A small execution graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    labels: Vec<u64>,
    /// For each vertex, those before it, as bits.
    before: Vec<u64>,
}

impl Graph {
    /// A graph of vertices with these labels (task and symbol), ordered by these edges and what follows from them. None
    /// if there are too many vertices, an edge names one that is not there, or edges form a circle.
    pub fn new(labels: Vec<u64>, edges: &[(usize, usize)]) -> Option<Graph> {
        let n = labels.len();
        if n > MOST || edges.iter().any(|&(from, to)| from >= n || to >= n) {
            return None;
        }
        let mut before = vec![0u64; n];
        edges.iter().for_each(|&(from, to)| before[to] |= 1 << from);
        // Each round adds at least one vertex to a set, or is the last.
        loop {
            let mut grown = false;
            for vertex in 0..n {
                let all = bits(before[vertex]).fold(before[vertex], |all, earlier| all | before[earlier]);
                grown |= all != before[vertex];
                before[vertex] = all;
            }
            if !grown {
                break;
            }
        }
        let circle = before.iter().enumerate().any(|(vertex, set)| set >> vertex & 1 == 1);
        (!circle).then_some(Graph { labels, before })
    }

    /// Its vertices.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Whether one vertex is before another.
    pub fn precedes(&self, a: usize, b: usize) -> bool {
        self.before[b] >> a & 1 == 1
    }
}

fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = set.trailing_zeros() as usize;
        (set != 0).then(|| {
            set &= set - 1;
            next
        })
    })
}

/// Vertices of the largest common induced subgraph; none if it takes more than `steps` steps of the search to know.
pub fn similarity(a: &Graph, b: &Graph, steps: u64) -> Option<usize> {
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    b.labels.iter().enumerate().for_each(|(at, label)| places.entry(*label).or_default().push(at));
    // Vertices that nothing can stand for are left out. Those with few choices come first.
    let choices = |vertex: &usize| places.get(&a.labels[*vertex]).map_or(0, Vec::len);
    let mut order: Vec<usize> = (0..a.len()).filter(|vertex| choices(vertex) > 0).collect();
    order.sort_by_key(choices);
    // For each position, how many of the vertices from there on could be mapped at most.
    let mut counts: HashMap<u64, usize> = HashMap::new();
    let mut most = vec![0; order.len() + 1];
    for (position, &vertex) in order.iter().enumerate().rev() {
        let count = counts.entry(a.labels[vertex]).or_default();
        *count += 1;
        let within = *count <= choices(&vertex);
        most[position] = most[position + 1] + usize::from(within);
    }
    let mut search = Search { a, b, places: &places, order: &order, most: &most, mapped: Vec::new(), best: 0, steps };
    search.from(0, 0).then_some(search.best)
}

struct Search<'a> {
    a: &'a Graph,
    b: &'a Graph,
    places: &'a HashMap<u64, Vec<usize>>,
    order: &'a [usize],
    most: &'a [usize],
    mapped: Vec<(usize, usize)>,
    best: usize,
    steps: u64,
}

impl Search<'_> {
    /// Searches on from a position, with these vertices of `b` in use; false if it was given up.
    fn from(&mut self, position: usize, used: u64) -> bool {
        self.best = self.best.max(self.mapped.len());
        if self.mapped.len() + self.most[position] <= self.best {
            return true;
        }
        if self.steps == 0 {
            return false;
        }
        self.steps -= 1;
        let vertex = self.order[position];
        for &image in &self.places[&self.a.labels[vertex]] {
            let fits = |&(x, y): &(usize, usize)| {
                self.a.precedes(x, vertex) == self.b.precedes(y, image)
                    && self.a.precedes(vertex, x) == self.b.precedes(image, y)
            };
            if used >> image & 1 == 0 && self.mapped.iter().all(fits) {
                self.mapped.push((vertex, image));
                let searched = self.from(position + 1, used | 1 << image);
                self.mapped.pop();
                if !searched {
                    return false;
                }
            }
        }
        self.from(position + 1, used)
    }
}

/// The distance of two graphs by search: n - s, with n the vertices of the longer of each two tasks.
pub fn distance(a: &Graph, b: &Graph, events: u64, steps: u64) -> Option<u64> {
    let found = similarity(a, b, steps)? as u64;
    Some(events - super::compare::similarity(found, events, !a.is_empty() && !b.is_empty()))
}
