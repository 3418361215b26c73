//! The calls of a rank as acts of a logical trace: what takes part in communication is an act, what polls or probes is
//! waiting, and what lies between calls is computation. All passes over a trace walk it in the same way.
//!
//! * Computation is the time from the exit of a call to the entry of the next. Time within calls is never computation.
//! * A run of tests and probes that find nothing is waiting, with the gaps between them up to [`POLL_GAP_NS`]; it
//!   belongs to the call that comes next.
//! * Receives from any source, completions of any request, and those that a program tests one by one come in the order of
//!   arrival, which differs from iteration to iteration: where several come in a row, they are put in [`order`].
mod completions;
mod order;

use super::acts::{Act, Computed, Message, Met, Sink, Sites};
use super::requests::{Posted, Requests};
use super::roles::{Completes, Role, Roles};
use crate::error::SkeletonError;
use crate::logical::Mode;
use completions::Guesses;
use phasecast_trace::model::{PEER_ANY, PEER_NONE, PEER_PROC_NULL, TAG_ANY};
use phasecast_trace::{Call, Class, Counts, Flags, Part, PartKind, ProcId, Rank, Trace};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Between two looks of a polling loop lies at most so much time, in nanoseconds: what is more is computation.
pub const POLL_GAP_NS: u64 = 10_000;

/// A walk over the calls of a rank.
pub struct Walk<'a, S: Sink> {
    roles: &'a Roles,
    sites: &'a Sites,
    sink: &'a mut S,
    requests: Requests<S::Token>,
    /// Procedures of persistent requests that send or are collectives, by peer, tag, communicator and bytes.
    persistent: HashMap<(i32, i32, u32, u64), ProcId>,
    exit: Option<u64>,
    /// The thread of the call before: what was counted on another is not of the time between the two.
    thread: u16,
    compute: Computed,
    wait: u64,
    polling: Option<(u16, u64, Completes, bool)>,
    row: Vec<(Act, Computed, u64)>,
    guesses: Guesses,
    /// MPI was initialised at some time.
    begun: bool,
    /// How often it was initialised, the world or a session, and did not end yet.
    open: i64,
    /// MPI has ended, unless it is initialised again: when the end was entered and left.
    closed: Option<(u64, u64)>,
    met: Met,
}

/// Walks over the calls of `rank`. Returns what was met, and what was found out of its completions, which a walk that is
/// given it needs not guess.
///
/// # Errors
/// If its file is damaged, or there are more than 65536 requests at a time.
pub fn walk<S: Sink>(
    trace: &Trace,
    rank: Rank,
    roles: &Roles,
    sites: &Sites,
    sink: &mut S,
    done: &AtomicU64,
) -> Result<(Met, Sites), SkeletonError> {
    let mut walk = Walk {
        roles,
        sites,
        sink,
        requests: Requests::default(),
        persistent: HashMap::new(),
        exit: None,
        thread: 0,
        compute: Computed::default(),
        wait: 0,
        polling: None,
        row: Vec::new(),
        guesses: Guesses::default(),
        begun: false,
        open: 0,
        closed: None,
        met: Met::default(),
    };
    let many = || SkeletonError::Unfit {
        path: trace.path().to_owned(),
        what: format!("rank {rank} has more than 65536 requests at a time, which a skeleton cannot hold"),
    };
    let mut calls = trace.calls(rank);
    let mut held: Option<(Call, Vec<Part>, Option<Counts>)> = None;
    let mut seen = 0u64;
    while let Some(item) = calls.next_call()? {
        seen += 1;
        if seen.is_multiple_of(1 << 16) {
            done.fetch_add(1 << 16, Ordering::Relaxed);
        }
        match &mut held {
            Some((_, parts, _)) if item.call.flags.has(Flags::CONTINUED) => parts.extend_from_slice(item.parts),
            Some((call, parts, counts)) => {
                walk.call(call, parts, *counts).ok_or_else(many)?;
                (*call, *counts) = (*item.call, item.counts);
                parts.clear();
                parts.extend_from_slice(item.parts);
            }
            None => held = Some((*item.call, item.parts.to_vec(), item.counts)),
        }
    }
    if let Some((call, parts, counts)) = held {
        walk.call(&call, &parts, counts).ok_or_else(many)?;
    }
    done.fetch_add(seen & 0xffff, Ordering::Relaxed);
    walk.end(trace.span(rank).1.0);
    Ok((walk.met, walk.found_out()))
}

