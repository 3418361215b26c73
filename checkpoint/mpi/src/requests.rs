//! Requests and matched messages: what each is of, so that it can be completed, counted, and at a cut finished or made
//! again.
use crate::calls::MOST;
use crate::objects::{KINDS, slot};
use crate::session::Session;
use crate::shape::Shape;
use crate::words::Scratch;
use phasecast_abi::{Kind, Status};
use serde::{Deserialize, Serialize};

/// What a request is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    #[default]
    Other,
}

/// How far a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Stage {
    /// A persistent one that is not started.
    Inactive,
    /// Under way in the library.
    Active,
    /// Done without the library, or before a cut: the status (in neutral form) waits to be asked for.
    Done(SavedStatus),
    /// No request: the place is free.
    #[default]
    Gone,
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// When it was made, among all requests, if it is persistent.
    pub made: u64,
    /// Which of the persistent collectives on its communicator it is, from 1, if it is one.
    pub ordinal: u64,
    /// A persistent collective that some rank has freed by this cut: none starts it any more, nor makes it again.
    pub over: bool,
    /// When it was posted or last started, among all requests: messages that match several receives go by that.
    pub started: u64,
    /// The program's handle of the communicator.
    pub comm: usize,
    /// A receive from somebody (not from `MPI_PROC_NULL`): an event when it completes.
    pub counts: bool,
    /// The message is in the counts of traffic already.
    pub counted: bool,
    /// Objects that it needs.
    pub needs: Needs,
    /// How many partitions of its message are ready: all or none at a cut.
    #[serde(skip)]
    pub ready: u32,
    /// A send that the program has cancelled: it may turn out to be none. At a cut it has.
    #[serde(skip)]
    pub cancelling: bool,
}

impl Request {
    /// Whether a message is waited for that may still have to be sent.
    pub fn receives(&self) -> bool {
        self.what == What::Recv || self.what == What::Exchange && self.counts
    }
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
    list: Vec<Request>,
    /// How often requests were made or started.
    turns: u64,
    /// How many are [`Stage::Done`].
    pub done: usize,
    /// What persistent collectives have handles of, by their number: slots of the kinds and numbers.
    besides: std::collections::BTreeMap<u32, Vec<(u8, u32)>>,
    /// Matched messages by number of their virtual object.
    pub messages: std::collections::BTreeMap<u32, Matched>,
}

impl Requests {
    /// Notes a request under a number.
    pub fn put(&mut self, number: u32, request: Request) {
        let stage = request.stage;
        *self.place(number) = Request { stage: Stage::Active, ..request };
        self.set_stage(number, stage);
    }

    /// The place of a new request, to be filled in, as a whole one is much to move: with one that is not done.
    #[inline(always)]
    pub fn place(&mut self, number: u32) -> &mut Request {
        let at = number as usize;
        if self.list.len() <= at {
            self.list.resize(at + 1, Request::default());
        }
        &mut self.list[at]
    }

    /// The next turn: see [`Request::made`].
    #[inline(always)]
    pub fn turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    /// A request.
    #[inline(always)]
    pub fn get(&self, number: u32) -> Option<&Request> {
        self.list.get(number as usize).filter(|request| request.stage != Stage::Gone)
    }

