//! A full disk: the traced program is not harmed, its trace opens and says where it stops, and no command leaves half a
//! file. The disk is a small tmpfs in a mount namespace of its own, which goes with the test.

use phasecast_tests::example::compiled;
use phasecast_tests::mpi::Mpi;
use phasecast_tests::phasecast;
use phasecast_tests::process::{Outcome, run};
use serde_json::Value;
use std::process::Command;

/// Runs a shell script in a folder `$DISK` of 500 KiB.
fn on_a_small_disk(script: &str, mpi: Mpi) -> Outcome {
    let disk = tempfile::tempdir().expect("a temporary folder");
    let mut launcher = mpi.launcher(2);
    let mut words = vec![launcher.get_program().to_owned()];
    words.extend(launcher.get_args().map(ToOwned::to_owned));
    let words: Vec<String> = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c"]);
    command.arg(format!("mount -t tmpfs -o size=500k none \"$DISK\" && {{ {script}\n}}"));
    for (name, value) in launcher.env("MPIRUN", words.join(" ")).get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.env("DISK", disk.path()).env("PHASECAST", phasecast()).env("PROGRAM", compiled(mpi, "pingpong.c"));
    run(&mut command)
}

/// Traces on a small disk, while a script runs beside it: each trace that is cut, and one is, ends with the reason.
fn is_cut_with_a_reason(beside: &str, mpi: Mpi) {
    let script = format!(
        "{{ {beside}\n}} > /dev/null 2>&1 &\n\
        $MPIRUN $PHASECAST trace -o $DISK/t.trace $PROGRAM 150000 >&2; code=$?\n\
        kill $!\n\
        [ $code = 0 ] || exit 9\n\
        $PHASECAST stat $DISK/t.trace --json"
    );
    let outcome = on_a_small_disk(&script, mpi).succeeded();
    let stat: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|e| panic!("{e}: {outcome:?}"));
    let cut = stat["truncated_ranks"].as_array().cloned().unwrap_or_default();
    assert!(!cut.is_empty(), "{stat}");
    assert!(cut.iter().all(|rank| rank["reason"].to_string().contains("No space left")), "{stat}");
    assert!(stat["events"].as_u64() > Some(10_000), "{stat}");
}

#[test]
fn a_traced_program_is_not_harmed() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        is_cut_with_a_reason(":", mpi);
    }
}

#[test]
fn another_writer_does_not_take_the_place_of_the_end() {
    let beside = "until [ $(du -sk $DISK | cut -f1) -gt 300 ]; do sleep 0.01; done\n\
        while :; do cat /dev/zero >> $DISK/filler; sleep 0.01; done";
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        is_cut_with_a_reason(beside, mpi);
    }
}

#[test]
fn no_half_file_is_left() {
    let script = "$MPIRUN $PHASECAST trace --quiet -o $DISK/t.trace $PROGRAM 20000 >&2 || exit 9\n\
        $PHASECAST export $DISK/t.trace --format csv -o $DISK/t.csv; echo export $?\n\
        head -c 1000000 /dev/zero > $DISK/filler 2> /dev/null\n\
        $PHASECAST analyze $DISK/t.trace -o $DISK/t.phases > /dev/null; echo analyze $?\n\
        ls -A $DISK";
    let outcome = on_a_small_disk(script, Mpi::Mpich).succeeded();
    assert_eq!(
        outcome.stdout.split_whitespace().collect::<Vec<_>>(),
        ["export", "1", "analyze", "1", "filler", "t.trace"]
    );
    assert!(outcome.stderr.matches("No space left").count() >= 2, "{outcome:?}");
}
