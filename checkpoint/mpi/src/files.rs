//! Files of MPI-IO. At a cut their pointers are noted; at a restart a file that is written is copied first, as far as it
//! went at the cut, and the program goes on with the copy.
use crate::calls::lower;
use crate::log::{Argument, Record};
use crate::session::Session;
use phasecast_abi::Kind;
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

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
    /// The pointers of all open files. What was written is made visible before.
    pub fn file_pointers(&self) -> Vec<Pointers> {
        let library = self.library;
        let open = self.objects.all().filter(|(kind, _, object)| *kind == Kind::File && object.references > 0);
        open.map(|(_, number, object)| {
            let (mut own, mut shared, mut size) = (0i64, 0i64, 0i64);
            let file = object.lower;
            lower!(library, MPI_File_sync(file));
            lower!(library, MPI_File_get_position(file, &raw mut own));
            let told = lower!(library, MPI_File_get_position_shared(file, &raw mut shared)) == 0;
            lower!(library, MPI_File_get_size(file, &raw mut size));
            Pointers { number, own, shared: told.then_some(shared), size }
        })
        .collect()
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

    /// Changes a recorded `MPI_File_open` so that the file is there, and is a copy if the program writes it.
    ///
    /// # Errors
    /// If it cannot be copied.
    pub fn reopen(&self, record: &mut Record, files: &[Pointers]) -> Result<(), String> {
        let bit = |name| {
            phasecast_abi::constant(name).map_or(0, |c| match c.value(self.values.upper) {
                phasecast_abi::Value::Number(bit) => bit as usize,
                _ => 0,
            })
        };
        let Some((_, _, number)) = record.made else { return Ok(()) };
        let Some(Argument::Word(mode)) = record.arguments.get(2).cloned() else { return Ok(()) };
        let once = bit("MPI_MODE_CREATE") | bit("MPI_MODE_EXCL") | bit("MPI_MODE_DELETE_ON_CLOSE");
        record.arguments[2] = Argument::Word(mode & !once);
        let writes = mode & (bit("MPI_MODE_WRONLY") | bit("MPI_MODE_RDWR")) != 0;
        let (Some(Argument::Bytes(name)), Some(scratch)) = (record.arguments.get(1).cloned(), &self.scratch) else {
            return Ok(());
        };
        if !writes {
            return Ok(());
        }
        let size = files.iter().find(|file| file.number == number).map_or(0, |file| file.size);
        let from = Path::new(std::ffi::OsStr::from_bytes(name.strip_suffix(&[0]).unwrap_or(&name)));
        let copy = scratch.join(format!("mpi-file-{number}"));
        if self.place.0 == 0 {
            let wrap =
                |error: std::io::Error| format!("{} cannot be copied to {}: {error}", from.display(), copy.display());
            std::fs::copy(from, &copy).map_err(wrap)?;
            let file = std::fs::OpenOptions::new().write(true).open(&copy).map_err(wrap)?;
            file.set_len(size.max(0) as u64).map_err(wrap)?;
        }
        let (library, private) = (self.library, self.private);
        lower!(library, MPI_Barrier(private));
        let name = CString::new(copy.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        record.arguments[1] = Argument::Bytes(name.into_bytes_with_nul());
        Ok(())
    }
}
