//! `compare` and `report` on predictions: the ranking, the errors, and a page that holds hostile names as text.
mod common;
use common::{phasecast, text, well, write_prediction};
use std::fs;

#[test]
fn machines_are_ranked_by_predicted_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [("slow", 20.0), ("fast", 10.0), ("near", 10.15)].map(|(h, s)| write_prediction(folder.path(), h, s));
    let [slow, fast, near] = files.each_ref().map(|f| text(f));
    let compared = well(&["compare", slow, fast, near, "--aet", "25,10,10.15", "--json"]).json();
    let hosts: Vec<&str> = compared["predictions"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|p| p["target"]["host"].as_str())
        .collect();
    assert_eq!(hosts, ["fast", "near", "slow"]);
    let entry = |i: usize, key: &str| compared["predictions"][i][key].clone();
    assert_eq!(entry(2, "pete"), 0.2);
    assert_eq!(entry(2, "ratio"), 2.0);
    assert_eq!((entry(1, "tied"), entry(2, "tied")), (true.into(), false.into()));
    assert_eq!(entry(0, "place"), 1);
    let words = well(&["compare", slow, fast, near]).out;
    let place = |host: &str| words.find(host).unwrap_or_else(|| panic!("{host} is not in\n{words}"));
    assert!(place("fast") < place("near") && place("near") < place("slow") && words.contains("2~"));
    assert_eq!(phasecast(&["compare", slow, fast, "--aet", "3"]).code, 2);
    assert_eq!(phasecast(&["compare", slow, "--aet", "-3"]).code, 2);
}

#[test]
fn predictions_of_different_programs_are_remarked_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = write_prediction(folder.path(), "one", 5.0);
    let mut other = common::prediction("other", 6.0);
    other["program"] = "/opt/another".into();
    other["ranks"] = 64.into();
    let path = folder.path().join("other.json");
    fs::write(&path, other.to_string()).expect("a file");
    let compared = well(&["compare", text(&one), text(&path), "--json"]).json();
    assert_eq!(compared["notes"].as_array().map(Vec::len), Some(2), "{compared}");
}

#[test]
fn a_report_is_one_file_in_which_names_are_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = write_prediction(folder.path(), "<img src=x onerror=alert(1)>", 9.0);
    let output = folder.path().join("page.html");
    well(&["report", text(&input), "-o", text(&output)]);
    let page = fs::read_to_string(&output).expect("the page");
    assert!(!page.contains("<img") && !page.contains("<script>alert"), "a name is markup");
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    for outside in ["http://", "https://", " src=", "@import", "url(http"] {
        let found = page.replace("http://www.w3.org/2000/svg", "").replace("&lt;img src=x", "").contains(outside);
        assert!(!found, "the page refers to something outside of it: {outside}");
    }
}
