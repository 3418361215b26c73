//! When each rank of the target can compute: what was watched of stops ([`crate::machine::Stops`]), once from its beginning,
//! when ranks had stood still as they do in `MPI_Init`, and then over and over without that: who has not used what a quota
//! grants may compute for longer before the first stop.
//!
//! A rank that waits in MPI looks for its message all the time, so that its stops do not depend on what it does.
use crate::machine::Stops;

/// Ranks beyond those that were watched have their stops, later by this share of the span for each time around.
const SHIFT: f64 = 0.618_033_988_749_895;

/// What is repeated begins and ends with the end of a stop, if these lie within so large a share of the span at either end.
const EDGE: f64 = 0.1;

/// The stops of all ranks, in ns since they began to run.
#[derive(Clone, Debug)]
pub struct Calendar {
    span: f64,
    /// What comes before is not repeated.
    head: f64,
    ranks: Vec<Watched>,
}

/// What was watched of one rank.
#[derive(Clone, Debug)]
struct Watched {
    /// Begin and end of each stop.
    stops: Vec<(f64, f64)>,
    /// Time computed until each stop.
    until: Vec<f64>,
    /// Time computed in what is repeated of the span.
    again: f64,
}

impl Watched {
    fn new(list: &[[f64; 2]]) -> Watched {
        let mut stopped = 0.0;
        let (mut stops, mut until) = (Vec::with_capacity(list.len()), Vec::with_capacity(list.len()));
        for [at, length] in list {
            // What is a rounding error apart follows one another.
            let begin = (at * 1e9).max(stops.last().map_or(0.0, |stop: &(f64, f64)| stop.1));
            let end = ((at + length) * 1e9).max(begin);
            until.push(begin - stopped);
            stops.push((begin, end));
            stopped += end - begin;
        }
        Watched { stops, until, again: 0.0 }
    }

    /// Time computed until then.
    fn computed(&self, at: f64) -> f64 {
        match self.stops.partition_point(|stop| stop.0 <= at).checked_sub(1) {
            None => at,
            Some(last) => self.until[last] + (at - self.stops[last].1).max(0.0),
        }
    }

    /// When so much was computed.
    fn when(&self, computed: f64) -> f64 {
        match self.until.partition_point(|until| *until <= computed).checked_sub(1) {
            None => computed,
            Some(last) => self.stops[last].1 + (computed - self.until[last]),
        }
    }
}

impl Calendar {
    /// The calendar of stops that a machine file holds.
    pub fn new(stops: &Stops) -> Calendar {
        let watched = stops.span_s * 1e9;
        let mut ranks: Vec<Watched> = stops.ranks.iter().map(|list| Watched::new(list)).collect();
        let latest = |ends: &mut dyn Iterator<Item = &(f64, f64)>| ends.map(|stop| stop.1).fold(0.0, f64::max);
        let first = latest(&mut ranks.iter().filter_map(|rank| rank.stops.first()));
        let last = latest(&mut ranks.iter().filter_map(|rank| rank.stops.last()));
        let many = first > 0.0 && first <= EDGE * watched && last >= (1.0 - EDGE) * watched;
        // A rank that was hardly ever free may have been so only at the edges.
        let many = many && ranks.iter().all(|rank| rank.computed(last) > rank.computed(first));
        let (head, span) = if many { (first, last) } else { (0.0, watched) };
        for rank in &mut ranks {
            rank.again = rank.computed(span) - rank.computed(head);
        }
        Calendar { span, head, ranks }
    }

