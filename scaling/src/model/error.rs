//! What can be wrong with a model: where in which file, why, and what to do.
use pest::Span;
use pest::error::{Error, ErrorVariant};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The longest text of a formula, a LOOP program or a file that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// Something wrong at a place in a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// From which byte of the text to which.
    pub at: Range<usize>,
    /// What is wrong, and what to do about it.
    pub what: String,
}

impl Fault {
    /// A fault at a place.
    pub fn new(at: Range<usize>, what: impl Into<String>) -> Fault {
        Fault { at, what: what.into() }
    }
}

/// A text with the file it stands in: what places in it are shown with.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The file.
    pub path: PathBuf,
    /// All of the file, or the text alone where it does not stand in the file letter by letter (escapes in TOML).
    pub text: String,
    /// Where in `text` the formulae begin.
    pub offset: usize,
    /// What the formulae are: `communication of strategy "CG-Tree"`.
    pub of: String,
}

impl Source {
    /// A text that is a file of its own.
    pub fn file(path: &Path, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned(), offset: 0, of: String::new() }
    }

    /// The fault with its line and a caret under its place.
    pub fn error(&self, fault: &Fault) -> ModelError {
        let place = |at: usize| {
            let mut at = at.saturating_add(self.offset).min(self.text.len());
            while !self.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (from, to) = (place(fault.at.start), place(fault.at.end.max(fault.at.start)));
        let variant = ErrorVariant::<()>::CustomError { message: String::from("here") };
        let mut shown = String::new();
        if let Some(span) = Span::new(&self.text, from, to) {
            let error = Error::new_from_span(variant, span).with_path(&self.path.display().to_string()).to_string();
            // The last two lines say again what is wrong.
            let lines: Vec<&str> = error.lines().collect();
            shown = lines[..lines.len().saturating_sub(2)].join("\n");
        }
        let of = if self.of.is_empty() { String::new() } else { format!(" ({})", self.of) };
        ModelError::Text { path: self.path.clone(), of, what: fault.what.clone(), shown }
    }
}

/// Why a model cannot be read or evaluated.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The operating system refused.
    #[error("cannot read {path}: {source}. Check the path.")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// No such file format, a key that is missing or unknown, or a value of the wrong type.
    #[error("{path} is no {kind}{line}: {what}. docs/src/formats/model.md has the keys.", line = .line.map(|n| format!(" (line {n})")).unwrap_or_default())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// `application file` or `system file`.
        kind: &'static str,
        /// Line, from 1, where it is known.
        line: Option<usize>,
        /// What is wrong.
        what: String,
    },
    /// A value that makes no sense.
    #[error("{path}: {key} {what}")]
    Value {
        /// The file.
        path: PathBuf,
        /// Where in it: `message.transmit[3].seconds`.
        key: String,
        /// Why it makes no sense, and what to do.
        what: String,
    },
    /// Something wrong in a formula or a LOOP program.
    #[error("{path}{of}: {what}\n{shown}")]
    Text {
        /// The file.
        path: PathBuf,
        /// Which formulae of the file, in brackets.
        of: String,
        /// What is wrong.
        what: String,
        /// The line with a caret.
        shown: String,
    },
    /// A task graph that is none.
    #[error("{path}, {of}: {what}")]
    Graph {
        /// The file.
        path: PathBuf,
        /// The strategy.
        of: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// What is asked for makes no sense.
    #[error("{0}")]
    Asked(String),
    /// A machine file that cannot be read.
    #[error(transparent)]
    Machine(#[from] phasecast_transform::machine::MachineError),
    /// A trace that cannot be read.
    #[error(transparent)]
    Trace(#[from] phasecast_trace::TraceError),
    /// Points to which nothing can be fitted.
    #[error("{of}: {what}")]
    Fit {
        /// What was to be fitted.
        of: String,
        /// Why it cannot be, and what to do.
        what: String,
    },
    /// A plot that cannot be drawn.
    #[error("cannot draw the plot: {0}")]
    Plot(String),
}

impl ModelError {
    /// Whether the input is to blame (exit code 3) rather than the work (exit code 1).
    pub fn is_input(&self) -> bool {
        match self {
            ModelError::Io { source, .. } => source.kind() != std::io::ErrorKind::PermissionDenied,
            ModelError::Machine(error) => error.is_input(),
            ModelError::Trace(error) => error.is_input(),
            ModelError::Plot(_) => false,
            _ => true,
        }
    }
}

/// Reads a file of text that is not too long.
pub(crate) fn read_text(path: &Path, kind: &'static str) -> Result<String, ModelError> {
    let io = |source| ModelError::Io { path: path.to_owned(), source };
    let foreign = |what: String| ModelError::Foreign { path: path.to_owned(), kind, line: None, what };
    let metadata = std::fs::metadata(path).map_err(io)?;
    if metadata.is_dir() {
        return Err(foreign("it is a folder".into()));
    }
    // Machine files, which serve as systems, may be longer.
    if metadata.len() > 16 * MAX_BYTES as u64 {
        return Err(foreign(format!("it has {} bytes, and none is so long", metadata.len())));
    }
    String::from_utf8(std::fs::read(path).map_err(io)?).map_err(|_| foreign("it is no text".into()))
}

/// Reads TOML into a type, with the line of what is wrong.
pub(crate) fn read_toml<T: serde::de::DeserializeOwned>(
    path: &Path,
    text: &str,
    kind: &'static str,
) -> Result<T, ModelError> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let words: Vec<&str> = error.message().lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        ModelError::Foreign {
            path: path.to_owned(),
            kind,
            line: before.map(|before| before.matches('\n').count() + 1),
            what: words.join("; ").trim_end_matches('.').to_owned(),
        }
    })
}
