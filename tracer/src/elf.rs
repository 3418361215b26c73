//! The shared objects of this process as the dynamic linker has mapped them: looks up symbols without calling it, which
//! is not allowed while it relocates an object.
use std::ffi::{CStr, c_int, c_void};

/// One entry of a symbol table of a 64-bit object.
#[derive(Debug)]
#[repr(C)]
pub struct Symbol {
    /// Offset of its name.
    pub name: u32,
    /// Binding and type.
    pub info: u8,
    /// Visibility.
    pub other: u8,
    /// Section, 0 if undefined.
    pub section: u16,
    /// Its address from the object's base.
    pub value: u64,
    /// Its size.
    pub size: u64,
}

/// A mapped object.
#[derive(Clone, Copy)]
pub struct Object {
    base: usize,
    symbols: *const Symbol,
    strings: *const u8,
    gnu_hash: *const u32,
    hash: *const u32,
    start: usize,
    end: usize,
}

// SAFETY: it refers to tables of a mapped object, which do not change once the object is loaded.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

impl Object {
    /// Address from which its symbols count.
    pub fn base(&self) -> usize {
        self.base
    }

    /// Whether an address lies in it.
    pub fn contains(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// The entry of a symbol that it defines.
    pub fn find(&self, name: &[u8]) -> Option<*const Symbol> {
        let index = if self.gnu_hash.is_null() { self.find_sysv(name) } else { self.find_gnu(name) }?;
        // SAFETY: the hash tables of a loaded object refer to entries of its symbol table.
        Some(unsafe { self.symbols.add(index) })
    }

    fn matches(&self, index: usize, name: &[u8]) -> bool {
        // SAFETY: as in `find`; names are offsets into the string table, whose entries end in zero.
        unsafe {
            let symbol = &*self.symbols.add(index);
            let own = CStr::from_ptr(self.strings.add(symbol.name as usize).cast());
            own.to_bytes() == name && symbol.section != 0 && symbol.value != 0
        }
    }

    fn find_gnu(&self, name: &[u8]) -> Option<usize> {
        let hash = name.iter().fold(5381u32, |h, &b| h.wrapping_mul(33).wrapping_add(b.into()));
        // SAFETY: the layout of DT_GNU_HASH: four words, a Bloom filter, buckets, and a chain that ends with bit 0 set.
        unsafe {
            let (buckets, offset, bloom) = (*self.gnu_hash, *self.gnu_hash.add(1), *self.gnu_hash.add(2));
            if buckets == 0 {
                return None;
            }
            let bucket = self.gnu_hash.add(4 + 2 * bloom as usize);
            let chain = bucket.add(buckets as usize);
            let mut index = *bucket.add((hash % buckets) as usize);
            while index >= offset && index != 0 {
                let link = *chain.add((index - offset) as usize);
                if link | 1 == hash | 1 && self.matches(index as usize, name) {
                    return Some(index as usize);
                }
                if link & 1 != 0 {
                    return None;
                }
                index += 1;
            }
        }
        None
    }

    fn find_sysv(&self, name: &[u8]) -> Option<usize> {
        if self.hash.is_null() {
            return None;
        }
        let mut hash = 0u32;
        for &byte in name {
            hash = (hash << 4).wrapping_add(byte.into());
            let high = hash & 0xf000_0000;
            hash = (hash ^ high >> 24) & !high;
        }
        // SAFETY: the layout of DT_HASH: two lengths, buckets, and a chain that ends with 0.
        unsafe {
            let buckets = *self.hash;
            if buckets == 0 {
                return None;
            }
            let bucket = self.hash.add(2);
            let chain = bucket.add(buckets as usize);
            let mut index = *bucket.add((hash % buckets) as usize) as usize;
            while index != 0 {
                if self.matches(index, name) {
                    return Some(index);
                }
                index = *chain.add(index) as usize;
            }
        }
        None
    }
}

/// Calls `each` with every object and its path, until it returns something.
pub fn find_object<T>(mut each: impl FnMut(&Object, &CStr) -> Option<T>) -> Option<T> {
    struct State<'a, T> {
        each: &'a mut dyn FnMut(&Object, &CStr) -> Option<T>,
        found: Option<T>,
    }
    unsafe extern "C" fn visit<T>(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: dl_iterate_phdr hands on the pointer that it was given, and a valid description.
        let (info, state) = unsafe { (&*info, &mut *data.cast::<State<'_, T>>()) };
        // SAFETY: as above.
        if let Some(object) = unsafe { object(info) } {
            let path = if info.dlpi_name.is_null() {
                c""
            } else {
                // SAFETY: a name ends in zero.
                unsafe { CStr::from_ptr(info.dlpi_name) }
            };
            state.found = (state.each)(&object, path);
        }
        c_int::from(state.found.is_some())
    }
    let mut state = State { each: &mut each, found: None };
    // SAFETY: `visit` is given a State of the same T, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit::<T>), (&raw mut state).cast()) };
    state.found
}

/// # Safety
/// `info` describes an object that is mapped.
unsafe fn object(info: &libc::dl_phdr_info) -> Option<Object> {
    let base = info.dlpi_addr as usize;
    // SAFETY: the array has so many entries.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize) };
    let mut dynamic = std::ptr::null::<[i64; 2]>();
    let (mut start, mut end) = (usize::MAX, 0);
    for header in headers {
        let at = base + header.p_vaddr as usize;
        match header.p_type {
            libc::PT_DYNAMIC => dynamic = at as *const [i64; 2],
            libc::PT_LOAD => {
                start = start.min(at);
                end = end.max(at + header.p_memsz as usize);
            }
            _ => {}
        }
    }
    if dynamic.is_null() {
        return None;
    }
    let mut object = Object {
        base,
        symbols: std::ptr::null(),
        strings: std::ptr::null(),
        gnu_hash: std::ptr::null(),
        hash: std::ptr::null(),
        start,
        end,
    };
    // The dynamic linker has turned offsets into addresses in most objects, but not in those it may not write to.
    let address = |value: i64| if (value as usize) < base { value as usize + base } else { value as usize };
    loop {
        // SAFETY: the dynamic section ends with an entry of type 0.
        let [tag, value] = unsafe { *dynamic };
        match tag {
            0 => break,
            DT_HASH => object.hash = address(value) as *const u32,
            DT_STRTAB => object.strings = address(value) as *const u8,
            DT_SYMTAB => object.symbols = address(value) as *const Symbol,
            DT_GNU_HASH => object.gnu_hash = address(value) as *const u32,
            _ => {}
        }
        // SAFETY: as above.
        dynamic = unsafe { dynamic.add(1) };
    }
    let usable = !object.symbols.is_null() && !object.strings.is_null();
    usable.then_some(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_libc_are_found_where_the_linker_finds_them() {
        let libc = find_object(|object, path| path.to_bytes().windows(8).any(|w| w == b"/libc.so").then_some(*object));
        let libc = libc.expect("this test is linked to libc");
        for name in [c"getpid", c"write", c"posix_fallocate"] {
            let symbol = libc.find(name.to_bytes()).expect("libc has it");
            // SAFETY: an entry of a mapped table; dlsym with a valid name.
            let (ours, theirs) =
                unsafe { (libc.base() + (*symbol).value as usize, libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr())) };
            assert_eq!(ours, theirs as usize);
        }
        assert!(libc.find(b"no_such_symbol_anywhere").is_none());
    }
}
