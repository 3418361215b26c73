//! Files of MPI-IO. What is opened for writing is noted for the images, as what is opened by system calls is, and at a cut the
//! pointers are. At a restart a file that is written or deleted is copied first, as far as it went at the cut, and the program
//! goes on with the copy; so does what it opens or deletes later.
use crate::calls::{MOST, lower};
use crate::dispatch::Call;
use crate::forward;
use crate::log::{Argument, Record};
use crate::session::{Session, session};
use phasecast_abi::{Abi, Kind};
use phasecast_process::apart;
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// An open file at a cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pointers {
    /// Number of the virtual object.
    number: u32,
    /// The individual pointer, in units of the view.
    own: i64,
    /// The shared one, if the library tells it.
    shared: Option<i64>,
    /// Size in bytes.
    size: i64,
}

impl Session {
    /// Access modes, together, in the program's form.
    fn modes(&self, names: &[&str]) -> usize {
        names.iter().fold(0, |bits, name| bits | self.values.above(name).unwrap_or(0))
    }

    /// The pointers of all open files. What was written is made visible before. What a library refuses of this (to sync a
    /// file that is only read, a shared pointer) is no error of the program, whose error handlers do not hear of it.
    pub fn file_pointers(&self) -> Vec<Pointers> {
        let library = self.library;
        let open = self.objects.in_use(Kind::File);
        let quiet = library.constant("MPI_ERRORS_RETURN").unwrap_or(0);
        let mut handlers = vec![0usize; open.len()];
        for ((_, file), handler) in open.iter().zip(&mut handlers) {
            lower!(library, MPI_File_get_errhandler(*file, &raw mut *handler));
            lower!(library, MPI_File_set_errhandler(*file, quiet));
            lower!(library, MPI_File_sync(*file));
        }
        lower!(library, MPI_Barrier(self.private));
        let of = |&(number, file): &(u32, usize)| {
            let (mut own, mut shared, mut size) = (0i64, 0i64, 0i64);
            lower!(library, MPI_File_get_position(file, &raw mut own));
            let told = lower!(library, MPI_File_get_position_shared(file, &raw mut shared)) == 0;
            lower!(library, MPI_File_get_size(file, &raw mut size));
            Pointers { number, own, shared: told.then_some(shared), size }
        };
        let pointers = open.iter().map(of).collect();
        for ((_, file), mut handler) in open.into_iter().zip(handlers) {
            lower!(library, MPI_File_set_errhandler(file, handler));
            lower!(library, MPI_Errhandler_free(&raw mut handler));
        }
        pointers
    }

    /// The open files that the program may read or deletes, of which this rank is the first.
    pub fn files_read(&self) -> Vec<PathBuf> {
        let kept = self.modes(&["MPI_MODE_RDWR", "MPI_MODE_DELETE_ON_CLOSE"]);
        let read = |record: &&Record| {
            let mode = matches!(record.arguments.get(2), Some(Argument::Word(mode)) if mode & kept != 0);
            mode && made(record).is_some() && self.first_of(record)
        };
        self.log.records.values().filter(read).filter_map(path_of).collect()
    }

    /// Whether this rank is the first of those that have opened the file.
    fn first_of(&self, record: &Record) -> bool {
        let Some(Argument::Word(comm)) = record.arguments.first() else { return false };
        let comm = comm & self.values.upper.layout().handle_mask as usize;
        self.comms.get(&comm).is_some_and(|comm| comm.rank == 0)
    }

    /// Sets the pointers of the files that were opened again.
    pub fn set_file_pointers(&mut self, files: &[Pointers]) {
        let library = self.library;
        let set = library.constant("MPI_SEEK_SET").unwrap_or(0);
        for file in files {
            let Some(handle) = self.objects.get(Kind::File, file.number).map(|object| object.lower) else { continue };
            lower!(library, MPI_File_seek(handle, file.own, set));
            if let Some(shared) = file.shared {
                lower!(library, MPI_File_seek_shared(handle, shared, set));
            }
        }
    }

    /// The modes by which a file is changed.
    fn changing(&self) -> usize {
        self.modes(&["MPI_MODE_WRONLY", "MPI_MODE_RDWR", "MPI_MODE_DELETE_ON_CLOSE"])
    }

