//! Which factors are set in which runs (seed 000, section 3.2.2, after Jain's "The Art of Computer Systems Performance
//! Analysis"): full two-level designs, fractions of them, and Plackett and Burman's; and what the runs say of each factor.
use super::error::StabilityError;

/// The most factors.
pub const MOST_FACTORS: usize = 31;
/// The most runs.
pub const MOST_RUNS: usize = 256;

/// Kinds of designs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All combinations.
    Full,
    /// A power of two of them.
    Fractional,
    /// A multiple of four of them.
    PlackettBurman,
}

/// What is set in which runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    /// Its kind.
    pub kind: Kind,
    /// For each run, whether each factor is set.
    pub runs: Vec<Vec<bool>>,
    /// How much is mixed up: with 3, effects of factors with those of pairs; with 4, those of pairs with one another. None
    /// of a full design, where nothing is.
    pub resolution: Option<u32>,
    /// For each factor beyond the basic ones of a fraction, the basic factors of which its column is the product.
    pub generators: Vec<Vec<usize>>,
}

/// First rows of Plackett and Burman's designs.
const ROWS: [&str; 3] = ["++-+++---+-", "++--++++-+-+----++-", "+++++-+-++--++--+-+----"];

impl Design {
    /// The design of some factors in at most so many runs: a full one if it fits (several times over, if it does), else the
    /// fraction that mixes up least, else Plackett and Burman's.
    ///
    /// # Errors
    /// If there are too many factors or runs, or too few runs.
    pub fn fitting(factors: usize, runs: usize) -> Result<Design, StabilityError> {
        check(factors, runs)?;
        if factors < 9 && 1 << factors <= runs {
            let once = Design::full(factors);
            let repeated = (0..runs / once.runs.len()).flat_map(|_| once.runs.clone()).collect();
            return Ok(Design { runs: repeated, ..once });
        }
        let fraction = fraction(factors, runs.ilog2() as usize);
        match (fraction, ROWS.iter().rev().find(|row| row.len() < runs && row.len() >= factors)) {
            (Some(fraction), row) if fraction.resolution > Some(3) || row.is_none() => Ok(fraction),
            (_, Some(row)) => Ok(plackett_burman(factors, row)),
            (Some(fraction), None) => Ok(fraction),
            (None, None) => Err(too_few(None, factors, runs)),
        }
    }

    /// All combinations of some factors.
    fn full(factors: usize) -> Design {
        let levels = |run: usize| (0..factors).map(|factor| run >> factor & 1 == 1).collect();
        let runs = (0..1 << factors).map(levels).collect();
        Design { kind: Kind::Full, runs, resolution: None, generators: Vec::new() }
    }

    /// A design of a kind.
    ///
    /// # Errors
    /// If there are too many factors or runs, or too few runs for that kind.
    pub fn of_kind(kind: Kind, factors: usize, runs: usize) -> Result<Design, StabilityError> {
        check(factors, runs)?;
        let found = match kind {
            Kind::Full => (factors < 9 && 1 << factors <= runs).then(|| Design::full(factors)),
            Kind::Fractional => fraction(factors, (runs.ilog2() as usize).min(factors.saturating_sub(1))),
            Kind::PlackettBurman => {
                let row = ROWS.iter().find(|row| row.len() >= factors && row.len() < runs);
                row.map(|row| plackett_burman(factors, row))
            }
        };
        found.ok_or_else(|| too_few(Some(kind), factors, runs))
    }

    /// How many factors are chosen for at most so many runs where nothing is said: half as many, if they fit the kind.
    pub fn usual_factors(kind: Option<Kind>, runs: usize) -> usize {
        let basic = runs.max(2).ilog2() as usize;
        match kind {
            Some(Kind::Full) => basic.min(8),
            Some(Kind::Fractional) => (runs / 2).clamp(basic + 1, MOST_FACTORS),
            Some(Kind::PlackettBurman) => (runs / 2).clamp(1, ROWS[2].len()),
            None => (runs / 2).clamp(1, MOST_FACTORS),
        }
    }

