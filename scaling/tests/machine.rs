//! A machine file of `phasecast characterize` as a system.
use phasecast_scaling::model::System;
use phasecast_scaling::model::library::Costs;
use std::path::Path;

const MACHINE: &str = r#"
format = 1
[identity]
hosts = ["here"]
cores = 2
[[links]]
place = "within"
latency_s = 4e-7
bandwidth = 5e9
eager_bytes = 4096
overlap = 0.1
send = [{ bytes = 0, seconds = 1e-7 }, { bytes = 4096, seconds = 1e-6 }, { bytes = 4097, seconds = 3e-6 }, { bytes = 4194304, seconds = 8e-4 }]
receive = [{ bytes = 0, seconds = 2e-7 }, { bytes = 4194304, seconds = 8e-4 }]
isend = [{ bytes = 0, seconds = 1e-7 }]
irecv = [{ bytes = 0, seconds = 1e-7 }]
wait = [{ bytes = 0, seconds = 2e-7 }]
transfer = [{ bytes = 0, seconds = 4e-7 }, { bytes = 4096, seconds = 3e-6 }, { bytes = 8192, seconds = 2.9e-6 }, { bytes = 4194304, seconds = 8e-4 }]
[[kernels]]
name = "dense"
seconds = 2e-3
[[kernels]]
name = "random"
seconds = 2e-3
"#;

#[test]
fn messages_take_what_was_measured_and_never_less_than_shorter_ones() {
    let system = System::parse(Path::new("m.toml"), MACHINE).expect("a machine is a system");
    system.check().expect("its tables rise");
    assert_eq!((system.system.as_str(), system.at_once), ("here", 1));
    let costs = Costs { system: &system, processors: 2 };
    for (bytes, seconds) in [(0.0, 4e-7), (4096.0, 3e-6), (4194304.0, 8e-4)] {
        let ours = costs.fan_out(1.0, bytes);
        assert!((ours / seconds - 1.0).abs() < 1e-9, "{bytes}: {ours}");
    }
    assert!(costs.fan_out(1.0, 8192.0) >= 3e-6);
    // The dense kernel multiplies matrices of 192 by 192; `random` does no arithmetic.
    let rate = 2.0 * 192f64.powi(3) / 2e-3 * 1e-6;
    assert!((system.rate("dense", 1.0).expect("a rate") - rate).abs() < 1e-6);
    assert_eq!(system.rate("random", 1.0), system.rate("default", 1.0));
}

#[test]
fn a_machine_without_messages_is_no_system() {
    let without = MACHINE.split("[[links]]").next().unwrap_or_default();
    let text = format!("{without}\n[[kernels]]\nname = \"dense\"\nseconds = 1.0\n");
    let error = System::parse(Path::new("m.toml"), &text).expect_err("no links").to_string();
    assert!(error.contains("links are not there") && error.contains("phasecast characterize"), "{error}");
}
