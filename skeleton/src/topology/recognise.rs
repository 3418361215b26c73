//! The decision tree (seed 002, section 2): which topologies remain after the simple tests, the spectrum test and the
//! isomorphism test, and which of those that are isomorphic the program's own numbering of its ranks means.
use super::graph::Graph;
use super::isomorphism::{BUDGET, Found, isomorphism};
use super::layers::{by_traffic, layers, unlike};
use super::matrix::{Matrix, Measure, Significant};
use super::shapes::Topology;
use super::spectrum;
use serde::Serialize;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::time::Instant;

/// More ranks than this are not looked at.
pub const MOST_RANKS: u32 = 4096;
/// Of more ranks than this the eigenvalues are not computed: that takes the third power of their number.
pub const MOST_SPECTRUM: usize = 2048;

/// A test of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Number of ranks, number of edges, degrees.
    Simple,
    /// Eigenvalues.
    Spectrum,
    /// Isomorphism.
    Isomorphism,
}

/// What remained after a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// The test.
    pub test: Test,
    /// The topologies, in words.
    pub remaining: Vec<String>,
}

/// A topology, and where in it each rank lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// The topology.
    pub topology: Topology,
    /// How many there are of it beside each other.
    pub copies: u32,
    /// For each rank its position, plus the number of its copy times the number of positions; none if it has no
    /// significant partner.
    pub position: Vec<Option<u32>>,
    /// Whether ranks are numbered as their positions are.
    pub natural: bool,
}

/// What was recognised in a communication matrix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recognition {
    /// Ranks.
    pub ranks: u32,
    /// By which measure pairs are significant.
    pub measure: Measure,
    /// Significant pairs.
    pub pairs: u64,
    /// Pairs with messages that are not significant.
    pub rare: u64,
    /// Significant pairs of which only one rank sends.
    pub one_way: u64,
    /// Ranks without a significant partner.
    pub alone: u32,
    /// Connected components of the other ranks.
    pub components: u32,
    /// The tests, of one component.
    pub stages: Vec<Stage>,
    /// The topology in words, as `16x8 grid`.
    pub name: Option<String>,
    /// The topology, if one was recognised.
    pub topology: Option<Placed>,
    /// Other topologies with the same graph, in words.
    pub isomorphic: Vec<String>,
    /// Why none was recognised.
    pub reason: Option<String>,
    /// Time of the tests in seconds.
    pub seconds: f64,
}

/// Recognises the topology of a matrix: by the first [`Measure`] of significant pairs whose graph is one. After the first
/// measure a topology must hold at least half of the ranks.
pub fn recognise(matrix: &Matrix) -> Recognition {
    let begun = Instant::now();
    let mut tried: Vec<Graph> = Vec::new();
    let mut first = None;
    let whole = [Measure::Both, Measure::Bytes, Measure::Messages].into_iter();
    let whole = whole.map(|measure| (measure, matrix.significant(measure)));
    let parts = std::iter::once_with(|| matrix.strongest()).flatten().map(|part| (Measure::Most, part));
    for (measure, significant) in whole.chain(parts) {
        if tried.contains(&significant.graph) {
            continue;
        }
        let mut recognition = by(matrix, measure, &significant);
        recognition.seconds = begun.elapsed().as_secs_f64();
        let holds = measure == Measure::Both || 2 * recognition.alone <= recognition.ranks;
        if recognition.topology.is_some() && holds {
            return recognition;
        }
        tried.push(significant.graph);
        first.get_or_insert(recognition);
    }
    let mut unknown = first.expect("one measure is always tried");
    unknown.seconds = begun.elapsed().as_secs_f64();
    unknown
}

