//! Reading LOOP programs.
use super::{Argument, Item};
use crate::model::error::Fault;
use crate::model::formula::{Grammar, Rule, assign_of, bounded, expression_of, fault_of};
use pest::Parser;
use pest::iterators::Pair;
use std::ops::Range;

/// Reads a LOOP program.
///
/// # Errors
/// A fault at the place where the text is no program.
pub fn parse(text: &str) -> Result<Vec<Item>, Fault> {
    bounded(text)?;
    let mut pairs = Grammar::parse(Rule::program, text).map_err(|error| fault_of(&error, text))?;
    let root = pairs.next().map(Pair::into_inner).into_iter().flatten();
    root.filter(|pair| pair.as_rule() != Rule::EOI).map(item).collect()
}

fn range(pair: &Pair<Rule>) -> Range<usize> {
    pair.as_span().start()..pair.as_span().end()
}

fn item(pair: Pair<Rule>) -> Result<Item, Fault> {
    let mut at = range(&pair);
    match pair.as_rule() {
        Rule::repeat => {
            // A place of many lines says less than its head.
            at.end = at.start + "\\LOOP".len();
            let (mut count, mut variable, mut body) = (None, String::new(), Vec::new());
            for inner in pair.into_inner() {
                match inner.as_rule() {
                    Rule::keyword => {}
                    Rule::sum => count = Some(expression_of(inner)?),
                    Rule::name => variable = inner.as_str().to_owned(),
                    _ => body.push(item(inner)?),
                }
            }
            Ok(Item::Loop { count, variable, body, at })
        }
        Rule::store => {
            let mut inner = pair.into_inner();
            match (inner.next().and_then(|target| target.into_inner().next()), inner.next(), inner.next()) {
                (Some(target), Some(assign), Some(value)) => Ok(Item::Store {
                    target: expression_of(target)?,
                    assign: assign_of(&assign),
                    value: expression_of(value)?,
                }),
                _ => Err(Fault::new(at, "this is no statement")),
            }
        }
        Rule::routine => {
            let mut inner = pair.into_inner();
            let name = inner.next();
            if let Some(name) = &name {
                at = name.as_span().start()..name.as_span().end();
            }
            let name = name.map(|name| name.as_str().to_ascii_uppercase()).unwrap_or_default();
            let argument = |pair: Pair<Rule>| match pair.into_inner().next() {
                Some(inner) if inner.as_rule() == Rule::address => {
                    Ok(Argument::Address(inner.into_inner().next().map_or_else(String::new, |n| n.as_str().to_owned())))
                }
                Some(inner) => Ok(Argument::Value(expression_of(inner)?)),
                None => Err(Fault::new(at.clone(), "an argument is missing")),
            };
            let arguments = inner.map(argument).collect::<Result<Vec<_>, Fault>>()?;
            Ok(Item::Routine { name, arguments, at })
        }
        _ => Err(Fault::new(at, "this is no statement")),
    }
}
