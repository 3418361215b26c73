//! The handler of SIGSYS: carries out the system calls that the fence holds up. It runs under whatever thread pointer the
//! caller had, with all signals blocked: raw system calls only, no thread-local storage, no allocation, no panics.
use crate::own::{self, Who};
use crate::sys::{self, error, syscall};
use crate::{
    descriptors, ending, exec, fence_cost, gate, identity, mappings, named, numbers, processor_time, signals, stub,
    system_v, threads, timers, working_folder,
};
use libc::{REG_R8, REG_R9, REG_R10, REG_RAX, REG_RDI, REG_RDX, REG_RIP, REG_RSI, c_int};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static ON_EXIT: AtomicUsize = AtomicUsize::new(0);

/// What is called, with the lower half's thread pointer, when the program ends by itself; then the process exits.
pub fn on_exit(hook: fn(code: i32)) {
    ON_EXIT.store(hook as *const () as usize, Relaxed);
}

/// Hands SIGSYS to the handler.
pub(crate) fn install() {
    signals::set_host(libc::SIGSYS, on_trap as *const () as usize, libc::SA_NODEFER);
}

/// Where a trapped call was made: the registers that the return from the signal puts back.
pub(crate) struct Call<'a> {
    context: &'a mut libc::ucontext_t,
    pub(crate) number: i64,
    pub(crate) args: [usize; 6],
}

impl Call<'_> {
    /// The signals that the caller blocks.
    pub(crate) fn mask(&mut self) -> &mut u64 {
        // SAFETY: the kernel's mask is the first word of the library's larger one.
        unsafe { &mut *(&raw mut self.context.uc_sigmask).cast::<u64>() }
    }

    /// The call as it is.
    pub(crate) unsafe fn pass(&self) -> isize {
        // SAFETY: the caller's: the upper half's own call.
        unsafe { sys::call(self.number as usize, self.args) }
    }

    /// The call as it is, with the program's own mask of signals, since it may block.
    pub(crate) unsafe fn pass_open(&mut self) -> isize {
        let mask = sys::set_mask(*self.mask());
        // SAFETY: the caller's: the upper half's own call.
        let result = unsafe { self.pass() };
        sys::set_mask(mask);
        result
    }

    /// Lets the call be made again by the upper half itself, past the fence.
    pub(crate) fn reissue(&mut self) -> isize {
        let registers = &mut self.context.uc_mcontext.gregs;
        match stub::stub(registers[REG_RIP as usize] as usize, self.number as usize) {
            Some(stub) => {
                registers[REG_RIP as usize] = stub as i64;
                self.number as isize
            }
            None => error(libc::ENOMEM),
        }
    }
}

unsafe extern "C" fn on_trap(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    const SYS_SECCOMP: c_int = 1;
    // SAFETY: the kernel's records of this signal.
    let (code, context) = unsafe { ((*info).si_code, &mut *context) };
    if code != SYS_SECCOMP {
        if signals::foreign(signal) != 0 {
            signals::call(signal, info, context);
        }
        return;
    }
    let begun = fence_cost::Begun::now();
    let r = &context.uc_mcontext.gregs;
    let number = r[REG_RAX as usize];
    let args = [REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9].map(|i| r[i as usize] as usize);
    let mut call = Call { context, number, args };
    // SAFETY: the registers are those of a system call of the upper half.
    let result = unsafe { carry_out(&mut call) };
    context.uc_mcontext.gregs[REG_RAX as usize] = result as i64;
    begun.ends();
}

