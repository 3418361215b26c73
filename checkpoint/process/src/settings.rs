//! What a program has asked of the kernel for the whole process and for good, by `prctl` and `membarrier`. A restart asks for
//! it again.
use crate::processors;
use crate::sys::{failed, syscall};
use libc::c_int;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// How an option of `prctl` is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    /// As the result of the call.
    Result,
    /// Where a pointer leads.
    There,
}

/// Options: what asks for it, what sets it, how it is told. Those of one thread are the one's that comes to the cut; at the
/// restart the main thread sets them, from which all others have them.
const OPTIONS: &[(c_int, c_int, Told)] = &[
    (libc::PR_GET_TIMERSLACK, libc::PR_SET_TIMERSLACK, Told::Result),
    (libc::PR_GET_THP_DISABLE, libc::PR_SET_THP_DISABLE, Told::Result),
    (libc::PR_GET_KEEPCAPS, libc::PR_SET_KEEPCAPS, Told::Result),
    (libc::PR_GET_CHILD_SUBREAPER, libc::PR_SET_CHILD_SUBREAPER, Told::There),
    (libc::PR_GET_PDEATHSIG, libc::PR_SET_PDEATHSIG, Told::There),
];

/// Commands of `membarrier` that need a registration, and this. The first tells of registrations, from Linux 6.3 on.
const GET_REGISTRATIONS: c_int = 1 << 9;
const BARRIERS: [(c_int, c_int); 3] = [(1 << 3, 1 << 4), (1 << 5, 1 << 6), (1 << 7, 1 << 8)];

/// What the program has changed, for an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// What sets an option, and its value.
    options: Vec<(c_int, usize)>,
    /// Registrations for `membarrier`, as a mask.
    barriers: c_int,
    /// How many processors it had, if it has asked for them.
    pub processors: Option<u32>,
}

/// The options' values as the process began.
static BEGUN: OnceLock<Vec<usize>> = OnceLock::new();

/// Notes how things are before there is a program.
pub(crate) fn prepare() {
    BEGUN.get_or_init(options);
}

fn options() -> Vec<usize> {
    OPTIONS.iter().map(|(get, _, told)| option(*get, *told)).collect()
}

/// The value of an option; zero where the kernel does not know it.
fn option(get: c_int, told: Told) -> usize {
    let mut there: c_int = 0;
    let place = if told == Told::There { &raw mut there } else { std::ptr::null_mut() };
    // SAFETY: asks only; the place is written to where one is given.
    let result = unsafe { syscall!(libc::SYS_prctl, get, place, 0, 0, 0) };
    match told {
        _ if failed(result) => 0,
        Told::Result => result as usize,
        Told::There => there as usize,
    }
}

/// A command of `membarrier`; none if it fails.
fn barrier(command: c_int) -> Option<c_int> {
    // SAFETY: concerns no memory of this process but its order.
    let result = unsafe { syscall!(libc::SYS_membarrier, command, 0, 0) };
    (!failed(result)).then_some(result as c_int)
}

fn registrations() -> c_int {
    let by_use = || BARRIERS.iter().filter(|(used, _)| barrier(*used).is_some()).fold(0, |all, (_, asked)| all | asked);
    barrier(GET_REGISTRATIONS).unwrap_or_else(by_use)
}

/// What the program has changed.
pub fn save() -> Settings {
    let begun = BEGUN.get_or_init(options);
    let now = options();
    let changed = OPTIONS.iter().zip(begun.iter().zip(now)).filter(|(_, (begun, now))| *begun != now);
    let options = changed.map(|((_, set, _), (_, now))| (*set, now)).collect();
    Settings { options, barriers: registrations(), processors: processors::told() }
}

/// Asks for the same again, before there are threads; what another image had, and this one has not, is as the process began.
pub fn restore(settings: &Settings) {
    let begun = BEGUN.get_or_init(options);
    for ((_, set, _), (begun, now)) in OPTIONS.iter().zip(begun.iter().zip(options())) {
        let wanted = settings.options.iter().find(|(other, _)| other == set).map_or(*begun, |(_, value)| *value);
        if wanted != now {
            // SAFETY: options that concern no memory; what this kernel refuses stays as it is.
            unsafe { syscall!(libc::SYS_prctl, *set, wanted, 0, 0, 0) };
        }
    }
    if settings.barriers != 0 {
        let missing = settings.barriers & !registrations();
        (0..31).map(|bit| 1 << bit).filter(|bit| missing & bit != 0).for_each(|bit| _ = barrier(bit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_is_changed_again_and_back() {
        let run = || {
            prepare();
            let plain = save();
            // SAFETY: this thread's own.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 77_777) };
            barrier(1 << 4);
            let changed = save();
            assert!(changed.options == [(libc::PR_SET_TIMERSLACK, 77_777)] && changed.barriers & (1 << 4) != 0);
            restore(&plain);
            assert_eq!(save().options, plain.options);
            restore(&changed);
            assert_eq!(save(), changed);
        };
        // A thread of its own, whose slack is nobody else's.
        std::thread::spawn(run).join().expect("it goes well");
    }
}
