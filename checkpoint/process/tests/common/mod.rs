//! Compiles test programs and runs the crate's examples on them.
#![allow(dead_code)]
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The built example of that name, beside this test.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples").join(name)
}

/// Compiles programs of `tests/programs` with a compiler and its options.
pub fn compile(folder: &TempDir, compiler: &str, sources: &[&str], options: &[&str]) -> PathBuf {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let out = folder.path().join(sources[0]).with_extension("program");
    let mut command = Command::new(compiler);
    command.args(["-O1", "-w", "-pthread", "-o"]).arg(&out).current_dir(folder.path());
    command.args(options).args(sources.iter().map(|s| programs.join(s))).args(["-lm", "-ldl"]);
    assert!(command.status().unwrap().success(), "{command:?}");
    out
}

/// What the threads of a process do, by the kernel's word.
fn threads(pid: u32) -> String {
    let said = |task: std::fs::DirEntry| {
        let of = |file| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        ["comm", "wchan", "syscall", "stat"].map(|file| of(file).trim().to_owned()).join(" | ")
    };
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.map(said).collect::<Vec<_>>().join("\n")
}

/// Runs an example; the test fails if it takes longer than a minute.
pub fn run(name: &str, args: &[&str], set: &[(&str, &str)]) -> Output {
    let mut command = Command::new(example(name));
    command.args(args).envs(set.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (start, limit) = (Instant::now(), Duration::from_secs(60));
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > limit {
            let stands = threads(child.id());
            child.kill().unwrap();
            panic!("{name} {args:?} hangs: {:?}\n{stands}", child.wait_with_output().unwrap());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

/// Runs a program in the upper half and returns what it printed; it must succeed.
pub fn output(name: &str, args: &[&str]) -> String {
    let output = run(name, args, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {args:?}: {:?}\n{text}\n{errors}", output.status);
    text
}
