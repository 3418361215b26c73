//! The marker method on made programs: what it finds, what it says where nothing repeats, and what it refuses.
mod support;
use phasecast_analyzer::{Analysis, AnalyzeError, Order, Settings, advances, analyze};
use phasecast_trace::Trace;
use support::{Act, Folder, Program};

fn settings(threads: usize) -> Settings {
    Settings { threads, ..Settings::default() }
}

fn run(traces: &[Trace]) -> Analysis {
    analyze(traces, &settings(1), &|_, _| {}).unwrap()
}

fn noise(seed: u64, i: u64) -> u64 {
    phasecast_analyzer::symbol::mix(seed << 32 | i) % 1000
}

/// A stencil on a ring with an allreduce every fifth step; `step_ns` gives the work of each step.
fn stencil(ranks: u32, steps: u64, step_ns: impl Fn(u64) -> u64) -> Program {
    let mut program = Program::new(ranks);
    program.all(|_| Act::Work(3_000_000));
    program.all(|_| Act::Collective { comm: 0, root: 0, bytes: 4 });
    for step in 0..steps {
        program.all(|rank| Act::Work(step_ns(step) + u64::from(rank)));
        program.all(|rank| Act::Isend { to: (rank + 1) % ranks, tag: 1, bytes: 800 });
        program.all(|rank| Act::Isend { to: (rank + ranks - 1) % ranks, tag: 2, bytes: 800 });
        program.all(|rank| {
            let (left, right) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
            let mut parts = vec![(left, 1, 800, false), (right, 2, 800, false)];
            if noise(7, step * 64 + u64::from(rank)).is_multiple_of(2) {
                parts.reverse();
            }
            Act::Recv(parts)
        });
        if step % 5 == 4 {
            program.all(|_| Act::Collective { comm: 0, root: -1, bytes: 8 });
        }
    }
    program
}

#[test]
fn a_stencil_has_one_phase_and_is_explained_by_few_occurrences() {
    let folder = Folder::new();
    let trace = stencil(4, 1000, |step| 100_000 + noise(1, step)).write(&folder.path("a"), 500);
    let analysis = run(&[trace]);
    assert!(analysis.verdict.pays, "{}", analysis.verdict.reason);
    let relevant: Vec<_> = analysis.phases.iter().filter(|p| p.relevant && !p.one_off).collect();
    assert_eq!(relevant.len(), 1, "{relevant:#?}");
    assert!(relevant[0].hashes.iter().all(|&h| h != 0));
    assert!(relevant[0].structure.contains("send(1) send(3) recv(1,3)"), "{}", relevant[0].structure);
    assert!((analysis.explained_s / analysis.run_time_s - 1.0).abs() < 0.002, "{analysis:?}");
    assert!(analysis.planned_s < 0.2 * analysis.run_time_s, "{}", analysis.planned_s);
    assert!(analysis.coverage > 0.9);
    assert_eq!(analysis.unmatched_sends + analysis.unmatched_receives, 0);
}

/// Workers that compute together and send what they have to a rank that only takes it in, and takes longest by little.
#[test]
fn a_server_of_output_does_not_hide_what_the_others_repeat() {
    let mut program = Program::new(3);
    program.comms.push(vec![1, 2]);
    for step in 0..500 {
        program.act(0, Act::Work(102_000));
        for worker in [1, 2] {
            program.act(worker, Act::Work(100_000 + noise(1, step)));
            program.act(worker, Act::Collective { comm: 1, root: -1, bytes: 8 });
            if step % 5 == 0 {
                program.act(worker, Act::Send { to: 0, tag: 1, bytes: 8000 });
                program.act(0, Act::Recv(vec![(worker, 1, 8000, true)]));
            }
        }
    }
    program.all(|_| Act::Collective { comm: 0, root: -1, bytes: 0 });
    let folder = Folder::new();
    let analysis = run(&[program.write(&folder.path("a"), 500)]);
    assert!(analysis.verdict.pays && analysis.repeating_share() > 0.9, "{analysis:#?}");
    let with_events = advances(analysis.pieces[0].iter().map(|piece| piece.end));
    assert!(
        with_events >= 95,
        "the server receives what it was sent every fifth step, and not all at the end: {with_events}"
    );
}

