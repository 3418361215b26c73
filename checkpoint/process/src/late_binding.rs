//! Symbols that are bound late. The dynamic linker then saves the registers of vectors on the stack, and takes as much room
//! there as its processor needed when the program started. After a restart on a processor with wider registers that would be
//! too little: the room is made larger. Where a dynamic linker is not known to do so in the way of glibc, all symbols are
//! bound at the start.
use crate::elf::{Elf, Segment};
use crate::space::RANGE;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

/// `sub rsp, [rip + ...]`, by which glibc's `_dl_runtime_resolve_xsave` and its like take the room.
const TAKES_ROOM: [u8; 3] = [0x48, 0x2b, 0x25];
/// What is saved beside the state of the processor, and more: 64 bytes in glibc 2.36.
const BESIDE: usize = 512;

/// Where the dynamic linker of the upper half holds how much room it takes.
static ROOMS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Where words of a segment may begin.
fn words(segment: &Segment) -> Range<usize> {
    segment.address..segment.address + segment.len.saturating_sub(7)
}

/// Addresses, relative to the base, at which a dynamic linker holds how much room it takes on the stack.
pub(crate) fn find(linker: &Elf, file: &File) -> Vec<usize> {
    let mut found = Vec::new();
    for code in linker.segments.iter().filter(|segment| segment.protection & libc::PROT_EXEC != 0) {
        let mut bytes = vec![0; code.file_len];
        if file.read_exact_at(&mut bytes, code.offset as u64).is_err() {
            return Vec::new();
        }
        for (at, instruction) in bytes.windows(7).enumerate().filter(|(_, bytes)| bytes[..3] == TAKES_ROOM) {
            let away = i32::from_le_bytes([instruction[3], instruction[4], instruction[5], instruction[6]]);
            found.push((code.address + at + 7).wrapping_add_signed(away as isize));
        }
    }
    found.sort_unstable();
    found.dedup();
    let data = linker.segments.iter().filter(|segment| segment.protection & libc::PROT_WRITE != 0).map(words);
    found.retain(|word| data.clone().any(|words| words.contains(word)));
    found
}

/// Takes note of those of the upper half.
pub(crate) fn set(rooms: Vec<usize>) {
    *ROOMS.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = rooms;
}

/// Those of the upper half, for an image.
pub(crate) fn rooms() -> Vec<usize> {
    ROOMS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
}

/// Makes the rooms of a restored upper half as large as this processor may need.
///
/// # Errors
/// If the memory of this process cannot be written to.
pub(crate) fn fit() -> io::Result<()> {
    let rooms = rooms();
    if rooms.is_empty() {
        return Ok(());
    }
    enlarge(rooms.into_iter().filter(|room| RANGE.contains(room)), needed())
}

/// The room that all registers of this processor need.
fn needed() -> usize {
    const STATE: u32 = 0xd;
    if __cpuid(0).eax < STATE {
        return 0;
    }
    (__cpuid_count(STATE, 0).ebx as usize + BESIDE).next_multiple_of(64)
}

/// Makes rooms larger that are smaller than this; those without any take none of a changing size. They lie in memory that
/// the program may only read.
fn enlarge(mut rooms: impl Iterator<Item = usize>, to: usize) -> io::Result<()> {
    let memory = OpenOptions::new().read(true).write(true).open("/proc/self/mem")?;
    rooms.try_for_each(|room| {
        let mut word = [0; 8];
        memory.read_exact_at(&mut word, room as u64)?;
        if (1..to).contains(&usize::from_le_bytes(word)) {
            memory.write_all_at(&to.to_le_bytes(), room as u64)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn this_machine_s_dynamic_linker_takes_no_more_room_than_is_needed() {
        let path = Elf::read(&File::open("/bin/sh").unwrap(), "/bin/sh".as_ref()).unwrap().interpreter;
        let path: PathBuf = path.expect("the shell has a dynamic linker");
        let file = File::open(&path).unwrap();
        let rooms = find(&Elf::read(&file, &path).unwrap(), &file);
        assert!(!rooms.is_empty(), "{}", path.display());
        // SAFETY: asks for a number.
        let base = unsafe { libc::getauxval(libc::AT_BASE) } as usize;
        for room in rooms {
            // SAFETY: a word of data of the dynamic linker that this process has.
            let taken = unsafe { ((base + room) as *const usize).read_unaligned() };
            assert!(taken == 0 || (576..=needed()).contains(&taken), "{taken} of {}", needed());
        }
    }

    #[test]
    fn rooms_only_grow_even_where_memory_is_only_read() {
        // SAFETY: a page of our own, which is filled before it is protected.
        let page = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let page = libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_WRITE, flags, -1, 0) as *mut usize;
            for (at, value) in [0, 896, 4096].into_iter().enumerate() {
                page.add(at).write(value);
            }
            assert_eq!(libc::mprotect(page.cast(), 4096, libc::PROT_READ), 0);
            page
        };
        enlarge((0..3).map(|at| page as usize + at * 8), 3200).unwrap();
        // SAFETY: the page is ours, and can be read.
        assert_eq!(unsafe { *page.cast::<[usize; 3]>() }, [0, 3200, 4096]);
        assert!(enlarge(std::iter::once(8), 3200).is_err(), "nothing is there");
    }
}
