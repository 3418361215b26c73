//! What all ranks agree on at a cut that is saved, as all of them must make it again together: communicators, persistent
//! collectives, and the order of all.
use crate::calls::lower;
use crate::order;
use crate::requests::What;
use crate::session::{Session, session};
use std::collections::BTreeSet;

/// A persistent collective: the number of its communicator, and which one of that it is.
type Key = [u64; 2];

/// Agrees on all of it. Called by all ranks.
pub fn reach(s: &mut Session) {
    let mine: Vec<u64> = s.needed_comms().into_iter().collect();
    let needed: BTreeSet<u64> = of_all(s, &mine).into_iter().collect();
    s.keep_comms(&needed);
    agree_on_persistent(s);
    order::agree(s);
}

/// The numbers of all ranks, one behind the other. Called by all ranks.
pub fn told_by_all(mine: &[u64]) -> Vec<u64> {
    of_all(&session(), mine)
}

/// As [`told_by_all`].
pub fn of_all(s: &Session, mine: &[u64]) -> Vec<u64> {
    let library = s.library;
    let (private, size) = (s.private, s.place.1 as usize);
    let word = library.constant("MPI_UNSIGNED_LONG").unwrap_or(0);
    let int = library.constant("MPI_INT").unwrap_or(0);
    let (count, mut counts) = (mine.len() as i32, vec![0i32; size]);
    lower!(library, MPI_Allgather(&raw const count, 1, int, counts.as_mut_ptr(), 1, int, private));
    let displacements: Vec<i32> = counts.iter().scan(0, |sum, &n| Some(std::mem::replace(sum, *sum + n))).collect();
    let mut all = vec![0u64; counts.iter().map(|&n| n as usize).sum()];
    if !all.is_empty() {
        let (to, from) = (all.as_mut_ptr(), mine.as_ptr());
        lower!(library, MPI_Allgatherv(from, count, word, to, counts.as_ptr(), displacements.as_ptr(), word, private));
    }
    all
}

/// Finds the persistent collectives that some rank has freed: if the others made them again, the library would take the next
/// of that communicator for them.
fn agree_on_persistent(s: &mut Session) {
    let held = s.requests.all().filter(|(_, r)| r.persistent && r.what == What::Collective);
    let mine: Vec<(u32, Key)> =
        held.filter_map(|(number, r)| Some((number, [s.comms.get(&r.comm)?.number, r.ordinal]))).collect();
    let flat: Vec<u64> = mine.iter().flat_map(|(_, key)| *key).collect();
    let keys: BTreeSet<Key> = of_all(s, &flat).chunks_exact(2).map(|key| [key[0], key[1]]).collect();
    if keys.is_empty() {
        return;
    }
    // A rank that has yet to come to it will make it.
    let to_come = |&[comm, ordinal]: &Key| s.comms.values().any(|c| c.number == comm && c.persistent < ordinal);
    let here = |key: &Key| i32::from(mine.iter().any(|(_, own)| own == key) || to_come(key));
    let (given, mut sum): (Vec<i32>, _) = (keys.iter().map(here).collect(), vec![0i32; keys.len()]);
    let library = s.library;
    let [int, plus] = ["MPI_INT", "MPI_SUM"].map(|name| library.constant(name).unwrap_or(0));
    lower!(library, MPI_Allreduce(given.as_ptr(), sum.as_mut_ptr(), keys.len() as i32, int, plus, s.private));
    for (key, ranks) in keys.iter().zip(sum) {
        for (number, _) in mine.iter().filter(|(_, own)| own == key) {
            let Some(request) = s.requests.get_mut(*number) else { continue };
            let comm = s.comms.get(&request.comm);
            request.over = comm.is_some_and(|comm| (ranks as usize) < comm.processes());
        }
    }
}
