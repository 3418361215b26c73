//! The rules of the transformation (seed 000, section 4.2) and how what a base run adds to them is carried over.
//!
//! A call ends when the last of its constraints is met: it has run for its own cost, its message has arrived, the last
//! rank has come to the collective. Each constraint is a start, the end of something else, and a model duration after
//! it, on both machines. The one that binds on the base is the cause of the end that was observed; what it took longer
//! than the model is carried to the target. So base = target gives the observed times back, whatever the model.

/// How many times the model cost of a send its time scales with the ratio of costs (S2 = f2/f1 S1). What is beyond it is
/// no cost of sending: the rank was preempted, or waited for buffers.
pub const MOST_SCALED: f64 = 3.0;
/// Costs of sending below this, in ns, do not scale: what such a send takes longer is a cold cache, not the network.
pub const LEAST_SCALED: f64 = 1000.0;

/// How far the clocks of two ranks on one node may be apart, in ns: a message that seems to arrive so little before it is
/// sent arrives as it is sent.
pub const CLOCKS: f64 = 20_000.0;

/// One thing that a call waits for, in ns on either machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constraint {
    /// When it starts on the base.
    pub start1: f64,
    /// What it takes on the base by the model.
    pub model1: f64,
    /// When it starts on the target.
    pub start2: f64,
    /// What it takes on the target by the model.
    pub model2: f64,
    /// How what was observed on the base is carried over.
    pub carry: Carry,
}

/// How a duration that was observed on the base becomes one on the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carry {
    /// S2 = f2/f1 S1, as far as S1 is a cost of sending.
    Scale,
    /// R2 = g2, and what the base took longer than g1.
    Add,
    /// The same, but the models are no more than guesses, wrong by the same factor: what the base took less of its own, the
    /// target does too, by the same share.
    Share,
}

impl Constraint {
    /// What a call waited for on the base only: it explains why the call ended then, and whatever it took longer than its
    /// own cost.
    pub fn only_on_base(end1: f64) -> Constraint {
        Constraint { start1: end1, model1: 0.0, start2: f64::NEG_INFINITY, model2: 0.0, carry: Carry::Add }
    }
}

impl Carry {
    /// The duration on the target: `observed` on the base, where the model says `model1`; `ratio` is that of the
    /// processors' speeds, with which scales what the model does not explain.
    #[inline]
    pub fn duration(self, observed: f64, model1: f64, model2: f64, ratio: f64) -> f64 {
        let observed = observed.max(0.0);
        let most = match self {
            Carry::Scale if model1 >= LEAST_SCALED => MOST_SCALED * model1,
            _ => model1,
        };
        if observed < most {
            return match self {
                Carry::Scale if model1 >= LEAST_SCALED => model2 * observed / model1,
                _ => self.less(observed, model1, model2),
            };
        }
        let explained = if model1 > 0.0 { model2 * most / model1 } else { model2 };
        explained + ratio * (observed - most)
    }

    /// What is left of a duration of `model2` on the target where the base took less than `model1`: less by the same share
    /// or, of what was measured, by the same time, whichever leaves more.
    #[inline]
    fn less(self, observed: f64, model1: f64, model2: f64) -> f64 {
        if model1 <= 0.0 {
            return model2;
        }
        let share = model2 * observed / model1;
        if self == Carry::Share { share } else { share.max(model2 - (model1 - observed)) }
    }
}

