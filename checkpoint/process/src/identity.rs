//! The number of the process: a restarted program keeps the one that it began with, as it may have kept it itself
//! (Python's event loops take another for a child's). The kernel's stands in for it in calls that name a process.
use crate::own::{self, Who};
use crate::sys::{self, failed};
use crate::trap::Call;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// What the program is told; 0 for the kernel's own.
static TOLD: AtomicU32 = AtomicU32::new(0);

/// Calls that tell the number of the process, its main thread or its group.
const ASKING: [i64; 3] = [libc::SYS_getpid, libc::SYS_gettid, libc::SYS_getpgrp];

/// Calls that name processes or threads, with the arguments that do.
#[rustfmt::skip]
const NAMING: [(i64, &[usize]); 20] = [
    (libc::SYS_kill, &[0]), (libc::SYS_tkill, &[0]), (libc::SYS_tgkill, &[0, 1]), (libc::SYS_rt_sigqueueinfo, &[0]),
    (libc::SYS_rt_tgsigqueueinfo, &[0, 1]), (libc::SYS_getpgid, &[0]), (libc::SYS_setpgid, &[0, 1]), (libc::SYS_getsid, &[0]),
    (libc::SYS_sched_setaffinity, &[0]), (libc::SYS_sched_getaffinity, &[0]), (libc::SYS_sched_setscheduler, &[0]),
    (libc::SYS_sched_getscheduler, &[0]), (libc::SYS_sched_setparam, &[0]), (libc::SYS_sched_getparam, &[0]),
    (libc::SYS_getpriority, &[1]), (libc::SYS_setpriority, &[1]), (libc::SYS_prlimit64, &[0]), (libc::SYS_process_vm_readv, &[0]),
    (libc::SYS_process_vm_writev, &[0]), (libc::SYS_pidfd_open, &[0]),
];

/// All of them.
pub(crate) fn calls() -> impl Iterator<Item = i64> {
    ASKING.into_iter().chain(NAMING.iter().map(|call| call.0))
}

/// The program's number of this process.
pub(crate) fn told() -> u32 {
    match TOLD.load(Relaxed) {
        0 => sys::getpid(),
        told => told,
    }
}

/// The program is told this number from now on.
pub(crate) fn tell(number: u32) {
    TOLD.store(number, Relaxed);
}

/// Carries out such a call of the upper half; none for others.
pub(crate) unsafe fn trapped(call: &mut Call) -> Option<isize> {
    let asks = ASKING.contains(&call.number);
    let places = NAMING.iter().find(|(number, _)| *number == call.number).map(|(_, places)| *places);
    let places = places.or(asks.then_some(&[]))?;
    let (own, told) = (sys::getpid(), TOLD.load(Relaxed));
    let renamed = told != 0 && told != own && own::who() == Who::Program;
    for &place in places.iter().filter(|_| renamed) {
        let named = &mut call.args[place];
        // A group is named by the number of its first process, negative in `kill`.
        if *named as i32 == told as i32 {
            *named = own as usize;
        } else if call.number == libc::SYS_kill && *named as i32 == -(told as i32) {
            *named = -(own as i32) as usize;
        }
    }
    // SAFETY: the program's own call.
    let result = unsafe { call.pass() };
    if call.number == libc::SYS_pidfd_open {
        crate::descriptors::note(result);
    }
    let tells = asks || matches!(call.number, libc::SYS_getpgid | libc::SYS_getsid);
    Some(if renamed && tells && !failed(result) && result == own as isize { told as isize } else { result })
}
