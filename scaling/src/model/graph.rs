//! Task graphs (seed 001, sections 2.1 to 2.4 and Figure 4): tasks with their operations, mapped to processors, and
//! arrows with the data items that they carry. The computation of a program is the longest sum of the operations of the
//! tasks of any one processor; its communication is that of its arrows, one after the other.
use super::error::{Fault, ModelError, Source};
use super::formula::{Expression, Scope, evaluate, single};
use super::loops::Derived;
use super::sums::Sum;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The most tasks or arrows.
const MAX_ITEMS: usize = 4096;

/// A task graph as it stands in a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphFile {
    /// The tasks.
    pub nodes: Vec<NodeFile>,
    /// What goes from one to another.
    #[serde(default)]
    pub arrows: Vec<ArrowFile>,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeFile {
    /// Its name.
    pub name: String,
    /// Its processors: `all`, one (`0`), or from one to before another (`0..n_procs/2`).
    #[serde(default = "everywhere")]
    pub on: String,
    /// Its operations on each of them.
    #[serde(default = "nothing")]
    pub operations: String,
}

/// Data that go from the processors of one task to those of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrowFile {
    /// The task that sends.
    pub from: String,
    /// The task that receives.
    pub to: String,
    /// Items of `TYPE` in each message.
    #[serde(default = "nothing")]
    pub items: String,
    /// The routine of the communication library that carries them, if it is not the simple one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routine: Option<String>,
}

fn everywhere() -> String {
    "all".into()
}

fn nothing() -> String {
    "0".into()
}

/// A task graph whose formulae are read.
#[derive(Clone, Debug)]
pub struct Graph {
    nodes: Vec<Node>,
    /// Its formulae, as far as they can be written: none where tasks lie on ranges of processors.
    pub derived: Derived,
    /// Whether `derived.computation` is the longest sum.
    pub is_whole: bool,
}

#[derive(Clone, Debug)]
struct Node {
    on: On,
    operations: Expression,
    source: Source,
}

#[derive(Clone, Debug)]
enum On {
    All,
    One(Expression),
    Range(Expression, Expression),
}

impl Graph {
    /// Reads the formulae of a task graph and puts its tasks in order.
    ///
    /// # Errors
    /// If a formula cannot be read, a task is unknown or named twice, tasks wait for one another in a circle, or it is not
    /// clear how an arrow's data travel.
    pub fn new(path: &Path, of: &str, file: &GraphFile) -> Result<Graph, ModelError> {
        let wrong = |what: String| ModelError::Graph { path: path.to_owned(), of: of.to_owned(), what };
        if file.nodes.len() > MAX_ITEMS || file.arrows.len() > MAX_ITEMS {
            return Err(wrong(format!("a task graph has at most {MAX_ITEMS} nodes and arrows")));
        }
        let source = |what: String, text: &str| Source {
            path: path.to_owned(),
            text: text.to_owned(),
            offset: 0,
            of: format!("{of}, {what}"),
        };
        let read = |what: String, text: &str| {
            let source = source(what, text);
            single(text).map(|formula| (formula, source.clone())).map_err(|fault| source.error(&fault))
        };
        let mut nodes = Vec::new();
        for (at, node) in file.nodes.iter().enumerate() {
            if file.nodes[..at].iter().any(|other| other.name == node.name) {
                return Err(wrong(format!("two tasks are named {}. Rename one", node.name)));
            }
            let on = match node.on.split_once("..") {
                _ if node.on.trim() == "all" => On::All,
                Some((from, to)) => On::Range(
                    read(format!("processors of task {}", node.name), from)?.0,
                    read(format!("processors of task {}", node.name), to)?.0,
                ),
                None => On::One(read(format!("processors of task {}", node.name), &node.on)?.0),
            };
            let (operations, source) = read(format!("operations of task {}", node.name), &node.operations)?;
            nodes.push(Node { on, operations, source });
        }
        ordered(file).map_err(wrong)?;
        let mut graph = Graph { nodes, derived: Derived::default(), is_whole: false };
        for arrow in &file.arrows {
            let end = |name: &str| file.nodes.iter().position(|node| node.name == name).map(|at| &graph.nodes[at].on);
            let (Some(from), Some(to)) = (end(&arrow.from), end(&arrow.to)) else {
                return Err(wrong(format!(
                    "the arrow from {} to {} has an end that is no task. Add it",
                    arrow.from, arrow.to
                )));
            };
            let what = format!("items from {} to {}", arrow.from, arrow.to);
            let (items, place) = read(what, &arrow.items)?;
            let sum = |expression: &Expression| {
                Sum::of(expression, &named).ok_or_else(|| place.error(&Fault::new(0..0, "this divides by 0. Mend it")))
            };
            let bytes = sum(&items)?.times(&Sum::name("sizeof(TYPE)"));
            let count = |low: &Expression, high: &Expression| {
                Ok::<Sum, ModelError>(sum(high)?.plus(&sum(low)?.times(&Sum::number(-1.0))))
            };
            let mut messages = None;
            let routine = match (&arrow.routine, from, to) {
                (Some(routine), ..) => routine.clone(),
                (None, On::All, On::One(_)) => "simple_collect".into(),
                (None, On::One(_), On::All) => "simple_bcast".into(),
                (None, On::All, On::All) => continue,
                (None, On::One(a), On::One(b)) if sum(a)? == sum(b)? => continue,
                (None, On::One(_), On::One(_)) => "message".into(),
                (None, On::Range(a, b), On::Range(c, d)) if sum(a)? == sum(c)? && sum(b)? == sum(d)? => continue,
                (None, On::Range(low, high), On::One(_)) => {
                    messages = Some(count(low, high)?);
                    "fan_in".into()
                }
                (None, On::One(_), On::Range(low, high)) => {
                    messages = Some(count(low, high)?);
                    "fan_out".into()
                }
                _ => {
                    return Err(wrong(format!(
                        "how data go from {} to {} is not clear from their processors. Give the arrow a `routine`",
                        arrow.from, arrow.to
                    )));
                }
            };
            let bytes = (routine != "barrier").then_some(bytes);
            graph.derived.call(&routine, messages.into_iter().chain(bytes).collect(), Sum::number(1.0));
        }
        graph.longest_formula();
        Ok(graph)
    }

