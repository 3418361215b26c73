//! The memory of the upper half as the kernel shows it: its mappings, and errors of saving and restoring it.
use phasecast_image::{Flags, HugePolicy, ImageError, Protection};
use phasecast_process::space;
use std::io;
use std::ops::Range;

/// Bytes of a huge page.
pub(crate) const HUGE: u64 = 2 << 20;

/// Why memory cannot be saved or restored.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The kernel does not tell about the memory.
    #[error("cannot {action} {path}: {source}. phasecast needs /proc; mount it.")]
    Proc {
        /// The file under /proc.
        path: &'static str,
        /// What was tried.
        action: &'static str,
        /// The system's word.
        source: io::Error,
    },
    /// The kernel's listing has another form.
    #[error("/proc/self/smaps has a line that is not understood: {0:?}. Please report it with the kernel's version.")]
    Line(String),
    /// Memory that other processes may see.
    #[error(
        "the program shares memory for writing ({name} at {start:#x}): it cannot be saved here. Cut where it is not mapped."
    )]
    Shared {
        /// Its name.
        name: String,
        /// Its address.
        start: u64,
    },
    /// Pages that are there but cannot be read.
    #[error("the page at {address:#x} cannot be read: {source}")]
    Read {
        /// Its address.
        address: u64,
        /// The system's word.
        source: io::Error,
    },
    /// A mapping cannot be made again.
    #[error("cannot {action} {length} bytes at {start:#x}: {source}. Check the limits of memory (ulimit -v, cgroup).")]
    Map {
        /// What was tried.
        action: &'static str,
        /// Its address.
        start: u64,
        /// Its length in bytes.
        length: u64,
        /// The system's word.
        source: io::Error,
    },
    /// The place of the image is taken.
    #[error("{length} bytes at {start:#x} are in use: the image does not fit into this process")]
    Taken {
        /// The address.
        start: u64,
        /// Length in bytes.
        length: u64,
    },
    /// A mapping reaches beyond what the program has mapped.
    #[error("the mapping {name} from {start:#x} to {end:#x} reaches beyond what the program has asked for")]
    Beyond {
        /// Where it begins.
        start: u64,
        /// Where it ends.
        end: u64,
        /// A path, a name in brackets or nothing.
        name: String,
    },
    /// The image cannot be read or written.
    #[error(transparent)]
    Image(#[from] ImageError),
}

/// What the upper half has mapped.
pub(crate) fn ranges() -> Vec<Range<u64>> {
    space::ranges().into_iter().map(|(start, end)| start as u64..end as u64).collect()
}

/// A mapping, as the kernel lists it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mapping {
    pub start: u64,
    pub end: u64,
    pub protection: Protection,
    pub flags: Flags,
    pub offset: u64,
    /// The device of its file.
    pub device: u64,
    pub inode: u64,
    /// A path, a name in brackets or nothing.
    pub name: String,
    /// Bytes of it in huge pages of its own.
    pub huge: u64,
}

impl Mapping {
    /// Whether it shows a file (and not memory alone).
    pub fn is_file(&self) -> bool {
        let memory = ["/dev/zero", "/dev/zero (deleted)", "/anon_hugepage (deleted)"];
        // The first segment of System V has the number 0.
        self.name.starts_with("/SYSV") || self.inode != 0 && !memory.contains(&self.name.as_str())
    }

    /// Whether it is memory alone that children share.
    pub fn is_shared_memory(&self) -> bool {
        self.flags.has(Flags::SHARED) && !self.is_file()
    }
}

/// The mappings of this process that lie inside `ranges`, by ascending address.
pub(crate) fn mappings(ranges: &[Range<u64>]) -> Result<Vec<Mapping>, MemoryError> {
    let path = "/proc/self/smaps";
    let text = std::fs::read(path).map_err(|source| MemoryError::Proc { path, action: "read", source })?;
    let mut found = parse(&String::from_utf8_lossy(&text))?;
    let inside = |mapping: &Mapping| ranges.iter().any(|r| r.start <= mapping.start && mapping.end <= r.end);
    let touches = |mapping: &&Mapping| ranges.iter().any(|r| r.start < mapping.end && mapping.start < r.end);
    if let Some(beyond) = found.iter().filter(touches).find(|mapping| !inside(mapping)) {
        let (start, end, name) = (beyond.start, beyond.end, beyond.name.clone());
        return Err(MemoryError::Beyond { start, end, name });
    }
    found.retain(inside);
    Ok(found)
}

