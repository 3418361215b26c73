//! What goes wrong while a signature is made or used: each time a clear error within half a minute, no process left, no
//! half signature under the final name, and the program's own runs unharmed.

use nix::sys::signal::Signal;
use phasecast_tests::mpi::Mpi;
use phasecast_tests::place::{LAUNCHERS, Place, json, parent, send, until_it_pays};
use phasecast_tests::process::{Outcome, Running, run, start};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long an error may take to be told.
const SOON: Duration = Duration::from_secs(30);
/// What the trace of a base run, and the jobs of the saving run and of the first prediction are called.
const STAGES: [&str; 4] = ["base1.trace", "base2.trace", "save-1.json", "replay-0.json"];

/// How a command ends, which may not take longer than [`SOON`].
fn ends_soon(command: Running, what: &str) -> Outcome {
    command.finish_within(SOON).unwrap_or_else(|outcome| panic!("{what}: more than {SOON:?}: {outcome:?}"))
}

/// Kills a rank, or the launcher, of the command that runs; false if it is gone already.
fn strike(command: &Running, ranks: &[i32], launcher: bool) -> bool {
    // Once sooner, once later in their lives.
    sleep(Duration::from_millis(if launcher { 20 } else { 400 }));
    let is_launcher = |pid: &i32| parent(*pid) == Some(command.id() as i32);
    let mut upwards = std::iter::successors(Some(ranks[1]), |pid| parent(*pid));
    let victim = if launcher { upwards.find(is_launcher) } else { upwards.next() };
    victim.is_some_and(|pid| send(pid, Signal::SIGKILL))
}

/// Starts a command and kills a rank or the launcher of a stage: how it ends. Again if it came well to its end before.
fn struck(command: impl Fn() -> Command, place: &Place, stage: &str, launcher: bool) -> Outcome {
    for _ in 0..5 {
        let mut running = start(&mut command());
        while !running.has_ended() {
            match place.two_ranks(stage) {
                Some(ranks) if strike(&running, &ranks, launcher) => return ends_soon(running, stage),
                _ => sleep(Duration::from_millis(5)),
            }
        }
        let outcome = running.finish();
        if outcome.code != 0 {
            return outcome;
        }
    }
    panic!("{stage}: it came to its end each time before it was struck");
}

#[test]
fn ranks_and_launchers_that_die_while_signing() {
    for (number, stage) in STAGES.into_iter().enumerate() {
        for launcher in [false, true] {
            let place = Place::alone();
            let mpi = if (number % 2 == 0) == launcher { Mpi::OpenMpi } else { Mpi::Mpich };
            let what = format!("{stage}, launcher {launcher}, {}", mpi.name());
            let sign = || {
                let _ = fs::remove_file(place.path().join("app.phc"));
                place.sign(mpi, &[])
            };
            let outcome = until_it_pays(|| struck(sign, &place, stage, launcher));
            if number == 3 && outcome.code == 0 {
                // The test at the end did without the one that died, and says so.
                assert!(json(&outcome)["verified"]["notes"].to_string().contains("failed"), "{what}: {outcome:?}");
                place.assert_clean(&["app.phc"]);
                continue;
            }
            assert_eq!(outcome.code, 1, "{what}: {outcome:?}");
            let told = outcome.stderr.lines().last().unwrap_or_default();
            assert!(told.starts_with("phasecast: ") && told.contains("failed"), "{what}: {outcome:?}");
            if number == 3 {
                // What was saved is not lost with the test.
                assert!(told.contains("app.phc is written"), "{what}: {outcome:?}");
                run(&mut place.phasecast(&["verify-file", "app.phc"])).succeeded();
                place.assert_clean(&["app.phc"]);
            } else {
                place.assert_clean(&[]);
            }
        }
    }
}

#[test]
fn launchers_that_die_while_predicting() {
    let place = Place::alone();
    place.given(Mpi::OpenMpi);
    for launcher in LAUNCHERS {
        let predict = || place.predict(launcher, &["--budget", "15s", "--precision", "0.0001"]);
        let outcome = struck(predict, &place, STAGES[3], true);
        // What was measured before, or can be measured anew, it may still tell of: then it says so.
        match outcome.code {
            0 => assert!(json(&outcome)["notes"].to_string().contains("failed"), "{outcome:?}"),
            code => assert!(code == 1 && outcome.stderr.contains("the restart failed"), "{outcome:?}"),
        }
        place.assert_clean(&["app.phc"]);
    }
    // Nor may anything be left of a prediction that is itself killed: its launcher is told.
    for launcher in LAUNCHERS {
        let predict = start(&mut place.predict(launcher, &["--budget", "60s", "--precision", "0.0001"]));
        place.wait_for_ranks(STAGES[3]);
        assert!(send(predict.id() as i32, Signal::SIGKILL));
        ends_soon(predict, launcher);
        let patience = Instant::now() + SOON;
        while !place.processes().is_empty() && Instant::now() < patience {
            sleep(Duration::from_millis(20));
        }
        assert_eq!(place.processes(), [] as [i32; 0], "{launcher}: processes are left");
    }
}

