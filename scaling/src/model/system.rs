//! Systems (seed 001, section 3): the five parts of a message's time, how many messages a node handles at once, and the
//! sustained rate of a node over the size of the problem. Read from a system file, or made from a machine file that
//! `phasecast characterize` has written.
use super::error::{ModelError, read_text, read_toml};
use phasecast_transform::characterize::operations;
use phasecast_transform::machine::{Link, Machine, Place};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Version of system files.
pub const FORMAT: i64 = 1;
/// The longest time of one part that is believed, in seconds.
const MAX_SECONDS: f64 = 1e6;
/// The most points of a table.
const MAX_POINTS: usize = 4096;
/// What system files are called in messages.
const KIND: &str = "system file";
/// The kernel whose rate stands for programs of which nothing is known.
const USUAL: &str = "stencil";

/// A system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// [`FORMAT`].
    pub format: i64,
    /// Its name.
    pub system: String,
    /// The most processors that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<u64>,
    /// Messages that a node can handle at once.
    pub at_once: u32,
    /// The parts of a message's time.
    pub message: Parts,
    /// Sustained rates of a node in millions of operations per second, by the name that applications ask for; `default`
    /// where theirs is not there.
    #[serde(default)]
    pub rates: BTreeMap<String, Rate>,
    /// Where it was measured, if it was.
    #[serde(skip)]
    pub measured: Option<phasecast_prediction::Machine>,
}

/// The five parts of a message's time (Figure 6).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parts {
    /// T1: setting up the sending routine.
    pub setup_send: Part,
    /// T2: copying from user space to system buffers.
    pub copy_send: Part,
    /// T3: transmission between the communication units.
    pub transmit: Part,
    /// T4: setting up the receiving routine.
    pub setup_receive: Part,
    /// T5: copying from system buffers to user space.
    pub copy_receive: Part,
}

/// What a part costs by the length of the message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "it is neither seconds, nor { seconds, per_byte }, nor a table of { bytes, seconds }"
)]
pub enum Part {
    /// Seconds, whatever the length.
    Constant(f64),
    /// Seconds, and seconds per byte.
    Line {
        /// Of an empty message.
        seconds: f64,
        /// More for each byte.
        per_byte: f64,
    },
    /// Points of rising length with straight lines between them; up to the first the first's time, beyond the last by the
    /// slope of the last two.
    Table(Vec<Point>),
}

/// A point of a table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Length in bytes.
    pub bytes: f64,
    /// Time in seconds.
    pub seconds: f64,
}

/// A sustained rate in millions of operations per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Rate {
    /// Whatever the size.
    Constant(f64),
    /// By the size of the problem: straight lines between the points, beyond them the nearest one's.
    Table(Vec<RatePoint>),
}

/// A point of a table of rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatePoint {
    /// Size of the problem.
    pub size: f64,
    /// Millions of operations per second.
    pub mflops: f64,
}

impl Part {
    /// The time for a length, in seconds.
    pub fn at(&self, bytes: f64) -> f64 {
        match self {
            Part::Constant(seconds) => *seconds,
            Part::Line { seconds, per_byte } => seconds + per_byte * bytes,
            Part::Table(points) => {
                let after = points.partition_point(|point| point.bytes < bytes);
                match (points.first(), points.last()) {
                    (Some(first), Some(_)) if after == 0 || points.len() == 1 => first.seconds,
                    (Some(_), Some(_)) => {
                        let after = after.min(points.len() - 1);
                        let (a, b) = (points[after - 1], points[after]);
                        a.seconds + (b.seconds - a.seconds) / (b.bytes - a.bytes) * (bytes - a.bytes)
                    }
                    _ => 0.0,
                }
            }
        }
    }

    fn check(&self) -> Result<(), (String, String)> {
        let time = |key: String, value: f64| {
            if (0.0..=MAX_SECONDS).contains(&value) {
                Ok(())
            } else {
                Err((key, format!("is {value:e}, which is no time in seconds from 0 to {MAX_SECONDS:e}. Mend it")))
            }
        };
        match self {
            Part::Constant(seconds) => time(String::new(), *seconds),
            Part::Line { seconds, per_byte } => {
                time(".seconds".into(), *seconds)?;
                time(".per_byte".into(), *per_byte)
            }
            Part::Table(points) => {
                if points.is_empty() || points.len() > MAX_POINTS {
                    let what = format!("has {} points. Give 1 to {MAX_POINTS}", points.len());
                    return Err((String::new(), what));
                }
                for (i, point) in points.iter().enumerate() {
                    if !(0.0..=1e15).contains(&point.bytes) {
                        return Err((format!("[{i}].bytes"), format!("is {}, which is no length", point.bytes)));
                    }
                    time(format!("[{i}].seconds"), point.seconds)?;
                    let Some(before) = i.checked_sub(1).map(|before| points[before]) else { continue };
                    if point.bytes <= before.bytes {
                        let what =
                            format!("is {}, not more than the {} before it. Sort the table", point.bytes, before.bytes);
                        return Err((format!("[{i}].bytes"), what));
                    }
                    if point.seconds < before.seconds {
                        let what = format!(
                            "is {:e}, less than the {:e} of a shorter message: times must not fall with the length. Measure again, or smooth the table",
                            point.seconds, before.seconds
                        );
                        return Err((format!("[{i}].seconds"), what));
                    }
                }
                Ok(())
            }
        }
    }
}

