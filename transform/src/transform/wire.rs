//! Contention: transfers that are under way at the same time share a node's link (seed 000, section 5, names its absence
//! as the largest error of the prediction).
//!
//! A transfer is so much work, in ns at the full bandwidth. With n on the busier of its two ends it goes on at the pace
//! 1 / (1 + (c - 1)(n - 1)): with c = 2 they share the bandwidth, with c = 1 they do not disturb each other.

/// One transfer under way.
#[derive(Clone, Copy, Debug)]
struct Active {
    id: u32,
    ends: (u32, u32),
    left: f64,
    pace: f64,
}

/// All transfers of a machine.
#[derive(Debug, Default)]
pub struct Wire {
    flow: Flow,
    /// How it goes on if no other transfer starts, as far as that was asked for.
    ahead: Flow,
    /// What has ended there, and when.
    ended: Vec<(u32, f64)>,
    /// Whether nothing has started since.
    foreseen: bool,
}

/// Transfers under way at a moment.
#[derive(Debug, Default)]
struct Flow {
    active: Vec<Active>,
    /// Transfers at each end: of a node's memory, of what leaves it, of what comes in.
    at_end: Vec<u32>,
    /// What each further transfer costs the others: c - 1, within nodes and between them.
    burden: [f64; 2],
    now: f64,
    /// Which of the active ones ends first, and when; none if that is not known, as something has changed.
    first: Option<(usize, f64)>,
}

/// Where a transfer goes on: one number for each node's memory, one for what leaves it, one for what comes in.
pub fn ends(from: u32, to: u32) -> (u32, u32) {
    if from == to { (3 * from, 3 * from) } else { (3 * from + 1, 3 * to + 2) }
}

impl Wire {
    /// A machine's; `contention` is c within nodes and between them.
    pub fn new(nodes: usize, contention: [f64; 2]) -> Wire {
        let burden = contention.map(|c| (c - 1.0).max(0.0));
        let flow = Flow { at_end: vec![0; 3 * nodes], burden, ..Flow::default() };
        Wire { flow, ..Wire::default() }
    }

    /// Whether transfers between these ends can disturb each other at all.
    pub fn shares(&self, ends: (u32, u32)) -> bool {
        self.flow.burden[usize::from(ends.0 != ends.1)] > 0.0
    }

    /// Starts a transfer of `work` ns at a moment up to which [`Wire::advance`] was called. If the wire is further on by
    /// now, it was alone until now; false if it has ended meanwhile, and shares nothing.
    pub fn start(&mut self, id: u32, ends: (u32, u32), work: f64, at: f64) -> bool {
        let flow = &mut self.flow;
        let left = work - (flow.now - at).max(0.0);
        if left <= 0.0 {
            return false;
        }
        flow.count(ends, 1);
        flow.active.push(Active { id, ends, left, pace: 1.0 });
        flow.first = None;
        flow.repace(ends);
        self.foreseen = false;
        true
    }

    /// Goes on to `time`; `done` is told which transfers end on the way, and when.
    pub fn advance(&mut self, time: f64, done: impl FnMut(u32, f64)) {
        self.flow.advance(time, done);
    }

    /// When the next transfer ends, if no other starts before.
    pub fn next_end(&mut self) -> Option<f64> {
        self.flow.first().map(|(_, end)| end)
    }

    /// When this transfer ends, if no other starts before.
    pub fn end_of(&mut self, id: u32) -> Option<f64> {
        let flow = &self.flow;
        let own = flow.active.iter().find(|a| a.id == id)?;
        if flow.active.iter().all(|a| a.ends == own.ends) {
            // Each of the others slows it down for as long as both are under way.
            let burden = flow.burden[usize::from(own.ends.0 != own.ends.1)];
            let others = flow.active.iter().filter(|a| !std::ptr::eq(*a, own));
            return Some(flow.now + own.left + burden * others.map(|a| a.left.min(own.left)).sum::<f64>());
        }
        if !std::mem::replace(&mut self.foreseen, true) {
            self.ahead.become_like(flow);
            self.ended.clear();
        }
        let found = |ended: &[(u32, f64)]| ended.iter().find(|(done, _)| *done == id).map(|(_, at)| *at);
        let mut end = found(&self.ended);
        while end.is_none() {
            let (next, from) = (self.ahead.first()?.1, self.ended.len());
            let ended = &mut self.ended;
            self.ahead.advance(next, |done, at| ended.push((done, at)));
            end = found(&self.ended[from..]);
        }
        end
    }

    /// The transfer goes on, but nobody will ask for it any more.
    pub fn forget(&mut self, id: u32) {
        if let Some(active) = self.flow.active.iter_mut().find(|a| a.id == id) {
            active.id = u32::MAX;
        }
    }
}

impl Flow {
    /// A copy in the memory that it has.
    fn become_like(&mut self, other: &Flow) {
        self.active.clone_from(&other.active);
        self.at_end.clone_from(&other.at_end);
        (self.burden, self.now, self.first) = (other.burden, other.now, other.first);
    }

    fn advance(&mut self, time: f64, mut done: impl FnMut(u32, f64)) {
        while let Some((at, end)) = self.first() {
            if end > time {
                break;
            }
            self.pass(end);
            let Active { id, ends, .. } = self.active.swap_remove(at);
            self.first = None;
            self.count(ends, -1);
            self.repace(ends);
            done(id, end);
        }
        self.pass(time);
    }

    fn first(&mut self) -> Option<(usize, f64)> {
        if self.first.is_none() {
            let ends = self.active.iter().enumerate().map(|(at, a)| (at, self.now + a.left / a.pace));
            self.first = ends.min_by(|a, b| a.1.total_cmp(&b.1));
        }
        self.first
    }

