//! `phasecast graph` and `phasecast stability`, and the delays that the tracer puts before calls.

use phasecast_tests::mpi::Mpi;
use phasecast_tests::place::{Place, json};
use phasecast_tests::process::run;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const BOTH: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

fn stability(place: &Place, mpi: Mpi, words: &[&str], args: &[&str]) -> Value {
    let mut command = place.phasecast(&["stability", "-n", "3", "--json"]);
    json(&run(command.args(words).arg("--").arg(place.program(mpi, "figure1.c")).args(args)).succeeded())
}

fn trace(place: &Place, mpi: Mpi, name: &str, words: &[&str], program: &Path, args: &[&str]) {
    let mut command: Command = mpi.launcher(3);
    command.current_dir(place.path()).arg(phasecast_tests::phasecast()).args(["trace", "-q", "-o", name]);
    run(command.args(words).arg("--").arg(program).args(args)).succeeded();
}

/// The seed's own example: with receives from any source its order depends on the ranks' speed.
#[test]
fn the_program_of_figure_1() {
    let place = Place::alone();
    for mpi in BOTH {
        let unstable = stability(&place, mpi, &["--runs", "4", "--factors", "2"], &["wildcard", "2"]);
        assert_eq!(unstable["verdict"], "unstable", "{unstable:#}");
        assert_eq!(unstable["design"], "full 2^2", "{unstable:#}");
        let found = &unstable["places"][0];
        assert_eq!((&found["rank"], &found["wildcard"], &found["kind"]), (&0.into(), &true.into(), &"wildcard".into()));
        assert_eq!(unstable["places"].as_array().map(Vec::len), Some(1), "{unstable:#}");
        let number = |key: &str| unstable[key].as_u64().unwrap_or_default();
        assert_eq!((number("events"), number("similarity")), (8, 8 - number("distance")), "{unstable:#}");
        let mut ranks: Vec<u64> = (0..2).filter_map(|factor| unstable["factors"][factor]["rank"].as_u64()).collect();
        ranks.sort_unstable();
        assert_eq!(ranks, [1, 2], "the senders race: {unstable:#}");

        let stable = stability(&place, mpi, &["--runs", "2", "--factors", "1"], &["typed", "2"]);
        assert_eq!((&stable["verdict"], &stable["distance"]), (&"stable".into(), &0.into()), "{stable:#}");
        assert_eq!(stable["places"].as_array().map(Vec::len), Some(0), "{stable:#}");
        place.assert_clean(&[]);
    }
}

/// With a delay of the right sender it fails: that is no reason to say nothing.
#[test]
fn a_program_that_delays_keep_from_ending_is_unstable() {
    let place = Place::alone();
    for mpi in BOTH {
        let program = place.program(mpi, "race.c");
        let mut command = place.phasecast(&["stability", "-n", "3", "--json", "--runs", "4", "--factors", "2"]);
        let told = json(&run(command.args(["--delay", "700ms", "--"]).arg(program)).succeeded());
        assert_eq!(told["verdict"], "unstable", "{told:#}");
        let runs = told["runs"].as_array().cloned().unwrap_or_default();
        let broken = |run: &Value| run["broken"].as_str().is_some_and(|how| how.contains("rank 1 it failed"));
        assert!(runs.iter().any(broken), "{told:#}");
        place.assert_clean(&[]);
    }
}

#[test]
fn one_place_among_many_is_named() {
    let place = Place::alone();
    let words = ["--runs", "4", "--factors", "2", "--delay", "50ms"];
    let partly = stability(&place, Mpi::Mpich, &words, &["wildcard", "8", "7"]);
    assert_eq!(partly["verdict"], "partly", "{partly:#}");
    assert_eq!(partly["places"].as_array().map(Vec::len), Some(1), "{partly:#}");
    assert_eq!(partly["places"][0]["changed"], 2, "{partly:#}");
}

