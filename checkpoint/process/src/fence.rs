//! The fence: a seccomp filter on the instruction pointer. System calls that the upper half makes from its code, and
//! of these only the few that concern memory, signals, files and the process as a whole, raise SIGSYS; all others, and
//! all of the lower half's, run at full speed. The number comes first, so that the kernel can answer for the others
//! without running the filter at all.
use crate::Error;
use crate::sys::{failed, syscall};
use crate::{identity, named, signals, threads, timers};
use std::io;
use std::sync::OnceLock;

/// Trapped calls, besides those that name a file ([`named::CALLS`]), a process ([`identity::calls`]) or a timer
/// ([`timers::CALLS`]).
#[rustfmt::skip]
const TRAPPED: &[i64] = &[
    libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_brk,
    libc::SYS_shmget, libc::SYS_shmat, libc::SYS_shmdt, libc::SYS_semget, libc::SYS_msgget,
    libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigsuspend, libc::SYS_rt_sigtimedwait,
    libc::SYS_open, libc::SYS_openat, libc::SYS_openat2, libc::SYS_creat, libc::SYS_close, libc::SYS_close_range,
    libc::SYS_dup, libc::SYS_dup2, libc::SYS_dup3, libc::SYS_pipe, libc::SYS_pipe2, libc::SYS_socket,
    libc::SYS_socketpair, libc::SYS_accept, libc::SYS_accept4, libc::SYS_eventfd, libc::SYS_eventfd2, libc::SYS_epoll_create, libc::SYS_epoll_create1,
    libc::SYS_signalfd, libc::SYS_signalfd4, libc::SYS_timerfd_create, libc::SYS_inotify_init, libc::SYS_inotify_init1,
    libc::SYS_memfd_create, libc::SYS_perf_event_open,
    libc::SYS_userfaultfd, libc::SYS_execve, libc::SYS_execveat, libc::SYS_exit, libc::SYS_exit_group, libc::SYS_seccomp,
    libc::SYS_getcwd, libc::SYS_chdir, libc::SYS_fchdir, libc::SYS_fstat, libc::SYS_getrusage, libc::SYS_times,
];

/// Calls that the kernel answers as if it had none: a library then has another way. Threads that were made in this way could
/// not be made again, and rings for input and output lie where the kernel likes.
const REFUSED: &[i64] = &[libc::SYS_clone3, libc::SYS_io_setup, libc::SYS_io_uring_setup];

/// What a dynamic linker asks for to make the stack executable.
const EXECUTABLE_STACK: u32 = (libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC | libc::PROT_GROWSDOWN) as u32;

/// Trapped only where an argument is one of these values.
const TRAPPED_IF: &[(i64, u32, &[u32])] = &[
    (libc::SYS_fcntl, 1, &[libc::F_DUPFD as u32, libc::F_DUPFD_CLOEXEC as u32]),
    (libc::SYS_mprotect, 2, &[EXECUTABLE_STACK]),
    (libc::SYS_prctl, 0, &[libc::PR_SET_SECCOMP as u32]),
    (libc::SYS_clock_gettime, 0, &[libc::CLOCK_PROCESS_CPUTIME_ID as u32, libc::CLOCK_THREAD_CPUTIME_ID as u32]),
];

/// Trapped only where this argument, a mask of signals, is given.
const TRAPPED_MASK: &[(i64, u32)] =
    &[(libc::SYS_ppoll, 3), (libc::SYS_pselect6, 5), (libc::SYS_epoll_pwait, 4), (libc::SYS_epoll_pwait2, 4)];

/// What a kernel may refuse.
const FILTER: &str = "the filter of system calls";

#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Next,
    Allow,
    Trap,
    Refuse,
    /// The block of a conditional call, by its place among them.
    Block(usize),
}

struct Line {
    code: u32,
    k: u32,
    yes: To,
    no: To,
}

const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const POINTER_HIGH: u32 = 12;
const ARGUMENTS: u32 = 16;
const X86_64: u32 = 0xc000_003e;
/// High words of the range's addresses: 0x2000 to 0x27ff.
const RANGE_MASK: u32 = 0xffff_f800;
const RANGE_HIGH: u32 = 0x2000;

const fn load(at: u32) -> Line {
    Line { code: libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, k: at, yes: To::Next, no: To::Next }
}

const fn equal(k: u32, yes: To, no: To) -> Line {
    Line { code: libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k, yes, no }
}

const fn answer(k: u32) -> Line {
    Line { code: libc::BPF_RET | libc::BPF_K, k, yes: To::Next, no: To::Next }
}

