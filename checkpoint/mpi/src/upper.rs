//! What the program in the upper half has of its own MPI library: which interface it was built for, and where the
//! symbols are that it takes for predefined handles.
use object::read::elf::{ElfFile64, ProgramHeader, Sym};
use object::read::{ReadCache, StringTable, SymbolIndex};
use object::{Endianness, Object, ObjectSection};
use phasecast_abi::{Abi, Symbols, Value, constants};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

/// A program or library of which only what is asked for is read: it may be tens of megabytes long.
pub type Elf<'data> = ElfFile64<'data, Endianness, &'data ReadCache<File>>;

/// The facade's function through which functions of the program are called.
pub const CALLS: &str = "phasecast_facade_calls";

/// The program's MPI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Upper {
    abi: u8,
    /// File name of its library.
    pub library: String,
    addresses: BTreeMap<String, usize>,
    variables: BTreeMap<String, usize>,
}

impl Upper {
    /// Looks at what is mapped. `within` says which addresses are the upper half's.
    pub fn find(within: impl Fn(usize) -> bool) -> Option<Upper> {
        let objects = objects(within)?;
        let library = objects.iter().find(|(_, path)| Abi::of_library(path).is_some())?.1.clone();
        let abi = Abi::of_library(&library)?;
        let mut wanted: BTreeMap<&str, Option<usize>> = BTreeMap::from([(CALLS, None)]);
        for constant in constants() {
            if let Value::Symbol(name) | Value::Variable(name) = constant.value(abi) {
                wanted.insert(name, None);
            }
        }
        // The program itself first: it may have copies of the library's variables, which then are those that count.
        let mut tables: Vec<(bool, BTreeMap<String, usize>)> =
            objects.iter().filter_map(|(start, path)| symbols(*start, path, &wanted)).collect();
        tables.sort_by_key(|(program, _)| !program);
        for (name, found) in &mut wanted {
            *found = tables.iter().find_map(|(_, table)| table.get(*name).copied());
        }
        let addresses: BTreeMap<String, usize> =
            wanted.into_iter().filter_map(|(name, found)| Some((name.to_owned(), found?))).collect();
        let mut variables = BTreeMap::new();
        for constant in constants() {
            if let Value::Variable(name) = constant.value(abi)
                && let Some(&at) = addresses.get(name)
            {
                // SAFETY: a variable of the program's library that holds a pointer.
                variables.insert(name.to_owned(), unsafe { *(at as *const usize) });
            }
        }
        Some(Upper { abi: abi as u8, library, addresses, variables })
    }

    /// The interface that the program was built for.
    pub fn abi(&self) -> Abi {
        Abi::ALL[usize::from(self.abi).min(2)]
    }
}

/// Where the files of the upper half are mapped that are so from their beginning, libraries among them.
pub fn objects(within: impl Fn(usize) -> bool) -> Option<Vec<(usize, String)>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut objects: Vec<(usize, String)> = Vec::new();
    let mut seen = BTreeSet::new();
    for line in maps.lines() {
        let mut words = line.splitn(6, ' ');
        let start = words.next().and_then(|range| usize::from_str_radix(range.split('-').next()?, 16).ok())?;
        let (offset, path) = (words.nth(1), words.nth(2));
        let Some(path) = path.map(str::trim_start).filter(|path| path.starts_with('/')) else { continue };
        if within(start) && offset == Some("00000000") && seen.insert(path.to_owned()) {
            objects.push((start, path.to_owned()));
        }
    }
    Some(objects)
}

/// What the addresses in a file count from, where its beginning is mapped at `start`.
pub fn load_address(file: &Elf<'_>, start: usize) -> Option<usize> {
    let (headers, endian) = (file.elf_program_headers(), file.endian());
    let first = headers.iter().filter(|h| h.p_type(endian) == object::elf::PT_LOAD).map(|h| h.p_vaddr(endian)).min()?;
    Some(start.wrapping_sub(first as usize & !0xfff))
}

impl Symbols for Upper {
    fn address(&self, symbol: &str) -> Option<usize> {
        self.addresses.get(symbol).copied()
    }

    fn variable(&self, symbol: &str) -> Option<usize> {
        self.variables.get(symbol).copied()
    }
}

/// Whether an object is the program, and where it has the wanted symbols.
fn symbols(
    start: usize,
    path: &str,
    wanted: &BTreeMap<&str, Option<usize>>,
) -> Option<(bool, BTreeMap<String, usize>)> {
    look(path, |file| {
        let endian = file.endian();
        let headers = file.elf_program_headers();
        let program = headers.iter().any(|h| h.p_type(endian) == object::elf::PT_INTERP)
            && !path.rsplit('/').next().is_some_and(|name| name.contains(".so"));
        let bias = load_address(file, start)?;
        let mut table = BTreeMap::new();
        defined(file, |_, name, address| {
            if wanted.contains_key(name) {
                table.insert(name.to_owned(), bias.wrapping_add(address as usize));
            }
        });
        Some((program, table))
    })
}

/// Looks into a program or library.
pub fn look<T>(path: &str, into: impl FnOnce(&Elf<'_>) -> Option<T>) -> Option<T> {
    let cache = ReadCache::new(File::open(path).ok()?);
    into(&Elf::parse(&cache).ok()?)
}

/// Tells the dynamic symbols that a file defines: index, name and address in it.
pub fn defined(file: &Elf<'_>, mut tell: impl FnMut(SymbolIndex, &str, u64)) {
    let endian = file.endian();
    let names = file.section_by_name(".dynstr").and_then(|section| section.data().ok()).unwrap_or_default();
    let names = StringTable::new(names, 0, names.len() as u64);
    for (index, symbol) in file.elf_dynamic_symbol_table().enumerate() {
        if symbol.is_definition(endian, names)
            && let Ok(name) = symbol.name(endian, names)
            && let Ok(name) = std::str::from_utf8(name)
        {
            tell(index, name, symbol.st_value(endian));
        }
    }
}
