//! A report is opened in a browser: it draws what it should, and the picture shows the phases' colours.

use phasecast_tests::{phasecast, process};
use serde_json::json;
use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

const RANKS: u32 = 6;
const ROUNDS: u32 = 40;

/// A prediction of three phases, one of which was not measured; its names try to break out of the page.
fn prediction(folder: &Path) -> PathBuf {
    let machine = json!({"host": "target</script><b>", "cpu": "made up", "cores": 4, "mpi": "none"});
    let mut timeline = Vec::new();
    for rank in 0..RANKS {
        let mut now = 0.01 * f64::from(rank);
        for round in 0..=ROUNDS {
            let (phase, length) = if round == 0 { (0, 0.8) } else { (1, 0.2) };
            timeline.push(json!({"rank": rank, "phase": phase, "start_s": now, "end_s": now + length}));
            now += length;
        }
    }
    let content = json!({
        "version": 1, "method": "live", "program": "/opt/<b onclick=alert(1)>ring", "ranks": RANKS,
        "target": machine, "base": machine, "pet_s": 41.0, "interval_s": [40.2, 41.8], "run_interval_s": [39.0, 43.0],
        "confidence": 0.95, "set_s": 9.0, "coverage": 0.95, "startup_s": 0.5, "residual_s": 0.7, "restart_s": 0.0,
        "warmup_s": 0.0, "measured_s": 8.8, "base_run_s": 52.0, "notes": ["a note & <more>"], "aet_s": 41.5, "pete": 0.012,
        "uncertainty": {"sampling_s": 0.3, "unmeasured_s": 0.2, "machine_s": 0.9}, "timeline": timeline,
        "phases": [
            {"id": 0, "weight": 1, "measured": 1, "base_s": 1.0, "target_s": 0.8, "total_s": 0.8, "structure": "bcast^3"},
            {"id": 1, "weight": 190, "measured": 40, "base_s": 0.25, "target_s": 0.2, "total_s": 38.0,
             "structure": "(isend irecv waitall)^160 allreduce</script><script>document.title='broken'</script>"},
            {"id": 2, "weight": 1, "measured": 0, "base_s": 1.3, "target_s": null, "total_s": 1.0, "structure": "gather"},
        ],
    });
    let path = folder.join("prediction.json");
    std::fs::write(&path, content.to_string()).expect("the prediction can be written");
    path
}

/// The report of that prediction.
fn report(folder: &Path) -> PathBuf {
    let page = folder.join("report.html");
    process::run(Command::new(phasecast()).arg("report").arg(prediction(folder)).arg("-o").arg(&page)).succeeded();
    page
}

fn browser(folder: &Path, how: &[&str], page: &Path) -> String {
    let mut chromium = Command::new("chromium");
    chromium.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--hide-scrollbars",
        "--window-size=1280,1700",
    ]);
    chromium.arg(format!("--user-data-dir={}", folder.join(format!("profile{}", how.len())).display())).args(how);
    process::run(chromium.arg(format!("file://{}", page.display()))).succeeded().stdout
}

/// The value of an attribute of the page's body.
fn body_data(dom: &str, name: &str) -> u32 {
    let body = dom.split("<body").nth(1).and_then(|rest| rest.split('>').next()).expect("the page has a body");
    let value = body.split(&format!("data-{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
    value.and_then(|v| v.parse().ok()).unwrap_or_else(|| panic!("the script did not end: <body{body}>"))
}

#[test]
fn the_page_draws_every_rectangle_and_no_name_is_markup() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = report(folder.path());
    let dom = browser(folder.path(), &["--dump-dom"], &page);
    let pieces = RANKS * (ROUNDS + 1);
    assert_eq!(body_data(&dom, "timeline"), pieces);
    // The interval has 3 rectangles, the parts one for each phase and rest, base and target two for each phase.
    assert_eq!(body_data(&dom, "drawn"), pieces + 3 + (3 + 2) + 2 * 3);
    assert!(dom.contains("<canvas") && dom.matches("<svg").count() == 3, "{dom}");
    let title = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).unwrap_or_default();
    assert!(!title.starts_with("broken") && title.contains("&lt;"), "a name became a script: {title}");
    // A browser writes attributes of elements in quotation marks.
    assert_eq!(dom.matches("onclick=\"").count(), 0, "a name became an element: {dom}");
}

#[test]
fn the_picture_shows_the_phases_in_their_colours() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = report(folder.path());
    let picture = folder.path().join("page.png");
    browser(folder.path(), &[&format!("--screenshot={}", picture.display())], &page);
    let file = File::open(&picture).expect("a picture was taken");
    let mut reader = png::Decoder::new(BufReader::new(file)).read_info().expect("the picture is a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("the picture has a size")];
    let frame = reader.next_frame(&mut pixels).expect("the picture can be read");
    let channels = frame.color_type.samples();
    let mut colours: HashMap<[u8; 3], u64> = HashMap::new();
    for pixel in pixels[..frame.buffer_size()].chunks_exact(channels) {
        *colours.entry([pixel[0], pixel[1], pixel[2]]).or_default() += 1;
    }
    let all = u64::from(frame.width) * u64::from(frame.height);
    for (what, colour, least) in [
        ("the main phase", [0x3b, 0x74, 0xc4], all / 20),
        ("the second phase", [0xe0, 0x8a, 0x2b], all / 2000),
        ("the first phase", [0x3f, 0x9e, 0x75], all / 200),
        ("paper", [0xff, 0xff, 0xff], all / 10),
    ] {
        let count = colours.get(&colour).copied().unwrap_or_default();
        assert!(count >= least, "{what} has {count} of {all} pixels, less than {least}");
    }
    assert!(colours.len() > 50, "the picture has only {} colours", colours.len());
}