fn trapped() -> impl Iterator<Item = i64> {
    let named = named::CALLS.iter().map(|call| call.0);
    TRAPPED.iter().copied().chain(named).chain(identity::calls()).chain(timers::CALLS)
}

/// Whose calls a filter concerns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Code {
    /// That in the upper half's range.
    Range,
    /// That below 4 GiB, of a program that is not position-independent; the lower half has none there.
    Low,
}

/// The filter. Jumps reach 255 lines ahead, hence the blocks lie behind the list and the answers behind these.
fn program(code: Code) -> Vec<libc::sock_filter> {
    let mut lines = vec![load(ARCHITECTURE), equal(X86_64, To::Next, To::Allow), load(NUMBER)];
    lines.extend(trapped().map(|n| equal(n as u32, To::Trap, To::Next)));
    lines.extend(REFUSED.iter().map(|n| equal(*n as u32, To::Refuse, To::Next)));
    let conditional = TRAPPED_IF.iter().map(|t| t.0).chain(TRAPPED_MASK.iter().map(|t| t.0));
    lines.extend(conditional.enumerate().map(|(i, n)| equal(n as u32, To::Block(i), To::Next)));
    lines.push(answer(libc::SECCOMP_RET_ALLOW));
    let mut blocks = Vec::new();
    for (_, argument, values) in TRAPPED_IF {
        blocks.push(lines.len());
        lines.push(load(ARGUMENTS + 8 * argument));
        let last = values.len() - 1;
        lines.extend(
            values.iter().enumerate().map(|(i, v)| equal(*v, To::Trap, if i == last { To::Allow } else { To::Next })),
        );
    }
    for (_, argument) in TRAPPED_MASK {
        blocks.push(lines.len());
        lines.extend([load(ARGUMENTS + 8 * argument), equal(0, To::Next, To::Trap)]);
        lines.extend([load(ARGUMENTS + 8 * argument + 4), equal(0, To::Allow, To::Trap)]);
    }
    let (mask, high) = if code == Code::Range { (RANGE_MASK, RANGE_HIGH) } else { (u32::MAX, 0) };
    let from_upper = |then: u32| {
        let mask = Line { code: libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, k: mask, yes: To::Next, no: To::Next };
        [load(POINTER_HIGH), mask, equal(high, To::Next, To::Allow), answer(then)]
    };
    let trap = lines.len();
    lines.extend(from_upper(libc::SECCOMP_RET_TRAP));
    let refuse = lines.len();
    lines.extend(from_upper(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32));
    let allow = lines.len();
    lines.push(answer(libc::SECCOMP_RET_ALLOW));
    let jump = |from: usize, to: To| {
        let target = match to {
            To::Next => from + 1,
            To::Allow => allow,
            To::Trap => trap,
            To::Refuse => refuse,
            To::Block(i) => blocks[i],
        };
        u8::try_from(target - from - 1).expect("the filter is shorter than a jump")
    };
    let assemble = |(at, line): (usize, &Line)| {
        let (jt, jf) = if line.code & 7 == libc::BPF_JMP { (jump(at, line.yes), jump(at, line.no)) } else { (0, 0) };
        libc::sock_filter { code: line.code as u16, jt, jf, k: line.k }
    };
    lines.iter().enumerate().map(assemble).collect()
}

/// Puts the fence up: the handlers of signals, then the filter, which stays for the rest of the process. To be called by
/// the main thread; further calls do nothing.
///
/// # Errors
/// If the kernel refuses the filter.
pub fn install() -> Result<(), Error> {
    static UP: OnceLock<()> = OnceLock::new();
    if UP.get().is_none() {
        signals::prepare();
        threads::probe();
        filter(Code::Range)?;
        let _ = UP.set(());
    }
    Ok(())
}

/// Puts a fence up around code below 4 GiB, too, for a program that is not position-independent. Others do without: what a
/// program executes keeps the fence, and without the host a call that it stops ends a process. To be called by the main thread,
/// behind the fence; further calls do nothing.
///
/// # Errors
/// If the kernel refuses the filter, or the host itself lies there.
pub fn include_low_code() -> Result<(), Error> {
    static UP: OnceLock<()> = OnceLock::new();
    if UP.get().is_none() {
        if (include_low_code as *const () as usize) >> 32 == 0 {
            let cause = io::Error::other("the host itself was not built position-independent");
            return Err(Error::Kernel { what: FILTER, cause });
        }
        filter(Code::Low)?;
        let _ = UP.set(());
    }
    Ok(())
}

