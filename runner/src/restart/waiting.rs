//! Which rank waits for whom, where nothing goes on, in words.
use phasecast_checkpoint::job::stand_file;
use phasecast_checkpoint::{ASKING, Stand, ask, told_signals};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How long ranks may take to answer where they stand.
const ANSWER: Duration = Duration::from_millis(500);
/// As many ranks are told of, and of ranks that one waits for.
const MOST: usize = 8;

/// Where ranks stand, as far as their hosts are on this machine, with these process ids, and answer; `out` is the folder of
/// their reports.
pub fn stands(hosts: &[u32], out: &Path, ranks: u32) -> Vec<Option<Stand>> {
    for pid in hosts.iter().filter(|&&pid| answers(pid)) {
        // One that has ended meanwhile does not answer.
        let _ = ask(*pid);
    }
    std::thread::sleep(ANSWER);
    let stand = |rank| serde_json::from_slice(&fs::read(out.join(stand_file(rank))).ok()?).ok();
    (0..ranks).map(stand).collect()
}

/// Whether a host is far enough to handle the signal that asks it: before, the signal would end it.
fn answers(pid: u32) -> bool {
    told_signals(&pid.to_string(), "SigCgt").is_some_and(|caught| caught >> (ASKING - 1) & 1 == 1)
}

/// What ranks have answered, each at the place of its number; nothing if none has.
pub fn words(stands: &[Option<Stand>]) -> String {
    if stands.iter().all(Option::is_none) {
        return String::new();
    }
    let mut told: Vec<String> = (0..stands.len()).take(MOST).map(|rank| of(rank, stands)).collect();
    if stands.len() > MOST {
        told.push(format!("and {} more ranks", stands.len() - MOST));
    }
    format!("; {}", told.join("; "))
}

fn of(rank: usize, stands: &[Option<Stand>]) -> String {
    let Some(stand) = &stands[rank] else { return format!("rank {rank} does not answer") };
    if stand.restarting {
        return format!("rank {rank} is about to restart");
    }
    if stand.procedure.is_empty() {
        return format!("rank {rank} computes");
    }
    // Of those who make a call together, the ones that are in another, or in none.
    let elsewhere =
        |other: usize| stands.get(other).and_then(Option::as_ref).is_none_or(|s| s.procedure != stand.procedure);
    let whom: Vec<usize> = stand.ranks.iter().map(|&other| other as usize).collect();
    let mut whom: Vec<usize> = whom.into_iter().filter(|&other| !stand.together || elsewhere(other)).collect();
    whom.sort_unstable();
    whom.dedup();
    let more = whom.len().saturating_sub(MOST);
    let mut names: Vec<String> = whom.iter().take(MOST).map(ToString::to_string).collect();
    names.extend((more > 0).then(|| format!("{more} more")));
    let (names, procedure) = (names.join(", "), &stand.procedure);
    match (stand.anyone, names.as_str()) {
        (true, _) => format!("rank {rank} waits in {procedure} for any rank"),
        (false, "") => format!("rank {rank} is in {procedure}"),
        (false, names) => format!("rank {rank} waits in {procedure} for rank {names}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stand(procedure: &str, ranks: &[u32], together: bool) -> Option<Stand> {
        Some(Stand { procedure: procedure.into(), ranks: ranks.to_vec(), together, ..Stand::default() })
    }

    #[test]
    fn who_waits_for_whom_is_told() {
        let ring = [stand("MPI_Recv", &[1], false), stand("MPI_Wait", &[0], false)];
        assert_eq!(words(&ring), "; rank 0 waits in MPI_Recv for rank 1; rank 1 waits in MPI_Wait for rank 0");
        let all = [0, 1, 2, 3];
        let missing = [stand("MPI_Bcast", &all, true), stand("", &[], false), None, stand("MPI_Bcast", &all, true)];
        let told = words(&missing);
        assert!(
            told.starts_with("; rank 0 waits in MPI_Bcast for rank 1, 2; rank 1 computes; rank 2 does not"),
            "{told}"
        );
        let together = [stand("MPI_Barrier", &[0, 1], true), stand("MPI_Barrier", &[0, 1], true)];
        assert_eq!(words(&together), "; rank 0 is in MPI_Barrier; rank 1 is in MPI_Barrier");
        let anyone = [Some(Stand { anyone: true, ..stand("MPI_Recv", &[], false).unwrap_or_default() })];
        assert_eq!(words(&anyone), "; rank 0 waits in MPI_Recv for any rank");
        assert_eq!(words(&[None, None]), "");
    }
}
