//! Attributes at a cut: asked for then, and set again at a restart. The program's copy functions ran when a communicator
//! was duplicated, so they must not run again when it is made again. A datatype that the program has freed lives as long
//! as others are made of it, a communicator as long as requests are under way on it, and their attributes with them: the
//! delete functions run later.
use crate::calls::{MOST, lower};
use crate::dispatch::Call;
use crate::forward::{forward, forward_args};
use crate::log::{Named, named};
use crate::objects::{self, Object};
use crate::session::{Session, session};
use crate::words::{handle_bytes, read_handle, write_handle};
use phasecast_abi::Kind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// An attribute of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    /// The object.
    of: Named,
    /// Number of the key.
    key: u32,
    /// The value.
    value: usize,
    /// The library's handle of the object, in this process.
    #[serde(skip)]
    lower: usize,
}

impl Attribute {
    /// Kind and the program's handle of the object.
    fn object(&self) -> (Kind, usize) {
        (objects::KINDS[usize::from(self.of.0)], self.of.1 as usize)
    }
}

/// What is done at the end of the first call after a restart, as functions of the program may run then: objects that it has
/// freed were made again with their attributes, which the library may keep no longer than for that.
#[derive(Debug, Default, PartialEq)]
pub struct Late {
    /// Datatypes to free, by the library's handles.
    pub types: Vec<usize>,
    /// Attributes to delete: the library's handles of communicators and keys. (Freeing one takes all its ranks.)
    comms: Vec<(usize, usize)>,
}

/// Kinds of objects that have attributes, with the word in the names of their procedures.
const KINDS: [(Kind, &str); 3] = [(Kind::Communicator, "Comm"), (Kind::Datatype, "Type"), (Kind::Window, "Win")];

impl Session {
    /// All attributes that the program has set, those of objects that it has freed first.
    pub fn attributes(&mut self) -> Vec<Attribute> {
        let mut found = std::mem::take(&mut self.lingering);
        found.retain(|attribute| self.lingers(attribute));
        self.lingering = found.clone();
        for (kind, word) in KINDS {
            let objects = self.objects.in_use(kind);
            // One in the making has no handle below yet.
            let made = objects.into_iter().filter(|(_, lower)| *lower != 0);
            let mut handles: Vec<usize> = made.map(|(number, _)| self.objects.encode(kind, number)).collect();
            if kind == Kind::Communicator {
                handles
                    .extend(["MPI_COMM_WORLD", "MPI_COMM_SELF"].into_iter().filter_map(|name| self.values.above(name)));
            }
            let mut of_these = self.attributes_of(kind, word, &handles);
            // Under two handles the library may have lent the same object, of which the next library makes two.
            let is_same = |a: &Attribute, b: &Attribute| (a.of.0, a.key, a.lower) == (b.of.0, b.key, b.lower);
            of_these.retain(|attribute| !self.lingering.iter().any(|other| is_same(attribute, other)));
            found.append(&mut of_these);
        }
        found
    }

