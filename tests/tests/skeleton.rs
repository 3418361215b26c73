//! Skeletons from end to end under both of Debian's MPIs: they compile without a warning, end, and predict; random ones
//! run to the end; and what a skeleton cannot hold is told.
use phasecast_skeleton::program::Skeleton;
use phasecast_skeleton::program::calibrate::{Far, Instructions, Mix, Rates};
use phasecast_skeleton::program::made;
use phasecast_tests::mpi::{Language, Mpi};
use phasecast_tests::place::{Place, json};
use phasecast_tests::process::run;
use serde_json::Value;
use std::fs;
use std::process::Command;

const WARNINGS: [&str; 5] = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"];
const MPIS: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("no {key}: {value}"))
}

fn traced(place: &Place, mpi: Mpi, ranks: u32, name: &str, source: &str, words: &[&str]) {
    traced_by(place, mpi, ranks, "wall", name, source, words);
}

fn traced_by(place: &Place, mpi: Mpi, ranks: u32, clock: &str, name: &str, source: &str, words: &[&str]) {
    let mut command = mpi.launcher(ranks);
    command.current_dir(place.path()).arg(phasecast_tests::phasecast());
    command.args(["trace", "--quiet", "--clock", clock, "-o", name, "--"]);
    run(command.arg(place.program(mpi, source)).args(words)).succeeded();
}

/// Four ranks that may share processors: their computation counts, and not what each waited for the others' turns. With
/// what it took as a whole they are compared only if the program is run.
#[test]
fn a_trace_of_what_ranks_compute_gives_a_skeleton_without_a_comparison() {
    let place = Place::alone();
    traced_by(&place, Mpi::OpenMpi, 4, "computing", "base.trace", "heat.c", &["256", "6000"]);
    let words = ["skeleton", "base.trace", "-o", "heat.skeleton", "--ratio", "10", "--json"];
    let made = json(&run(&mut place.phasecast(&words)).succeeded());
    assert!((8.0..12.0).contains(&number(&made, "ratio")), "{made}");
    assert_eq!(made["skeleton"]["runs"].as_array().map(Vec::len), Some(0), "{made}");
    let left_out = made["left_out"].to_string();
    assert!(left_out.contains("what ranks compute") && !left_out.contains("shared the"), "{made}");
    let mut compiler = Command::new(Mpi::OpenMpi.compiler(Language::C));
    compiler.current_dir(place.path()).args(WARNINGS).args(["-O2", "heat.skeleton/skeleton.c", "-o", "strict"]);
    run(&mut compiler).succeeded();
    run(Mpi::OpenMpi.launcher(4).current_dir(place.path()).arg("./strict")).succeeded();

    let heat = place.program(Mpi::OpenMpi, "heat.c");
    let skeleton = |folder: &str, program: &str| {
        let mut command = place.phasecast(&["skeleton", "base.trace", "-o", folder, "--ratio", "10", "--json"]);
        run(command.args(["--launcher", phasecast_tests::place::LAUNCHERS[0], "--", program, "256", "6000"]))
    };
    let made = json(&skeleton("turns", &heat.to_string_lossy()).succeeded());
    let runs = made["skeleton"]["runs"].as_array().map_or(0, Vec::len);
    let turns = made["skeleton"]["turns"].as_array().expect("runs in turn");
    let left_out = made["left_out"].to_string();
    let told = turns.len() >= 3 && turns.iter().map(|turn| number(turn, "program_s")).sum::<f64>() > 0.0;
    assert!(runs == 2 * turns.len() && told != left_out.contains("launches of MPI differ"), "{made}");
    assert!(!left_out.contains("what ranks compute"), "{made}");
    let failed = skeleton("none", "./no-such-program");
    assert!(failed.code != 0 && failed.stderr.contains("the program failed under"), "{failed:?}");
    assert!(!place.path().join("none").exists());
}

#[test]
fn a_skeleton_predicts_its_program_under_both_mpis() {
    let place = Place::alone();
    traced(&place, Mpi::OpenMpi, 2, "base.trace", "heat.c", &["256", "3000"]);
    let words = ["skeleton", "base.trace", "-o", "heat.skeleton", "--ratio", "10", "--json"];
    let made = json(&run(&mut place.phasecast(&words)).succeeded());
    let ratio = number(&made, "ratio");
    assert!((9.0..11.0).contains(&ratio), "{made}");
    assert_eq!(made["local"], 0, "{made}");
    assert!(made["skeleton"]["runs"].as_array().is_some_and(|runs| runs.len() >= 2), "{made}");
    assert_eq!(made["skeleton"]["turns"], serde_json::json!([]), "{made}");
    assert!(number(&made["skeleton"]["runs"][0], "rounds") > 1.0, "{made}");
    for file in ["skeleton.c", "Makefile", "README.md", "skeleton.json"] {
        assert!(place.path().join("heat.skeleton").join(file).is_file(), "{file}");
    }
    for (mpi, launcher) in MPIS.into_iter().zip(phasecast_tests::place::LAUNCHERS) {
        let mut compiler = Command::new(mpi.compiler(Language::C));
        compiler.current_dir(place.path()).args(WARNINGS).args(["-O2", "heat.skeleton/skeleton.c", "-o", "strict"]);
        run(&mut compiler).succeeded();
        let output = format!("{}.json", mpi.name());
        let words = [
            "predict",
            "--skeleton",
            "heat.skeleton",
            "--launcher",
            launcher,
            "--budget",
            "1s",
            "-o",
            &output,
            "--json",
        ];
        let prediction = json(&run(&mut place.phasecast(&words)).succeeded());
        assert_eq!(prediction["method"], "skeleton", "{prediction}");
        let pet = number(&prediction, "pet_s");
        assert!(prediction["interval_s"][0].as_f64().is_some_and(|low| low <= pet), "{prediction}");
        let sum: f64 =
            prediction["phases"].as_array().into_iter().flatten().map(|phase| number(phase, "total_s")).sum();
        assert!((sum + number(&prediction, "startup_s") - pet).abs() < 0.05 * pet, "{prediction}");
    }
    let compared = json(&run(&mut place.phasecast(&["compare", "openmpi.json", "mpich.json", "--json"])).succeeded());
    assert_eq!(compared["predictions"].as_array().map(Vec::len), Some(2), "{compared}");

    let again = run(&mut place.phasecast(&["skeleton", "base.trace", "-o", "heat.skeleton"]));
    assert_eq!(again.code, 3, "{again:?}");
    let source = place.path().join("heat.skeleton/skeleton.c");
    let changed = fs::read_to_string(&source).expect("it was written") + "\n/* more */\n";
    fs::write(&source, changed).expect("it can be written");
    let refused = run(&mut place.phasecast(&["predict", "--skeleton", "heat.skeleton"]));
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.stderr.contains("changed"), "{refused:?}");
    let words = ["predict", "--skeleton", "heat.skeleton", "--changed", "--cc", "no-such-mpicc"];
    let refused = run(&mut place.phasecast(&words));
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.stderr.contains("--cc"), "{refused:?}");
}

