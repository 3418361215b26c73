//! The time of a launch that restarts images: for which steps there is some left, and how long they are to be.
use crate::job::{StepTime, Within};
use std::time::{Duration, Instant};

/// The share of the time left over that steps are made longer by.
const SPARE: f64 = 0.9;

/// The time of a launch, for what there is time for.
pub(crate) struct Time {
    within: Within,
    /// When it was launched.
    launched: Instant,
    /// When the last step was begun.
    pub(crate) begun: Instant,
    /// How many positions each step has reached so far.
    reached: Vec<usize>,
    spent: Spent,
}

/// What steps have taken.
#[derive(Clone, Copy)]
struct Spent {
    steps: usize,
    /// Time in which the program ran, here and on the base, in seconds.
    ran_s: (f64, f64),
    /// Time for all else, in seconds.
    other_s: f64,
}

impl StepTime {
    /// What the base took for so many positions, in seconds.
    fn base_s(&self, positions: usize) -> f64 {
        positions.checked_sub(1).and_then(|last| self.base_s.get(last)).copied().unwrap_or(0.0)
    }
}

impl Spent {
    /// A step of `all_s` seconds more, in `ran_s` of which the program ran for what the base took `base_s`.
    fn with(self, base_s: f64, ran_s: f64, all_s: f64) -> Spent {
        Spent {
            steps: self.steps + 1,
            ran_s: (self.ran_s.0 + ran_s, self.ran_s.1 + base_s),
            other_s: self.other_s + (all_s - ran_s).max(0.0),
        }
    }

    /// Time here over time on the base.
    fn pace(&self) -> f64 {
        if self.ran_s.1 > 0.0 { self.ran_s.0 / self.ran_s.1 } else { 1.0 }
    }

    /// What a step of this base time will take: beside the program what others have taken.
    fn step_s(&self, base_s: f64) -> f64 {
        self.other_s / self.steps.max(1) as f64 + self.pace() * base_s
    }
}

impl Time {
    /// Of a rank that was started at this moment.
    pub(crate) fn new(within: Within, started: Instant) -> Time {
        let spent = Spent { steps: 0, ran_s: within.ran_s, other_s: 0.0 };
        let startup = || started.elapsed() + Duration::try_from_secs_f64(within.startup_s).unwrap_or_default();
        let ago = within.launched.ago().unwrap_or_else(startup);
        let launched = Instant::now().checked_sub(ago).unwrap_or(started);
        Time { within, launched, begun: started, reached: Vec::new(), spent }
    }

    fn left_s(&self) -> f64 {
        self.within.seconds - self.launched.elapsed().as_secs_f64()
    }

    /// The step that is being made, and those after it.
    pub(crate) fn steps(&self) -> Option<(&StepTime, &[StepTime])> {
        self.within.steps.get(self.reached.len()..)?.split_first()
    }

    /// How many positions the step that is being made will reach, if that is known: those of the step that it repeats.
    pub(crate) fn known(&self, step: &StepTime) -> Option<usize> {
        step.repeats.and_then(|earlier| self.reached.get(earlier)).copied()
    }

    /// What the base took for the step, as far as it is known how long it will be, else as planned.
    fn base_s(&self, step: &StepTime) -> f64 {
        step.base_s(self.known(step).unwrap_or(step.planned))
    }

    /// What has been spent when the step has reached so many positions in `ran_s` seconds.
    fn with_step(&self, positions: usize, ran_s: f64) -> Spent {
        let base_s = self.steps().map_or(0.0, |(step, _)| step.base_s(positions));
        self.spent.with(base_s, ran_s, self.begun.elapsed().as_secs_f64())
    }

    /// The step is done.
    pub(crate) fn add(&mut self, positions: usize, ran_s: f64) {
        self.spent = self.with_step(positions, ran_s);
        self.reached.push(positions);
    }

    /// Whether there is a next step that is to be made.
    pub(crate) fn goes_on(&self) -> bool {
        let fits = |next| self.spent.step_s(self.base_s(next)) <= self.left_s();
        self.steps().is_some_and(|(next, _)| self.reached.len() < self.within.least || fits(next))
    }

