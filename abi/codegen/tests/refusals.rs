//! What the generator says when it cannot do its work, and that it leaves no table then.

use std::path::Path;
use std::process::Command;

/// Runs the generator on this text as `apis.json`; returns what it said, if it failed.
fn refusal(folder: &Path, apis: &str) -> Option<String> {
    let data = folder.join("site/pympistandard/data");
    std::fs::create_dir_all(&data).expect("a folder");
    std::fs::create_dir_all(folder.join("site/pympistandard-9.9.dist-info")).expect("a folder");
    std::fs::write(data.join("apis.json"), apis).expect("write");
    let out = folder.join("out.rs");
    let mut generate = Command::new(env!("CARGO_BIN_EXE_phasecast-abi-codegen"));
    let run = generate.arg("--apis").arg(data.join("apis.json")).arg("--out").arg(&out).output().expect("run");
    assert_eq!(run.status.success(), out.exists());
    (!run.status.success()).then(|| String::from_utf8_lossy(&run.stderr).into_owned())
}

fn api(kind: &str, direction: &str) -> String {
    format!(
        r#"{{"mpi_x": {{"name": "MPI_X", "return_kind": "ERROR_CODE",
        "attributes": {{"c_expressible": true, "callback": false, "predefined_function": null}},
        "parameters": [{{"name": "p", "kind": "{kind}", "param_direction": "{direction}", "length": null,
        "pointer": null, "root_only": false, "large_only": false, "suppress": ""}}]}}}}"#
    )
}

#[test]
fn what_it_does_not_understand_is_named() {
    let folder = std::env::temp_dir().join(format!("phasecast-codegen-{}", std::process::id()));
    let says = |apis: &str| refusal(&folder, apis).expect("it refuses");
    assert!(says("no json").contains("is not the apis.json"));
    assert!(says(&api("NEW_KIND", "in")).contains("unknown kind NEW_KIND"));
    assert!(says(&api("RANK", "sideways")).contains("unknown direction sideways"));
    assert!(says(&api("RANK", "in")).contains("no MPI_Get_address"), "the removed procedures need their replacements");
    std::fs::remove_dir_all(folder.join("site/pympistandard-9.9.dist-info")).expect("remove");
    std::fs::create_dir_all(folder.join("site/pympistandard-1.dist-info")).expect("a folder");
    assert!(says("{}").contains("exactly one pympistandard-VERSION.dist-info"));
    std::fs::remove_dir_all(&folder).expect("remove");
}
