//! Bad input at every command: truncated, bit-flipped, foreign and empty files and folders, outputs that exist. The
//! exit code is 3, the error is one sentence, nothing panics, and nothing is left under the name of the output.
mod common;
use common::{Done, Ring, command, phasecast, text, well, write_prediction};
use proptest::prelude::*;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Commands that read one file or folder; `OUT` stands for an output.
const READERS: [&[&str]; 14] = [
    &["stat", "IN"],
    &["dump", "IN"],
    &["inspect", "IN"],
    &["inspect", "IN", "--json"],
    &["compare", "IN"],
    &["report", "IN", "-o", "OUT"],
    &["analyze", "IN", "-o", "OUT"],
    &["export", "IN", "--format", "perfetto", "-o", "OUT"],
    &["predict", "IN", "-o", "OUT"],
    &["verify", "IN"],
    &["preflight", "IN"],
    &["verify-file", "IN"],
    &["profile", "IN"],
    &["scale", "IN", "--to", "8"],
];

fn run(command: &[&str], input: &Path, output: &Path) -> Done {
    let args: Vec<&str> = command
        .iter()
        .map(|word| match *word {
            "IN" => text(input),
            "OUT" => text(output),
            word => word,
        })
        .collect();
    phasecast(&args)
}

/// Runs a command that must refuse its input.
fn refused(command: &[&str], input: &Path, folder: &Path) {
    let output = folder.join("output");
    let done = run(command, input, &output);
    assert_eq!(done.code, 3, "{command:?} on {}: {} {}", input.display(), done.out, done.err);
    assert!(done.err.starts_with("phasecast: "), "{command:?}: {}", done.err);
    assert!(done.err.contains(text(input)), "{command:?} does not name the file: {}", done.err);
    assert!(!output.exists(), "{command:?} left an output");
    let left = fs::read_dir(folder).expect("the folder").filter_map(|e| e.ok()?.file_name().into_string().ok());
    assert!(!left.into_iter().any(|name| name.contains(".part")), "{command:?} left a temporary file");
}

#[test]
fn what_is_no_file_of_ours_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("empty-folder")).expect("a folder");
    fs::create_dir(at("other-folder")).expect("a folder");
    fs::write(at("other-folder/notes.txt"), "hello").expect("a file");
    fs::write(at("empty"), "").expect("a file");
    fs::write(at("text"), "hello, this is a text\n").expect("a file");
    fs::write(at("json"), "{\"a\": [1, 2]}").expect("a file");
    fs::write(at("binary"), (0..=255u8).cycle().take(4096).collect::<Vec<u8>>()).expect("a file");
    fs::write(at("elf"), fs::read("/bin/true").expect("a program")).expect("a file");
    for name in ["missing", "empty-folder", "other-folder", "empty", "text", "json", "binary", "elf"] {
        for command in READERS {
            refused(command, &at(name), folder.path());
        }
    }
}

fn rank_file(folder: &Path) -> (PathBuf, PathBuf, Vec<u8>) {
    let trace = folder.join("ring.trace");
    Ring { ranks: 2, iterations: 3000 }.write(&trace);
    let file = trace.join("rank-00001.pct");
    let content = fs::read(&file).expect("a rank's file");
    (trace, file, content)
}

#[test]
fn a_truncated_trace_opens_as_far_as_it_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, file, content) = rank_file(folder.path());
    for length in [content.len() - 1, content.len() - 100, content.len() / 2] {
        fs::write(&file, &content[..length]).expect("a cut file");
        let done = phasecast(&["stat", text(&trace), "--json"]);
        if done.code == 0 {
            let cut = &done.json()["truncated_ranks"][0];
            assert_eq!(cut["rank"], 1, "{length}: {}", done.out);
        } else {
            assert_eq!(done.code, 3, "{length}: {}", done.err);
        }
        assert!([0, 3].contains(&phasecast(&["dump", text(&trace)]).code));
        assert_eq!(phasecast(&["inspect", text(&file)]).code, 3, "a cut within a frame is damage");
    }
    fs::write(&file, &content[..10]).expect("a cut file");
    refused(&["stat", "IN"], &trace, folder.path());
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, file, content) = rank_file(folder.path());
    for at in (0..content.len()).step_by(content.len() / 40 + 1) {
        let mut flipped = content.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&file, &flipped).expect("a flipped file");
        let inspected = phasecast(&["inspect", text(&trace), "--json"]);
        assert_eq!(inspected.code, 3, "byte {at}: {}", inspected.out);
        for command in [["stat", text(&trace)], ["dump", text(&trace)]] {
            assert_eq!(phasecast(&command).code, 3, "{command:?}, byte {at}");
        }
    }
}

