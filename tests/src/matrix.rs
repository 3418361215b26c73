//! Many programs, cut under several MPIs and restarted under several: who passed, as a table.

use crate::mpi::Mpi;
use crate::program::Program;
use crate::split::{Base, Choice, chosen, cuts, hash, native};
use phasecast_checkpoint::job::Cut;
use std::collections::HashSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a program went from one MPI to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The program.
    pub program: String,
    /// The base MPI.
    pub base: Mpi,
    /// The target MPI.
    pub target: Mpi,
    /// Cuts that went on well.
    pub passed: usize,
    /// Cuts that did not.
    pub failed: usize,
    /// Cuts that were refused for a reason that the program names.
    pub refused: usize,
}

/// How all went.
#[derive(Debug, Default)]
pub struct Table {
    /// By program and MPIs.
    pub rows: Vec<Row>,
    /// Everything that went wrong, in words.
    pub failures: Vec<String>,
}

/// Programs that run at the same time: launchers spend half of a launch waiting.
const AT_ONCE: usize = 4;

/// Runs every program for every base and its targets.
pub fn run(programs: &[Program], plan: &[(Mpi, &[Mpi])], choice: Choice) -> Table {
    let next = AtomicUsize::new(0);
    let table = Mutex::new(Table::default());
    let work = || {
        while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            // First all traces: what a program prints under its bases is known from them.
            let plans = plan.iter().map(|(base, _)| catch_unwind(|| plans(program, *base, choice)));
            let plans: Vec<_> = plans.collect();
            for ((base, targets), plans) in plan.iter().zip(plans) {
                let plans = plans.unwrap_or_else(|_| Err("its trace panicked".into()));
                let part = catch_unwind(AssertUnwindSafe(|| one(program, *base, targets, plans, choice)));
                let part = part.unwrap_or_else(|_| Table::failed(program, *base, targets, "it panicked".into()));
                part.failures.iter().for_each(|wrong| eprintln!("{wrong}"));
                part.rows.iter().for_each(|row| eprintln!("{row}"));
                let mut table = table.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                table.rows.extend(part.rows);
                table.failures.extend(part.failures);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    let mut table = table.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    table.rows.sort();
    table.failures.sort();
    table
}

/// Cuts one program under one MPI and restarts it under others.
fn one(program: &Program, base: Mpi, targets: &[Mpi], plans: Plans, choice: Choice) -> Table {
    let cut = || {
        let plans = plans?;
        let expected = native(program, base)?;
        let mut bases: Vec<Base<'_>> = Vec::new();
        for cuts in plans {
            let refused = |of: &Base<'_>| of.saved.is_empty() && of.failures.is_empty();
            if choice == Choice::Every || bases.iter().all(refused) {
                bases.push(Base::cut(program, base, cuts, &expected)?);
            }
        }
        Ok(bases)
    };
    let cut: Result<Vec<Base<'_>>, String> = cut();
    let bases = match cut {
        Ok(bases) => bases,
        Err(wrong) => return Table::failed(program, base, targets, wrong),
    };
    let mut table = Table::default();
    let mut begun = Row { program: program.name.clone(), base, target: base, passed: 0, failed: 0, refused: 0 };
    for base in &bases {
        base.failures.iter().for_each(|wrong| table.fail(&mut begun, wrong));
        begun.refused += base.refused.len();
    }
    if bases.iter().all(|base| base.saved.is_empty()) {
        table.fail(&mut begun, "no cut is saved");
    }
    for &target in targets {
        let mut row = Row { target, ..begun.clone() };
        match native(program, target) {
            Err(wrong) => table.fail(&mut row, &wrong),
            Ok(expected) => {
                for (base, cut) in bases.iter().flat_map(|base| base.saved.iter().map(move |cut| (base, cut))) {
                    match base.replay(target, cut, &expected) {
                        Ok(()) => row.passed += 1,
                        Err(wrong) => table.fail(&mut row, &wrong),
                    }
                }
            }
        }
        table.rows.push(row);
    }
    table
}

/// The cuts of one run after the other, or why there are none.
type Plans = Result<Vec<Vec<Cut>>, String>;

/// The cuts to take, for one run after the other: those of every rank's positions if every cut is wanted, else those of
/// one rank that are chosen, and then each of its others, to be taken while all are refused. No cut is taken twice.
fn plans(program: &Program, base: Mpi, choice: Choice) -> Plans {
    if choice != Choice::Every {
        let pilot = hash(&program.name) as u32 % program.ranks;
        let all = cuts(program, base, pilot)?;
        let first = chosen(all.clone(), choice, program);
        let (before, after): (Vec<Cut>, _) = all.into_iter().partition(|cut| cut.id < first[0].id);
        let others = after.into_iter().chain(before).filter(|cut| !first.contains(cut)).map(|cut| vec![cut]);
        return Ok(std::iter::once(first.clone()).chain(others).collect());
    }
    let mut seen = HashSet::new();
    let mut plans = Vec::new();
    for pilot in 0..program.ranks {
        let mut of_pilot = cuts(program, base, pilot)?;
        of_pilot.retain(|cut| seen.insert(cut.events.clone()));
        plans.push(of_pilot);
    }
    plans.retain(|plan| !plan.is_empty());
    Ok(plans)
}

impl Table {
    fn failed(program: &Program, base: Mpi, targets: &[Mpi], wrong: String) -> Table {
        let row = |target: &Mpi| Row {
            program: program.name.clone(),
            base,
            target: *target,
            passed: 0,
            failed: 1,
            refused: 0,
        };
        Table { rows: targets.iter().map(row).collect(), failures: vec![format!("{}: {wrong}", program.name)] }
    }

    fn fail(&mut self, row: &mut Row, wrong: &str) {
        row.failed += 1;
        self.failures.push(format!("{}: {wrong}", row.program));
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { program, base, target, passed, failed, refused } = self;
        write!(f, "{program:24} {:10} {:10} {passed:6} {failed:6} {refused:7}", base.name(), target.name())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in &self.failures {
            writeln!(f, "{failure}\n")?;
        }
        writeln!(f, "{:24} {:10} {:10} passed failed refused", "program", "base", "target")?;
        for row in &self.rows {
            writeln!(f, "{row}")?;
        }
        let sum = |of: fn(&Row) -> usize| self.rows.iter().map(of).sum::<usize>();
        let (passed, failed, refused) = (sum(|r| r.passed), sum(|r| r.failed), sum(|r| r.refused));
        let whole = self.rows.iter().filter(|row| row.failed == 0).count();
        writeln!(
            f,
            "{:46} {passed:6} {failed:6} {refused:7}",
            format!("all: {whole} of {} without a failure", self.rows.len())
        )
    }
}
