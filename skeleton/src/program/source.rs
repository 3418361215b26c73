//! The C source of a skeleton: one SPMD program in C99, written to be read.
mod rooms;
mod spread;
mod steps;
mod whole;

use super::calibrate::Rates;
use super::plan::{Block, Plan, StepId};
use super::replay::Outcome;
use super::scale::weights;
use rooms::Rooms;
use rustc_hash::FxHashMap;
use spread::Around;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const RUNTIME: [&str; 3] =
    [include_str!("runtime/messages.c"), include_str!("runtime/collectives.c"), include_str!("runtime/time.c")];
const MAIN: &str = include_str!("runtime/main.c");
/// The computation of skeletons: the calibration is compiled from the same text.
pub const KERNEL: &str = include_str!("kernel.c");
/// That of computation that was counted.
pub const FAR: &str = include_str!("far.c");

/// Computation that spreads by less than this share of its mean is written as its mean.
const EVEN: f64 = 0.02;

/// A part of the program that is timed apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What it is, in words.
    pub name: String,
    /// The class of ranks that it is of; none: all.
    pub class: Option<usize>,
    /// Iterations in the traced program.
    pub full: u64,
    /// Iterations in the skeleton.
    pub count: u64,
    /// Its time in the traced program on one rank, in ns, without that of parts within it.
    pub base_ns: f64,
}

/// A source with its parts.
#[derive(Clone, Debug)]
pub struct Source {
    /// The text.
    pub text: String,
    /// Its parts; the first is what lies outside the others.
    pub parts: Vec<Part>,
}

/// What stands at the head of a source.
pub struct Head<'a> {
    /// The program that was traced, in words.
    pub program: &'a str,
    /// The ratio asked for and the one expected.
    pub ratio: (f64, f64),
    /// The topology in words.
    pub topology: Option<&'a str>,
}

struct Writer<'a> {
    plan: &'a Plan,
    rates: &'a Rates,
    times: Vec<u64>,
    /// What a receive must have room for: the longest message that it was matched with.
    room: FxHashMap<StepId, u64>,
    used: BTreeSet<&'static str>,
    /// Directions and groups as ranks without a partner see them, with those ranks.
    directions: Vec<(String, usize, BTreeSet<u32>)>,
    groups: Vec<(String, usize, BTreeSet<u32>)>,
    names: Vec<String>,
    group_names: Vec<String>,
    /// Room of the buffers of each class, and what single ranks need beyond it.
    rooms: Vec<Rooms>,
    own_rooms: BTreeMap<u32, Rooms>,
    /// The loops around what is written.
    around: Vec<Around>,
    parts: Vec<Part>,
    spreads: usize,
    out: String,
}

/// Writes the source of a plan; `outcome` is that of its last replay.
pub fn write(plan: &Plan, outcome: &Outcome, head: &Head<'_>, rates: &Rates) -> Source {
    let mut room: FxHashMap<StepId, u64> = FxHashMap::default();
    for &(send, receive) in outcome.matches.keys() {
        let most = room.entry(receive).or_default();
        *most = (*most).max(plan.steps[send].bytes);
    }
    let mut writer = Writer {
        plan,
        rates,
        times: plan.executions(),
        room,
        used: BTreeSet::new(),
        directions: Vec::new(),
        groups: Vec::new(),
        names: names(plan.directions.iter().map(|d| d.name.as_str()), "DIRECTION"),
        group_names: names(plan.groups.iter().map(|g| g.name.as_str()), "GROUP"),
        rooms: vec![Rooms::new(); plan.classes.len()],
        own_rooms: BTreeMap::new(),
        around: Vec::new(),
        parts: vec![Part { name: "outside loops".into(), class: None, full: 1, count: 1, base_ns: 0.0 }],
        spreads: 0,
        out: String::new(),
    };
    let outside: f64 = (0..plan.classes.len())
        .map(|class| {
            let ranks = plan.classes[class].ranks.len() as f64;
            ranks * own_cost(plan, &plan.classes[class].body, 1.0)
        })
        .sum();
    writer.parts[0].base_ns = outside / f64::from(plan.ranks);
    let mut bodies = String::new();
    for class in 0..plan.classes.len() {
        writer.class(class);
        bodies.push_str(&std::mem::take(&mut writer.out));
    }
    let text = writer.whole(&bodies, head);
    Source { text, parts: writer.parts }
}