fn filter(code: Code) -> Result<(), Error> {
    const SECCOMP_SET_MODE_FILTER: usize = 1;
    let mut lines = program(code);
    let program = libc::sock_fprog { len: lines.len() as u16, filter: lines.as_mut_ptr() };
    // Kernels before 5.16 slow the whole process down unless asked not to.
    let set = |flags: libc::c_ulong| {
        // SAFETY: the program and its lines live through the call.
        unsafe { syscall!(libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &raw const program) }
    };
    let mut result = set(libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW);
    if result == crate::sys::error(libc::EACCES) {
        // SAFETY: a promise about this process alone; needed by those who are not root.
        unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        result = set(libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW);
    }
    if result == crate::sys::error(libc::EINVAL) {
        result = set(0);
    }
    if failed(result) {
        let cause = io::Error::from_raw_os_error(-result as i32);
        return Err(Error::Kernel { what: FILTER, cause });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::RANGE;

    /// What the filter answers: the kernel's interpreter in small.
    fn run(number: i64, pointer: usize, args: [u64; 6]) -> u32 {
        run_of(Code::Range, number, pointer, args)
    }

    fn run_of(code: Code, number: i64, pointer: usize, args: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend((number as u32).to_le_bytes());
        data.extend(X86_64.to_le_bytes());
        data.extend((pointer as u64).to_le_bytes());
        data.extend(args.iter().flat_map(|a| a.to_le_bytes()));
        let lines = program(code);
        let (mut at, mut a) = (0, 0u32);
        loop {
            let line = &lines[at];
            at += 1;
            match u32::from(line.code) {
                code if code & 7 == libc::BPF_LD => {
                    let word = &data[line.k as usize..][..4];
                    a = u32::from_le_bytes(word.try_into().unwrap());
                }
                code if code & 7 == libc::BPF_ALU => a &= line.k,
                code if code & 7 == libc::BPF_RET => return line.k,
                _ => at += usize::from(if a == line.k { line.jt } else { line.jf }),
            }
        }
    }

    #[test]
    fn only_listed_calls_from_the_range_trap() {
        let (upper, lower) = (RANGE.start + 0x1234_5678, 0x7fff_0000_1000);
        for number in trapped() {
            assert_eq!(run(number, upper, [0; 6]), libc::SECCOMP_RET_TRAP);
            assert_eq!(run(number, RANGE.end - 1, [0; 6]), libc::SECCOMP_RET_TRAP);
            for outside in [lower, RANGE.start - 1, RANGE.end, 0x40_1000] {
                assert_eq!(run(number, outside, [0; 6]), libc::SECCOMP_RET_ALLOW);
            }
            assert_eq!(run_of(Code::Low, number, 0x40_1000, [0; 6]), libc::SECCOMP_RET_TRAP);
            for outside in [lower, upper, 1 << 32, 0x5555_5555_4000] {
                assert_eq!(run_of(Code::Low, number, outside, [0; 6]), libc::SECCOMP_RET_ALLOW);
            }
        }
        for number in [libc::SYS_read, libc::SYS_write, libc::SYS_futex, libc::SYS_clone, libc::SYS_rt_sigreturn] {
            assert_eq!(run(number, upper, [0; 6]), libc::SECCOMP_RET_ALLOW);
        }
        assert_eq!(run(libc::SYS_clone3, upper, [0; 6]), libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32);
        assert_eq!(run(libc::SYS_clone3, lower, [0; 6]), libc::SECCOMP_RET_ALLOW);
    }

    #[test]
    fn conditional_calls_trap_by_their_argument() {
        let upper = RANGE.start + 0x1234_5678;
        let with = |n: usize, v: u64| std::array::from_fn(|i| if i == n { v } else { 7 });
        assert_eq!(run(libc::SYS_fcntl, upper, with(1, libc::F_DUPFD as u64)), libc::SECCOMP_RET_TRAP);
        assert_eq!(run(libc::SYS_fcntl, upper, with(1, libc::F_DUPFD_CLOEXEC as u64)), libc::SECCOMP_RET_TRAP);
        assert_eq!(run(libc::SYS_fcntl, upper, with(1, libc::F_GETFL as u64)), libc::SECCOMP_RET_ALLOW);
        for (number, argument) in TRAPPED_MASK {
            assert_eq!(run(*number, upper, with(*argument as usize, 0)), libc::SECCOMP_RET_ALLOW);
            assert_eq!(run(*number, upper, with(*argument as usize, 1)), libc::SECCOMP_RET_TRAP);
            assert_eq!(run(*number, upper, with(*argument as usize, 1 << 40)), libc::SECCOMP_RET_TRAP);
        }
    }
}
