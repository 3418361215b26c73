//! The C source of a skeleton: one SPMD program in C99, written to be read.
use super::calibrate::Rates;
use super::collective::Kind;
use super::plan::{Block, Plan, PlanStep, Side, StepId};
use super::replay::Outcome;
use super::scale::weights;
use crate::logical::{End, Mode, Operation};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::fmt::Write;

const RUNTIME: &str = include_str!("runtime.c");
/// The computation of skeletons: the calibration is compiled from the same text.
pub const KERNEL: &str = include_str!("kernel.c");

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
    times: Vec<u64>,
    /// What a receive must have room for: the longest message that it was matched with.
    room: FxHashMap<StepId, u64>,
    used: BTreeSet<&'static str>,
    /// Directions and groups as ranks without a partner see them, with those ranks.
    directions: Vec<(String, usize, BTreeSet<u32>)>,
    groups: Vec<(String, usize, BTreeSet<u32>)>,
    names: Vec<String>,
    group_names: Vec<String>,
    outgoing: u64,
    incoming: Vec<u64>,
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
        times: plan.executions(),
        room,
        used: BTreeSet::new(),
        directions: Vec::new(),
        groups: Vec::new(),
        names: names(plan.directions.iter().map(|d| d.name.as_str()), "DIRECTION"),
        group_names: names(plan.groups.iter().map(|g| g.name.as_str()), "GROUP"),
        outgoing: 8,
        incoming: vec![8; usize::from(plan.slots) + 1],
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
    let text = writer.whole(&bodies, head, rates);
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
    const TAKEN: [&str; 15] = [
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
        "LINES_PER_US",
        "ROUNDS_PER_US",
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
            self.body(class, &of.body, indent + 1, level + 1, outer.clone());
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
        self.body(class, &of.body, indent + 1, level + 1, Some((part, weight)));
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

    fn step(&mut self, id: StepId, indent: usize, timed: &Option<(usize, String)>) {
        let of = &self.plan.steps[id];
        self.computation(id, of, indent, timed);
        match &of.step.call {
            Operation::Nothing => {}
            Operation::Wait { slots } => {
                for run in slots.chunk_by(|a, b| a + 1 == *b) {
                    self.used.insert("requests");
                    self.line(indent, &format!("wait_for({}, {});", run[0], run[run.len() - 1]));
                }
            }
            Operation::Send { end, mode, slot } => {
                let to = self.direction(id, Side::Out, end);
                let call = match (slot, of.detached, mode) {
                    (_, true, _) | (_, _, Mode::Buffered) => "send_detached",
                    (None, _, Mode::Synchronous) => "ssend_to",
                    (None, ..) => "send_to",
                    (Some(_), _, Mode::Synchronous) => "start_ssend",
                    (Some(_), ..) => "start_send",
                };
                let call_slot = slot.filter(|_| call.starts_with("start"));
                self.outgoing = self.outgoing.max(of.bytes);
                self.blocking_room(of.bytes);
                self.message(call, call_slot, &to, end.tag, of.bytes, indent);
            }
            Operation::Receive { end, slot, .. } => {
                let from = self.direction(id, Side::In, end);
                let bytes = self.room.get(&id).copied().unwrap_or(end.bytes);
                self.room_for(*slot, bytes);
                self.blocking_room(bytes);
                self.outgoing = self.outgoing.max(bytes);
                let call = if slot.is_some() { "start_receive" } else { "receive_from" };
                self.message(call, *slot, &from, end.tag, bytes, indent);
            }
            Operation::SendReceive { send, receive } => self.exchange(id, send.as_ref(), receive.as_ref(), indent),
            Operation::Collective { name, group, root, slot, .. } => {
                self.collective(id, Kind::of(name), *group, *root, *slot, indent);
            }
        }
    }

    fn computation(&mut self, id: StepId, of: &PlanStep, indent: usize, timed: &Option<(usize, String)>) {
        let compute = &of.step.compute;
        let us = compute.mean_ns * 1e-3 / of.shorter;
        if us < 0.02 {
            return;
        }
        if of.shorter > 1.0 {
            let (part, weight) = timed.clone().unwrap_or((0, "1.0".into()));
            let whole = time(compute.mean_ns);
            self.line(indent, &format!("part({part}, {weight} * {:?}); /* a part of {whole} */", of.shorter));
            self.line(indent, &format!("compute({});", number(us)));
            self.line(indent, &format!("part({part}, {weight});"));
            return;
        }
        match eighths(compute).filter(|_| self.times[id] >= 8) {
            Some(eighths) => {
                self.used.insert("spread");
                let name = format!("us_{}", self.spreads);
                self.spreads += 1;
                let list: Vec<String> = eighths.iter().map(|ns| number(ns * 1e-3)).collect();
                self.line(indent, "{");
                self.line(indent + 1, &format!("static const double {name}[8] = {{{}}};", list.join(", ")));
                self.line(indent + 1, "static int turn;");
                self.line(indent + 1, &format!("compute_spread({name}, &turn); /* {} */", time(compute.mean_ns)));
                self.line(indent, "}");
            }
            None => self.line(indent, &format!("compute({});", number(us))),
        }
    }

    fn message(&mut self, call: &'static str, slot: Option<u16>, to: &str, tag: i32, bytes: u64, indent: usize) {
        self.used.insert(if call == "send_detached" { "detached" } else { call });
        self.used.insert("buffers");
        let slot = match slot {
            Some(slot) => {
                self.used.extend(["requests", "free_slot"]);
                format!("{slot}, ")
            }
            None => String::new(),
        };
        self.line(indent, &format!("{call}({slot}{to}, {tag}, {bytes});"));
    }

    fn exchange(&mut self, id: StepId, send: Option<&End>, receive: Option<&End>, indent: usize) {
        let of = &self.plan.steps[id];
        let received = receive.map_or(0, |end| self.room.get(&id).copied().unwrap_or(end.bytes));
        let sent = send.map_or(0, |_| of.bytes);
        self.outgoing = self.outgoing.max(sent).max(received);
        self.blocking_room(received.max(sent));
        self.used.extend(["exchange", "buffers"]);
        if send.is_none() || receive.is_none() {
            self.used.insert("none");
        }
        let to = send.map(|end| (self.direction(id, Side::Out, end), end.tag));
        let from = receive.map(|end| (self.direction(id, Side::In, end), end.tag));
        let (to, send_tag) = to.unwrap_or(("NONE".into(), 0));
        let (from, receive_tag) = from.unwrap_or(("NONE".into(), 0));
        if of.detached
            && let Some(end) = send
        {
            // Its send may not wait: apart from the receive.
            self.message("send_detached", None, &to, end.tag, sent, indent);
            if receive.is_some() {
                self.message("receive_from", None, &from, receive_tag, received, indent);
            }
            return;
        }
        self.line(indent, &format!("exchange({to}, {send_tag}, {sent}, {from}, {receive_tag}, {received});"));
    }

    fn collective(&mut self, id: StepId, kind: Kind, group: u16, root: Option<u32>, slot: Option<u16>, indent: usize) {
        let of = &self.plan.steps[id];
        let sizes =
            self.plan.comm_of[usize::from(group)].iter().flatten().map(|comm| self.plan.comms[*comm as usize].len());
        let members = sizes.max().unwrap_or(1).max(1) as u64;
        let bytes = if kind.gathers() { of.bytes.min(super::plan::MOST_BYTES / members) } else { of.bytes };
        let all = if kind.gathers() { bytes * members } else { bytes };
        self.outgoing = self.outgoing.max(all);
        self.room_for(slot, all);
        self.used.extend(["buffers", "collective"]);
        let name = kind.function();
        let started = starting(name);
        self.used.insert(if slot.is_some() { started } else { name });
        if kind.rooted() {
            self.used.insert("root");
        }
        if matches!(kind, Kind::Reduce | Kind::Allreduce | Kind::Scan | Kind::Exscan | Kind::ReduceScatter) {
            self.used.insert("type");
        }
        let alone: BTreeSet<u32> = of.local[0]
            .iter()
            .filter(|rank| self.plan.comm_of[usize::from(group)][**rank as usize].is_some())
            .copied()
            .collect();
        let mut words = Vec::new();
        if let Some(slot) = slot {
            self.used.extend(["requests", "free_slot"]);
            words.push(slot.to_string());
        }
        // One that some ranks are alone in is made from the whole one.
        variant(&mut self.groups, usize::from(group), BTreeSet::new(), &self.group_names);
        words.push(variant(&mut self.groups, usize::from(group), alone, &self.group_names));
        if kind.rooted() {
            words.push(root.unwrap_or(0).to_string());
        }
        if kind != Kind::Barrier {
            words.push(bytes.to_string());
        }
        let call = if slot.is_some() { started } else { name };
        self.line(indent, &format!("{call}({});", words.join(", ")));
    }

    fn direction(&mut self, id: StepId, side: Side, end: &End) -> String {
        let alone = self.plan.steps[id].local[side as usize].clone();
        if !alone.is_empty() {
            self.used.insert("oneself");
        }
        self.used.insert("directions");
        variant(&mut self.directions, usize::from(end.direction), alone, &self.names)
    }

    fn room_for(&mut self, slot: Option<u16>, bytes: u64) {
        let at = slot.map_or(usize::from(self.plan.slots), usize::from);
        self.incoming[at] = self.incoming[at].max(bytes);
    }

    fn blocking_room(&mut self, bytes: u64) {
        self.room_for(None, bytes);
    }
}

