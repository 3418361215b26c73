//! Kinds of traffic as dimensions: a graph alone does not always tell along which dimension of a topology two ranks are
//! neighbours, what they send does.
use super::graph::Graph;
use super::isomorphism::{BUDGET, Found, layered};
use super::matrix::{Matrix, Traffic};
use super::mesh::{Links, Mesh};
use super::recognise::Placed;
use super::shapes::Topology;
use std::collections::{BTreeMap, BTreeSet};

/// Kinds of traffic that are looked for as dimensions.
const MOST_LAYERS: usize = 5;

/// The edges of a component by their usual traffic: by what it is exactly, and by its kind; without those ways that tell too
/// few or too many apart.
pub(super) fn layers(matrix: &Matrix, part: &Graph, ranks: &[u32]) -> Vec<Vec<Graph>> {
    let n = part.vertices() as u32;
    let edges = || (0..n).flat_map(|a| part.neighbours(a).iter().filter(move |&&b| a < b).map(move |&b| (a, b)));
    let by = |kind: &dyn Fn(Traffic) -> (u64, u64)| {
        let mut layers: BTreeMap<_, Vec<(u32, u32)>> = BTreeMap::new();
        for (a, b) in edges() {
            let usual = matrix.usual(ranks[a as usize], ranks[b as usize]);
            layers.entry(kind(usual)).or_default().push((a, b));
            if layers.len() > MOST_LAYERS {
                return None;
            }
        }
        (layers.len() > 1).then(|| layers.into_values().map(|edges| Graph::new(n, edges)).collect())
    };
    let exact = by(&|traffic| (traffic.bytes, traffic.messages));
    let like = by(&|traffic| {
        let (bytes, messages) = traffic.kind();
        (u64::from(bytes), u64::from(messages))
    });
    exact.into_iter().chain(like).collect()
}

/// A relabelling that takes each kind of traffic to a dimension of its own, where there is one. A ring of four is two by two, so
/// that the graph alone does not tell along which of several dimensions a program means its neighbours to lie.
pub(super) fn by_traffic(topology: &Topology, layers: &[Graph]) -> Option<Vec<u32>> {
    let Topology::Mesh(mesh) = topology else { return None };
    if mesh.links != Links::Axes || mesh.dimensions.len() != layers.len() {
        return None;
    }
    // The dimensions in each order, as the layers are to be.
    let along = |mesh: &Mesh, at: usize| {
        let step: Vec<i32> = (0..mesh.dimensions.len()).map(|i| i32::from(i == at)).collect();
        let edges = (0..mesh.positions()).filter_map(|from| Some((from, mesh.moved(from, &step)?)));
        Graph::new(mesh.positions(), edges.collect::<Vec<_>>())
    };
    let own: Vec<Graph> = (0..layers.len()).map(|at| along(mesh, at)).collect();
    let mut orders = vec![Vec::new()];
    for layer in layers {
        let longer = |order: Vec<usize>| {
            let fits = |at: &usize| !order.contains(at) && own[*at].edges() == layer.edges();
            let all: Vec<usize> = (0..own.len()).filter(fits).collect();
            all.into_iter().map(move |at| order.iter().copied().chain([at]).collect::<Vec<_>>())
        };
        orders = orders.into_iter().flat_map(longer).collect();
    }
    orders.into_iter().find_map(|order| {
        let wanted: Vec<Graph> = order.iter().map(|&at| own[at].clone()).collect();
        match layered(layers, &wanted, BUDGET / 30) {
            Found::Relabelling(position) => Some(position),
            Found::Different | Found::GivenUp => None,
        }
    })
}

/// Into how many kinds of traffic the directions of a topology fall, and how many directions there are.
pub(super) fn unlike(matrix: &Matrix, placed: &Placed) -> (usize, usize) {
    let ranks = placed.ranks();
    let directions = placed.topology.directions();
    let mut kinds = 0;
    for (_, peers) in &directions {
        let mut seen = BTreeSet::new();
        for copy in 0..placed.copies as usize {
            for (at, to) in peers.iter().enumerate() {
                let rank = |at: usize| ranks[copy * peers.len() + at];
                if let Some(to) = to {
                    seen.insert(matrix.sent(rank(at), rank(*to as usize)).kind());
                }
            }
        }
        kinds += seen.len();
    }
    (kinds, directions.len())
}