unsafe fn carry_out(call: &mut Call) -> isize {
    let args = call.args;
    // SAFETY: throughout: the call is the upper half's own, its arguments as it gave them.
    unsafe {
        if let Some(result) = identity::trapped(call).or_else(|| timers::trapped(call)) {
            return result;
        }
        match call.number {
            libc::SYS_mmap => mappings::trapped_mmap(args),
            libc::SYS_munmap => mappings::trapped_munmap(args[0], args[1]),
            libc::SYS_mremap => mappings::trapped_mremap(args),
            libc::SYS_brk => mappings::trapped_brk(args[0]),
            libc::SYS_mprotect => mappings::trapped_mprotect(args),
            libc::SYS_shmget | libc::SYS_semget | libc::SYS_msgget => system_v::trapped_get(call.number, args),
            libc::SYS_shmat => system_v::trapped_shmat(args),
            libc::SYS_shmdt => system_v::trapped_shmdt(args[0]),
            libc::SYS_rt_sigaction => signals::trapped_sigaction(own::who(), args),
            libc::SYS_rt_sigprocmask => signals::trapped_sigprocmask(args, call.mask()),
            libc::SYS_rt_sigsuspend | libc::SYS_rt_sigtimedwait => {
                strip(args[0]);
                call.reissue()
            }
            libc::SYS_ppoll => {
                strip(args[3]);
                call.reissue()
            }
            libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
                strip(args[4]);
                call.reissue()
            }
            libc::SYS_pselect6 => {
                // A structure of the mask's address and its size.
                let mask = if args[5] == 0 { 0 } else { (args[5] as *const usize).read_unaligned() };
                strip(mask);
                call.reissue()
            }
            libc::SYS_clock_gettime => processor_time::clock_gettime(args[0] as c_int, args[1] as *mut libc::timespec),
            libc::SYS_getrusage => processor_time::trapped_getrusage(args),
            libc::SYS_times => processor_time::trapped_times(args[0]),
            libc::SYS_exit => ending::trapped_exit(call),
            libc::SYS_exit_group => exit(args[0] as c_int),
            libc::SYS_execve | libc::SYS_execveat => trapped_exec(call),
            libc::SYS_seccomp | libc::SYS_prctl => error(libc::EINVAL),
            libc::SYS_getcwd | libc::SYS_chdir | libc::SYS_fchdir => working_folder::trapped(call),
            libc::SYS_readlink | libc::SYS_readlinkat => {
                let apart = if own::who() == Who::Program { named::trapped(call) } else { None };
                apart.unwrap_or_else(|| descriptors::trapped_readlink(call))
            }
            _ if own::who() != Who::Program => call.pass_open(),
            _ => {
                let result =
                    named::trapped(call).unwrap_or_else(|| named::noted(call, |call| descriptors::trapped(call)));
                numbers::translate(call, result);
                result
            }
        }
    }
}

/// Takes the hidden signals out of a mask of the program, in place where it can be written.
unsafe fn strip(mask: usize) {
    if mask == 0 {
        return;
    }
    // SAFETY: the program's pointer, as the kernel would read it.
    let old = unsafe { (mask as *const u64).read_unaligned() };
    let new = signals::visible(old);
    if new != old {
        let from = libc::iovec { iov_base: (&raw const new as *mut u64).cast(), iov_len: 8 };
        let to = libc::iovec { iov_base: mask as *mut libc::c_void, iov_len: 8 };
        // SAFETY: writes to this process what may be written; a mask that may not be is left.
        unsafe { syscall!(libc::SYS_process_vm_writev, sys::getpid(), &raw const from, 1, &raw const to, 1, 0) };
    }
}

/// Ends the process, as the program wants.
pub(crate) unsafe fn exit(code: c_int) -> isize {
    let hook = ON_EXIT.load(Relaxed);
    if hook != 0 && own::who() == Who::Program {
        let upper = gate::thread_pointer();
        let main = sys::getpid() == sys::gettid();
        let lower = if main { gate::main_lower() } else { threads::lower_fs(upper) };
        // SAFETY: a `fn(i32)`, stored by `on_exit`; it runs with the thread pointer of a thread of the lower half.
        unsafe { under(lower, hook, &[code as usize, 0, 0]) };
    }
    // SAFETY: the program wants to end.
    unsafe { syscall!(libc::SYS_exit_group, code) }
}

/// Calls a function under another thread pointer; the present one for zero.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn under(fs: usize, function: usize, args: &[usize; 3]) -> isize {
    std::arch::naked_asm!(
        "push rbx",
        "rdfsbase rbx",
        "test rdi, rdi",
        "jz 2f",
        "wrfsbase rdi",
        "2:",
        "mov rax, rsi",
        "mov rdi, [rdx]",
        "mov rsi, [rdx + 8]",
        "mov rdx, [rdx + 16]",
        "call rax",
        "wrfsbase rbx",
        "pop rbx",
        "ret",
    )
}

/// An exec keeps the mask of signals, and a name in /proc that means the program must not mean the host.
unsafe fn trapped_exec(call: &mut Call) -> isize {
    let path = if call.number == libc::SYS_execve { 0 } else { 1 };
    // SAFETY: the upper half's own call, its arguments as it gave them.
    unsafe {
        if descriptors::names_program(call.args[path]) {
            call.args[path] = descriptors::program();
        }
        if call.number == libc::SYS_execve && own::who() == Who::Program && exec::applies() {
            let [path, args, env, ..] = call.args;
            let lower = gate::main_lower();
            if under(lower, exec::note as *const () as usize, &[path, args, env]) >= 0 {
                under(lower, exec::replace as *const () as usize, &[*call.mask() as usize, 0, 0]);
            }
        }
        call.pass_open()
    }
}
