//! What subcommands print: tables and words or one JSON object on standard output, and files that are whole or absent.
use crate::exit::Refusal;
use crate::unfinished;
use anyhow::Result;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use phasecast_trace::{TraceError, atomic};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// Writes text to standard output.
pub fn words(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Writes one JSON object to standard output.
pub fn json<T: Serialize>(value: &T) -> Result<()> {
    words(&serde_json::to_string_pretty(value)?)
}

/// Says something to the user on standard error.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "phasecast: {text}");
}

/// The lines of a table: one under its head.
const LINES: &str = "     \u{2500}\u{2500}            ";

/// An empty table; the columns in `right` (by index) hold numbers.
pub fn table(headers: &[&str], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_preset(LINES).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headers.to_vec());
    for &column in right {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Refuses an output that exists already, and one whose folder does not or cannot be written, before any work is done for it.
/// What there is of one that is not refused goes if the user interrupts.
pub fn refuse_existing(path: &Path) -> Result<()> {
    refuse(path)?;
    unfinished::expect(path);
    Ok(())
}

fn refuse(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(TraceError::Exists { path: path.to_owned() }.into());
    }
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (folder, output) = (parent.display(), path.display());
    if !parent.is_dir() {
        return Err(
            Refusal::Input(format!("there is no folder {folder} for the output {output}. Make it first.")).into()
        );
    }
    match tempfile::tempfile_in(parent) {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(Refusal::Input(format!("the folder {folder} for the output {output} cannot be written: {error}."))
                .into())
        }
    }
}

/// Writes a new file, whole or not at all.
pub fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    refuse(path)?;
    Ok(atomic::write(path, bytes)?)
}

/// A text with control characters made visible: names in files may hold escape sequences of terminals.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Words as one types them to a shell.
pub fn shell(words: &[impl AsRef<str>]) -> String {
    // A NUL is all that could not be quoted, and no argument has one.
    let quoted = shlex::Quoter::new().allow_nul(true).join(words.iter().map(AsRef::as_ref));
    clean(&quoted.unwrap_or_default())
}

/// The command line that does this with a file.
pub fn shell_with(command: &str, file: &Path) -> String {
    format!("{command} {}", shell(&[file.to_string_lossy()]))
}

/// A text cut to a number of characters, with an ellipsis where something is left out.
pub fn short(text: &str, most: usize) -> String {
    let text = clean(text);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).chain(['\u{2026}']).collect()
}

/// A time in seconds with its unit, three or four digits.
pub fn seconds(seconds: f64) -> String {
    let (value, unit) = match seconds.abs() {
        0.0 => return "0 s".into(),
        s if s < 1e-6 => (seconds * 1e9, "ns"),
        s if s < 1e-3 => (seconds * 1e6, "us"),
        s if s < 1.0 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    match value.abs() {
        v if v < 10.0 => format!("{value:.3} {unit}"),
        v if v < 100.0 => format!("{value:.2} {unit}"),
        _ => format!("{value:.1} {unit}"),
    }
}

/// A number of bytes with its unit.
pub fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].iter();
    let mut unit = units.next().unwrap_or(&"B");
    while value >= 1024.0
        && let Some(next) = units.next()
    {
        value /= 1024.0;
        unit = next;
    }
    if *unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") }
}

/// A count with its thousands apart.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// A share, 0 to 1, as percent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(seconds(1.5e-7), "150.0 ns");
        assert_eq!(seconds(0.012_345), "12.35 ms");
        assert_eq!(seconds(1234.5), "1234.5 s");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(u64::MAX), "16384.0 PiB");
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(count(12), "12");
    }

    #[test]
    fn what_is_to_be_typed_is_quoted() {
        assert_eq!(shell(&["./my app", "-x", "a'b", ""]), "'./my app' -x \"a'b\" ''");
        assert_eq!(shell_with("phasecast predict", Path::new("my cg.phc")), "phasecast predict 'my cg.phc'");
        assert_eq!(shell_with("phasecast predict", Path::new("cg.phc")), "phasecast predict cg.phc");
    }

    #[test]
    fn names_cannot_drive_the_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb"), "a\u{fffd}[2Jb");
        assert_eq!(short("abcdef", 4), "abc\u{2026}");
        assert_eq!(short("abc", 4), "abc");
    }
}
