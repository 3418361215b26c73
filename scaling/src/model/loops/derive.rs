//! The formulae of a LOOP program: what each processor computes, and what is communicated, as sums of products in the
//! size of the problem and the number of processors.
//!
//! A statement counts as often as the loops around it run. Arithmetic outside of every loop over data - in the program
//! itself, or in a loop that communicates, such as the iterations of a solver - is done on scalars once per iteration;
//! the seed's formula (4) leaves it out, and so does `computation`; it is kept apart in `scalars`.
use super::{Argument, Item, communicates};
use crate::model::error::Fault;
use crate::model::formula::{Expression, nearest};
use crate::model::sums::Sum;
use std::ops::Range;

/// The routine of the LOOP library that computes: 2 operations for each element.
pub(super) const SCALAR_PRODUCT: &str = "SCALPROD";

/// The routines that communicate, with the library's names and what their arguments are.
const ROUTINES: [(&str, &str, Takes); 14] = [
    ("SIMPLE_BCAST", "simple_bcast", Takes::Bytes),
    ("TREE_BCAST", "tree_bcast", Takes::Bytes),
    ("SIMPLE_COLLECT", "simple_collect", Takes::Bytes),
    ("TREE_COLLECT", "tree_collect", Takes::Bytes),
    ("SIMPLE_COLLECT_VEC", "simple_collect", Takes::Vector),
    ("TREE_COLLECT_VEC", "tree_collect", Takes::Vector),
    // The processor that collects the parts of a simple sum adds them up: P statements.
    ("SIMPLE_GLOBAL_SUM", "simple_collect", Takes::Sum("n_procs")),
    ("TREE_GLOBAL_SUM", "tree_global_sum", Takes::Sum("2*ceil(log2(n_procs))")),
    ("COMMUNICATE", "communicate", Takes::Bytes),
    ("EXCHANGE", "exchange", Takes::Bytes),
    ("BUTTERFLY", "butterfly", Takes::Bytes),
    ("ALL_TO_ALL", "all_to_all", Takes::Bytes),
    ("BARRIER", "barrier", Takes::Nothing),
    ("MESSAGE", "message", Takes::Bytes),
];

#[derive(Clone, Copy)]
enum Takes {
    /// Where the data are, and their bytes.
    Bytes,
    /// A distributed vector, and how many elements each node has of it if that is not `psize_node`.
    Vector,
    /// Two scalars; the statements that the sum takes.
    Sum(&'static str),
    Nothing,
}

/// A call of the communication library.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The routine.
    pub routine: String,
    /// Its arguments: the bytes, if it takes any; of the fans the number of messages before.
    pub arguments: Vec<Sum>,
    /// How often.
    pub times: Sum,
}

/// What follows from a LOOP program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Derived {
    /// Operations of a processor.
    pub computation: Sum,
    /// Operations on scalars that the formula leaves out.
    pub scalars: Sum,
    /// Calls of the communication library, those that are alike together, in the order of their first.
    pub calls: Vec<Call>,
}

impl Derived {
    /// Adds a call.
    pub(crate) fn call(&mut self, routine: &str, arguments: Vec<Sum>, times: Sum) {
        match self.calls.iter_mut().find(|call| call.routine == routine && call.arguments == arguments) {
            Some(call) => call.times = std::mem::take(&mut call.times).plus(&times),
            None => self.calls.push(Call { routine: routine.to_owned(), arguments, times }),
        }
    }

    /// The communication formulae.
    pub fn communication(&self) -> String {
        let mut text = String::new();
        for call in &self.calls {
            let arguments: Vec<String> = call.arguments.iter().map(Sum::to_string).collect();
            let times = match call.times.as_number() {
                Some(1.0) => String::new(),
                _ => format!("({}) * ", call.times),
            };
            text.push_str(&format!("comm_time += {times}{}({});\n", call.routine, arguments.join(", ")));
        }
        text
    }
}

