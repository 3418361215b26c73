//! Machine files: TOML read back with every number checked, as a file may come from anywhere.
use super::{Costs, FORMAT, Kernel, Link, Machine};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The longest file that is read as a machine.
const MAX_BYTES: u64 = 16 << 20;
/// The longest time of a single call or pass that is believed, in seconds.
const MAX_SECONDS: f64 = 1e6;
/// A longer message may take less time than a shorter one, where the library changes its protocol between them, but not
/// less than this share of it.
const LEAST_SHARE: f64 = 0.5;

/// Why a file cannot be read as a machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The operating system refused.
    #[error("cannot read the machine file {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// No TOML, a key that is missing or unknown, or a value of the wrong type.
    #[error("{path} is not a machine file{at}: {what}. Measure one with `phasecast characterize -n 2 -o FILE`, or mend this one by hand.", at = line(*.at))]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Line, from 1, where it is known.
        at: Option<usize>,
        /// What is wrong, in the words of the reader.
        what: String,
    },
    /// Written by another version.
    #[error(
        "{path} has format {found} of machine files, this phasecast reads format {FORMAT}. Measure the machine anew with `phasecast characterize`, or use the phasecast that wrote it."
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
    },
    /// A value that no machine can have.
    #[error(
        "{path}: {key} {what}. Measure the machine anew with `phasecast characterize`, or mend that value by hand."
    )]
    Value {
        /// The file.
        path: PathBuf,
        /// Where in it: `links[0].send[3].seconds`.
        key: String,
        /// Why it is impossible.
        what: String,
    },
}

fn line(at: Option<usize>) -> String {
    at.map(|line| format!(" (line {line})")).unwrap_or_default()
}

impl MachineError {
    /// Whether the input is to blame (exit code 3) rather than the work (exit code 1).
    pub fn is_input(&self) -> bool {
        match self {
            MachineError::Io { source, .. } => {
                matches!(source.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory)
            }
            _ => true,
        }
    }
}

impl Machine {
    /// Reads a machine from a file.
    ///
    /// # Errors
    /// If the file cannot be read, is no machine file, or holds values that no machine can have.
    pub fn read(path: &Path) -> Result<Machine, MachineError> {
        let io = |source| MachineError::Io { path: path.to_owned(), source };
        let foreign = |what: String| MachineError::Foreign { path: path.to_owned(), at: None, what };
        let metadata = fs::metadata(path).map_err(io)?;
        if metadata.is_dir() {
            return Err(foreign("it is a folder".into()));
        }
        if metadata.len() > MAX_BYTES {
            return Err(foreign(format!("it has {} bytes, and none is longer than {MAX_BYTES}", metadata.len())));
        }
        Machine::parse(path, &fs::read(path).map_err(io)?)
    }

    /// Reads a machine from the bytes of a file; `path` is for messages.
    ///
    /// # Errors
    /// As [`Machine::read`].
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Machine, MachineError> {
        let foreign = |what: String, at| MachineError::Foreign { path: path.to_owned(), at, what };
        let text = std::str::from_utf8(bytes).map_err(|_| foreign("it is no text".into(), None))?;
        let refused = |error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            foreign(one_line(error.message()), before.map(|before| before.matches('\n').count() + 1))
        };
        // The format first: another one may have other keys.
        let table: toml::Table = toml::from_str(text).map_err(refused)?;
        match table.get("format").map(|format| format.as_integer().ok_or(format)) {
            None => return Err(foreign("it has no key `format`".into(), None)),
            Some(Err(_)) => return Err(foreign("its `format` is no whole number".into(), None)),
            Some(Ok(found)) if found != i64::from(FORMAT) => {
                return Err(MachineError::Format { path: path.to_owned(), found });
            }
            Some(Ok(_)) => {}
        }
        let machine: Machine = toml::from_str(text).map_err(refused)?;
        match machine.check() {
            Ok(()) => Ok(machine),
            Err((key, what)) => Err(MachineError::Value { path: path.to_owned(), key, what }),
        }
    }

    /// Whether a machine can have these values; else the key and what is wrong with its value.
    ///
    /// # Errors
    /// If not.
    pub fn check(&self) -> Result<(), (String, String)> {
        if let Some(life) = &self.life {
            let times = [
                ("launch_s", life.launch_s),
                ("init_s", life.init_s),
                ("finalize_s", life.finalize_s),
                ("spread_s", life.spread_s),
            ];
            for (name, time) in times {
                check_time(time, &format!("life.{name}"))?;
            }
        }
        for (i, link) in self.links.iter().enumerate() {
            check_link(link, &format!("links[{i}]"))?;
            if self.links[..i].iter().any(|other| other.place == link.place) {
                return wrong(format!("links[{i}].place"), "is that of a link before it");
            }
        }
        for (i, collective) in self.collectives.iter().enumerate() {
            let key = format!("collectives[{i}]");
            check_costs(&collective.costs, &format!("{key}.costs"))?;
            for (name, costs) in [("root", &collective.root), ("others", &collective.others)] {
                if !costs.is_empty() {
                    check_costs(costs, &format!("{key}.{name}"))?;
                }
            }
            if collective.ranks < 2 {
                return wrong(format!("{key}.ranks"), "is less than 2");
            }
            let same = |other: &super::Collective| (&other.name, other.ranks) == (&collective.name, collective.ranks);
            if self.collectives[..i].iter().any(same) {
                return wrong(key, "has the name and the ranks of one before it");
            }
        }
        for (i, kernel) in self.kernels.iter().enumerate() {
            let Kernel { name, seconds, spread } = kernel;
            check_time(*seconds, &format!("kernels[{i}].seconds"))?;
            check_time(*spread, &format!("kernels[{i}].spread"))?;
            if *seconds == 0.0 {
                return wrong(format!("kernels[{i}].seconds"), "is 0, and computing takes time");
            }
            if self.kernels[..i].iter().any(|other| other.name == *name) {
                return wrong(format!("kernels[{i}].name"), "is that of one before it");
            }
        }
        self.stops.as_ref().map_or(Ok(()), super::Stops::check)
    }
}

