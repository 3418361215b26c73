//! What is under way when all ranks have stopped at a cut is taken out of the network: messages that no receive has
//! matched are received into memory (and handed out first, later), sends are completed, receives that match are
//! completed. At the end the counts of messages between each pair of ranks agree, or the cut is refused.
use crate::agreement;
use crate::calls::{MOST, lower};
use crate::meeting::{Ranks, Refusal};
use crate::packed::Packed;
use crate::requests::{Matched, Request, Requests, SavedStatus, Stage, What, empty_status};
use crate::session::{Session, session};
use crate::words::{read_status, write_status};
use phasecast_abi::{Abi, Kind, Status};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// A message that was taken out of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The program's handle of the communicator.
    pub comm: usize,
    /// Rank of the sender in it.
    pub source: i32,
    /// The tag.
    pub tag: i32,
    /// The data, as they are packed.
    pub data: Vec<u8>,
}

impl Message {
    /// The status of its receive.
    pub fn status(&self) -> Status {
        let (error, cancelled) = (0, false);
        Status { source: self.source, tag: self.tag, error, bytes: self.data.len() as u64, cancelled }
    }
}

/// Drained messages in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drained {
    list: Vec<Message>,
}

impl Drained {
    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn find(&self, abi: Abi, comm: usize, source: i32, tag: i32) -> Option<usize> {
        let layout = abi.layout();
        let comm = comm & layout.handle_mask as usize;
        self.list.iter().position(|m| {
            m.comm == comm
                && (source == layout.any_source || source == m.source)
                && (tag == layout.any_tag || tag == m.tag)
        })
    }

    /// The first message that a receive with these (in the program's form, which is `abi`'s) would match.
    pub fn look(&self, abi: Abi, comm: usize, source: i32, tag: i32) -> Option<Message> {
        self.find(abi, comm, source, tag).map(|at| self.list[at].clone())
    }

    /// The same, taken out.
    pub fn take(&mut self, abi: Abi, comm: usize, source: i32, tag: i32) -> Option<Message> {
        self.find(abi, comm, source, tag).map(|at| self.list.remove(at))
    }

    /// Adds one.
    pub fn push(&mut self, message: Message) {
        self.list.push(message);
    }
}

/// How long ranks wait at a cut for what is under way before they refuse it.
const PATIENCE: Duration = Duration::from_secs(20);
/// The same for what is done at once if all ranks have begun it, and never if one of them has not.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);

/// Drains the network. To be called by all ranks when each has stopped at its position. `refusal`: this rank knows already
/// why not. `patience`: how long it waits for the others to come. The program can go on however it ends; where that is an
/// error, the ranks need not stand here together any more.
///
/// # Errors
/// If something is under way that cannot be finished, some rank refuses, or one does not come.
pub fn drain(patience: Option<Duration>, refusal: Option<String>) -> Result<(), Refusal> {
    alone(|s| drained(s, patience, refusal))
}

/// Has the session while all other threads stand still, so that what the library calls back meanwhile has it too.
pub fn alone<T>(act: impl FnOnce(&mut Session) -> T) -> T {
    let mut s = session();
    let multiple = std::mem::replace(&mut s.multiple, false);
    let result = act(&mut s);
    s.multiple = multiple;
    result
}

fn drained(s: &mut Session, patience: Option<Duration>, refusal: Option<String>) -> Result<(), Refusal> {
    let (library, private, size) = (s.library, s.private, s.place.1 as usize);
    let ranks = Ranks::of(s);
    let refusal = refusal.or_else(|| s.unsaveable.first().cloned()).or_else(|| s.unready());
    ranks.meet(patience, refusal, || s.progress())?;
    ranks.end_meetings();
    // All ranks have stopped, so all sends have been made.
    let mut expected = vec![0u64; size];
    let word = library.constant("MPI_UNSIGNED_LONG").unwrap_or(0);
    lower!(library, MPI_Alltoall(s.traffic.sent.as_ptr(), 1, word, expected.as_mut_ptr(), 1, word, private));
    let mut reason = None;
    let balanced = Instant::now();
    while reason.is_none() && s.traffic.received.iter().zip(&expected).any(|(got, sent)| got < sent) {
        if let Err(failure) = s.progress() {
            reason = Some(failure);
        } else if balanced.elapsed() > PATIENCE {
            let missing: Vec<String> = (0..size)
                .filter(|&from| s.traffic.received[from] < expected[from])
                .map(|from| format!("{} from rank {from}", expected[from] - s.traffic.received[from]))
                .collect();
            reason = Some(format!("messages are under way that cannot be received: {}", missing.join(", ")));
        }
        std::thread::yield_now();
    }
    if reason.is_none() && s.traffic.received != expected {
        reason = Some(
            "more messages were received than sent: the program communicates in a way that is not followed".into(),
        );
    }
    if reason.is_none() {
        reason = s.finish_requests().err();
    }
    reason = reason.or_else(|| s.one_sided.obstacle()).or_else(|| s.file_obstacle());
    ranks.agree(reason)?;
    agreement::reach(s);
    s.give_up_locks();
    Ok(())
}