/// Time of blocks in the traced program in ns, without the loops that are parts of their own.
fn own_cost(plan: &Plan, blocks: &[Block], times: f64) -> f64 {
    let of = |block: &Block| match *block {
        Block::Step(id) => {
            let step = &plan.steps[id].step;
            times * (step.compute.mean_ns + step.call_ns)
        }
        Block::Loop(id) if plan.loops[id].count < plan.loops[id].full => 0.0,
        Block::Loop(id) => own_cost(plan, &plan.loops[id].body, times * plan.loops[id].full as f64),
    };
    blocks.iter().map(of).sum()
}

/// C identifiers, all different, none of which means anything else.
fn names<'a>(wanted: impl Iterator<Item = &'a str>, kind: &str) -> Vec<String> {
    const TAKEN: [&str; 19] = [
        "NONE",
        "NOBODY",
        "ONESELF",
        "ALONE",
        "RANKS",
        "SLOTS",
        "PARTS",
        "MIX",
        "WORKING_SET",
        "BLOCK_US",
        "GONE_THROUGH_PER_US",
        "CACHED",
        "LINES_PER_US",
        "ROUNDS_PER_US",
        "FAR_SET",
        "FAR_LINES_PER_US",
        "NULL",
        "EOF",
        "BUFSIZ",
    ];
    let mut seen: BTreeSet<String> = TAKEN.into_iter().map(String::from).collect();
    let mut out = Vec::new();
    for (at, name) in wanted.enumerate() {
        let good = name.len() <= 40
            && name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
            && !["MPI", "PMPI", "OMPI", "SEEK_", "FILE", "EXIT_", "RAND_"]
                .iter()
                .any(|prefix| name.starts_with(prefix));
        let mut name = if good { name.to_owned() } else { format!("{kind}_{at}") };
        while !seen.insert(name.clone()) {
            name = format!("{kind}_{at}_{}", seen.len());
        }
        out.push(name);
    }
    out
}

/// A text that cannot end a comment, or be more than one line of it.
pub fn harmless(text: &str) -> String {
    let one_line: String =
        text.chars().map(|c| if c.is_control() || !c.is_ascii() || c == '\\' { '?' } else { c }).take(300).collect();
    one_line.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")
}

fn number(us: f64) -> String {
    let text = format!("{us:.3}");
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

fn time(ns: f64) -> String {
    match ns {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.1} us", n * 1e-3),
        n if n < 1e9 => format!("{:.1} ms", n * 1e-6),
        n => format!("{:.2} s", n * 1e-9),
    }
}

