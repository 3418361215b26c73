//! K, how many times as long computation takes on the target as on the base (seed 000, section 4.1): one number, or one
//! for each region of the program, from a smaller run on both machines (the seed's Table 1).
//!
//! A region is the code between two calls, known by their call sites. The two small runs are of one program with one
//! input, so their calls come in the same order on every rank: the n-th gap of a rank on the base is its n-th on the
//! target, though the addresses differ between builds. The small base run and the run to be transformed are matched by
//! the sites' names, or by their order in the program (the same source built with another problem size).
use crate::machine::{self, Machine};
use crate::transform::answer::CONFIDENCE;
use crate::transform::error::TransformError;
use crate::transform::roles::{self, Completes};
use crate::transform::survey::{Sites, Survey, survey};
use phasecast_analyzer::matching::FastMap;
use phasecast_analyzer::noise::quantile;
use phasecast_analyzer::parallel::Stage;
use phasecast_trace::{Class, Flags, Rank, Trace};
use serde::Serialize;
use std::collections::BTreeMap;

/// No site.
const NONE: u32 = u32::MAX;
/// Regions with less base time than this, in ns, have no ratio of their own.
const LEAST_NS: f64 = 50_000.0;
/// Regions that come less often have none either.
const LEAST_COUNT: u64 = 3;

/// Where K comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The user gave it.
    Given,
    /// Kernels that were timed on both machines.
    Kernels,
    /// A smaller run on both machines.
    Runs,
}

/// One region's ratio: a row of the seed's Table 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Region {
    /// The call before it, with its site.
    pub after: String,
    /// The call after it.
    pub before: String,
    /// How often it came in the small run, over all ranks.
    pub count: u64,
    /// Its time in the small base run, in seconds, over all ranks.
    pub base_s: f64,
    /// Its time in the small target run.
    pub target_s: f64,
    /// K.
    pub ratio: f64,
}

/// K.
#[derive(Debug)]
pub struct Ratios {
    /// Where it is from.
    pub from: Origin,
    /// For all code that has no ratio of its own.
    pub whole: f64,
    /// What `whole` may be off, as a share of it: half the width of a 95 % interval.
    pub uncertain: f64,
    /// The regions, those that take the most time first.
    pub regions: Vec<Region>,
    /// Ranks and calls whose small runs do not agree, in words.
    pub note: Option<String>,
    sites: Option<Sites>,
    by_site: FastMap<(u32, u32), f64>,
    /// The number of each site's procedure, and the ratios between procedures: for sites that the small run did not reach.
    procedures: Vec<u32>,
    by_procedure: FastMap<(u32, u32), f64>,
}

impl Ratios {
    /// One number for everything.
    ///
    /// # Errors
    /// If it is not above 0.
    pub fn given(ratio: f64) -> Result<Ratios, TransformError> {
        if ratio > 0.0 && ratio.is_finite() {
            Ok(Ratios::whole(Origin::Given, ratio, 0.0))
        } else {
            Err(TransformError::BadRatio(ratio))
        }
    }

    fn whole(from: Origin, whole: f64, uncertain: f64) -> Ratios {
        Ratios {
            from,
            whole,
            uncertain,
            regions: Vec::new(),
            note: None,
            sites: None,
            by_site: FastMap::default(),
            procedures: Vec::new(),
            by_procedure: FastMap::default(),
        }
    }

    /// One number from the kernels of both machines. Where it differs from 1 by no more than the kernels scatter, the
    /// processors are the same as far as can be told, and it is 1.
    ///
    /// # Errors
    /// If the machines have no kernel in common.
    pub fn kernels(base: &Machine, target: &Machine) -> Result<Ratios, TransformError> {
        let found = machine::ratio(base, target).ok_or(TransformError::NoRatio)?;
        let error = |machine: &Machine, name: &str| {
            let kernel = machine.kernels.iter().find(|kernel| kernel.name == name);
            kernel.map_or(0.0, |kernel| kernel.spread / kernel.seconds)
        };
        let count = found.kernels.len() as f64;
        let squares: f64 =
            found.kernels.iter().map(|(name, _)| error(base, name).powi(2) + error(target, name).powi(2)).sum();
        // The quartile distance is 1.349 standard deviations.
        let measured = 1.96 * (squares / 0.6745f64.powi(2)).sqrt() / count;
        let scatter = 1.96 * found.factor.ln() / count.sqrt();
        let uncertain = measured.max(scatter).max(0.01);
        let same = found.k.ln().abs() <= uncertain;
        Ok(Ratios::whole(Origin::Kernels, if same { 1.0 } else { found.k }, uncertain))
    }

