//! The documentation holds: every page of the book exists, every link leads somewhere, every command that a shell block
//! shows is one that the real command accepts, and every key of JSON that is described is there, and no other.

use phasecast_tests::example::compiled;
use phasecast_tests::mpi::Mpi;
use phasecast_tests::process::run;
use phasecast_tests::traced::Job;
use phasecast_tests::{phasecast, root};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A page with its path.
struct Page {
    path: PathBuf,
    text: String,
}

/// All Markdown files of `docs`, and those of the root.
fn pages() -> Vec<Page> {
    let mut pages = Vec::new();
    let mut folders = vec![root().join("docs")];
    let mut paths: Vec<PathBuf> = ["README.md", "CHANGELOG.md", "examples/README.md"].map(|f| root().join(f)).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be listed") {
            let path = entry.expect("the folder can be listed").path();
            let name = path.file_name().unwrap_or_default().to_owned();
            if path.is_dir() && name != "book" {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                paths.push(path);
            }
        }
    }
    for path in paths {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        pages.push(Page { path, text });
    }
    pages
}

/// The text without its code, and the lines of its shell blocks with their continuations joined.
fn split(text: &str) -> (String, Vec<String>) {
    let (mut prose, mut shell) = (String::new(), Vec::new());
    let mut fence: Option<bool> = None;
    let mut open = String::new();
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = match fence {
                Some(_) => None,
                None => Some(matches!(language.trim(), "sh" | "bash" | "shell" | "console")),
            };
            continue;
        }
        match fence {
            None => {
                prose.push_str(&without_code(line));
                prose.push('\n');
            }
            Some(true) => match line.trim_end().strip_suffix('\\') {
                Some(start) => open.push_str(start),
                None => shell.push(std::mem::take(&mut open) + line),
            },
            Some(false) => {}
        }
    }
    (prose, shell)
}

/// A line of prose without what stands between backquotes.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// The targets of Markdown links and of mdBook's includes.
fn targets(prose: &str) -> Vec<String> {
    let links = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let includes = prose.split("{{#include ").skip(1).filter_map(|rest| rest.split_once("}}"));
    links.map(|(target, _)| target.trim().to_string()).chain(includes.map(|(t, _)| t.trim().to_string())).collect()
}

/// The anchor that mdBook and GitHub give a heading.
fn anchor(heading: &str) -> String {
    let lower = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// What is wrong with a link of a page, if anything.
fn broken(page: &Page, target: &str) -> Option<String> {
    if ["http://", "https://", "mailto:"].iter().any(|scheme| target.starts_with(scheme)) {
        return None;
    }
    let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
    let folder = page.path.parent().unwrap_or(Path::new("."));
    let path = if file.is_empty() { page.path.clone() } else { folder.join(file) };
    if !path.exists() {
        return Some(format!("{}: {target} does not exist", page.path.display()));
    }
    if fragment.is_empty() || path.extension().is_none_or(|e| e != "md") {
        return None;
    }
    let text = fs::read_to_string(&path).unwrap_or_default();
    let found = text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == fragment);
    (!found).then(|| format!("{}: {target} leads to no heading", page.path.display()))
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let links: Vec<(&Page, String)> =
        pages.iter().flat_map(|page| targets(&split(&page.text).0).into_iter().map(move |t| (page, t))).collect();
    assert!(links.len() > 50, "only {} links were found", links.len());
    let wrong: Vec<String> = links.iter().filter_map(|(page, target)| broken(page, target)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_summary_names_every_page() {
    let folder = root().join("docs/src");
    let summary = fs::read_to_string(folder.join("SUMMARY.md")).expect("the book has a summary");
    let named: BTreeSet<PathBuf> = targets(&summary).iter().map(|target| folder.join(target)).collect();
    let missing: Vec<_> = named.iter().filter(|path| !path.is_file()).collect();
    assert!(missing.is_empty(), "named but not there: {missing:?}");
    let pages = pages();
    let there = pages.iter().map(|page| &page.path).filter(|path| path.starts_with(&folder));
    let forgotten: Vec<_> = there.filter(|p| !named.contains(*p) && !p.ends_with("SUMMARY.md")).collect();
    assert!(forgotten.is_empty(), "there but not named: {forgotten:?}");
    let decisions = fs::read_to_string(folder.join("decisions.md")).expect("the book has its decisions");
    let included: BTreeSet<PathBuf> =
        targets(&decisions).iter().filter_map(|t| Path::new(t).file_name().map(PathBuf::from)).collect();
    let files = fs::read_dir(root().join("docs/decisions")).expect("there are decisions");
    let files: BTreeSet<PathBuf> = files.map(|f| PathBuf::from(f.expect("a file").file_name())).collect();
    assert_eq!(included, files);
}

/// The words of a line as a shell sees them, as far as our examples go: quotes, comments, and the marks that end a
/// command, each of which is a word of its own.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut started) = (Vec::new(), String::new(), None, false);
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, started) = (Some(c), true),
            (None, '#') if !started => break,
            (None, ' ' | '\t' | '|' | '&' | ';' | '(' | ')' | '>' | '<') => {
                if std::mem::take(&mut started) {
                    words.push(std::mem::take(&mut word));
                }
                if !matches!(c, ' ' | '\t') {
                    words.push(c.to_string());
                }
            }
            (None, c) => {
                word.push(c);
                started = true;
            }
        }
    }
    if started {
        words.push(word);
    }
    words
}

