//! Memory that others see, too: files that are mapped for writing, memory of POSIX or System V that ranks share, and memory
//! that one rank has mapped at several places. At a restart a new file stands for each, for all ranks of the machine the same
//! one, and is mapped where the old one was; it gets what all of them saw at the cut.
use crate::memory::{Mapping, MemoryError};
use crate::restore::protection;
use anyhow::{Context, Error, Result};
use phasecast_image::{Backing, Content, Flags, PAGE, Protection, Region, Shared, State};
use phasecast_process::apart;
use phasecast_process::files::{self, FileState, Number, What};
use phasecast_trace::model::boot_id;
use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What the kernel puts behind the path of a file that has it no more.
const GONE: &str = " (deleted)";
/// Beginnings of what it calls memory that lies in no folder of a disk.
const IN_MEMORY: [&str; 3] = ["/dev/shm/", "/memfd:", "/SYSV"];

/// Who sees what a mapping shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Nobody else, or nobody writes it.
    Alone,
    /// It must follow what the program itself writes to its file by calls.
    Followed,
    /// Whoever has this mapped.
    Shared(Shared),
}

/// The name that a file has which was mapped by one that is gone, in the same folder: the C library makes a semaphore with a
/// name under another one first.
fn other_name(mapping: &Mapping) -> Option<String> {
    let folder = Path::new(mapping.name.strip_suffix(GONE)?).parent()?;
    let is_it = |path: &PathBuf| {
        let facts = fs::symlink_metadata(path);
        facts.is_ok_and(|facts| facts.is_file() && files::number(&facts) == (mapping.device, mapping.inode))
    };
    let path = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).find(is_it)?;
    path.into_os_string().into_string().ok()
}

/// What tells who sees the mappings of a program.
pub(crate) struct Sharing {
    /// Files that the program has open for writing.
    writing: Vec<(PathBuf, Number)>,
    /// How far the mappings of each file reach into it.
    ends: BTreeMap<Number, u64>,
    /// Memory without a file that is mapped at two places.
    twice: BTreeSet<Number>,
}

impl Sharing {
    /// Mappings of files that have only lost the name by which they were mapped get another one that they have.
    pub fn among(mappings: &mut [Mapping]) -> Sharing {
        let mut sharing = Sharing { writing: Vec::new(), ends: BTreeMap::new(), twice: BTreeSet::new() };
        let shared = mappings.iter().filter(|mapping| mapping.flags.has(Flags::SHARED) && mapping.inode != 0);
        let mut parts: Vec<(Number, u64, u64, bool)> =
            shared.map(|m| ((m.device, m.inode), m.offset, m.offset + (m.end - m.start), m.is_file())).collect();
        if parts.iter().any(|part| part.3) {
            sharing.writing = files::open_for_writing();
        }
        for mapping in mappings.iter_mut().filter(|mapping| mapping.flags.has(Flags::SHARED)) {
            // What the program has open has the name that it was opened by.
            let open = sharing.writing.iter().any(|open| open.1 == (mapping.device, mapping.inode));
            if let Some(path) = other_name(mapping).filter(|_| !open) {
                mapping.name = path;
            }
        }
        parts.sort_unstable();
        for &(number, from, to, is_file) in &parts {
            let end = sharing.ends.entry(number).or_insert(0);
            if !is_file && from < *end {
                sharing.twice.insert(number);
            }
            *end = to.max(*end);
        }
        sharing
    }

