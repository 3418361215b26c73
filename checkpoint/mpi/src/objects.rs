//! Virtual handles. A handle that the program holds and that is not predefined is a number of ours in the shape of its
//! interface; what it stands for below can be another object after each restart.
//!
//! With Open MPI's interface a handle is the address of an object, and the Fortran part of the program's own (idle)
//! library reads the object's Fortran handle out of it, at an offset that depends on the version. So the objects are
//! real memory in the upper half, filled with that one number from end to end.
use crate::recent::Recent;
use phasecast_abi::{Abi, Kind};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Kinds of objects, in the order of [`slot`].
pub const KINDS: [Kind; 13] = [
    Kind::Communicator,
    Kind::Group,
    Kind::Datatype,
    Kind::File,
    Kind::Errhandler,
    Kind::Operation,
    Kind::Info,
    Kind::Window,
    Kind::Keyval,
    Kind::Message,
    Kind::Request,
    Kind::Session,
    Kind::Partition,
];

/// Place of a kind in tables by kind; also MPICH's code of the kind in a handle, less one, where it has one.
#[inline(always)]
pub fn slot(kind: Kind) -> usize {
    match kind {
        Kind::Communicator => 0,
        Kind::Group => 1,
        Kind::Datatype => 2,
        Kind::File => 3,
        Kind::Errhandler => 4,
        Kind::Operation => 5,
        Kind::Info => 6,
        Kind::Window => 7,
        Kind::Keyval => 8,
        Kind::Message => 9,
        Kind::Request => 10,
        Kind::Session => 11,
        _ => 12,
    }
}

/// Where the objects of Open MPI's interface lie: in the upper half's range, between its heap, which grows from
/// the bottom, and its mappings, which come from the top.
pub const ARENA: usize = 0x2100_0000_0000;
/// Bytes for all objects of one kind.
const ARENA_STEP: usize = 1 << 29;
/// Bytes of an object: more than any version of Open MPI looks at.
const OBJECT: usize = 512;
/// Bytes of all arenas together.
pub const ARENA_SIZE: usize = ARENA_STEP * KINDS.len();
/// The first Fortran handle of an object that is not predefined.
const FORTRAN: usize = 4096;

/// The first number of an object in MPICH's handles: some predefined datatypes have low ones.
const MPICH_FIRST: usize = 1 << 20;

/// An object behind a virtual handle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// The library's handle, in this process.
    #[serde(skip)]
    pub lower: usize,
    /// Handles that the program has to free.
    pub references: u32,
    /// Records of the log and requests that need it.
    pub users: u32,
    /// The record of the log that makes it.
    pub record: Option<u64>,
}

/// All virtual objects.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Objects {
    abi: u8,
    tables: Vec<Vec<Object>>,
    free: Vec<Vec<u32>>,
    #[serde(skip)]
    by_lower: FxHashMap<(Kind, usize), u32>,
    /// Likewise of those that the library is about to free.
    #[serde(skip)]
    dying: FxHashMap<(Kind, usize), u32>,
    /// Objects of each kind whose memory has been filled.
    filled: Vec<u32>,
    #[serde(skip)]
    recent: Recent,
}

impl Objects {
    /// No objects yet, for a program with this interface.
    pub fn new(abi: Abi) -> Objects {
        let of = |_| Vec::new();
        Objects {
            abi: abi as u8,
            tables: KINDS.iter().map(of).collect(),
            free: KINDS.iter().map(|_| Vec::new()).collect(),
            by_lower: FxHashMap::default(),
            dying: FxHashMap::default(),
            filled: vec![0; KINDS.len()],
            recent: Recent::default(),
        }
    }