/// Takes up again, after a cut that was drained, what the drain has ended for the library.
pub fn go_on() {
    session().take_locks_again();
}

impl Session {
    /// Takes in what has come: completes posted receives that have matched, receives what is matched or what nobody has asked
    /// for.
    ///
    /// # Errors
    /// If what has come cannot be received.
    pub fn progress(&mut self) -> Result<(), String> {
        self.test_pending();
        // Senders of large messages wait for these.
        let held: Vec<(u32, usize)> =
            self.requests.messages.iter().filter(|(_, m)| m.taken.is_none()).map(|(&n, m)| (n, m.comm)).collect();
        for (number, comm) in held {
            self.take_held(number, comm)?;
        }
        let comms: Vec<usize> = self.comms.keys().copied().collect();
        for comm in comms {
            // One that was freed while requests are under way on it cannot be probed, nor one in the making.
            if self.down_handle(Kind::Communicator, comm) == 0 || self.is_in_the_making(comm) {
                continue;
            }
            while let Some(message) = self.improbe(comm)? {
                let world = self.world_rank(comm, message.source);
                if let Some(world) = world {
                    self.traffic.received[world] += 1;
                }
                self.drained.push(message);
            }
        }
        Ok(())
    }

    fn improbe(&mut self, comm: usize) -> Result<Option<Message>, String> {
        let below = self.down_handle(Kind::Communicator, comm);
        let library = self.library;
        let layout = library.abi.layout();
        let (mut flag, mut message, mut status) = (0i32, 0usize, [0u64; 8]);
        let at = status.as_mut_ptr();
        let (any, tag) = (layout.any_source, layout.any_tag);
        let rc = lower!(library, MPI_Improbe(any, tag, below, &raw mut flag, &raw mut message, at));
        if rc != 0 {
            return Err(format!("MPI_Improbe failed with {rc}"));
        }
        if flag == 0 {
            return Ok(None);
        }
        self.receive_message(comm, &mut message, at as usize).map(Some)
    }

    /// Receives a matched message into memory.
    fn receive_message(&mut self, comm: usize, message: &mut usize, status: usize) -> Result<Message, String> {
        let library = self.library;
        // SAFETY: filled in by the probe.
        let found = unsafe { read_status(library.abi, status) };
        let mut data = vec![0u8; found.bytes as usize];
        let length = data.len();
        let (packed, mut got) = (Packed::of(library, length), [0u64; 8]);
        let (count, datatype) = (packed.count, packed.datatype);
        let rc = lower!(library, MPI_Mrecv(data.as_mut_ptr(), count, datatype, &raw mut *message, got.as_mut_ptr()));
        if rc != 0 {
            return Err(format!("a message of {length} bytes that is under way cannot be received (MPI_Mrecv: {rc})"));
        }
        Ok(Message { comm, source: found.source, tag: found.tag, data })
    }

    /// Completes receives, sends and constructors of communicators that are done: messages may have come on these.
    fn test_pending(&mut self) {
        let pending: Vec<u32> = self
            .requests
            .all()
            .filter(|(_, r)| {
                r.stage == Stage::Active && matches!(r.what, What::Recv | What::Exchange | What::Send | What::NewComm)
            })
            .map(|(number, _)| number)
            .collect();
        for number in pending {
            self.test_one(number);
        }
    }

    /// Why nothing is to be waited for: a send that has been started completes only when the program says that all of its
    /// partitions are ready.
    fn unready(&self) -> Option<String> {
        let unready = |request: &Request| {
            let partitions = self.shapes[usize::from(request.index)].point.partitions;
            request.what == What::Send
                && request.stage == Stage::Active
                && partitions.is_some_and(|at| u64::from(request.ready) < request.args[at] as u64)
        };
        let any = self.requests.all().any(|(_, request)| unready(request));
        any.then(|| "a send is under way whose partitions are not all ready".into())
    }

    /// Tests a request, and notes its status if it is done.
    fn test_one(&mut self, number: u32) -> bool {
        let library = self.library;
        let Some(object) = self.objects.get(Kind::Request, number) else { return true };
        let (mut handle, mut flag, mut status) = (object.lower, 0i32, [0u64; 8]);
        let at = status.as_mut_ptr();
        let code = lower!(library, MPI_Test(&raw mut handle, &raw mut flag, at));
        if flag == 0 && code == 0 {
            return false;
        }
        self.completed(number, code, handle, at as usize);
        true
    }