    /// # Errors
    /// If a device is mapped for writing, or what stands for a file at a restart could not be told.
    pub fn of(&self, mapping: &Mapping) -> Result<Shown, MemoryError> {
        let number = (mapping.device, mapping.inode);
        let size = self.ends.get(&number).copied().unwrap_or(0);
        let shared = |named, size| Ok(Shown::Shared(Shared { machine: boot_id(), number, named, size }));
        if !mapping.flags.has(Flags::SHARED) {
            return Ok(Shown::Alone);
        }
        if !mapping.is_file() {
            return if self.twice.contains(&number) { shared(false, size) } else { Ok(Shown::Alone) };
        }
        let refused = || Err(MemoryError::Shared { name: mapping.name.clone(), start: mapping.start });
        let path = Path::new(&mapping.name);
        let in_memory = IN_MEMORY.iter().any(|beginning| mapping.name.starts_with(beginning));
        let writes = mapping.protection.allows(Protection::WRITE) || in_memory;
        if mapping.name.ends_with(GONE) {
            let other = self.writing.iter().any(|open| open.0 == path && open.1 != number);
            return match writes || self.writing.iter().any(|open| open.1 == number) {
                true if other => refused(),
                true => shared(false, size),
                false => Ok(Shown::Alone),
            };
        }
        let file =
            fs::metadata(path).ok().filter(|facts| facts.is_file() && !apart::is_special(mapping.name.as_bytes()));
        let found = file.as_ref().map(files::number);
        let open = self.writing.iter().find(|open| open.0 == path || found == Some(open.1));
        match (file, open) {
            // The program writes it under another name, or another one under this name.
            (_, Some(open)) if open.0 != path || found != Some(open.1) => refused(),
            (Some(file), _) if writes => shared(true, file.len()),
            (None, _) if writes => refused(),
            (_, Some(_)) => Ok(Shown::Followed),
            _ => Ok(Shown::Alone),
        }
    }
}

/// What stands for shared memory, as a rank tells the others: which memory it is for; whether its size is known, and the size, or
/// how much of it is mapped; what stands for it (the number of a process and its descriptor, or 0 and a file's); and on which
/// machine.
type Told = [u64; 6];

fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Which memory it is: on all ranks that have it the same number.
fn id(backing: &Backing, shared: &Shared) -> u64 {
    if shared.named { hash(&backing.path) } else { hash((&shared.machine, shared.number)) }
}

/// Maps what stands for shared memory, and for files in which the program sees what it writes by calls, in the place of their
/// content. To be called by all ranks, when the program's files are there; nothing of it runs before all have come back.
///
/// # Errors
/// If nothing can stand for it, or ranks that share it are on different machines.
pub(crate) fn map_again(state: &State, files: &FileState) -> Result<()> {
    let regions = state.regions.iter().filter(|region| region.flags.has(Flags::SHARED));
    let regions: Vec<(&Region, &Backing)> =
        regions.filter_map(|region| Some((region, region.backing.as_ref()?))).collect();
    let mut own: BTreeMap<u64, File> = BTreeMap::new();
    let mut mine: Vec<u64> = Vec::new();
    for &(region, backing) in &regions {
        let Some(shared) = &backing.shared else { continue };
        let Entry::Vacant(own) = own.entry(id(backing, shared)) else { continue };
        let failed = || format!("nothing can stand for {} ({} bytes)", backing.path, region.length);
        let file = match shared.named {
            true => copy(backing, shared).with_context(failed)?,
            false => phasecast_mpi::memory_file(shared.size as usize).map_err(Error::msg).with_context(failed)?,
        };
        let [process, number] = match shared.named {
            true => [0, hash(files::number(&file.metadata()?))],
            false => [u64::from(std::process::id()), file.as_raw_fd() as u64],
        };
        let [known, size] = size(shared, files);
        mine.extend([*own.key(), known, size, process, number, phasecast_mpi::node() as u64]);
        own.insert(file);
    }
    let all = phasecast_mpi::told_by_all(&mine);
    let first = first_of_each(all.as_chunks().0).context(
        "ranks share memory (of POSIX or System V, or files that are mapped for writing), and are not all on one machine here. Let the launcher place them together, as they were when the signature was made.",
    )?;
    let mut kept: Vec<File> = Vec::new();
    for (id, file) in &mut own {
        let Some(&[_, _, size, process, number, _]) = first.get(id).filter(|told| told[3] != 0) else { continue };
        let made = phasecast_mpi::file_of(process, number).map_err(Error::msg)?;
        made.set_len(size)?;
        kept.push(std::mem::replace(file, made));
    }
    if !all.is_empty() {
        // Until all have opened what this rank has made.
        phasecast_mpi::barrier();
    }
    drop(kept);
    for (region, backing) in regions {
        let failed =
            |source| MemoryError::Map { action: "map a file to", start: region.start, length: region.length, source };
        match &backing.shared {
            Some(shared) => {
                let file = own.get(&id(backing, shared)).context("shared memory that was not made")?;
                if !shared.named {
                    files::stand_in(files, shared.number, file).map_err(failed)?;
                }
                put(region, backing, file, !shared.named).map_err(failed)?;
            }
            None => put(region, backing, &followed(backing).map_err(failed)?, false).map_err(failed)?,
        }
    }
    Ok(())
}