/// Workers that each work by themselves, and a rank that takes what comes first, in another order in each run.
#[test]
fn a_collector_follows_workers_that_know_nothing_of_each_other() {
    let folder = Folder::new();
    let collected = |run: u64, name: &str| {
        let mut program = Program::new(3);
        for step in 0..500 {
            let mut workers = [1, 2];
            workers.iter().for_each(|&worker| {
                program.act(worker, Act::Work(100_000 + noise(run, step)));
                program.act(worker, Act::Send { to: 0, tag: 1, bytes: 8000 });
            });
            if noise(run, step).is_multiple_of(2) {
                workers.reverse();
            }
            workers.iter().for_each(|&worker| program.act(0, Act::Recv(vec![(worker, 1, 8000, true)])));
        }
        program.all(|_| Act::Collective { comm: 0, root: -1, bytes: 0 });
        program.write(&folder.path(name), 500)
    };
    let settings = Settings { first_come: true, ..settings(1) };
    let traces = [collected(1, "a"), collected(2, "b")];
    let analysis = analyze(&traces, &settings, &|_, _| {}).unwrap();
    assert!(analysis.verdict.pays && analysis.repeating_share() > 0.9, "{analysis:#?}");
    for rank in [0, 2] {
        let with_events = advances(analysis.pieces[rank].iter().map(|piece| piece.end));
        assert!(2 * with_events > analysis.pieces[1].len(), "rank {rank}: {with_events}");
    }
}

#[test]
fn pieces_tile_the_run_and_are_kept_in_a_file() {
    let folder = Folder::new();
    let trace = stencil(3, 300, |step| 50_000 + noise(2, step)).write(&folder.path("a"), 500);
    let spans: Vec<u64> = trace.ranks().map(|r| trace.span(r)).map(|(a, b)| b.0 - a.0).collect();
    let analysis = run(&[trace]);
    for (rank, pieces) in analysis.pieces.iter().enumerate() {
        assert_eq!(pieces.iter().map(|p| p.time.0).sum::<u64>(), spans[rank]);
        assert_eq!(pieces.last().unwrap().end, analysis.events[rank]);
        assert_eq!(pieces.len(), analysis.pieces[0].len());
    }
    let file = folder.path("a.phases");
    analysis.save(&file).unwrap();
    assert_eq!(Analysis::load(&file).unwrap(), analysis);
    assert!(analysis.save(&file).is_err());
}

#[test]
fn the_hashes_of_a_phase_are_those_of_its_events() {
    let folder = Folder::new();
    let trace = stencil(4, 200, |step| 80_000 + noise(3, step)).write(&folder.path("a"), 500);
    let analysis = run(&[Trace::open(trace.path()).unwrap()]);
    the_hashes_are_those_of_the_events(&analysis, &trace);
}

fn the_hashes_are_those_of_the_events(analysis: &Analysis, trace: &Trace) {
    let symbols = phasecast_analyzer::Symbols::new(&analysis.volume_classes, trace.procedures(), analysis.order);
    let mut checked = 0;
    for rank in trace.ranks() {
        let mut hasher = phasecast_analyzer::SegmentHasher::new(&symbols);
        let pieces = &analysis.pieces[rank.index()];
        let (mut at, mut events) = (0, 0);
        trace
            .for_each_event(rank, |event| {
                hasher.push(&event);
                events += 1;
                while pieces.get(at).is_some_and(|p| p.end == events) {
                    let phase = &analysis.phases[pieces[at].phase.index()];
                    let hash = hasher.finish();
                    assert!([0, hash].contains(&phase.hashes[rank.index()]), "rank {rank} piece {at}");
                    checked += usize::from(phase.hashes[rank.index()] != 0);
                    at += 1;
                }
            })
            .unwrap();
    }
    assert!(checked > 100);
}

