//! Programs that are saved, thrown away and made again within one process.
mod common;
use common::{compile, output};
use tempfile::TempDir;

fn goes_back(options: &[&str], times: &str) {
    let folder = TempDir::new().unwrap();
    let program = compile(&folder, "cc", &["back.c"], options);
    let text = output("rewind", &[times, program.to_str().unwrap(), folder.path().to_str().unwrap()]);
    assert_eq!(text, format!("{times}\npassed\n"));
    // What the replayed program wrote went to copies.
    assert_eq!(std::fs::read_to_string(folder.path().join("later")).unwrap(), "original");
    assert!(!folder.path().join("moved").exists());
    assert_eq!(std::fs::read_to_string(folder.path().join("out")).unwrap(), "before\nafter    0\n");
}

#[test]
fn a_movable_program() {
    goes_back(&["-pie", "-fPIE"], "0");
    goes_back(&["-pie", "-fPIE"], "1");
    goes_back(&["-pie", "-fPIE"], "12");
}

#[test]
fn a_program_at_fixed_addresses() {
    goes_back(&["-no-pie"], "5");
}

/// A program that checks what it has after each return.
fn has_it_again(source: &str) {
    let folder = TempDir::new().unwrap();
    let program = compile(&folder, "cc", &[source], &["-pthread"]);
    for times in ["0", "1", "5"] {
        assert_eq!(output("rewind", &[times, program.to_str().unwrap()]), format!("{times}\npassed\n"));
    }
}

#[test]
fn channels_that_a_program_has_to_itself() {
    has_it_again("channels.c");
}

#[test]
fn timers_that_a_program_has_made() {
    has_it_again("timers.c");
}

#[test]
fn a_thread_that_is_not_the_main_one() {
    has_it_again("thread.c");
}

#[test]
fn fortran_with_openmp_and_a_scratch_file() {
    let folder = TempDir::new().unwrap();
    for (times, policy) in [("1", "passive"), ("8", "active")] {
        let program = compile(&folder, "gfortran", &["openmp.f90", "gate.c"], &["-fopenmp"]);
        let args = ["OMP_WAIT_POLICY", policy];
        let output = common::run("rewind", &[times, program.to_str().unwrap()], &[(args[0], args[1])]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text, format!("{times}\npassed\n"), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn what_no_other_machine_has_refuses_the_cut() {
    let folder = TempDir::new().unwrap();
    let program = compile(&folder, "cc", &["obstacle.c"], &["-pthread"]);
    let all = [("socket", "socket:"), ("pipe", "pipe:"), ("signal", "waits for a thread"), ("nothing", "")];
    for (what, reason) in all {
        let output = common::run("rewind", &["1", program.to_str().unwrap(), what], &[]);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && errors.contains(reason), "{what}: {:?} {errors}", output.status);
        assert_eq!(errors.is_empty(), what == "nothing", "{errors}");
    }
}