#[test]
fn a_live_prediction_outlives_its_launcher() {
    for (mpi, launcher) in [Mpi::OpenMpi, Mpi::Mpich].into_iter().zip(LAUNCHERS) {
        let place = Place::alone();
        let program = place.program(mpi, "stencil.c");
        let mut sign = place.phasecast(&["sign", "--live", "-n", "2", "-o", "app.phc", "--"]);
        sign.arg(&program).args(["64", "500"]);
        until_it_pays(|| run(&mut sign)).succeeded();
        let predict = || {
            let mut predict = place.phasecast(&["predict", "app.phc", "--launcher", launcher, "--"]);
            predict.arg(&program).args(["512", "1000000"]);
            predict
        };
        let outcome = struck(predict, &place, ".phasecast-", true);
        assert!(outcome.code == 1 && outcome.stderr.contains("failed on this machine"), "{outcome:?}");
        place.assert_clean(&["app.phc"]);
    }
}

#[test]
fn signatures_that_were_damaged_on_their_way() {
    let place = Place::alone();
    place.given(Mpi::Mpich);
    let file = place.path().join("app.phc");
    let whole = fs::read(&file).expect("it was written");
    let n = whole.len();
    let used = |bytes: &[u8], words: &[&str]| {
        fs::write(&file, bytes).expect("it can be written");
        let outcome = ends_soon(start(&mut place.phasecast(words)), &format!("{words:?}"));
        place.assert_clean(&["app.phc"]);
        outcome
    };
    let predict = ["predict", "app.phc", "--launcher", LAUNCHERS[0]];
    for length in [0, 100, n / 3, n / 2, n - 4096, n - 1] {
        let refused = used(&whole[..length], &predict);
        assert!(refused.code == 3 && refused.stderr.contains("app.phc"), "{length} of {n}: {refused:?}");
    }
    for at in (1..8).map(|part| part * n / 8) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        let checked = used(&flipped, &["verify-file", "app.phc"]);
        assert!(checked.code == 3 && checked.stderr.contains("app.phc"), "byte {at} of {n}: {checked:?}");
        // A prediction reads what it needs; where it needs the damaged part it ends.
        let predicted = used(&flipped, &predict);
        let told = predicted.stderr.contains("app.phc is damaged");
        assert!(predicted.code == 0 || told && predicted.code == 3, "byte {at} of {n}: {predicted:?}");
    }
}

/// A launcher that does more than start ranks: a script in the folder.
fn wrapper(place: &Place, text: &str) -> String {
    let path = place.path().join("openmpi-wrapper");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
    format!("{} -n {{n}}", path.display())
}

#[test]
fn a_rank_without_its_image_is_not_signed() {
    let place = Place::alone();
    // As soon as the run is over the second rank's states go, or a part of its pages.
    for remove in ["rm $images/cut-*.rank-00001.state", "truncate -s 9999 $images/rank-00001.store"] {
        let script = format!(
            "mpirun.openmpi \"$@\" || exit; images=$(echo .phasecast-*/images-1); [ ! -d $images ] || {remove}"
        );
        let launcher = wrapper(&place, &script);
        let mut sign = place.sign(Mpi::OpenMpi, &["--no-verify", "--launcher", &launcher]);
        let outcome = until_it_pays(|| run(&mut sign));
        let told = outcome.stderr.lines().last().unwrap_or_default();
        assert!(outcome.code != 0 && told.contains("rank-00001") | told.contains("rank 1"), "{remove}: {outcome:?}");
        place.assert_clean(&[]);
    }
}

/// Under MPICH the others wait in MPI_Init for a rank that has failed before, and nobody ends them.
#[test]
fn a_rank_that_does_not_begin() {
    let place = Place::alone();
    place.given(Mpi::OpenMpi);
    let host = "exec mpirun.mpich -n 1 \"$3\" host \"$5\" : -n 1";
    for (other, words) in [("false", "hung"), ("\"$3\" host /nowhere/job.json", "/nowhere/job.json")] {
        let launcher = wrapper(&place, &format!("{host} {other}"));
        // That nobody says anything is waited for a little longer.
        let outcome = run(&mut place.predict(&launcher, &[]));
        assert!(outcome.code == 1 && outcome.stderr.contains(words), "{other}: {outcome:?}");
        place.assert_clean(&["app.phc"]);
    }
}

#[test]
fn a_launcher_that_starts_nothing() {
    let place = Place::alone();
    place.given(Mpi::OpenMpi);
    let outcome = run(&mut place.predict("sh -c 'echo no such network >&2; exit 7' {n}", &[]));
    let words = ["no such network", "(exit status: 7): no rank has begun; what the launcher said stands above"];
    assert!(outcome.code == 1 && words.iter().all(|words| outcome.stderr.contains(words)), "{outcome:?}");
    place.assert_clean(&["app.phc"]);
}