    /// Changes a recorded `MPI_File_open` so that the file is there, and is a copy if the program writes or deletes it.
    ///
    /// # Errors
    /// If it cannot be copied.
    pub fn reopen(&mut self, record: &mut Record, files: &[Pointers]) -> Result<(), String> {
        let (Some(Argument::Word(mode)), Some(from)) = (record.arguments.get(2).cloned(), path_of(record)) else {
            return Ok(());
        };
        record.arguments[2] = Argument::Word(mode & !self.modes(&["MPI_MODE_EXCL"]));
        if mode & self.changing() != 0 && self.first_of(record) {
            let saved = made(record).and_then(|number| files.iter().find(|file| file.number == number));
            let size = saved.map_or(0, |saved| saved.size.max(0) as u64);
            let read = mode & self.modes(&["MPI_MODE_RDWR"]) != 0;
            let there = if read { apart::as_long(&from, size).map(|_| ()) } else { Ok(()) };
            let copied = there.and_then(|()| apart::copy(&from, size, None));
            copied.map_err(|error| format!("{} cannot be copied: {error}", from.display()))?;
        }
        let Some(Argument::Word(comm)) = record.arguments.first().cloned() else { return Ok(()) };
        let own = CString::new(from.as_os_str().as_bytes()).ok().and_then(|name| self.for_library(&name));
        if let Some(name) = self.kept_apart(comm, from, mode).or(own) {
            record.arguments[1] = Argument::Bytes(name.into_bytes_with_nul());
        }
        Ok(())
    }

    /// The name by which the library must be given a file, whose own this is, if it cannot have what a program gave it: ROMIO
    /// takes what stands before a colon for a kind of file system, Open MPI knows none.
    fn for_library(&self, name: &CStr) -> Option<CString> {
        if self.values.lower == Abi::OpenMpi {
            return Some(name.to_owned());
        }
        let colon = name.to_bytes().contains(&b':');
        colon.then(|| CString::new([b"ufs:", name.to_bytes()].concat()).ok()).flatten()
    }

    /// The file that all ranks of a communicator are to open in place of the one that the program names: the first chooses.
    fn kept_apart(&mut self, comm: usize, path: PathBuf, mode: usize) -> Option<CString> {
        let ours = self.comm(comm)?.rank == 0;
        let mut name = vec![0u8; libc::PATH_MAX as usize];
        if ours {
            let has = |name| mode & self.modes(&[name]) != 0;
            let removed = has("MPI_MODE_DELETE_ON_CLOSE");
            let flags = [
                (has("MPI_MODE_WRONLY"), libc::O_WRONLY),
                (has("MPI_MODE_RDWR") || removed, libc::O_RDWR),
                (has("MPI_MODE_CREATE"), libc::O_CREAT),
                (has("MPI_MODE_EXCL"), libc::O_EXCL),
            ];
            let flags = flags.iter().filter(|(set, _)| *set).fold(0, |flags, (_, flag)| flags | flag);
            let chosen = apart::opened(&path, flags, removed).unwrap_or_else(|error| {
                eprintln!("phasecast: {} cannot be copied, so that it is not opened: {error}", path.display());
                apart::copy_of(&path).map(|copy| copy.join("not copied"))
            });
            let chosen = chosen.map(PathBuf::into_os_string).unwrap_or_default();
            let fits = chosen.len().min(name.len() - 1);
            name[..fits].copy_from_slice(&chosen.as_bytes()[..fits]);
        }
        let (library, byte) = (self.library, self.library.constant("MPI_BYTE").unwrap_or(0));
        let below = self.down_handle(Kind::Communicator, comm);
        lower!(library, MPI_Bcast(name.as_mut_ptr(), name.len(), byte, 0, below));
        let chosen = CStr::from_bytes_until_nul(&name).ok().filter(|name| !name.is_empty())?;
        Some(self.for_library(chosen).unwrap_or_else(|| chosen.to_owned()))
    }
}

