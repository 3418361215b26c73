//! The log of objects: which calls made the objects that the program has, and what it set on them, with all that these
//! calls were given. After a restart the calls are made again, in the same order, through the same translation.
//!
//! A record goes as soon as nothing needs its object any more. Communicators are an exception: all ranks must make them
//! again together, so their records stay until the ranks agree, at a cut, that none needs them ([`Log::keep_comms`]).
use crate::calls::MOST;
use crate::objects::slot;
use crate::session::Session;
use crate::shape::{Lane, Shape};
use crate::words::{handle_bytes, read_handle};
use phasecast_abi::{CType, Direction, Kind, Length, Passing};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An argument of a recorded call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Argument {
    /// By value, or an address that is no memory to be read (a callback, a constant, a window's memory).
    Word(usize),
    /// What it points at.
    Bytes(Vec<u8>),
    /// Somewhere to write to.
    Room(usize),
}

/// What names an object here, predefined ones as well: the slot of its kind, the program's handle.
pub type Named = (u8, u64);

/// The object of this handle.
pub fn named(kind: Kind, handle: usize) -> Named {
    (slot(kind) as u8, handle as u64)
}

/// A recorded call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the procedure.
    pub procedure: String,
    /// Its arguments, in the program's form.
    pub arguments: Vec<Argument>,
    /// The object that it made: argument, slot of its kind, number.
    pub made: Option<(u8, u8, u32)>,
    /// Objects that it yielded in an array, but for predefined ones: slots of their kinds, numbers, [`NOT_MADE`] for one that
    /// was there before.
    pub also: Vec<(u8, u32)>,
    /// The object that it changed.
    pub changed: Option<Named>,
    /// What it changed of the object: a later change of the same replaces it.
    pub key: u64,
    /// Objects that it needs: slot of the kind, number.
    pub needs: Vec<(u8, u32)>,
    /// The number that all members of a communicator agree on; 0 for other objects.
    pub comm: u64,
}

/// In place of the number of an object that a call has yielded and not made.
pub const NOT_MADE: u32 = u32::MAX;

/// The log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Log {
    /// The records by their number.
    pub records: BTreeMap<u64, Record>,
    next: u64,
    /// Numbers of the records that changed an object, by [`Record::changed`].
    changes: BTreeMap<Named, Vec<u64>>,
    /// Numbers of the records in the order in which they are made again, where the ranks had to agree on one.
    pub order: Vec<u64>,
}

/// Kinds whose objects are made again after a restart.
pub fn lasting(kind: Kind) -> bool {
    !matches!(kind, Kind::Request | Kind::Message)
}

/// Takes note of an object that a call has made.
///
/// # Safety
/// The call has succeeded with these arguments of the program.
pub unsafe fn made(s: &mut Session, shape: &'static Shape, args: &[usize; MOST], at: usize, kind: Kind, new: u32) {
    if !lasting(kind) {
        return;
    }
    if kind == Kind::Communicator {
        comm_made(s, shape, args, at);
    }
    // SAFETY: the caller's.
    unsafe { keep(s, shape, args, at, kind, new) };
}

/// Keeps the record of a call that makes an object; of a communicator it is known already whose it is.
///
/// # Safety
/// As for [`made`].
pub unsafe fn keep(s: &mut Session, shape: &'static Shape, args: &[usize; MOST], at: usize, kind: Kind, new: u32) {
    if kind == Kind::Info && !matches!(shape.procedure.name, "MPI_Info_create" | "MPI_Info_dup") {
        // SAFETY: the caller's.
        return unsafe { crate::told_info::keep(s, args[at], new) };
    }
    // SAFETY: the caller's.
    let mut record = unsafe { record(s, shape, args) };
    record.made = Some((at as u8, slot(kind) as u8, new));
    let above = s.objects.encode(kind, new);
    if let Some(comm) = s.comms.get(&above).filter(|_| kind == Kind::Communicator) {
        record.comm = comm.number;
        let least = comm.members.iter().min().map_or(0, |&rank| rank as u32 as usize);
        record.as_split(least, comm.rank as u32 as usize);
        record.as_adjacent(s, above);
    }
    let number = s.log_add(record);
    if let Some(object) = s.objects.get_mut(kind, new) {
        object.record = Some(number);
    }
}

