//! A file that is written piece by piece and has its name only once it is whole.
use crate::error::TraceError;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

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
        if path.exists() {
            return Err(TraceError::Exists { path: path.to_owned() });
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".part{}", std::process::id()));
        let temporary = path.with_file_name(name);
        let file = File::create(&temporary).map_err(TraceError::io(path, "create"))?;
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