impl<S: Sink> Walk<'_, S> {
    /// Takes in a call; none if there are too many requests.
    fn call(&mut self, call: &Call, parts: &[Part], counts: Option<Counts>) -> Option<()> {
        let roles = self.roles;
        let role = roles.of(call.proc);
        if let Some((_, left)) = self.closed.filter(|_| role.init) {
            self.closed = None;
            let exit = self.exit.unwrap_or(left).max(left);
            self.wait += exit - self.exit.unwrap_or(exit);
            self.exit = Some(exit);
        }
        if self.closed.is_some() {
            return Some(());
        }
        let first = role.init && !self.begun;
        self.begun |= role.init;
        self.open += i64::from(role.init);
        if self.exit.is_none() || first {
            self.met.span.0 = if role.init { call.exit.0 } else { call.enter.0 };
            (self.compute, self.wait) = (Computed::default(), 0);
            self.exit = Some(self.met.span.0);
            self.thread = call.thread;
            if role.init {
                return Some(());
            }
        }
        self.met.threads = self.met.threads.max(call.thread);
        let last = std::mem::replace(&mut self.thread, call.thread);
        let counts = counts.filter(|_| last == call.thread);
        let before = self.exit.unwrap_or(call.enter.0);
        let (gap, took) = (call.enter.0.saturating_sub(before), call.exit.0.saturating_sub(call.enter.0.max(before)));
        self.exit = Some(before.max(call.exit.0));
        let found = parts.iter().any(|part| part.kind == PartKind::Recv);
        let looks = matches!(call.class, Class::Complete | Class::Probe) && role.polls && !found;
        if self.polling.is_some() && gap <= POLL_GAP_NS {
            self.wait += gap;
        } else {
            self.compute.add(gap, counts);
        }
        if looks {
            self.wait += took;
            self.polling = Some((call.proc.0, call.site, role.completes, role.probe));
            return Some(());
        }
        let polled = self.polling.take();
        if !(found && call.class == Class::Complete) {
            self.polled(polled);
        }
        if call.flags.has(Flags::ERROR) && !matches!(call.class, Class::Complete) {
            self.met.failed += 1;
            self.wait += took;
            return Some(());
        }
        if role.finalize && call.class == Class::Setup {
            self.open -= 1;
            if self.open <= 0 || role.aborts {
                self.exit = Some(before.max(call.enter.0));
                self.closed = Some((call.enter.0, call.exit.0));
                return Some(());
            }
        }
        self.act(call, parts, role, took)
    }

    fn act(&mut self, call: &Call, parts: &[Part], role: &Role, took: u64) -> Option<()> {
        let nonblocking = call.flags.has(Flags::NONBLOCKING);
        let own = |peer: i32| Message { peer: peer as u32, comm: call.comm.0, tag: call.tag, bytes: call.bytes };
        match call.class {
            Class::Send if nonblocking && call.peer >= 0 => {
                let slot = self.requests.slot()?;
                self.emit(Act::Send(own(call.peer), role.mode, Some(slot)), took);
                self.requests.begin_send(slot, call.peer as u32);
                if call.flags.has(Flags::RECV_POST) {
                    self.post((PEER_ANY, TAG_ANY, None), Some(slot), 0)?;
                }
            }
            Class::Send if nonblocking => {
                self.wait += took;
                match call.flags.has(Flags::RECV_POST) {
                    true => self.post((PEER_ANY, TAG_ANY, None), None, 0)?,
                    false => self.requests.begin_null(),
                }
            }
            Class::Send => {
                let send = (call.peer >= 0).then(|| own(call.peer));
                let receive = parts.iter().find_map(message);
                match (role.exchange || receive.is_some(), send) {
                    (false, Some(send)) => self.emit(Act::Send(send, role.mode, None), took),
                    (true, send) if send.is_some() || receive.is_some() => {
                        self.emit(Act::Exchange(send, receive), took);
                    }
                    _ => self.wait += took,
                }
            }
            Class::Recv => match parts.iter().find_map(message) {
                Some(got) => {
                    let any = call.flags.has(Flags::WILDCARD) || parts[0].flags.has(Flags::WILDCARD);
                    self.met.wildcards += u64::from(any);
                    let act = Act::Receive(got, any, None);
                    if any { self.in_row(act, took) } else { self.emit(act, took) }
                }
                None => self.wait += took,
            },
            Class::Complete => self.complete(call, parts, role, took),
            Class::Post if call.flags.has(Flags::PERSISTENT) => {
                self.wait += took;
                if role.starts {
                    self.persistent.insert((call.peer, call.tag, call.comm.0, call.bytes), call.proc);
                }
            }
            Class::Post if call.flags.has(Flags::RECV_POST) => {
                // An archive of OTF2 tells nothing of a receive that is posted.
                let comm = (call.peer != PEER_NONE).then_some(call.comm.0);
                self.post((call.peer, call.tag, comm), None, took)?;
            }
            Class::Post => {
                self.wait += took;
                if call.peer == PEER_PROC_NULL {
                    self.requests.begin_null();
                }
            }
            Class::Start => self.start(parts, took)?,
            Class::Collective => {
                self.met.neighbours += u64::from(role.neighbourhood);
                let slot = if nonblocking { Some(self.requests.slot()?) } else { None };
                let (procedure, comm, bytes, root) = (Some(call.proc), call.comm.0, call.bytes, call.peer);
                self.emit(Act::Collective { procedure, comm, bytes, root, slot }, took);
                slot.into_iter().for_each(|slot| self.requests.begin_other(Some(slot)));
            }
            Class::Comm if !nonblocking => self.barrier(call.comm.0, took),
            Class::Rma | Class::Io => {
                let io = call.class == Class::Io;
                *(if io { &mut self.met.files } else { &mut self.met.one_sided }) += 1;
                if io {
                    self.compute.add(took, None);
                }
                if nonblocking {
                    self.requests.begin_other(None);
                }
                let took = if io { 0 } else { took };
                match call.flags.has(Flags::COLLECTIVE) && !nonblocking {
                    true => self.barrier(call.comm.0, took),
                    false => self.wait += took,
                }
            }
            Class::Pause => {
                self.met.pauses += 1;
                self.wait += took;
            }
            Class::Other if role.frees => {
                let mut slots = Vec::new();
                self.requests.complete_one(&mut slots);
                self.waited(slots, false, took);
            }
            Class::Comm => {
                self.wait += took;
                self.requests.begin_other(None);
            }
            Class::Probe | Class::Setup | Class::Resume | Class::Other => self.wait += took,
        }
        Some(())
    }

    fn barrier(&mut self, comm: u32, took: u64) {
        self.emit(Act::Collective { procedure: None, comm, bytes: 0, root: -1, slot: None }, took);
    }

    /// Persistent requests are started: each stands as a nonblocking call.
    fn start(&mut self, parts: &[Part], took: u64) -> Option<()> {
        self.met.persistent += parts.len() as u64;
        let mut took = took;
        for part in parts {
            let took = std::mem::take(&mut took);
            let made = self.persistent.get(&(part.peer, part.tag, part.comm.0, part.bytes)).copied();
            match part.kind {
                PartKind::Send if part.peer >= 0 => {
                    let slot = self.requests.slot()?;
                    let mode = made.map_or(Mode::Standard, |procedure| self.roles.of(procedure).mode);
                    let (peer, comm, tag, bytes) = (part.peer as u32, part.comm.0, part.tag, part.bytes);
                    self.emit(Act::Send(Message { peer, comm, tag, bytes }, mode, Some(slot)), took);
                    self.requests.begin_send(slot, peer);
                }
                PartKind::Post if part.peer != PEER_PROC_NULL => {
                    let comm = (part.peer != PEER_NONE).then_some(part.comm.0);
                    self.post((part.peer, part.tag, comm), None, took)?;
                }
                PartKind::Collective => {
                    let slot = self.requests.slot()?;
                    let (comm, bytes, root) = (part.comm.0, part.bytes, part.peer);
                    self.emit(Act::Collective { procedure: made, comm, bytes, root, slot: Some(slot) }, took);
                    self.requests.begin_other(Some(slot));
                }
                _ => {
                    self.wait += took;
                    self.requests.begin_null();
                }
            }
        }
        self.wait += took;
        Some(())
    }

    /// A receive of this source, tag and communicator is posted, perhaps in one with a send.
    fn post(&mut self, of: (i32, i32, Option<u32>), send: Option<u16>, took: u64) -> Option<()> {
        let (peer, tag, comm) = of;
        let slot = self.requests.slot()?;
        let token = self.step(took);
        self.requests.post(Posted { token, slot, peer, tag, comm, send });
        Some(())
    }

    /// The end of the run: what is still under way is waited for, or was nothing.
    fn end(&mut self, at: u64) {
        let at = self.closed.map_or(at, |(entered, _)| entered);
        let exit = self.exit.unwrap_or(at);
        self.met.span = if self.exit.is_some() { (self.met.span.0, at.max(exit)) } else { (0, 0) };
        self.compute.add(at.saturating_sub(exit), None);
        let mut slots = Vec::new();
        self.requests.end(&mut slots);
        let left = (std::mem::take(&mut self.compute), std::mem::take(&mut self.wait));
        self.waited(slots, false, 0);
        (self.compute, self.wait) = left;
        for posted in self.requests.left() {
            self.met.lost += 1;
            self.sink.drop(posted.token);
        }
        self.emit(Act::End, 0);
    }
}

/// What a part says was received.
fn message(part: &Part) -> Option<Message> {
    let real = part.kind == PartKind::Recv && part.peer >= 0 && !part.flags.has(Flags::CANCELLED);
    real.then_some(Message { peer: part.peer as u32, comm: part.comm.0, tag: part.tag, bytes: part.bytes })
}