    #[inline(always)]
    fn code(&self, kind: Kind) -> &'static Code {
        &CODES[usize::from(self.abi).min(CODES.len() - 1)][slot(kind)]
    }

    /// A handle without what else may stand in the register of a shorter one.
    pub fn bits(&self, kind: Kind, handle: usize) -> usize {
        handle & self.code(kind).bits
    }

    /// What a handle of the program was translated to, if that is not long ago.
    #[inline(always)]
    pub fn recent(&mut self, kind: Kind, handle: usize) -> Option<usize> {
        let entry = self.recent.entry(kind, handle);
        (entry.0 == handle).then_some(entry.1)
    }

    /// Takes note of what a handle of the program was translated to. Not of requests and messages: they come and go.
    pub fn keep_recent(&mut self, kind: Kind, handle: usize, lower: usize) {
        if !matches!(kind, Kind::Request | Kind::Message) {
            *self.recent.entry(kind, handle) = (handle, lower);
        }
    }

    fn forget_recent(&mut self, kind: Kind, index: u32) {
        self.recent.forget(kind, self.encode(kind, index));
    }

    /// Makes room for a new object and returns its number.
    #[inline(always)]
    pub fn add(&mut self, kind: Kind, lower: usize) -> u32 {
        let table = slot(kind);
        let object = Object { lower, references: 1, users: 0, record: None };
        let index = match self.free[table].pop() {
            Some(index) => {
                self.tables[table][index as usize] = object;
                index
            }
            None => {
                self.tables[table].push(object);
                self.tables[table].len() as u32 - 1
            }
        };
        self.remember(kind, lower, index);
        self.fill(kind, index);
        index
    }

    /// An object has got its library's handle: which kinds are looked up by it, and what was known of the object's own
    /// before, perhaps of another object that had its number and was asked for since.
    #[inline(always)]
    fn remember(&mut self, kind: Kind, lower: usize, index: u32) {
        if !matches!(kind, Kind::Request | Kind::Message) {
            self.by_lower.insert((kind, lower), index);
            self.forget_recent(kind, index);
        }
    }

    #[inline(always)]
    fn fill(&mut self, kind: Kind, index: u32) {
        let again = index < self.filled[slot(kind)] && kind != Kind::Operation;
        if self.code(kind).is_memory() && !again {
            self.fill_anew(kind, index);
        }
    }

    fn fill_anew(&mut self, kind: Kind, index: u32) {
        self.filled[slot(kind)] = self.filled[slot(kind)].max(index + 1);
        let at = (ARENA + slot(kind) * ARENA_STEP + index as usize * OBJECT) as *mut u32;
        for word in 0..OBJECT / 4 {
            // SAFETY: the arena is mapped by the session before the first object is made, and holds so many objects.
            unsafe { at.add(word).write((FORTRAN + index as usize) as u32) };
        }
    }

    /// Whether the program's library has written into the memory of an object. Open MPI's Fortran interface marks
    /// operations so whose function is called with Fortran's handles.
    pub fn is_marked(&self, kind: Kind, index: u32) -> bool {
        if self.abi != Abi::OpenMpi as u8 || index >= self.filled[slot(kind)] {
            return false;
        }
        let at = (ARENA + slot(kind) * ARENA_STEP + index as usize * OBJECT) as *const u32;
        // SAFETY: the memory of an object that was filled.
        (0..OBJECT / 4).any(|word| unsafe { at.add(word).read() } != (FORTRAN + index as usize) as u32)
    }

    /// The object.
    #[inline(always)]
    pub fn get(&self, kind: Kind, index: u32) -> Option<&Object> {
        self.tables[slot(kind)].get(index as usize)
    }

    /// The object, to change it.
    #[inline(always)]
    pub fn get_mut(&mut self, kind: Kind, index: u32) -> Option<&mut Object> {
        self.tables[slot(kind)].get_mut(index as usize)
    }

    /// Gives an object its library's handle after a restart.
    pub fn set_lower(&mut self, kind: Kind, index: u32, lower: usize) {
        if let Some(object) = self.get_mut(kind, index) {
            object.lower = lower;
            self.remember(kind, lower, index);
        }
    }

    /// An object is no more below, and still needed.
    pub fn unset_lower(&mut self, kind: Kind, index: u32) {
        if let Some(object) = self.get_mut(kind, index) {
            object.lower = 0;
            self.forget_recent(kind, index);
        }
    }

    /// Forgets which handle of the library stands for an object: the library has freed it. If it stands for another one by
    /// now, it goes on to.
    pub fn forget_lower(&mut self, kind: Kind, index: u32) {
        if let Some(lower) = self.get(kind, index).map(|object| object.lower)
            && self.by_lower(kind, lower) == Some(index)
        {
            self.by_lower.remove(&(kind, lower));
        }
    }

    /// The library may be about to free an object, and what another thread gets under this handle as soon as it has is
    /// another one. Yields the handle; none for an error handler, which may be asked for as long as it is set on something.
    pub fn may_die(&mut self, kind: Kind, index: u32) -> Option<usize> {
        if kind == Kind::Errhandler {
            return None;
        }
        let lower = self.get(kind, index)?.lower;
        let index = self.by_lower.remove(&(kind, lower))?;
        self.dying.insert((kind, lower), index);
        Some(lower)
    }

    /// The library has freed it, or has not.
    pub fn has_died(&mut self, kind: Kind, lower: usize, freed: bool) {
        if let Some(index) = self.dying.remove(&(kind, lower)).filter(|_| !freed) {
            self.by_lower.insert((kind, lower), index);
        }
    }

    /// As [`Objects::by_lower`], while the library may be about to free it, too.
    pub fn by_lower_still(&self, kind: Kind, lower: usize) -> Option<u32> {
        self.by_lower(kind, lower).or_else(|| self.dying.get(&(kind, lower)).copied())
    }

    /// The number of the object that the library knows by this handle.
    pub fn by_lower(&self, kind: Kind, lower: usize) -> Option<u32> {
        self.by_lower.get(&(kind, lower)).copied()
    }

    /// Makes the number of an object that nobody needs free for another.
    #[inline(always)]
    pub fn release(&mut self, kind: Kind, index: u32) {
        if let Some(object) = self.get_mut(kind, index) {
            *object = Object::default();
            self.free[slot(kind)].push(index);
            if !matches!(kind, Kind::Request | Kind::Message) {
                self.forget_recent(kind, index);
            }
        }
    }

    /// All objects with their kinds and numbers.
    pub fn all(&self) -> impl Iterator<Item = (Kind, u32, &Object)> {
        KINDS.iter().flat_map(|&kind| {
            self.tables[slot(kind)].iter().enumerate().map(move |(index, object)| (kind, index as u32, object))
        })
    }

    /// The objects of a kind that the program has: their numbers and the library's handles. They are in the order in which
    /// they were made, which all ranks have in common that have them in common; numbers are each rank's own.
    pub fn in_use(&self, kind: Kind) -> Vec<(u32, usize)> {
        let list = self.tables[slot(kind)].iter().zip(0u32..);
        let mut list: Vec<_> = list.filter(|(object, _)| object.references > 0).collect();
        list.sort_by_key(|(object, _)| object.record);
        list.into_iter().map(|(object, number)| (number, object.lower)).collect()
    }

    /// The handle that the program gets for an object.
    #[inline(always)]
    pub fn encode(&self, kind: Kind, index: u32) -> usize {
        let code = self.code(kind);
        code.first + ((index as usize) << code.shift)
    }

    /// The number of the object that a handle of the program stands for; none if it is predefined, or none of ours.
    #[inline(always)]
    pub fn decode(&self, kind: Kind, handle: usize) -> Option<u32> {
        let code = self.code(kind);
        let index = (handle & code.bits).wrapping_sub(code.first) >> code.shift;
        (index < self.tables[slot(kind)].len()).then_some(index as u32)
    }

    /// The Fortran handle of an object.
    pub fn fortran(&self, kind: Kind, index: u32) -> i32 {
        if self.code(kind).is_memory() { (FORTRAN + index as usize) as i32 } else { self.encode(kind, index) as i32 }
    }

    /// The number of the object with this Fortran handle; none if it is predefined.
    pub fn of_fortran(&self, kind: Kind, handle: i32) -> Option<u32> {
        if !self.code(kind).is_memory() {
            return self.decode(kind, handle as u32 as usize);
        }
        let index = usize::try_from(handle).ok()?.checked_sub(FORTRAN)?;
        (index < self.tables[slot(kind)].len()).then_some(index as u32)
    }
}

