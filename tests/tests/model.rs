//! `phasecast model` on the example files, and formulae from real traces of both of Debian's MPIs.
use phasecast_tests::mpi::Mpi;
use phasecast_tests::place::{Place, json};
use phasecast_tests::process::{Outcome, run};
use phasecast_tests::root;
use serde_json::Value;
use std::fs;

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("no {key}: {value}"))
}

fn model(place: &Place, words: &[&str]) -> Outcome {
    let files = root().join("examples/models");
    let path = |word: &&str| match word.strip_prefix('@') {
        Some(name) => files.join(name).display().to_string(),
        None => (*word).to_owned(),
    };
    let words: Vec<String> = std::iter::once("model".to_owned()).chain(words.iter().map(path)).collect();
    run(&mut place.phasecast(&words.iter().map(String::as_str).collect::<Vec<_>>()))
}

#[test]
fn the_seeds_tables_are_printed() {
    let place = Place::new();
    let words = ["@cg.toml", "@paragon.toml", "--strategy", "CG-Tree", "-p", "1..512", "--plot", "cg.svg"];
    let shown = model(&place, &words).succeeded().stdout;
    let lines: Vec<String> = shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for row in ["2 0.000789 0.385969 0.386758 2.00", "512 0.012756 0.001507 0.014264 54.12"] {
        assert!(lines.iter().any(|line| line == row), "{row}: {shown}");
    }
    for words in ["efficiency 50 % up to ", "best with 512 processors"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let plot = fs::read_to_string(place.path().join("cg.svg")).expect("the plot");
    assert!(plot.starts_with("<svg") && plot.contains("speedup") && plot.contains("communication"), "{plot}");

    let words = ["@cg.toml", "@paragon.toml", "@ncube2.toml", "--size", "512", "--json"];
    let both = json(&model(&place, &words).succeeded());
    let tables = both["tables"].as_array().expect("tables");
    let names: Vec<&str> = tables.iter().filter_map(|table| table["strategy"].as_str()).collect();
    assert_eq!(names, ["CG-Tree", "CG-Simple", "CG-Tree", "CG-Simple"]);
    assert_eq!(tables[3]["findings"]["best"], 32, "{both}");
    let compared = model(&place, &["@cg-three-ways.toml", "@paragon.toml", "-p", "1,8"]).succeeded().stdout;
    assert!(compared.contains("LOOP program TOTAL") && compared.contains("the same"), "{compared}");

    let words = ["@cg.toml", "@paragon.toml", "--strategy", "CG-Tree", "-p", "64", "--prediction", "p.json"];
    model(&place, &words).succeeded();
    let compared = json(&run(&mut place.phasecast(&["compare", "p.json", "--json"])).succeeded());
    assert_eq!(compared["predictions"][0]["method"], "model", "{compared}");
    run(&mut place.phasecast(&["report", "p.json", "-o", "p.html"])).succeeded();
}

#[test]
fn formulae_come_from_traces() {
    for (mpi, edges) in [(Mpi::OpenMpi, &["96", "192"][..]), (Mpi::Mpich, &["192"])] {
        let place = Place::alone();
        let mut words = vec!["fit".to_owned()];
        let mut sizes = Vec::new();
        for (number, edge) in edges.iter().enumerate() {
            for ranks in [1, 2, 4] {
                let name = format!("{ranks}-{number}.trace");
                let mut command = mpi.launcher(ranks);
                command.current_dir(place.path()).arg(phasecast_tests::phasecast());
                command.args(["trace", "--quiet", "-o", &name, "--"]).arg(place.program(mpi, "stencil.c"));
                run(command.args([edge, "40"])).succeeded();
                words.push(name);
                sizes.push(*edge);
            }
        }
        let sizes = sizes.join(",");
        words.extend(["--sizes", &sizes, "-o", "app.toml", "--json"].map(str::to_owned));
        let fit = json(&model(&place, &words.iter().map(String::as_str).collect::<Vec<_>>()).succeeded());
        let communication = fit["communication"].as_array().expect("formulae");
        // Halos of a row each: 8 bytes for each point of an edge.
        let halo = communication.iter().find(|f| f["of"].as_str().is_some_and(|of| of.contains("bytes of MPI_Isend")));
        let halo = halo.unwrap_or_else(|| panic!("no halo: {fit}"));
        assert!(number(halo, "error") < 0.1, "{halo}");
        assert_eq!(fit["checks"].as_array().map(Vec::len), Some(3 * edges.len()), "{fit}");
        let table =
            json(&model(&place, &["app.toml", "@ncube2.toml", "-p", "1..64", "--size", "192", "--json"]).succeeded());
        let rows = table["tables"][0]["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), 7);
        assert!(rows.iter().all(|row| number(row, "comp_s") > 0.0), "{table}");
        assert!(number(&rows[0], "comm_s") == 0.0 && number(&rows[1], "comm_s") > 0.0, "{table}");
        let first = fs::read_to_string(place.path().join("app.toml")).expect("the file");
        assert!(first.contains("unit = \"seconds\"") && first.contains("exchange("), "{first}");

        let refused = model(&place, &["fit", "1-0.trace", "2-0.trace", "-o", "no.toml"]);
        assert_eq!(refused.code, 3, "{refused:?}");
        assert!(refused.stderr.contains("2 different points"), "{}", refused.stderr);
        let refused = model(&place, &["fit", "1-0.trace", "-o", "app.toml"]);
        assert!(refused.code == 3 && refused.stderr.contains("exists already"), "{refused:?}");
    }
}

#[test]
fn what_is_wrong_is_shown_in_its_place() {
    let place = Place::new();
    let text = fs::read_to_string(root().join("examples/models/cg.toml")).expect("the example");
    fs::write(place.path().join("cg.toml"), text.replacen("tree_bcast(bytes1)", "tree_bcst(bytes1)", 1))
        .expect("a file");
    let refused = model(&place, &["cg.toml", "@paragon.toml"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.stderr.contains("Is tree_bcast meant?") && refused.stderr.contains("^-"), "{}", refused.stderr);
    for (words, code) in [
        (&["@cg.toml", "@paragon.toml", "--prediction", "p.json"][..], 2),
        (&["@cg.toml", "@paragon.toml", "-p", "1..4", "--size", "1,2"], 2),
        (&["@cg.toml", "@paragon.toml", "-p", "0"], 2),
        (&["@cg.toml"], 2),
        (&["@cg.toml", "none.toml"], 3),
        (&["@cg.toml", "@paragon.toml", "--strategy", "CG"], 3),
        (&["@paragon.toml", "@cg.toml"], 3),
    ] {
        let refused = model(&place, words);
        assert_eq!(refused.code, code, "{words:?}: {refused:?}");
        assert!(!place.path().join("p.json").exists());
    }
}