    /// From a smaller run on both machines, for the run `trace`.
    ///
    /// # Errors
    /// If the small runs cannot be read, or have nothing in common.
    pub fn runs(small: [&Trace; 2], trace: &Trace, big: &Survey, threads: usize) -> Result<Ratios, TransformError> {
        if small[0].size() != small[1].size() {
            return Err(TransformError::Ranks {
                a: small[0].path().to_owned(),
                a_ranks: small[0].size(),
                b: small[1].path().to_owned(),
                b_ranks: small[1].size(),
                why: "the small runs on base and target must have as many. Trace them with the same number of ranks.",
            });
        }
        let silent: crate::transform::Progress<'_> = &|_, _| {};
        let roles = roles::roles(small[0]);
        let found = survey(small[0], &roles, threads, true, &Stage::new(silent, 0, 1))?;
        let sites = Sites::new(small[0], &found);
        let mut gaps = Gaps::default();
        let mut broken = None;
        for rank in small[0].ranks() {
            if let Some((name, other, at)) = gaps.align(small, rank, &sites)? {
                broken.get_or_insert_with(|| {
                    format!(
                        "the small runs do not do the same: rank {rank} calls {name} on the base and {other} on the \
                         target after {at} calls; what comes after is not used for ratios"
                    )
                });
            }
        }
        let (base, target) = gaps.regions.values().fold((0.0, 0.0), |s, g| (s.0 + g.base, s.1 + g.target));
        if base <= 0.0 || target <= 0.0 {
            return Err(TransformError::Alien {
                a: small[0].path().to_owned(),
                b: small[1].path().to_owned(),
                what: broken.unwrap_or_else(|| "there is no time between their calls".into()),
            });
        }
        let mut ratios = Ratios::whole(Origin::Runs, target / base, gaps.uncertain());
        ratios.note = broken;
        let numbered = Sites::new(trace, big);
        ratios.add_regions(&gaps, &sites, &numbered);
        ratios.sites = Some(numbered);
        Ok(ratios)
    }

    fn add_regions(&mut self, gaps: &Gaps, sites: &Sites, big: &Sites) {
        let places = sites.same_in(big);
        let mut by_procedure: BTreeMap<(String, String), Gap> = BTreeMap::new();
        for (&(a, b), gap) in &gaps.regions {
            let name = |site: u32| sites.names.get(site as usize);
            let (Some(after), Some(before)) = (name(a), name(b)) else { continue };
            by_procedure.entry((after.0.clone(), before.0.clone())).or_default().add(gap);
            if gap.count < LEAST_COUNT || gap.base < LEAST_NS {
                continue;
            }
            let ratio = gap.target / gap.base;
            let at = |name: &(String, String)| format!("{} at {}", name.0, name.1);
            self.regions.push(Region {
                after: at(after),
                before: at(before),
                count: gap.count,
                base_s: gap.base * 1e-9,
                target_s: gap.target * 1e-9,
                ratio,
            });
            if let (Some(Some(a)), Some(Some(b))) = (places.get(a as usize), places.get(b as usize))
                && ratio > 0.0
            {
                self.by_site.insert((*a, *b), ratio);
            }
        }
        let enough = |gap: &Gap| gap.count >= LEAST_COUNT && gap.base >= LEAST_NS && gap.target > 0.0;
        self.regions.sort_by(|a, b| b.base_s.total_cmp(&a.base_s));
        let mut numbers: FastMap<&String, u32> = FastMap::default();
        for (name, _) in &big.names {
            let next = numbers.len() as u32;
            self.procedures.push(*numbers.entry(name).or_insert(next));
        }
        for ((after, before), gap) in by_procedure.iter().filter(|(_, gap)| enough(gap)) {
            if let (Some(&after), Some(&before)) = (numbers.get(after), numbers.get(before)) {
                self.by_procedure.insert((after, before), gap.target / gap.base);
            }
        }
    }

    /// The number of a call site; the same for all if there is one ratio.
    #[inline]
    pub fn site(&self, rank: usize, proc: u16, site: u64) -> u32 {
        match &self.sites {
            None => NONE,
            Some(sites) => sites.numbers[rank].get(&(proc, site)).copied().unwrap_or(NONE),
        }
    }

    /// K of the code between two call sites.
    #[inline]
    pub fn between(&self, a: u32, b: u32) -> f64 {
        if self.procedures.is_empty() {
            return self.whole;
        }
        let procedures = || Some((*self.procedures.get(a as usize)?, *self.procedures.get(b as usize)?));
        let by_procedure = || self.by_procedure.get(&procedures()?);
        self.by_site.get(&(a, b)).or_else(by_procedure).copied().unwrap_or(self.whole)
    }
}

