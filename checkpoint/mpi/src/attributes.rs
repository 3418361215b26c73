//! Attributes at a cut: asked for then, and set again at a restart. The program's copy functions ran when a communicator
//! was duplicated, so they must not run again when it is made again. A datatype that the program has freed lives as long
//! as others are made of it, and its attributes with it: their delete functions run later.
use crate::calls::lower;
use crate::forward::forward;
use crate::objects::Object;
use crate::session::{Call, Session, session};
use crate::words::{handle_bytes, read_handle};
use phasecast_abi::Kind;
use serde::{Deserialize, Serialize};

/// An attribute of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    /// Slot of the kind of the object.
    kind: u8,
    /// The program's handle of it.
    object: u64,
    /// Number of the key.
    key: u32,
    /// The value.
    value: usize,
}

/// Kinds of objects that have attributes, with the word in the names of their procedures.
const KINDS: [(Kind, &str); 3] = [(Kind::Communicator, "Comm"), (Kind::Datatype, "Type"), (Kind::Window, "Win")];

impl Session {
    /// All attributes that the program has set, those of datatypes that it has freed first.
    pub fn attributes(&mut self) -> Vec<Attribute> {
        let mut found = std::mem::take(&mut self.lingering);
        found.retain(|attribute| self.lingers(attribute));
        self.lingering = found.clone();
        let library = self.library;
        for (kind, word) in KINDS {
            let keys = self.keys_of(word);
            let objects = self.objects.in_use(kind);
            let mut handles: Vec<usize> =
                objects.into_iter().map(|(number, _)| self.objects.encode(kind, number)).collect();
            if kind == Kind::Communicator {
                handles
                    .extend(["MPI_COMM_WORLD", "MPI_COMM_SELF"].into_iter().filter_map(|name| self.values.above(name)));
            }
            for &(key, below) in &keys {
                for &object in &handles {
                    let lower = self.down_handle(kind, object);
                    let (mut value, mut flag) = (0usize, 0i32);
                    let (value_at, flag_at) = (&raw mut value, &raw mut flag);
                    match kind {
                        Kind::Communicator => lower!(library, MPI_Comm_get_attr(lower, below, value_at, flag_at)),
                        Kind::Datatype => lower!(library, MPI_Type_get_attr(lower, below, value_at, flag_at)),
                        _ => lower!(library, MPI_Win_get_attr(lower, below, value_at, flag_at)),
                    };
                    if flag != 0 {
                        let slot = crate::objects::slot(kind) as u8;
                        found.push(Attribute { kind: slot, object: object as u64, key, value });
                    }
                }
            }
        }
        found
    }

    /// Keys for one kind of objects: number and the library's form.
    fn keys_of(&self, word: &str) -> Vec<(u32, usize)> {
        let names = [format!("MPI_{word}_create_keyval"), "MPI_Keyval_create".to_owned()];
        let of_kind = |record: Option<u64>| {
            let procedure = record.and_then(|n| self.log.records.get(&n)).map(|r| r.procedure.as_str());
            procedure.is_some_and(|p| p == names[0] || (word == "Comm" && p == names[1]))
        };
        let keys = self.objects.all().filter(|(kind, ..)| *kind == Kind::Keyval);
        keys.filter(|(.., o)| o.references > 0 && of_kind(o.record)).map(|(_, n, o)| (n, o.lower)).collect()
    }

    /// Sets attributes again.
    pub fn set_attributes(&mut self, attributes: &[Attribute]) {
        let library = self.library;
        for attribute in attributes {
            let kind = crate::objects::KINDS[usize::from(attribute.kind)];
            let object = self.down_handle(kind, attribute.object as usize);
            let Some(key) = self.objects.get(Kind::Keyval, attribute.key).map(|o| o.lower) else { continue };
            let value = attribute.value;
            match kind {
                Kind::Communicator => lower!(library, MPI_Comm_set_attr(object, key, value)),
                Kind::Datatype => lower!(library, MPI_Type_set_attr(object, key, value)),
                _ => lower!(library, MPI_Win_set_attr(object, key, value)),
            };
        }
        self.lingering = attributes.iter().filter(|attribute| self.lingers(attribute)).cloned().collect();
    }

    /// The object that an attribute is set on, if it is one of ours.
    fn object_of(&self, attribute: &Attribute) -> Option<&Object> {
        let kind = crate::objects::KINDS[usize::from(attribute.kind)];
        self.decode(kind, attribute.object as usize).and_then(|number| self.objects.get(kind, number))
    }

    /// Whether an attribute's object is one that the program has freed and that is still needed.
    fn lingers(&self, attribute: &Attribute) -> bool {
        self.object_of(attribute).is_some_and(|object| object.references == 0 && object.users > 0)
    }

    /// The library deletes an attribute of one of its objects.
    pub fn attribute_deleted(&mut self, kind: Kind, lower: usize, value: usize) {
        let slot = crate::objects::slot(kind) as u8;
        let is_it = |a: &Attribute| {
            (a.kind, a.value) == (slot, value) && self.object_of(a).is_some_and(|object| object.lower == lower)
        };
        if let Some(gone) = self.lingering.iter().position(is_it) {
            self.lingering.remove(gone);
        }
    }
}

/// Frees a datatype, whose attributes may outlive it.
///
/// # Safety
/// A call of the gate.
pub unsafe fn free_type(call: &mut Call) -> usize {
    let mut s = session();
    // SAFETY: the caller's: the datatype.
    let handle = unsafe { read_handle(call.arg(0), handle_bytes(s.values.upper, Kind::Datatype)) };
    if !s.objects.in_use(Kind::Keyval).is_empty() {
        let slot = crate::objects::slot(Kind::Datatype) as u8;
        let mut of_it = s.attributes();
        of_it.retain(|a| (a.kind, a.object) == (slot, handle as u64) && !s.lingers(a));
        // Which of them outlive it is looked at where they are asked for.
        s.lingering.extend(of_it);
    }
    drop(s);
    // SAFETY: the caller's.
    unsafe { forward(call) }
}

/// Frees an attribute key. Attributes that are set with it stay, but nobody can ask for them any more: a cut cannot lie
/// where there are such.
///
/// # Safety
/// A call of the gate.
pub unsafe fn free_key(call: &mut Call) -> usize {
    let mut s = session();
    // SAFETY: the caller's: the key.
    let handle = unsafe { read_handle(call.arg(0), handle_bytes(s.values.upper, Kind::Keyval)) };
    let key = s.decode(Kind::Keyval, handle);
    let left: Vec<(u8, u64)> =
        s.attributes().into_iter().filter(|a| Some(a.key) == key).map(|a| (a.kind, a.object)).collect();
    s.keyless.extend(left);
    drop(s);
    // SAFETY: the caller's.
    unsafe { forward(call) }
}

impl Session {
    /// Why a cut cannot lie here: an object has an attribute whose key was freed.
    pub fn attribute_obstacle(&mut self) -> Option<String> {
        let mut left = std::mem::take(&mut self.keyless);
        left.retain(|&(slot, object)| {
            let kind = crate::objects::KINDS[usize::from(slot)];
            let object = object as usize;
            match self.decode(kind, object) {
                Some(number) => self.objects.get(kind, number).is_some_and(|o| o.references > 0 || o.users > 0),
                None => true,
            }
        });
        self.keyless = left;
        (!self.keyless.is_empty()).then(|| "an attribute is set whose key was freed".into())
    }
}
