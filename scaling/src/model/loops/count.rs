//! Counting a LOOP program's operations by running its loops one by one: what the derived formulae are checked against.
use super::derive::{SCALAR_PRODUCT, derive, meaning};
use super::{Argument, Item, communicates};
use crate::model::error::Fault;
use crate::model::formula::{Scope, evaluate, single};

/// Operations of one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counted {
    /// In loops over data, scalar products and sums.
    pub computation: f64,
    /// On scalars.
    pub scalars: f64,
    /// Calls that communicate.
    pub calls: f64,
}

/// Counts by running every loop of a program; `scope` has its names besides those of the language. Meant for small sizes:
/// it takes as long as there are iterations.
///
/// # Errors
/// As [`derive`], and if a name is unknown.
pub(super) fn count(items: &[Item], scope: &Scope) -> Result<Counted, Fault> {
    derive(items)?;
    let mut scope = scope.clone();
    for name in ["psize", "psize_node", "nprocs"] {
        let meant = meaning(name).unwrap_or_default().to_string();
        let value = evaluate(&single(&meant)?, &scope)?;
        scope.values.insert(name.to_owned(), value);
    }
    let mut counted = Counted::default();
    run(items, &scope, false, &mut counted)?;
    Ok(counted)
}

fn run(items: &[Item], scope: &Scope, over_data: bool, counted: &mut Counted) -> Result<(), Fault> {
    for item in items {
        match item {
            Item::Loop { count, body, .. } => {
                let times = count.as_ref().map_or_else(
                    || scope.values.get("p_size").copied().ok_or_else(|| Fault::new(0..0, "p_size is not given")),
                    |count| evaluate(count, scope),
                )?;
                let data = over_data || !communicates(body);
                for _ in 0..times as u64 {
                    run(body, scope, data, counted)?;
                }
            }
            Item::Store { assign, value, .. } => {
                let operations = Item::store_operations(*assign, value) as f64;
                *(if over_data { &mut counted.computation } else { &mut counted.scalars }) += operations;
            }
            Item::Routine { name, arguments, .. } if name == SCALAR_PRODUCT => {
                if let Some(Argument::Value(elements)) = arguments.get(3) {
                    counted.computation += 2.0 * evaluate(elements, scope)?;
                }
            }
            Item::Routine { name, .. } => {
                counted.calls += 1.0;
                let processors = scope.values.get("n_procs").copied().unwrap_or(1.0);
                match name.as_str() {
                    "SIMPLE_GLOBAL_SUM" => counted.computation += processors,
                    "TREE_GLOBAL_SUM" => counted.computation += 2.0 * processors.log2().ceil(),
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

mod tests {
    use super::super::{FIGURE_5, parse};
    use super::*;
    use crate::model::sums::Sum;
    use proptest::prelude::*;

    /// Programs of loops, stores and calls.
    fn programs() -> impl Strategy<Value = String> {
        let value = prop_oneof![
            Just("A[i] * B[i]"),
            Just("a + b / 2 - c"),
            Just("(TYPE) 0"),
            Just("sqrt(x) * M[i][j + 1]"),
            Just("-b")
        ];
        let target = prop_oneof![Just("A[i]"), Just("x")];
        let assign = prop_oneof![Just("="), Just("+="), Just("*=")];
        let store = (target, assign, value).prop_map(|(target, assign, value)| format!("{target} {assign} {value};\n"));
        let call = prop_oneof![
            Just("\\SIMPLE_GLOBAL_SUM(&x, &y);\n"),
            Just("\\TREE_GLOBAL_SUM(&x, &y);\n"),
            Just("\\SCALPROD(&x, A, B, psize_node);\n"),
            Just("\\SIMPLE_COLLECT_VEC(A);\n"),
            Just("\\TREE_BCAST(A, psize * sizeof(TYPE));\n"),
            Just("\\BARRIER();\n"),
        ];
        let leaf = prop_oneof![3 => store, 1 => call.prop_map(str::to_owned)];
        let count = prop_oneof![
            Just("(psize_node) "),
            Just("(psize) "),
            Just(""),
            Just("(3) "),
            Just("(ITER) "),
            Just("(psize + 2*n_procs) ")
        ];
        let block = prop::collection::vec(leaf, 1..4).prop_map(|items| items.concat());
        block.prop_recursive(3, 12, 3, move |inner| {
            let repeat =
                (count.clone(), inner.clone()).prop_map(|(count, body)| format!("\\LOOP {count}i {{\n{body}}}\n"));
            (repeat, inner).prop_map(|(a, b)| a + &b)
        })
    }

    fn value(sum: &Sum, scope: &Scope) -> f64 {
        evaluate(&single(&sum.to_string()).expect("sums read as formulae"), scope).expect("a value")
    }

    fn agrees(text: &str, size: f64, processors: f64) {
        let items = parse(text).expect("the program reads");
        let values = [("p_size", size), ("n_procs", processors), ("ITER", 2.0), ("ITERATIONS", 3.0)];
        let values = values.map(|(name, value)| (name.to_owned(), value)).into();
        let scope = Scope { values, type_bytes: 8.0, costs: None };
        let derived = derive(&items).expect("formulae");
        let counted = count(&items, &scope).expect("counts");
        assert_eq!(value(&derived.computation, &scope).round(), counted.computation, "{text}");
        assert_eq!(value(&derived.scalars, &scope).round(), counted.scalars, "{text}");
        let calls: f64 = derived.calls.iter().map(|call| value(&call.times, &scope)).sum();
        assert_eq!(calls.round(), counted.calls, "{text}");
    }

    #[test]
    fn figure_5_counts_what_formula_4_says() {
        for (size, processors) in [(8.0, 1.0), (8.0, 2.0), (32.0, 8.0)] {
            agrees(FIGURE_5, size, processors);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn formulae_are_what_running_the_loops_counts(text in programs(), p in 1u32..4, share in 1u32..4) {
            agrees(&text, f64::from(p * share), f64::from(p));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[ -~\n]{0,80}") {
            let _ = parse(&text).and_then(|items| derive(&items));
        }

        #[test]
        fn no_damaged_program_makes_the_reader_panic(at in 0usize..600, cut in 0usize..40, put in "[\\\\{}();&LOP0/*^ -]{0,6}") {
            let from = at.min(FIGURE_5.len());
            let text = format!("{}{put}{}", &FIGURE_5[..from], &FIGURE_5[(from + cut).min(FIGURE_5.len())..]);
            let _ = parse(&text).and_then(|items| derive(&items));
        }
    }
}
