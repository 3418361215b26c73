//! What calls change of objects in a way that lasts: it is logged beside what made them.
use crate::calls::MOST;
use crate::log::{hash, named, record};
use crate::objects::slot;
use crate::session::Session;
use crate::shape::{Lane, Shape};
use crate::words::{handle_bytes, read_handle};
use phasecast_abi::Kind;

/// Takes note of what a call has changed, if that lasts.
///
/// # Safety
/// As for [`made`].
pub unsafe fn changed(s: &mut Session, shape: &'static Shape, args: &[usize; MOST]) {
    let Some(change) = &shape.change else { return };
    if s.restoring {
        return;
    }
    let Some((at, kind)) = shape.lanes.iter().enumerate().find_map(|(at, lane)| match lane {
        Lane::Handle(kind) if *kind != Kind::Keyval => Some((at, *kind)),
        Lane::HandleAt(kind, _) => Some((at, *kind)),
        _ => None,
    }) else {
        return;
    };
    let bytes = handle_bytes(s.values.upper, kind);
    let handle = match shape.lanes[at] {
        // SAFETY: the caller's: the handle that was given.
        Lane::HandleAt(..) => unsafe { read_handle(args[at], bytes) },
        _ if bytes == 4 => args[at] & 0xffff_ffff,
        _ => args[at],
    };
    let changed = named(kind, handle);
    let part = match change.part {
        Part::Whole => 0,
        Part::Named => {
            // SAFETY: the caller's: a text.
            let name = unsafe { std::ffi::CStr::from_ptr(args[at + 1] as *const libc::c_char) };
            hash(name.to_bytes())
        }
        Part::At => (args[at + 1] as u64).rotate_left(17),
    };
    let key = hash(change.what.as_bytes()) ^ part;
    // Entries of an info stay as they came: it may have been duplicated in between.
    if kind != Kind::Info {
        s.log_remove_changes(changed, |record| record.key == key);
    }
    if change.undone {
        return;
    }
    // SAFETY: the caller's.
    let mut record = unsafe { record(s, shape, args) };
    // What is set on an object goes with it: it does not need it.
    let own = s.objects.decode(kind, handle).map(|number| (slot(kind) as u8, number));
    record.needs.retain(|need| Some(*need) != own);
    (record.changed, record.key) = (Some(changed), key);
    s.log_add(record);
}

/// What of an object a procedure changes.
#[derive(Debug)]
pub struct Change {
    what: &'static str,
    part: Part,
    /// From now on it is as if it had never been changed.
    undone: bool,
}

#[derive(Debug)]
enum Part {
    /// All of it.
    Whole,
    /// The entry of the name that follows the object.
    Named,
    /// What belongs to the address that follows the object.
    At,
}

/// What a procedure changes, by its name.
pub fn change_of(name: &'static str) -> Option<Change> {
    let tail = name.strip_prefix("MPI_")?;
    let (what, part) = match tail {
        "Info_set" | "Info_delete" => ("entry", Part::Named),
        "Type_commit" | "Errhandler_set" => (tail, Part::Whole),
        "Win_attach" | "Win_detach" => ("Win_attach", Part::At),
        _ if tail.contains("tach_buffer") => ("buffer", Part::Whole),
        // What one info has said another does not take back.
        _ if tail.ends_with("_set_info") => (tail, Part::At),
        _ if tail.ends_with("_set_attr") || tail == "File_set_size" => return None,
        _ if tail.starts_with("T_") || tail.starts_with("Status_") || tail.starts_with("Abi_") => return None,
        _ if tail.contains("_set_") => (tail, Part::Whole),
        _ => return None,
    };
    Some(Change { what, part, undone: tail.contains("_detach") })
}