/// When a call that ended at `end1` on the base ends on the target.
#[inline]
pub fn end(constraints: &[Constraint], end1: f64, ratio: f64) -> f64 {
    let mut binding = 0;
    for (at, c) in constraints.iter().enumerate().skip(1) {
        let best = &constraints[binding];
        if c.start1 + c.model1 > best.start1 + best.model1 {
            binding = at;
        }
    }
    let mut end = f64::NEG_INFINITY;
    for (at, c) in constraints.iter().enumerate() {
        let observed = end1 - c.start1;
        let duration = if at == binding {
            c.carry.duration(observed, c.model1, c.model2, ratio)
        } else if observed < c.model1 && observed > -CLOCKS {
            // It took less than the model says, for the call had ended by then.
            c.carry.less(observed.max(0.0), c.model1, c.model2)
        } else {
            c.model2
        };
        end = end.max(c.start2 + duration);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn own(start: (f64, f64), model: (f64, f64), carry: Carry) -> Constraint {
        Constraint { start1: start.0, model1: model.0, start2: start.1, model2: model.1, carry }
    }

    #[test]
    fn sends_scale_with_their_costs() {
        assert_eq!(Carry::Scale.duration(2e6, 2e6, 1e6, 0.5), 1e6);
        assert_eq!(Carry::Scale.duration(3e6, 2e6, 1e6, 0.5), 1.5e6);
        assert_eq!(Carry::Scale.duration(1e6, 2e6, 1e6, 0.5), 0.5e6);
        // 106 with a cost of 2: 6 scale as sending, 100 as computation.
        assert_eq!(Carry::Scale.duration(106e6, 2e6, 1e6, 0.25), 3e6 + 25e6);
        // A cost that a cold cache multiplies is no measure of the network.
        assert_eq!(Carry::Scale.duration(500.0, 100.0, 10_000.0, 1.0), 10_400.0);
    }

    #[test]
    fn receives_take_what_they_cost_on_the_target() {
        assert_eq!(Carry::Add.duration(2.0, 2.0, 1.0, 0.5), 1.0);
        assert_eq!(Carry::Add.duration(6.0, 2.0, 1.0, 0.5), 1.0 + 2.0);
        assert_eq!(Carry::Add.duration(1.0, 2.0, 1.0, 0.5), 0.5);
        assert_eq!(Carry::Add.duration(1.0, 2.0, 10.0, 0.5), 9.0);
        assert_eq!(Carry::Add.duration(3.0, 0.0, 1.0, 2.0), 7.0);
        // 10 by the guess, 1 in fact: what is guessed of the target is wrong by as much.
        assert_eq!(Carry::Share.duration(1.0, 10.0, 20.0, 0.5), 2.0);
        assert_eq!(Carry::Share.duration(11.0, 10.0, 20.0, 0.5), 20.5);
        // On a base that costs nothing no share is left.
        assert_eq!(Carry::Share.duration(-1.0, 0.0, 20.0, 0.5), 20.0);
    }

    #[test]
    fn what_the_base_alone_waited_for_is_not_carried_over() {
        let call = own((10.0, 5.0), (2.0, 3.0), Carry::Scale);
        assert_eq!(end(&[Constraint::only_on_base(30.0), call], 30.0, 1.0), 8.0);
        // What it took less of its own cost is.
        assert_eq!(end(&[Constraint::only_on_base(11.0), call], 11.0, 1.0), 7.0);
    }

    proptest! {
        #[test]
        fn the_same_machine_gives_the_same_end(
            parts in proptest::collection::vec((0.0..1e9f64, 0.0..1e6f64, 0..3usize), 1..5),
            after in 0.0..1e9f64,
        ) {
            let constraints: Vec<Constraint> = parts
                .iter()
                .map(|&(start, model, carry)| {
                    own((start, start), (model, model), [Carry::Scale, Carry::Add, Carry::Share][carry])
                })
                .collect();
            let last = parts.iter().map(|p| p.0).fold(0.0, f64::max);
            let end1 = last + after;
            prop_assert!((end(&constraints, end1, 1.0) - end1).abs() <= 1e-6);
        }

        #[test]
        fn nothing_ends_before_it_starts(
            parts in proptest::collection::vec((0.0..1e9f64, 0.0..1e6f64, 0.0..1e9f64, 0.0..1e6f64), 1..5),
            end1 in 0.0..2e9f64,
            ratio in 0.01..100.0f64,
        ) {
            let constraints: Vec<Constraint> =
                parts.iter().map(|&(s1, m1, s2, m2)| own((s1, s2), (m1, m2), Carry::Add)).collect();
            let end2 = end(&constraints, end1, ratio);
            prop_assert!(parts.iter().all(|p| end2 >= p.2));
        }
    }
}
