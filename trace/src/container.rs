//! The single-file container of phases (`.phases`) and signatures (`.phc`): a readable manifest, then named sections.
//!
//! ```text
//! magic "PHASECAST\n" | kind, 14 bytes, padded with spaces | "\n" | version u16 | zero u16
//! frame Section: name length u16, name, content       (the first is "manifest", JSON, stored plain)
//! ...
//! frame End: number of sections u32
//! ```
use crate::atomic;
use crate::error::TraceError;
use crate::frame::{Frame, HEAD, Kind, MAX_STORED};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The first bytes of every container.
pub const MAGIC: &[u8; 10] = b"PHASECAST\n";
/// Where the first section starts.
pub const START: usize = 10 + 15 + 4;
const MANIFEST: &str = "manifest";
/// The most bytes of all sections before compression: a bound on what hostile input can make a reader allocate.
const MAX_SECTIONS: u64 = 1 << 31;

/// What a container holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its kind, at most 14 ASCII characters: `phases`, `signature`.
    pub kind: String,
    /// Version of the kind's format.
    pub version: u16,
    /// The manifest: JSON.
    pub manifest: String,
    /// Further sections by name, in order.
    pub sections: Vec<(String, Vec<u8>)>,
}

impl Container {
    /// A section by its name.
    pub fn section(&self, name: &str) -> Option<&[u8]> {
        self.sections.iter().find(|(n, _)| n == name).map(|(_, content)| content.as_slice())
    }

    /// Whether `path` starts like a container, and of which kind.
    pub fn kind_of(path: &Path) -> Option<String> {
        let mut head = [0; START];
        File::open(path).ok()?.read_exact(&mut head).ok()?;
        (head[..10] == *MAGIC).then(|| String::from_utf8_lossy(&head[10..24]).trim_end().to_string())
    }

    /// Writes the file: under a temporary name, synced, then renamed. With `replace`, one of that name is replaced.
    ///
    /// # Errors
    /// If there is a file of that name (without `replace`), it would be too long to be read, or it cannot be written.
    pub fn write(&self, path: &Path, replace: bool) -> Result<(), TraceError> {
        if !replace && path.exists() {
            return Err(TraceError::Exists { path: path.to_owned() });
        }
        let bytes = self.to_bytes().map_err(|what| TraceError::io(path, "write")(io::Error::other(what)))?;
        atomic::write(path, &bytes)
    }