    /// Factors.
    pub fn factors(&self) -> usize {
        self.runs.first().map_or(0, Vec::len)
    }

    /// Its kind in words.
    pub fn words(&self) -> String {
        let (factors, runs) = (self.factors(), self.runs.len());
        match (self.kind, self.resolution) {
            (Kind::Full, _) if runs > 1 << factors => format!("full 2^{factors}, {} times", runs >> factors),
            (Kind::Full, _) => format!("full 2^{factors}"),
            (Kind::Fractional, resolution) => {
                let missing = factors as u32 - runs.ilog2();
                format!("fractional 2^({factors}-{missing}) of resolution {}", resolution.unwrap_or(0))
            }
            (Kind::PlackettBurman, _) => format!("Plackett and Burman's of {runs} runs, {factors} factors"),
        }
    }
}

fn check(factors: usize, runs: usize) -> Result<(), StabilityError> {
    if factors == 0 || factors > MOST_FACTORS || runs > MOST_RUNS {
        let what = format!("an experiment has 1 to {MOST_FACTORS} factors and at most {MOST_RUNS} runs");
        return Err(StabilityError::Design(format!("{what}, not {factors} factors in {runs} runs")));
    }
    if runs < 2 || runs <= factors {
        return Err(too_few(None, factors, runs));
    }
    Ok(())
}

fn too_few(kind: Option<Kind>, factors: usize, runs: usize) -> StabilityError {
    let needs = match kind {
        None => "a design has a power of two of runs, or 12, 20 or 24, and fewer factors".into(),
        Some(Kind::Full) if factors < 9 => format!("a full design of so many factors has {} runs", 1 << factors),
        Some(Kind::Full) => "a full design has at most 8 factors".into(),
        Some(Kind::Fractional) => {
            "a fraction has 3 factors or more, and fewer than the power of two that its runs are".into()
        }
        Some(Kind::PlackettBurman) => {
            "a design of Plackett and Burman has 12, 20 or 24 runs and fewer factors than runs".into()
        }
    };
    StabilityError::Design(format!("{factors} factors do not fit {runs} runs: {needs}"))
}

fn plackett_burman(factors: usize, row: &str) -> Design {
    let row: Vec<bool> = row.bytes().map(|sign| sign == b'+').collect();
    let size = row.len();
    let shifted = |by: usize| (0..factors).map(|factor| row[(factor + by) % size]).collect();
    let runs = std::iter::once(vec![false; factors]).chain((0..size).map(shifted)).collect();
    Design { kind: Kind::PlackettBurman, runs, resolution: Some(3), generators: Vec::new() }
}

/// The fraction of 2^basic runs with the greatest resolution; none if factors do not fit.
fn fraction(factors: usize, basic: usize) -> Option<Design> {
    if basic == 0 || factors <= basic || factors >= 1 << basic {
        return None;
    }
    let mut products: Vec<u32> = (0..1u32 << basic).filter(|set| set.count_ones() >= 2).collect();
    products.sort_by_key(|set| (std::cmp::Reverse(set.count_ones()), *set));
    (3..=basic as u32 + 1).rev().find_map(|resolution| {
        let mut chosen = Vec::new();
        let mut patience = 200_000;
        choose(&products, basic, factors - basic, resolution, &[0], &mut chosen, &mut patience).then(|| {
            let column = |run: usize, set: u32| (run as u32 & set).count_ones() % 2 == set.count_ones() % 2;
            let levels = |run: usize| {
                let own = (0..basic).map(|factor| run >> factor & 1 == 1);
                own.chain(chosen.iter().map(|&set| column(run, set))).collect()
            };
            let members = |set: &u32| (0..basic).filter(|factor| set >> factor & 1 == 1).collect();
            Design {
                kind: Kind::Fractional,
                runs: (0..1 << basic).map(levels).collect(),
                resolution: Some(resolution),
                generators: chosen.iter().map(members).collect(),
            }
        })
    })
}

