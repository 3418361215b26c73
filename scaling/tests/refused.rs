//! What `phasecast model` refuses: every error names the file, the place and what to do; and no file makes a reader panic.
use phasecast_scaling::model::from_traces::{Observed, derive};
use phasecast_scaling::model::tables::Setting;
use phasecast_scaling::model::{Application, ModelError, System};
use proptest::prelude::*;
use std::path::Path;

const APPLICATION: &str = "format = 1
application = \"A\"
size = 64
computation = \"comp = 2 * p_size / n_procs\"
communication = '''
bytes = sizeof(TYPE) * p_size;
comm_time += tree_bcast(bytes);
'''
";

const SYSTEM: &str = "format = 1
system = \"S\"
at_once = 1
[message]
setup_send = 1e-5
copy_send = 0.0
transmit = [{ bytes = 64, seconds = 1e-5 }, { bytes = 4096, seconds = 2e-5 }]
setup_receive = 1e-5
copy_receive = { seconds = 0.0, per_byte = 1e-9 }
[rates]
default = 100.0
";

fn point(application: &str, system: &str, p: u64) -> Result<f64, ModelError> {
    let application = Application::parse(Path::new("a.toml"), application)?;
    let system = System::parse(Path::new("s.toml"), system)?;
    let strategy = &application.strategies[0];
    let setting = Setting { application: &application, strategy, system: &system, rate: None, ratio: 1.0 };
    Ok(setting.row(64.0, p)?.total_s)
}

#[test]
fn these_two_are_right() {
    let total = point(APPLICATION, SYSTEM, 2).expect("a point");
    let message = 2e-5 + 1e-5 + 1e-5 * (512.0 - 64.0) / 4032.0 + 512e-9;
    assert!((total - (64.0 / 1e8 + message)).abs() < 1e-12, "{total}");
}

#[test]
fn formulae_are_refused_with_a_caret_at_the_place() {
    for (from, to, place, told) in [
        ("2 * p_size / n_procs", "2 * (p_size / n_procs", "4:44", "')' or an operator"),
        ("2 * p_size / n_procs", "2 * * p_size", "4:27", "a value"),
        ("2 * p_size / n_procs", "2 * p_siz", "4:27", "Is p_size meant?"),
        ("2 * p_size / n_procs", "1 / (n_procs - 3)", "4:27", "division by zero at p_size = 64, n_procs = 3"),
        ("2 * p_size / n_procs", "2 * sqrt(1 - n_procs)", "4:27", "this is NaN"),
        ("2 * p_size / n_procs", "2 * A[3]", "4:27", "only LOOP programs"),
        ("2 * p_size / n_procs", "sqrt(1, 2)", "4:23", "takes 1 argument, not 2"),
        ("2 * p_size / n_procs", "1 - n_procs", "4:16", "less than nothing"),
        ("2 * p_size / n_procs", "tree_bcast(8)", "4:23", "there is no function tree_bcast"),
        ("comp = 2", "cmp = 2", "4:16", "nothing is assigned to comp"),
        ("tree_bcast(bytes)", "tree_bcst(bytes)", "7:14", "Is tree_bcast meant?"),
        ("tree_bcast(bytes)", "tree_bcast(0 - bytes)", "7:14", "less than 0 bytes"),
        ("bytes = sizeof", "n_procs = sizeof", "6:1", "cannot be assigned to"),
        ("comm_time +=", "other +=", "7:1", "the name other is unknown"),
    ] {
        let text = APPLICATION.replace(from, to);
        assert_ne!(text, APPLICATION, "{from}");
        let error = point(&text, SYSTEM, 3).expect_err(to);
        let shown = error.to_string();
        assert!(error.is_input() && shown.starts_with("a.toml") && shown.contains(told), "{to}: {shown}");
        assert!(shown.contains(&format!("a.toml:{place}")) && shown.contains('^'), "{to}: {shown}");
    }
}