impl Rate {
    /// Millions of operations per second at a size.
    pub fn at(&self, size: f64) -> f64 {
        match self {
            Rate::Constant(rate) => *rate,
            Rate::Table(points) => {
                let after = points.partition_point(|point| point.size < size);
                match (points.get(after.wrapping_sub(1)), points.get(after)) {
                    (Some(a), Some(b)) => a.mflops + (b.mflops - a.mflops) / (b.size - a.size) * (size - a.size),
                    (Some(only), None) | (None, Some(only)) => only.mflops,
                    (None, None) => 0.0,
                }
            }
        }
    }

    fn check(&self) -> Result<(), (String, String)> {
        let rate = |key: String, value: f64| match value > 0.0 && value < 1e12 {
            true => Ok(()),
            false => Err((key, format!("is {value}, which is no rate above 0. Mend it"))),
        };
        match self {
            Rate::Constant(value) => rate(String::new(), *value),
            Rate::Table(points) => {
                if points.is_empty() || points.len() > MAX_POINTS {
                    return Err((String::new(), format!("has {} points. Give 1 to {MAX_POINTS}", points.len())));
                }
                for (i, point) in points.iter().enumerate() {
                    rate(format!("[{i}].mflops"), point.mflops)?;
                    let rises = i == 0 || point.size > points[i - 1].size;
                    if !(rises && point.size.is_finite()) {
                        let what = format!("is {}, not more than the size before it. Sort the table", point.size);
                        return Err((format!("[{i}].size"), what));
                    }
                }
                Ok(())
            }
        }
    }
}

impl System {
    /// A system on which messages cost nothing.
    pub fn free(name: &str) -> System {
        let nothing = || Part::Constant(0.0);
        System {
            format: FORMAT,
            system: name.to_owned(),
            processors: None,
            at_once: 1,
            message: Parts {
                setup_send: nothing(),
                copy_send: nothing(),
                transmit: nothing(),
                setup_receive: nothing(),
                copy_receive: nothing(),
            },
            rates: BTreeMap::new(),
            measured: None,
        }
    }

    /// Reads a system file, or a machine file as a system.
    ///
    /// # Errors
    /// If the file cannot be read, is neither, or holds values that no system can have.
    pub fn read(path: &Path) -> Result<System, ModelError> {
        System::parse(path, &read_text(path, KIND)?)
    }

    /// Reads a system from the text of a file; `path` is for messages.
    ///
    /// # Errors
    /// As [`System::read`].
    pub fn parse(path: &Path, text: &str) -> Result<System, ModelError> {
        let table: toml::Table = read_toml(path, text, KIND)?;
        let foreign = |what: String| ModelError::Foreign { path: path.to_owned(), kind: KIND, line: None, what };
        if !table.contains_key("system") {
            if table.contains_key("links") || table.contains_key("kernels") {
                return System::of_machine(path, &Machine::parse(path, text.as_bytes())?);
            }
            let what = "it has neither the key `system` of a system file nor the `links` of a machine file";
            return Err(foreign(what.into()));
        }
        match table.get("format").and_then(toml::Value::as_integer) {
            Some(FORMAT) => {}
            Some(found) => {
                return Err(foreign(format!("it has format {found}, and this phasecast reads {FORMAT}")));
            }
            None => return Err(foreign("it has no whole number `format`".into())),
        }
        let system: System = read_toml(path, text, KIND)?;
        let value = |(key, what): (String, String)| ModelError::Value { path: path.to_owned(), key, what };
        system.check().map_err(value)?;
        Ok(system)
    }