/// Takes note of objects that a call has yielded in an array; [`NOT_MADE`] are those that were there before.
///
/// # Safety
/// As for [`made`].
pub unsafe fn made_several(s: &mut Session, shape: &'static Shape, args: &[usize; MOST], yielded: &[(Kind, u32)]) {
    // SAFETY: the caller's.
    let mut record = unsafe { record(s, shape, args) };
    record.also = yielded.iter().map(|&(kind, number)| (slot(kind) as u8, number)).collect();
    let own: Vec<(Kind, u32)> = record.own().collect();
    let record = s.log_add(record);
    for (kind, number) in own {
        if let Some(object) = s.objects.get_mut(kind, number) {
            // The record makes all of them: none goes before the others.
            (object.record, object.users) = (Some(record), object.users + 1);
        }
    }
}

fn comm_made(s: &mut Session, shape: &Shape, args: &[usize; MOST], at: usize) {
    let above = {
        let bytes = handle_bytes(s.values.upper, Kind::Communicator);
        // SAFETY: the program's variable, to which the new handle was written.
        unsafe { read_handle(args[at], bytes) }
    };
    let tag = match shape.procedure.param_named("stringtag") {
        // SAFETY: the caller's: a text.
        Some(at) => hash(unsafe { std::ffi::CStr::from_ptr(args[at] as *const libc::c_char) }.to_bytes()) as i32,
        None => shape.procedure.param_index(Kind::Tag).map_or(0, |at| args[at] as i32),
    };
    let parent = s.parent_of(shape, args);
    s.new_comm(above, parent, tag);
}

/// Takes note of a constructor of communicators in which this rank took part but got none: it has to take part again.
///
/// # Safety
/// As for [`made`].
pub unsafe fn took_part(s: &mut Session, shape: &'static Shape, args: &[usize; MOST]) {
    let Some(parent) = s.parent_of(shape, args) else { return };
    // SAFETY: the caller's.
    let mut record = unsafe { record(s, shape, args) };
    record.comm = s.number_of_child(parent);
    record.as_split(s.values.above("MPI_UNDEFINED").unwrap_or(0), 0);
    s.log_add(record);
}

impl Record {
    /// Whether what it yields is predefined: a library has one for all that ask for it, and frees it at its end.
    pub fn is_of_predefined(&self) -> bool {
        self.procedure.starts_with("MPI_Type_create_f90_")
    }

    /// The objects that it made in an array.
    pub fn own(&self) -> impl Iterator<Item = (Kind, u32)> {
        let made = self.also.iter().filter(|(_, number)| *number != NOT_MADE);
        made.map(|&(kind, number)| (crate::objects::KINDS[usize::from(kind)], number))
    }
}

impl Session {
    /// The program's handle of the communicator all of whose members make this call together.
    fn parent_of(&self, shape: &Shape, args: &[usize; MOST]) -> Option<usize> {
        Some(args[shape.procedure.parent_index()?] & self.values.upper.layout().handle_mask as usize)
    }
}

/// A hash of bytes that is the same in every process.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Copies what a call was given.
///
/// # Safety
/// The call has succeeded with these arguments.
pub unsafe fn record(s: &mut Session, shape: &'static Shape, args: &[usize; MOST]) -> Record {
    let mut arguments = Vec::with_capacity(shape.lanes.len());
    let mut needs = Vec::new();
    for (i, param) in shape.procedure.params.iter().enumerate() {
        let given = args[i];
        if let Lane::Handle(kind) = shape.lanes[i]
            && (param.kind != Kind::Keyval || param.passing == Passing::Value)
            && let Some(number) = s.objects.decode(kind, given)
        {
            needs.push((slot(kind) as u8, number));
        }
        // SAFETY: the caller's.
        arguments.push(unsafe { argument(s, shape, args, i, &mut needs) });
    }
    Record {
        procedure: shape.procedure.name.to_owned(),
        arguments,
        made: None,
        also: Vec::new(),
        changed: None,
        key: 0,
        needs,
        comm: 0,
    }
}

