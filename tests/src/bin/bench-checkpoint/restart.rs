//! Restarts: how long until the first event, in a new launch and in a running one; thousands in one launch; and what
//! several cuts of a program take on disk.
use crate::example;
use phasecast_checkpoint::job::{Cut, ReplayReport, Step};
use phasecast_checkpoint::moment::monotonic_ns;
use phasecast_image::{pack_file, store};
use phasecast_tests::bench::{Bound, Command, Split, figure, median};
use phasecast_tests::mpi::Mpi;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// MB of memory per rank.
const MB: f64 = 200.0;
/// Seconds to the first event in a new launch.
const LAUNCH: f64 = 1.0;
/// ms to a running launch's next first event, beside the bytes.
const RUNNING: f64 = 10.0;
/// Restarts in one launch.
const MANY: usize = 2000;
/// Bytes of five cuts in those of one.
const FIVE: f64 = 1.5;

/// Measures restarts under both MPIs.
pub fn run(rounds: usize) {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        first_event(mpi, rounds);
        many(mpi);
    }
}

/// Measures what five cuts take in bytes, of the programs that are given, or of an example whose memory changes all the time.
pub fn cuts(programs: &[(String, Command)]) {
    if programs.is_empty() {
        five_cuts("stencil 1024", &example(Mpi::OpenMpi, "stencil.c", &["1024", "2000"]));
    }
    programs.iter().for_each(|(name, command)| five_cuts(name, command));
}

/// A cut after `events` of each rank, and the step that restarts it and ends with the next event.
fn cut(id: u32, events: u64, ranks: u32) -> (Cut, Step) {
    let at = |events| vec![events; ranks as usize];
    (Cut { id, events: at(events) }, Step { cut: id, watch: vec![vec![events + 1]; ranks as usize] })
}

fn saved(split: &Split, command: &Command, cuts: &[Cut]) -> PathBuf {
    let (outcome, reports, images) = split.run(command, cuts);
    let all = reports.iter().flat_map(|report| &report.cuts);
    let refused: Vec<_> = all.filter(|cut| !cut.saved).collect();
    assert!(refused.is_empty(), "{refused:?}\n{}", outcome.stderr);
    images
}

fn first_event(mpi: Mpi, rounds: usize) {
    let name = mpi.name();
    let split = Split::new();
    let command = example(mpi, "truespeed.c", &["stream", &MB.to_string(), "12"]);
    let (at, step) = cut(0, 6, command.ranks);
    let images = saved(&split, &command, &[at]);
    let packed = split.path().join("images.phc");
    pack_file(&images, &packed).expect("images can be packed");
    let files: Vec<PathBuf> = (0..command.ranks).map(|rank| images.join(store::file_name(rank))).collect();
    for (form, images) in [("folder", &images), ("packed", &packed)] {
        let (mut launches, mut next) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let launched = now();
            let (_, reports) = split.replay(mpi, command.ranks, images, vec![step.clone(); 4]);
            launches.push(slowest(&reports, |report| first(report, 0) - launched));
            // From the last event of a step to the start of the next: what is there is cleared, the next image restored.
            next.extend((1..4).map(|step| slowest(&reports, |report| between(report, step))));
        }
        let what = format!("{name}: {MB} MB a rank, {form}: new launch to the first event");
        figure(&what, median(&launches), "s", Bound::Most(LAUNCH));
        let reading = median(&(0..rounds).map(|_| reading(&files)).collect::<Vec<_>>());
        let what = format!("{name}: {MB} MB a rank, {form}: next restart, bytes and all");
        figure(&what, median(&next) * 1e3, "ms", Bound::None);
        let what = format!("{name}: {MB} MB a rank, {form}: beyond plain reading ({:.0} ms)", reading * 1e3);
        figure(&what, (median(&next) - reading) * 1e3, "ms", Bound::Most(RUNNING));
    }
}

/// Reads files to fresh memory, each on a thread of its own as each rank does: seconds.
fn reading(files: &[PathBuf]) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for file in files {
            scope.spawn(move || std::fs::read(file).expect("an image can be read").len());
        }
    });
    start.elapsed().as_secs_f64()
}

