//! Signatures with images, from `sign` to `predict`: made under one MPI, restarted under both, and what happens when
//! something goes wrong. Whatever happens, no process, no scratch folder and no half signature is left.

use nix::sys::signal::Signal;
use phasecast_checkpoint::job::{Cut, ReplayReport, Step, StepTime, Within};
use phasecast_checkpoint::moment::Moment;
use phasecast_tests::bench::{Command, Split};
use phasecast_tests::example::compiled;
use phasecast_tests::mpi::Mpi;
use phasecast_tests::place::{LAUNCHERS, Place, STEPS, json, send, until_it_pays};
use phasecast_tests::process::{run, start};
use phasecast_tests::program::programs;
use phasecast_tests::split::{Base, native};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

#[test]
fn images_of_one_mpi_are_restarted_under_both() {
    let place = Place::alone();
    let signed = json(&place.signed(Mpi::OpenMpi, &[]));
    let file = place.path().join("app.phc");
    assert!(signed["images"].as_u64() > Some(0) && signed["verified"].is_null(), "{signed}");
    let about = fs::metadata(&file).expect("the signature is there");
    assert_eq!((about.permissions().mode() & 0o777, Some(about.len())), (0o600, signed["bytes"].as_u64()));
    let checked = json(&run(&mut place.phasecast(&["verify-file", "app.phc", "--json"])).succeeded());
    assert_eq!((&checked["sha256"], &checked["cuts"]), (&signed["sha256"], &signed["images"]));
    place.assert_clean(&["app.phc"]);
    // The target has the signature, and not the program.
    fs::remove_file(place.program(Mpi::OpenMpi, "stencil.c")).expect("the program can be removed");
    for launcher in LAUNCHERS {
        let checks = run(&mut place.phasecast(&["preflight", "app.phc", "--json", "--launcher", launcher])).succeeded();
        assert!(json(&checks)["checks"].as_array().is_some_and(|c| c.len() == 10), "{checks:?}");
        let outcome = run(&mut place.predict(launcher, &[])).succeeded();
        assert!(outcome.stderr.contains("signed by"), "{}", outcome.stderr);
        let prediction = json(&outcome);
        let number = |key: &str| prediction[key].as_f64().unwrap_or_else(|| panic!("no {key}: {prediction}"));
        assert_eq!(prediction["method"], "restart");
        assert!(number("restarts") >= 1.0 && number("measured_s") > 0.0 && number("restart_s") > 0.0, "{prediction}");
        // Each of the slowest rank, which another may be in each.
        assert!(["restart_s", "warmup_s", "measured_s"].iter().all(|of| number(of) <= number("set_s")), "{prediction}");
        assert!((0.25..=1.0).contains(&number("coverage")), "{prediction}");
        for interval in ["interval_s", "run_interval_s"] {
            let (low, high) = (prediction[interval][0].as_f64(), prediction[interval][1].as_f64());
            let within = low.zip(high).is_some_and(|(low, high)| (low..=high).contains(&number("pet_s")));
            assert!(within, "{prediction}");
        }
        let weights =
            |of: &Value| of["phases"].as_array().map(|p| p.iter().map(|p| p["weight"].as_u64()).collect::<Vec<_>>());
        assert_eq!(weights(&prediction), weights(&signed));
        place.assert_clean(&["app.phc"]);
    }
}

/// A script starts a tool, and that the program, each beside itself.
#[test]
fn a_program_that_a_script_starts_is_saved() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let place = Place::alone();
        let (script, said) = [".sh", "-said"].map(|end| place.path().join(format!("{}{end}", mpi.name()))).into();
        let text = format!("#!/bin/sh\ntimeout 300 \"$@\" || exit\necho over >>{}\n", said.display());
        fs::write(&script, text).expect("a script can be written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
        let of = |mpi: Mpi| LAUNCHERS[usize::from(mpi == Mpi::Mpich)];
        let sign = || {
            let mut sign = place.phasecast(&["sign", "-n", "2", "-o", "app.phc", "--no-verify", "--json"]);
            sign.args(["--launcher", of(mpi), "--"]).arg(&script).arg(place.program(mpi, "stencil.c")).args(STEPS);
            run(&mut sign)
        };
        let signed = json(&until_it_pays(sign).succeeded());
        assert!(signed["images"].as_u64() > Some(0), "{signed}");
        // Both ranks of the two base runs and of the one that saves, and of each attempt.
        let lines = fs::read_to_string(&said).expect("the scripts came to their ends").lines().count();
        assert!(lines >= 6 && lines % 2 == 0, "{lines}");
        fs::remove_file(&script).expect("the script can be removed");
        for launcher in LAUNCHERS {
            assert_eq!(json(&run(&mut place.predict(launcher, &[])).succeeded())["method"], "restart");
        }
        place.assert_clean(&["app.phc"]);
    }
}