/// How the handles of a kind are numbered.
struct Code {
    /// The bits that a handle has.
    bits: usize,
    /// The handle of the first object; the next lies `1 << shift` behind.
    first: usize,
    shift: u32,
}

impl Code {
    const fn of(abi: Abi, slot: usize) -> Code {
        const SHORT: usize = 0xffff_ffff;
        match (abi, KINDS[slot]) {
            (Abi::OpenMpi, Kind::Keyval) => Code::number(SHORT, FORTRAN),
            (Abi::OpenMpi, _) | (Abi::Mpich, Kind::File) => {
                Code { bits: usize::MAX, first: ARENA + slot * ARENA_STEP, shift: OBJECT.trailing_zeros() }
            }
            (Abi::Mpich, _) => Code::number(SHORT, 0x8000_0000 | mpich_code(slot) << 26 | MPICH_FIRST),
            (Abi::Standard, Kind::Keyval) => Code::number(SHORT, 0x4000_0000 | slot << 26),
            (Abi::Standard, _) => Code::number(usize::MAX, 0x4000_0000 | slot << 26),
        }
    }

    const fn number(bits: usize, first: usize) -> Code {
        Code { bits, first, shift: 0 }
    }

    /// Whether a handle is the address of an object.
    #[inline(always)]
    fn is_memory(&self) -> bool {
        self.shift != 0
    }
}