fn many(mpi: Mpi) {
    let name = mpi.name();
    let split = Split::new();
    // Open MPI's image is the smaller one: what MPICH's library has mapped counts there, used or not.
    let command = example(Mpi::OpenMpi, "truespeed.c", &["cache", "1", "12"]);
    let (at, step) = cut(0, 6, command.ranks);
    let images = saved(&split, &command, &[at]);
    let (folder, done) = (split.path().to_owned(), AtomicBool::new(false));
    let (reports, sizes) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| sizes(&folder, &done));
        let (_, reports) = split.replay(mpi, command.ranks, &images, vec![step; MANY]);
        done.store(true, Ordering::Relaxed);
        (reports, watch.join().expect("the watch ends"))
    });
    let finished = reports.iter().map(|report| report.steps.iter().filter(|step| step.finished).count()).min();
    let what = format!("{name}: restarts in one launch that were finished");
    figure(&what, finished.unwrap_or(0) as f64, "", Bound::Least(MANY as f64));
    let next: Vec<f64> = (1..MANY).map(|step| slowest(&reports, |report| between(report, step))).collect();
    figure(
        &format!("{name}: next restart in a running launch, small image"),
        median(&next) * 1e3,
        "ms",
        Bound::Most(RUNNING),
    );
    let most = |steps: std::ops::Range<usize>| {
        sizes.iter().filter(|(step, _)| steps.contains(step)).map(|(_, kb)| *kb).max().unwrap_or(0) as f64 / 1024.0
    };
    let (early, late) = (most(50..150), most(MANY - 100..MANY + 1));
    figure(&format!("{name}: resident memory of a host after 100 restarts"), early, "MB", Bound::None);
    figure(&format!("{name}: resident memory of a host after {MANY} restarts"), late, "MB", Bound::Most(early + 1.0));
}

fn five_cuts(name: &str, command: &Command) {
    let split = Split::new();
    let (_, reports, _) = split.run(command, &[]);
    let places = |shares: &[f64]| -> Vec<Cut> {
        let events = |share: f64| reports.iter().map(|report| (report.events as f64 * share) as u64).collect();
        shares.iter().zip(0..).map(|(&share, id)| Cut { id, events: events(share) }).collect()
    };
    let bytes = |cuts: &[Cut]| {
        let images = saved(&split, command, cuts);
        let packed = split.path().join("images.phc");
        pack_file(&images, &packed).expect("images can be packed");
        let files = fs::read_dir(&images).expect("a folder of images").flatten();
        let folder: u64 = files.map(|file| file.metadata().map_or(0, |about| about.len())).sum();
        let packed = fs::metadata(packed).map_or(0, |about| about.len());
        let _ = fs::remove_dir_all(images);
        (folder as f64, packed as f64)
    };
    let (one, five) = (bytes(&places(&[0.5])), bytes(&places(&[0.3, 0.4, 0.5, 0.6, 0.7])));
    let what = format!("{name}: 5 cuts / 1 cut, folder ({:.0} MB)", one.0 / 1e6);
    figure(&what, five.0 / one.0, "", Bound::Most(FIVE));
    let what = format!("{name}: 5 cuts / 1 cut, packed ({:.0} MB)", one.1 / 1e6);
    figure(&what, five.1 / one.1, "", Bound::Most(FIVE));
}

fn slowest(reports: &[ReplayReport], of: impl Fn(&ReplayReport) -> f64) -> f64 {
    reports.iter().map(of).fold(0.0, f64::max)
}

/// The clock at the first event of a step, in seconds.
fn first(report: &ReplayReport, step: usize) -> f64 {
    report.steps[step].times_ns.first().map_or(f64::NAN, |&ns| ns as f64 * 1e-9)
}

/// From the last event of the step before to the start of this one, in seconds.
fn between(report: &ReplayReport, step: usize) -> f64 {
    report.steps[step].start_ns as f64 * 1e-9 - first(report, step - 1)
}

/// The hosts' clock, in seconds.
fn now() -> f64 {
    monotonic_ns() as f64 * 1e-9
}

/// Looks at the hosts of a replay whose files are in `folder` until it is `done`: how many steps rank 0 had finished, and
/// the resident memory of a host in KB.
fn sizes(folder: &Path, done: &AtomicBool) -> Vec<(usize, u64)> {
    let (mut seen, until) = (Vec::new(), Instant::now() + Duration::from_secs(300));
    while !done.load(Ordering::Relaxed) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
        let launches = fs::read_dir(folder).into_iter().flatten().flatten();
        let steps = launches.filter_map(|launch| fs::read(launch.path().join("rank-00000.progress")).ok());
        let steps = steps.map(|text| text.iter().filter(|byte| **byte == b'\n').count()).max().unwrap_or(0);
        seen.extend(hosts(folder).into_iter().map(|kb| (steps, kb)));
    }
    seen
}

fn hosts(folder: &Path) -> Vec<u64> {
    let folder = folder.to_string_lossy();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let resident = |process: fs::DirEntry| {
        let line = fs::read(process.path().join("cmdline")).ok()?;
        let mut words = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).skip(1);
        let is_host = words.next()? == "host" && words.next()?.starts_with(folder.as_ref());
        let status = fs::read_to_string(process.path().join("status")).ok().filter(|_| is_host)?;
        let kb = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        kb.trim().trim_end_matches(" kB").parse().ok()
    };
    processes.filter_map(resident).collect()
}
