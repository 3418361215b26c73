//! The number of the process: a restarted program keeps the one that it began with, as it may have kept it itself
//! (Python's event loops take another for a child's). The kernel's stands in for it in calls that name a process. Threads have
//! new numbers; calls that name one by its old number mean it all the same.
use crate::own::{self, Guarded, Who};
use crate::sys::{self, error, failed, syscall};
use crate::trap::Call;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// What the program is told; 0 for the kernel's own.
static TOLD: AtomicU32 = AtomicU32::new(0);

/// As many threads are found by their old numbers.
const MOST: usize = 4096;

/// Threads of an image: how many, their old numbers and the new ones.
static THREADS: Guarded<(usize, [(u32, u32); MOST])> = Guarded::new((0, [(0, 0); MOST]));

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

/// The program is told this number from now on. No thread has an old number yet.
pub(crate) fn tell(number: u32) {
    TOLD.store(number, Relaxed);
    THREADS.lock().0 = 0;
}

/// A thread that had one number has another now.
pub(crate) fn add(old: u32, new: u32) {
    let mut threads = THREADS.lock();
    let count = threads.0;
    if let Some(pair) = threads.1.get_mut(count) {
        *pair = (old, new);
        threads.0 += 1;
    }
}

/// The kernel's number of the process or thread that the program knows by this one.
pub(crate) fn here(known: u32) -> u32 {
    if known != 0 && known == TOLD.load(Relaxed) {
        return sys::getpid();
    }
    let threads = THREADS.lock();
    let pairs = threads.1.get(..threads.0).unwrap_or(&[]);
    let new = pairs.iter().find(|pair| pair.0 == known).map(|pair| pair.1);
    // A thread or a child that was made since may have the number that another had.
    // SAFETY: sends no signal.
    let is_free = || unsafe { syscall!(libc::SYS_kill, known, 0) } == error(libc::ESRCH);
    new.filter(|_| is_free()).unwrap_or(known)
}

/// Where a signal says that this process has sent it, it says so by the number that the program knows: the C library goes by
/// that where threads are cancelled.
pub(crate) fn sign(info: &mut libc::siginfo_t) {
    #[repr(C)]
    struct Sent {
        head: [i32; 3],
        gap: i32,
        pid: u32,
    }
    let told = TOLD.load(Relaxed);
    if told != 0 && [libc::SI_USER, libc::SI_QUEUE, libc::SI_TKILL].contains(&info.si_code) {
        // SAFETY: signals with these codes have their sender there.
        let sent = unsafe { &mut *(&raw mut *info).cast::<Sent>() };
        if sent.pid == sys::getpid() && own::who() == Who::Program {
            sent.pid = told;
        }
    }
}

/// Carries out such a call of the upper half; none for others.
pub(crate) unsafe fn trapped(call: &mut Call) -> Option<isize> {
    let asks = ASKING.contains(&call.number);
    let places = NAMING.iter().find(|(number, _)| *number == call.number).map(|(_, places)| *places);
    let places = places.or(asks.then_some(&[]))?;
    let (own, told) = (sys::getpid(), TOLD.load(Relaxed));
    let renamed = told != 0 && own::who() == Who::Program;
    for &place in places.iter().filter(|_| renamed) {
        let named = &mut call.args[place];
        // A group is named by the number of its first process, negative in `kill`.
        *named = match *named as i32 {
            group @ ..0 if call.number == libc::SYS_kill => -(here(group.unsigned_abs()) as i32) as usize,
            number => here(number as u32) as usize,
        };
    }
    // SAFETY: the program's own call.
    let result = unsafe { call.pass() };
    match call.number {
        libc::SYS_pidfd_open => crate::descriptors::note(result),
        libc::SYS_sched_getaffinity => crate::processors::ask(),
        _ => {}
    }
    let tells = asks || matches!(call.number, libc::SYS_getpgid | libc::SYS_getsid);
    Some(if renamed && tells && !failed(result) && result == own as isize { told as isize } else { result })
}