    /// Refuses what is too long to be read again.
    ///
    /// # Errors
    /// A sentence if a section is too long, or all are.
    pub fn check(&self) -> Result<(), String> {
        let named = self.sections.iter().map(|(name, content)| (name.as_str(), content.len()));
        let mut total = 0;
        for (name, content) in named.chain([(MANIFEST, self.manifest.len())]) {
            let bytes = 2 + name.len() as u64 + content as u64;
            total += bytes;
            if bytes > u64::from(MAX_STORED) || total > MAX_SECTIONS {
                return Err(format!("it is too long: its section `{name}` has {content} bytes"));
            }
        }
        Ok(())
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// As of [`Container::check`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        self.check()?;
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(format!("{:14.14}\n", self.kind).as_bytes());
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&[0, 0]);
        section(&mut out, MANIFEST, self.manifest.as_bytes(), None);
        for (name, content) in &self.sections {
            section(&mut out, name, content, Some(crate::writer::LEVEL));
        }
        let count = (self.sections.len() as u32 + 1).to_le_bytes();
        out.extend_from_slice(&Frame::new(Kind::End).with_payload(&count, None));
        Ok(out)
    }

    /// Reads a container of this kind.
    ///
    /// # Errors
    /// If it is something else, of another version than `supported`, cut off or damaged.
    pub fn read(path: &Path, kind: &str, supported: u16) -> Result<Container, TraceError> {
        let bytes = fs::read(path).map_err(TraceError::io(path, "read"))?;
        let container = Container::parse(path, &bytes)?;
        if container.kind != kind {
            let found = format!("it holds {}", container.kind);
            let expected = if kind == "signature" { "signature" } else { "file of phases" };
            return Err(TraceError::Foreign { path: path.to_owned(), expected, found });
        }
        if container.version != supported {
            return Err(TraceError::Version { path: path.to_owned(), found: container.version, supported });
        }
        Ok(container)
    }

    /// Reads a container of any kind from its bytes; `path` is for messages.
    ///
    /// # Errors
    /// If it is no container, cut off or damaged.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Container, TraceError> {
        if bytes.len() < START || bytes[..10] != *MAGIC {
            let found = if bytes.is_empty() { "it is empty" } else { "its first bytes are others" };
            return Err(TraceError::Foreign { path: path.to_owned(), expected: "file", found: found.into() });
        }
        if !bytes[10..24].iter().all(|byte| matches!(byte, b' '..=b'~')) || bytes[24] != b'\n' {
            return Err(TraceError::corrupt(path, 10, "it does not say of which kind it is"));
        }
        let kind = String::from_utf8_lossy(&bytes[10..24]).trim_end().to_string();
        let version = u16::from_le_bytes([bytes[25], bytes[26]]);
        if claimed(bytes) > MAX_SECTIONS {
            let what = format!("its sections claim more than {MAX_SECTIONS} bytes");
            return Err(TraceError::corrupt(path, START as u64, what));
        }
        let mut sections = Vec::new();
        let mut at = START;
        loop {
            let damaged = |what: &str| TraceError::corrupt(path, at as u64, what);
            let rest = bytes.get(at..).unwrap_or_default();
            let head = rest.first_chunk::<HEAD>().ok_or_else(|| damaged("it is cut off"))?;
            let frame = Frame::parse(head).map_err(|what| damaged(&what))?;
            let stored = rest.get(HEAD..HEAD + frame.stored_len as usize).ok_or_else(|| damaged("it is cut off"))?;
            let payload = frame.open(stored.to_vec()).map_err(|what| damaged(&what))?;
            at += HEAD + stored.len();
            if frame.kind == Kind::End as u8 {
                let complete = payload == (sections.len() as u32).to_le_bytes() && at == bytes.len();
                if !complete {
                    return Err(TraceError::corrupt(path, at as u64, "its end does not fit its sections"));
                }
                break;
            }
            let damaged = |what: &str| TraceError::corrupt(path, at as u64, what);
            let length = payload.first_chunk::<2>().map(|l| u16::from_le_bytes(*l) as usize);
            let length = length.ok_or_else(|| damaged("a section has no name"))?;
            let name = payload.get(2..2 + length).ok_or_else(|| damaged("a section's name is cut off"))?;
            let name = String::from_utf8(name.to_vec()).map_err(|_| damaged("a section's name is no text"))?;
            sections.push((name, payload[2 + length..].to_vec()));
        }
        let manifest = sections.first().filter(|(name, _)| name == MANIFEST).map(|(_, json)| json.clone());
        let manifest = manifest.and_then(|json| String::from_utf8(json).ok());
        let manifest = manifest.ok_or_else(|| TraceError::corrupt(path, START as u64, "it has no manifest"))?;
        Ok(Container { kind, version, manifest, sections: sections.split_off(1) })
    }
}

/// Bytes that the sections have by what the heads of their frames say, as far as there are any.
fn claimed(bytes: &[u8]) -> u64 {
    let (mut at, mut sum) = (START, 0);
    while let Some(Ok(frame)) = bytes.get(at..).and_then(|rest| rest.first_chunk::<HEAD>()).map(Frame::parse) {
        sum += u64::from(frame.raw_len);
        at += HEAD + frame.stored_len as usize;
    }
    sum
}

fn section(out: &mut Vec<u8>, name: &str, content: &[u8], level: Option<i32>) {
    let mut payload = (name.len() as u16).to_le_bytes().to_vec();
    payload.extend_from_slice(name.as_bytes());
    payload.extend_from_slice(content);
    out.extend_from_slice(&Frame::new(Kind::Section).with_payload(&payload, level));
}
