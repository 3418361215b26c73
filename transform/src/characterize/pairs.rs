//! What messages between two ranks cost. Rank 0 is the one whose calls are timed; the other does its part.
//!
//! Before each timed call the two come together by an empty message, then the timed side computes (calls no MPI) until
//! the other side's call has been made: so the receiver waits already, or the message has arrived already.
use super::clock::{compute, now};
use super::command::{Command, What};
use super::mpi::Mpi;
use super::{Data, LONGEST, TAG_DATA, TAG_READY};

/// So long the other side may take from the empty message to its next call, in ns.
const TOGETHER_NS: u64 = 20_000;
/// A send that has to wait for its receiver waits so long, in ns, and for four transfers more.
const LATE_NS: u64 = 400_000;
/// Of so many sends most decide whether a length is eager.
const VOTES: u64 = 5;

/// Rank 0 with its partner.
pub struct Pair<'a> {
    pub mpi: &'a Mpi,
    pub partner: u32,
    pub data: &'a mut Data,
}

/// What the timed calls work with: buffers of the length that is measured.
struct Side<'a> {
    mpi: &'a Mpi,
    partner: u32,
    send: &'a [u8],
    receive: &'a mut [u8],
}

impl Pair<'_> {
    /// Round trips in ns, the other side waiting in `MPI_Recv` for each message.
    pub fn round_trips(&mut self, bytes: u64, repetitions: u64) -> Vec<i64> {
        let Side { mpi, partner, send, receive } = self.begin(What::Return, bytes, repetitions, 0);
        let trip = |_| {
            compute(TOGETHER_NS / 4);
            let start = now();
            mpi.send(send, partner, TAG_DATA);
            mpi.receive(receive, partner, TAG_DATA);
            now() - start
        };
        (0..repetitions).map(trip).collect()
    }

    /// Times in `MPI_Send` in ns, the receiver waiting.
    pub fn sends(&mut self, bytes: u64, repetitions: u64) -> Vec<i64> {
        let Side { mpi, partner, send, .. } = self.begin(What::Receive, bytes, repetitions, 0);
        let call = |_| {
            mpi.receive(&mut [], partner, TAG_READY);
            compute(TOGETHER_NS);
            let start = now();
            mpi.send(send, partner, TAG_DATA);
            now() - start
        };
        (0..repetitions).map(call).collect()
    }

    /// Times in `MPI_Isend` and in its `MPI_Wait` in ns, the receiver waiting; in between rank 0 computes.
    pub fn isends(&mut self, bytes: u64, repetitions: u64, transfer_ns: u64) -> (Vec<i64>, Vec<i64>) {
        let Side { mpi, partner, send, .. } = self.begin(What::Receive, bytes, repetitions, 0);
        let call = |_| {
            mpi.receive(&mut [], partner, TAG_READY);
            compute(TOGETHER_NS);
            let start = now();
            let request = mpi.isend(send, partner, TAG_DATA);
            let posted = now();
            compute(TOGETHER_NS + 2 * transfer_ns);
            let waiting = now();
            mpi.wait(request);
            (posted - start, now() - waiting)
        };
        (0..repetitions).map(call).unzip()
    }

    /// Times in `MPI_Recv` in ns, the message there or its sender waiting.
    pub fn receives(&mut self, bytes: u64, repetitions: u64, transfer_ns: u64) -> Vec<i64> {
        let Side { mpi, partner, receive, .. } = self.begin(What::Send, bytes, repetitions, 0);
        let call = |_| {
            mpi.send(&[], partner, TAG_READY);
            compute(TOGETHER_NS + 2 * transfer_ns);
            let start = now();
            mpi.receive(receive, partner, TAG_DATA);
            now() - start
        };
        (0..repetitions).map(call).collect()
    }

    /// Times in `MPI_Irecv` and in its `MPI_Wait` in ns; the message is sent in between, while rank 0 computes.
    pub fn irecvs(&mut self, bytes: u64, repetitions: u64, transfer_ns: u64) -> (Vec<i64>, Vec<i64>) {
        let Side { mpi, partner, receive, .. } = self.begin(What::Send, bytes, repetitions, 0);
        let call = |_| {
            let start = now();
            let request = mpi.irecv(receive, partner, TAG_DATA);
            let posted = now();
            mpi.send(&[], partner, TAG_READY);
            compute(TOGETHER_NS + 2 * transfer_ns);
            let waiting = now();
            mpi.wait(request);
            (posted - start, now() - waiting)
        };
        (0..repetitions).map(call).unzip()
    }

    /// Times of an exchange in ns: both ranks post a receive and a send, compute for so long, and wait for both.
    pub fn exchanges(&mut self, bytes: u64, repetitions: u64, compute_ns: u64) -> Vec<i64> {
        let Side { mpi, partner, send, receive } = self.begin(What::Exchange, bytes, repetitions, compute_ns);
        let call = |_| {
            mpi.receive(&mut [], partner, TAG_READY);
            exchange(mpi, send, receive, partner, compute_ns)
        };
        (0..repetitions).map(call).collect()
    }

    /// The longest message that `MPI_Send` lets go while the receiver computes; none if all do. `transfer_ns` is that of
    /// a length.
    pub fn eager(&mut self, transfer_ns: &dyn Fn(u64) -> u64) -> Option<u64> {
        let waits = |pair: &mut Self, bytes: u64| {
            let late = LATE_NS + 4 * transfer_ns(bytes);
            let Side { mpi, partner, send, .. } = pair.begin(What::Late, bytes, VOTES, late);
            let call = |_: &u64| {
                mpi.receive(&mut [], partner, TAG_READY);
                let start = now();
                mpi.send(send, partner, TAG_DATA);
                now() - start > late as i64 / 2
            };
            (0..VOTES).filter(call).count() as u64 > VOTES / 2
        };
        if !waits(self, LONGEST) {
            return None;
        }
        let (mut goes, mut stays) = (0, LONGEST);
        while stays - goes > 1 {
            let middle = goes + (stays - goes) / 2;
            if waits(self, middle) { stays = middle } else { goes = middle }
        }
        Some(goes)
    }

    /// Tells the partner its part; what the timed calls work with.
    fn begin(&mut self, what: What, bytes: u64, repetitions: u64, compute_ns: u64) -> Side<'_> {
        Command { bytes, repetitions, compute_ns, ..Command::new(what) }.tell(self.mpi, self.partner);
        let Data { send, receive } = &mut *self.data;
        let bytes = bytes as usize;
        Side { mpi: self.mpi, partner: self.partner, send: &send[..bytes], receive: &mut receive[..bytes] }
    }
}