/// The name of a direction or group as ranks without a partner see it.
fn variant(all: &mut Vec<(String, usize, BTreeSet<u32>)>, of: usize, alone: BTreeSet<u32>, names: &[String]) -> String {
    if let Some((name, ..)) = all.iter().find(|(_, base, ranks)| *base == of && *ranks == alone) {
        return name.clone();
    }
    let name = if alone.is_empty() { names[of].clone() } else { format!("{}_but_{}", names[of], all.len()) };
    all.push((name.clone(), of, alone));
    name
}

/// The name of the form of a collective that does not block.
fn starting(name: &str) -> &'static str {
    sections()
        .map(|(name, _)| name)
        .find(|section| section.strip_prefix("start_") == Some(name))
        .unwrap_or("start_barrier")
}

fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    RUNTIME.split("//@ ").skip(1).filter_map(|section| section.split_once('\n'))
}

fn has_parts(plan: &Plan, blocks: &[Block]) -> bool {
    blocks.iter().any(|block| match *block {
        Block::Loop(id) => plan.loops[id].count < plan.loops[id].full || has_parts(plan, &plan.loops[id].body),
        Block::Step(step) => plan.steps[step].shorter > 1.0,
    })
}

/// The means of the eighths of a distribution, in an order that mixes short and long; none if it hardly spreads. Their
/// mean is that of the distribution.
fn eighths(compute: &crate::logical::Computation) -> Option<[f64; 8]> {
    let q: &[f64; 9] = compute.quantiles_ns.as_slice().try_into().ok()?;
    if compute.deviation_ns < EVEN * compute.mean_ns || q.windows(2).any(|pair| pair[0] > pair[1]) {
        return None;
    }
    let mut means: [f64; 8] = std::array::from_fn(|i| 0.5 * (q[i] + q[i + 1]));
    // The last one may have a long tail, of which its ends say nothing: it gets what the others leave of the mean.
    let others: f64 = means[..7].iter().sum();
    let left = 8.0 * compute.mean_ns - others;
    if left >= q[7] {
        means[7] = left;
    } else {
        let sum: f64 = means.iter().sum();
        let factor = if sum > 0.0 { 8.0 * compute.mean_ns / sum } else { 1.0 };
        means.iter_mut().for_each(|mean| *mean *= factor);
    }
    Some([0, 4, 2, 6, 1, 5, 3, 7].map(|i| means[i]))
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

impl Writer<'_> {
    /// The whole text.
    fn whole(&mut self, bodies: &str, head: &Head<'_>, rates: &Rates) -> String {
        let plan = self.plan;
        let mut out = String::new();
        let _ = writeln!(
            out,
            "/* A performance skeleton of\n *     {}\n * with {} ranks, written by phasecast. It stands for that program: it has the same messages and the same loops,\n * and takes about 1/{:.1} of its time (1/{:.1} was asked for) where it was traced. README.md says more.\n *\n * topology: {}\n */",
            harmless(head.program),
            plan.ranks,
            head.ratio.1,
            head.ratio.0,
            harmless(head.topology.unwrap_or("none was recognised")),
        );
        out.push_str("#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n");
        let _ = writeln!(out, "#define RANKS {}", plan.ranks);
        let _ = writeln!(out, "#define SLOTS {}", plan.slots.max(1));
        let _ = writeln!(out, "#define PARTS {}", self.parts.len());
        out.push_str(&rates.defines());
        out.push_str("\nstatic int rank;\n\n");
        let mut used = std::mem::take(&mut self.used);
        self.tables(&mut out, &used);
        if used.contains("detached")
            || used.iter().any(|name| {
                name.contains("send_to")
                    || name.contains("receive")
                    || *name == "exchange"
                    || *name == "start_send"
                    || *name == "start_ssend"
            })
        {
            used.insert("oneself");
        }
        used.extend(["parts", "report"]);
        if !self.groups.is_empty() {
            used.insert("part_of");
        }
        if self.groups.iter().all(|(_, of, _)| self.is_world(*of)) {
            used.remove("part_of");
        }
        let needs_alone = self.groups.iter().any(|(_, of, alone)| !alone.is_empty() || !self.is_world(*of));
        out.push_str(KERNEL);
        out.push('\n');
        for (name, text) in sections().filter(|(name, _)| used.contains(name)) {
            let text = match name {
                "collective" if !needs_alone => text.split("static struct group oneself").next().unwrap_or(text),
                "requests" if !bodies.contains("wait_for(") => text.split("/* Waits").next().unwrap_or(text),
                _ => text,
            };
            out.push_str(text.trim_end());
            out.push_str("\n\n");
        }
        for (name, ..) in &self.groups {
            let _ = writeln!(out, "static struct group {name};");
        }
        out.push_str(bodies.trim_start_matches('\n'));
        self.main(&mut out, &used);
        out
    }

    fn is_world(&self, group: usize) -> bool {
        matches!(self.plan.groups[group].members.as_slice(), [all] if all.iter().copied().eq(0..self.plan.ranks))
    }

    fn tables(&self, out: &mut String, used: &BTreeSet<&'static str>) {
        let ranks = 0..self.plan.ranks;
        if !self.directions.is_empty() || used.contains("none") {
            out.push_str("/* Where messages go: for each rank, its neighbour there. */\n#define NOBODY MPI_PROC_NULL\n#define ONESELF (-1000)\n#define ALONE(direction) ((direction)[rank] == ONESELF)\n");
        }
        if used.contains("none") {
            table(out, "static const int NONE[RANKS]", ranks.clone().map(|_| "NOBODY".into()));
        }
        for (name, of, alone) in &self.directions {
            let peers = &self.plan.directions[*of].peer;
            let cell = |rank: u32| match peers[rank as usize] {
                _ if alone.contains(&rank) => "ONESELF".to_owned(),
                Some(peer) => peer.to_string(),
                None => "NOBODY".to_owned(),
            };
            table(out, &format!("static const int {name}[RANKS]"), ranks.clone().map(cell));
        }
        for (at, (name, of, alone)) in self.groups.iter().enumerate() {
            if !alone.is_empty() {
                let cell = |rank: u32| u8::from(alone.contains(&rank)).to_string();
                table(out, &format!("static const char {name}_alone[RANKS]"), ranks.clone().map(cell));
            } else if !self.is_world(*of) {
                let comm_of = &self.plan.comm_of[*of];
                let number = |rank: u32| comm_of[rank as usize].map_or("-1".into(), |comm| comm.to_string());
                let place = |rank: u32| {
                    let members = comm_of[rank as usize].map(|comm| &self.plan.comms[comm as usize]);
                    members.and_then(|all| all.iter().position(|m| *m == rank)).unwrap_or(0).to_string()
                };
                table(out, &format!("static const int number_{at}[RANKS]"), ranks.clone().map(number));
                table(out, &format!("static const int place_{at}[RANKS]"), ranks.clone().map(place));
            }
        }
        if self.plan.classes.len() > 1 {
            let class = |rank: u32| self.plan.class_of[rank as usize].to_string();
            table(out, "static const short class_of[RANKS]", ranks.map(class));
        }
        out.push('\n');
    }

    fn main(&self, out: &mut String, used: &BTreeSet<&'static str>) {
        let plan = self.plan;
        let slots = usize::from(plan.slots.max(1));
        out.push_str(
            "\nint main(int argc, char **argv)\n{\n    int ranks;\n    MPI_Init(&argc, &argv);\n    MPI_Pcontrol(0); /* preparations are not traced */\n    MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n    MPI_Comm_size(MPI_COMM_WORLD, &ranks);\n    if (ranks != RANKS) {\n        if (rank == 0)\n            fprintf(stderr, \"this skeleton has %d ranks, and was started with %d: does the launcher belong to its MPI?\\n\",\n                    RANKS, ranks);\n        MPI_Finalize();\n        return 2;\n    }\n    make_working_set();\n    compute(1000.0); /* the processor wakes up */\n",
        );
        if used.contains("buffers") {
            let mut incoming = self.incoming.clone();
            incoming.resize(slots + 1, 8);
            // The last one is that of calls that block.
            incoming.swap(usize::from(plan.slots), slots);
            let list: Vec<String> = incoming.iter().map(|bytes| bytes.max(&8).to_string()).collect();
            let _ = writeln!(out, "    static const unsigned long room[SLOTS + 1] = {{{}}};", list.join(", "));
            let outgoing = self.outgoing;
            let _ = write!(
                out,
                "    outgoing = calloc({outgoing}, 1);\n    for (int i = 0; i <= SLOTS; i++) {{\n        incoming[i] = malloc(room[i]);\n        if (!incoming[i] || !outgoing) {{\n            fprintf(stderr, \"no memory for buffers\\n\");\n            MPI_Abort(MPI_COMM_WORLD, 1);\n        }}\n        memset(incoming[i], 0, room[i]);\n    }}\n    memset(outgoing, 0, {outgoing});\n"
            );
        }
        if used.contains("requests") {
            out.push_str("    for (int i = 0; i < SLOTS; i++)\n        request[i] = MPI_REQUEST_NULL;\n");
        }
        for (at, (name, of, alone)) in self.groups.iter().enumerate() {
            let world = self.is_world(*of);
            let base = match world {
                true => "(struct group){MPI_COMM_WORLD, RANKS}".to_owned(),
                false => {
                    let base = self.groups.iter().position(|(_, other, ranks)| other == of && ranks.is_empty());
                    format!("part_of(number_{0}, place_{0})", base.unwrap_or(at))
                }
            };
            let _ = writeln!(out, "    {name} = {base};");
            if !alone.is_empty() {
                let _ = writeln!(out, "    if ({name}_alone[rank])\n        {name} = oneself();");
            }
        }
        out.push_str("    MPI_Barrier(MPI_COMM_WORLD);\n    MPI_Pcontrol(1);\n    since = MPI_Wtime();\n");
        match plan.classes.len() {
            1 => out.push_str("    class_0();\n"),
            classes => {
                out.push_str("    switch (class_of[rank]) {\n");
                for class in 0..classes {
                    let _ = writeln!(out, "    case {class}:\n        class_{class}();\n        break;");
                }
                out.push_str("    }\n");
            }
        }
        if used.contains("requests") {
            out.push_str("    MPI_Waitall(SLOTS, request, MPI_STATUSES_IGNORE);\n");
        }
        if used.contains("detached") {
            out.push_str("    MPI_Waitall(detached_open, detached, MPI_STATUSES_IGNORE);\n");
        }
        out.push_str("    part(0, 1.0);\n    MPI_Pcontrol(0);\n    int failed = report(argc > 1 ? argv[1] : NULL);\n    MPI_Finalize();\n    return failed;\n}\n");
    }
}

fn table(out: &mut String, head: &str, cells: impl Iterator<Item = String>) {
    let _ = write!(out, "{head} = {{");
    let mut width = head.len() + 4;
    for (at, cell) in cells.enumerate() {
        let separator = if at == 0 { "" } else { "," };
        if width + cell.len() + 2 > 116 {
            let _ = write!(out, "{separator}\n    {cell}");
            width = 4 + cell.len();
        } else {
            let space = if at == 0 { "" } else { " " };
            let _ = write!(out, "{separator}{space}{cell}");
            width += cell.len() + 2;
        }
    }
    out.push_str("};\n");
}
