//! What the hosts of all ranks say to each other, on a communicator of their own.
//!
//! At a cut they meet: whoever has waited too long for the others leaves, and the program goes on. As a rank that comes later
//! must hear of that, whoever leaves has begun both steps of the meeting, the barrier and the vote; the library ends them
//! in the midst of the program, when the others come.
use crate::calls::lower;
use crate::drain::alone;
use crate::library::Library;
use crate::session::{Session, session};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Why a cut is not saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// This rank has a reason.
    Own(String),
    /// The rank of this number has one.
    Of(i32),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Own(reason) => f.write_str(reason),
            Refusal::Of(rank) => write!(f, "rank {rank} refuses it"),
        }
    }
}

/// Meetings that this rank has left: the requests of barrier and vote.
static LEFT: Mutex<Vec<[usize; 2]>> = Mutex::new(Vec::new());

/// A vote, which the library reads and writes: whether this rank refuses, and which one does (1 and its rank, or 0).
struct Vote {
    given: [i32; 2],
    worst: [i32; 2],
}

/// The ranks as one of them sees them.
#[derive(Clone, Copy)]
pub struct Ranks {
    /// The library.
    pub library: &'static Library,
    /// The hosts' own communicator.
    pub private: usize,
    own: i32,
}

impl Ranks {
    /// Those of the session.
    pub fn of(s: &Session) -> Ranks {
        Ranks { library: s.library, private: s.private, own: s.place.0 }
    }

    /// Meets the others at a cut, does something `meanwhile` until they are there, and agrees with them whether it can be
    /// saved. None waits for the others for more than `patience`, if there is one.
    ///
    /// # Errors
    /// If some rank has a reason to refuse it, or has left.
    pub fn meet(
        self,
        patience: Option<Duration>,
        mut refusal: Option<String>,
        mut meanwhile: impl FnMut() -> Result<(), String>,
    ) -> Result<(), Refusal> {
        let (begun, mut barrier) = (Instant::now(), 0usize);
        lower!(self.library, MPI_Ibarrier(self.private, &raw mut barrier));
        loop {
            // Once at least: what this rank holds is taken in here.
            if let Err(failure) = meanwhile() {
                refusal.get_or_insert(failure);
            }
            if self.done(&mut barrier) {
                return self.agree(refusal);
            }
            if let Some(patience) = patience.filter(|&patience| begun.elapsed() > patience) {
                let waited = patience.as_secs_f64();
                let reason = refusal.unwrap_or_else(|| {
                    format!("not all ranks come to it within {waited:.0} s: one may wait for what another does only after it")
                });
                // The library has it for as long as it likes.
                let vote = self.vote(Box::leak(Box::new(Vote::new(true, self.own))));
                left().push([barrier, vote]);
                return Err(Refusal::Own(reason));
            }
            std::thread::yield_now();
        }
    }

    /// Waits for the ends of the meetings that this rank has left: all ranks come to each, sooner or later.
    pub fn end_meetings(self) {
        for mut request in std::mem::take(&mut *left()).into_iter().flatten() {
            self.until_done(&mut request, || ());
        }
    }

    /// Begins a vote; yields its request.
    fn vote(self, vote: &mut Vote) -> usize {
        let mut request = 0usize;
        let pair = self.library.constant("MPI_2INT").unwrap_or(0);
        let most = self.library.constant("MPI_MAXLOC").unwrap_or(0);
        let (from, to) = (vote.given.as_ptr(), vote.worst.as_mut_ptr());
        lower!(self.library, MPI_Iallreduce(from, to, 1, pair, most, self.private, &raw mut request));
        request
    }

    /// Whether no rank has a reason to refuse the cut. Called by all.
    ///
    /// # Errors
    /// If one has.
    pub fn agree(self, reason: Option<String>) -> Result<(), Refusal> {
        let mut vote = Vote::new(reason.is_some(), self.own);
        let mut request = self.vote(&mut vote);
        self.until_done(&mut request, || ());
        match (reason, vote.worst) {
            (Some(reason), _) => Err(Refusal::Own(reason)),
            (None, [0, _]) => Ok(()),
            (None, [_, rank]) => Err(Refusal::Of(rank)),
        }
    }

    fn done(self, request: &mut usize) -> bool {
        let mut flag = 0i32;
        lower!(self.library, MPI_Test(&raw mut *request, &raw mut flag, self.library.abi.layout().status_ignore));
        flag != 0
    }

    /// Waits for a request of the hosts' own, and does something again and again until it is done.
    fn until_done(self, request: &mut usize, mut meanwhile: impl FnMut()) {
        loop {
            meanwhile();
            if self.done(request) {
                return;
            }
            std::thread::yield_now();
        }
    }
}

impl Vote {
    fn new(refuses: bool, rank: i32) -> Vote {
        let given = [i32::from(refuses), rank];
        Vote { given, worst: given }
    }
}

fn left() -> MutexGuard<'static, Vec<[usize; 2]>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ranks() -> Ranks {
    Ranks::of(&session())
}

/// Refuses a cut while other threads go on: takes part in the meeting, and drains nothing. For the patience see
/// [`drain`](crate::drain()).
pub fn refuse(patience: Option<Duration>, reason: String) -> Refusal {
    let given = ranks().meet(patience, Some(reason.clone()), || Ok(()));
    given.err().unwrap_or(Refusal::Own(reason))
}

/// Waits for the ends of meetings at cuts that this rank has left. To be called by all before the program's last call.
pub fn end_meetings() {
    ranks().end_meetings();
}

/// Waits until all ranks are here.
pub fn barrier() {
    let ranks = ranks();
    lower!(ranks.library, MPI_Barrier(ranks.private));
}

/// A rank that waits here for so long takes in what comes: a sender may wait for that.
const UNDISTURBED: Duration = Duration::from_millis(1);

/// What the first rank has decided. To be called where all ranks come to, in the midst of the program too, if no other thread
/// of it is in MPI: messages that are under way to a rank that waits here are taken out of the network.
pub fn decided(here: u64) -> u64 {
    let ranks = ranks();
    let word = ranks.library.constant("MPI_UNSIGNED_LONG").unwrap_or(0);
    let (mut number, mut request) = (here, 0usize);
    lower!(ranks.library, MPI_Ibcast(&raw mut number, 1, word, 0, ranks.private, &raw mut request));
    let begun = Instant::now();
    ranks.until_done(&mut request, || {
        if begun.elapsed() > UNDISTURBED {
            // What fails here fails again when the rank stops.
            let _ = alone(Session::progress);
        }
    });
    number
}

/// Whether this holds on any rank. Called by all.
pub fn anywhere(here: bool) -> bool {
    ranks().agree(here.then(String::new)).is_err()
}