/// One use of the command in a line: subcommand and flags up to `--` or the end of the command.
#[derive(Debug, PartialEq, Eq)]
struct Use {
    subcommand: String,
    flags: Vec<String>,
}

/// A command without what may stand before it: words of the shell, and variables that are set for it.
fn without_prefixes(command: &[String]) -> &[String] {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_prefix = |word: &String| {
        ["do", "then", "time"].contains(&word.as_str()) || word.split_once('=').is_some_and(|(name, _)| is_name(name))
    };
    &command[command.iter().take_while(|word| is_prefix(word)).count()..]
}

fn uses(line: &str) -> Vec<Use> {
    let mut found = Vec::new();
    for command in words(line).split(|word| matches!(word.as_str(), "|" | "&" | ";" | "(" | ")" | ">" | "<")) {
        let command = without_prefixes(command);
        let Some(at) = command.iter().position(|w| Path::new(w).file_name().is_some_and(|n| n == "phasecast")) else {
            continue;
        };
        // `install target/release/phasecast ...` names the file, it does not run it.
        let launched = at == 0 || command[0].starts_with("mpi") || command[0] == "srun";
        let Some(subcommand) = command.get(at + 1).filter(|_| launched) else { continue };
        // `model fit` has flags of its own.
        let nested = subcommand == "model" && command.get(at + 2).is_some_and(|word| word == "fit");
        let subcommand = if nested { "model fit" } else { subcommand };
        let rest = command[at + 2..].iter().take_while(|word| *word != "--");
        let flags = rest.filter(|word| word.len() > 1 && word.starts_with('-'));
        let flags = flags.map(|flag| flag.split('=').next().unwrap_or(flag).to_string()).collect();
        found.push(Use { subcommand: subcommand.to_owned(), flags });
    }
    found
}

/// The flags that a subcommand's help names; none if there is no such subcommand.
fn flags_of(subcommand: &str) -> Option<BTreeSet<String>> {
    let names = subcommand.split(' ').filter(|name| !name.starts_with('-'));
    let out = Command::new(phasecast()).args(names).arg("--help").output().expect("phasecast can be run");
    let text = String::from_utf8_lossy(&out.stdout);
    let definitions = text.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let words = definitions.flat_map(|line| line.split([' ', ',', '=']).filter(|word| word.starts_with('-')));
    out.status.success().then(|| words.map(str::to_string).collect())
}