    /// A request, to change it; not its stage.
    #[inline(always)]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Request> {
        self.list.get_mut(number as usize).filter(|request| request.stage != Stage::Gone)
    }

    /// Changes how far a request is.
    pub fn set_stage(&mut self, number: u32, stage: Stage) {
        let Some(request) = self.get_mut(number) else { return };
        let was = matches!(request.stage, Stage::Done(_));
        let is = matches!(stage, Stage::Done(_));
        request.stage = stage;
        self.done = self.done + usize::from(is) - usize::from(was);
    }

    /// A persistent request has been started.
    pub fn start(&mut self, number: u32) {
        let turn = self.turn();
        self.set_stage(number, Stage::Active);
        if let Some(request) = self.get_mut(number) {
            request.started = turn;
            request.ready = 0;
            request.cancelling = false;
        }
    }

    /// Removes a request; yields the objects that it needed.
    #[inline(always)]
    pub fn remove(&mut self, number: u32) -> Option<Needs> {
        let request = self.get_mut(number)?;
        let (needs, done) = (request.needs, matches!(request.stage, Stage::Done(_)));
        request.stage = Stage::Gone;
        self.done -= usize::from(done);
        Some(needs)
    }

    /// Translates the indices of procedures.
    pub fn renumber(&mut self, now: impl Fn(u16) -> u16) {
        for request in self.list.iter_mut().filter(|request| request.stage != Stage::Gone) {
            request.index = now(request.index);
        }
    }

    /// All requests with their numbers.
    pub fn all(&self) -> impl Iterator<Item = (u32, &Request)> {
        (0..).zip(&self.list).filter(|(_, request)| request.stage != Stage::Gone)
    }
}

impl Session {
    /// The datatype and communicator that a request needs until it is complete.
    #[inline(always)]
    pub fn request_needs(&mut self, shape: &Shape, arg: impl Fn(usize) -> usize) -> Needs {
        let mut needs = [None, None];
        let places = shape.point.needs.iter().zip([Kind::Datatype, Kind::Communicator]);
        for (need, (at, kind)) in needs.iter_mut().zip(places) {
            let Some(at) = *at else { continue };
            if let Some(number) = self.objects.decode(kind, arg(at)) {
                if let Some(object) = self.objects.get_mut(kind, number) {
                    object.users += 1;
                }
                *need = Some((slot(kind) as u8, number));
            }
        }
        needs
    }

    /// Keeps the memory of translated arguments as long as a request of this procedure is there, if the library reads it.
    pub fn keep(&mut self, shape: &Shape, number: u32, scratch: &mut Scratch) {
        if shape.lasting {
            self.kept.push((number, scratch.lasting()));
        }
    }

    #[cold]
    #[inline(never)]
    fn keep_no_more(&mut self, number: u32) {
        self.kept.retain(|(of, _)| *of != number);
    }

    /// A persistent collective needs these objects, by slot of the kind and number, until it is freed: of what a program may
    /// free before that it has handles of its own. (Open MPI 5 starts it with types that are gone.)
    pub fn needs_besides(&mut self, number: u32, mut objects: Vec<(u8, u32)>) {
        objects.retain(|&(kind, index)| {
            let kind = KINDS[usize::from(kind)];
            let object = self.objects.get_mut(kind, index);
            let object = object.filter(|_| matches!(kind, Kind::Datatype | Kind::Operation | Kind::Info));
            object.map(|object| object.references += 1).is_some()
        });
        self.requests.besides.insert(number, objects);
    }

    #[cold]
    #[inline(never)]
    fn needs_no_more(&mut self, number: u32) {
        for (kind, index) in self.requests.besides.remove(&number).unwrap_or_default() {
            self.gives_back(KINDS[usize::from(kind)], index);
        }
    }

    /// A request is complete and gone.
    #[inline(always)]
    pub fn finish_request(&mut self, number: u32) {
        let [datatype, comm] = self.requests.remove(number).unwrap_or_default();
        let mut unused = |need: Option<(u8, u32)>| {
            if let Some((kind, index)) = need {
                self.unused(KINDS[usize::from(kind)], index);
            }
        };
        unused(datatype);
        unused(comm);
        if !self.kept.is_empty() {
            self.keep_no_more(number);
        }
        if !self.requests.besides.is_empty() {
            self.needs_no_more(number);
        }
        self.objects.release(Kind::Request, number);
    }
}

/// The status of a send that is complete.
pub fn empty_status() -> SavedStatus {
    let neutral = |name| {
        phasecast_abi::constant(name).map_or(0, |c| match c.value(phasecast_abi::Abi::Standard) {
            phasecast_abi::Value::Number(n) => n as i32,
            _ => 0,
        })
    };
    SavedStatus { source: neutral("MPI_ANY_SOURCE"), tag: neutral("MPI_ANY_TAG"), error: 0, bytes: 0, cancelled: false }
}
