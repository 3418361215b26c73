//! The trace-event JSON of Perfetto and Chrome: a process for each rank, a track for each of its threads, a slice for
//! each call, and an arrow from each send to its receive.
//!
//! The two ends of an arrow meet by a number made of the message's channel, its length and its place among those of this
//! length, so that neither end needs to know the other: receives stand in the order in which they complete, which is that
//! of the sends only for messages of one length. A receive of which a trace tells another length than of its send has no
//! arrow, and messages have none that are of a rank's channels and lengths beyond the first 2^20.
use super::row::{PartRow, Row, each_row};
use super::{Failure, Progress};
use crate::counts::Counts;
use crate::model::{CallRef, Channel, EventKind};
use crate::reader::Trace;
use crate::units::Rank;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use xxhash_rust::xxh3::xxh3_64;

/// The most channels and lengths of a rank whose messages are counted: a bound on memory.
const MAX_CHANNELS: usize = 1 << 20;

#[derive(Serialize)]
struct Args<'a> {
    peer: super::Peer,
    tag: super::Tag,
    bytes: u64,
    communicator: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<PartRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Counts>,
}

pub(super) fn write(trace: &Trace, out: &mut impl Write, report: &dyn Fn(u64, u64)) -> Result<(), Failure> {
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut progress = Progress::new(trace, report);
    let mut first = true;
    for rank in trace.ranks() {
        let host = trace.header(rank).map_or("", |header| header.host.as_str());
        let name = if host.is_empty() { format!("rank {rank}") } else { format!("rank {rank} ({host})") };
        comma(out, &mut first)?;
        write!(
            out,
            "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{rank},\"args\":{{\"name\":{}}}}}",
            json(&name)?
        )?;
        write!(out, ",\n{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{rank},")?;
        write!(out, "\"args\":{{\"sort_index\":{rank}}}}}")?;
        slices(trace, rank, out, &mut progress)?;
        arrows(trace, rank, out)?;
    }
    out.write_all(b"\n]}\n")?;
    progress.finish();
    Ok(())
}

fn slices(trace: &Trace, rank: Rank, out: &mut impl Write, progress: &mut Progress<'_>) -> Result<(), Failure> {
    let mut threads = HashSet::new();
    let mut names: HashMap<String, String> = HashMap::new();
    each_row(trace, rank, |row: Row<'_, _>| {
        progress.add(1 + row.parts.len() as u64);
        if threads.insert(row.thread) {
            write!(out, ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{rank},\"tid\":{},", row.thread)?;
            write!(out, "\"args\":{{\"name\":\"thread {}\"}}}}", row.thread)?;
        }
        if !names.contains_key(row.procedure) {
            names.insert(row.procedure.to_string(), json(row.procedure)?);
        }
        let name = &names[row.procedure];
        let (start, length) = (Micros(row.enter_ns), Micros(row.exit_ns.saturating_sub(row.enter_ns)));
        write!(out, ",\n{{\"ph\":\"X\",\"name\":{name},\"cat\":{},", json(&row.class)?)?;
        write!(out, "\"ts\":{start},\"dur\":{length},\"pid\":{rank},\"tid\":{},\"args\":", row.thread)?;
        let args = Args {
            peer: row.peer,
            tag: row.tag,
            bytes: row.bytes,
            communicator: row.communicator,
            site: row.site,
            parts: row.parts.iter().map(PartRow::from).collect(),
            counts: row.counts,
        };
        write!(out, "{}}}", json(&args)?)?;
        Ok::<(), Failure>(())
    })
}

fn arrows(trace: &Trace, rank: Rank, out: &mut impl Write) -> Result<(), Failure> {
    let mut counts: HashMap<(EventKind, Channel, u64), u64> = HashMap::new();
    let mut reader = trace.calls(rank);
    while let Some(item) = reader.next_call()? {
        let CallRef { call, .. } = item;
        for event in item.events() {
            let Some(channel) = event.channel(rank) else { continue };
            let key = (event.kind, channel, event.bytes);
            if counts.len() >= MAX_CHANNELS && !counts.contains_key(&key) {
                continue;
            }
            let count = counts.entry(key).or_default();
            let id = message(&channel, event.bytes, *count);
            *count += 1;
            // An arrow leaves a slice that is open at its time, and ends at one.
            let (phase, time) = match event.kind {
                EventKind::Send => ("\"s\"", call.enter.0),
                _ => ("\"f\",\"bp\":\"e\"", call.exit.0.saturating_sub(1).max(call.enter.0)),
            };
            write!(out, ",\n{{\"ph\":{phase},\"name\":\"message\",\"cat\":\"message\",\"id\":\"{id:#x}\",")?;
            write!(out, "\"ts\":{},\"pid\":{rank},\"tid\":{}}}", Micros(time), call.thread)?;
        }
    }
    Ok(())
}

/// The number of the message that is the `count`th of its channel and length.
fn message(channel: &Channel, bytes: u64, count: u64) -> u64 {
    let mut key = [0; 32];
    key[0..4].copy_from_slice(&channel.source.0.to_le_bytes());
    key[4..8].copy_from_slice(&channel.destination.0.to_le_bytes());
    key[8..12].copy_from_slice(&channel.comm.0.to_le_bytes());
    key[12..16].copy_from_slice(&channel.tag.to_le_bytes());
    key[16..24].copy_from_slice(&count.to_le_bytes());
    key[24..32].copy_from_slice(&bytes.to_le_bytes());
    xxh3_64(&key)
}

fn comma(out: &mut impl Write, first: &mut bool) -> std::io::Result<()> {
    out.write_all(if std::mem::take(first) { b"\n" } else { b",\n" })
}

fn json(value: &(impl Serialize + ?Sized)) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::Out(error.into()))
}

/// Nanoseconds as the microseconds of the format, to the last digit.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}