    /// When a rank that begins at `start` has computed for `work`, or, with no work, when it goes on; in ns since it began
    /// to run.
    pub fn after(&self, rank: usize, start: f64, work: f64) -> f64 {
        let watched = &self.ranks[rank % self.ranks.len()];
        let shift = SHIFT * self.span * (rank / self.ranks.len()) as f64;
        let again = self.span - self.head;
        let before = ((start + shift - self.head) / again).floor().max(0.0);
        let computed = watched.computed(start + shift - before * again) + work;
        let more = ((computed - watched.computed(self.head)) / watched.again).floor().max(0.0);
        let there = watched.when(computed - more * watched.again);
        (start + work).max((before + more) * again + there - shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stops_hold_up_what_they_meet() {
        // Of each 12 ms a rank computes for 4, from 2 ms on and for 2 ms at the end; the other is never stopped.
        let stops = Stops { span_s: 0.012, ranks: vec![vec![[0.0, 0.002], [0.004, 0.006]], vec![]] };
        let calendar = Calendar::new(&stops);
        let ms = |rank, start: f64, work: f64| calendar.after(rank, start * 1e6, work * 1e6) / 1e6;
        for (start, work, end) in [
            (0.0, 0.0, 2.0),
            (3.0, 0.0, 3.0),
            (3.0, 0.5, 3.5),
            (3.0, 2.0, 11.0),
            (5.0, 1.0, 11.0),
            (11.0, 1.5, 14.5),
            (3.0, 8.5, 27.5),
        ] {
            assert!((ms(0, start, work) - end).abs() < 1e-9, "{start} {work}: {} instead of {end}", ms(0, start, work));
        }
        assert_eq!(ms(1, 5.0, 7.0), 12.0);
        // The third rank has the stops of the first at another time, the fourth none as the second.
        assert!(ms(2, 0.0, 4.5) > 12.0 && (ms(3, 0.0, 4.0) - 4.0).abs() < 1e-9);
    }

    /// Every 10 ms a stop of 5, but the first only after 8 ms, and a rest at the end: what is repeated is from stop to stop.
    #[test]
    fn what_comes_first_is_not_repeated() {
        let mut list = vec![[0.008, 0.002]];
        list.extend((1..20).map(|period| [0.01 * f64::from(period) + 0.005, 0.005]));
        let calendar = Calendar::new(&Stops { span_s: 0.203, ranks: vec![list] });
        let ms = |start: f64, work: f64| calendar.after(0, start * 1e6, work * 1e6) / 1e6;
        assert!((ms(0.0, 8.0) - 10.0).abs() < 1e-6 && (ms(0.0, 9.0) - 11.0).abs() < 1e-6);
        assert!((ms(0.0, 8.0 + 95.0 + 1.0) - 201.0).abs() < 1e-6, "{}", ms(0.0, 104.0));
        // The second time around, 190 ms long, has no longer part.
        assert!((ms(200.0, 95.0 + 6.0) - 401.0).abs() < 1e-6, "{}", ms(200.0, 101.0));
    }

    #[test]
    fn who_is_free_at_the_edges_alone_goes_on() {
        let often = (0..10).map(|at| [0.01 * f64::from(at) + 0.002, 0.008]).collect();
        let calendar = Calendar::new(&Stops { span_s: 0.1, ranks: vec![often, vec![[0.005, 0.095]]] });
        assert!((calendar.after(1, 0.0, 6e6) - 101e6).abs() < 1.0);
    }

    proptest! {
        #[test]
        fn work_adds_up(
            gaps in proptest::collection::vec((1e-4..1e-2f64, 1e-4..1e-2f64), 1..20),
            rank in 0usize..5,
            start in 0.0..1e10f64,
            work in (0.0..1e9f64, 0.0..1e9f64),
        ) {
            let mut at = 0.0;
            let mut list = Vec::new();
            for (gap, length) in gaps {
                list.push([at + gap, length]);
                at += gap + length;
            }
            let calendar = Calendar::new(&Stops { span_s: at + 1e-3, ranks: vec![list, vec![]] });
            let one = calendar.after(rank, start, work.0);
            let both = calendar.after(rank, start, work.0 + work.1);
            prop_assert!(one >= start + work.0 && both >= one);
            prop_assert!((calendar.after(rank, one, work.1) - both).abs() < 1.0);
            // Over many spans the share of stops is what it is in one.
            let list = &calendar.ranks[rank % 2];
            let start = start + calendar.span;
            let long = calendar.after(rank, start, 1000.0 * list.again) - start;
            prop_assert!((long / (calendar.span - calendar.head) - 1000.0).abs() < 1.01);
        }
    }
}
