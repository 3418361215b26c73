//! Counts of computation from end to end, under both of Debian's MPIs: what is counted is the program's, and a skeleton
//! does the same. Machines without counters of their own are tested with events of the kernel in their places
//! (`PHASECAST_COUNTERS=software`): page faults as misses, processor time in ns as instructions and cycles.
use phasecast_tests::example::compiled;
use phasecast_tests::mpi::{Language, Mpi};
use phasecast_tests::place::{Place, json};
use phasecast_tests::process::run;
use phasecast_tests::traced::{Job, Traced, truncated};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

const MPIS: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];
/// Pages that `pages.c` touches for the first time before each barrier.
const PAGES: u64 = 64;

fn counted(mpi: Mpi, source: &str, words: &[&str]) -> Traced {
    let mut program = vec![compiled(mpi, source)];
    program.extend(words.iter().map(Into::into));
    Job::counted(mpi, 2, &program, "software").run()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> Option<u64> {
    row[column].parse().ok()
}

/// The middle one of what was counted before the calls of a procedure.
fn median(rows: &[BTreeMap<String, String>], procedure: &str, column: &str) -> u64 {
    let of = rows.iter().filter(|row| row["procedure"] == procedure);
    let mut all: Vec<u64> = of.filter_map(|row| number(row, column)).collect();
    all.sort_unstable();
    assert!(all.len() > 50, "{} counts before {procedure}", all.len());
    all[all.len() / 2]
}

#[test]
fn what_is_counted_is_what_the_program_did_before_each_call() {
    for mpi in MPIS {
        let traced = counted(mpi, "pages.c", &["100", "64"]);
        assert_eq!(traced.outcome.code, 0, "{:?}", traced.outcome);
        let rows = traced.dump();
        let [fresh, none] = ["MPI_Barrier", "MPI_Allreduce"].map(|call| median(&rows, call, "misses"));
        assert_eq!((fresh, none), (PAGES, 0), "{mpi:?}");
        // Processor time is that between the calls, but for time in which another process had the processor, and none of
        // it is the call's.
        for row in rows.iter().filter(|row| row["procedure"] == "MPI_Allreduce") {
            assert!(number(row, "instructions").is_some_and(|ns| ns > 10_000), "{row:?}");
        }
        let stat = traced.stat();
        let computed = &stat["computed"];
        assert_eq!(computed["counters"]["misses"], "page-faults", "{stat}");
        let misses = computed["counts"]["misses"].as_u64().unwrap_or(0);
        assert!((2 * 99 * PAGES..4 * 100 * PAGES).contains(&misses), "{stat}");
        let [counted, computing] = ["counted_s", "computing_s"].map(|key| computed[key].as_f64().unwrap_or(0.0));
        assert!(counted > 0.9 * computing && counted <= computing, "{stat}");
        let busy = computed["counts"]["instructions"].as_f64().unwrap_or(0.0) * 1e-9;
        assert!(busy > 0.0 && busy < 1.1 * computing, "{stat}");
        // They are not the processor's, so that numbers per cycle mean nothing.
        assert!(computed["instructions_per_cycle"].is_null(), "{stat}");
    }
}

#[test]
fn a_skeleton_has_the_lines_of_each_block() {
    for mpi in MPIS {
        let place = Place::alone();
        let mut command = mpi.launcher(2);
        command.current_dir(place.path()).env("PHASECAST_COUNTERS", "software").arg(phasecast_tests::phasecast());
        command.args(["trace", "--counters", "--quiet", "-o", "base.trace", "--"]);
        run(command.arg(place.program(mpi, "pages.c")).args(["200", "64"])).succeeded();
        let words = ["skeleton", "base.trace", "-o", "pages.skeleton", "--ratio", "10", "--no-run", "--json"];
        let made = json(&run(&mut place.phasecast(&words)).succeeded());
        let basis = &made["computation"]["counters"];
        assert_eq!(basis["counters"]["misses"], "page-faults", "{made}");
        assert!(basis["share"].as_f64().is_some_and(|share| share > 0.9), "{made}");
        let far = &made["skeleton"]["rates"]["far"];
        let far_per_us = far["lines_per_us"].as_f64().expect("a rate");
        let source = fs::read_to_string(place.path().join("pages.skeleton/skeleton.c")).expect("it was written");
        let lines = lines_of_blocks(&source, far_per_us);
        let [barrier, allreduce] = ["barrier(", "allreduce("].map(|call| lines[call]);
        let pages = PAGES as f64;
        assert!((0.9 * pages..1.2 * pages).contains(&barrier), "{barrier} lines before a barrier\n{source}");
        assert!(allreduce < 0.1 * pages, "{allreduce} lines before an allreduce\n{source}");
        let readme = fs::read_to_string(place.path().join("pages.skeleton/README.md")).expect("it was written");
        assert!(readme.contains("page-faults"), "{readme}");
        for mpi in MPIS {
            let mut compiler = Command::new(mpi.compiler(Language::C));
            compiler.current_dir(place.path()).args(["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O2"]);
            run(compiler.args(["pages.skeleton/skeleton.c", "-o", "strict"])).succeeded();
            let told = run(mpi.launcher(2).current_dir(place.path()).arg("./strict")).succeeded();
            assert!(told.stdout.contains("stands_for_s"), "{told:?}");
        }
        // What else reads traces goes on as with any other.
        for words in [["analyze", "base.trace", "-o", "a.phases"], ["export", "base.trace", "-o", "a.csv"]] {
            let mut command = place.phasecast(&words);
            if words[0] == "export" {
                command.args(["--format", "csv"]);
            }
            run(&mut command).succeeded();
        }
        let csv = fs::read_to_string(place.path().join("a.csv")).expect("it was written");
        let fields: BTreeSet<usize> = csv.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(fields, BTreeSet::from([15]), "{}", csv.lines().next().unwrap_or_default());
    }
}

/// Lines from memory in the block before the first call of each name.
fn lines_of_blocks(source: &str, far_per_us: f64) -> BTreeMap<&'static str, f64> {
    let (mut found, mut means, mut lines) = (BTreeMap::new(), BTreeMap::new(), 0.0);
    let body = source.split("class_0(void)\n").nth(1).expect("a class of ranks");
    for line in body.lines().map(str::trim) {
        if let Some((name, list)) =
            line.strip_prefix("static const double ").and_then(|line| line.split_once("[8] = {"))
        {
            let list = list.trim_end_matches("};").split(", ").map(|us| us.parse::<f64>().expect("a time"));
            means.insert(name.to_owned(), list.sum::<f64>() / 8.0);
        }
        let arguments = |call: &str| -> Option<Vec<String>> {
            let (arguments, _) = line.strip_prefix(call)?.split_once(");")?;
            Some(arguments.split(", ").map(str::to_owned).collect())
        };
        let share = |text: &String| text.parse::<f64>().expect("a share");
        if let Some(words) = arguments("compute_of(") {
            lines = share(&words[0]) * share(&words[1]) * far_per_us;
        } else if let Some(words) = arguments("compute_spread_of(") {
            lines = means[&words[0]] * share(&words[2]) * far_per_us;
        }
        for name in ["barrier(", "allreduce("] {
            if line.starts_with(name) {
                found.entry(name).or_insert(lines);
            }
        }
    }
    found
}