    /// Notes that the library has completed a request, with this code and status: it is handed out later. `handle` is what the
    /// library has made of its own.
    pub fn completed(&mut self, number: u32, code: i32, mut handle: usize, at: usize) {
        let library = self.library;
        let Some(request) = self.requests.get(number) else { return };
        let (what, counts, comm, persistent) = (request.what, request.counts, request.comm, request.persistent);
        let counted = request.counted;
        let saved = if matches!(what, What::Recv | What::Exchange) {
            // SAFETY: filled in by the test.
            let status = unsafe { read_status(library.abi, at) };
            let source = self.named_sender(request).unwrap_or(status.source);
            if counts
                && !status.cancelled
                && !counted
                && let Some(world) = self.world_rank(comm, source)
            {
                self.traffic.received[world] += 1;
            }
            SavedStatus { error: library.abi.error_class_to_neutral(code), ..SavedStatus::from(status) }
        } else if what == What::Other {
            // SAFETY: as above.
            SavedStatus::from(unsafe { read_status(library.abi, at) })
        } else {
            // SAFETY: as above.
            self.may_be_unsent(number, &unsafe { read_status(library.abi, at) });
            empty_status()
        };
        if what == What::NewComm {
            self.comm_is_made(number);
        }
        if !persistent {
            self.objects.set_lower(Kind::Request, number, library.request_null);
        }
        if let Some(request) = self.requests.get_mut(number) {
            request.counted = true;
        }
        self.requests.set_stage(number, Stage::Done(saved));
        if self.objects.get(Kind::Request, number).is_some_and(|object| object.references == 0) {
            if persistent {
                lower!(library, MPI_Request_free(&raw mut handle));
            }
            self.finish_request(number);
        }
    }

    /// The requests as an image has them, once the network is drained: of a send and receive in one, what was sent is with
    /// its receiver, and a receive is left.
    pub fn requests_of_image(&self) -> Requests {
        let mut requests = self.requests.clone();
        for (number, request) in self.requests.all() {
            if request.what == What::Exchange
                && request.stage == Stage::Active
                && let Some(receive) = self.as_receive(request)
            {
                requests.put(number, receive);
            }
        }
        requests
    }

    fn as_receive(&self, request: &Request) -> Option<Request> {
        let shape = &self.shapes[usize::from(request.index)];
        let side = shape.procedure.recv_sides().next()?;
        let name = if shape.procedure.name.ends_with("_c") { "MPI_Irecv_c" } else { "MPI_Irecv" };
        let places = [
            usize::from(side.buffer),
            usize::from(side.count?),
            usize::from(side.datatype?),
            shape.point.source?,
            shape.point.tag?,
            shape.point.comm,
            shape.point.request?,
        ];
        let mut args = [0; MOST];
        for (arg, place) in args.iter_mut().zip(places) {
            *arg = request.args[place];
        }
        Some(Request { what: What::Recv, index: crate::calls::index(name) as u16, args, ..request.clone() })
    }

    /// Finishes what is still under way once all messages are in: sends and collectives.
    fn finish_requests(&mut self) -> Result<(), String> {
        // All ranks stand here: what they have all begun is soon done.
        let started = Instant::now();
        loop {
            let open: Vec<(u32, What)> = self
                .requests
                .all()
                .filter(|(_, r)| r.stage == Stage::Active && (!r.receives() || r.counted))
                .map(|(number, r)| (number, r.what))
                .collect();
            let mut left = None;
            for (number, what) in open {
                if !self.test_one(number) {
                    left = Some(what);
                }
            }
            let Some(what) = left else { break };
            let patience = if what == What::Send { PATIENCE } else { SHORT_PATIENCE };
            if started.elapsed() > patience {
                return Err(match what {
                    What::Send | What::Exchange => "a send is under way that does not complete",
                    What::Collective => "a nonblocking collective is under way that not all ranks have started",
                    What::NewComm => "a communicator is being made that not all ranks have asked for",
                    What::Recv | What::Other => "nonblocking input, output or one-sided communication is under way",
                }
                .into());
            }
            self.progress()?;
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Receives a matched message that the program holds.
    fn take_held(&mut self, number: u32, comm: usize) -> Result<(), String> {
        let Some(known) = self.requests.messages.get(&number).and_then(|m| m.found) else {
            return Err("a matched message is held whose size is not known".into());
        };
        let Some(object) = self.objects.get(Kind::Message, number) else { return Ok(()) };
        let mut handle = object.lower;
        let mut raw = [0u64; 8];
        // SAFETY: there is room for a status of any interface.
        unsafe { write_status(self.library.abi, raw.as_mut_ptr() as usize, &known.into()) };
        let message = self.receive_message(comm, &mut handle, raw.as_mut_ptr() as usize)?;
        // The library may give its handle to the next one.
        self.objects.unset_lower(Kind::Message, number);
        self.requests.messages.insert(number, Matched { comm, taken: Some(message), found: Some(known) });
        Ok(())
    }
}