/// A file is opened: an event. After a restart it is one that is kept apart from the original, if the program may change it.
///
/// # Safety
/// A call of the gate.
pub unsafe fn open(call: &mut Call) -> usize {
    let mut s = session();
    // SAFETY: the caller's.
    let path = unsafe { named(call, 1) };
    let (comm, mode) = (call.arg(0), call.arg(2));
    let (writes, first) = (mode & s.changing() != 0, s.comm(comm).is_some_and(|comm| comm.rank == 0));
    let name = if s.replayed { s.kept_apart(comm, path.clone(), mode) } else { None };
    drop(s);
    let made = first && writes && apart::lacks(&path);
    // SAFETY: the caller's.
    let result = unsafe { renamed(call, 1, name) };
    if result as i32 == 0 {
        session().event();
        if first {
            apart::note(&path, writes, made);
        }
    }
    result
}

/// A file is deleted; after a restart, what stands for it.
///
/// # Safety
/// A call of the gate.
pub unsafe fn delete(call: &mut Call) -> usize {
    if !session().replayed {
        // SAFETY: the caller's.
        return unsafe { forward::forward(call) };
    }
    // SAFETY: the caller's.
    let path = unsafe { named(call, 0) };
    if apart::remove(&path) {
        return 0;
    }
    // If it is kept apart, the library says that there is no such file.
    let name = apart::copy_of(&path).and_then(|copy| CString::new(copy.into_os_string().into_vec()).ok());
    let name = name.map(|name| session().for_library(&name).unwrap_or(name));
    // SAFETY: the caller's.
    unsafe { renamed(call, 0, name) }
}

/// The path that argument `at` of a call names.
///
/// # Safety
/// A call of the gate, with a text there.
unsafe fn named(call: &Call, at: usize) -> PathBuf {
    // SAFETY: the caller's.
    plain(unsafe { CStr::from_ptr(call.arg(at) as *const c_char) }.to_bytes())
}

/// Passes a call on with another name in argument `at`, if there is one.
///
/// # Safety
/// A call of the gate.
unsafe fn renamed(call: &mut Call, at: usize, name: Option<CString>) -> usize {
    let shape = call.shape;
    let args = forward::arguments(call, shape.lanes.len());
    let rename = |below: &mut [usize; MOST]| {
        if let (Some(argument), Some(name)) = (below.get_mut(at), &name) {
            *argument = name.as_ptr() as usize;
        }
    };
    // SAFETY: the caller's; the name lives through the call.
    unsafe { forward::forward_with(call.index, shape, &args, rename) }
}

/// Whether a procedure begins or ends a split collective of a file.
pub fn splits(name: &str) -> bool {
    let plain = name.strip_suffix("_c").unwrap_or(name);
    name.starts_with("MPI_File_") && (plain.ends_with("_begin") || plain.ends_with("_end"))
}

impl Session {
    /// A split collective of a file has begun or ended.
    pub fn file_splits(&mut self, file: usize, begun: bool) {
        self.split.retain(|&other| other != file);
        self.split.extend(begun.then_some(file));
    }

    /// Why a cut cannot lie here: what a split collective has begun, only the same library can end.
    pub fn file_obstacle(&self) -> Option<String> {
        (!self.split.is_empty()).then(|| "a split collective of a file is not ended".into())
    }
}

fn made(record: &Record) -> Option<u32> {
    let (_, kind, number) = record.made?;
    (crate::objects::KINDS[usize::from(kind)] == Kind::File).then_some(number)
}

fn path_of(record: &Record) -> Option<PathBuf> {
    let Some(Argument::Bytes(name)) = record.arguments.get(1) else { return None };
    Some(plain(name.strip_suffix(&[0]).unwrap_or(name)))
}

/// A file's name without the kind of file system that ROMIO lets stand in front of it, as in `ufs:data`.
fn plain(name: &[u8]) -> PathBuf {
    let path = |name: &[u8]| PathBuf::from(OsStr::from_bytes(name));
    match name.iter().position(|byte| *byte == b':') {
        Some(at) if at > 1 && name[..at].iter().all(u8::is_ascii_alphanumeric) && !path(name).exists() => {
            path(&name[at + 1..])
        }
        _ => path(name),
    }
}
