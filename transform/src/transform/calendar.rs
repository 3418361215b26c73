//! When each rank of the target can compute: what was watched of stops ([`crate::machine::Stops`]), over and over.
//!
//! A rank that waits in MPI looks for its message all the time, so that its stops do not depend on what it does.
use crate::machine::Stops;

/// Ranks beyond those that were watched have their stops, later by this share of the span for each time around.
const SHIFT: f64 = 0.618_033_988_749_895;

/// The stops of all ranks, in ns.
#[derive(Clone, Debug)]
pub struct Calendar {
    span: f64,
    ranks: Vec<Watched>,
}

/// What was watched of one rank.
#[derive(Clone, Debug)]
struct Watched {
    /// Begin and end of each stop.
    stops: Vec<(f64, f64)>,
    /// Time computed until each stop.
    until: Vec<f64>,
    /// Time computed in the whole span.
    whole: f64,
}

impl Watched {
    fn new(list: &[[f64; 2]], span: f64) -> Watched {
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
        Watched { stops, until, whole: span - stopped }
    }
}

impl Calendar {
    /// The calendar of stops that a machine file holds.
    pub fn new(stops: &Stops) -> Calendar {
        let span = stops.span_s * 1e9;
        Calendar { span, ranks: stops.ranks.iter().map(|list| Watched::new(list, span)).collect() }
    }

    /// When a rank that begins at `start` has computed for `work`, or, with no work, when it goes on.
    pub fn after(&self, rank: usize, start: f64, work: f64) -> f64 {
        let watched = &self.ranks[rank % self.ranks.len()];
        let shift = SHIFT * self.span * (rank / self.ranks.len()) as f64;
        let spans = ((start + shift) / self.span).floor();
        let at = start + shift - spans * self.span;
        let before = watched.stops.partition_point(|stop| stop.0 <= at);
        let computed = match before.checked_sub(1) {
            None => at,
            Some(last) => watched.until[last] + (at - watched.stops[last].1).max(0.0),
        };
        let more = ((computed + work) / watched.whole).floor();
        let rest = computed + work - more * watched.whole;
        let passed = watched.until.partition_point(|until| *until <= rest);
        let there = match passed.checked_sub(1) {
            None => rest,
            Some(last) => watched.stops[last].1 + (rest - watched.until[last]),
        };
        (start + work).max((spans + more) * self.span + there - shift)
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
            let long = calendar.after(rank, start, 1000.0 * list.whole) - start;
            prop_assert!((long / calendar.span - 1000.0).abs() < 1.01);
        }
    }
}