/// By interface and kind.
static CODES: [[Code; KINDS.len()]; Abi::ALL.len()] = {
    let mut codes = [const { [const { Code::number(0, 0) }; KINDS.len()] }; Abi::ALL.len()];
    let mut at = 0;
    while at < Abi::ALL.len() * KINDS.len() {
        let (abi, slot) = (at / KINDS.len(), at % KINDS.len());
        codes[abi][slot] = Code::of(Abi::ALL[abi], slot);
        at += 1;
    }
    codes
};

/// MPICH's code of a kind in its handles.
const fn mpich_code(slot: usize) -> usize {
    match slot {
        9 => 11,
        10 => 11,
        11 => 14,
        _ => slot + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_told_apart_from_predefined_ones() {
        for abi in [Abi::Mpich, Abi::Standard] {
            let mut objects = Objects::new(abi);
            for kind in KINDS.into_iter().filter(|&kind| kind != Kind::File) {
                let index = objects.add(kind, 77);
                let handle = objects.encode(kind, index);
                assert_eq!(objects.decode(kind, handle), Some(index));
                for constant in phasecast_abi::constants().filter(|c| c.domain == phasecast_abi::Domain::Handle(kind)) {
                    if let phasecast_abi::Value::Number(number) = constant.value(abi) {
                        assert_eq!(objects.decode(kind, number as usize), None, "{}", constant.name);
                    }
                }
            }
        }
    }

    #[test]
    fn a_number_that_is_used_again_stands_for_the_new_object() {
        for abi in Abi::ALL {
            let mut objects = Objects::new(abi);
            for kind in KINDS.into_iter().filter(|&kind| kind != Kind::Keyval) {
                // Without the memory that the session maps for objects of Open MPI's interface.
                objects.filled = vec![u32::MAX; KINDS.len()];
                let add = |objects: &mut Objects, lower| {
                    let kind = if kind == Kind::Operation && abi == Abi::OpenMpi { Kind::Group } else { kind };
                    let index = objects.add(kind, lower);
                    (kind, index, objects.encode(kind, index))
                };
                let (kind, index, handle) = add(&mut objects, 77);
                objects.keep_recent(kind, handle, 77);
                objects.unset_lower(kind, index);
                assert_eq!(objects.recent(kind, handle), None);
                objects.release(kind, index);
                // Something asks for what is gone.
                objects.keep_recent(kind, handle, 0);
                assert_eq!(add(&mut objects, 78), (kind, index, handle));
                assert_eq!(objects.recent(kind, handle).unwrap_or(78), 78);
                objects.keep_recent(kind, handle, 78);
                objects.set_lower(kind, index, 79);
                assert_eq!(objects.recent(kind, handle).unwrap_or(79), 79);
            }
        }
    }
}
