//! Evaluating formulae: every name must be known and every value a finite number, else the fault says where.
use super::{Assign, Expression, Statement};
use crate::model::error::Fault;
use crate::model::library::{Costs, ROUTINES};
use std::collections::BTreeMap;

/// The functions of formulae, with the number of their arguments.
pub const FUNCTIONS: [(&str, usize); 11] = [
    ("sqrt", 1),
    ("log2", 1),
    ("ln", 1),
    ("log10", 1),
    ("exp", 1),
    ("abs", 1),
    ("ceil", 1),
    ("floor", 1),
    ("min", 2),
    ("max", 2),
    ("pow", 2),
];

/// Bytes of a data type.
pub fn size_of(name: &str) -> Option<f64> {
    Some(match name {
        "char" => 1.0,
        "int" | "float" => 4.0,
        "long" | "double" => 8.0,
        "complex" => 16.0,
        _ => return None,
    })
}

/// What names mean.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    /// Values by name: `p_size`, `n_procs`, constants, and what statements have assigned.
    pub values: BTreeMap<String, f64>,
    /// Bytes of `TYPE`.
    pub type_bytes: f64,
    /// What messages cost, where routines of the communication library may be called.
    pub costs: Option<Costs<'a>>,
}

impl Scope<'_> {
    fn place(&self) -> String {
        let of = |name: &str| self.values.get(name).map(|value| format!("{name} = {value}"));
        let places: Vec<String> = ["p_size", "n_procs"].into_iter().filter_map(of).collect();
        if places.is_empty() { String::new() } else { format!(" at {}", places.join(", ")) }
    }
}

/// Carries out statements and returns the value of the last of `results` that they assign to; 0 without statements.
///
/// # Errors
/// If a name is unknown, a value is not finite, or none of `results` is assigned to.
pub fn run(statements: &[Statement], scope: &mut Scope, results: &[&str]) -> Result<f64, Fault> {
    let mut result = statements.is_empty().then_some(0.0);
    for statement in statements {
        let value = evaluate(&statement.value, scope)?;
        let is_result = results.contains(&statement.target.as_str());
        let before = || match scope.values.get(&statement.target) {
            Some(&before) => Ok(before),
            None if is_result => Ok(0.0),
            None => Err(unknown(&statement.target, statement.at.clone(), scope)),
        };
        let value = match statement.assign {
            Assign::Set => value,
            Assign::Add => before()? + value,
            Assign::Subtract => before()? - value,
            Assign::Multiply => before()? * value,
        };
        let value = finite(value, &statement.at, scope)?;
        if is_result {
            result = Some(value);
        } else if ["p_size", "n_procs"].contains(&statement.target.as_str()) {
            let what = format!("{} is given, and cannot be assigned to. Use another name", statement.target);
            return Err(Fault::new(statement.at.clone(), what));
        }
        scope.values.insert(statement.target.clone(), value);
    }
    let last = statements.last().map_or(0..0, |last| last.at.clone());
    result.ok_or_else(|| Fault::new(last, format!("nothing is assigned to {}", results.join(" or "))))
}

fn unknown(name: &str, at: std::ops::Range<usize>, scope: &Scope) -> Fault {
    let near = nearest(name, scope.values.keys().map(String::as_str));
    let hint = near.map_or_else(
        || "Assign to it before, or give it under [constants]".to_owned(),
        |near| format!("Is {near} meant? Else give it under [constants]"),
    );
    Fault::new(at, format!("the name {name} is unknown. {hint}"))
}

/// The name that is most like another, if one is.
pub(crate) fn nearest<'a>(name: &str, of: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = name.len().div_ceil(3).min(3);
    of.map(|other| (distance(name, other), other)).filter(|&(d, _)| d <= most).min().map(|(_, other)| other)
}

/// Letters to change, add or leave out to make one name of another; of long names an upper bound.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > 64 || b.len() > 64 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut left = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = left + usize::from(x != *y);
            left = row[j + 1];
            row[j + 1] = change.min(left + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

fn finite(value: f64, at: &std::ops::Range<usize>, scope: &Scope) -> Result<f64, Fault> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(Fault::new(at.clone(), format!("this is {value}{}, which is no number to go on with", scope.place())))
}