#[test]
fn files_are_refused_with_the_key() {
    for (from, to, told) in [
        ("format = 1", "format = 2", "format 2"),
        ("size = 64", "syze = 64", "line 3"),
        ("size = 64", "type = \"quad\"", "type is quad"),
        ("size = 64", "uncertainty = -1.0", "uncertainty is -1"),
        ("size = 64", "constants = { p_size = 4.0 }", "constants.p_size"),
        ("computation", "#", "no `computation`"),
    ] {
        let text = APPLICATION.replacen(from, to, 1);
        let error = point(&text, SYSTEM, 2).expect_err(to).to_string();
        assert!(error.starts_with("a.toml") && error.contains(told), "{to}: {error}");
    }
    for (from, to, told) in [
        ("format = 1", "format = 2", "format 2"),
        ("per_byte = 1e-9", "per_byte = 1e-9, per_bite = 1.0", "(line 9): it is neither seconds, nor"),
        ("at_once = 1", "at_once = 0", "at_once is 0"),
        (
            "seconds = 2e-5",
            "seconds = 5e-6",
            "message.transmit[1].seconds is 5e-6, less than the 1e-5 of a shorter message",
        ),
        ("bytes = 4096", "bytes = 64", "message.transmit[1].bytes is 64, not more than the 64 before it"),
        ("setup_send = 1e-5", "setup_send = -1.0", "message.setup_send is -1e0"),
        ("per_byte = 1e-9", "per_byte = nan", "message.copy_receive.per_byte"),
        ("default = 100.0", "default = 0.0", "rates.default is 0"),
        ("default = 100.0", "cg = 100.0", "no sustained rate for default"),
        (
            "default = 100.0",
            "default = [{ size = 2, mflops = 1 }, { size = 1, mflops = 1 }]",
            "rates.default[1].size is 1",
        ),
        ("system = \"S\"", "sistem = \"S\"", "neither the key `system`"),
    ] {
        let text = SYSTEM.replacen(from, to, 1);
        let error = point(APPLICATION, &text, 2).expect_err(to).to_string();
        assert!(error.contains(told), "{to}: {error}");
    }
}

#[test]
fn task_graphs_and_loops_are_refused_in_their_file() {
    let graph = "format = 1\napplication = \"A\"\n[[strategies]]\nname = \"g\"\n[strategies.graph]\n\
        nodes = [{ name = \"a\" }, { name = \"b\" }]\narrows = [{ from = \"a\", to = \"b\" }, { from = \"b\", to = \"a\" }]\n";
    let error = Application::parse(Path::new("a.toml"), graph).expect_err("a circle").to_string();
    assert!(error.contains("a -> b -> a") && error.starts_with("a.toml, strategy \"g\""), "{error}");
    let program = "format = 1\napplication = \"A\"\n[[strategies]]\nname = \"l\"\nloop = '''\n\\LOOP i {\n  A[i] = 1 + ;\n}\n'''\n";
    let error = Application::parse(Path::new("a.toml"), program).expect_err("no program").to_string();
    assert!(error.contains("a.toml:7:14") && error.contains("a value"), "{error}");
    let deep = format!("computation = \"comp = {}1{}\"", "(".repeat(5000), ")".repeat(5000));
    let error = point(&APPLICATION.replacen("computation = \"comp = 2 * p_size / n_procs\"", &deep, 1), SYSTEM, 2);
    assert!(error.expect_err("too deep").to_string().contains("64 deep"));
}

#[test]
fn fewer_points_than_parameters_are_refused() {
    let at = |ranks| Observed { size: 64.0, ranks, ..Observed::default() };
    let error = derive("heat", &[at(1), at(2), at(2)]).expect_err("two points").to_string();
    assert!(
        error.contains("heat") && error.contains("2 different points") && error.contains("at 3 or more"),
        "{error}"
    );
}

/// A file with some bytes of it changed.
fn damaged(text: &'static str) -> impl Strategy<Value = String> {
    let put = "[-a-z0-9 =\"'(){}\\[\\]^*/.,;\n]{0,8}";
    (0..text.len(), 0usize..12, put)
        .prop_map(move |(at, cut, put)| format!("{}{put}{}", &text[..at], &text[(at + cut).min(text.len())..]))
}

proptest! {
    #[test]
    fn no_damaged_application_makes_the_reader_panic(text in damaged(APPLICATION), p in 1u64..9) {
        let _ = point(&text, SYSTEM, p).map_err(|error| error.to_string());
    }

    #[test]
    fn no_damaged_system_makes_the_reader_panic(text in damaged(SYSTEM), p in 1u64..9) {
        let _ = point(APPLICATION, &text, p).map_err(|error| error.to_string());
    }

    #[test]
    fn no_damaged_three_ways_make_the_reader_panic(
        text in damaged(include_str!("../../examples/models/cg-three-ways.toml")),
        p in 1u64..9,
    ) {
        let _ = point(&text, SYSTEM, p).map_err(|error| error.to_string());
    }

    #[test]
    fn no_text_makes_the_readers_panic(text in "\\PC{0,200}") {
        let _ = Application::parse(Path::new("a.toml"), &text);
        let _ = System::parse(Path::new("s.toml"), &text);
    }
}