fn by(matrix: &Matrix, measure: Measure, significant: &Significant) -> Recognition {
    let graph = &significant.graph;
    let components: Vec<Vec<u32>> = graph.components().into_iter().filter(|c| c.len() > 1).collect();
    let linked: usize = components.iter().map(Vec::len).sum();
    let mut recognition = Recognition {
        ranks: matrix.ranks(),
        measure,
        pairs: graph.edges() as u64,
        rare: significant.rare,
        one_way: significant.one_way,
        alone: matrix.ranks() - linked as u32,
        components: components.len() as u32,
        stages: Vec::new(),
        name: None,
        topology: None,
        isomorphic: Vec::new(),
        reason: None,
        seconds: 0.0,
    };
    match place(matrix, graph, &components, &mut recognition.stages) {
        Ok((placed, others)) => {
            let copies = |name: String| match placed.copies {
                1 => name,
                copies => format!("{copies} times {name}"),
            };
            recognition.name = Some(copies(placed.topology.to_string()));
            recognition.isomorphic = others;
            recognition.topology = Some(placed);
        }
        Err(reason) => recognition.reason = Some(reason),
    }
    recognition
}

/// The topology of all components, which must be equal, with the names of others that have the same graph.
fn place(
    matrix: &Matrix,
    graph: &Graph,
    components: &[Vec<u32>],
    stages: &mut Vec<Stage>,
) -> Result<(Placed, Vec<String>), String> {
    let Some(one) = components.first() else {
        return Err("no two ranks exchange messages".into());
    };
    if matrix.ranks() > MOST_RANKS {
        return Err(format!("it has {} ranks, and at most {MOST_RANKS} are looked at", matrix.ranks()));
    }
    let part = graph.of(one);
    let mut maps: Vec<(Graph, Vec<u32>)> = Vec::with_capacity(components.len());
    for component in components {
        let other = graph.of(component);
        let same = if other == part { Some((0..one.len() as u32).collect()) } else { None };
        let same = same.or_else(|| match isomorphism(&other, &part, BUDGET) {
            Found::Relabelling(map) => Some(map),
            Found::Different | Found::GivenUp => None,
        });
        let Some(map) = same else {
            let mut sizes: Vec<String> = components.iter().map(|component| component.len().to_string()).collect();
            sizes.truncate(8);
            return Err(format!(
                "the ranks fall into {} groups that are not alike, of {}{} ranks",
                components.len(),
                sizes.join(", "),
                if components.len() > 8 { ", ..." } else { "" }
            ));
        };
        maps.push((other, map));
    }
    let found = decide(&part, &|| layers(matrix, &part, one), stages)?;
    let choices = found.iter().map(|Match { topology, position: own, by }| {
        let labelled = topology.graph();
        let mut position = vec![None; graph.vertices()];
        for ((component, (other, map)), copy) in components.iter().zip(&maps).zip(0..) {
            // A copy that is numbered as the topology is keeps its numbers, whatever leads to the first copy.
            let direct = *by == By::Numbering && *other == labelled;
            for (i, &rank) in component.iter().enumerate() {
                let at = if direct { i as u32 } else { own[map[i] as usize] };
                position[rank as usize] = Some(copy * one.len() as u32 + at);
            }
        }
        let (copies, natural) = (components.len() as u32, *by == By::Numbering);
        (*by, Placed { topology: topology.clone(), copies, position, natural })
    });
    // The program's own numbering says most, then its traffic, then how alike the traffic of each direction is; then the
    // order of the catalogue, whose first ones have the most dimensions: their labels mean the same whichever isomorphism
    // was found.
    let key = |(by, placed): &(By, Placed)| {
        let (kinds, directions) = unlike(matrix, placed);
        (*by, kinds, if placed.natural { directions } else { 0 })
    };
    let (_, chosen) = choices.min_by_key(key).ok_or("no known topology passes the isomorphism test")?;
    let name = chosen.topology.to_string();
    if let Some(stage) = stages.last_mut() {
        stage.remaining.sort_by_key(|other| *other != name);
    }
    let others: BTreeSet<String> = found.iter().map(|found| found.topology.to_string()).collect();
    Ok((chosen, others.into_iter().filter(|other| *other != name).collect()))
}

/// How a relabelling was found; the first ones are preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    /// The ranks have the numbers of their positions.
    Numbering,
    /// Each dimension has traffic of its own kind.
    Traffic,
    /// Any isomorphism.
    Graph,
}

/// A topology with the graph in question, and the position of each vertex.
struct Match {
    topology: Topology,
    position: Vec<u32>,
    by: By,
}