/// The formulae of a program.
///
/// # Errors
/// If a routine is unknown or called with the wrong arguments, or a count depends on a loop's variable.
pub fn derive(items: &[Item]) -> Result<Derived, Fault> {
    let mut derived = Derived::default();
    walk(items, &Sum::number(1.0), false, &mut Vec::new(), &mut derived)?;
    Ok(derived)
}

/// What the names of the LOOP language mean.
pub(super) fn meaning(name: &str) -> Option<Sum> {
    let (size, processors) = (Sum::name("p_size"), Sum::name("n_procs"));
    match name {
        "psize" | "p_size" => Some(size),
        "psize_node" => processors.inverse().map(|share| size.times(&share)),
        "nprocs" | "n_procs" => Some(processors),
        _ => None,
    }
}

fn walk(
    items: &[Item],
    times: &Sum,
    over_data: bool,
    variables: &mut Vec<String>,
    derived: &mut Derived,
) -> Result<(), Fault> {
    for item in items {
        match item {
            Item::Loop { count, variable, body, at } => {
                let count = match count {
                    Some(count) => translated(count, variables, at)?,
                    None => Sum::name("p_size"),
                };
                variables.push(variable.clone());
                let data = over_data || !communicates(body);
                walk(body, &times.times(&count), data, variables, derived)?;
                variables.pop();
            }
            Item::Store { assign, value, .. } => {
                let operations = Sum::number(Item::store_operations(*assign, value) as f64).times(times);
                let to = if over_data { &mut derived.computation } else { &mut derived.scalars };
                *to = std::mem::take(to).plus(&operations);
            }
            Item::Routine { name, arguments, at } => routine(name, arguments, at, times, variables, derived)?,
        }
    }
    Ok(())
}

fn translated(expression: &Expression, variables: &[String], at: &Range<usize>) -> Result<Sum, Fault> {
    if let Some((name, at)) = uses(expression, variables) {
        let what = format!(
            "{name} is the variable of a loop around this; counts and lengths must not depend on it. Give its mean"
        );
        return Err(Fault::new(at, what));
    }
    Sum::of(expression, &meaning)
        .ok_or_else(|| Fault::new(at.clone(), "this divides by 0, or is too long when written out. Mend the formula"))
}

fn uses(expression: &Expression, variables: &[String]) -> Option<(String, Range<usize>)> {
    match expression {
        Expression::Number(_) => None,
        Expression::Name(name, at) => variables.contains(name).then(|| (name.clone(), at.clone())),
        Expression::Sum(terms) => terms.iter().find_map(|(_, term)| uses(term, variables)),
        Expression::Product(factors) => factors.iter().find_map(|(_, factor, _)| uses(factor, variables)),
        Expression::Power(base, exponent, _) => uses(base, variables).or_else(|| uses(exponent, variables)),
        Expression::Call(_, arguments, _) => arguments.iter().find_map(|argument| uses(argument, variables)),
        Expression::Element(name, _, at) => Some((format!("{name}[...]"), at.clone())),
    }
}

