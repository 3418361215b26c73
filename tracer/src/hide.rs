//! Never lets a program see a procedure that its MPI lacks.
//!
//! Programs such as mpi4py refer weakly to procedures of newer standards, and call them if they are there. So the symbols
//! of this library must be those of the MPI in use. Where that is mapped when the program starts, the others are made
//! undefined in our symbol table, in memory. Where it is not (an interpreter loads it later), each symbol is made an
//! indirect one, for which the dynamic linker calls a resolver when it binds a reference: by then the MPI is mapped.
use crate::elf::{Symbol, find_object};
use crate::entry::EXPORTS;
use crate::plan::PLANS;
use crate::real;
use phasecast_abi::{PROCEDURES, Version};

const STT_GNU_IFUNC: u8 = 10;
/// What programs may expect of any MPI.
const EXPECTED: Version = Version(3, 1);

/// A resolver: the address of our procedure, or 0 if the MPI lacks it.
pub extern "C" fn resolve<const P: usize>() -> usize {
    let present = real::lookup(P).map_or(PROCEDURES[P].since <= EXPECTED, |found| found.is_some());
    if present { wrapper(P) } else { 0 }
}

fn wrapper(procedure: usize) -> usize {
    EXPORTS
        .binary_search_by_key(&procedure, |export| export.index)
        .map_or(0, |at| EXPORTS[at].wrapper as *const () as usize)
}

/// Fits our symbols to the MPI library, or to the one that will come.
pub fn fit() {
    let here = fit as *const () as usize;
    let Some(own) = find_object(|object, _| object.contains(here).then_some(*object)) else { return };
    let library = real::library().is_some();
    let mut changed: Vec<(*mut Symbol, Option<u64>)> = Vec::new();
    for export in EXPORTS {
        if library && real::exists(export.index) {
            continue;
        }
        let resolver = (!library).then(|| export.resolver as *const () as u64 - own.base() as u64);
        for prefix in ["", "P"] {
            let name = format!("{prefix}{}", PLANS[export.index].name);
            changed.extend(own.find(name.as_bytes()).map(|symbol| (symbol.cast_mut(), resolver)));
        }
    }
    let Some(low) = changed.iter().map(|c| c.0 as usize).min() else { return };
    let high = changed.iter().map(|c| c.0 as usize).max().unwrap_or(low) + size_of::<Symbol>();
    // SAFETY: no argument.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as usize;
    let (start, length) = (low / page * page, high.next_multiple_of(page) - low / page * page);
    // SAFETY: pages of our own symbol table, which is mapped for as long as this library is.
    if unsafe { libc::mprotect(start as *mut _, length, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
        return;
    }
    for (symbol, resolver) in changed {
        // SAFETY: entries of our own symbol table in the pages just made writable; no other thread runs yet.
        let symbol = unsafe { &mut *symbol };
        match resolver {
            Some(resolver) => {
                symbol.info = symbol.info & 0xf0 | STT_GNU_IFUNC;
                symbol.value = resolver;
            }
            None => {
                symbol.section = 0;
                symbol.value = 0;
            }
        }
    }
    // SAFETY: as above.
    unsafe { libc::mprotect(start as *mut _, length, libc::PROT_READ) };
}
