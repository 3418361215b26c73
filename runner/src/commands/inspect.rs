//! `phasecast inspect`: what a file or folder of ours is, piece by piece, with every checksum tried.
mod trace;

use crate::exit::Refusal;
use crate::output::{self, bytes, clean, count};
use anyhow::{Context, Result};
use clap::Args;
use phasecast_image::Images;
use phasecast_prediction::Prediction;
use phasecast_trace::container::{self, Container};
use phasecast_trace::frame::{self, HEAD, Kind};
use phasecast_trace::tail;
use phasecast_transform::machine::Machine;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Print what a file is: kind, version, head, and its pieces with sizes and checksums
///
/// Takes a trace, one rank's file of it, phases, a signature, a prediction or a machine file. A damaged file is shown
/// as far as it can be read; the exit code is then 3.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// The file, or the folder of a trace
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What a file is.
#[derive(Debug, Serialize)]
struct Findings {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    bytes: u64,
    /// Whether all of it can be read.
    ok: bool,
    /// What it says of itself.
    head: Map<String, Value>,
    pieces: Vec<Piece>,
    /// What is wrong.
    damage: Vec<String>,
}

/// A frame, a section, a file of a folder; or a row of chunks.
#[derive(Debug, Serialize)]
struct Piece {
    name: String,
    offset: u64,
    /// How many there are, one after the other.
    count: u64,
    items: u64,
    stored_bytes: u64,
    raw_bytes: u64,
    ok: bool,
}

/// Inspects.
pub fn run(args: &InspectArgs) -> Result<()> {
    let findings = inspect(&args.file)?;
    if args.json {
        output::json(&findings)?;
    } else {
        output::words(&print(&findings))?;
    }
    match findings.damage.first() {
        Some(damage) => {
            let damage = damage.trim_end_matches('.');
            Err(Refusal::Input(format!("{} is damaged: {damage}.", args.file.display())).into())
        }
        None => Ok(()),
    }
}

fn inspect(path: &Path) -> Result<Findings> {
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => anyhow::Error::from(Refusal::missing(path)),
        _ => anyhow::Error::new(error).context(format!("cannot examine {}", path.display())),
    })?;
    if metadata.is_dir() {
        return trace::folder(path);
    }
    if let Some(images) = images_of(path) {
        return signature_with_images(path, metadata.len(), &images);
    }
    let content = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if content.starts_with(&frame::MAGIC) {
        Ok(trace::rank_file(&content))
    } else if content.starts_with(&tail::MAGIC) {
        Ok(trace::tail_file(&content))
    } else if content.starts_with(container::MAGIC) {
        Ok(container_file(path, &content))
    } else if content.first() == Some(&b'{') {
        let prediction = Prediction::parse(path, &content)?;
        Ok(prediction_file(&prediction, content.len()))
    } else if path.extension().is_some_and(|extension| extension == "toml") {
        let machine = Machine::parse(path, &content)?;
        Ok(machine_file(&machine, content.len()))
    } else {
        let what = if content.is_empty() { "it is empty" } else { "it starts like none of them" };
        let text = format!(
            "{} is no file of phasecast: {what}. Check the path, or import another tool's trace with `phasecast import`.",
            path.display()
        );
        Err(Refusal::Input(text).into())
    }
}

fn empty(kind: &str, version: Option<u64>, bytes: usize) -> Findings {
    let (head, pieces, damage) = (Map::new(), Vec::new(), Vec::new());
    Findings { kind: kind.into(), version, bytes: bytes as u64, ok: true, head, pieces, damage }
}

impl Findings {
    fn say(&mut self, key: &str, value: impl Into<Value>) {
        self.head.insert(key.into(), value.into());
    }

    fn broken(&mut self, what: String) {
        self.ok = false;
        self.damage.push(what);
    }
}

/// Phases or a signature: the manifest's short values, and the sections.
fn container_file(path: &Path, content: &[u8]) -> Findings {
    let kind = content.get(10..24).map(|k| String::from_utf8_lossy(k).trim_end().to_string()).unwrap_or_default();
    let version = content.get(25..27).map(|v| u64::from(u16::from_le_bytes([v[0], v[1]])));
    let mut found = empty(if kind.is_empty() { "container" } else { &kind }, version, content.len());
    let mut at = container::START;
    while at < content.len() {
        match trace::next_frame(content, at) {
            Ok((frame, payload)) => {
                let name = match &payload {
                    _ if frame.kind == Kind::End as u8 => "end".to_string(),
                    Ok(payload) => section_name(payload),
                    Err(_) => "?".to_string(),
                };
                found.pieces.push(Piece {
                    name,
                    offset: at as u64,
                    count: 1,
                    items: 0,
                    stored_bytes: u64::from(frame.stored_len),
                    raw_bytes: u64::from(frame.raw_len),
                    ok: payload.is_ok(),
                });
                at = at.saturating_add(HEAD + frame.stored_len as usize);
            }
            Err(_) => break,
        }
    }
    match Container::parse(path, content) {
        Ok(container) => match serde_json::from_str(&container.manifest) {
            Ok(Value::Object(manifest)) => found.head.extend(manifest.into_iter().map(brief)),
            _ => found.broken("its manifest is no JSON object".into()),
        },
        Err(error) => {
            let text = error.to_string();
            found.broken(text.strip_prefix(&format!("{} is damaged ", path.display())).unwrap_or(&text).to_string());
        }
    }
    found
}

