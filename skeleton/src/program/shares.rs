//! What computation that was counted is made of: lines from memory, lines of the small working set, and arithmetic, in the
//! shares of its time that give its traffic and, as far as they can, its instructions.
use super::calibrate::{Far, Rates};
use crate::logical::Work;

/// Shares of the time of a block, 0 to 1; the rest is arithmetic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// In which lines come from memory.
    pub far: f64,
    /// In which lines of the small working set are read and written.
    pub near: f64,
}

impl Shares {
    /// The shares of computation that did this work, by rates of the base. Traffic comes first: all of it, or what fits
    /// into the time. The rest of the time is divided between the two other kinds such that all have the instructions of
    /// the work; beyond what one of the two alone has, it is all of that one.
    pub fn of(work: &Work, rates: &Rates, far: &Far) -> Shares {
        let share = |of: f64| if of.is_finite() { of.clamp(0.0, 1.0) } else { 0.0 };
        let far_share = share(work.lines_per_us / far.lines_per_us);
        let rest = 1.0 - far_share;
        let each = &far.instructions;
        let near = rates.lines_per_us * each.line;
        let arithmetic = rates.rounds_per_us * each.round;
        let wanted = (work.instructions_per_us - far_share * far.lines_per_us * each.far_line) / rest;
        // Of two kinds with the same instructions any share will do: that of the mix.
        let alike = (near - arithmetic).abs() < 1e-9 * near.max(arithmetic);
        let of_rest = if alike { rates.mix.memory } else { share((wanted - arithmetic) / (near - arithmetic)) };
        Shares { far: far_share, near: rest * of_rest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::calibrate::{Instructions, Mix};
    use proptest::prelude::*;

    fn rates() -> impl Strategy<Value = (Rates, Far)> {
        let rate = || 1.0f64..2000.0;
        (rate(), rate(), rate(), 1.0f64..20.0, 1.0f64..20.0, 1.0f64..20.0).prop_map(
            |(rounds_per_us, lines_per_us, far, round, line, far_line)| {
                let instructions = Instructions { round, line, far_line, counted: true };
                let far = Far { working_set: 1 << 26, lines_per_us: far, instructions };
                (Rates { mix: Mix::default(), rounds_per_us, lines_per_us, block_us: 0.0, far: Some(far) }, far)
            },
        )
    }

    fn work() -> impl Strategy<Value = Work> {
        (prop_oneof![Just(0.0), 0.0f64..20_000.0], prop_oneof![Just(0.0), 0.0f64..4000.0])
            .prop_map(|(instructions_per_us, lines_per_us)| Work { instructions_per_us, lines_per_us })
    }

    /// Instructions in a microsecond of such computation.
    fn instructions(shares: Shares, rates: &Rates, far: &Far) -> f64 {
        shares.far * far.lines_per_us * far.instructions.far_line
            + shares.near * rates.lines_per_us * far.instructions.line
            + (1.0 - shares.far - shares.near) * rates.rounds_per_us * far.instructions.round
    }

    proptest! {
        #[test]
        fn time_and_traffic_are_kept((rates, far) in rates(), work in work()) {
            let shares = Shares::of(&work, &rates, &far);
            prop_assert!(shares.far >= 0.0 && shares.near >= 0.0 && shares.far + shares.near <= 1.0 + 1e-12, "{shares:?}");
            let lines = shares.far * far.lines_per_us;
            let fits = work.lines_per_us.min(far.lines_per_us);
            prop_assert!((lines - fits).abs() <= 1e-9 * fits, "{lines} lines of {}", work.lines_per_us);
        }

        /// Instructions are those of the work, or as near as the two kinds can come.
        #[test]
        fn instructions_are_kept_where_they_can_be((rates, far) in rates(), work in work()) {
            let shares = Shares::of(&work, &rates, &far);
            let made = instructions(shares, &rates, &far);
            let ends = [0.0, 1.0 - shares.far].map(|near| instructions(Shares { near, ..shares }, &rates, &far));
            let (least, most) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            let wanted = work.instructions_per_us.clamp(least, most);
            prop_assert!((made - wanted).abs() <= 1e-6 * most.max(1.0), "{made} of {wanted}");
        }

        /// More traffic never means fewer lines from memory, more instructions never fewer instructions.
        #[test]
        fn more_work_is_more((rates, far) in rates(), work in work(), more in 0.0f64..1000.0) {
            let shares = Shares::of(&work, &rates, &far);
            let traffic = Work { lines_per_us: work.lines_per_us + more, ..work };
            prop_assert!(Shares::of(&traffic, &rates, &far).far >= shares.far);
            let faster = Work { instructions_per_us: work.instructions_per_us + more, ..work };
            let (before, after) = (shares, Shares::of(&faster, &rates, &far));
            prop_assert_eq!(before.far, after.far);
            let [before, after] = [before, after].map(|shares| instructions(shares, &rates, &far));
            prop_assert!(after >= before - 1e-9 * before, "{before} {after}");
        }
    }
}