#[test]
fn delays_lie_where_they_are_asked_for() {
    let place = Place::alone();
    for mpi in BOTH {
        let program = place.program(mpi, "figure1.c");
        let first = format!("{}-first", mpi.name());
        trace(&place, mpi, &first, &[], &program, &["typed", "4"]);
        let sends = |name: &str| -> Vec<(u64, String, u64)> {
            let dump = run(&mut place.phasecast(&["dump", name, "--format", "json"])).succeeded().stdout;
            let calls: Vec<Value> =
                dump.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
            let mut blocks = Vec::new();
            for two in calls.windows(2).filter(|two| two[1]["procedure"] == "MPI_Send") {
                let site = two[1]["site"].as_str().unwrap_or_default().to_owned();
                let gap = two[1]["enter_ns"].as_u64().zip(two[0]["exit_ns"].as_u64()).map_or(0, |(b, a)| b - a);
                blocks.push((two[1]["rank"].as_u64().unwrap_or_default(), site, gap));
            }
            blocks
        };
        let site = sends(&first)[0].1.clone();
        let (module, offset) = site.rsplit_once("+0x").expect("the site is in a module");
        // Rank 1: 60 ms before every second call. Rank 2: three times the block before each call.
        let delays = format!("1\t60000000\t0\t2\t0x{offset}\t{module}\n2\t0\t3\t1\t0x{offset}\t{module}\n");
        fs::write(place.path().join("delays"), delays).expect("the folder can be written to");
        let second = format!("{}-second", mpi.name());
        trace(&place, mpi, &second, &["--delays", "delays"], &program, &["typed", "4"]);
        let blocks = |rank: u64| -> Vec<u64> {
            sends(&second).iter().filter(|send| send.0 == rank).map(|send| send.2 / 1_000_000).collect()
        };
        let (one, two) = (blocks(1), blocks(2));
        assert_eq!((one.len(), two.len()), (4, 4));
        assert!(one[0] >= 64 && one[2] >= 64, "{one:?}");
        assert!(two.iter().all(|ms| *ms >= 24), "{two:?}");
        // Other load may make a block longer, but not each one.
        assert!(one[1] < 60 || one[3] < 60, "{one:?}");

        let same = run(&mut place.phasecast(&["stability", &first, &second, "--json"])).succeeded();
        assert_eq!(json(&same)["verdict"], "stable");
    }
    fs::write(place.path().join("delays"), "1\tsoon\n").expect("the folder can be written to");
    let mut command = Mpi::Mpich.launcher(3);
    command.current_dir(place.path()).arg(phasecast_tests::phasecast());
    command.args(["trace", "-q", "-o", "none", "--delays", "delays", "--"]).arg(place.program(Mpi::Mpich, "figure1.c"));
    let refused = run(command.arg("typed")).succeeded();
    assert!(refused.stderr.contains("line 1 is no delay"), "{refused:?}");
    assert_eq!(fs::read_dir(place.path().join("none")).map(|files| files.count()).unwrap_or(0), 0);
}

#[test]
fn a_graph_is_told_drawn_and_asked() {
    let place = Place::new();
    for mpi in BOTH {
        let name = mpi.name();
        trace(&place, mpi, name, &[], &place.program(mpi, "figure1.c").clone(), &["wildcard", "2"]);
    }
    let graph = |words: &[&str]| run(&mut place.phasecast(&[&["graph"], words].concat()));
    let counts = json(&graph(&["openmpi", "--json"]).succeeded());
    let numbers =
        ["events", "sends", "receives", "wildcards", "message_edges", "joins"].map(|key| counts[key].as_u64());
    assert_eq!(numbers, [8, 4, 4, 4, 4, 0].map(Some), "{counts}");
    let order = |from: &str, to: &str| {
        json(&graph(&["mpich", "--from", from, "--to", to, "--json"]).succeeded())["order"].clone()
    };
    // Both second messages come after both first ones of their own rank, and before the last receive.
    assert_eq!(order("1:0", "1:1"), "before");
    assert_eq!(order("0:3", "2:0"), "after");
    assert_eq!(order("1:0", "2:0"), "concurrent");
    assert_eq!(order("1:0", "1:0"), "same");
    assert_eq!(graph(&["mpich", "--from", "1:0", "--to", "1:9"]).code, 3);
    assert_eq!(graph(&["mpich", "--from", "1:0"]).code, 2);

    graph(&["openmpi", "--format", "json", "-o", "graph.json"]).succeeded();
    let file = fs::read_to_string(place.path().join("graph.json")).expect("it was written");
    let value: Value = serde_json::from_str(&file).expect("it is JSON");
    assert_eq!(value["events"].as_array().map(Vec::len), Some(8));
    assert_eq!(value["edges"].as_array().map(Vec::len), Some(4 + 5));
    assert_eq!(graph(&["openmpi", "--format", "json", "-o", "graph.json"]).code, 3);
    let dot = graph(&["openmpi", "--format", "dot", "--events", "0..1", "--ranks", "0,2"]).succeeded().stdout;
    assert_eq!(dot.matches("[label=").count(), 2, "{dot}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let place = Place::new();
    let program = place.program(Mpi::Mpich, "figure1.c");
    trace(&place, Mpi::Mpich, "three", &[], &program, &["typed", "1"]);
    let two = |name: &str, program: &Path| {
        let mut command = Mpi::Mpich.launcher(2);
        command.current_dir(place.path()).arg(phasecast_tests::phasecast()).args(["trace", "-q", "-o", name, "--"]);
        run(command.arg(program).args(["16", "20"]))
    };
    two("two", &place.program(Mpi::Mpich, "stencil.c")).succeeded();
    two("cut", &place.program(Mpi::Mpich, "abort.c"));
    let compared = |words: &[&str]| run(&mut place.phasecast(&[&["stability"], words].concat()));
    for (words, code, said) in [
        (&["three", "two"][..], 3, "2 ranks instead of 3"),
        (&["cut", "cut"][..], 3, "not complete"),
        (&["three"][..], 2, "nothing to be compared with"),
        (&["three", "four"][..], 3, "four"),
        (&["-n", "2", "--", "/bin/true"][..], 1, "MPI_Init"),
        (&["--", "/bin/true"][..], 2, "say with -n"),
    ] {
        let outcome = compared(words);
        assert_eq!(outcome.code, code, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(said), "{words:?}: {outcome:?}");
    }
    let failed = compared(&["-n", "2", "--runs", "2", "--", &place.program(Mpi::Mpich, "abort.c").to_string_lossy()]);
    assert_eq!(failed.code, 1, "{failed:?}");
    // The graph of what was recorded can still be seen.
    let outcome = run(&mut place.phasecast(&["graph", "cut"])).succeeded();
    assert!(outcome.stderr.contains("not complete"), "{outcome:?}");
}
