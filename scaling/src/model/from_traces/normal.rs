//! The normal form of performance models: sums of c N^i log2(N)^j p^k log2(p)^l, with the size N and the ranks p.
use super::Observed;
use crate::fit::Form;

/// Exponents of the size and of its logarithm.
const OF_SIZE: [(f64, u8); 10] =
    [(0.0, 0), (1.0, 0), (2.0, 0), (3.0, 0), (0.5, 0), (1.5, 0), (0.0, 1), (1.0, 1), (2.0, 1), (-1.0, 0)];
/// Exponents of the ranks and of their logarithm.
const OF_RANKS: [(f64, u8); 10] =
    [(0.0, 0), (-1.0, 0), (1.0, 0), (-0.5, 0), (0.5, 0), (0.0, 1), (1.0, 1), (-1.0, 1), (2.0, 0), (-2.0, 0)];

/// N^size log2(N)^size_log p^ranks log2(p)^ranks_log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// Power of the size.
    pub size: (f64, u8),
    /// Power of the ranks.
    pub ranks: (f64, u8),
}

/// A sum of terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Normal(pub Vec<Term>);

const CONSTANT: Term = Term { size: (0.0, 0), ranks: (0.0, 0) };

impl Term {
    fn at(&self, size: f64, ranks: f64) -> f64 {
        let factor = |x: f64, (power, log): (f64, u8)| x.powf(power) * x.log2().powi(log.into());
        factor(size, self.size) * factor(ranks, self.ranks)
    }

    fn write(&self, coefficient: f64) -> String {
        // Seven digits: a thousandth of what times are known to.
        let coefficient: f64 = format!("{coefficient:.6e}").parse().unwrap_or(coefficient);
        let plain = (1e-3..1e7).contains(&coefficient);
        let text = if plain { format!("{coefficient}") } else { format!("{coefficient:e}") };
        let (mut over, mut under) = (vec![text], Vec::new());
        for (name, (power, log)) in [("p_size", self.size), ("n_procs", self.ranks)] {
            let raised = |power: f64| if power == 1.0 { name.to_owned() } else { format!("{name}^{power}") };
            if power > 0.0 {
                over.push(raised(power));
            } else if power < 0.0 {
                under.push(raised(-power));
            }
            if log > 0 {
                over.push(format!("log2({name})"));
            }
        }
        under.into_iter().fold(over.join("*"), |text, name| format!("{text}/{name}"))
    }
}

impl Normal {
    /// It as a formula.
    pub fn formula(&self, parameters: &[f64]) -> String {
        let terms = self.0.iter().zip(parameters).filter(|(_, c)| **c != 0.0);
        let text: Vec<String> = terms.map(|(term, coefficient)| term.write(*coefficient)).collect();
        if text.is_empty() { "0".into() } else { text.join(" + ") }
    }
}

impl Form for Normal {
    fn name(&self) -> String {
        self.formula(&vec![1.0; self.0.len()])
    }

    fn parameters(&self) -> usize {
        self.0.len()
    }

    fn terms(&self, at: &[f64], terms: &mut [f64]) {
        let (size, ranks) = (at.first().copied().unwrap_or(1.0), at.get(1).copied().unwrap_or(1.0));
        for (slot, term) in terms.iter_mut().zip(&self.0) {
            *slot = term.at(size, ranks);
        }
    }

    fn nonnegative(&self) -> bool {
        true
    }
}

/// The forms that the observed points can tell apart: one term, a constant and a term, and - where sizes and ranks both
/// differ - a term of both beside one of either. Terms vary in what varies among the points.
pub fn forms(observed: &[Observed]) -> Vec<Normal> {
    let sizes = observed.iter().any(|o| o.size != observed[0].size);
    let ranks = observed.iter().any(|o| o.ranks != observed[0].ranks);
    // Terms that are 0 or without bound at a point of size 1 cannot stand alone; they do no harm, as others fit better.
    let of_size = if sizes { &OF_SIZE[..] } else { &OF_SIZE[..1] };
    let of_ranks = if ranks { &OF_RANKS[..] } else { &OF_RANKS[..1] };
    let terms: Vec<Term> =
        of_size.iter().flat_map(|&size| of_ranks.iter().map(move |&ranks| Term { size, ranks })).collect();
    let mut forms: Vec<Normal> = terms.iter().map(|&term| Normal(vec![term])).collect();
    forms.extend(terms.iter().filter(|term| **term != CONSTANT).map(|&term| Normal(vec![CONSTANT, term])));
    if sizes && ranks {
        for both in terms.iter().filter(|term| term.size.0 > 0.0 && term.ranks != (0.0, 0)) {
            for one in terms.iter().filter(|t| **t != CONSTANT && (t.size == (0.0, 0)) != (t.ranks == (0.0, 0))) {
                forms.push(Normal(vec![*one, *both]));
            }
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{Point, choose};

    fn observed(places: &[(f64, u32)]) -> Vec<Observed> {
        places.iter().map(|&(size, ranks)| Observed { size, ranks, ..Observed::default() }).collect()
    }

    #[test]
    fn forms_are_found_again() {
        let places: Vec<(f64, u32)> =
            [64.0, 128.0, 256.0].iter().flat_map(|&n| [1, 2, 4, 8].map(move |p| (n, p))).collect();
        let forms = forms(&observed(&places));
        let candidates: Vec<&dyn Form> = forms.iter().map(|form| form as &dyn Form).collect();
        type Law = fn(f64, f64) -> f64;
        let laws: [(Law, &str); 5] = [
            (|n, p| 3e-9 * n * n / p, "p_size^2/n_procs"),
            (|_, _| 100.0, "100"),
            (|n, _| 8.0 * n, "8*p_size"),
            (|n, p| 8.0 * n / p.sqrt(), "8*p_size/n_procs^0.5"),
            (|_, p| 0.5 + 0.25 * p.log2(), "log2(n_procs)"),
        ];
        for (law, told) in laws {
            let points: Vec<Point> =
                places.iter().map(|&(n, p)| Point { at: vec![n, p.into()], value: law(n, p.into()) }).collect();
            let choice = choose(&candidates, &points).expect("a form");
            // Far from the points, too.
            let far = choice.fitted.at(&forms[choice.form], &[4096.0, 512.0]);
            let truth = law(4096.0, 512.0);
            assert!((far / truth - 1.0).abs() < 1e-6, "{told}: {far} {truth}");
            let formula = forms[choice.form].formula(&choice.fitted.parameters);
            assert!(formula.contains(told), "{told}: {formula}");
        }
    }

    #[test]
    fn what_does_not_vary_is_not_fitted() {
        let forms = forms(&observed(&[(64.0, 1), (64.0, 2), (64.0, 4)]));
        assert!(forms.iter().all(|form| form.0.iter().all(|term| term.size == (0.0, 0))));
    }
}
