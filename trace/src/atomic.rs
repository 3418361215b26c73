//! Files that have their names only once they are whole: temporary name in the same folder, fsync, rename.
use crate::error::TraceError;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The name of what is to be called `path` until it is whole.
pub fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".part{}", std::process::id()));
    path.with_file_name(name)
}

/// A new file under a temporary name beside its own; removed if it is dropped unfinished.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    temporary: PathBuf,
    out: Option<BufWriter<File>>,
}

impl AtomicFile {
    /// Starts the file `path`.
    ///
    /// # Errors
    /// If there is one of that name, or none can be made there.
    pub fn create(path: &Path) -> Result<AtomicFile, TraceError> {
        AtomicFile::create_with(path, 0o666)
    }

    /// Starts the file `path`, which only its owner may read.
    ///
    /// # Errors
    /// As for [`AtomicFile::create`].
    pub fn create_private(path: &Path) -> Result<AtomicFile, TraceError> {
        AtomicFile::create_with(path, 0o600)
    }

    fn create_with(path: &Path, mode: u32) -> Result<AtomicFile, TraceError> {
        if path.symlink_metadata().is_ok() {
            return Err(TraceError::Exists { path: path.to_owned() });
        }
        AtomicFile::begin(path, mode)
    }

    fn begin(path: &Path, mode: u32) -> Result<AtomicFile, TraceError> {
        let temporary = temporary(path);
        // What a process of the same number has left when it was killed.
        let _ = fs::remove_file(&temporary);
        let file = File::options().write(true).create_new(true).mode(mode).open(&temporary);
        let file = file.map_err(TraceError::io(path, "create"))?;
        Ok(AtomicFile { path: path.to_owned(), temporary, out: Some(BufWriter::with_capacity(1 << 18, file)) })
    }

    /// Syncs the file and gives it its name.
    ///
    /// # Errors
    /// If it cannot be written; nothing of it is left then.
    pub fn finish(mut self) -> Result<(), TraceError> {
        let Some(mut out) = self.out.take() else { return Ok(()) };
        let done = out.flush().and_then(|()| out.get_ref().sync_all());
        let done = done.and_then(|()| fs::rename(&self.temporary, &self.path));
        done.map_err(|error| {
            let _ = fs::remove_file(&self.temporary);
            TraceError::io(&self.path, "write")(error)
        })
    }
}

/// Writes a file whole or not at all, in the place of one that is there.
///
/// # Errors
/// If it cannot be written; nothing of it is left then.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), TraceError> {
    let mut file = AtomicFile::begin(path, 0o666)?;
    file.write_all(bytes).map_err(TraceError::io(path, "write"))?;
    file.finish()
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.as_mut().map_or(Ok(bytes.len()), |out| out.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.out.take().is_some() {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
