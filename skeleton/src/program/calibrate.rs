//! Calibration: how much of each kernel the base does in a microsecond, measured with the compiler and the flags that
//! the skeleton is built with, on as many processors at once as the program has ranks here.
use super::error::ProgramError;
use super::source::{FAR, KERNEL};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{Command, Stdio};

/// What the compiler is told.
pub const FLAGS: [&str; 2] = ["-std=c99", "-O2"];
const MAIN: &str = include_str!("calibrate.c");
const COUNT: &str = include_str!("count.c");
/// Instructions of the kernels as GCC 12 makes them for x86-64 with [`FLAGS`].
const KNOWN: Instructions = Instructions { round: 7.0, line: 5.75, far_line: 7.0, counted: false };
/// The least and the most memory of a rank that no cache is to hold, in bytes.
const FAR_SETS: (u64, u64) = (64 << 20, 1 << 30);

/// What computation is made of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// Share of the computing time in which memory is read and written, 0 to 1; the rest is arithmetic.
    pub memory: f64,
    /// The memory that a rank goes through, in bytes.
    pub working_set: u64,
}

impl Default for Mix {
    fn default() -> Mix {
        // Within half of the second-level cache of most processors, as two threads of a core share one: what is beyond is
        // shared by more, and its speed is another from run to run.
        Mix { memory: 0.5, working_set: 128 << 10 }
    }
}

/// The mix, and how fast the base does it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// The mix.
    pub mix: Mix,
    /// Rounds of arithmetic in a microsecond.
    pub rounds_per_us: f64,
    /// Cache lines in a microsecond.
    pub lines_per_us: f64,
    /// What a block takes beyond its work, in microseconds.
    pub block_us: f64,
    /// Lines from memory, where the trace has counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<Far>,
}

/// Lines that come from memory, and instructions: for computation that was counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Far {
    /// The memory that a rank goes through, in bytes, far beyond its share of the last cache.
    pub working_set: u64,
    /// Its cache lines in a microsecond.
    pub lines_per_us: f64,
    /// Instructions of the kernels.
    pub instructions: Instructions,
}

/// Instructions of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Instructions {
    /// Of a round of arithmetic.
    pub round: f64,
    /// Of a line of the small working set.
    pub line: f64,
    /// Of a line from memory.
    pub far_line: f64,
    /// Whether they were counted here; else they are those that the compiler is known to make.
    pub counted: bool,
}

impl Rates {
    /// As macros of C.
    pub fn defines(&self) -> String {
        format!(
            "\n/* Computation on the base: share of memory traffic, its working set in bytes, and what is done in a microsecond. */\n#define MIX {:?}\n#define WORKING_SET {}ul\n#define ROUNDS_PER_US {:?}\n#define LINES_PER_US {:?}\n#define BLOCK_US {:?}\n",
            self.mix.memory, self.mix.working_set, self.rounds_per_us, self.lines_per_us, self.block_us
        )
    }
}

impl Far {
    /// As macros of C.
    pub fn defines(&self) -> String {
        format!("#define FAR_SET {}ul\n#define FAR_LINES_PER_US {:?}\n", self.working_set, self.lines_per_us)
    }
}

/// The memory that each of so many processes is to go through, in bytes, so that lines come from memory: four times its
/// share of the last cache of this machine, within bounds.
fn far_set(processes: usize) -> u64 {
    let cache = |index: usize| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        let text = std::fs::read_to_string(path).ok()?;
        text.trim().strip_suffix('K')?.parse::<u64>().ok()
    };
    let last = (0..8).filter_map(cache).max().unwrap_or(0).saturating_mul(1 << 10);
    let share = last.saturating_mul(4) / processes.max(1) as u64;
    share.clamp(FAR_SETS.0, FAR_SETS.1) / 4096 * 4096
}

/// Measures the rates of this machine, with so many processes at once, in a folder for scratch files; with `counted` those
/// of lines from memory too.
///
/// # Errors
/// If the compiler, or what it made, fails.
pub fn calibrate(
    compiler: &str,
    mix: Mix,
    counted: bool,
    processes: usize,
    folder: &Path,
) -> Result<Rates, ProgramError> {
    let failed = |what: String| ProgramError::Compiler { compiler: compiler.to_owned(), what };
    let unknown = "static double rounds_per_us = 1.0, lines_per_us = 1.0;\n#define ROUNDS_PER_US rounds_per_us\n#define LINES_PER_US lines_per_us\n#define BLOCK_US 0.0\n";
    let set = far_set(processes);
    let (system, far) = match counted {
        true => ("_GNU_SOURCE 1", format!("#define FAR_SET {set}ul\n#define FAR_LINES_PER_US 1.0\n{FAR}{COUNT}")),
        false => ("_POSIX_C_SOURCE 199309L", String::new()),
    };
    let text = format!(
        "#define {system}\n#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n#define MIX {:?}\n#define WORKING_SET {}ul\n{unknown}{KERNEL}{far}{MAIN}",
        mix.memory, mix.working_set
    );
    let (source, program) = (folder.join("calibrate.c"), folder.join("calibrate"));
    std::fs::write(&source, text).map_err(ProgramError::io(&source, "write"))?;
    compile(compiler, &source, &program)?;
    let start = || Command::new(&program).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let running: Vec<_> = (0..processes.max(1)).map(|_| start()).collect();
    let mut all: Vec<[f64; 7]> = Vec::new();
    for child in running {
        let output = child.and_then(|child| child.wait_with_output()).map_err(ProgramError::io(&program, "run"))?;
        let words: Vec<f64> =
            String::from_utf8_lossy(&output.stdout).split_whitespace().filter_map(|word| word.parse().ok()).collect();
        match words[..] {
            [rounds, lines, over, ref more @ ..]
                if rounds > 0.0 && lines > 0.0 && over.is_finite() && more.len() == if counted { 4 } else { 0 } =>
            {
                let mut one = [0.0; 7];
                one.iter_mut().zip(&words).for_each(|(place, word)| *place = *word);
                all.push(one);
            }
            _ => return Err(failed(format!("the calibration ended with {} and no rates", output.status))),
        }
    }
    let mean = |at: usize| all.iter().map(|of| of[at]).sum::<f64>() / all.len() as f64;
    let each = [4, 5, 6].map(mean);
    let instructions = match each {
        [round, line, far_line] if each.iter().all(|n| *n > 0.0) => {
            Instructions { round, line, far_line, counted: true }
        }
        _ => KNOWN,
    };
    let far = counted.then(|| Far { working_set: set, lines_per_us: mean(3), instructions });
    // What a block costs beyond its work is small; more than a microsecond is another process that got in between.
    Ok(Rates { mix, rounds_per_us: mean(0), lines_per_us: mean(1), block_us: mean(2).clamp(0.0, 1.0), far })
}

/// Compiles a source.
///
/// # Errors
/// If there is no such compiler, or it refuses.
pub fn compile(compiler: &str, source: &Path, program: &Path) -> Result<(), ProgramError> {
    let failed = |what: String| ProgramError::Compiler { compiler: compiler.to_owned(), what };
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("mpicc"));
    command.args(words).args(FLAGS).arg(source).arg("-o").arg(program).stdin(Stdio::null());
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ProgramError::NoCompiler { compiler: compiler.to_owned() },
        _ => failed(error.to_string()),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().take(4).collect();
    Err(failed(format!("{} ({})", lines.join("; "), output.status)))
}