    /// The longest sum as a formula: that of the one processor which has tasks besides those of all.
    fn longest_formula(&mut self) {
        let mut one: Option<Sum> = None;
        let mut longest = Sum::default();
        for node in &self.nodes {
            let Some(operations) = Sum::of(&node.operations, &named) else { return };
            if !operations.is_nonnegative() {
                return;
            }
            match &node.on {
                On::All => {}
                On::One(processor) => {
                    let Some(processor) = Sum::of(processor, &named) else { return };
                    if *one.get_or_insert_with(|| processor.clone()) != processor {
                        return;
                    }
                }
                On::Range(..) => return,
            }
            longest = longest.plus(&operations);
        }
        self.derived.computation = longest;
        self.is_whole = true;
    }

    /// The longest sum of operations of one processor.
    ///
    /// # Errors
    /// If a formula has no value, or a task lies on processors that are not there.
    pub fn longest(&self, scope: &Scope) -> Result<f64, ModelError> {
        let processors = scope.values.get("n_procs").copied().unwrap_or(1.0);
        let mut everywhere = 0.0;
        // Where the sum of the tasks on ranges changes, and by how much.
        let mut changes: Vec<(f64, f64)> = Vec::new();
        for node in &self.nodes {
            let value =
                |expression: &Expression| evaluate(expression, scope).map_err(|fault| node.source.error(&fault));
            let operations = value(&node.operations)?;
            let (from, to) = match &node.on {
                On::All => {
                    everywhere += operations;
                    continue;
                }
                On::One(processor) => (value(processor)?.floor(), value(processor)?.floor() + 1.0),
                On::Range(from, to) => (value(from)?.floor(), value(to)?.floor()),
            };
            if from < 0.0 || to > processors {
                let what = format!(
                    "it lies on processors {from} to {}, and there are {processors}. Use n_procs in its place",
                    to - 1.0
                );
                return Err(node.source.error(&Fault::new(0..node.source.text.len(), what)));
            }
            if from < to {
                changes.push((from, operations));
                changes.push((to, -operations));
            }
        }
        changes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut sum, mut most) = (0.0f64, 0.0f64);
        for (at, (place, change)) in changes.iter().enumerate() {
            sum += change;
            if changes.get(at + 1).is_none_or(|next| next.0 > *place) {
                most = most.max(sum);
            }
        }
        Ok(everywhere + most)
    }
}

/// The seed's task graphs name the size N and the processors P.
fn named(name: &str) -> Option<Sum> {
    match name {
        "N" => Some(Sum::name("p_size")),
        "P" => Some(Sum::name("n_procs")),
        _ => None,
    }
}

/// Whether the tasks can be put in an order in which each comes after those whose data it needs; else a circle of them.
fn ordered(file: &GraphFile) -> Result<(), String> {
    let at = |name: &str| file.nodes.iter().position(|node| node.name == name);
    let ends: Vec<(usize, usize)> =
        file.arrows.iter().filter_map(|arrow| Some((at(&arrow.from)?, at(&arrow.to)?))).collect();
    let mut waits = vec![0usize; file.nodes.len()];
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); file.nodes.len()];
    for &(from, to) in &ends {
        waits[to] += 1;
        next[from].push(to);
    }
    let mut ready: Vec<usize> = (0..waits.len()).filter(|&node| waits[node] == 0).collect();
    while let Some(node) = ready.pop() {
        for &after in &next[node] {
            waits[after] -= 1;
            if waits[after] == 0 {
                ready.push(after);
            }
        }
    }
    let Some(start) = (0..waits.len()).find(|&node| waits[node] > 0) else { return Ok(()) };
    // Each task that is left waits for one that is left: going back along them comes to a circle.
    let before = |node: usize| ends.iter().find(|&&(from, to)| to == node && waits[from] > 0).map(|&(from, _)| from);
    let mut seen = vec![start];
    loop {
        let Some(node) = seen.last().and_then(|&node| before(node)) else {
            return Err("its tasks wait for one another".into());
        };
        if let Some(first) = seen.iter().position(|&other| other == node) {
            let mut circle: Vec<&str> = seen[first..].iter().map(|&node| file.nodes[node].name.as_str()).collect();
            circle.push(&file.nodes[node].name);
            circle.reverse();
            return Err(format!(
                "its tasks wait for one another in a circle: {}. Turn or remove an arrow",
                circle.join(" -> ")
            ));
        }
        seen.push(node);
    }
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