/// The partner's part.
pub fn follow(mpi: &Mpi, command: &Command, data: &mut Data) {
    let bytes = (command.bytes as usize).min(data.send.len());
    let (send, receive) = (&data.send[..bytes], &mut data.receive[..bytes]);
    for _ in 0..command.repetitions {
        match command.what {
            What::Return => {
                mpi.receive(receive, 0, TAG_DATA);
                mpi.send(send, 0, TAG_DATA);
            }
            What::Receive => {
                mpi.send(&[], 0, TAG_READY);
                mpi.receive(receive, 0, TAG_DATA);
            }
            What::Late => {
                mpi.send(&[], 0, TAG_READY);
                compute(command.compute_ns);
                mpi.receive(receive, 0, TAG_DATA);
            }
            What::Send => {
                mpi.receive(&mut [], 0, TAG_READY);
                mpi.send(send, 0, TAG_DATA);
            }
            _ => {
                mpi.send(&[], 0, TAG_READY);
                exchange(mpi, send, receive, 0, command.compute_ns);
            }
        }
    }
}

fn exchange(mpi: &Mpi, send: &[u8], receive: &mut [u8], partner: u32, compute_ns: u64) -> i64 {
    let start = now();
    let coming = mpi.irecv(receive, partner, TAG_DATA);
    let going = mpi.isend(send, partner, TAG_DATA);
    if compute_ns > 0 {
        compute(compute_ns);
    }
    mpi.wait(coming);
    mpi.wait(going);
    now() - start
}
