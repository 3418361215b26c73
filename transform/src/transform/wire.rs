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
#[derive(Clone, Debug, Default)]
pub struct Wire {
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
        Wire { at_end: vec![0; 3 * nodes], burden: contention.map(|c| (c - 1.0).max(0.0)), ..Wire::default() }
    }

    /// Whether transfers between these ends can disturb each other at all.
    pub fn shares(&self, ends: (u32, u32)) -> bool {
        self.burden[usize::from(ends.0 != ends.1)] > 0.0
    }

    /// Starts a transfer of `work` ns, not before [`Wire::advance`] was called up to then.
    pub fn start(&mut self, id: u32, ends: (u32, u32), work: f64) {
        self.count(ends, 1);
        self.active.push(Active { id, ends, left: work, pace: 1.0 });
        self.first = None;
        self.repace(ends);
    }

    /// Goes on to `time`; `done` is told which transfers end on the way, and when.
    pub fn advance(&mut self, time: f64, mut done: impl FnMut(u32, f64)) {
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

    /// When the next transfer ends, if no other starts before.
    pub fn next_end(&mut self) -> Option<f64> {
        self.first().map(|(_, end)| end)
    }

    /// When this transfer ends, if no other starts before.
    pub fn end_of(&self, id: u32) -> Option<f64> {
        let own = self.active.iter().find(|a| a.id == id)?;
        if self.active.iter().all(|a| a.ends == own.ends) {
            // Each of the others slows it down for as long as both are under way.
            let burden = self.burden[usize::from(own.ends.0 != own.ends.1)];
            let others = self.active.iter().filter(|a| !std::ptr::eq(*a, own));
            return Some(self.now + own.left + burden * others.map(|a| a.left.min(own.left)).sum::<f64>());
        }
        let mut ahead = self.clone();
        let mut found = None;
        while let Some(end) = ahead.next_end().filter(|_| found.is_none()) {
            ahead.advance(end, |done, at| {
                if done == id {
                    found = Some(at);
                }
            });
        }
        found
    }

    /// The transfer goes on, but nobody will ask for it any more.
    pub fn forget(&mut self, id: u32) {
        if let Some(active) = self.active.iter_mut().find(|a| a.id == id) {
            active.id = u32::MAX;
        }
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
        wire.start(7, ends(0, 0), 10.0);
        assert_eq!(wire.end_of(7), Some(10.0));
        assert_eq!(run(&mut wire, 100.0), [(7, 10.0)]);
        assert_eq!(wire.next_end(), None);
    }

    #[test]
    fn two_share_it_while_both_are_under_way() {
        let mut wire = Wire::new(1, [2.0, 2.0]);
        wire.start(0, ends(0, 0), 10.0);
        assert_eq!(run(&mut wire, 5.0), []);
        wire.start(1, ends(0, 0), 10.0);
        assert_eq!((wire.end_of(0), wire.end_of(1)), (Some(15.0), Some(20.0)));
        // 5 are left of the first: at half the pace until 15; the second then has 5 left, alone.
        assert_eq!(run(&mut wire, 100.0), [(0, 15.0), (1, 20.0)]);
    }

    #[test]
    fn a_machine_without_contention_lets_them_pass() {
        let mut wire = Wire::new(2, [1.0, 2.0]);
        assert!(!wire.shares(ends(1, 1)) && wire.shares(ends(0, 1)));
        wire.start(0, ends(1, 1), 10.0);
        wire.start(1, ends(1, 1), 10.0);
        assert_eq!(run(&mut wire, 100.0), [(0, 10.0), (1, 10.0)]);
    }

    #[test]
    fn between_nodes_the_busier_end_counts() {
        let mut wire = Wire::new(3, [2.0, 2.0]);
        wire.start(0, ends(0, 1), 10.0);
        wire.start(1, ends(0, 2), 10.0);
        // What comes in does not share with what leaves.
        wire.start(2, ends(1, 0), 10.0);
        assert_eq!(run(&mut wire, 100.0), [(2, 10.0), (0, 20.0), (1, 20.0)]);
    }

    #[test]
    fn work_is_conserved() {
        let mut wire = Wire::new(1, [2.0, 2.0]);
        for id in 0..10 {
            wire.start(id, ends(0, 0), 1.0 + f64::from(id));
        }
        let done = run(&mut wire, 1e9);
        assert_eq!(done.len(), 10);
        let last = done.last().map_or(0.0, |d| d.1);
        assert!((last - 55.0).abs() < 1e-9, "{last}");
    }
}
