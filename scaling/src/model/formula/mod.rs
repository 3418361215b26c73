//! Formulae: arithmetic over names with calls of functions, as PerPreT's users write them (seed 001, sections 2.3, 2.4
//! and 5). The names are the seed's: `p_size`, `n_procs`, `sizeof(TYPE)`, `sqrt`, `log2`, `^`.
mod evaluate;
mod parse;

pub(crate) use evaluate::nearest;
pub use evaluate::{FUNCTIONS, Scope, evaluate, run, size_of};
pub(crate) use parse::{Grammar, Rule, assign_of, bounded, expression_of, fault_of};
pub use parse::{formulae, single};

use std::ops::Range;

/// A formula. Sums and products are lists, so that its depth is that of its brackets.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number.
    Number(f64),
    /// A name.
    Name(String, Range<usize>),
    /// Terms, each added or (`true`) subtracted.
    Sum(Vec<(bool, Expression)>),
    /// Factors, each multiplied or (`true`) divided by, and where it stands.
    Product(Vec<(bool, Expression, Range<usize>)>),
    /// Base, exponent, and where they stand.
    Power(Box<Expression>, Box<Expression>, Range<usize>),
    /// A function or routine with its arguments.
    Call(String, Vec<Expression>, Range<usize>),
    /// An element of an array (only in LOOP programs).
    Element(String, Vec<Expression>, Range<usize>),
}

/// How a statement assigns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assign {
    /// `=`
    Set,
    /// `+=`
    Add,
    /// `-=`
    Subtract,
    /// `*=`
    Multiply,
}

/// One statement: `comm_time += 2 * tree_bcast(bytes3)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The name assigned to.
    pub target: String,
    /// Where it stands.
    pub at: Range<usize>,
    /// How.
    pub assign: Assign,
    /// What.
    pub value: Expression,
}

impl Expression {
    /// The arithmetic operations that evaluating it once takes: every `+`, `-`, `*`, `/`, `^` between two operands and every
    /// call of a function; not what the places of array elements take.
    pub fn operations(&self) -> u64 {
        match self {
            Expression::Number(_) | Expression::Name(..) | Expression::Element(..) => 0,
            Expression::Sum(terms) => {
                terms.len() as u64 - 1 + terms.iter().map(|(_, term)| term.operations()).sum::<u64>()
            }
            Expression::Product(factors) => {
                factors.len() as u64 - 1 + factors.iter().map(|(_, factor, _)| factor.operations()).sum::<u64>()
            }
            Expression::Power(base, exponent, _) => 1 + base.operations() + exponent.operations(),
            Expression::Call(name, _, _) if name == "sizeof" => 0,
            Expression::Call(_, arguments, _) => 1 + arguments.iter().map(Expression::operations).sum::<u64>(),
        }
    }
}