/// Time of a region on both machines, in ns.
#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    count: u64,
    base: f64,
    target: f64,
}

impl Gap {
    fn add(&mut self, other: &Gap) {
        self.count += other.count;
        self.base += other.base;
        self.target += other.target;
    }
}

#[derive(Default)]
struct Gaps {
    regions: FastMap<(u32, u32), Gap>,
    /// Sums of every other gap of each rank, to see how far they agree.
    parts: Vec<(f64, f64)>,
}

impl Gaps {
    /// Goes through a rank's calls on both machines together; where they part: both procedures, and after how many calls.
    fn align(
        &mut self,
        small: [&Trace; 2],
        rank: Rank,
        sites: &Sites,
    ) -> Result<Option<(String, String, u64)>, TransformError> {
        let mut one = MainThread::new(small[0], rank);
        let mut other = MainThread::new(small[1], rank);
        let mut before = NONE;
        let mut calls = 0;
        let mut parts = [(0.0, 0.0); 2];
        let parted = loop {
            let (Some(a), Some(b)) = (one.next()?, other.next()?) else { break None };
            let names = (small[0].procedure(a.proc), small[1].procedure(b.proc));
            if names.0 != names.1 {
                break Some((names.0.to_owned(), names.1.to_owned(), calls));
            }
            let site = sites.numbers[rank.index()].get(&(a.proc.0, a.site)).copied().unwrap_or(NONE);
            // What comes before the first call is loading the program, not running it.
            if calls > 0 {
                let gap = Gap { count: 1, base: a.gap, target: b.gap };
                self.regions.entry((before, site)).or_default().add(&gap);
                let part = &mut parts[calls as usize % 2];
                (part.0, part.1) = (part.0 + a.gap, part.1 + b.gap);
            }
            before = site;
            calls += 1;
        };
        self.parts.extend(parts);
        Ok(parted)
    }

    /// Half a 95 % interval of the whole ratio, as a share of it: from how far the ranks' halves agree.
    fn uncertain(&self) -> f64 {
        let ratios: Vec<f64> = self.parts.iter().filter(|p| p.0 > LEAST_NS).map(|p| p.1 / p.0).collect();
        let count = ratios.len() as f64;
        if count < 2.0 {
            return 0.05;
        }
        let mean = ratios.iter().sum::<f64>() / count;
        let variance = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (quantile(count - 1.0, CONFIDENCE) * (variance / count).sqrt() / mean).max(0.01)
    }
}

/// One call of a rank's main thread with the computation before it.
struct Step {
    proc: phasecast_trace::ProcId,
    site: u64,
    gap: f64,
}

/// The calls of a rank's main thread without those that poll: how often a program polls is no property of it.
struct MainThread<'a> {
    calls: phasecast_trace::reader::RankReader<'a>,
    roles: Vec<roles::Role>,
    exit: f64,
}

impl<'a> MainThread<'a> {
    fn new(trace: &'a Trace, rank: Rank) -> MainThread<'a> {
        MainThread { calls: trace.calls(rank), roles: roles::roles(trace), exit: trace.span(rank).0.0 as f64 }
    }

    fn next(&mut self) -> Result<Option<Step>, TransformError> {
        let mut gap = 0.0;
        while let Some(item) = self.calls.next_call()? {
            let call = item.call;
            if call.thread != 0 || call.flags.has(Flags::CONTINUED) {
                continue;
            }
            gap += (call.enter.0 as f64 - self.exit).max(0.0);
            self.exit = call.exit.0 as f64;
            let role = &self.roles[call.proc.index()];
            let polls = match call.class {
                Class::Complete => role.completes == Completes::Open && item.parts.is_empty(),
                Class::Probe => !role.probe,
                _ => false,
            };
            if !polls {
                return Ok(Some(Step { proc: call.proc, site: call.site, gap }));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many sites there are.
    #[test]
    fn a_region_that_the_small_run_did_not_reach_has_the_ratio_of_its_procedures() {
        let names = |count: usize| (0..count).map(|at| (["MPI_Send", "MPI_Recv"][at % 2].into(), format!("a+{at:#x}")));
        let of = |count: usize| Sites { numbers: Vec::new(), names: names(count).collect() };
        let mut gaps = Gaps::default();
        gaps.regions.insert((0, 1), Gap { count: 10, base: 1e6, target: 3e6 });
        let mut ratios = Ratios::whole(Origin::Runs, 2.0, 0.0);
        ratios.add_regions(&gaps, &of(2), &of(400));
        assert_eq!((ratios.between(0, 1), ratios.between(398, 399)), (3.0, 3.0));
        assert_eq!((ratios.between(399, 398), ratios.between(NONE, 1)), (2.0, 2.0));
    }
}
