//! Never lets a program see a procedure that its own MPI lacks.
//!
//! Programs such as mpi4py refer weakly to procedures of newer standards, and call them if they are there. The facade has
//! all; so those that are not in every MPI are made indirect functions, in its symbol table in memory, when it is loaded:
//! for each reference that is bound from then on (an interpreter loads its modules later) the dynamic linker asks a
//! resolver in the facade, and that the host, which looks into the program's library. What the machine's library lacks of
//! what the program has seen is another matter ([`crate::absent`]).
use crate::upper::{Elf, defined, load_address, look, objects};
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
/// that of its start.
///
/// # Safety
/// A call of the gate by the facade, with an address in it: of the procedure's symbol if a resolver asks. At its start the
/// program has one thread.
#[cold]
pub unsafe fn answer(frame: &Frame, index: usize) -> usize {
    let (_, hooks) = crate::life::host();
    // SAFETY: the caller's.
    let inside = unsafe { frame.arg(0) };
    match PROCEDURES.get(index - PROCEDURES.len()) {
        Some(procedure) => usize::from(has(procedure.name, hooks.within)) * inside,
        None => {
            // SAFETY: the caller's.
            unsafe { fit(inside, hooks.within) };
            0
        }
    }
}

/// Whether the program's MPI has a procedure; of what cannot be known it is said that it is there.
fn has(name: &str, within: fn(usize) -> bool) -> bool {
    static NAMES: OnceLock<BTreeSet<String>> = OnceLock::new();
    let names = NAMES.get().or_else(|| {
        let (_, path) = objects(within)?.into_iter().find(|(_, path)| Abi::of_library(path).is_some())?;
        let names = look(&path, |file| {
            let mut names = BTreeSet::new();
            defined(file, |_, name, _| {
                if name.starts_with("MPI_") {
                    names.insert(name.to_owned());
                }
            });
            Some(names)
        })?;
        Some(NAMES.get_or_init(|| names))
    });
    names.is_none_or(|names| names.contains(name))
}

/// Makes the symbols of what not every MPI has indirect functions. Where something is not as it should be, all are seen.
///
/// # Safety
/// `inside` is an address in the facade, which is mapped; no other thread runs.
unsafe fn fit(inside: usize, within: fn(usize) -> bool) -> Option<()> {
    let (start, path) = objects(within)?.into_iter().filter(|(start, _)| *start <= inside).max()?;
    // SAFETY: the caller's; the facade is mapped at `start`.
    look(&path, |file| unsafe { refit(file, start) })
}

/// Does so in the file of the facade, which is mapped at `start`.
///
/// # Safety
/// As for [`fit`].
unsafe fn refit(file: &Elf<'_>, start: usize) -> Option<()> {
    let table = file.section_by_name(".dynsym")?;
    let at = load_address(file, start)? as u64 + table.address();
    let (first, last) = (at as usize & !0xfff, (at + table.size()).next_multiple_of(4096) as usize);
    let protect = |how| {
        // SAFETY: pages of the facade that hold its symbols; the caller's: nobody else reads them now.
        unsafe { libc::mprotect(first as *mut libc::c_void, last - first, how) == 0 }
    };
    if !protect(libc::PROT_READ | libc::PROT_WRITE) {
        return None;
    }
    defined(file, |index, name, _| {
        let procedure = by_name(name.strip_prefix('P').unwrap_or(name)).and_then(|id| id.get());
        if procedure.is_none_or(|procedure| procedure.since <= EXPECTED) {
            return;
        }
        let entry = at + ENTRY * index.0 as u64;
        // SAFETY: an entry of the table, which was just made writable.
        unsafe {
            let info = (entry + INFO) as *mut u8;
            info.write(info.read() & 0xf0 | STT_GNU_IFUNC);
            let value = (entry + VALUE) as *mut u64;
            value.write(value.read() + RESOLVER);
        }
    });
    protect(libc::PROT_READ);
    Some(())
}
