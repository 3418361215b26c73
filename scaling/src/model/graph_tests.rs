//! Task graphs: their time, what they refuse.
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn scope(size: f64, processors: f64) -> Scope<'static> {
    let values = [("p_size", size), ("n_procs", processors), ("N", size), ("P", processors)];
    let values: BTreeMap<String, f64> = values.map(|(name, value)| (name.to_owned(), value)).into();
    Scope { values, type_bytes: 8.0, costs: None }
}

fn graph(file: &GraphFile) -> Result<Graph, ModelError> {
    Graph::new(Path::new("a.toml"), "strategy \"x\"", file)
}

fn node(name: &str, on: &str, operations: &str) -> NodeFile {
    NodeFile { name: name.into(), on: on.into(), operations: operations.into() }
}

fn arrow(from: &str, to: &str, items: &str) -> ArrowFile {
    ArrowFile { from: from.into(), to: to.into(), items: items.into(), routine: None }
}

fn figure_4() -> GraphFile {
    GraphFile {
        nodes: vec![
            node("CP1", "all", "2*N/P"),
            node("CP2", "0", "0"),
            node("CP3", "all", "2*N^2/P + 2*N/P"),
            node("CP4", "0", "P"),
            node("CP5", "all", "6*N/P"),
            node("CP6", "0", "P"),
            node("end", "all", "0"),
        ],
        arrows: vec![
            arrow("CP1", "CP2", "N/P"),
            arrow("CP2", "CP3", "N"),
            arrow("CP3", "CP4", "1"),
            arrow("CP4", "CP5", "1"),
            arrow("CP5", "CP6", "1"),
            arrow("CP6", "end", "1"),
        ],
    }
}

#[test]
fn figure_4_gives_formula_4_and_the_calls_of_section_2_3() {
    let graph = graph(&figure_4()).expect("the graph");
    assert!(graph.is_whole);
    assert_eq!(graph.derived.computation.to_string(), "(10*p_size + 2*p_size^2)/n_procs + 2*n_procs");
    assert_eq!(
        graph.derived.communication(),
        "comm_time += simple_collect(p_size*sizeof(TYPE)/n_procs);\n\
         comm_time += simple_bcast(p_size*sizeof(TYPE));\n\
         comm_time += (2) * simple_collect(sizeof(TYPE));\n\
         comm_time += (2) * simple_bcast(sizeof(TYPE));\n"
    );
    for (n, p) in [(64.0, 1.0), (512.0, 32.0)] {
        let formula_4 = (10.0 * n + 2.0 * n * n) / p + 2.0 * p;
        assert!((graph.longest(&scope(n, p)).expect("a value") / formula_4 - 1.0).abs() < 1e-12);
    }
}

#[test]
fn circles_and_unknown_ends_are_told() {
    let mut file = figure_4();
    file.arrows.push(arrow("CP5", "CP1", "1"));
    let told = graph(&file).expect_err("a circle").to_string();
    assert!(told.contains("CP1 -> CP2 -> CP3 -> CP4 -> CP5 -> CP1"), "{told}");
    file = figure_4();
    file.arrows.push(arrow("CP5", "CP9", "1"));
    assert!(graph(&file).expect_err("no such task").to_string().contains("CP9"));
    file = figure_4();
    file.nodes[0].operations = "2*N/".into();
    let told = graph(&file).expect_err("no formula").to_string();
    assert!(told.contains("operations of task CP1") && told.contains("^"), "{told}");
    file = figure_4();
    file.nodes[3].on = "7".into();
    let told = graph(&file).expect("reads").longest(&scope(64.0, 4.0)).expect_err("not there").to_string();
    assert!(told.contains("there are 4"), "{told}");
}

proptest! {
    #[test]
    fn longest_sum_is_that_of_going_through_all_processors(
        tasks in prop::collection::vec((0u32..3, 0u32..9, 0u32..9, 0u32..50), 1..12),
        p in 9u32..40,
    ) {
        let on = |kind: u32, a: u32, b: u32| match kind {
            0 => "all".to_owned(),
            1 => a.to_string(),
            _ => format!("{}..{}", a.min(b), a.max(b)),
        };
        let nodes = tasks.iter().enumerate();
        let nodes = nodes.map(|(i, &(kind, a, b, ops))| node(&i.to_string(), &on(kind, a, b), &ops.to_string()));
        let graph = graph(&GraphFile { nodes: nodes.collect(), arrows: Vec::new() }).expect("a graph");
        let sum = |processor: u32| -> u32 {
            let has = |&&(kind, a, b, _): &&(u32, u32, u32, u32)| match kind {
                0 => true,
                1 => processor == a,
                _ => (a.min(b)..a.max(b)).contains(&processor),
            };
            tasks.iter().filter(has).map(|task| task.3).sum()
        };
        let brute = (0..p).map(sum).max().unwrap_or(0);
        let longest = graph.longest(&scope(1.0, p.into())).expect("a value");
        prop_assert!((longest - f64::from(brute)).abs() < 1e-9, "{longest} {brute}");
        if graph.is_whole {
            let formula = single(&graph.derived.computation.to_string()).expect("a formula");
            prop_assert_eq!(evaluate(&formula, &scope(1.0, p.into())).expect("a value"), f64::from(brute));
        }
    }
}
