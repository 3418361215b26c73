//! Never lets a program see a procedure that its own MPI lacks.
//!
//! Programs such as mpi4py refer weakly to procedures of newer standards, and call them if they are there. The facade has
//! all; so what the program's library lacks is taken out of its symbol table in memory. Where that library is not loaded
//! yet as the program starts (an interpreter loads its modules later), what is not in every MPI is made indirect functions
//! until then: for each reference that is bound the dynamic linker asks a resolver in the facade, and that the host, which
//! looks for the program's library. What the machine's library lacks of what the program has seen is another matter
//! ([`crate::absent`]).
use crate::closures;
use crate::upper::{defined, load_address, look, objects};
use object::{Object, ObjectSection};
use phasecast_abi::{Abi, PROCEDURES, Version, by_name};
use phasecast_process::gate::Frame;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// What programs may expect of any MPI.
const EXPECTED: Version = Version(3, 1);
/// Bytes from a symbol of the facade to its resolver: as in the facade's build script.
const RESOLVER: u64 = 32;
/// Bytes of an entry of a symbol table; where the type in it is, and the value.
const ENTRY: u64 = 24;
const INFO: u64 = 4;
const VALUE: u64 = 8;
const STT_GNU_IFUNC: u8 = 10;

/// Answers what the facade asks, which are calls with indices beyond those of procedures: first those of the resolvers, then
/// that of its start, and that by which it [replaces functions](closures::replace).
///
/// # Safety
/// A call of the gate by the facade, with an address in it but for the last: of the procedure's symbol if a resolver asks. At
/// its start the program has one thread.
#[cold]
pub unsafe fn answer(frame: &Frame, index: usize) -> usize {
    let (_, hooks) = crate::life::host();
    // SAFETY: the caller's.
    let inside = unsafe { frame.arg(0) };
    match PROCEDURES.get(index - PROCEDURES.len()) {
        // SAFETY: the caller's.
        Some(procedure) => usize::from(unsafe { has(procedure.name, inside, hooks.within) }) * inside,
        None => {
            // SAFETY: the caller's.
            unsafe {
                match index - 2 * PROCEDURES.len() {
                    0 => fit(inside, hooks.within),
                    _ => closures::replace(inside, frame.arg(1), [frame.arg(2), frame.arg(3)]),
                }
            }
            0
        }
    }
}

/// The procedures that the program's library has.
static NAMES: OnceLock<BTreeSet<String>> = OnceLock::new();

/// Whether the program's MPI has a procedure; of what cannot be known it is said that it is there.
///
/// # Safety
/// `inside` is an address in the facade, which is mapped.
unsafe fn has(name: &str, inside: usize, within: fn(usize) -> bool) -> bool {
    // SAFETY: the caller's.
    unsafe { withdraw(inside, within) };
    NAMES.get().is_none_or(|names| names.contains(name))
}

/// If the program's library is loaded, takes the symbols of what it lacks out of the facade, so that whoever asks for one by
/// name is told in words that there is none. Yields whether it is loaded.
///
/// # Safety
/// `inside` is an address in the facade, which is mapped.
unsafe fn withdraw(inside: usize, within: fn(usize) -> bool) -> bool {
    if NAMES.get().is_none()
        && let Some(names) = names_of_library(within)
    {
        let hide = |name: &str, entry: u64| {
            if !names.contains(name) {
                // SAFETY: an entry of the table, which can be written to; a symbol without a value is none to the linker.
                unsafe { ((entry + VALUE) as *mut u64).write(0) };
            }
        };
        // SAFETY: the caller's. Other threads that look symbols up see an entry as it was or as it is.
        unsafe { change(inside, within, hide) };
        _ = NAMES.set(names);
    }
    NAMES.get().is_some()
}

/// The procedures that the program's library has, if it is loaded.
fn names_of_library(within: fn(usize) -> bool) -> Option<BTreeSet<String>> {
    let (_, path) = objects(within)?.into_iter().find(|(_, path)| Abi::of_library(path).is_some())?;
    look(&path, |file| {
        let mut names = BTreeSet::new();
        defined(file, |_, name, _| {
            if name.starts_with("MPI_") {
                names.insert(name.to_owned());
            }
        });
        Some(names)
    })
}

/// Hides what the program's library lacks, if it is there; else makes the symbols of what not every MPI has indirect
/// functions. Where something is not as it should be, all are seen.
///
/// # Safety
/// `inside` is an address in the facade, which is mapped; no other thread runs.
unsafe fn fit(inside: usize, within: fn(usize) -> bool) {
    // SAFETY: the caller's.
    if unsafe { withdraw(inside, within) } {
        return;
    }
    let indirect = |_: &str, entry: u64| {
        // SAFETY: an entry of the table, which can be written to.
        unsafe {
            let info = (entry + INFO) as *mut u8;
            info.write(info.read() & 0xf0 | STT_GNU_IFUNC);
            let value = (entry + VALUE) as *mut u64;
            value.write(value.read() + RESOLVER);
        }
    };
    // SAFETY: the caller's.
    unsafe { change(inside, within, indirect) };
}

/// Changes the entries of what not every MPI has in the facade's table of symbols: name of the procedure, address.
///
/// # Safety
/// `inside` is an address in the facade, which is mapped.
unsafe fn change(inside: usize, within: fn(usize) -> bool, mut change: impl FnMut(&str, u64)) -> Option<()> {
    let (start, path) = objects(within)?.into_iter().filter(|(start, _)| *start <= inside).max()?;
    look(&path, |file| {
        let table = file.section_by_name(".dynsym")?;
        let at = load_address(file, start)? as u64 + table.address();
        let (first, last) = (at as usize & !0xfff, (at + table.size()).next_multiple_of(4096) as usize);
        let protect = |how| {
            // SAFETY: pages of the facade that hold its symbols, which stay readable.
            unsafe { libc::mprotect(first as *mut libc::c_void, last - first, how) == 0 }
        };
        if !protect(libc::PROT_READ | libc::PROT_WRITE) {
            return None;
        }
        defined(file, |index, name, _| {
            let procedure = by_name(name.strip_prefix('P').unwrap_or(name)).and_then(|id| id.get());
            if let Some(procedure) = procedure.filter(|procedure| procedure.since > EXPECTED) {
                change(procedure.name, at + ENTRY * index.0 as u64);
            }
        });
        protect(libc::PROT_READ);
        Some(())
    })
}