/// The three tests: the topologies with this graph. `layers` gives its edges by their traffic.
fn decide(graph: &Graph, layers: &dyn Fn() -> Vec<Vec<Graph>>, stages: &mut Vec<Stage>) -> Result<Vec<Match>, String> {
    let degrees = graph.degrees();
    let mut stage = |test, candidates: &[Topology]| {
        stages.push(Stage { test, remaining: candidates.iter().map(Topology::to_string).collect() });
    };
    let mut candidates = Topology::catalogue(graph.vertices() as u32);
    candidates.retain(|topology| topology.may_have(graph.edges()) && topology.degrees() == degrees);
    stage(Test::Simple, &candidates);
    if !candidates.is_empty() && graph.vertices() <= MOST_SPECTRUM {
        let own = spectrum::of(graph);
        candidates.retain(|topology| spectrum::same(&topology.spectrum(), &own));
    }
    stage(Test::Spectrum, &candidates);
    let layered_by = OnceCell::new();
    let (mut found, mut given_up) = (Vec::new(), false);
    for topology in candidates {
        let identity: Vec<u32> = (0..graph.vertices() as u32).collect();
        let natural = topology.numberings().into_iter().find(|numbering| numbering.graph() == *graph);
        if let Some(numbering) = natural {
            found.push(Match { topology: numbering, position: identity, by: By::Numbering });
            continue;
        }
        if let Some(position) = layered_by.get_or_init(layers).iter().find_map(|layers| by_traffic(&topology, layers)) {
            found.push(Match { topology, position, by: By::Traffic });
            continue;
        }
        match isomorphism(graph, &topology.graph(), BUDGET) {
            Found::Relabelling(position) => found.push(Match { topology, position, by: By::Graph }),
            Found::Different => {}
            Found::GivenUp => given_up = true,
        }
    }
    stage(Test::Isomorphism, &found.iter().map(|found| found.topology.clone()).collect::<Vec<_>>());
    if found.is_empty() {
        let (least, most) = (degrees.first().unwrap_or(&0), degrees.last().unwrap_or(&0));
        return Err(format!(
            "no known topology of {} ranks has its {} pairs ({least} to {most} a rank){}",
            graph.vertices(),
            graph.edges(),
            if given_up { "; the search for one was given up" } else { "" }
        ));
    }
    Ok(found)
}

impl Placed {
    /// The rank at each position.
    pub fn ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; (self.copies * self.topology.positions()) as usize];
        for (rank, position) in self.position.iter().enumerate() {
            if let Some(position) = position {
                ranks[*position as usize] = rank as u32;
            }
        }
        ranks
    }
}

impl Recognition {
    /// What was recognised, in a few lines.
    pub fn words(&self) -> String {
        let mut lines = Vec::new();
        match (&self.name, &self.topology) {
            (Some(name), Some(placed)) => {
                let natural = if placed.natural { "numbered in its order" } else { "ranks relabelled" };
                lines.push(format!("{name} ({natural}), {} pairs of {} ranks", self.pairs, self.ranks));
                if !self.isomorphic.is_empty() {
                    lines.push(format!("the same graph is that of: {}", self.isomorphic.join(", ")));
                }
            }
            _ => lines.push(format!("no topology: {}", self.reason.as_deref().unwrap_or("none was recognised"))),
        }
        for stage in &self.stages {
            let test = match stage.test {
                Test::Simple => "simple tests",
                Test::Spectrum => "spectrum",
                Test::Isomorphism => "isomorphism",
            };
            let none = stage.remaining.is_empty();
            lines.push(format!("after {test}: {}", if none { "none".into() } else { stage.remaining.join(", ") }));
        }
        if self.alone > 0 && self.components > 0 {
            lines.push(format!("{} ranks have no significant partner", self.alone));
        }
        if self.one_way > 0 {
            lines.push(format!("in {} of the pairs messages go one way only", self.one_way));
        }
        if self.rare > 0 {
            let what = match self.measure {
                Measure::Both => "few messages or bytes",
                Measure::Bytes => "few messages, or a small part of the bytes,",
                Measure::Messages => "few messages",
                Measure::Most => "less traffic",
            };
            lines.push(format!("{} pairs with {what} are left out of it", self.rare));
        }
        lines.join("\n")
    }
}