/// A program that adds up what it reads from descriptor 50, a line in each step, and works.
const READS: &str = r#"
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    FILE *lines = fdopen(50, "r");
    double sum = 0, all;
    for (int step = 0, line; step < 400; step++) {
        if (!lines || fscanf(lines, "%d", &line) != 1 || line != step)
            MPI_Abort(MPI_COMM_WORLD, 3);
        for (volatile int spin = 0; spin < 1000000; spin++)
            sum += 1e-9 * line;
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}"#;

/// A file that a script has open as it starts the program is the program's; a pipe is not, nor what the launcher had open.
#[test]
fn what_a_script_has_opened_is_read_on() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let place = Place::alone();
        place.built(mpi, "reads", READS);
        let lines: Vec<String> = (0..400).map(|line| format!("{line:30}\n")).collect();
        fs::write(place.path().join("lines"), lines.concat()).expect("lines can be written");
        let sign = || {
            let mut sign = place.phasecast(&["sign", "-n", "2", "-o", "app.phc", "--no-verify", "--json"]);
            // The number of the second one, a pipe, is 63.
            let script = "exec 50<lines && ./reads 2> >(cat >&2)";
            run(sign.args(["--launcher", LAUNCHERS[usize::from(mpi == Mpi::Mpich)], "--", "bash", "-c", script]))
        };
        let signed = json(&until_it_pays(sign).succeeded());
        assert!(signed["images"].as_u64() > Some(0), "{signed}");
        for launcher in LAUNCHERS {
            assert_eq!(json(&run(&mut place.predict(launcher, &[])).succeeded())["method"], "restart");
        }
        place.assert_clean(&["app.phc", "lines", "reads", "reads.c"]);
    }
}

