//! The LOOP language (seed 001, section 2.3 and Figure 5): SPMD programs as loops over a node's share of the data, with
//! calls of the communication library. From a program follow its formulae, which the seed left as future work.
#[cfg(test)]
mod count;
mod derive;
mod parse;

pub use derive::{Call, Derived, derive};
pub use parse::parse;

use super::formula::{Assign, Expression};
use std::ops::Range;

/// A statement of a LOOP program.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// `\LOOP (count) variable { ... }`; without a count it runs over the whole problem.
    Loop {
        /// How often.
        count: Option<Expression>,
        /// Its variable.
        variable: String,
        /// What is repeated.
        body: Vec<Item>,
        /// Where it stands.
        at: Range<usize>,
    },
    /// `target = value;`
    Store {
        /// Name or element that is assigned to.
        target: Expression,
        /// How.
        assign: Assign,
        /// What.
        value: Expression,
    },
    /// `\ROUTINE(arguments);`
    Routine {
        /// Its name, in capital letters.
        name: String,
        /// Its arguments.
        arguments: Vec<Argument>,
        /// Where it stands.
        at: Range<usize>,
    },
}

/// An argument of a routine.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// `&name`
    Address(String),
    /// A value.
    Value(Expression),
}

impl Item {
    /// The arithmetic operations of a store: those of its value, and one more if it adds, subtracts or multiplies.
    fn store_operations(assign: Assign, value: &Expression) -> u64 {
        u64::from(assign != Assign::Set) + value.operations()
    }
}

/// Whether statements call a routine that communicates, at any depth.
fn communicates(items: &[Item]) -> bool {
    items.iter().any(|item| match item {
        Item::Loop { body, .. } => communicates(body),
        Item::Routine { name, .. } => name != derive::SCALAR_PRODUCT,
        Item::Store { .. } => false,
    })
}

/// Figure 5 of the seed.
#[cfg(test)]
pub(crate) const FIGURE_5: &str = r"
\LOOP (ITERATIONS) iter {
  beta = t1 / t2 ;
  \LOOP (psize_node) i {
    P[i] = beta * P[i] - RES[i] ; }
  \SIMPLE_COLLECT_VEC(P);
  \SIMPLE_BCAST(P,psize*sizeof(TYPE));
  \LOOP i { H2[i] = P[i] ; }
  \LOOP (psize_node) i {
    H1[i] = (TYPE) 0;
    \LOOP j {
      H1[i] += MAT[i][j] * H2[j]; } }
  \SCALPROD(&t1, P, H1, psize_node);
  \SIMPLE_GLOBAL_SUM(&t1, &gsc);
  \SIMPLE_BCAST(&gsc, sizeof(gsc));
  alpha = t1 / gsc;
  \LOOP (psize_node) i {
    X[i] += alpha * P[i];
    RES[i] += alpha * H1[i];}
  t2 = t1;
  \SCALPROD (&t1,RES,RES,psize_node);
  \SIMPLE_GLOBAL_SUM(&t1, &gsc);
  \SIMPLE_BCAST(&gsc, sizeof(gsc));
  t1 = gsc;
}
";
