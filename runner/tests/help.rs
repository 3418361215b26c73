//! Help, manual pages and completions come from the definition of the command line and cover every subcommand.
mod common;
use common::{phasecast, text, well};
use std::fs;

/// The subcommands, as the manual pages name them.
fn subcommands() -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    well(&["man", text(folder.path())]);
    let pages = fs::read_dir(folder.path()).expect("pages were written");
    let names = pages.map(|page| page.expect("a page").file_name().to_string_lossy().into_owned());
    let mut commands: Vec<String> = names
        .filter_map(|name| Some(name.strip_prefix("phasecast-")?.strip_suffix(".1")?.to_string()))
        .filter(|name| !name.starts_with("help"))
        .collect();
    commands.sort();
    commands
}

/// The words of a subcommand: `verify-file` is one, `model-fit` is `fit` of `model`.
fn words(command: &str) -> Vec<&str> {
    let own = well(&["--help"]).out.contains(&format!("\n  {command} "));
    if own { vec![command] } else { command.splitn(2, '-').collect() }
}

#[test]
fn every_subcommand_has_help_with_examples_and_exit_codes() {
    let commands = subcommands();
    for name in [
        "trace",
        "stat",
        "dump",
        "inspect",
        "import",
        "export",
        "analyze",
        "sign",
        "predict",
        "verify",
        "preflight",
        "verify-file",
        "characterize",
        "transform",
        "graph",
        "stability",
        "skeleton",
        "profile",
        "scale",
        "model",
        "model-fit",
        "compare",
        "report",
        "man",
        "completions",
    ] {
        assert!(commands.iter().any(|c| c == name), "{name} is missing among {commands:?}");
    }
    for command in &commands {
        let words = words(command);
        let help = well(&[&words[..], &["--help"]].concat()).out;
        for part in ["Usage:", "Example", "Exit codes:"] {
            assert!(help.contains(part), "`{command} --help` has no {part}:\n{help}");
        }
        for line in help.lines().skip_while(|line| *line != "Examples:").skip(1).take_while(|line| !line.is_empty()) {
            assert!(line.starts_with("  "), "`{command} --help` breaks an example before {line:?}");
        }
        let launcher = help.contains("--launcher <");
        assert_eq!(launcher, help.contains("`{n}`"), "`{command} --help` on the launcher's ranks:\n{help}");
        assert!(well(&[&["help"], &words[..]].concat()).out.contains("Usage:"));
        assert!(!help.lines().next().unwrap_or_default().is_empty(), "{command} does not say what it does");
    }
}

#[test]
fn the_command_lists_its_subcommands_and_exit_codes() {
    let help = well(&["--help"]).out;
    for part in ["Exit codes:", "3  the input is refused", "phasecast analyze"] {
        assert!(help.contains(part), "{help}");
    }
    for command in subcommands() {
        let words = words(&command);
        let [parents @ .., last] = &words[..] else { unreachable!("a name has words") };
        let help = well(&[parents, &["--help"]].concat()).out;
        assert!(help.contains(&format!("\n  {last} ")), "{command} is not in\n{help}");
    }
    assert!(well(&["--version"]).out.starts_with("phasecast "));
}

#[test]
fn manual_pages_are_pages() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("man/man1");
    well(&["man", text(&inner)]);
    well(&["man", text(&inner)]);
    let page = fs::read_to_string(inner.join("phasecast-stat.1")).expect("the page of stat");
    assert!(page.contains(".TH") && page.contains("summary"), "{page}");
    let page = fs::read_to_string(inner.join("phasecast-predict.1")).expect("the page of predict");
    assert!(page.contains("`{n}`") && page.contains("mpirun.mpich \\-n {n}"), "{page}");
}

#[test]
fn completions_know_subcommands_and_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = well(&["completions", shell]).out;
        assert!(script.contains("inspect") && script.contains("summary"), "{shell}:\n{script}");
    }
    assert_eq!(phasecast(&["completions", "cmd.exe"]).code, 2);
}

#[test]
fn wrong_command_lines_are_usage() {
    for args in
        [&[][..], &["frobnicate"], &["stat"], &["stat", "a", "b"], &["dump", "a", "--format", "xml"], &["compare"]]
    {
        let done = phasecast(args);
        assert_eq!(done.code, 2, "{args:?}: {}", done.err);
        assert!(done.err.contains("--help") || done.err.contains("Usage:"), "{args:?}: {}", done.err);
    }
}