/// A program of two workers that send 1 MB each to a third rank after each of 250 steps.
const SERVED: &str = r#"
#include <mpi.h>
static double field[131072];
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm workers;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 2, rank, &workers);
    for (int step = 0; step < 250; step++) {
        if (rank < 2) {
            double sum = 0;
            for (volatile int spin = 0; spin < 4000000; spin++)
                sum += 1e-9 * step;
            MPI_Allreduce(&sum, field, 1, MPI_DOUBLE, MPI_SUM, workers);
            MPI_Send(field, 131072, MPI_DOUBLE, 2, 7, MPI_COMM_WORLD);
        } else
            for (int worker = 0; worker < 2; worker++)
                MPI_Recv(field, 131072, MPI_DOUBLE, worker, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}"#;

/// A rank that the others only send to comes along with them at cuts: what it was sent before is not in flight there.
#[test]
fn what_only_receives_comes_along() {
    let place = Place::alone();
    place.built(Mpi::OpenMpi, "served", SERVED);
    let sign = || {
        let args = ["sign", "-n", "3", "-o", "app.phc", "--no-verify", "--json", "--launcher", LAUNCHERS[0]];
        run(place.phasecast(&args).args(["--", "./served"]))
    };
    let signed = json(&until_it_pays(sign).succeeded());
    assert!(signed["markers"][0]["in_flight"].as_f64() < Some(4.0), "{signed}");
    let predicted = json(&run(&mut place.predict(LAUNCHERS[0], &[])).succeeded());
    let (told, true_s) = (predicted["pet_s"].as_f64(), signed["run_time_s"].as_f64());
    assert!(told < true_s.map(|seconds| 2.0 * seconds), "{predicted} {signed}");
    place.assert_clean(&["app.phc", "served", "served.c"]);
}

/// Where the time that a launch has is over, steps are left out, on all ranks alike; where it has more they are made longer,
/// up to what is asked for.
#[test]
fn a_launch_keeps_to_its_time() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let args = ["128", "400"].map(String::from).into();
        let program = Command { mpi, ranks: 2, program: compiled(mpi, "stencil.c"), args };
        let split = Split::new();
        let (outcome, reports, images) = split.run(&program, &[Cut { id: 0, events: vec![40; 2] }]);
        assert!(reports.iter().flat_map(|report| &report.cuts).all(|cut| cut.saved), "{reports:?}: {outcome:?}");
        let time = StepTime { base_s: vec![0.001, 0.002, 0.003, 0.004], planned: 2, repeats: None };
        let cases = [(0.0, 2, 1.0, vec![2, 2]), (1e6, 2, 0.0, vec![2; 4]), (1e6, 0, 1.0, vec![4; 4])];
        for (seconds, least, longest_s, made) in cases {
            let steps = vec![Step { cut: 0, watch: vec![vec![50, 60, 60, 70]; 2] }; 4];
            let mut times = vec![time.clone(); 4];
            times[3].repeats = Some(0);
            let launched = Moment::now();
            let within =
                Within { seconds, launched, startup_s: 0.0, least, longest_s, ran_s: (0.0, 0.0), steps: times };
            let (outcome, reports) = split.replay_within(mpi, 2, &images, steps, Some(within));
            assert!(reports.iter().flat_map(|report| &report.steps).all(|step| step.finished), "{reports:?}");
            let reached = |report: &ReplayReport| report.steps.iter().map(|step| step.times_ns.len()).collect();
            let all: Vec<Vec<usize>> = reports.iter().map(reached).collect();
            assert_eq!(all, [made.clone(), made], "{outcome:?}");
        }
    }
}

/// What the fence costs is known of each position, and grows with what it holds up: none of the lines of `stencil.c`, all looks
/// of `lookups.c`.
#[test]
fn what_the_fence_costs_is_known() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let held = |source: &str, args: [&str; 2]| {
            let args = args.map(String::from).into();
            let program = Command { mpi, ranks: 2, program: compiled(mpi, source), args };
            let split = Split::new();
            let (outcome, reports, images) = split.run(&program, &[Cut { id: 0, events: vec![5; 2] }]);
            assert!(reports.iter().flat_map(|report| &report.cuts).all(|cut| cut.saved), "{reports:?}: {outcome:?}");
            let steps = vec![Step { cut: 0, watch: vec![vec![10, 20, 30]; 2] }; 2];
            let (outcome, reports) = split.replay_within(mpi, 2, &images, steps, None);
            let held: Vec<Vec<u64>> = reports.iter().flat_map(|r| &r.steps).map(|step| step.held_ns.clone()).collect();
            assert!(held.len() == 4 && held.iter().all(|held| held.len() == 3), "{reports:?}: {outcome:?}");
            held
        };
        // Ten steps of 100 lookups of three calls, each of which takes far more than a tenth of a microsecond to hold up.
        let lookups = held("lookups.c", ["60", "100"]);
        assert!(lookups.iter().all(|h| h[0] < h[1] && h[1] + 300_000 < h[2]), "{mpi:?}: {lookups:?}");
        let stencil = held("stencil.c", ["128", "60"]);
        assert!(stencil.iter().all(|held| held[2] < 300_000), "{mpi:?}: {stencil:?}");
    }
}