    /// Those that are set on some objects of a kind.
    fn attributes_of(&mut self, kind: Kind, word: &str, handles: &[usize]) -> Vec<Attribute> {
        let library = self.library;
        let mut found = Vec::new();
        for (key, below) in self.keys_of(word) {
            for &object in handles {
                let lower = self.down_handle(kind, object);
                let (mut value, mut flag) = (0usize, 0i32);
                let (value_at, flag_at) = (&raw mut value, &raw mut flag);
                match kind {
                    Kind::Communicator => lower!(library, MPI_Comm_get_attr(lower, below, value_at, flag_at)),
                    Kind::Datatype => lower!(library, MPI_Type_get_attr(lower, below, value_at, flag_at)),
                    _ => lower!(library, MPI_Win_get_attr(lower, below, value_at, flag_at)),
                };
                if flag != 0 {
                    found.push(Attribute { of: named(kind, object), key, value, lower });
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
            let (kind, object) = attribute.object();
            let object = self.down_handle(kind, object);
            let Some(key) = self.objects.get(Kind::Keyval, attribute.key).map(|o| o.lower) else { continue };
            let value = attribute.value;
            match kind {
                Kind::Communicator => lower!(library, MPI_Comm_set_attr(object, key, value)),
                Kind::Datatype => lower!(library, MPI_Type_set_attr(object, key, value)),
                _ => lower!(library, MPI_Win_set_attr(object, key, value)),
            };
        }
        let lingering: Vec<Attribute> =
            attributes.iter().filter(|attribute| self.lingers(attribute)).cloned().collect();
        for mut attribute in lingering {
            attribute.lower = self.object_of(&attribute).map_or(0, |object| object.lower);
            if attribute.object().0 == Kind::Communicator
                && let Some(key) = self.objects.get(Kind::Keyval, attribute.key)
            {
                self.late.comms.push((attribute.lower, key.lower));
            }
            self.lingering.push(attribute);
        }
    }

    /// The object that an attribute is set on, if it is one of ours.
    fn object_of(&self, attribute: &Attribute) -> Option<&Object> {
        let (kind, handle) = attribute.object();
        self.objects.decode(kind, handle).and_then(|number| self.objects.get(kind, number))
    }

    /// Whether an attribute's object is one that the program has freed and that is still needed. A communicator can be
    /// needed by what we do not know of: buffered messages on it.
    fn lingers(&self, attribute: &Attribute) -> bool {
        let is_comm = attribute.object().0 == Kind::Communicator;
        self.object_of(attribute).is_some_and(|object| object.references == 0 && (object.users > 0 || is_comm))
    }

    /// An object is no more, and so are its attributes; they may be those of another one still, as a library may have
    /// lent the program the same object under two handles.
    pub fn forget_attributes(&mut self, kind: Kind, index: u32) {
        let gone = named(kind, self.objects.encode(kind, index));
        self.lingering.retain(|attribute| attribute.of != gone);
    }

    /// Whether an object that the program has freed has attributes still.
    pub fn has_lingering(&self, kind: Kind, number: u32) -> bool {
        let object = named(kind, self.objects.encode(kind, number));
        self.lingering.iter().any(|attribute| attribute.of == object)
    }

    /// The library deletes an attribute of one of its objects.
    pub fn attribute_deleted(&mut self, kind: Kind, lower: usize, value: usize) {
        let is_it = |a: &Attribute| (a.object().0, a.value, a.lower) == (kind, value, lower);
        if let Some(gone) = self.lingering.iter().position(is_it) {
            self.lingering.remove(gone);
        }
    }
}

/// Frees a datatype or a communicator, whose attributes may outlive it.
///
/// # Safety
/// A call of the gate.
pub unsafe fn free_object(call: &mut Call) -> usize {
    let mut s = session();
    let (kind, word) = KINDS[usize::from(call.shape.procedure.name == "MPI_Type_free")];
    // SAFETY: the caller's: the object.
    let handle = unsafe { read_handle(call.arg(0), handle_bytes(s.values.upper, kind)) };
    let number = s.objects.decode(kind, handle);
    if number.and_then(|number| s.objects.get(kind, number)).is_some_and(|object| object.references == 1) {
        // Which of them outlive it is looked at where they are asked for.
        let of_it = s.attributes_of(kind, word, &[handle]);
        s.lingering.extend(of_it);
    }
    drop(s);
    // SAFETY: the caller's.
    unsafe { forward(call) }
}

/// Frees and deletes what is [`Late`].
pub fn catch_up() {
    let (library, late) = {
        let mut s = session();
        (s.library, std::mem::take(&mut s.late))
    };
    for (comm, key) in late.comms {
        lower!(library, MPI_Comm_delete_attr(comm, key));
    }
    for lower in late.types {
        let mut handle = lower;
        lower!(library, MPI_Type_free(&raw mut handle));
        let mut s = session();
        // The program may have asked for it again.
        if let Some(number) = s.objects.by_lower(Kind::Datatype, lower)
            && s.objects.get(Kind::Datatype, number).is_some_and(|object| object.references == 0)
        {
            s.objects.forget_lower(Kind::Datatype, number);
        }
    }
}

/// Frees an attribute key. As long as attributes are set with it, it stays below, as MPI has it: the program may still name
/// it to delete one of them, and a restart sets them with it again.
///
/// # Safety
/// A call of the gate.
pub unsafe fn free_key(call: &mut Call) -> usize {
    let mut s = session();
    let bytes = handle_bytes(s.values.upper, Kind::Keyval);
    // SAFETY: the caller's: the key.
    let handle = unsafe { read_handle(call.arg(0), bytes) };
    let set: BTreeSet<u32> = s.attributes().into_iter().map(|attribute| attribute.key).collect();
    let idle: Vec<(usize, u32)> = s.freed_keys.extract_if(.., |(_, key)| !set.contains(key)).collect();
    let key = s.objects.decode(Kind::Keyval, handle).filter(|key| set.contains(key));
    if let Some(key) = key {
        s.freed_keys.push((call.index, key));
        let invalid = s.up_null(Kind::Keyval, 0);
        // SAFETY: as above.
        unsafe { write_handle(call.arg(0), bytes, invalid) };
    }
    let shapes = s.shapes;
    let idle: Vec<(usize, usize)> =
        idle.into_iter().map(|(index, key)| (index, s.objects.encode(Kind::Keyval, key))).collect();
    drop(s);
    for (index, mut handle) in idle {
        let mut args = [0; MOST];
        args[0] = &raw mut handle as usize;
        // SAFETY: the call that the program made when it freed this key.
        unsafe { forward_args(index, &shapes[index], &args) };
    }
    // SAFETY: the caller's.
    if key.is_some() { 0 } else { unsafe { forward(call) } }
}