/// A program that is not counted has a skeleton without any trace of counts.
#[test]
fn a_machine_that_cannot_count_says_so_once_and_goes_on() {
    for mpi in MPIS {
        let mut program = vec![compiled(mpi, "pages.c")];
        program.extend(["50", "64"].map(Into::into));
        let traced = Job::counted(mpi, 2, &program, "hardware").run();
        assert_eq!(traced.outcome.code, 0, "{:?}", traced.outcome);
        let said = traced.outcome.stderr.matches("the trace holds no counts").count();
        let stat = traced.stat();
        let counts = traced.dump()[0].contains_key("instructions");
        match &stat["computed"] {
            Value::Null => assert!(said == 1 && !counts, "{stat} {:?}", traced.outcome),
            computed => {
                assert!(said == 0 && counts, "{stat} {:?}", traced.outcome);
                let each = computed["instructions_per_cycle"].as_f64().unwrap_or(0.0);
                assert!((0.01..20.0).contains(&each), "{stat}");
            }
        }
    }
}

#[test]
fn without_counters_nothing_of_them_is_there() {
    let place = Place::alone();
    let mpi = Mpi::OpenMpi;
    let mut command = mpi.launcher(2);
    // The variable alone is not enough.
    command.current_dir(place.path()).env("PHASECAST_COUNTERS", "software").arg(phasecast_tests::phasecast());
    command.args(["trace", "--quiet", "-o", "base.trace", "--"]);
    run(command.arg(place.program(mpi, "pages.c")).args(["100", "64"])).succeeded();
    let words = ["skeleton", "base.trace", "-o", "pages.skeleton", "--ratio", "10", "--no-run", "--json"];
    let made = json(&run(&mut place.phasecast(&words)).succeeded());
    assert_eq!(made["computation"], "mix", "{made}");
    assert_eq!(made["skeleton"]["rates"].get("far"), None::<&Value>, "{made}");
    let source = fs::read_to_string(place.path().join("pages.skeleton/skeleton.c")).expect("it was written");
    assert!(!source.contains("far_lines") && !source.contains("FAR") && !source.contains("compute_of"), "{source}");
}

#[test]
fn counts_are_there_after_a_crash() {
    for mpi in MPIS {
        let traced = counted(mpi, "segv.c", &[]);
        assert!(truncated(&traced.stat()).contains(&1), "{:?}", traced.outcome);
        let rows = traced.dump();
        let of_rank =
            |rank: &str| rows.iter().filter(|row| row["rank"] == rank && number(row, "instructions").is_some()).count();
        assert!(of_rank("0") > 3 && of_rank("1") > 3, "{rows:?}");
    }
}

#[test]
fn each_thread_counts_for_itself() {
    for mpi in MPIS {
        let traced = counted(mpi, "threads.c", &["20"]);
        assert_eq!(traced.outcome.code, 0, "{:?}", traced.outcome);
        let (mut all, mut counted) = (BTreeSet::new(), BTreeSet::new());
        for row in traced.dump() {
            let thread = (row["rank"].clone(), row["thread"].clone());
            if number(&row, "instructions").is_some() {
                counted.insert(thread.clone());
            }
            all.insert(thread);
        }
        assert!(all.len() > 2, "{all:?}");
        assert_eq!(counted, all, "{mpi:?}");
    }
}

#[test]
fn counting_goes_on_after_a_pause() {
    for mpi in MPIS {
        let traced = counted(mpi, "pcontrol.c", &[]);
        assert_eq!(traced.outcome.code, 0, "{:?}", traced.outcome);
        let rows = traced.dump();
        let resumed = rows.iter().position(|row| row["class"] == "resume").expect("it goes on");
        let after = rows[resumed + 1..].iter().filter(|row| row["rank"] == rows[resumed]["rank"]);
        assert!(after.filter(|row| number(row, "cycles").is_some()).count() > 0, "{rows:?}");
    }
}