#[test]
fn a_trace_of_which_a_rank_is_missing_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, file, _) = rank_file(folder.path());
    fs::remove_file(file).expect("a rank's file");
    let stat = well(&["stat", text(&trace), "--json"]).json();
    assert_eq!(stat["truncated_ranks"][0]["rank"], 1);
    let inspected = phasecast(&["inspect", text(&trace)]);
    assert!(inspected.code == 3 && inspected.err.contains("1 of 2"), "{}", inspected.err);
}

#[test]
fn an_output_that_exists_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = write_prediction(folder.path(), "here", 9.0);
    let output = folder.path().join("page.html");
    fs::write(&output, "mine").expect("a file");
    let done = phasecast(&["report", text(&input), "-o", text(&output)]);
    assert_eq!(done.code, 3, "{}", done.err);
    assert!(done.err.contains("exists already"), "{}", done.err);
    assert_eq!(fs::read_to_string(&output).expect("the file"), "mine");
    let nowhere = folder.path().join("no/such/page.html");
    assert_eq!(phasecast(&["report", text(&input), "-o", text(&nowhere)]).code, 3);
}

#[test]
fn what_is_not_there_is_not_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("app.phc");
    let sign = |more: &[&str]| {
        let done = phasecast(&[&["sign", "-n", "2", "-o", text(&output)], more].concat());
        assert!(!output.exists() && !done.err.contains("base run"), "{}", done.err);
        done
    };
    let program = sign(&["--", "./no-such-program"]);
    assert!(program.code == 3 && program.err.contains("no-such-program"), "{}", program.err);
    let launcher = sign(&["--launcher", "no-such-launcher -n {n}", "--", "true"]);
    assert!(launcher.code == 4 && launcher.err.contains("no-such-launcher"), "{}", launcher.err);
    let folder = phasecast(&["predict", text(folder.path())]);
    assert!(folder.code == 3 && folder.err.contains("--skeleton"), "{}", folder.err);
}

#[test]
fn predictions_of_other_versions_and_impossible_numbers_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = common::prediction("here", 9.0);
    let change = |pointer: &str, value: serde_json::Value| {
        let mut changed = good.clone();
        *changed.pointer_mut(pointer).expect("a field") = value;
        changed.to_string()
    };
    let bad = [
        ("version", change("/version", 2.into())),
        ("negative", change("/pet_s", (-1.0).into())),
        ("huge", change("/interval_s/1", 1e300.into())),
        ("share", change("/coverage", 7.into())),
        ("ranks", change("/ranks", 0.into())),
        ("piece", change("/timeline/0/rank", 99.into())),
        ("type", change("/phases", "none".into())),
    ];
    for (name, content) in bad {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("a file");
        for command in [READERS[2], READERS[4], READERS[5]] {
            refused(command, &path, folder.path());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(
        start in prop::sample::select(vec![&b""[..], b"PHC\xF1", b"PHASECAST\nphases        \n\x02\0\0\0", b"PHCTAIL1", b"{", b"{\"version\":1,\"pet_s\":"]),
        bytes in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let input = folder.path().join("input");
        fs::write(&input, [start, &bytes].concat()).expect("a file");
        for command in [READERS[2], READERS[4], READERS[5]] {
            let done = run(command, &input, &folder.path().join("output"));
            prop_assert!([0, 3].contains(&done.code), "{command:?}: {}", done.err);
        }
        let trace = folder.path().join("trace");
        fs::create_dir(&trace).expect("a folder");
        fs::rename(&input, trace.join("rank-00000.pct")).expect("the file moves");
        for command in &READERS[..3] {
            let done = run(command, &trace, &folder.path().join("output"));
            prop_assert!([0, 3].contains(&done.code), "{command:?}: {}", done.err);
        }
    }

    #[test]
    fn changed_predictions_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut content = common::prediction("here", 9.0).to_string().into_bytes();
        for (at, byte) in changes {
            let at = at.index(content.len());
            content[at] = byte;
        }
        let input = folder.path().join("input");
        fs::write(&input, content).expect("a file");
        for command in [READERS[2], READERS[4], READERS[5]] {
            let done = run(command, &input, &folder.path().join("output"));
            prop_assert!([0, 3].contains(&done.code), "{command:?}: {}", done.err);
        }
    }
}

/// Several runs cannot read a pipe: what waits there is told of before the program misses it.
#[test]
fn a_pipe_that_waits_as_input_is_told_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sign = command(&["sign", "-n", "1", "--launcher", "env", "-o", "no.phc", "--", "true"]);
    sign.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
    for (input, told) in [(&b"a line\n"[..], true), (b"", false)] {
        let (read, mut write) = std::io::pipe().expect("a pipe");
        write.write_all(input).expect("it takes a line");
        drop(write);
        let done = sign.stdin(read).output().expect("it starts");
        let err = String::from_utf8_lossy(&done.stderr);
        assert_eq!((done.status.code(), err.contains("the program gets no input")), (Some(1), told), "{err}");
    }
}