#[test]
fn launchers_of_another_number_of_ranks() {
    let place = Place::alone();
    place.given(Mpi::OpenMpi);
    for launcher in LAUNCHERS {
        for (ranks, words) in [("1", "but MPI says rank 0 of 1"), ("3", "but the images are of 2 ranks")] {
            let launcher = launcher.replace("{n}", ranks);
            let outcome = ends_soon(start(&mut place.predict(&launcher, &[])), &launcher);
            assert!(outcome.code == 1 && outcome.stderr.contains(words), "{launcher}: {outcome:?}");
            place.assert_clean(&["app.phc"]);
        }
    }
}

#[test]
fn another_version_of_the_program() {
    let place = Place::alone();
    place.signed(Mpi::OpenMpi, &[]);
    let program = place.program(Mpi::OpenMpi, "stencil.c");
    let mut bytes = fs::read(&program).expect("it is there");
    bytes.push(0);
    fs::write(&program, bytes).expect("it can be written");
    let outcome = ends_soon(start(&mut place.phasecast(&["verify", "app.phc"])), "verify");
    assert!(outcome.code == 3 && outcome.stderr.contains("is not the program that was signed"), "{outcome:?}");
    fs::remove_file(program).expect("it is there");
    let outcome = ends_soon(start(&mut place.phasecast(&["verify", "app.phc"])), "verify");
    assert!(outcome.code == 3 && outcome.stderr.contains("is needed"), "{outcome:?}");
    place.assert_clean(&["app.phc"]);
}

/// The kernel's word on the processor is hidden behind one that leaves AVX2 out.
#[test]
fn a_processor_that_lacks_the_baseline() {
    let place = Place::alone();
    place.given(Mpi::OpenMpi);
    for words in ["predict app.phc", "preflight app.phc"] {
        let script = format!(
            "mount -t tmpfs none /mnt && sed 's/ avx2 / /' /proc/cpuinfo > /mnt/cpuinfo && \
             mount --bind /mnt/cpuinfo /proc/cpuinfo && exec \"$0\" {words} --launcher '{}'",
            LAUNCHERS[1]
        );
        let plain = place.phasecast(&[]);
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", &script]).arg(plain.get_program());
        let outcome = ends_soon(start(command.current_dir(place.path())), words);
        assert!(outcome.code == 4 && outcome.stderr.contains("lacks avx2 of x86-64-v3"), "{outcome:?}");
        assert!(outcome.stderr.contains("--cpu-baseline x86-64-v2"), "{outcome:?}");
        place.assert_clean(&["app.phc"]);
    }
}

/// As many images in each signature.
const IMAGES: [&str; 2] = ["--images", "2"];

/// Signs on a disk of this size: what is left there, by name, after the exit code.
fn signed_on_a_disk_of(kib: u32, place: &Place) -> (Outcome, Vec<String>) {
    let disk = place.path().join("openmpi-disk");
    fs::create_dir_all(&disk).expect("a folder");
    let sign = place.sign(Mpi::OpenMpi, &[&["--no-verify"], &IMAGES[..]].concat());
    let mut command = Command::new("unshare");
    let script = format!(
        "mount -t tmpfs -o size={kib}k none \"$0\" || exit 99; cd \"$0\"; \"$@\" > /dev/null; code=$?; ls -A; exit $code"
    );
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script]).arg(&disk);
    command.arg(sign.get_program()).args(sign.get_args()).current_dir(place.path());
    command.envs(sign.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let outcome = run(&mut command);
    let left = outcome.stdout.lines().map(str::to_owned).collect();
    (outcome, left)
}

#[test]
fn disks_that_are_full_before_the_signature_is_whole() {
    let place = Place::alone();
    place.signed(Mpi::OpenMpi, &IMAGES);
    let size = fs::metadata(place.path().join("app.phc")).expect("it was written").len() / 1024;
    // In the images, and in packing them.
    for percent in [40, 150] {
        let kib = (size * percent / 100) as u32;
        let mut left = Vec::new();
        let outcome = until_it_pays(|| {
            let (outcome, names) = signed_on_a_disk_of(kib, &place);
            left = names;
            outcome
        });
        let what = format!("{kib} KiB for {size} KiB: {outcome:?}");
        assert!(outcome.code == 1 && outcome.stderr.contains("No space left"), "{what}");
        assert!(outcome.stderr.contains("Make room on that disk"), "{what}");
        assert!(left.is_empty(), "{left:?} are left, {what}");
        // Two base runs, and one or two that saved: all came to their end.
        let runs = outcome.stderr.matches("stencil: ok").count();
        assert!(runs >= 3 || percent < 100 && runs >= 2, "{runs} runs came to their end, {what}");
        place.assert_clean(&["app.phc"]);
    }
    // Nor is a prediction begun where there is no room for its reports.
    let disk = place.path().join("openmpi-disk");
    let script = "mount -t tmpfs -o size=64k none \"$0\" && cd \"$0\" && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script]).arg(&disk);
    let predict = place.predict(LAUNCHERS[0], &[]);
    command.arg(predict.get_program()).arg("predict").arg(place.path().join("app.phc"));
    let outcome = ends_soon(start(&mut command), "predict");
    assert!(outcome.code == 4 && outcome.stderr.contains("are free in the working folder"), "{outcome:?}");
    place.assert_clean(&["app.phc"]);
}