/// Where it is decided how long a step is, ranks wait for the first one, which may need a rank whose long message one of those
/// that wait has not asked for yet.
#[test]
fn a_decision_keeps_no_sender_waiting() {
    let programs = programs();
    let program = programs.iter().find(|p| p.name == "ring_large").expect("it is one of the programs");
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let split = Split::new();
        let command = Command { mpi, ranks: 4, program: program.command(mpi)[0].clone().into(), args: Vec::new() };
        let (outcome, reports, images) = split.run(&command, &[Cut { id: 0, events: vec![4; 4] }]);
        assert!(reports.iter().flat_map(|report| &report.cuts).all(|cut| cut.saved), "{reports:?}: {outcome:?}");
        // Rank 0 has received what its neighbours sent in an iteration; for that they are past those sends, and rank 2 is past
        // the sends of the one before.
        let watch = [[16, 24], [14, 22], [10, 18], [13, 21]].map(Vec::from).to_vec();
        let steps = vec![StepTime { base_s: vec![0.1, 0.2], planned: 1, repeats: None }];
        let launched = Moment::now();
        let (seconds, startup_s, longest_s, ran_s) = (1e6, 0.0, 9.0, (0.0, 0.0));
        let within = Within { seconds, launched, startup_s, least: 1, longest_s, ran_s, steps };
        let (outcome, reports) = split.replay_within(mpi, 4, &images, vec![Step { cut: 0, watch }], Some(within));
        let reached: Vec<usize> = reports.iter().flat_map(|r| &r.steps).map(|step| step.times_ns.len()).collect();
        assert_eq!(reached, [2; 4], "{outcome:?}");
    }
}

/// How many processors a program was told of is known where it goes by that, as OpenMP does.
#[test]
fn processors_that_a_program_was_told_of_are_known() {
    let programs = programs();
    for (mpi, name) in [Mpi::OpenMpi, Mpi::Mpich].into_iter().flat_map(|mpi| [(mpi, "openmp"), (mpi, "own_file")]) {
        let program = programs.iter().find(|p| p.name == name).expect("it is one of the programs");
        let split = Split::new();
        let command = Command { mpi, ranks: 2, program: program.command(mpi)[0].clone().into(), args: Vec::new() };
        let (outcome, _, images) = split.run(&command, &[Cut { id: 0, events: vec![2; 2] }]);
        let steps = vec![Step { cut: 0, watch: vec![vec![3]; 2] }];
        let (_, reports) = split.replay_within(mpi, 2, &images, steps, None);
        let told: Vec<_> = reports.iter().map(|report| report.processors).collect();
        let there = |told: &Option<[u32; 2]>| told.is_some_and(|[there, here]| there > 0 && there == here);
        let as_asked = if name == "openmp" { told.iter().all(there) } else { told == [None; 2] };
        assert!(told.len() == 2 && as_asked, "{name}: {told:?}: {outcome:?}");
    }
}

/// What a program opens for reading after it was saved is told, as a restart may open it, too.
#[test]
fn files_that_are_read_later_are_known() {
    let programs = programs();
    let program = programs.iter().find(|p| p.name == "file_read_later").expect("it is one of the programs");
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let split = Split::new();
        let command = Command { mpi, ranks: 2, program: program.command(mpi)[0].clone().into(), args: Vec::new() };
        let (outcome, reports, _) = split.run(&command, &[Cut { id: 0, events: vec![2; 2] }]);
        assert_eq!(reports.len(), 2, "{outcome:?}");
        assert!(reports.iter().all(|report| report.later == [Path::new("/etc/passwd")]), "{reports:?}: {outcome:?}");
    }
}

/// A rank that cannot be saved at a cut takes in what another one has sent and waits for: both go on, and are saved later.
#[test]
fn a_refused_cut_keeps_no_sender_waiting() {
    let programs = programs();
    let program = programs.iter().find(|p| p.name == "refused_large").expect("it is one of the programs");
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let expected = native(program, mpi).expect("it runs");
        // Of the first two messages one is received, of rank 1 all three are sent; then after the first beat.
        let cuts = vec![Cut { id: 0, events: vec![1, 3] }, Cut { id: 1, events: vec![5, 5] }];
        let base = Base::cut(program, mpi, cuts, &expected).expect("it ends");
        assert_eq!(base.failures, [""; 0]);
        assert_eq!((base.refused.len(), base.saved.len()), (1, 1), "{:?}", base.refused);
        for target in [Mpi::OpenMpi, Mpi::Mpich] {
            base.replay(target, &base.saved[0], &native(program, target).expect("it runs")).expect("it goes on");
        }
    }
}

