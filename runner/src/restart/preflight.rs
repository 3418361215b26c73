//! Whether this machine can restart the images of a signature: each check with its reason and, where it fails, what to
//! do.
use crate::exit::{Refusal, sentence};
use crate::launch::Launcher;
use crate::output::{self, bytes};
use crate::restart::manifest::{Images, Needs};
use crate::restart::processor;
use crate::restart::replay::Replayer;
use crate::restart::windows::{Profile, Window};
use crate::signature::{Manifest, Signature};
use anyhow::Result;
use serde::Serialize;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Room for jobs and reports.
const SCRATCH: u64 = 16 << 20;
/// What every rank needs besides its image: the MPI library and its buffers.
const HOST_BYTES: u64 = 64 << 20;
/// Where the program's memory is put back.
const RANGE: std::ops::Range<u64> = 0x2000_0000_0000..0x2800_0000_0000;

/// One check.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What is checked, in a word.
    pub name: &'static str,
    /// Whether it is well.
    pub ok: bool,
    /// What was found.
    pub reason: String,
    /// What to do; empty where it is well.
    pub remedy: String,
}

impl Check {
    fn new(name: &'static str, ok: bool, reason: String, remedy: &str) -> Check {
        Check { name, ok, reason, remedy: if ok { String::new() } else { remedy.into() } }
    }
}

/// The checks that need no launch.
pub fn machine(images: &Images, ranks: u32, launcher_given: bool) -> Vec<Check> {
    let needs = &images.needs;
    vec![
        architecture(needs),
        features(needs, &processor::flags()),
        kernel(),
        page_size(needs),
        addresses(),
        memory(needs, ranks, launcher_given),
        files(images, launcher_given),
        disk(),
        cores(ranks, launcher_given),
    ]
}

/// The launcher of the images' ranks, on a machine that passes the checks without a launch.
///
/// # Errors
/// If it does not, and those of [`launcher`].
pub fn fit_launcher(template: Option<&str>, manifest: &Manifest) -> Result<Launcher> {
    if let Some(images) = &manifest.images {
        refuse(&machine(images, manifest.ranks, template.is_some()))?;
    }
    launcher(template, manifest)
}

/// The launcher of the images' ranks.
///
/// # Errors
/// Those of [`Launcher::find`].
pub fn launcher(template: Option<&str>, manifest: &Manifest) -> Result<Launcher> {
    Launcher::find(template, manifest.ranks, Path::new(&manifest.command[0]))
}

/// A launch of hosts that restart the shortest window: which MPI they find, whether it starts as many ranks, whether the
/// image runs.
pub fn launch(signature: &Signature, images: &Images, source: &Path, launcher: &Launcher, scratch: &Path) -> Check {
    let replayer = Replayer::new(signature, images, source, launcher, scratch);
    let profile = Profile::of(&signature.analysis);
    let run_s = |w: &Window| profile.as_ref().map_or(0.0, |profile| profile.time(w.run()));
    let shortest = images.windows.iter().min_by(|a, b| run_s(a).total_cmp(&run_s(b)));
    let shortest: Vec<Window> = shortest.copied().into_iter().collect();
    let base_s = shortest.iter().map(run_s).sum();
    match replayer.run(&shortest, base_s, None, &|_| ()) {
        Ok(replayed) => {
            let slowest = replayed.init_s.iter().copied().fold(0.0, f64::max);
            let reason = format!(
                "`{launcher}` starts {} ranks with {}; MPI_Init takes {}, a restart {}",
                signature.manifest.ranks,
                replayed.mpi,
                output::seconds(slowest),
                output::seconds(replayed.restart_s)
            );
            Check::new("mpi", true, reason, "")
        }
        Err(error) => {
            let reason = format!("`{launcher}`: {}", sentence(&error));
            let remedy = if replayer.begun() {
                "put in place what it names, as a file of the program, or name another launcher with --launcher"
            } else {
                "install an MPI library with its launcher, or name another launcher with --launcher"
            };
            Check::new("mpi", false, reason, remedy)
        }
    }
}

/// The check that fails where there is no launcher.
pub fn no_launcher(error: &anyhow::Error) -> Check {
    Check::new("mpi", false, sentence(error), "install an MPI library with its launcher, or name one with --launcher")
}

