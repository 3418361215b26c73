//! The lines of a step: its computation, then its call.
use super::spread::{eighths, keeping, turns};
use super::{Writer, number, sections, time};
use crate::logical::{Computation, End, Mode, Operation};
use crate::program::collective::Kind;
use crate::program::plan::{PlanStep, Side, StepId};
use crate::program::shares::Shares;
use std::collections::BTreeSet;

impl Writer<'_> {
    pub(super) fn step(&mut self, id: StepId, indent: usize, timed: &Option<(usize, String)>) {
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
                let at = if call == "send_detached" { self.slots() + 1 } else { self.place(call_slot) };
                self.make_room(of.class, at, of.bytes, 0);
                self.room_of_oneself(id, Side::Out, of.bytes);
                self.message(call, call_slot, &to, end.tag, of.bytes, indent);
            }
            Operation::Receive { end, slot, .. } => {
                let from = self.direction(id, Side::In, end);
                let bytes = self.room.get(&id).copied().unwrap_or(end.bytes);
                self.make_room(of.class, self.place(*slot), 0, bytes);
                self.room_of_oneself(id, Side::In, bytes);
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
            self.work(compute, &number(us), indent);
            self.line(indent, &format!("part({part}, {weight});"));
            return;
        }
        match eighths(compute).filter(|_| self.times[id] >= 8) {
            Some(eighths) => {
                let shares = self.shares(compute);
                self.used.extend(["turns", if shares.is_some() { "spread_of" } else { "spread" }]);
                let at = self.spreads;
                self.spreads += 1;
                let keeps = keeping(&eighths, compute.mean_ns, &turns(&self.around));
                let list: Vec<String> = eighths.iter().map(|ns| number(ns * keeps * 1e-3)).collect();
                self.line(indent, "{");
                self.line(indent + 1, &format!("static const double us[8] = {{{}}};", list.join(", ")));
                let call = match shares {
                    Some(shares) => format!("compute_spread_of(us, {at}, {shares})"),
                    None => format!("compute_spread(us, {at})"),
                };
                self.line(indent + 1, &format!("{call}; /* {} */", time(compute.mean_ns)));
                self.line(indent, "}");
            }
            None => self.work(compute, &number(us), indent),
        }
    }

    /// A block of so many microseconds, as it was counted, if it was.
    fn work(&mut self, compute: &Computation, us: &str, indent: usize) {
        let call = match self.shares(compute) {
            Some(shares) => format!("compute_of({us}, {shares});"),
            None => format!("compute({us});"),
        };
        self.line(indent, &call);
    }

    /// What computation that was counted is made of, as arguments.
    fn shares(&mut self, compute: &Computation) -> Option<String> {
        let shares = Shares::of(compute.work.as_ref()?, self.rates, self.rates.far.as_ref()?);
        self.used.insert("far");
        Some(format!("{:.6}, {:.6}", shares.far, shares.near))
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
        self.make_room(of.class, self.slots(), sent, received);
        self.room_of_oneself(id, Side::Out, sent);
        self.room_of_oneself(id, Side::In, received);
        let to = send.map(|end| (self.direction(id, Side::Out, end), end.tag));
        let from = receive.map(|end| (self.direction(id, Side::In, end), end.tag));
        let (to, send_tag) = to.unwrap_or(("NONE".into(), 0));
        let (from, receive_tag) = from.unwrap_or(("NONE".into(), 0));
        if of.detached
            && let Some(end) = send
        {
            // Its send may not wait: apart from the receive.
            self.make_room(of.class, self.slots() + 1, sent, 0);
            self.message("send_detached", None, &to, end.tag, sent, indent);
            if receive.is_some() {
                self.message("receive_from", None, &from, receive_tag, received, indent);
            }
            return;
        }
        self.used.extend(["exchange", "buffers"]);
        if send.is_none() || receive.is_none() {
            self.used.insert("none");
        }
        self.line(indent, &format!("exchange({to}, {send_tag}, {sent}, {from}, {receive_tag}, {received});"));
    }

    fn collective(&mut self, id: StepId, kind: Kind, group: u16, root: Option<u32>, slot: Option<u16>, indent: usize) {
        let of = &self.plan.steps[id];
        let bytes = of.bytes.min(self.plan.most_bytes(id));
        self.room_of_collective(id, kind, bytes);
        self.used.extend(["buffers", "collective"]);
        let name = kind.function();
        let started = starting(name);
        self.used.insert(if slot.is_some() { started } else { name });
        if kind.rooted() {
            self.used.insert("root");
        }
        if kind == Kind::Scatter {
            self.used.insert("of_root");
        }
        if kind.reduces() {
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