/// A master serves whichever worker is free, and prints a number that tells in which order they were: the run that saves
/// images, and restarts, keep to the order of the first base run.
#[test]
fn what_comes_first_is_taken_as_in_the_first_run() {
    let place = Place::alone();
    let program = place.program(Mpi::OpenMpi, "master.c");
    let mut command = place.phasecast(&["sign", "-n", "3", "-o", "app.phc", "--no-verify", "--"]);
    command.arg(program).arg("16000");
    let signed = until_it_pays(|| run(&mut command)).succeeded();
    assert!(signed.stderr.contains("goes by what comes first"), "{}", signed.stderr);
    let orders: Vec<&str> = signed.stderr.lines().filter(|line| line.starts_with("sum ")).collect();
    assert!(orders.len() >= 3 && orders[0] != orders[1], "base runs, then those that save: {orders:?}");
    assert!(orders[2..].iter().all(|order| *order == orders[0]), "{orders:?}");
    let prediction = json(&run(&mut place.predict(LAUNCHERS[0], &[])).succeeded());
    assert!(prediction["restarts"].as_u64() > Some(0) && prediction["coverage"].as_f64() > Some(0.25), "{prediction}");
    let shared = available_parallelism().expect("there are processors").get() < 3;
    assert_eq!(prediction["notes"].to_string().contains("3 ranks share"), shared, "{prediction}");
    place.assert_clean(&["app.phc"]);
}

/// Of ranks that send another number of messages in every run only the collectives are counted; at a cut messages are
/// under way.
#[test]
fn a_program_with_other_messages_in_every_run_is_cut_at_collectives() {
    let place = Place::alone();
    let program = place.program(Mpi::OpenMpi, "gossip.c");
    let mut command = place.phasecast(&["sign", "-n", "3", "-o", "app.phc", "--no-verify", "--json", "--"]);
    command.arg(program).arg("1500");
    let signed = until_it_pays(|| run(&mut command)).succeeded();
    assert!(signed.stderr.contains("others in every run"), "{}", signed.stderr);
    let answer = json(&signed);
    assert_eq!(answer["order"], "collectives");
    // Two in each step, and one at the end.
    assert_eq!(answer["events"], serde_json::json!([3001, 3001, 3001]), "{answer}");
    for launcher in LAUNCHERS {
        let prediction = json(&run(&mut place.predict(launcher, &[])).succeeded());
        assert!(prediction["restarts"].as_u64() > Some(0), "{prediction}");
        assert!(prediction["coverage"].as_f64() > Some(0.25), "{prediction}");
    }
    place.assert_clean(&["app.phc"]);
}

/// Two loops that have no communication in common: each has a marker, and is measured.
#[test]
fn loops_that_have_nothing_in_common_are_each_measured() {
    let place = Place::alone();
    let program = place.program(Mpi::OpenMpi, "stages.c");
    let mut command = place.phasecast(&["sign", "-n", "2", "-o", "app.phc", "--no-verify", "--json", "--"]);
    command.arg(program).args(["3", "1500", "2500"]);
    let signed = json(&until_it_pays(|| run(&mut command)).succeeded());
    assert_eq!(signed["markers"].as_array().map(Vec::len), Some(2), "{signed}");
    let prediction = json(&run(&mut place.predict(LAUNCHERS[1], &[])).succeeded());
    for loop_of in ["send", "allreduce"] {
        let measured = |phase: &Value| {
            let of = phase["structure"].as_str().is_some_and(|structure| structure.contains(loop_of));
            of && phase["weight"].as_u64() > Some(1000) && phase["measured"].as_u64() > Some(0)
        };
        assert!(prediction["phases"].as_array().is_some_and(|phases| phases.iter().any(measured)), "{prediction}");
    }
    place.assert_clean(&["app.phc"]);
}

#[test]
fn a_program_in_which_nothing_repeats_gets_a_plain_answer() {
    let place = Place::alone();
    let program = place.program(Mpi::OpenMpi, "stencil.c");
    let mut command = place.phasecast(&["sign", "-n", "2", "-o", "app.phc", "--"]);
    let outcome = run(command.arg(program).args(["64", "2"]));
    assert_eq!(outcome.code, 4, "{outcome:?}");
    assert!(outcome.stderr.contains("no signature pays here"), "{}", outcome.stderr);
    assert!(!place.path().join("app.phc").exists());
    place.assert_clean(&["app.phc"]);
}

