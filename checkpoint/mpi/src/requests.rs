//! Requests and matched messages: what each is of, so that it can be completed, counted, and at a cut finished or made
//! again.
use crate::calls::MOST;
use phasecast_abi::Status;
use serde::{Deserialize, Serialize};

/// What a request is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A send.
    Send,
    /// A receive.
    Recv,
    /// A send and a receive in one.
    Exchange,
    /// A collective.
    Collective,
    /// A communicator that is being made.
    NewComm,
    /// One-sided communication, input or output, or the program's own.
    Other,
}

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Stage {
    /// A persistent one that is not started.
    Inactive,
    /// Under way in the library.
    Active,
    /// Done without the library, or before a cut: the status (in neutral form) waits to be asked for.
    Done(SavedStatus),
}

/// A status in neutral form that can be saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SavedStatus {
    /// Rank of the sender.
    pub source: i32,
    /// Tag.
    pub tag: i32,
    /// Error class.
    pub error: i32,
    /// Bytes received.
    pub bytes: u64,
    /// Whether it was cancelled.
    pub cancelled: bool,
}

impl From<Status> for SavedStatus {
    fn from(s: Status) -> SavedStatus {
        SavedStatus { source: s.source, tag: s.tag, error: s.error, bytes: s.bytes, cancelled: s.cancelled }
    }
}

impl From<SavedStatus> for Status {
    fn from(s: SavedStatus) -> Status {
        Status { source: s.source, tag: s.tag, error: s.error, bytes: s.bytes, cancelled: s.cancelled }
    }
}

/// A request of the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What it is of.
    pub what: What,
    /// Whether it can be started again.
    pub persistent: bool,
    /// How far it is.
    pub stage: Stage,
    /// The procedure that made it, as an index in the table of procedures of this build.
    pub index: u16,
    /// Its arguments, in the program's form.
    pub args: [usize; MOST],
    /// The program's handle of the communicator.
    pub comm: usize,
    /// A receive from somebody (not from `MPI_PROC_NULL`): an event when it completes.
    pub counts: bool,
    /// The message is in the counts of traffic already.
    pub counted: bool,
    /// Objects that it needs.
    pub needs: Needs,
}

/// The datatype and the communicator that a request needs until it is complete, by slot of the kind and number.
pub type Needs = [Option<(u8, u32)>; 2];

/// A matched message that the program holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matched {
    /// The program's handle of the communicator.
    pub comm: usize,
    /// The status of the probe that found it.
    pub found: Option<SavedStatus>,
    /// The message itself, once it was taken out of the network at a cut.
    pub taken: Option<crate::drain::Message>,
}

/// All requests, by number of their virtual object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    list: Vec<Option<Request>>,
    /// How many are [`Stage::Done`].
    pub done: usize,
    /// Matched messages by number of their virtual object.
    pub messages: std::collections::BTreeMap<u32, Matched>,
}

impl Requests {
    /// Notes a request under a number.
    pub fn put(&mut self, number: u32, request: Request) {
        let at = number as usize;
        if self.list.len() <= at {
            self.list.resize(at + 1, None);
        }
        if matches!(request.stage, Stage::Done(_)) {
            self.done += 1;
        }
        self.list[at] = Some(request);
    }

    /// A request.
    #[inline(always)]
    pub fn get(&self, number: u32) -> Option<&Request> {
        self.list.get(number as usize)?.as_ref()
    }

    /// A request, to change it; not its stage.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Request> {
        self.list.get_mut(number as usize)?.as_mut()
    }

    /// Changes how far a request is.
    pub fn set_stage(&mut self, number: u32, stage: Stage) {
        let Some(request) = self.list.get_mut(number as usize).and_then(Option::as_mut) else { return };
        let was = matches!(request.stage, Stage::Done(_));
        let is = matches!(stage, Stage::Done(_));
        request.stage = stage;
        self.done = self.done + usize::from(is) - usize::from(was);
    }

    /// Removes a request; yields the objects that it needed.
    pub fn remove(&mut self, number: u32) -> Option<Needs> {
        let place = self.list.get_mut(number as usize)?;
        let request = place.as_ref()?;
        let (needs, done) = (request.needs, matches!(request.stage, Stage::Done(_)));
        *place = None;
        self.done -= usize::from(done);
        Some(needs)
    }

    /// Translates the indices of procedures.
    pub fn renumber(&mut self, now: impl Fn(u16) -> u16) {
        for request in self.list.iter_mut().flatten() {
            request.index = now(request.index);
        }
    }

    /// All requests with their numbers.
    pub fn all(&self) -> impl Iterator<Item = (u32, &Request)> {
        self.list.iter().enumerate().filter_map(|(number, request)| Some((number as u32, request.as_ref()?)))
    }
}