/// Of each memory what the first rank has told that has it, with the size that is known, or else the greatest; none if what
/// stands for it is not the same for all that have it.
fn first_of_each(all: &[Told]) -> Option<BTreeMap<u64, Told>> {
    let mut first: BTreeMap<u64, Told> = BTreeMap::new();
    for told in all {
        let known = first.entry(told[0]).or_insert(*told);
        if known[1..3] < told[1..3] {
            known[1..3].copy_from_slice(&told[1..3]);
        }
        let is_copy = told[3] == 0;
        if known[5] != told[5] || is_copy && known[4] != told[4] {
            return None;
        }
    }
    Some(first)
}

/// Whether the size of a file without a name is known, as the program has it open, and its size, or how far it is mapped.
fn size(shared: &Shared, files: &FileState) -> [u64; 2] {
    let contents = files.files.iter().filter(|file| file.number == shared.number).filter_map(|file| match &file.what {
        What::Unnamed(content) => Some(content.len() as u64),
        _ => None,
    });
    contents.max().map_or([0, shared.size], |size| [1, size])
}

/// What stands for a file with a name.
fn copy(backing: &Backing, shared: &Shared) -> io::Result<File> {
    let path = Path::new(&backing.path);
    apart::copy_of(path).ok_or(io::ErrorKind::NotFound)?;
    open(&apart::copy(path, shared.size, None)?)
}

/// What stands for a file that the program writes by calls.
fn followed(backing: &Backing) -> io::Result<File> {
    open(&apart::copy_of(Path::new(&backing.path)).ok_or(io::ErrorKind::NotFound)?)
}

fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open(path)
}

/// Writes what a region holds to a file, of which `empty` says that there is nothing in it yet, and maps the file in its place.
fn put(region: &Region, backing: &Backing, file: &File, empty: bool) -> io::Result<()> {
    let (start, length) = (region.start as *mut libc::c_void, region.length as usize);
    let check = |result: libc::c_int| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: a mapping of our own, that nothing uses yet.
    check(unsafe { libc::mprotect(start, length, libc::PROT_READ) })?;
    // SAFETY: it can be read now.
    let content = unsafe { std::slice::from_raw_parts(start as *const u8, length) };
    let size = file.metadata()?.len().saturating_sub(backing.offset).min(region.length) as usize;
    let mut at = 0;
    for run in &region.runs {
        let end = at + run.pages as usize * PAGE;
        if !empty || matches!(run.content, Content::Data(_)) {
            let part = at.min(size)..end.min(size);
            file.write_all_at(&content[part], backing.offset + at as u64)?;
        }
        at = end;
    }
    let (flags, offset) = (libc::MAP_SHARED | libc::MAP_FIXED, backing.offset as libc::off_t);
    // SAFETY: replaces a mapping of our own, into which nothing points but the image's numbers.
    let mapped = unsafe { libc::mmap(start, length, protection(region), flags, file.as_raw_fd(), offset) };
    if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_stands_for_what_ranks_share() {
        let (a, b, machine) = (1, 2, 7);
        let all = [[a, 0, 8192, 100, 5, machine], [b, 0, 4096, 100, 6, 8], [a, 0, 12288, 101, 5, machine]];
        let expected = BTreeMap::from([(a, [a, 0, 12288, 100, 5, machine]), (b, all[1])]);
        assert_eq!(first_of_each(&all), Some(expected));
        let known = [a, 1, 5000, 102, 9, machine];
        let first = first_of_each(&[all[0], known, all[2]]).unwrap();
        assert_eq!(first[&a], [a, 1, 5000, 100, 5, machine]);
        assert_eq!(first_of_each(&[all[0], [a, 0, 8192, 100, 5, 8]]), None);
        // Copies of a file, in a folder that is each machine's own.
        let copy = [a, 0, 4096, 0, 33, machine];
        assert!(first_of_each(&[copy, copy]).is_some());
        assert_eq!(first_of_each(&[copy, [a, 0, 4096, 0, 34, machine]]), None);
    }
}