impl Writer<'_> {
    fn class(&mut self, class: usize) {
        let of = &self.plan.classes[class];
        let ranks = ranges(&of.ranks);
        let _ = writeln!(self.out, "\n/* Ranks {ranks}. */\nstatic void class_{class}(void)\n{{");
        self.body(class, &of.body, 1, 0, None);
        self.out.push_str("}\n");
    }

    /// Writes blocks; `timed` is the part that they are in, with the C expression of its weight.
    fn body(&mut self, class: usize, blocks: &[Block], indent: usize, level: usize, timed: Option<(usize, String)>) {
        for block in blocks {
            match *block {
                Block::Step(step) => self.step(step, indent, &timed),
                Block::Loop(id) => self.repeat(class, id, indent, level, &timed),
            }
        }
    }

    fn line(&mut self, indent: usize, text: &str) {
        for _ in 0..indent {
            self.out.push_str("    ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn repeat(&mut self, class: usize, id: usize, indent: usize, level: usize, outer: &Option<(usize, String)>) {
        let plan = self.plan;
        let of = &plan.loops[id];
        let i = format!("i{level}");
        if of.count == of.full {
            self.line(indent, &format!("for (long {i} = 0; {i} < {}; {i}++) {{", of.count));
            self.around.push((of.count, 1.0, 1.0));
            self.body(class, &of.body, indent + 1, level + 1, outer.clone());
            self.around.pop();
            self.line(indent, "}");
            return;
        }
        let part = self.parts.len();
        let executions = self.executions_full(class, id);
        let base_ns = own_cost(plan, &of.body, of.full as f64) * executions;
        self.parts.push(Part {
            name: format!("loop {part}"),
            class: Some(class),
            full: of.full,
            count: of.count,
            base_ns,
        });
        let (first, rest) = weights(of.full, of.count);
        let w = format!("w{level}");
        let around = outer.as_ref().map(|(_, weight)| weight.clone());
        let times = |weight: f64| match &around {
            Some(outer) => format!("{outer} * {weight:?}"),
            None => format!("{weight:?}"),
        };
        self.line(indent, &format!("/* Part {part}: {} iterations in the program, {} here. */", of.full, of.count));
        self.line(indent, &format!("for (long {i} = 0; {i} < {}; {i}++) {{", of.count));
        let lead = of.count > 1 && first != rest;
        let nested = has_parts(plan, &of.body);
        let weight = if nested {
            let value = if lead { format!("{i} == 0 ? {} : {}", times(first), times(rest)) } else { times(rest) };
            self.line(indent + 1, &format!("const double {w} = {value};"));
            self.line(indent + 1, &format!("part({part}, {w});"));
            w
        } else if lead {
            self.line(indent + 1, &format!("if ({i} < 2)"));
            self.line(indent + 2, &format!("part({part}, {i} == 0 ? {} : {});", times(first), times(rest)));
            format!("({i} == 0 ? {} : {})", times(first), times(rest))
        } else {
            self.line(indent + 1, &format!("if ({i} == 0)"));
            self.line(indent + 2, &format!("part({part}, {});", times(rest)));
            times(rest)
        };
        self.around.push((of.count, first, rest));
        self.body(class, &of.body, indent + 1, level + 1, Some((part, weight)));
        self.around.pop();
        self.line(indent, "}");
        let (back, weight) = outer.clone().unwrap_or((0, "1.0".into()));
        self.line(indent, &format!("part({back}, {weight});"));
    }

    /// How often the traced program enters a loop.
    fn executions_full(&self, class: usize, wanted: usize) -> f64 {
        fn find(plan: &Plan, blocks: &[Block], times: f64, wanted: usize) -> Option<f64> {
            blocks.iter().find_map(|block| match *block {
                Block::Loop(id) if id == wanted => Some(times),
                Block::Loop(id) => find(plan, &plan.loops[id].body, times * plan.loops[id].full as f64, wanted),
                Block::Step(_) => None,
            })
        }
        find(self.plan, &self.plan.classes[class].body, 1.0, wanted).unwrap_or(1.0)
    }
}

fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    RUNTIME.iter().flat_map(|file| file.split("//@ ").skip(1)).filter_map(|section| section.split_once('\n'))
}

fn has_parts(plan: &Plan, blocks: &[Block]) -> bool {
    blocks.iter().any(|block| match *block {
        Block::Loop(id) => plan.loops[id].count < plan.loops[id].full || has_parts(plan, &plan.loops[id].body),
        Block::Step(step) => plan.steps[step].shorter > 1.0,
    })
}

/// Ranks as `0 to 3, 7`.
pub fn ranges(ranks: &[u32]) -> String {
    let runs = ranks.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first} to {last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(", ")
}