/// A pipe with a name is open all the time: no place can be saved.
#[test]
fn a_program_that_can_be_saved_nowhere_gets_a_plain_answer() {
    let place = Place::alone();
    let sign = place.sign(Mpi::OpenMpi, &["--no-verify"]);
    let words: Vec<_> = sign.get_args().map(std::ffi::OsStr::to_owned).collect();
    let (options, program) = words.split_at(words.iter().position(|word| word == "--").expect("it is there") + 1);
    let script = "mkfifo pipe$$ && exec 9<>pipe$$ && rm pipe$$ && exec \"$0\" \"$@\"";
    let mut holding = place.phasecast(&[]);
    holding.args(options).args(["sh", "-c", script]).args(program);
    let outcome = until_it_pays(|| run(&mut holding));
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.stderr.contains("cannot be saved where its phases are"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("`phasecast sign --live`"), "{}", outcome.stderr);
    place.assert_clean(&[]);
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    let place = Place::alone();
    let outcome = until_it_pays(|| {
        let mut sign = start(&mut place.sign(Mpi::OpenMpi, &["--no-verify"]));
        while !sign.has_ended() && place.two_ranks(".json").is_none() {
            sleep(Duration::from_millis(5));
        }
        if !sign.has_ended() {
            assert!(send(sign.id() as i32, Signal::SIGINT));
        }
        sign.finish()
    });
    assert!(outcome.code == 1 && outcome.stderr.contains("interrupted"), "{outcome:?}");
    assert!(!place.path().join("app.phc").exists(), "half a signature");
    place.assert_clean(&["app.phc"]);

    place.given(Mpi::OpenMpi);
    for launcher in LAUNCHERS {
        let predict = start(&mut place.predict(launcher, &["--budget", "60s", "--precision", "0.0001"]));
        place.wait_for_ranks(".json");
        assert!(send(predict.id() as i32, Signal::SIGTERM));
        let outcome = predict.finish();
        assert!(outcome.code == 1 && outcome.stderr.contains("interrupted"), "{outcome:?}");
        place.assert_clean(&["app.phc"]);
    }
}

#[test]
fn ranks_that_die_or_stand_still_are_told_of() {
    let place = Place::alone();
    place.given(Mpi::OpenMpi);
    for launcher in LAUNCHERS {
        let predict = start(&mut place.predict(launcher, &["--budget", "15s", "--precision", "0.0001"]));
        let mut begun = Instant::now();
        // One of a launch that is over may be gone already.
        while !send(place.wait_for_ranks(".json")[1], Signal::SIGKILL) {
            begun = Instant::now();
        }
        sleep(Duration::from_millis(200));
        // What it does not need the rank for it may still do: then it says so in a note.
        let still = predict.finish();
        match still.code {
            0 => assert!(json(&still)["notes"].to_string().contains("failed"), "{still:?}"),
            code => assert!(code == 1 && still.stderr.contains("the restart failed"), "{still:?}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(75));
        place.assert_clean(&["app.phc"]);
    }
    let predict = start(&mut place.predict(LAUNCHERS[0], &["--budget", "15s", "--precision", "0.0001"]));
    loop {
        let hosts = place.wait_for_ranks(".json");
        // Only once it restarts can the other rank be asked.
        while !place.has("rank-00001.progress") && place.two_ranks(".json").is_some() {
            sleep(Duration::from_millis(5));
        }
        if send(hosts[0], Signal::SIGSTOP) {
            break;
        }
    }
    let outcome = predict.finish();
    assert!(outcome.code == 1 && outcome.stderr.contains("hung"), "{outcome:?}");
    assert!(outcome.stderr.contains("cut"), "where it stood: {}", outcome.stderr);
    // A process that is stopped cannot say whom it waits for; the other waits for it, or to restart with it.
    assert!(outcome.stderr.contains("does not answer"), "{}", outcome.stderr);
    let waits = ["for rank 0", "for rank 1", "is about to restart"];
    assert!(waits.iter().any(|words| outcome.stderr.contains(words)), "{outcome:?}");
    place.assert_clean(&["app.phc"]);
}