#[test]
fn every_command_shown_is_accepted() {
    let mut known: BTreeMap<String, Option<BTreeSet<String>>> = BTreeMap::new();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for page in pages() {
        for line in split(&page.text).1 {
            for shown in uses(&line) {
                seen += 1;
                let flags = known.entry(shown.subcommand.clone()).or_insert_with(|| flags_of(&shown.subcommand));
                match flags {
                    None => wrong.push(format!("{}: no `{}` in: {line}", page.path.display(), shown.subcommand)),
                    Some(flags) => {
                        let strange = shown.flags.iter().filter(|flag| !flags.contains(*flag));
                        wrong.extend(strange.map(|flag| format!("{}: no {flag} in: {line}", page.path.display())));
                    }
                }
            }
        }
    }
    assert!(seen > 20, "only {seen} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_xtask_shown_exists() {
    let lines: Vec<String> = pages().iter().flat_map(|page| split(&page.text).1).collect();
    let shown = lines.iter().map(|line| words(line)).filter(|w| w.len() > 2 && w[0] == "cargo" && w[1] == "xtask");
    let shown: BTreeSet<String> = shown.map(|words| words[2].clone()).collect();
    assert!(shown.contains("demo") && shown.contains("test"), "{shown:?}");
    for name in shown {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let help = Command::new(cargo).current_dir(root()).args(["xtask", &name, "--help"]).output();
        assert!(help.is_ok_and(|out| out.status.success()), "there is no `cargo xtask {name}`");
    }
}

/// The words between backquotes in the first column of the first table after `mark` on a page of the book.
fn described(page: &str, mark: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("docs/src").join(page)).expect("the page is there");
    let (_, after) = text.split_once(mark).unwrap_or_else(|| panic!("{page} has no \"{mark}\""));
    let rows = after.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_string).collect()
}

fn keys(object: &Value) -> BTreeSet<String> {
    object.as_object().unwrap_or_else(|| panic!("no object: {object}")).keys().cloned().collect()
}

fn with(mut keys: BTreeSet<String>, more: &str) -> BTreeSet<String> {
    keys.insert(more.to_string());
    keys
}

#[test]
fn every_key_of_json_is_described() {
    let program = compiled(Mpi::OpenMpi, "cg.c");
    let traced = Job::new(Mpi::OpenMpi, 2, &words_of(&program)).run();
    assert_eq!(traced.outcome.code, 0, "{:?}", traced.outcome);
    assert_eq!(described("guide/scripting.md", "### `stat`"), keys(&traced.stat()));

    let answer = |command: &mut Command| -> Value {
        let out = run(command).succeeded().stdout;
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error} in\n{out}"))
    };
    let analysis = answer(Command::new(phasecast()).arg("analyze").arg(&traced.trace).arg("--json"));
    assert_eq!(described("formats/phases.md", "## Manifest"), with(keys(&analysis), "volume_classes"));
    assert_eq!(described("formats/phases.md", "Of each phase:"), with(keys(&analysis["phases"][0]), "hashes"));

    let folder = tempfile::tempdir().expect("a folder");
    let phasecast = |words: &[&str]| {
        let mut command = Command::new(phasecast());
        command.current_dir(folder.path()).args(words).args(["--launcher", "mpirun.openmpi --oversubscribe -n {n}"]);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.args(["--json", "--"]).args(words_of(&program));
        answer(&mut command)
    };
    let signed = phasecast(&["sign", "--live", "-n", "2", "--runs", "1", "-o", "cg.phc"]);
    assert_eq!(with(with(keys(&analysis), "signature"), "aet_s"), keys(&signed));
    let prediction = phasecast(&["predict", "cg.phc"]);
    assert_eq!(described("formats/prediction.md", "# Prediction"), keys(&prediction));
    assert_eq!(described("formats/prediction.md", "Of each phase:"), keys(&prediction["phases"][0]));
}

/// A short run, as a command.
fn words_of(program: &Path) -> [&std::ffi::OsStr; 3] {
    [program.as_os_str(), "32".as_ref(), "200".as_ref()]
}

#[test]
fn commands_are_found_in_shell_lines() {
    let of = |subcommand: &str, flags: &[&str]| Use {
        subcommand: subcommand.into(),
        flags: flags.iter().map(|f| f.to_string()).collect(),
    };
    assert_eq!(uses("mpirun -n 4 phasecast trace -o a -- ./a --deep 3"), [of("trace", &["-o"])]);
    assert_eq!(uses("phasecast stat a --json | jq .events  # phasecast x"), [of("stat", &["--json"])]);
    assert_eq!(uses("phasecast sign --launcher='srun -n {n} --x' -- ./a"), [of("sign", &["--launcher"])]);
    assert_eq!(uses("for n in 2 4; do X=1 mpirun -n $n phasecast trace -o a ./a; done"), [of("trace", &["-o"])]);
    assert_eq!(uses("install target/release/phasecast ~/bin"), []);
    let (_, shell) = split("```sh\na \\\n  b\n```\n```text\nc\n```\n");
    assert_eq!(shell, ["a   b"]);
}
