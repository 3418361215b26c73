//! Files of MPI-IO. At a cut their pointers are noted; at a restart a file that is written or deleted is copied first, as far
//! as it went at the cut, and the program goes on with the copy.
use crate::calls::lower;
use crate::log::{Argument, Record};
use crate::session::Session;
use phasecast_abi::Kind;
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Files that are read and written have their content saved up to this size; larger ones are taken as they are found.
const SAVED: u64 = 64 << 20;

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
    /// What is in it, where the program may read what it wrote or deletes it; of the first rank that has it open.
    content: Option<Vec<u8>>,
}

impl Session {
    /// Access modes, together, in the program's form.
    fn modes(&self, names: &[&str]) -> usize {
        names.iter().fold(0, |bits, name| bits | self.values.above(name).unwrap_or(0))
    }

    /// The pointers of all open files. What was written is made visible before.
    pub fn file_pointers(&self) -> Vec<Pointers> {
        let library = self.library;
        let open = self.objects.in_use(Kind::File);
        for (_, file) in &open {
            lower!(library, MPI_File_sync(*file));
        }
        lower!(library, MPI_Barrier(self.private));
        let of = |&(number, file): &(u32, usize)| {
            let (mut own, mut shared, mut size) = (0i64, 0i64, 0i64);
            lower!(library, MPI_File_get_position(file, &raw mut own));
            let told = lower!(library, MPI_File_get_position_shared(file, &raw mut shared)) == 0;
            lower!(library, MPI_File_get_size(file, &raw mut size));
            let record = self.log.records.values().find(|r| made(r) == Some(number));
            let content = record.and_then(|record| self.content(record));
            Pointers { number, own, shared: told.then_some(shared), size, content }
        };
        open.iter().map(of).collect()
    }

    fn content(&self, record: &Record) -> Option<Vec<u8>> {
        let Some(Argument::Word(mode)) = record.arguments.get(2) else { return None };
        let kept = self.modes(&["MPI_MODE_RDWR", "MPI_MODE_DELETE_ON_CLOSE"]);
        if mode & kept == 0 || !self.first_of(record) {
            return None;
        }
        let path = path_of(record)?;
        let small = std::fs::metadata(&path).is_ok_and(|facts| facts.len() <= SAVED);
        if small { std::fs::read(path).ok() } else { None }
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

    /// Changes a recorded `MPI_File_open` so that the file is there, and is a copy if the program writes or deletes it.
    ///
    /// # Errors
    /// If it cannot be copied.
    pub fn reopen(&mut self, record: &mut Record, files: &[Pointers]) -> Result<(), String> {
        let Some(Argument::Word(mode)) = record.arguments.get(2).cloned() else { return Ok(()) };
        let once = self.modes(&["MPI_MODE_CREATE", "MPI_MODE_EXCL", "MPI_MODE_DELETE_ON_CLOSE"]);
        record.arguments[2] = Argument::Word(mode & !once);
        let changed = self.modes(&["MPI_MODE_WRONLY", "MPI_MODE_RDWR", "MPI_MODE_DELETE_ON_CLOSE"]);
        let (Some(from), Some(scratch)) = (path_of(record), self.scratch.clone()) else { return Ok(()) };
        if mode & changed == 0 {
            return Ok(());
        }
        let copy = scratch.join(format!("mpi-{:016x}", crate::log::hash(from.as_os_str().as_bytes())));
        if self.first_of(record) {
            let saved = made(record).and_then(|number| files.iter().find(|file| file.number == number));
            let wrap =
                |error: std::io::Error| format!("{} cannot be copied to {}: {error}", from.display(), copy.display());
            place(&from, &copy, saved).map_err(wrap)?;
        }
        let Some(Argument::Word(comm)) = record.arguments.first().cloned() else { return Ok(()) };
        let comm = self.down_handle(Kind::Communicator, comm);
        let library = self.library;
        lower!(library, MPI_Barrier(comm));
        let name = CString::new(copy.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        record.arguments[1] = Argument::Bytes(name.into_bytes_with_nul());
        Ok(())
    }
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
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(name.strip_suffix(&[0]).unwrap_or(name))))
}

/// Puts a file as it was at the cut under the name `copy`, unless another rank has done so.
fn place(from: &Path, copy: &Path, saved: Option<&Pointers>) -> std::io::Result<()> {
    let part = copy.with_extension(std::process::id().to_string());
    match saved.and_then(|saved| saved.content.as_ref()) {
        Some(content) => std::fs::write(&part, content)?,
        None if from.exists() => std::fs::copy(from, &part).map(|_| ())?,
        // A machine that never saw the file: what the program only writes need not be there.
        None => std::fs::write(&part, [])?,
    }
    let file = std::fs::OpenOptions::new().write(true).open(&part)?;
    file.set_len(saved.map_or(0, |saved| saved.size.max(0) as u64))?;
    let placed = std::fs::hard_link(&part, copy);
    std::fs::remove_file(&part)?;
    placed.or_else(|error| if error.kind() == std::io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
}
