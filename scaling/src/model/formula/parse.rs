//! Reading formulae: the grammar's pairs as expressions, its refusals as faults at a place. Depth and length are bounded
//! before the grammar sees a text, as it descends by recursion.
use super::{Assign, Expression, Statement};
use crate::model::error::{Fault, MAX_BYTES};
use pest::Parser;
use pest::error::{ErrorVariant, InputLocation};
use pest::iterators::Pair;
use std::ops::Range;

/// The deepest nesting of brackets.
const MAX_DEPTH: usize = 64;

/// The grammar.
#[derive(pest_derive::Parser)]
#[grammar = "model/grammar.pest"]
pub(crate) struct Grammar;

/// Reads statements.
///
/// # Errors
/// A fault at the place where the text is no formula.
pub fn formulae(text: &str) -> Result<Vec<Statement>, Fault> {
    bounded(text)?;
    let mut pairs = Grammar::parse(Rule::formulae, text).map_err(|error| fault_of(&error, text))?;
    let root = pairs.next().map(Pair::into_inner).into_iter().flatten();
    root.filter(|pair| pair.as_rule() == Rule::statement).map(statement).collect()
}

/// Reads one expression.
///
/// # Errors
/// A fault at the place where the text is no expression.
pub fn single(text: &str) -> Result<Expression, Fault> {
    bounded(text)?;
    let mut pairs = Grammar::parse(Rule::expression, text).map_err(|error| fault_of(&error, text))?;
    let mut inner = pairs.next().map(Pair::into_inner).into_iter().flatten();
    match inner.next() {
        Some(pair) => plain(expression_of(pair)?),
        None => Err(Fault::new(0..0, "there is no formula here")),
    }
}

/// Refuses texts that are too long or too deep.
pub(crate) fn bounded(text: &str) -> Result<(), Fault> {
    if text.len() > MAX_BYTES {
        return Err(Fault::new(0..0, format!("a text of {} bytes is too long: at most {MAX_BYTES}", text.len())));
    }
    let mut depth = 0usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            let what = format!("brackets are nested more than {MAX_DEPTH} deep here. Use a name for a part of it");
            return Err(Fault::new(at..at + 1, what));
        }
    }
    Ok(())
}

/// A refusal of the grammar as a fault.
pub(crate) fn fault_of(error: &pest::error::Error<Rule>, text: &str) -> Fault {
    let at = match error.location {
        InputLocation::Pos(at) => at..at,
        InputLocation::Span((from, to)) => from..to,
    };
    let found = match text.get(at.start..).and_then(|rest| rest.chars().next()) {
        Some(letter) => format!("{letter:?}"),
        None => "the end of the text".into(),
    };
    let what = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } if !positives.is_empty() => {
            let mut words: Vec<&str> = positives.iter().map(|&rule| word(rule)).collect();
            words.extend(closing(&text[..at.start.min(text.len())]));
            words.sort_unstable();
            words.dedup();
            format!("{found} stands where {} should", words.join(" or "))
        }
        _ => format!("{found} is not understood here"),
    };
    Fault::new(at, what)
}

/// What would close the last bracket of a text that is open.
fn closing(text: &str) -> Option<&'static str> {
    let mut open = Vec::new();
    for letter in text.chars() {
        match letter {
            '(' => open.push("')'"),
            '[' => open.push("']'"),
            '{' => open.push("'}'"),
            ')' | ']' | '}' => drop(open.pop()),
            _ => {}
        }
    }
    open.pop()
}

/// What a rule of the grammar is called in messages.
fn word(rule: Rule) -> &'static str {
    match rule {
        Rule::EOI => "the end",
        Rule::add | Rule::times | Rule::raise => "an operator",
        Rule::assign => "= or +=",
        Rule::sign | Rule::sum | Rule::product | Rule::signed | Rule::power | Rule::atom | Rule::group => "a value",
        Rule::number => "a number",
        Rule::name | Rule::type_name => "a name",
        Rule::call | Rule::element | Rule::cast => "a value",
        Rule::statement | Rule::store | Rule::target => "a statement",
        Rule::repeat | Rule::keyword => "\\LOOP",
        Rule::routine => "a call of a routine",
        Rule::argument | Rule::address => "an argument",
        _ => "a statement",
    }
}

fn range(pair: &Pair<Rule>) -> Range<usize> {
    pair.as_span().start()..pair.as_span().end()
}

fn statement(pair: Pair<Rule>) -> Result<Statement, Fault> {
    let at = range(&pair);
    let mut inner = pair.into_inner();
    match (inner.next(), inner.next(), inner.next()) {
        (Some(name), Some(assign), Some(value)) => Ok(Statement {
            at: range(&name),
            target: name.as_str().to_owned(),
            assign: assign_of(&assign),
            value: plain(expression_of(value)?)?,
        }),
        _ => Err(Fault::new(at, "this is no statement")),
    }
}