#[test]
fn a_second_run_confirms_levels() {
    let folder = Folder::new();
    let time = |seed| move |step: u64| (if step < 600 { 100_000 } else { 140_000 }) + noise(seed, step);
    let a = stencil(2, 1000, time(1)).write(&folder.path("a"), 500);
    let b = stencil(2, 1000, time(2)).write(&folder.path("b"), 500);
    let both = run(&[a, b]);
    let relevant: Vec<_> = both.phases.iter().filter(|p| p.relevant && !p.one_off).collect();
    assert_eq!(relevant.len(), 2, "{relevant:#?}");
    assert!(both.pieces.iter().flatten().all(|p| p.again.is_some()));
    assert_eq!(both.base_runs_s.len(), 2);
}

/// Where each run is disturbed in half of its steps, and neither in all, markers are those of quiet runs.
#[test]
fn markers_are_of_the_quieter_times_of_both_runs() {
    let folder = Folder::new();
    let disturbed =
        |half: u64| move |step: u64| 20_000_000 + if step / 12 == half { 50_000 * noise(20 + half, step) } else { 0 };
    let of = |name: &str, half: u64| stencil(2, 24, disturbed(half)).write(&folder.path(name), 500);
    let quiet = run(&[of("quiet", 9), of("still", 9)]);
    let both = run(&[of("first", 0), of("second", 1)]);
    assert!(quiet.verdict.pays && both.verdict.pays, "{}", both.verdict.reason);
    assert_eq!(both.markers, quiet.markers);
}

#[test]
fn nothing_repeats() {
    let folder = Folder::new();
    let mut program = Program::new(2);
    for step in 0..300u64 {
        program.all(|_| Act::Work(100_000));
        program.act(0, Act::Send { to: 1, tag: 0, bytes: 1 << (noise(5, step) % 40) });
        program.act(1, Act::Recv(vec![(0, 0, 1 << (noise(5, step) % 40), false)]));
    }
    let analysis = run(&[program.write(&folder.path("a"), 100)]);
    assert!(!analysis.verdict.pays);
    assert!(analysis.verdict.reason.contains("run it in full"), "{}", analysis.verdict.reason);
    let empty = run(&[Program::new(2).write(&folder.path("b"), 100)]);
    assert!(!empty.verdict.pays);
    assert_eq!(empty.pieces[0].len(), 1);
}

#[test]
fn streams_that_differ_are_named() {
    let folder = Folder::new();
    let a = stencil(2, 100, |_| 50_000);
    let mut b = a.clone();
    let at = b.acts[1].iter().position(|act| matches!(act, Act::Isend { tag: 2, .. })).unwrap();
    b.acts[1][at] = Act::Isend { to: 0, tag: 2, bytes: 99_999 };
    let receive = b.acts[0].iter().position(|act| matches!(act, Act::Recv(_))).unwrap();
    b.acts[0][receive] = Act::Recv(vec![(1, 1, 800, false), (1, 2, 99_999, false)]);
    let (a, b) = (a.write(&folder.path("a"), 500), b.write(&folder.path("b"), 500));
    let analysis = run(&[a, b]);
    assert!(!analysis.verdict.pays);
    let difference = analysis.verdict.difference.unwrap();
    assert!(difference.contains("99999 bytes"), "{difference}");
}

#[test]
fn a_program_that_runs_for_a_given_time_is_cut_while_its_runs_are_alike() {
    let folder = Folder::new();
    let time = |step| 100_000 + noise(1, step);
    let traces = [500, 520].map(|steps| stencil(2, steps, time).write(&folder.path(&steps.to_string()), 500));
    let analysis = run(&traces);
    assert!(analysis.verdict.pays && analysis.verdict.difference.is_some(), "{}", analysis.verdict.reason);
    assert!(analysis.verdict.reason.contains("what comes last"), "{}", analysis.verdict.reason);
    assert!(analysis.pieces[0].len() > 95, "{}", analysis.pieces[0].len());
}