/// The value of an expression.
///
/// # Errors
/// If a name or routine is unknown, something is divided by zero, or a value is not finite.
pub fn evaluate(expression: &Expression, scope: &Scope) -> Result<f64, Fault> {
    match expression {
        Expression::Number(number) => Ok(*number),
        Expression::Name(name, at) => scope.values.get(name).copied().ok_or_else(|| unknown(name, at.clone(), scope)),
        Expression::Sum(terms) => terms.iter().try_fold(0.0, |sum, (minus, term)| {
            let value = evaluate(term, scope)?;
            Ok(if *minus { sum - value } else { sum + value })
        }),
        Expression::Product(factors) => factors.iter().try_fold(1.0, |product, (over, factor, at)| {
            let value = evaluate(factor, scope)?;
            match over {
                false => Ok(product * value),
                true if value == 0.0 => {
                    let what = format!(
                        "division by zero{}: this is 0. Leave that point out, or guard it with max()",
                        scope.place()
                    );
                    Err(Fault::new(at.clone(), what))
                }
                true => Ok(product / value),
            }
        }),
        Expression::Power(base, exponent, at) => {
            finite(evaluate(base, scope)?.powf(evaluate(exponent, scope)?), at, scope)
        }
        Expression::Call(name, arguments, at) => call(name, arguments, at, scope),
        Expression::Element(name, _, at) => {
            Err(Fault::new(at.clone(), format!("{name}[...] is an element of an array, whose value is not known")))
        }
    }
}

fn call(name: &str, arguments: &[Expression], at: &std::ops::Range<usize>, scope: &Scope) -> Result<f64, Fault> {
    if name == "sizeof" {
        return match arguments {
            [Expression::Name(name, _)] if name == "TYPE" => Ok(scope.type_bytes),
            // A variable's type is the program's.
            [Expression::Name(name, _)] => Ok(size_of(name).unwrap_or(scope.type_bytes)),
            _ => Err(Fault::new(at.clone(), "sizeof takes a type: sizeof(TYPE)")),
        };
    }
    let routine = scope.costs.as_ref().and_then(|_| ROUTINES.iter().find(|routine| routine.name == name));
    let takes = match (FUNCTIONS.iter().find(|(function, _)| *function == name), routine) {
        (Some((_, takes)), _) => *takes,
        (None, Some(routine)) => routine.takes,
        (None, None) => {
            let routines = ROUTINES.iter().map(|routine| routine.name).filter(|_| scope.costs.is_some());
            let all = FUNCTIONS.iter().map(|(name, _)| *name).chain(routines);
            let all: Vec<&str> = all.collect();
            let hint = match nearest(name, all.iter().copied()) {
                Some(near) => format!("Is {near} meant?"),
                None => format!("There are {}", all.join(", ")),
            };
            let kind = if scope.costs.is_some() { "routine or function" } else { "function" };
            return Err(Fault::new(at.clone(), format!("there is no {kind} {name}. {hint}")));
        }
    };
    if arguments.len() != takes {
        let what =
            format!("{name} takes {takes} argument{}, not {}", if takes == 1 { "" } else { "s" }, arguments.len());
        return Err(Fault::new(at.clone(), what));
    }
    let values = arguments.iter().map(|argument| evaluate(argument, scope)).collect::<Result<Vec<f64>, Fault>>()?;
    let (x, y) = (values.first().copied().unwrap_or(0.0), values.get(1).copied().unwrap_or(0.0));
    let value = match (name, routine, &scope.costs) {
        (_, Some(routine), Some(costs)) => {
            if x < 0.0 || y < 0.0 {
                let what =
                    format!("{name} of {} bytes{}: there is no message of less than 0 bytes", x.min(y), scope.place());
                return Err(Fault::new(at.clone(), what));
            }
            (routine.seconds)(costs, x, y)
        }
        ("sqrt", ..) => x.sqrt(),
        ("log2", ..) => x.log2(),
        ("ln", ..) => x.ln(),
        ("log10", ..) => x.log10(),
        ("exp", ..) => x.exp(),
        ("abs", ..) => x.abs(),
        ("ceil", ..) => x.ceil(),
        ("floor", ..) => x.floor(),
        ("min", ..) => x.min(y),
        ("max", ..) => x.max(y),
        _ => x.powf(y),
    };
    finite(value, at, scope)
}