#[test]
fn what_a_skeleton_leaves_out_is_told() {
    let place = Place::alone();
    let skeleton = |trace: &str, folder: &str| {
        let words = ["skeleton", trace, "-o", folder, "--no-run", "--json"];
        json(&run(&mut place.phasecast(&words)).succeeded())["left_out"].to_string()
    };
    traced(&place, Mpi::Mpich, 1, "one.trace", "heat.c", &["64", "20"]);
    assert!(skeleton("one.trace", "one").contains("one rank"));
    traced(&place, Mpi::Mpich, 3, "any.trace", "wildcard.c", &[]);
    let any = skeleton("any.trace", "any");
    assert!(any.contains("any source"), "{any}");
    let crowded = std::thread::available_parallelism().is_ok_and(|processors| processors.get() < 3);
    assert_eq!(any.contains("shared the"), crowded, "{any}");
    let missing = run(&mut place.phasecast(&["skeleton", "none.trace", "-o", "none"]));
    assert_eq!(missing.code, 3, "{missing:?}");
    assert!(!place.path().join("none").exists());
    let foreign = run(&mut place.phasecast(&["predict", "--skeleton", "one.trace"]));
    assert_eq!(foreign.code, 3, "{foreign:?}");
    assert!(foreign.stderr.contains("skeleton.json"), "{foreign:?}");
}

/// One program of twenty skeletons: each is a file of its own with its `main` renamed.
#[test]
fn random_skeletons_run_to_the_end() {
    const RATES: Rates = Rates {
        mix: Mix { memory: 0.5, working_set: 1 << 16 },
        rounds_per_us: 50.0,
        lines_per_us: 50.0,
        block_us: 0.0,
        // A third of the blocks of made traces has counts.
        far: Some(Far {
            working_set: 1 << 16,
            lines_per_us: 50.0,
            instructions: Instructions { round: 7.0, line: 5.75, far_line: 7.0, counted: false },
        }),
    };
    let place = Place::alone();
    let traces = (0..).map(|seed| made::logical(seed, 4)).filter(|trace| trace.ranks == 4).take(20);
    let (mut files, mut declared, mut called, mut counted) = (Vec::new(), String::new(), String::new(), 0);
    for (at, trace) in traces.enumerate() {
        let skeleton = Skeleton::of(&trace, 4.0).expect("a program");
        let source = skeleton.source(&trace.program, None, &RATES).text;
        counted += source.matches("_of(").count();
        let part = source
            .replace("int main(", &format!("int skeleton_{at}(int, char **);\nint skeleton_{at}("))
            .replace("MPI_Init(&argc, &argv);", ";")
            .replace("MPI_Finalize();", ";");
        let file = format!("skeleton_{at}.c");
        fs::write(place.path().join(&file), part).expect("it can be written");
        files.push(file);
        declared.push_str(&format!("int skeleton_{at}(int, char **);\n"));
        called.push_str(&format!("    failed |= skeleton_{at}(3, words);\n"));
    }
    assert!(counted > 60, "{counted} uses of computation that was counted");
    let main = format!(
        "#include <mpi.h>\n{declared}int main(int argc, char **argv)\n{{\n    char *words[] = {{\"skeleton\", \"/dev/stdout\", \"2\", 0}};\n    int failed = 0;\n    MPI_Init(&argc, &argv);\n{called}    MPI_Finalize();\n    return failed;\n}}\n"
    );
    fs::write(place.path().join("main.c"), main).expect("it can be written");
    for mpi in MPIS {
        let mut compiler = Command::new(mpi.compiler(Language::C));
        run(compiler.current_dir(place.path()).args(WARNINGS).args(["-O0", "main.c", "-o", "all"]).args(&files))
            .succeeded();
        let outcome = run(mpi.launcher(4).current_dir(place.path()).arg("./all")).succeeded();
        let lines = outcome.stdout.lines().filter(|line| line.contains("stands_for_s"));
        let lines = lines.filter(|line| line.contains("\"rounds\":2")).count();
        assert_eq!(lines, 20, "{outcome:?}");
    }
}
