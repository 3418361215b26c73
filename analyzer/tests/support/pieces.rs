//! Analyses made of pieces, for tests of what is estimated from them.
use phasecast_analyzer::{Analysis, Method, Phase, Piece, Verdict};
use phasecast_trace::{Nanos, PhaseId};

/// An analysis of these pieces (phase and ns, for each rank); with a second base run that was `again` times as slow.
pub fn analysis(ranks: &[Vec<(u32, u64)>], again: Option<f64>) -> Analysis {
    let phases = ranks.iter().flatten().map(|p| p.0 + 1).max().unwrap_or(0);
    let weight = |id: u32| ranks.iter().map(|r| r.iter().filter(|p| p.0 == id).count() as u64).max().unwrap_or(0);
    let phase = |id: u32| Phase {
        id: PhaseId(id),
        weight: weight(id),
        relevant: true,
        one_off: weight(id) == 1,
        time_s: 0.0,
        sd_s: 0.0,
        share: 0.0,
        events: 1,
        structure: String::new(),
        hashes: vec![],
        planned: vec![],
    };
    let pieces = |list: &Vec<(u32, u64)>| {
        let piece = |(at, &(id, ns)): (usize, &(u32, u64))| Piece {
            phase: PhaseId(id),
            end: at as u64 + 1,
            time: Nanos(ns),
            again: again.map(|factor| Nanos((ns as f64 * factor) as u64)),
        };
        list.iter().enumerate().map(piece).collect()
    };
    Analysis {
        method: Method::Marker,
        program: String::new(),
        args: vec![],
        mpi: String::new(),
        ranks: ranks.len() as u32,
        events: ranks.iter().map(|r| r.len() as u64).collect(),
        run_time_s: 1.0,
        base_runs_s: vec![1.0],
        markers: Vec::new(),
        volume_classes: vec![],
        order: Default::default(),
        unmatched_sends: 0,
        unmatched_receives: 0,
        phases: (0..phases).map(phase).collect(),
        explained_s: 0.0,
        planned_s: 0.0,
        coverage: 0.0,
        residual_s: 0.0,
        verdict: Verdict { pays: true, reason: String::new(), difference: None },
        pieces: ranks.iter().map(pieces).collect(),
    }
}