    /// Whether a system can have these values; else the key and what is wrong with its value.
    ///
    /// # Errors
    /// If not.
    pub fn check(&self) -> Result<(), (String, String)> {
        if self.at_once == 0 {
            return Err(("at_once".into(), "is 0: a node handles at least 1 message. Mend it".into()));
        }
        if self.processors == Some(0) {
            return Err(("processors".into(), "is 0. Leave it out where it is not known".into()));
        }
        let parts = &self.message;
        for (name, part) in [
            ("setup_send", &parts.setup_send),
            ("copy_send", &parts.copy_send),
            ("transmit", &parts.transmit),
            ("setup_receive", &parts.setup_receive),
            ("copy_receive", &parts.copy_receive),
        ] {
            part.check().map_err(|(key, what)| (format!("message.{name}{key}"), what))?;
        }
        for (name, rate) in &self.rates {
            rate.check().map_err(|(key, what)| (format!("rates.{name}{key}"), what))?;
        }
        Ok(())
    }

    /// The sustained rate for an application at a size, in millions of operations per second.
    pub fn rate(&self, name: &str, size: f64) -> Option<f64> {
        self.rates.get(name).or_else(|| self.rates.get("default")).map(|rate| rate.at(size))
    }

    /// A measured machine as a system: the parts from its link between nodes, else within one; the rates from its
    /// kernels.
    ///
    /// # Errors
    /// If messages were not measured.
    pub fn of_machine(path: &Path, machine: &Machine) -> Result<System, ModelError> {
        let link = machine.link(Place::Between).or_else(|| machine.link(Place::Within));
        let link = link.ok_or_else(|| ModelError::Value {
            path: path.to_owned(),
            key: "links".into(),
            what: "are not there: it does not say what messages cost. Measure with `phasecast characterize -n 2`"
                .into(),
        })?;
        let mut rates = BTreeMap::new();
        for kernel in &machine.kernels {
            if let Some(operations) = operations(&kernel.name).filter(|_| kernel.seconds > 0.0) {
                rates.insert(kernel.name.clone(), Rate::Constant(operations / kernel.seconds * 1e-6));
            }
        }
        if let Some(usual) = rates.get(USUAL).or_else(|| rates.values().next()).cloned() {
            rates.insert("default".into(), usual);
        }
        let identity = &machine.identity;
        let host = identity.hosts.first().cloned().unwrap_or_default();
        let measured = phasecast_prediction::Machine {
            host: host.clone(),
            cpu: identity.cpu.clone(),
            cores: identity.cores,
            mpi: identity.mpi.clone(),
        };
        Ok(System {
            system: if host.is_empty() { "measured machine".into() } else { host },
            // Two messages that do not disturb each other are handled at once.
            at_once: if link.contention.is_some_and(|times| times < 1.5) { 2 } else { 1 },
            message: parts_of(link),
            rates,
            measured: Some(measured),
            ..System::free("")
        })
    }
}

/// The five parts of a measured link. T1 and T4 are the times of empty messages in `MPI_Send` and `MPI_Recv`, T2 and T5
/// what longer ones take more there as long as they are copied (eager), T3 what else the transfer takes. Where measured
/// times fall with the length, that of the shorter message is kept.
fn parts_of(link: &Link) -> Parts {
    let eager = link.eager_bytes.unwrap_or(u64::MAX);
    let seconds = |costs: &phasecast_transform::machine::Costs, bytes: u64| costs.seconds(bytes).unwrap_or(0.0);
    let (t1, t4) = (seconds(&link.send, 0), seconds(&link.receive, 0));
    let lengths: Vec<u64> = link.transfer.0.iter().map(|cost| cost.bytes).collect();
    let (mut t2, mut t3, mut t5) = (Vec::new(), Vec::new(), Vec::new());
    let mut before = [0.0f64; 3];
    for bytes in lengths {
        let copied = bytes.min(eager);
        let copy_send = (seconds(&link.send, copied) - t1).max(before[0]);
        let copy_receive = (seconds(&link.receive, copied) - t4).max(before[2]);
        let rest = (seconds(&link.transfer, bytes) - t1 - t4 - copy_send - copy_receive).max(before[1]);
        before = [copy_send, rest, copy_receive];
        for (part, seconds) in [(&mut t2, copy_send), (&mut t3, rest), (&mut t5, copy_receive)] {
            part.push(Point { bytes: bytes as f64, seconds });
        }
    }
    let part = |points: Vec<Point>| if points.is_empty() { Part::Constant(0.0) } else { Part::Table(points) };
    Parts {
        setup_send: Part::Constant(t1),
        copy_send: part(t2),
        transmit: part(t3),
        setup_receive: Part::Constant(t4),
        copy_receive: part(t5),
    }
}