/// # Safety
/// As for [`record`].
unsafe fn argument(
    s: &mut Session,
    shape: &'static Shape,
    args: &[usize; MOST],
    i: usize,
    needs: &mut Vec<(u8, u32)>,
) -> Argument {
    let param = &shape.procedure.params[i];
    let given = args[i];
    let by_value = param.passing == Passing::Value;
    let constant = s.values.address_is_constant(given);
    if by_value || constant || given < 4096 || matches!(param.ctype, CType::Function | CType::Void) {
        return Argument::Word(given);
    }
    let kind = match shape.lanes[i] {
        Lane::HandleAt(kind, _) | Lane::Handles(kind, ..) => Some(kind),
        _ => None,
    };
    let size = match param.ctype {
        CType::Char => 1,
        CType::Int | CType::Fint => 4,
        CType::Handle => handle_bytes(s.values.upper, kind.unwrap_or(Kind::Communicator)),
        CType::Status => s.values.upper.layout().status.size,
        _ => 8,
    };
    if param.direction == Direction::Out {
        // SAFETY: the caller's.
        let count = unsafe { s.elements(shape, args, i, param.length) };
        return Argument::Room(size.max(8) * count.max(64));
    }
    // SAFETY: the caller's: what the procedure has read.
    unsafe {
        if param.ctype == CType::Char && !matches!(param.length, Length::Param(_)) {
            return Argument::Bytes(
                std::ffi::CStr::from_ptr(given as *const libc::c_char).to_bytes_with_nul().to_vec(),
            );
        }
        let count = s.elements(shape, args, i, param.length);
        let bytes = std::slice::from_raw_parts(given as *const u8, count * size).to_vec();
        if let Some(kind) = kind {
            for j in 0..count {
                if let Some(number) = s.objects.decode(kind, read_handle(given + j * size, size)) {
                    needs.push((slot(kind) as u8, number));
                }
            }
        }
        Argument::Bytes(bytes)
    }
}

impl Session {
    /// Adds a record and returns its number.
    pub fn log_add(&mut self, record: Record) -> u64 {
        for &(kind, number) in &record.needs {
            if let Some(object) = self.objects.get_mut(crate::objects::KINDS[usize::from(kind)], number) {
                object.users += 1;
            }
        }
        let number = self.log.next;
        self.log.next += 1;
        if let Some(changed) = record.changed {
            self.log.changes.entry(changed).or_default().push(number);
        }
        self.log.records.insert(number, record);
        number
    }

    /// Removes those records, the last first, of what was changed of an object.
    pub fn log_remove_changes(&mut self, changed: Named, which: impl Fn(&Record) -> bool) {
        let Some(numbers) = self.log.changes.get(&changed) else { return };
        let is_one = |number: &&u64| self.log.records.get(number).is_some_and(&which);
        let found: Vec<u64> = numbers.iter().rev().filter(is_one).copied().collect();
        found.into_iter().for_each(|number| self.log_remove(number));
    }

    /// Removes a record, and with it what only that needs.
    pub fn log_remove(&mut self, number: u64) {
        let Some(record) = self.log.records.remove(&number) else { return };
        if let Some(changed) = record.changed
            && let Some(numbers) = self.log.changes.get_mut(&changed)
        {
            numbers.retain(|&other| other != number);
            if numbers.is_empty() {
                self.log.changes.remove(&changed);
            }
        }
        for (kind, index) in record.needs {
            self.unused(crate::objects::KINDS[usize::from(kind)], index);
        }
    }
}