    /// How many positions of the step there is time for, which has run as far as planned, in `ran_s` seconds. What is left
    /// over, if the steps to come are as planned, is divided among this one and those that may be longer, too.
    pub(crate) fn positions(&self, ran_s: f64) -> usize {
        let Some((step, later)) = self.steps() else { return 0 };
        let spent = self.with_step(step.planned, ran_s);
        let later_s: f64 = later.iter().map(|step| spent.step_s(self.base_s(step))).sum();
        let may_be = |step: &&StepTime| self.known(step).is_none() && step.planned < step.base_s.len();
        let open = 1 + later.iter().filter(may_be).count();
        let spare_s = SPARE * (self.left_s() - later_s);
        let more_s = (spare_s / open as f64).min(self.within.longest_s);
        let more = (step.planned + 1..=step.base_s.len()).take_while(|&positions| {
            let after = |positions| spent.pace() * (step.base_s(positions) - step.base_s(step.planned));
            // Half a piece more than there is time for is as near to it as half a piece less.
            0.5 * (after(positions - 1) + after(positions)) <= more_s && after(positions) <= spare_s
        });
        step.planned + more.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Moment;

    /// The time of a launch of steps of ten positions, 0.1 s apart on the base, of which two are planned.
    fn time(steps: usize, seconds: f64, longest_s: f64) -> Time {
        let base_s = (1..=10).map(|at| 0.1 * f64::from(at)).collect();
        let steps = vec![StepTime { base_s, planned: 2, repeats: None }; steps];
        let launched = Moment::now();
        let within = Within { seconds, launched, startup_s: 0.3, least: 1, longest_s, ran_s: (0.0, 0.0), steps };
        Time::new(within, Instant::now())
    }

    #[test]
    fn the_time_runs_from_the_launch() {
        let started = Instant::now();
        let left_s = |boot_id: Option<&str>, ns_ago: u64| {
            let Within { launched, .. } = time(1, 2.0, 9.0).within;
            let boot_id = boot_id.map_or(launched.boot_id, String::from);
            let launched = Moment { boot_id, ns: launched.ns - ns_ago };
            Time::new(Within { launched, ..time(1, 2.0, 9.0).within }, started).left_s()
        };
        let near = |left_s: f64, of: f64| (of - 0.2..=of).contains(&left_s);
        assert!(near(left_s(None, 0), 2.0) && near(left_s(None, 500_000_000), 1.5));
        assert!(near(left_s(Some("another"), 500_000_000), 1.7), "elsewhere as long as is told after the launch");
    }

    #[test]
    fn what_is_left_over_is_divided_among_the_steps() {
        // Of 2 s the steps to come take 0.2 s each; nine tenths of 1.6 s are 0.48 s for each of three.
        assert_eq!(time(3, 2.0, 9.0).positions(0.2), 2 + 5);
        assert_eq!(time(3, 2.0, 0.3).positions(0.2), 2 + 3, "no longer than is asked for");
        assert_eq!(time(3, 0.4, 9.0).positions(0.2), 2, "as planned, whatever it takes");
        assert_eq!(time(1, 1e6, 9.0).positions(0.2), 10, "no more than there are");
        let mut one_off = time(3, 1.4, 9.0);
        one_off.within.steps[2].base_s.truncate(2);
        assert_eq!(one_off.positions(0.2), 2 + 4, "half of nine tenths of a second: the last is as long as it is");
    }

    #[test]
    fn a_slow_target_gets_fewer_positions() {
        // At twice the base's time two steps to come take 0.8 s: 0.36 s for each are two positions.
        assert_eq!(time(3, 2.0, 9.0).positions(0.4), 2 + 2);
        // Known from the launches before for ten times as long.
        let mut slow = time(3, 2.0, 9.0);
        slow.spent.ran_s = (4.0, 2.0);
        assert_eq!(slow.positions(0.2), 2 + 2);
    }

    #[test]
    fn what_is_repeated_is_as_long_as_it_was_and_has_its_share_before() {
        let mut time = time(4, 2.8, 9.0);
        (time.within.steps[2].repeats, time.within.steps[3].repeats) = (Some(0), Some(1));
        // Nine tenths of 2.8 s but three steps of 0.2 s, for each of four: 0.5 s, and half a piece.
        assert_eq!(time.positions(0.2), 2 + 5);
        (time.spent.steps, time.spent.ran_s) = (1, (0.7, 0.7));
        time.reached = vec![7];
        // Known is what the third takes: 0.7 s. Of what is left after that and the fourth as planned two have a share.
        assert_eq!(time.positions(0.2), 2 + 8);
        time.reached = vec![7, 10];
        let (third, later) = time.steps().expect("two are left");
        assert_eq!((time.known(third), time.known(&later[0])), (Some(7), Some(10)));
        assert!((time.base_s(third) - 0.7).abs() < 1e-9);
    }

    #[test]
    fn a_step_for_which_there_is_no_time_is_left_out() {
        let goes_on = |made: usize, seconds: f64| {
            let mut time = time(3, seconds, 9.0);
            time.spent = Spent { steps: made, ran_s: (0.4, 0.2), other_s: made as f64 };
            time.reached = vec![2; made];
            time.goes_on()
        };
        // The restart takes a second, the program 0.4 s.
        assert!(goes_on(1, 1.5) && !goes_on(1, 1.3) && !goes_on(3, 1e6));
        assert!(goes_on(0, 0.0), "the first is made in any case");
    }
}