    fn pass(&mut self, time: f64) {
        let by = time - self.now;
        if by > 0.0 {
            self.active.iter_mut().for_each(|a| a.left = (a.left - by * a.pace).max(0.0));
            self.now = time;
            self.first = None;
        }
    }

    fn count(&mut self, ends: (u32, u32), by: i32) {
        for end in both(ends) {
            if let Some(count) = self.at_end.get_mut(end as usize) {
                *count = count.saturating_add_signed(by);
            }
        }
    }

    fn repace(&mut self, changed: (u32, u32)) {
        let (at_end, burden) = (&self.at_end, self.burden);
        let of = |end: u32| at_end.get(end as usize).copied().unwrap_or(1);
        for active in &mut self.active {
            let has_changed = |end| end == changed.0 || end == changed.1;
            if has_changed(active.ends.0) || has_changed(active.ends.1) {
                let most = of(active.ends.0).max(of(active.ends.1));
                let burden = burden[usize::from(active.ends.0 != active.ends.1)];
                active.pace = 1.0 / (1.0 + burden * f64::from(most.saturating_sub(1)));
            }
        }
    }
}

fn both(ends: (u32, u32)) -> impl Iterator<Item = u32> {
    [ends.0, ends.1].into_iter().take(if ends.0 == ends.1 { 1 } else { 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(wire: &mut Wire, until: f64) -> Vec<(u32, f64)> {
        let mut done = Vec::new();
        wire.advance(until, |id, at| done.push((id, at)));
        done
    }

    #[test]
    fn alone_a_transfer_has_the_whole_bandwidth() {
        let mut wire = Wire::new(1, [2.0, 2.0]);
        assert!(wire.start(7, ends(0, 0), 10.0, wire.flow.now));
        assert_eq!(wire.end_of(7), Some(10.0));
        assert_eq!(run(&mut wire, 100.0), [(7, 10.0)]);
        assert_eq!(wire.next_end(), None);
    }

    #[test]
    fn two_share_it_while_both_are_under_way() {
        let mut wire = Wire::new(1, [2.0, 2.0]);
        assert!(wire.start(0, ends(0, 0), 10.0, wire.flow.now));
        assert_eq!(run(&mut wire, 5.0), []);
        assert!(wire.start(1, ends(0, 0), 10.0, wire.flow.now));
        assert_eq!((wire.end_of(0), wire.end_of(1)), (Some(15.0), Some(20.0)));
        // 5 are left of the first: at half the pace until 15; the second then has 5 left, alone.
        assert_eq!(run(&mut wire, 100.0), [(0, 15.0), (1, 20.0)]);
    }

    #[test]
    fn a_machine_without_contention_lets_them_pass() {
        let mut wire = Wire::new(2, [1.0, 2.0]);
        assert!(!wire.shares(ends(1, 1)) && wire.shares(ends(0, 1)));
        assert!(wire.start(0, ends(1, 1), 10.0, wire.flow.now));
        assert!(wire.start(1, ends(1, 1), 10.0, wire.flow.now));
        assert_eq!(run(&mut wire, 100.0), [(0, 10.0), (1, 10.0)]);
    }

    #[test]
    fn between_nodes_the_busier_end_counts() {
        let mut wire = Wire::new(3, [2.0, 2.0]);
        assert!(wire.start(0, ends(0, 1), 10.0, wire.flow.now));
        assert!(wire.start(1, ends(0, 2), 10.0, wire.flow.now));
        // What comes in does not share with what leaves.
        assert!(wire.start(2, ends(1, 0), 10.0, wire.flow.now));
        assert_eq!(run(&mut wire, 100.0), [(2, 10.0), (0, 20.0), (1, 20.0)]);
    }

    #[test]
    fn a_transfer_begins_when_it_begins_though_the_wire_is_further_on() {
        let mut wire = Wire::new(1, [2.0, 2.0]);
        assert_eq!(run(&mut wire, 100.0), []);
        // It was over by then.
        assert!(!wire.start(0, ends(0, 0), 10.0, 80.0));
        assert_eq!(wire.next_end(), None);
        // Half of it is left.
        assert!(wire.start(1, ends(0, 0), 10.0, 95.0));
        assert_eq!(run(&mut wire, 200.0), [(1, 105.0)]);
    }

    /// What is foretold of each is what comes, whatever was asked before.
    #[test]
    fn ends_are_foretold() {
        let mut wire = Wire::new(4, [2.0, 2.0]);
        for id in 0..12u32 {
            run(&mut wire, 2.0 * f64::from(id));
            assert!(wire.start(id, ends(id % 4, (id + 1 + id % 2) % 4), 3.0 + f64::from(id * 7 % 5), wire.flow.now));
            let told = wire.end_of(id).expect("it is under way");
            assert_eq!(wire.end_of(id), Some(told));
        }
        let mut told: Vec<(u32, f64)> = (0..12).filter_map(|id| Some((id, wire.end_of(id)?))).collect();
        told.sort_by(|a, b| a.1.total_cmp(&b.1));
        let come = run(&mut wire, 1e6);
        assert_eq!(told.len(), come.len());
        for end in come {
            assert!(told.iter().any(|told| told.0 == end.0 && (told.1 - end.1).abs() < 1e-9), "{end:?} of {told:?}");
        }
    }

    #[test]
    fn work_is_conserved() {
        let mut wire = Wire::new(1, [2.0, 2.0]);
        for id in 0..10 {
            assert!(wire.start(id, ends(0, 0), 1.0 + f64::from(id), 0.0));
        }
        let done = run(&mut wire, 1e9);
        assert_eq!(done.len(), 10);
        let last = done.last().map_or(0.0, |d| d.1);
        assert!((last - 55.0).abs() < 1e-9, "{last}");
    }
}
