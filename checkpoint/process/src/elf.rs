//! ELF files: what a loader must know of a program or a dynamic linker, read without trust in the file.
use crate::Error;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A segment that is to be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first address, relative to the base.
    pub address: usize,
    /// Where it begins in the file.
    pub offset: usize,
    /// Its bytes in the file.
    pub file_len: usize,
    /// Its bytes in memory; those beyond the file's are zero.
    pub len: usize,
    /// `PROT_READ`, `PROT_WRITE` and `PROT_EXEC` as wanted.
    pub protection: i32,
}

/// A program or a dynamic linker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elf {
    /// Whether it can be mapped anywhere; otherwise the addresses are absolute.
    pub movable: bool,
    /// Where execution begins, relative to the base.
    pub entry: usize,
    /// Where the program headers lie in memory, relative to the base.
    pub headers: usize,
    /// How many there are, of 56 bytes each.
    pub header_count: usize,
    /// What to map, ascending.
    pub segments: Vec<Segment>,
    /// The dynamic linker it asks for.
    pub interpreter: Option<PathBuf>,
    /// Whether it wants to execute its stack.
    pub executable_stack: bool,
    /// The largest alignment of a segment.
    pub align: usize,
}

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<usize> {
    let mut word = [0u8; 8];
    word[..N].copy_from_slice(bytes.get(at..at.checked_add(N)?)?);
    usize::try_from(u64::from_le_bytes(word)).ok()
}

impl Elf {
    /// Reads the headers of an ELF file of x86-64.
    ///
    /// # Errors
    /// If it is not one, or is damaged.
    pub fn read(file: &File, path: &Path) -> Result<Self, Error> {
        let damaged = |reason| Error::Damaged { path: path.to_owned(), reason };
        let not_a_program = |reason| Error::NotAProgram { path: path.to_owned(), reason };
        let mut head = [0u8; HEADER];
        file.read_exact_at(&mut head, 0).map_err(|_| not_a_program("it is shorter than an ELF header"))?;
        if head[..4] != *b"\x7fELF" {
            return Err(not_a_program("it does not begin with an ELF header"));
        }
        let half = |at| number::<2>(&head, at).unwrap_or(0);
        let word = |at| number::<8>(&head, at).ok_or_else(|| damaged("a number in its header is out of bounds"));
        if head[4] != 2 || head[5] != 1 || half(18) != 62 {
            return Err(Error::Architecture { path: path.to_owned() });
        }
        let movable = match half(16) {
            2 => false,
            3 => true,
            _ => return Err(not_a_program("it is an object file or a core dump")),
        };
        let (table, size, count) = (word(32)?, half(54), half(56));
        if size != PROGRAM_HEADER || count == 0 || count > 512 {
            return Err(damaged("its program headers have an unknown size or number"));
        }
        let mut bytes = vec![0u8; size * count];
        file.read_exact_at(&mut bytes, table as u64).map_err(|_| damaged("its program headers lie beyond its end"))?;
        let length = file.metadata().map_err(|cause| Error::Read { path: path.to_owned(), cause })?.len();

        let mut elf = Self {
            movable,
            entry: word(24)?,
            headers: 0,
            header_count: count,
            segments: Vec::new(),
            interpreter: None,
            executable_stack: false,
            align: 4096,
        };
        for header in bytes.chunks_exact(PROGRAM_HEADER) {
            let field =
                |at| number::<8>(header, at).ok_or_else(|| damaged("a number in a program header is out of bounds"));
            let (kind, flags) = (number::<4>(header, 0).unwrap_or(0), number::<4>(header, 4).unwrap_or(0));
            let (offset, address, file_len, len, align) = (field(8)?, field(16)?, field(32)?, field(40)?, field(48)?);
            match kind {
                1 if len > 0 => {
                    let end = address.checked_add(len).filter(|e| *e < 1 << 46);
                    let file_end = offset.checked_add(file_len).filter(|e| *e as u64 <= length);
                    let sound = end.is_some() && file_end.is_some() && file_len <= len;
                    if !sound || offset % 4096 != address % 4096 {
                        return Err(damaged("a segment lies beyond the file or the address space"));
                    }
                    if elf.segments.last().is_some_and(|l: &Segment| l.address + l.len > address) {
                        return Err(damaged("its segments overlap"));
                    }
                    if (offset..offset + file_len).contains(&table) {
                        elf.headers = address + (table - offset);
                    }
                    if align.is_power_of_two() && align <= 1 << 30 {
                        elf.align = elf.align.max(align);
                    }
                    let protection = (flags & 4) >> 2 | flags & 2 | (flags & 1) << 2;
                    elf.segments.push(Segment { address, offset, file_len, len, protection: protection as i32 });
                }
                3 => {
                    let mut name = vec![0u8; file_len.min(4096)];
                    file.read_exact_at(&mut name, offset as u64)
                        .map_err(|_| damaged("the name of its dynamic linker lies beyond its end"))?;
                    name.truncate(name.iter().position(|b| *b == 0).unwrap_or(name.len()));
                    elf.interpreter = Some(PathBuf::from(std::ffi::OsString::from_vec(name)));
                }
                0x6474_e551 => elf.executable_stack = flags & 1 != 0,
                _ => {}
            }
        }
        if elf.segments.is_empty() {
            return Err(damaged("it has no segments to map"));
        }
        Ok(elf)
    }

    /// First and last-plus-one address of its segments, in whole pages, relative to the base.
    pub fn span(&self) -> (usize, usize) {
        let first = self.segments.first().map_or(0, |s| s.address & !4095);
        let last = self.segments.last().map_or(0, |s| (s.address + s.len + 4095) & !4095);
        (first, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(bytes: &[u8]) -> Result<Elf, Error> {
        let path = std::env::temp_dir().join(format!("phasecast-elf-{}-{:p}", std::process::id(), &raw const bytes));
        File::create(&path).unwrap().write_all(bytes).unwrap();
        let elf = Elf::read(&File::open(&path).unwrap(), &path);
        std::fs::remove_file(&path).unwrap();
        elf
    }

    #[test]
    fn this_test_is_a_movable_program_with_a_dynamic_linker() {
        let path = std::env::current_exe().unwrap();
        let elf = Elf::read(&File::open(&path).unwrap(), &path).unwrap();
        assert!(elf.movable && elf.interpreter.is_some() && !elf.executable_stack);
        let (first, last) = elf.span();
        assert!((first..last).contains(&elf.entry) && elf.headers == 64);
        assert!(elf.segments.iter().any(|s| s.protection == libc::PROT_READ | libc::PROT_EXEC));
    }

    #[test]
    fn other_files_are_refused() {
        assert!(matches!(read(b"hello"), Err(Error::NotAProgram { .. })));
        assert!(matches!(read(&[b'x'; 200]), Err(Error::NotAProgram { .. })));
        let mut other = std::fs::read("/bin/true").unwrap();
        other[18] = 183;
        assert!(matches!(read(&other), Err(Error::Architecture { .. })));
    }

    #[test]
    fn every_damaged_header_is_read_without_a_panic() {
        let whole = std::fs::read("/bin/true").unwrap();
        for at in 0..64 + 56 * 14 {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let _ = read(&bytes).map(|e| e.span());
            }
        }
        for len in [0, 10, 63, 64, 100, 500, 1000] {
            assert!(read(&whole[..len]).is_err());
        }
    }
}
