//! What calls change of objects in a way that lasts: it is logged beside what made them.
use crate::calls::MOST;
use crate::log::{hash, record};
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
    let changed = (slot(kind) as u8, handle as u64);
    let key = match change {
        Change::Whole(what) => hash(what.as_bytes()),
        Change::Named(what) => {
            // SAFETY: the caller's: a text.
            let name = unsafe { std::ffi::CStr::from_ptr(args[at + 1] as *const libc::c_char) };
            hash(what.as_bytes()) ^ hash(name.to_bytes())
        }
        Change::At(what) | Change::Undone(what) => hash(what.as_bytes()) ^ (args[at + 1] as u64).rotate_left(17),
    };
    // Entries of an info stay as they came: it may have been duplicated in between.
    if kind != Kind::Info {
        s.log_remove_changes(changed, |record| record.key == key);
    }
    if matches!(change, Change::Undone(_)) {
        return;
    }
    // SAFETY: the caller's.
    let mut record = unsafe { record(s, shape, args) };
    // What is set on an object goes with it: it does not need it.
    let own = s.decode(kind, handle).map(|number| (slot(kind) as u8, number));
    record.needs.retain(|need| Some(*need) != own);
    (record.changed, record.key) = (Some(changed), key);
    s.log_add(record);
}

/// What of an object a procedure changes.
#[derive(Debug)]
pub enum Change {
    /// One thing.
    Whole(&'static str),
    /// The entry of the name that follows the object.
    Named(&'static str),
    /// What belongs to the address that follows the object.
    At(&'static str),
    /// The same is as if it had never been.
    Undone(&'static str),
}

/// What a procedure changes, by its name.
pub fn change_of(name: &'static str) -> Option<Change> {
    let tail = name.strip_prefix("MPI_")?;
    Some(match tail {
        "Info_set" | "Info_delete" => Change::Named("entry"),
        "Type_commit" | "Errhandler_set" => Change::Whole(tail),
        "Win_attach" => Change::At(tail),
        // What one info has said another does not take back.
        _ if tail.ends_with("_set_info") => Change::At(tail),
        "Win_detach" => Change::Undone("Win_attach"),
        _ if tail.ends_with("_set_attr") || tail == "File_set_size" => return None,
        _ if tail.starts_with("T_") || tail.starts_with("Status_") || tail.starts_with("Abi_") => return None,
        _ if tail.contains("_set_") => Change::Whole(tail),
        _ => return None,
    })
}
