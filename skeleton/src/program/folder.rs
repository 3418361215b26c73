//! The folder of a skeleton: source, Makefile, README and manifest, whole or not at all.
use super::Skeleton;
use super::calibrate::FLAGS;
use super::error::ProgramError;
use super::manifest::{Basis, FILE, Manifest};
use super::source::harmless;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

/// The name of the source.
pub const SOURCE: &str = "skeleton.c";

/// Writes the folder: under a temporary name beside it, synced, then renamed.
///
/// # Errors
/// If there is something of that name, the manifest is too long, or it cannot be written; nothing is left then.
pub fn write(folder: &Path, source: &str, manifest: &Manifest, skeleton: &Skeleton) -> Result<(), ProgramError> {
    let text = manifest.to_file(folder)?;
    let temporary = phasecast_trace::atomic::temporary(folder);
    let fill = || {
        fs::create_dir(&temporary)?;
        let files = [
            (SOURCE, source.to_owned()),
            ("Makefile", makefile(manifest.ranks)),
            ("README.md", readme(manifest, skeleton)),
            (FILE, text.clone()),
        ];
        for (name, text) in files {
            let mut file = File::create_new(temporary.join(name))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
        }
        File::open(&temporary)?.sync_all()?;
        if folder.symlink_metadata().is_ok() {
            return Err(std::io::ErrorKind::AlreadyExists.into());
        }
        fs::rename(&temporary, folder)
    };
    fill().map_err(|error| {
        let _ = fs::remove_dir_all(&temporary);
        ProgramError::io(folder, "write")(error)
    })
}

fn makefile(ranks: u32) -> String {
    format!(
        "# Builds the skeleton with the MPI of this machine; `make run` runs it.\nCC = mpicc\nCFLAGS = {}\nMPIRUN = mpirun -n {ranks}\n\nskeleton: {SOURCE}\n\t$(CC) $(CFLAGS) -o $@ {SOURCE}\n\nrun: skeleton\n\t$(MPIRUN) ./skeleton\n\nclean:\n\trm -f skeleton\n\n.PHONY: run clean\n",
        FLAGS.join(" ")
    )
}

fn seconds(s: f64) -> String {
    match s {
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.3} s"),
    }
}

/// What the folder is, in Markdown. What comes from the trace stands in code spans, without anything that ends one.
fn readme(manifest: &Manifest, skeleton: &Skeleton) -> String {
    let code = |text: &str| format!("`{}`", harmless(text).replace('`', "'"));
    let mut out = String::new();
    let _ = write!(
        out,
        "# Performance skeleton\n\nThis program stands for {} with {} ranks, traced in {} on {} ({}). It has the same topology, the same loops and the same\nmessages, and takes about 1/{:.1} of the time there. It was written by `phasecast skeleton`; `skeleton.json` holds what `phasecast\npredict --skeleton` needs.\n\n",
        code(&manifest.program),
        manifest.ranks,
        seconds(manifest.base_run_s),
        code(&manifest.base.host),
        code(&manifest.base.mpi),
        manifest.ratio,
    );
    let _ = write!(
        out,
        "- `make CC=mpicc` builds it, `mpirun -n {} ./skeleton` runs it: it prints one line of JSON with the time of each part, and\n  `stands_for_s`, the time that the program would take (without start and end of MPI).\n- `phasecast predict --skeleton FOLDER` does that a few times and gives the prediction with its interval.\n\n",
        manifest.ranks
    );
    let _ = write!(
        out,
        "Ratio: 1/{:.1} was asked for, 1/{:.1} is expected; with whole iterations of the main loop at most 1/{:.1}.\nTopology: {}.\n\n## Loops\n\n",
        manifest.ratio_asked,
        manifest.ratio,
        manifest.ratio_most,
        harmless(manifest.topology.as_deref().unwrap_or("none was recognised")),
    );
    for nest in &manifest.nests {
        let _ = writeln!(out, "- {}", harmless(nest));
    }
    out.push_str("\n## Parts\n\nEach is timed apart. The first of three or more iterations of a loop stands for itself, each other one for (iterations in the program - 1) /\n(here - 1); of one or two each stands for (iterations in the program) / (here).\n\n| part | what | ranks | in the program | here | time in the program |\n|---|---|---|---|---|---|\n");
    for (at, part) in manifest.parts.iter().enumerate() {
        let _ = writeln!(
            out,
            "| {at} | {} | {} | {} | {} | {} |",
            harmless(&part.name),
            harmless(&part.ranks),
            part.full,
            part.count,
            seconds(part.base_s)
        );
    }
    let rates = &manifest.rates;
    let _ = write!(
        out,
        "\n## Computation\n\nBlocks of computation are work, not waiting: {:.0} % of their time on the base reads and writes a working set of {} KiB, the\nrest is arithmetic. On the base {:.1} cache lines and {:.1} rounds of arithmetic take a microsecond.\n",
        100.0 * rates.mix.memory,
        rates.mix.working_set / 1024,
        rates.lines_per_us,
        rates.rounds_per_us
    );
    match (&manifest.computation, &rates.far) {
        (Basis::Counters { .. }, Some(far)) => {
            let each = &far.instructions;
            let _ = write!(
                out,
                "That holds for blocks that were not counted. The others are made by {}: they read as many cache lines of a\nworking set of {} MiB, which no cache holds, as came from memory ({:.1} take a microsecond on the base), and the rest of their\ntime is of the other two kinds, in the share that has their instructions: {:.1} in a round, {:.1} in a line, {:.1} in a line from\nmemory, {}.",
                harmless(&manifest.computation.words()),
                far.working_set >> 20,
                far.lines_per_us,
                each.round,
                each.line,
                each.far_line,
                if each.counted { "counted on the base" } else { "as compilers make them" },
            );
        }
        _ => out.push_str(
            "The mix is a default unless it was given (`--mix`, `--working-set`): the trace does not hold it.",
        ),
    }
    out.push_str("\n\n## Left out\n\n");
    if manifest.left_out.is_empty() {
        out.push_str("No call of the logical trace is left out.\n");
    }
    for line in &manifest.left_out {
        let _ = writeln!(out, "- {}", harmless(line));
    }
    let _ = write!(
        out,
        "\nThe static replay of all ranks carried out {} calls, every send waiting for its receive, and came to the end.\n",
        skeleton.repaired.calls
    );
    out
}