type Checked = Result<(), (String, String)>;

fn wrong(key: String, what: &str) -> Checked {
    Err((key, what.to_owned()))
}

fn check_link(link: &Link, key: &str) -> Checked {
    check_time(link.latency_s, &format!("{key}.latency_s"))?;
    if !(link.bandwidth > 0.0 && link.bandwidth.is_finite()) {
        return wrong(format!("{key}.bandwidth"), "is no number of bytes per second above 0");
    }
    if !(0.0..=1.0).contains(&link.overlap) {
        return wrong(format!("{key}.overlap"), "is no share between 0 and 1");
    }
    if link.contention.is_some_and(|times| !(times >= 1.0 && times.is_finite())) {
        return wrong(format!("{key}.contention"), "is less than 1");
    }
    for (name, costs) in link.columns() {
        if name != "wait_send" || !costs.is_empty() {
            check_costs(costs, &format!("{key}.{name}"))?;
        }
    }
    let mut most: Option<(u64, f64)> = None;
    for (i, cost) in link.transfer.0.iter().enumerate() {
        if let Some((bytes, seconds)) = most.filter(|&(_, seconds)| cost.seconds < LEAST_SHARE * seconds) {
            let what = format!(
                "is {:e}, less than half of what {bytes} bytes take ({seconds:e}): a longer transfer cannot be so much faster",
                cost.seconds
            );
            return wrong(format!("{key}.transfer[{i}].seconds"), &what);
        }
        if most.is_none_or(|(_, seconds)| cost.seconds > seconds) {
            most = Some((cost.bytes, cost.seconds));
        }
    }
    Ok(())
}

fn check_costs(costs: &Costs, key: &str) -> Checked {
    if costs.is_empty() {
        return wrong(key.to_owned(), "has no points");
    }
    for (i, cost) in costs.0.iter().enumerate() {
        if i > 0 && cost.bytes <= costs.0[i - 1].bytes {
            let what = format!("is {}, not more than that of the point before it", cost.bytes);
            return wrong(format!("{key}[{i}].bytes"), &what);
        }
        check_time(cost.seconds, &format!("{key}[{i}].seconds"))?;
        check_time(cost.spread, &format!("{key}[{i}].spread"))?;
    }
    Ok(())
}

fn check_time(seconds: f64, key: &str) -> Checked {
    if seconds < 0.0 {
        return wrong(key.to_owned(), &format!("is negative ({seconds:e})"));
    }
    if seconds.is_nan() || seconds > MAX_SECONDS {
        return wrong(key.to_owned(), &format!("is {seconds:e}, which is no time in seconds up to {MAX_SECONDS:e}"));
    }
    Ok(())
}

/// A message of the TOML reader as a part of a sentence.
fn one_line(message: &str) -> String {
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ").trim_end_matches('.').to_owned()
}