/// The images at the end of a signature. What is damaged there is found when the file is read as one without.
fn images_of(path: &Path) -> Option<Images> {
    Container::kind_of(path).filter(|kind| kind == "signature")?;
    Images::open(path).ok()
}

/// A signature with images: what comes before them, and they as one more piece.
fn signature_with_images(path: &Path, length: u64, images: &Images) -> Result<Findings> {
    let own = images.bytes()?;
    let start = length.saturating_sub(own);
    let mut head = Vec::new();
    let file = fs::File::open(path).and_then(|file| file.take(start).read_to_end(&mut head));
    file.with_context(|| format!("cannot read {}", path.display()))?;
    let mut found = container_file(path, &head);
    found.bytes = length;
    let checked = images.verify();
    let pages = checked.as_ref().map_or(0, |v| v.pages);
    found.pieces.push(Piece {
        name: "images".into(),
        offset: start,
        count: checked.as_ref().map_or(0, |v| v.states as u64),
        items: pages,
        stored_bytes: own,
        raw_bytes: pages.saturating_mul(phasecast_image::PAGE as u64),
        ok: checked.is_ok(),
    });
    if let Err(error) = checked {
        let text = error.to_string();
        found.broken(text.strip_prefix(&format!("{} is damaged: ", path.display())).unwrap_or(&text).to_string());
    }
    Ok(found)
}

fn section_name(payload: &[u8]) -> String {
    let length = payload.first_chunk::<2>().map_or(0, |l| u16::from_le_bytes(*l) as usize);
    payload.get(2..2 + length).map_or("?".into(), |name| String::from_utf8_lossy(name).into_owned())
}

/// A value of a manifest, lists and objects by their length.
fn brief((key, value): (String, Value)) -> (String, Value) {
    match value {
        Value::Array(list) if list.len() > 8 || list.iter().any(|v| v.is_object() || v.is_array()) => {
            (key, json!(format!("{} entries", list.len())))
        }
        Value::Object(fields) if fields.values().any(|v| v.is_object() || v.is_array()) => {
            (key, json!(format!("{} entries", fields.len())))
        }
        other => (key, other),
    }
}

fn prediction_file(prediction: &Prediction, bytes: usize) -> Findings {
    let mut found = empty("prediction", Some(u64::from(prediction.version)), bytes);
    if let Ok(Value::Object(fields)) = serde_json::to_value(prediction) {
        found.head.extend(fields.into_iter().filter(|(key, _)| key != "version").map(brief));
    }
    found
}

fn machine_file(machine: &Machine, bytes: usize) -> Findings {
    let mut found = empty("machine", Some(u64::from(machine.format)), bytes);
    let mut say = |fields: Value| {
        if let Value::Object(fields) = fields {
            found.head.extend(fields.into_iter().filter(|(_, value)| !value.is_object()).map(brief));
        }
    };
    say(serde_json::to_value(&machine.identity).unwrap_or_default());
    say(json!({ "created": machine.created, "collectives": machine.collectives.len() }));
    for link in &machine.links {
        let place = serde_json::to_value(link.place).unwrap_or_default();
        let what = format!("{}, {}/s", output::seconds(link.latency_s), output::bytes(link.bandwidth as u64));
        say(json!({ format!("messages {}", place.as_str().unwrap_or_default()): what }));
    }
    for kernel in &machine.kernels {
        say(json!({ format!("kernel {}", kernel.name): output::seconds(kernel.seconds) }));
    }
    found
}

fn print(found: &Findings) -> String {
    let mut text = String::new();
    let version = found.version.map(|v| format!(", version {v}")).unwrap_or_default();
    let _ = writeln!(text, "{}{version}, {}", clean(&found.kind), bytes(found.bytes));
    for (key, value) in &found.head {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        let _ = writeln!(text, "  {:<16} {}", clean(key), output::short(&value, 160));
    }
    if !found.pieces.is_empty() {
        let headers = ["piece", "offset", "count", "items", "stored", "raw", "checksum"];
        let mut table = output::table(&headers, &[1, 2, 3, 4, 5]);
        for piece in &found.pieces {
            table.add_row([
                output::short(&piece.name, 40),
                count(piece.offset),
                count(piece.count),
                count(piece.items),
                bytes(piece.stored_bytes),
                bytes(piece.raw_bytes),
                if piece.ok { "ok".into() } else { "WRONG".to_string() },
            ]);
        }
        let _ = writeln!(text, "{table}");
    }
    for damage in &found.damage {
        let _ = writeln!(text, "DAMAGED: {}", clean(damage));
    }
    text
}
