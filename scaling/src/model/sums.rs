//! Sums of products: the form in which formulae that were derived from LOOP programs, task graphs and traces are kept,
//! added up and written. A product has a coefficient and whole powers of names; what is no power of a name (a root, a
//! quotient by a sum) is kept as a name of its own, in its own words.
use super::formula::Expression;
use std::collections::BTreeMap;
use std::fmt;

/// The most terms of a sum; larger ones are kept as names of their own.
const MAX_TERMS: usize = 256;
/// The largest power that is multiplied out.
const MAX_POWER: i32 = 8;
/// The most letters of the names of a sum that is made from a formula.
const MAX_LETTERS: usize = 1 << 14;

/// Whole powers of names, none of them 0.
type Powers = BTreeMap<String, i32>;

/// A sum of products.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sum(BTreeMap<Powers, f64>);

impl Sum {
    /// A number.
    pub fn number(value: f64) -> Sum {
        Sum::term(Powers::new(), value)
    }

    /// A name.
    pub fn name(name: &str) -> Sum {
        Sum::term(Powers::from([(name.to_owned(), 1)]), 1.0)
    }

    fn term(powers: Powers, coefficient: f64) -> Sum {
        Sum(if coefficient == 0.0 { BTreeMap::new() } else { BTreeMap::from([(powers, coefficient)]) })
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// The number that it is, if it has no names.
    pub fn as_number(&self) -> Option<f64> {
        match self.0.iter().next() {
            None => Some(0.0),
            Some((powers, value)) if self.0.len() == 1 && powers.is_empty() => Some(*value),
            _ => None,
        }
    }

    /// Whether no product has a coefficient below 0.
    pub fn is_nonnegative(&self) -> bool {
        self.0.values().all(|&coefficient| coefficient >= 0.0)
    }

    /// Both together.
    #[must_use]
    pub fn plus(mut self, other: &Sum) -> Sum {
        for (powers, coefficient) in &other.0 {
            let entry = self.0.entry(powers.clone()).or_insert(0.0);
            *entry += coefficient;
        }
        self.0.retain(|_, coefficient| *coefficient != 0.0);
        self
    }

    /// Every product by every other.
    #[must_use]
    pub fn times(&self, other: &Sum) -> Sum {
        if self.0.len().saturating_mul(other.0.len()) > MAX_TERMS {
            return Sum::name(&self.bracketed()).times(&Sum::name(&other.bracketed()));
        }
        let mut product = Sum::default();
        for (a, x) in &self.0 {
            for (b, y) in &other.0 {
                let mut powers = a.clone();
                for (name, power) in b {
                    let sum = powers.get(name).copied().unwrap_or(0).saturating_add(*power);
                    if sum == 0 {
                        powers.remove(name);
                    } else {
                        powers.insert(name.clone(), sum);
                    }
                }
                product = product.plus(&Sum::term(powers, x * y));
            }
        }
        product
    }

    /// 1 over it; a sum of several products becomes a name. None of 0.
    pub fn inverse(&self) -> Option<Sum> {
        let (powers, coefficient) = self.0.iter().next()?;
        if self.0.len() > 1 {
            return Some(Sum::term(Powers::from([(self.bracketed(), -1)]), 1.0));
        }
        let powers = powers.iter().map(|(name, power)| (name.clone(), power.saturating_neg())).collect();
        Some(Sum::term(powers, 1.0 / coefficient))
    }

    fn bracketed(&self) -> String {
        format!("({self})")
    }

    /// A formula as a sum of products; `meaning` replaces names. None where it divides by 0, or is too long when written out.
    pub fn of(expression: &Expression, meaning: &dyn Fn(&str) -> Option<Sum>) -> Option<Sum> {
        let sum = Sum::translated(expression, meaning)?;
        let letters: usize = sum.0.keys().flat_map(BTreeMap::keys).map(String::len).sum();
        (letters <= MAX_LETTERS).then_some(sum)
    }

    fn translated(expression: &Expression, meaning: &dyn Fn(&str) -> Option<Sum>) -> Option<Sum> {
        let of = |expression: &Expression| Sum::of(expression, meaning);
        Some(match expression {
            Expression::Number(number) => Sum::number(*number),
            Expression::Name(name, _) => meaning(name).unwrap_or_else(|| Sum::name(name)),
            Expression::Sum(terms) => {
                let mut sum = Sum::default();
                for (minus, term) in terms {
                    let term = of(term)?;
                    sum = sum.plus(&if *minus { term.times(&Sum::number(-1.0)) } else { term });
                }
                sum
            }
            Expression::Product(factors) => {
                let mut product = Sum::number(1.0);
                for (over, factor, _) in factors {
                    let factor = of(factor)?;
                    product = product.times(&if *over { factor.inverse()? } else { factor });
                }
                product
            }
            Expression::Power(base, exponent, _) => {
                let (base, exponent) = (of(base)?, of(exponent)?);
                match exponent.as_number() {
                    Some(power) if power.fract() == 0.0 && power.abs() <= f64::from(MAX_POWER) => {
                        let factor = if power < 0.0 { base.inverse()? } else { base };
                        (0..power.abs() as i32).fold(Sum::number(1.0), |product, _| product.times(&factor))
                    }
                    _ => Sum::name(&format!("(({base})^({exponent}))")),
                }
            }
            Expression::Call(name, arguments, _) if name == "sizeof" => match arguments.first() {
                Some(Expression::Name(name, _)) if super::formula::size_of(name).is_some() => {
                    Sum::name(&format!("sizeof({name})"))
                }
                _ => Sum::name("sizeof(TYPE)"),
            },
            Expression::Call(name, arguments, _) => {
                let arguments = arguments.iter().map(of).collect::<Option<Vec<Sum>>>()?;
                let words: Vec<String> = arguments.iter().map(Sum::to_string).collect();
                Sum::name(&format!("{name}({})", words.join(", ")))
            }
            Expression::Element(name, ..) => Sum::name(name),
        })
    }
}

/// As the seed writes formula (4): `(10*p_size + 2*p_size^2)/n_procs + 2*n_procs`, products with the same denominator
/// together, those with the most of them first.
impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        let mut by_denominator: Vec<(Powers, Vec<(Powers, f64)>)> = Vec::new();
        for (powers, coefficient) in &self.0 {
            let (over, under): (Powers, Powers) =
                powers.iter().map(|(n, p)| (n.clone(), *p)).partition(|(_, p)| *p > 0);
            match by_denominator.iter_mut().find(|(other, _)| *other == under) {
                Some((_, terms)) => terms.push((over, *coefficient)),
                None => by_denominator.push((under, vec![(over, *coefficient)])),
            }
        }
        by_denominator.sort_by_key(|(under, _)| under.values().sum::<i32>());
        for (at, (under, mut terms)) in by_denominator.into_iter().enumerate() {
            terms.sort_by_key(|(powers, _)| powers.values().sum::<i32>());
            let numerator = joined(&terms, at > 0 && (under.is_empty() || terms.len() == 1));
            if under.is_empty() {
                write!(f, "{numerator}")?;
                continue;
            }
            match (terms.len(), at) {
                (1, _) => f.write_str(&numerator)?,
                (_, 0) => write!(f, "({numerator})")?,
                _ => write!(f, " + ({numerator})")?,
            }
            for (name, power) in &under {
                write!(f, "/{}", raised(name, -power))?;
            }
        }
        Ok(())
    }
}