/// What an assignment does.
pub(crate) fn assign_of(pair: &Pair<Rule>) -> Assign {
    match pair.as_str() {
        "+=" => Assign::Add,
        "-=" => Assign::Subtract,
        "*=" => Assign::Multiply,
        _ => Assign::Set,
    }
}

/// The expression of a pair of the grammar.
pub(crate) fn expression_of(pair: Pair<Rule>) -> Result<Expression, Fault> {
    let at = range(&pair);
    match pair.as_rule() {
        Rule::number => match pair.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Expression::Number(number)),
            _ => Err(Fault::new(at, "this number is too large")),
        },
        Rule::name => Ok(Expression::Name(pair.as_str().to_owned(), at)),
        Rule::sum => {
            let (mut terms, mut minus) = (Vec::new(), false);
            for inner in pair.into_inner() {
                match inner.as_rule() {
                    Rule::add => minus = inner.as_str() == "-",
                    _ => terms.push((std::mem::take(&mut minus), expression_of(inner)?)),
                }
            }
            Ok(if terms.len() == 1 { terms.remove(0).1 } else { Expression::Sum(terms) })
        }
        Rule::product => {
            let (mut factors, mut over) = (Vec::new(), false);
            for inner in pair.into_inner() {
                let place = range(&inner);
                match inner.as_rule() {
                    Rule::times => over = inner.as_str() == "/",
                    _ => factors.push((std::mem::take(&mut over), expression_of(inner)?, place)),
                }
            }
            Ok(if factors.len() == 1 { factors.remove(0).1 } else { Expression::Product(factors) })
        }
        Rule::signed => {
            let (mut minus, mut value) = (false, None);
            for inner in pair.into_inner() {
                match inner.as_rule() {
                    Rule::sign => minus ^= inner.as_str() == "-",
                    Rule::cast => {}
                    _ => value = Some(expression_of(inner)?),
                }
            }
            let value = value.ok_or_else(|| Fault::new(at, "a value is missing here"))?;
            Ok(if minus { negative(value) } else { value })
        }
        Rule::power => powers(pair),
        Rule::group => match pair.into_inner().next() {
            Some(inner) => expression_of(inner),
            None => Err(Fault::new(at, "there is nothing in these brackets")),
        },
        Rule::call | Rule::element => {
            let call = pair.as_rule() == Rule::call;
            let mut inner = pair.into_inner();
            let name = inner.next().map(|name| name.as_str().to_owned()).unwrap_or_default();
            let arguments = inner.map(expression_of).collect::<Result<Vec<_>, _>>()?;
            Ok(if call { Expression::Call(name, arguments, at) } else { Expression::Element(name, arguments, at) })
        }
        _ => Err(Fault::new(at, "this is no value")),
    }
}

/// `a ^ b ^ c` is `a ^ (b ^ c)`.
fn powers(pair: Pair<Rule>) -> Result<Expression, Fault> {
    let end = pair.as_span().end();
    let mut operands: Vec<(bool, Expression, usize)> = Vec::new();
    let mut minus = false;
    for inner in pair.into_inner() {
        let start = inner.as_span().start();
        match inner.as_rule() {
            Rule::raise => minus = false,
            Rule::sign => minus ^= inner.as_str() == "-",
            _ => operands.push((std::mem::take(&mut minus), expression_of(inner)?, start)),
        }
    }
    if let Some((_, _, start)) = operands.get(MAX_DEPTH) {
        return Err(Fault::new(*start..end, format!("more than {MAX_DEPTH} powers of powers. Use brackets or names")));
    }
    let mut value: Option<Expression> = None;
    for (minus, operand, start) in operands.into_iter().rev() {
        let raised = match value {
            None => operand,
            Some(exponent) => Expression::Power(Box::new(operand), Box::new(exponent), start..end),
        };
        value = Some(if minus { negative(raised) } else { raised });
    }
    value.ok_or_else(|| Fault::new(end..end, "a value is missing here"))
}

fn negative(value: Expression) -> Expression {
    match value {
        Expression::Number(number) => Expression::Number(-number),
        value => Expression::Product(vec![(false, Expression::Number(-1.0), 0..0), (false, value, 0..0)]),
    }
}

/// Refuses array elements, which formulae do not have.
fn plain(value: Expression) -> Result<Expression, Fault> {
    fn refuse(value: &Expression) -> Result<(), Fault> {
        match value {
            Expression::Number(_) | Expression::Name(..) => Ok(()),
            Expression::Sum(terms) => terms.iter().try_for_each(|(_, term)| refuse(term)),
            Expression::Product(factors) => factors.iter().try_for_each(|(_, factor, _)| refuse(factor)),
            Expression::Power(base, exponent, _) => refuse(base).and_then(|()| refuse(exponent)),
            Expression::Call(_, arguments, _) => arguments.iter().try_for_each(refuse),
            Expression::Element(name, _, at) => Err(Fault::new(
                at.clone(),
                format!("{name}[...] is an element of an array, which only LOOP programs have"),
            )),
        }
    }
    refuse(&value).map(|()| value)
}