/// Chooses products for the further factors such that no word of the defining relation is shorter than the resolution. Of
/// `words` those are left out that further ones can only make longer than that: each has a factor for each of its products.
fn choose(
    products: &[u32],
    basic: usize,
    missing: usize,
    resolution: u32,
    words: &[u64],
    chosen: &mut Vec<u32>,
    patience: &mut u32,
) -> bool {
    if missing == 0 {
        return true;
    }
    for (at, &product) in products.iter().enumerate() {
        if *patience == 0 {
            return false;
        }
        *patience -= 1;
        let word = u64::from(product) | 1 << (basic + chosen.len());
        let more: Vec<u64> = words.iter().map(|other| other ^ word).collect();
        if more.iter().all(|word| word.count_ones() >= resolution) {
            let short = more.into_iter().filter(|word| (word >> basic).count_ones() + 1 < resolution);
            let all: Vec<u64> = words.iter().copied().chain(short).collect();
            chosen.push(product);
            if choose(&products[at + 1..], basic, missing - 1, resolution, &all, chosen, patience) {
                return true;
            }
            chosen.pop();
        }
    }
    false
}

/// What a factor, or two of them together, do to a response.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// The factor, or the two whose interaction it is.
    pub factors: Vec<usize>,
    /// Mean response with it less that without it (of an interaction: half the difference that the one makes to the
    /// other's effect).
    pub effect: f64,
    /// The share of the responses' variation that it explains.
    pub share: f64,
    /// Pairs whose interactions cannot be told from it in this design.
    pub mixed_with: Vec<(usize, usize)>,
}

/// The effects of all factors, and of pairs as far as they can be told from those, on the response of each run.
pub fn effects(design: &Design, responses: &[f64]) -> Vec<Effect> {
    let (factors, runs) = (design.factors(), design.runs.len());
    assert_eq!(runs, responses.len(), "a response for each run");
    let sign = |set: bool| if set { 1.0 } else { -1.0 };
    let single = |factor: usize| -> Vec<f64> { design.runs.iter().map(|levels| sign(levels[factor])).collect() };
    let pair = |(x, y): (usize, usize)| -> Vec<f64> {
        design.runs.iter().map(|levels| sign(levels[x]) * sign(levels[y])).collect()
    };
    let mean = responses.iter().sum::<f64>() / runs as f64;
    let variation: f64 = responses.iter().map(|y| (y - mean).powi(2)).sum();
    let effect = |of: Vec<usize>, column: &[f64]| {
        let effect = 2.0 * column.iter().zip(responses).map(|(sign, y)| sign * y).sum::<f64>() / runs as f64;
        let share = if variation > 0.0 { runs as f64 * (effect / 2.0).powi(2) / variation } else { 0.0 };
        Effect { factors: of, effect, share, mixed_with: Vec::new() }
    };
    let mut columns: Vec<Vec<f64>> = (0..factors).map(single).collect();
    let mut all: Vec<Effect> = columns.iter().enumerate().map(|(factor, c)| effect(vec![factor], c)).collect();
    for pair_of in (0..factors).flat_map(|x| (x + 1..factors).map(move |y| (x, y))) {
        let column = pair(pair_of);
        let dot = |other: &Vec<f64>| other.iter().zip(&column).map(|(a, b)| a * b).sum::<f64>().abs();
        // Those that are partly mixed up with factors (in Plackett and Burman's designs) cannot be told apart.
        if columns[..factors].iter().all(|own| dot(own) < 0.5) && columns.iter().all(|other| dot(other) < 0.5) {
            all.push(effect(vec![pair_of.0, pair_of.1], &column));
            columns.push(column);
        } else {
            let mixed = columns.iter().enumerate().filter(|(_, other)| dot(other) >= 0.5);
            mixed.for_each(|(at, _)| all[at].mixed_with.push(pair_of));
        }
    }
    all
}