#[test]
fn receives_that_change_places_are_tolerated() {
    let folder = Folder::new();
    let a = stencil(3, 200, |_| 50_000);
    let mut b = a.clone();
    for act in b.acts.iter_mut().flatten() {
        if let Act::Recv(parts) = act {
            parts.reverse();
        }
    }
    let analysis = run(&[a.write(&folder.path("a"), 500), b.write(&folder.path("b"), 500)]);
    assert!(analysis.verdict.pays, "{}", analysis.verdict.reason);
}

#[test]
fn messages_that_are_served_as_they_come_make_no_difference() {
    let folder = Folder::new();
    // Each rank sends to both others and receives from them, in an order that is another in every step and run.
    let program = |seed: u64| {
        let mut program = Program::new(3);
        for step in 0..300u64 {
            program.all(|rank| Act::Work(4_000_000 + noise(seed, step * 3 + u64::from(rank))));
            for rank in 0..3u32 {
                let [a, b] = [1, 2].map(|by| (rank + by) % 3);
                let messages = [(a, 1), (a, 2), (a, 3), (b, 1), (b, 2), (b, 3)];
                // Sends first, so that nobody waits for ever.
                let mut acts: Vec<(bool, u64, Act)> = Vec::new();
                for (at, (peer, tag)) in (0u64..).zip(messages) {
                    let place = |more: u64| noise(seed + more, (step * 3 + u64::from(rank)) * 6 + at);
                    acts.push((false, place(1), Act::Isend { to: peer, tag, bytes: 80 << tag }));
                    acts.push((true, place(2), Act::Recv(vec![(peer, tag, 80 << tag, false)])));
                }
                acts.sort_by_key(|(receives, place, _)| (*receives, *place));
                acts.into_iter().for_each(|(.., act)| program.act(rank, act));
            }
            program.all(|_| Act::Collective { comm: 0, root: -1, bytes: 8 });
        }
        program
    };
    let traces = [1, 50].map(|seed| program(seed).write(&folder.path(&seed.to_string()), 500));
    let analysis = run(&traces);
    assert!(analysis.verdict.pays, "{}", analysis.verdict.reason);
    assert_eq!(analysis.order, Order::Free);
    let phases: Vec<_> = analysis.phases.iter().filter(|p| p.relevant).collect();
    // A step, whether it is cut before its collective or after.
    let step = ["send+recv(1,2) allreduce", "allreduce send+recv(1,2)"];
    assert!(phases.iter().any(|p| p.weight >= 298 && step.contains(&p.structure.as_str())), "{phases:#?}");
    the_hashes_are_those_of_the_events(&analysis, &traces[0]);
}

/// Ranks that tell each other of something, how often is another number in every run, and then wait for one another.
#[test]
fn of_programs_with_other_messages_in_every_run_collectives_are_counted() {
    let folder = Folder::new();
    let program = |seed: u64, pairs: bool| {
        let mut program = Program::new(3);
        program.comms.push(vec![0, 1]);
        for step in 0..300u64 {
            program.all(|rank| Act::Work(4_000_000 + noise(seed, step * 3 + u64::from(rank))));
            for rank in 0..3u32 {
                for message in 0..noise(seed + 1, step * 3 + u64::from(rank)) % 4 {
                    let tag = message as i32;
                    program.act(rank, Act::Isend { to: (rank + 1) % 3, tag, bytes: 8 });
                    program.act((rank + 1) % 3, Act::Recv(vec![(rank, tag, 8, true)]));
                }
            }
            let comm = u32::from(pairs && step % 2 == 0);
            program.all(|rank| {
                if comm == 0 || rank < 2 { Act::Collective { comm, root: -1, bytes: 8 } } else { Act::Work(1) }
            });
        }
        program
    };
    let traces = |pairs| [1, 50].map(|seed| program(seed, pairs).write(&folder.path(&format!("{seed}{pairs}")), 500));
    let counting =
        |traces: &[Trace]| analyze(traces, &Settings { collectives: true, ..settings(1) }, &|_, _| {}).unwrap();
    let [all, pairs] = [false, true].map(traces);
    assert!(run(&all).verdict.refuses(), "they are counted only where that is allowed");
    let none = [1, 50].map(|seed| {
        let mut program = program(seed, false);
        program.acts.iter_mut().for_each(|acts| acts.retain(|act| !matches!(act, Act::Collective { .. })));
        program.write(&folder.path(&format!("{seed}none")), 500)
    });
    assert!(counting(&none).verdict.refuses(), "there are none");
    for (traces, collectives) in [(all, 300), (pairs, 150)] {
        let analysis = counting(&traces);
        assert!(analysis.verdict.pays && analysis.verdict.difference.is_none(), "{}", analysis.verdict.reason);
        assert!(analysis.verdict.reason.contains("others in every run"), "{}", analysis.verdict.reason);
        assert_eq!(analysis.order, Order::Collectives);
        assert_eq!(analysis.events, [collectives; 3], "those of two ranks are not counted");
        let ends: Vec<Vec<u64>> = analysis.pieces.iter().map(|of| of.iter().map(|piece| piece.end).collect()).collect();
        assert!(ends.iter().all(|of| *of == ends[0]), "a cut has as many on every rank");
        let sums = analysis.pieces.iter().map(|of| of.iter().map(|piece| piece.time.seconds()).sum::<f64>());
        let longest = sums.fold(0.0, f64::max);
        assert!((longest / analysis.run_time_s - 1.0).abs() < 1e-9, "{longest}");
    }
}