/// Terms with their signs; after others (`follows`) the first one's too.
fn joined(terms: &[(Powers, f64)], follows: bool) -> String {
    let mut text = String::new();
    for (at, (powers, coefficient)) in terms.iter().enumerate() {
        let sign = match (at > 0 || follows, *coefficient < 0.0) {
            (true, true) => " - ",
            (true, false) => " + ",
            (false, true) => "-",
            (false, false) => "",
        };
        text.push_str(sign);
        let mut factors: Vec<String> = powers.iter().map(|(name, power)| raised(name, *power)).collect();
        if coefficient.abs() != 1.0 || factors.is_empty() {
            factors.insert(0, format!("{}", coefficient.abs()));
        }
        text.push_str(&factors.join("*"));
    }
    text
}

fn raised(name: &str, power: i32) -> String {
    if power == 1 { name.to_owned() } else { format!("{name}^{power}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::formula::{Scope, evaluate, single};
    use proptest::prelude::*;

    fn sum(text: &str) -> Sum {
        Sum::of(&single(text).expect("a formula"), &|_| None).expect("no division by 0")
    }

    #[test]
    fn formula_4_reads_as_printed() {
        let text = "(10*N + 2*N^2)/P + 2*P";
        assert_eq!(sum(text).to_string(), text);
        assert_eq!(sum("2*P + N*(N+5)*2/P").to_string(), text);
        assert_eq!(sum("N - N").to_string(), "0");
        assert_eq!(sum("1/P - 3/P^2").to_string(), "-3/P^2 + 1/P");
        assert_eq!(sum("-N/(P-1)").to_string(), "-N/(-1 + P)");
        assert_eq!(sum("sqrt(N*N)*sqrt(N^2)").to_string(), "sqrt(N^2)^2");
        assert_eq!(sum("N^0.5*N^0.5").to_string(), "((N)^(0.5))^2");
    }

    fn formula() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![Just("N".to_owned()), Just("P".to_owned()), (1u32..9).prop_map(|n| n.to_string())];
        leaf.prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} + {b})")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} - 2*{b})")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}*{b}")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}/({b})")),
                (inner.clone(), 0u32..4).prop_map(|(a, n)| format!("({a})^{n}")),
                inner.clone().prop_map(|a| format!("sqrt(1 + ({a})^2)")),
                inner.prop_map(|a| format!("(1 + ({a})^2)^0.5")),
            ]
        })
    }

    proptest! {
        #[test]
        fn sums_have_the_value_of_their_formula(text in formula(), n in 1.0..50.0f64, p in 1.0..50.0f64) {
            let values = [("N".to_owned(), n), ("P".to_owned(), p)].into();
            let scope = Scope { values, type_bytes: 8.0, costs: None };
            let expression = single(&text).expect("a formula");
            if let (Ok(value), Some(sum)) = (evaluate(&expression, &scope), Sum::of(&expression, &|_| None)) {
                let again = single(&sum.to_string()).expect("sums read as formulae");
                if let Ok(ours) = evaluate(&again, &scope) {
                    // Differences of large numbers lose digits.
                    let size = text.len() as f64 * (1.0 + value.abs()) + 1e6;
                    prop_assert!((ours - value).abs() <= 1e-6 * size || !ours.is_finite(), "{text} = {value}, {sum} = {ours}");
                }
            }
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[ -~\n]{0,60}") {
            let _ = single(&text);
            let _ = crate::model::formula::formulae(&text);
        }

        #[test]
        fn no_text_of_formulae_makes_the_reader_panic(text in "[NP0-9+*/^()., =;a-c\\[\\]-]{0,60}") {
            let _ = single(&text).map(|e| Sum::of(&e, &|_| None).map(|sum| sum.to_string()));
            let _ = crate::model::formula::formulae(&text);
        }
    }
}
