//! A set of images, as a folder or packed: which there are, their states, and pages of them.
use crate::fetch::{self, Piece, Prepare};
use crate::packed::PackedSet;
use crate::store::StoreFile;
use crate::{ImageError, State};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// An open set of images.
pub struct Images {
    path: PathBuf,
    form: Form,
}

enum Form {
    Folder,
    Packed(Box<PackedSet>),
}

impl Images {
    /// Opens a folder of images, or a file that ends with a packed set (one of its own, or a signature).
    ///
    /// # Errors
    /// If there is no set there, or it is damaged or of another version.
    pub fn open(path: &Path) -> Result<Images, ImageError> {
        let io = ImageError::io(path, "open");
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => return Err(io(error)),
        };
        let about = file.metadata().map_err(io)?;
        if about.is_dir() {
            return Ok(Images { path: path.into(), form: Form::Folder });
        }
        let form = Form::Packed(Box::new(PackedSet::open(path, file, about.len())?));
        Ok(Images { path: path.into(), form })
    }

    /// Opens the packed set that fills `length` bytes from `offset` of a file.
    ///
    /// # Errors
    /// If there is no set there, or it is damaged or of another version.
    pub fn at(path: &Path, offset: u64, length: u64) -> Result<Images, ImageError> {
        let file = File::open(path).map_err(ImageError::io(path, "open"))?;
        let wrong = || ImageError::corrupt(path, "the place of its images lies outside");
        let set = PackedSet::open(path, file, offset.checked_add(length).ok_or_else(wrong)?)?;
        Ok(Images { path: path.into(), form: Form::Packed(Box::new(set)) })
    }

    /// Where they are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The cuts and ranks of which there are states, in ascending order.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn list(&self) -> Result<Vec<(u32, u32)>, ImageError> {
        if let Form::Packed(set) = &self.form {
            return Ok(set.directory.states.iter().map(|entry| (entry.cut, entry.rank)).collect());
        }
        let io = || ImageError::io(&self.path, "read");
        let mut list = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(io())? {
            let name = entry.map_err(io())?.file_name();
            list.extend(name.to_str().and_then(State::parse_name));
        }
        list.sort_unstable();
        Ok(list)
    }

    /// The state of a rank at a cut.
    ///
    /// # Errors
    /// If there is none, or it is damaged.
    pub fn state(&self, cut: u32, rank: u32) -> Result<State, ImageError> {
        let (path, state) = match &self.form {
            Form::Packed(set) => (self.path.clone(), set.state(cut, rank)?),
            Form::Folder => {
                let path = self.path.join(State::file_name(cut, rank));
                let bytes = fs::read(&path).map_err(|error| match error.kind() {
                    std::io::ErrorKind::NotFound => ImageError::Missing { path: self.path.clone(), rank, cut },
                    _ => ImageError::io(&path, "read")(error),
                })?;
                let state = State::parse(&path, &bytes)?;
                if state.hashes.len() as u64 != state.data_pages() {
                    return Err(ImageError::corrupt(&path, "the hashes of its pages are missing"));
                }
                (path, state)
            }
        };
        if (state.cut, state.rank) != (cut, rank) {
            return Err(ImageError::corrupt(&path, format!("it is of cut {} and rank {}", state.cut, state.rank)));
        }
        Ok(state)
    }

    /// Reads pages of a rank, on all cores that this process may use, and checks them.
    ///
    /// # Errors
    /// If they cannot be read, are not there, or are damaged; the contents of the pieces are then undefined.
    pub fn fetch(&self, rank: u32, pieces: Vec<Piece<'_>>) -> Result<(), ImageError> {
        self.fetch_prepared(rank, pieces, &|_| {})
    }

    /// As [`Images::fetch`]; `prepare` is given each part of a piece (at most [`fetch::BLOCK`] pages) just before it is
    /// written, on the thread that does it: to let the kernel back fresh memory in one go.
    ///
    /// # Errors
    /// As [`Images::fetch`].
    pub fn fetch_prepared(&self, rank: u32, pieces: Vec<Piece<'_>>, prepare: &Prepare<'_>) -> Result<(), ImageError> {
        if let Form::Packed(set) = &self.form {
            return set.fetch(rank, pieces, prepare);
        }
        let store = StoreFile::open(&self.path, rank)?;
        let bytes = pieces.iter().map(|piece| piece.out.len()).sum();
        fetch::on_all_cores(
            fetch::groups(pieces),
            bytes,
            || (),
            |(), group| {
                group.into_iter().try_for_each(|piece| {
                    prepare(piece.out);
                    store.read(piece.page, piece.hashes, piece.out)
                })
            },
        )
    }

    /// How many bytes the set has on disk.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn bytes(&self) -> Result<u64, ImageError> {
        let io = || ImageError::io(&self.path, "read");
        if let Form::Packed(set) = &self.form {
            return Ok(set.length());
        }
        let mut bytes = 0;
        for entry in fs::read_dir(&self.path).map_err(io())? {
            bytes += entry.and_then(|entry| entry.metadata()).map_err(io())?.len();
        }
        Ok(bytes)
    }

    pub(crate) fn packed(&self) -> Option<&PackedSet> {
        match &self.form {
            Form::Packed(set) => Some(set),
            Form::Folder => None,
        }
    }
}