fn parse(text: &str) -> Result<Vec<Mapping>, MemoryError> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        let wrong = || MemoryError::Line(line.into());
        if !line.starts_with(|c: char| c.is_ascii_uppercase()) {
            mappings.push(heading(line).ok_or_else(wrong)?);
            continue;
        }
        let (key, value) = line.split_once(':').ok_or_else(wrong)?;
        let mapping = mappings.last_mut().ok_or_else(wrong)?;
        match key {
            "AnonHugePages" => {
                let number = value.trim().strip_suffix(" kB").and_then(|kb| kb.parse::<u64>().ok());
                mapping.huge = number.ok_or_else(wrong)? * 1024;
            }
            "VmFlags" => value.split_whitespace().for_each(|word| mapping.flags.0 |= flag(word)),
            _ => {}
        }
    }
    Ok(mappings)
}

fn flag(word: &str) -> u16 {
    match word {
        // Pages of hugetlbfs come back as transparent ones.
        "hg" | "ht" => Flags::HUGE,
        "nh" => Flags::NO_HUGE,
        "nr" => Flags::NO_RESERVE,
        "gd" => Flags::STACK,
        "dc" => Flags::DONT_FORK,
        "wf" => Flags::WIPE_ON_FORK,
        "dd" => Flags::DONT_DUMP,
        "lo" => Flags::LOCKED,
        _ => 0,
    }
}

/// `2000-3000 rw-p 00000000 fe:00 247030     /path of it`.
fn heading(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let number = |word: &str| u64::from_str_radix(word, 16).ok();
    let rights = words.next()?.as_bytes();
    let bit = |at: usize, letter: u8, bit: u8| if rights.get(at) == Some(&letter) { bit } else { 0 };
    let protection =
        bit(0, b'r', Protection::READ) | bit(1, b'w', Protection::WRITE) | bit(2, b'x', Protection::EXECUTE);
    let offset = number(words.next()?)?;
    let (major, minor) = words.next()?.split_once(':')?;
    let device = libc::makedev(number(major)? as u32, number(minor)? as u32);
    let inode = words.next()?.parse().ok()?;
    Some(Mapping {
        start: number(start)?,
        end: number(end)?,
        protection: Protection(protection),
        flags: Flags(if rights.get(3) == Some(&b's') { Flags::SHARED } else { 0 }),
        offset,
        device,
        inode,
        name: words.next().unwrap_or_default().trim().to_string(),
        huge: 0,
    })
}

/// How this machine gives huge pages.
pub(crate) fn huge_policy() -> HugePolicy {
    match std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled") {
        Ok(text) if text.contains("[always]") => HugePolicy::Always,
        Ok(text) if text.contains("[madvise]") => HugePolicy::Madvise,
        _ => HugePolicy::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_are_read() {
        let text = "200000000000-200000003000 rw-p 00001000 fe:00 77     /lib/a b.so (deleted)\n\
                    Size:                 12 kB\nAnonHugePages:      2048 kB\nVmFlags: rd wr mr mw me ac hg dd \n\
                    200000003000-200000004000 ---s 00000000 00:01 9      /dev/zero (deleted)\nVmFlags: mr mw sd nr \n\
                    7ffe0000-7fff0000 rw-p 00000000 00:00 0 \nVmFlags: gd nh\n";
        let all = parse(text).unwrap();
        assert_eq!(all[0].name, "/lib/a b.so (deleted)");
        assert_eq!(
            (all[0].start, all[0].end, all[0].offset, all[0].inode),
            (0x2000_0000_0000, 0x2000_0000_3000, 0x1000, 77)
        );
        assert_eq!((all[0].huge, all[0].flags.0), (2 << 20, Flags::HUGE | Flags::DONT_DUMP));
        assert!(all[0].is_file() && all[0].protection.allows(Protection::READ | Protection::WRITE));
        assert!(!all[1].is_file() && all[1].is_shared_memory() && all[1].protection.0 == 0);
        assert_eq!((all[2].name.as_str(), all[2].flags.0), ("", Flags::STACK | Flags::NO_HUGE));
        assert!(matches!(parse("nonsense"), Err(MemoryError::Line(_))));
    }
}