/// The checks in words, one line each.
pub fn table(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let mark = if check.ok { "ok    " } else { "FAILS " };
        text.push_str(&format!("{mark} {:<13} {}\n", check.name, output::clean(&check.reason)));
        if !check.ok {
            text.push_str(&format!("       {:<13} {}\n", "", output::clean(&check.remedy)));
        }
    }
    text
}

/// Refuses a machine on which a check fails.
///
/// # Errors
/// If so, with the reasons.
pub fn refuse(checks: &[Check]) -> Result<()> {
    match failing(checks) {
        Some(what) => Err(Refusal::Unfit(format!("this machine cannot restart the images: {what}.")).into()),
        None => Ok(()),
    }
}

/// The checks that fail, in one sentence; none if all is well.
pub fn failing(checks: &[Check]) -> Option<String> {
    let words = |check: &Check| format!("{} ({})", check.reason.trim_end_matches('.'), check.remedy);
    let bad: Vec<String> = checks.iter().filter(|check| !check.ok).map(words).collect();
    (!bad.is_empty()).then(|| bad.join("; "))
}

fn architecture(needs: &Needs) -> Check {
    let here = std::env::consts::ARCH;
    let reason = format!("the images are of {}, this is {here}", needs.architecture);
    Check::new(
        "architecture",
        needs.architecture == here,
        reason,
        "sign on a machine of this kind, or use `phasecast predict --live` with the program built here",
    )
}

fn features(needs: &Needs, flags: &[String]) -> Check {
    let missing: Vec<&str> =
        needs.cpu_features.iter().filter(|need| !flags.contains(need)).map(String::as_str).collect();
    let reason = if missing.is_empty() {
        format!("this processor has all features of {}", needs.cpu_baseline)
    } else {
        format!("this processor lacks {} of {}", missing.join(", "), needs.cpu_baseline)
    };
    Check::new(
        "processor",
        missing.is_empty(),
        reason,
        "sign with `--cpu-baseline x86-64-v2`, or use `phasecast predict --live` with the program built here",
    )
}

fn kernel() -> Check {
    let version = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let actions = std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    let seccomp = actions.split_whitespace().any(|action| action == "trap");
    let fsgsbase = processor::fsgsbase();
    let base = if fsgsbase { "fsgsbase" } else { "no fsgsbase" };
    let filter = if seccomp { "seccomp filters" } else { "no seccomp filters" };
    let reason = format!("Linux {}, {filter}, {base}", version.trim());
    let remedy = "use Linux 5.9 or later, a processor since 2012 and a container that allows seccomp filters, or `phasecast predict --live` with the program built here";
    Check::new("kernel", seccomp && fsgsbase, reason, remedy)
}

fn page_size(needs: &Needs) -> Check {
    let here = page_bytes();
    let reason = format!("pages have {here} bytes here, {} in the images", needs.page_size);
    Check::new("pages", here == needs.page_size, reason, "sign on a machine with pages of this size")
}

/// Bytes of a page here.
pub fn page_bytes() -> u64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten().map_or(4096, |bytes| bytes as u64)
}

fn addresses() -> Check {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let bounds = |line: &str| {
        let (from, to) = line.split_whitespace().next()?.split_once('-')?;
        Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?))
    };
    let taken = maps.lines().filter_map(bounds).any(|(from, to)| from < RANGE.end && to > RANGE.start);
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let limit = limits.lines().find(|line| line.starts_with("Max address space"));
    let limited = limit.is_some_and(|line| !line.contains("unlimited"));
    let reason = match (taken, limited) {
        (true, _) => "the addresses of the images are taken".to_string(),
        (_, true) => "the size of address spaces is limited".to_string(),
        _ => "the addresses of the images are free".to_string(),
    };
    Check::new("addresses", !taken && !limited, reason, "lift the limit (`ulimit -v unlimited`)")
}