fn routine(
    name: &str,
    arguments: &[Argument],
    at: &Range<usize>,
    times: &Sum,
    variables: &[String],
    derived: &mut Derived,
) -> Result<(), Fault> {
    let takes = |words: &str| Fault::new(at.clone(), format!("\\{name} takes {words}"));
    let value = |argument: Option<&Argument>, words: &str| match argument {
        Some(Argument::Value(value)) => translated(value, variables, at),
        _ => Err(takes(words)),
    };
    if name == SCALAR_PRODUCT {
        let words = "four arguments: the result, two vectors and the number of elements";
        if arguments.len() != 4 {
            return Err(takes(words));
        }
        let operations = value(arguments.get(3), words)?.times(&Sum::number(2.0)).times(times);
        derived.computation = std::mem::take(&mut derived.computation).plus(&operations);
        return Ok(());
    }
    let Some((_, library, kind)) = ROUTINES.iter().find(|(routine, ..)| *routine == name) else {
        let names = ROUTINES.iter().map(|(name, ..)| *name).chain([SCALAR_PRODUCT]);
        let hint = match nearest(name, names.clone()) {
            Some(near) => format!("Is \\{near} meant?"),
            None => format!("There are {}", names.collect::<Vec<_>>().join(", ")),
        };
        return Err(Fault::new(at.clone(), format!("there is no routine \\{name}. {hint}")));
    };
    let item = Sum::name("sizeof(TYPE)");
    let bytes = match kind {
        Takes::Bytes => {
            let words = "two arguments: the data and their bytes";
            if arguments.len() != 2 {
                return Err(takes(words));
            }
            Some(value(arguments.get(1), words)?)
        }
        Takes::Vector => {
            let words = "a vector, and the number of its elements on a node if that is not psize_node";
            let elements = match arguments {
                [_] => meaning("psize_node").unwrap_or_default(),
                [_, count] => value(Some(count), words)?,
                _ => return Err(takes(words)),
            };
            Some(elements.times(&item))
        }
        Takes::Sum(statements) => {
            if arguments.len() != 2 {
                return Err(takes("two scalars: what is added up, and the sum"));
            }
            let operations = Sum::name(statements).times(times);
            derived.computation = std::mem::take(&mut derived.computation).plus(&operations);
            Some(item)
        }
        Takes::Nothing if arguments.is_empty() => None,
        Takes::Nothing => return Err(takes("no arguments")),
    };
    derived.call(library, bytes.into_iter().collect(), times.clone());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{FIGURE_5, parse};
    use super::*;
    use crate::model::formula::single;

    fn sum(text: &str) -> Sum {
        Sum::of(&single(text).expect("a formula"), &|_| None).expect("a sum")
    }

    #[test]
    fn figure_5_gives_formula_4_and_the_calls_of_section_2_3() {
        let derived = derive(&parse(FIGURE_5).expect("the program reads")).expect("its formulae");
        let formula_4 = sum("(10*p_size + 2*p_size^2)/n_procs + 2*n_procs");
        let iterations = Sum::name("ITERATIONS");
        assert_eq!(derived.computation, formula_4.times(&iterations));
        let one = derive(&parse(&FIGURE_5.replace("(ITERATIONS)", "(1)")).expect("reads")).expect("formulae");
        assert_eq!(one.computation.to_string(), "(10*p_size + 2*p_size^2)/n_procs + 2*n_procs");
        // beta = t1 / t2 and alpha = t1 / gsc, which formula (4) leaves out.
        assert_eq!(derived.scalars, Sum::number(2.0).times(&iterations));
        let call = |routine: &str, bytes: &str, times: f64| Call {
            routine: routine.to_owned(),
            arguments: vec![sum(bytes)],
            times: Sum::number(times),
        };
        assert_eq!(
            one.calls,
            [
                call("simple_collect", "sizeof(TYPE) * p_size/n_procs", 1.0),
                call("simple_bcast", "sizeof(TYPE) * p_size", 1.0),
                call("simple_collect", "sizeof(TYPE)", 2.0),
                call("simple_bcast", "sizeof(TYPE)", 2.0),
            ]
        );
    }

    #[test]
    fn faults_have_a_place() {
        for (text, place, told) in [
            ("\\LOOP (psize i { x = 1; }", "i {", "should"),
            ("\\LOOP (psize) i { \\SIMPLE_BCST(P, 8); }", "SIMPLE_BCST", "Is \\SIMPLE_BCAST meant"),
            ("\\LOOP (psize) i { \\LOOP (i) j { A[i] = 1; } }", "i) j", "variable of a loop"),
            ("\\SIMPLE_BCAST(P);", "SIMPLE_BCAST", "two arguments"),
            ("\\LOOP (psize/0) i { A[i] = 1; }", "\\LOOP", "divides by 0"),
            ("x = 1", "", "the end of the text"),
        ] {
            let fault = parse(text).and_then(|items| derive(&items)).expect_err(text);
            assert_eq!(
                Some(fault.at.start),
                if place.is_empty() { Some(text.len()) } else { text.find(place) },
                "{text}: {fault:?}"
            );
            assert!(fault.what.contains(told), "{text}: {fault:?}");
        }
    }
}
