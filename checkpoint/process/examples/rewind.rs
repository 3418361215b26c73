//! `rewind TIMES PROGRAM ARGS`: runs a program that saves itself by call 1 of the gate and goes back there by call 2, so
//! many times: everything it had is thrown away and made again from a copy. Call 1 returns how often it came back, or
//! 1000 if the program cannot be saved; call 3 fills a number of descriptors of the host's.
use phasecast_process::files::FileState;
use phasecast_process::signal_state::SignalState;
use phasecast_process::space::{RANGE, SpaceState};
use phasecast_process::threads::{MainState, ThreadState};
use phasecast_process::{
    Cpu, Error, Start, fence, files, gate, prepare, processor_time, signal_state, space, start, threads,
};
use std::error::Error as Any;
use std::sync::Mutex;

/// A mapping: address, length, protection, its bytes if it can be read.
type Mapping = (usize, usize, i32, Option<Vec<u8>>);

struct Image {
    /// The frame of the thread that called.
    caller: usize,
    space: SpaceState,
    memory: Vec<Mapping>,
    threads: Vec<ThreadState>,
    main: MainState,
    signals: SignalState,
    files: FileState,
}

static IMAGE: Mutex<Option<Image>> = Mutex::new(None);
static LEFT: Mutex<usize> = Mutex::new(0);

fn memory() -> Vec<Mapping> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let occupied = space::ranges();
    let mut list = Vec::new();
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (range, protection) = (words.next().unwrap(), words.next().unwrap().as_bytes());
        let (start, end) = range.split_once('-').unwrap();
        let (start, end) = (usize::from_str_radix(start, 16).unwrap(), usize::from_str_radix(end, 16).unwrap());
        if !occupied.iter().any(|s| s.0 <= start && s.1 >= end) {
            assert!(end <= RANGE.start || start >= RANGE.end, "a mapping in the range that the table lacks: {line}");
            continue;
        }
        let bits = [(b'r', 0, libc::PROT_READ), (b'w', 1, libc::PROT_WRITE), (b'x', 2, libc::PROT_EXEC)];
        let bits = bits.iter().filter(|b| protection[b.1] == b.0).fold(0, |all, b| all | b.2);
        let bytes = (bits & libc::PROT_READ != 0).then(|| {
            // SAFETY: a readable mapping of the upper half, whose other threads are stopped.
            unsafe { std::slice::from_raw_parts(start as *const u8, end - start) }.to_vec()
        });
        list.push((start, end - start, bits, bytes));
    }
    assert_eq!(list.iter().map(|m| m.1).sum::<usize>(), occupied.iter().map(|s| s.1 - s.0).sum::<usize>());
    list
}

fn cut(frame: &gate::Frame) -> Result<Image, Error> {
    let mut threads = threads::stop()?;
    let image = (|| {
        let (held, timers) = signal_state::quiet(&threads)?;
        let (signals, files) = (signal_state::save(timers), files::save(Vec::new(), 0)?);
        let mut returned = threads::Returned::new();
        let caller = returned.write(frame, 0, &held);
        threads.push(caller);
        let main = threads::main_state(&mut threads)?;
        Ok(Image { caller: caller.frame, space: space::state()?, memory: memory(), main, threads, signals, files })
    })();
    threads::go();
    image
}

unsafe extern "C" fn dispatch(frame: *mut gate::Frame, index: usize) -> usize {
    match index {
        // SAFETY: the frame of this call.
        1 => match cut(unsafe { &*frame }) {
            Ok(image) => *IMAGE.lock().unwrap() = Some(image),
            Err(error) => {
                eprintln!("rewind: {error}");
                return 1000;
            }
        },
        2 if IMAGE.lock().unwrap().is_some() && *LEFT.lock().unwrap() > 0 => {
            // SAFETY: no lock is held.
            let Err(error) = unsafe { threads::leave(2) };
            eprintln!("rewind: {error}");
        }
        _ => {}
    }
    0
}

fn back(scratch: &std::path::Path, round: usize) -> Result<MainState, Box<dyn Any>> {
    threads::end()?;
    signal_state::clear();
    files::clear();
    space::unmap_all();
    let image = IMAGE.lock().unwrap();
    let image = image.as_ref().ok_or("no image")?;
    space::set_state(&image.space)?;
    for (start, len, protection, bytes) in &image.memory {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
        // SAFETY: free addresses of the upper half; the bytes are as long as the mapping.
        unsafe {
            let writable = libc::PROT_READ | libc::PROT_WRITE;
            if libc::mmap(*start as *mut libc::c_void, *len, writable, flags, -1, 0) as usize != *start {
                return Err("a mapping's place is taken".into());
            }
            for (i, page) in bytes.iter().flat_map(|b| b.chunks(4096).enumerate()) {
                if page.iter().any(|b| *b != 0) {
                    std::ptr::copy_nonoverlapping(page.as_ptr(), (start + i * 4096) as *mut u8, page.len());
                }
            }
            libc::mprotect(*start as *mut libc::c_void, *len, *protection);
        }
    }
    files::restore(&image.files, scratch)?;
    signal_state::take_none();
    signal_state::restore(&image.signals);
    // SAFETY: the memory is back.
    unsafe {
        threads::restore_main(&image.main)?;
        threads::recreate(&image.threads)?;
    }
    processor_time::go_on(&image.main.used);
    signal_state::start_timers(&image.signals)?;
    // SAFETY: the frame's memory is back.
    let context = unsafe { &mut *(image.caller as *mut libc::ucontext_t) };
    context.uc_mcontext.gregs[libc::REG_RAX as usize] = round as i64;
    Ok(image.main)
}

fn run() -> Result<(), Box<dyn Any>> {
    let mut args = std::env::args_os().skip(1);
    let times = args.next().and_then(|t| t.to_str()?.parse().ok()).ok_or("usage: rewind TIMES PROGRAM ARGS")?;
    let program = args.next().ok_or("usage: rewind TIMES PROGRAM ARGS")?.into();
    prepare(false)?;
    let env = std::env::vars_os().collect();
    let loaded = start(&Start { program, args: args.collect(), env, facade: None, cpu: Cpu::Native })?;
    files::release();
    gate::install(dispatch)?;
    fence::install()?;
    let scratch = std::env::temp_dir().join(format!("phasecast-rewind-{}", std::process::id()));
    *LEFT.lock().unwrap() = times;
    // SAFETY: the program was just loaded; this is the main thread.
    let mut why = unsafe { gate::enter(loaded.entry, loaded.stack) };
    for round in 1..=times {
        if why != 2 {
            break;
        }
        *LEFT.lock().unwrap() -= 1;
        if round == 1 {
            std::fs::create_dir(&scratch)?;
            phasecast_process::on_exit(|_| {
                let _ = std::fs::remove_dir_all(
                    std::env::temp_dir().join(format!("phasecast-rewind-{}", std::process::id())),
                );
            });
        }
        let main = back(&scratch, round)?;
        threads::release();
        // SAFETY: memory, threads and signals are back; this is the main thread.
        why = unsafe { threads::resume(&main)? };
    }
    Ok(())
}

fn main() {
    if let Err(error) = run() {
        eprintln!("rewind: {error}");
        std::process::exit(127);
    }
}