#[test]
fn steps_are_found_among_exchanges_that_all_look_alike() {
    let folder = Folder::new();
    let mut program = Program::new(2);
    for step in 0..200u64 {
        for exchange in 0..6 {
            program.all(|rank| Act::Work(if exchange == 2 { 3_000_000 } else { 1000 } + noise(u64::from(rank), step)));
            program.all(|rank| Act::Isend { to: 1 - rank, tag: 1, bytes: 800 });
            program.all(|rank| Act::Recv(vec![(1 - rank, 1, 800, false)]));
        }
    }
    let analysis = run(&[program.write(&folder.path("a"), 500)]);
    assert!(analysis.verdict.pays, "{}", analysis.verdict.reason);
    let marker = &analysis.markers[0];
    assert_eq!(marker.every % 6, 0, "{marker:?}");
    assert!(analysis.planned_s < 0.2 * analysis.run_time_s, "{}", analysis.planned_s);
}

#[test]
fn what_scatters_is_measured_less_well_rather_than_not_at_all() {
    let folder = Folder::new();
    let trace = stencil(2, 2000, |step| if noise(3, step) < 150 { 4_000_000 } else { 100_000 });
    let analysis = run(&[trace.write(&folder.path("a"), 500)]);
    assert!(analysis.verdict.pays, "{}", analysis.verdict.reason);
    assert!(analysis.verdict.reason.contains("its times scatter"), "{}", analysis.verdict.reason);
}

#[test]
fn a_rank_that_is_cut_off_is_refused() {
    let folder = Folder::new();
    let path = folder.path("a");
    stencil(2, 100, |_| 50_000).write(&path, 500);
    let file = path.join("rank-00001.pct");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 10]).unwrap();
    let error = analyze(&[Trace::open(&path).unwrap()], &settings(1), &|_, _| {}).unwrap_err();
    assert!(matches!(error, AnalyzeError::Cut { rank: 1, .. }), "{error}");
    assert!(error.is_input() && error.to_string().contains("let it finish"));
}

#[test]
fn threads_do_not_show() {
    let folder = Folder::new();
    let trace = stencil(5, 400, |step| 70_000 + noise(9, step)).write(&folder.path("a"), 500);
    let analyses: Vec<Analysis> =
        [1, 2, 5].map(|threads| analyze(std::slice::from_ref(&trace), &settings(threads), &|_, _| {}).unwrap()).into();
    for (number, analysis) in analyses.iter().enumerate() {
        analysis.save(&folder.path(&format!("{number}.phases"))).unwrap();
    }
    let bytes = |n: usize| std::fs::read(folder.path(&format!("{n}.phases"))).unwrap();
    assert!(bytes(0) == bytes(1) && bytes(1) == bytes(2));
}