fn memory(needs: &Needs, ranks: u32, elsewhere: bool) -> Check {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = info
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let free = free.unwrap_or(0).saturating_mul(1024);
    let needed = needs.rank_bytes.saturating_add(HOST_BYTES).saturating_mul(u64::from(ranks));
    let each = bytes(needs.rank_bytes);
    if elsewhere {
        let reason = format!("{ranks} ranks of {each}; the launcher decides where, {} are free here", bytes(free));
        return Check::new("memory", true, reason, "");
    }
    let reason = format!("{ranks} ranks of {each} need {} with their MPI, {} are free", bytes(needed), bytes(free));
    Check::new(
        "memory",
        needed <= free,
        reason,
        "free memory, or spread the ranks over several machines with --launcher",
    )
}

/// What cannot be read here is what images had open; what the base run opened later is only told: restarts may never come to it.
fn files(images: &Images, elsewhere: bool) -> Check {
    let all = images.files();
    let unreadable = |path: &&Path| !elsewhere && File::open(images.here(path)).is_err();
    let missing: Vec<String> = all.iter().copied().filter(unreadable).map(|path| path.display().to_string()).collect();
    let mut later = images.later.iter().map(PathBuf::as_path).filter(unreadable).map(|path| path.display());
    let first = later.next();
    let mut reason = match (all.len(), elsewhere) {
        (0, _) => "the images read no files".to_string(),
        (count, true) => format!("{count} to be read where the launcher puts the ranks"),
        (count, false) if missing.is_empty() => format!("all {count} that the images read can be read here"),
        _ => format!("the images read {}, which cannot be read here", missing.join(", ")),
    };
    if let Some(first) = first {
        let more = later.count();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        reason += &format!("; not here is what the program opened later on the base: {first}{more}");
    }
    let remedy = match images.is_entered() {
        true => "copy them from the base machine, to the same paths".into(),
        false => format!(
            "copy them from the base machine: what lay in {} to this folder, which stands for it, others to the same paths",
            images.folder.display()
        ),
    };
    Check::new("files", missing.is_empty(), reason, &remedy)
}

fn disk() -> Check {
    let about = nix::sys::statvfs::statvfs(".");
    let free = about.map_or(0, |about| about.blocks_available() * about.fragment_size());
    let probe = tempfile::Builder::new().prefix(".phasecast-").tempfile_in(".");
    let reason = match &probe {
        Ok(_) => format!("{} are free in the working folder, {} are needed", bytes(free), bytes(SCRATCH)),
        Err(error) => format!("the working folder cannot be written ({error})"),
    };
    Check::new("disk", probe.is_ok() && free >= SCRATCH, reason, "change to a folder with room that all ranks reach")
}

fn cores(ranks: u32, elsewhere: bool) -> Check {
    let here = processor::count();
    let reason = match elsewhere {
        true => format!("{ranks} ranks where the launcher puts them"),
        false if ranks <= here => format!("{ranks} ranks on {here} processors"),
        false => format!("{ranks} ranks share {here} processors, in the true run as in the prediction"),
    };
    Check::new("ranks", true, reason, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs() -> Needs {
        Needs {
            architecture: "x86_64".into(),
            cpu_baseline: "x86-64-v3".into(),
            cpu_features: vec!["avx2".into(), "fma".into()],
            page_size: 4096,
            rank_bytes: 1 << 20,
        }
    }

    #[test]
    fn a_processor_that_lacks_something_is_named_with_a_remedy() {
        let check = features(&needs(), &["avx2".to_string()]);
        assert!(!check.ok && check.reason.contains("fma") && check.remedy.contains("--cpu-baseline"), "{check:?}");
        let check = features(&needs(), &["avx2".to_string(), "fma".to_string()]);
        assert!(check.ok && check.remedy.is_empty());
    }

    #[test]
    fn other_machines_and_too_much_memory_fail() {
        let mut needs = needs();
        needs.architecture = "riscv64".into();
        needs.page_size = 1 << 20;
        needs.rank_bytes = u64::MAX / 4;
        assert!(!architecture(&needs).ok && !page_size(&needs).ok && !memory(&needs, 4, false).ok);
        assert!(memory(&needs, 4, true).ok);
        let failing = failing(&[architecture(&needs), disk()]).expect("one fails");
        assert!(failing.contains("riscv64") && failing.contains("predict --live"), "{failing}");
    }
}
