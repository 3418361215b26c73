//! The state of a rank's MPI in an image, and making it again: objects from the log in the order that the ranks
//! share, then receives and persistent requests.
use crate::attributes::{Attribute, Late};
use crate::callbacks::QUIET;
use crate::calls::{MOST, by_name_index, call as invoke, lower};
use crate::comms::Comm;
use crate::convert::Fortran;
use crate::dispatch::stop_soon;
use crate::drain::Drained;
use crate::errors::Own;
use crate::files::Pointers;
use crate::library::Versions;
use crate::life;
use crate::log::{Argument, Log, NOT_MADE, Record};
use crate::memory::Lent;
use crate::objects::{KINDS, Objects};
use crate::recorded::Recorded;
use crate::requests::{Request, Requests, Stage, What};
use crate::session::{Session, Traffic, install, session};
use crate::upper::Upper;
use crate::waits::SteppedOut;
use crate::windows::OneSided;
use crate::words::Scratch;
use phasecast_abi::{Abi, Domain, Kind, NoSymbols};
use phasecast_process::threads;
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering::Relaxed;

/// What an image holds of a rank's MPI.
#[derive(Serialize, Deserialize)]
pub struct State {
    program: Upper,
    objects: Objects,
    log: Log,
    requests: Requests,
    comms: Vec<(usize, Comm)>,
    drained: Drained,
    recorded: Recorded,
    memory: Lent,
    fortran: Fortran,
    traffic: Traffic,
    files: Vec<Pointers>,
    attributes: Vec<Attribute>,
    errors: Own,
    one_sided: OneSided,
    /// Events before the cut.
    pub events: u64,
    /// The level of thread support, in neutral form.
    pub thread_level: i32,
    /// The thread pointer of the thread that has initialised it.
    main_thread: usize,
    /// Whether other threads than the main one have called.
    several: bool,
    /// Calls that threads have stepped out of, by the thread pointer.
    stepped_out: Vec<(usize, SteppedOut)>,
    /// Whether it was initialised by `MPI_Init`, and not by sessions only.
    world: bool,
    /// Whether its events are counted.
    begun: bool,
    /// The clock at the cut as the program sees it, in seconds.
    clock: f64,
    /// What the library told of itself that the program has started with.
    started_with: Versions,
    /// Rank and number of ranks.
    pub place: (i32, i32),
    /// Names of the procedures of requests, by their index when the image was made.
    procedures: Vec<(u16, String)>,
}

impl State {
    /// The state now: the network is drained.
    pub fn save() -> State {
        let mut s = session();
        let clock = life::wtime(s.library) + s.clock_offset;
        let requests = s.requests_of_image();
        let mut procedures: Vec<(u16, String)> =
            requests.all().map(|(_, r)| (r.index, crate::calls::name(usize::from(r.index)).to_owned())).collect();
        procedures.sort();
        procedures.dedup();
        State {
            program: s.values.program().clone(),
            objects: s.objects.clone(),
            log: s.log.clone(),
            requests,
            comms: s.comms.iter().map(|(&handle, comm)| (handle, (**comm).clone())).collect(),
            drained: s.drained.clone(),
            recorded: s.recorded.clone(),
            memory: s.memory.clone(),
            fortran: s.fortran.clone(),
            traffic: s.traffic.clone(),
            files: s.file_pointers(),
            attributes: s.attributes(),
            errors: s.errors.clone(),
            one_sided: s.one_sided.clone(),
            events: s.events,
            thread_level: s.thread_level.unwrap_or(0),
            main_thread: s.main_thread,
            several: threads::several(),
            stepped_out: s.stepped_out.clone().into_iter().collect(),
            world: s.world,
            begun: s.begun,
            clock,
            started_with: s.started_with.clone().unwrap_or_else(|| s.library.versions()),
            place: s.place,
            procedures,
        }
    }

    /// Makes everything again, on all ranks together. The memory of the image is in place, the library initialised. Before the
    /// library is told of any of that memory, the ranks `share` what they have in common of it.
    ///
    /// # Errors
    /// If the library refuses something: what, and with which error.
    pub fn restore(mut self, level: i32, share: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        let (library, hooks) = life::host();
        for (_, name) in &self.procedures {
            by_name_index(name).ok_or_else(|| format!("this phasecast does not know {name}"))?;
        }
        let names = std::mem::take(&mut self.procedures);
        let now = move |index: u16| {
            let name = names.iter().find(|(i, _)| *i == index).map(|(_, name)| name.as_str()).unwrap_or_default();
            by_name_index(name).unwrap_or(0) as u16
        };
        self.requests.renumber(now);
        let mut s = Session::new(library, self.program, hooks);
        s.objects = self.objects;
        s.log = self.log;
        s.requests = self.requests;
        s.drained = self.drained;
        s.recorded = self.recorded;
        s.memory = self.memory;
        s.memory.forget_values();
        s.fortran = self.fortran;
        s.traffic = self.traffic;
        s.replayed = true;
        s.started_with = Some(self.started_with);
        (s.world, s.begun) = (self.world, self.begun);
        s.events = self.events;
        s.errors = self.errors;
        s.errors_again()?;
        s.clock_offset = self.clock - life::wtime(library);
        s.restoring = true;
        QUIET.store(true, Relaxed);
        let comms = self.comms;
        s.started(level, self.place);
        s.main_thread = self.main_thread;
        s.stepped_out = self.stepped_out.into_iter().collect();
        if self.several {
            threads::have_called();
        }
        s.first_comms();
        for (handle, comm) in comms {
            s.add_comm(handle, comm);
        }
        install(s);
        share()?;
        let records = session().log.in_order();
        for mut record in records {
            if record.procedure == "MPI_File_open" {
                session().reopen(&mut record, &self.files)?;
            }
            if session().changes_what_is_missing(&record) || session().is_too_long(&record) {
                continue;
            }
            // SAFETY: what the program once called, with copies of what it was given; callbacks and windows lie in the
            // memory of the image.
            unsafe { again(&record)? };
        }
        let mut s = session();
        s.set_file_pointers(&self.files);
        s.set_attributes(&self.attributes);
        s.one_sided = self.one_sided;
        s.epochs_again();
        s.restoring = false;
        QUIET.store(false, Relaxed);
        if let Some((at, size)) = s.memory.attached {
            // The library may be asked to find memory by itself.
            let at = s.values.down(Domain::BufferAddress, at as i64, library) as usize;
            let result = match i32::try_from(size) {
                Ok(size) => lower!(library, MPI_Buffer_attach(at, size)),
                Err(_) => lower!(library, MPI_Buffer_attach_c(at, size)),
            };
            if result != 0 {
                return Err(format!("{} has no place for a buffer of {size} bytes", library.name));
            }
        }
        drop(s);
        // SAFETY: the requests' arguments are the program's, whose memory is in place.
        unsafe { requests()? };
        QUIET.store(true, Relaxed);
        session().free_the_dead();
        QUIET.store(false, Relaxed);
        Ok(())
    }
}

/// An object that a recorded call makes again.
#[derive(Clone, Copy, Debug)]
pub struct MadeAgain {
    /// Its kind.
    pub kind: Kind,
    /// Its number; [`NOT_MADE`] for one that was there before.
    pub number: u32,
    /// The argument that its handle is written to; none if it comes in an array.
    pub argument: Option<usize>,
}

/// What a procedure of this interface has returned, in words: the class of the error and the code.
fn error_name(abi: Abi, result: usize) -> String {
    let code = result as i32;
    let class = abi.error_class_to_neutral(code);
    let name = Abi::Standard.constant_name(Domain::ErrorClass, class.into(), &NoSymbols);
    name.map_or_else(|| format!("error {code}"), |name| format!("{name} (error {code})"))
}

/// Makes a recorded call again.
///
/// # Safety
/// The memory of the image is in place.
unsafe fn again(record: &Record) -> Result<(), String> {
    let index =
        by_name_index(&record.procedure).ok_or_else(|| format!("this phasecast does not know {}", record.procedure))?;
    let mut args = [0usize; MOST];
    let mut room: Vec<Vec<u64>> = Vec::new();
    for (arg, given) in args.iter_mut().zip(&record.arguments) {
        let (bytes, length) = match given {
            Argument::Word(word) => {
                *arg = *word;
                continue;
            }
            Argument::Bytes(bytes) => (bytes.as_slice(), bytes.len()),
            Argument::Room(length) => ([].as_slice(), *length),
        };
        let mut block = vec![0u64; length.div_ceil(8).max(1)];
        *arg = block.as_mut_ptr() as usize;
        // SAFETY: the block is as long.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), *arg as *mut u8, bytes.len()) };
        room.push(block);
    }
    let shape = {
        let mut s = session();
        let made = record.made.map(|(argument, kind, number)| (Some(usize::from(argument)), kind, number));
        let all = made.into_iter().chain(record.also.iter().map(|&(kind, number)| (None, kind, number)));
        let again = |(argument, kind, number)| MadeAgain { kind: KINDS[usize::from(kind)], number, argument };
        s.replaying = all.map(again).collect();
        s.replaying.reverse();
        &s.shapes[index]
    };
    // SAFETY: the caller's.
    let result = unsafe { crate::route::again(index, shape, &args) };
    let mut s = session();
    let left = std::mem::take(&mut s.replaying);
    if let Some(reason) = s.trouble.take() {
        return Err(format!("{} cannot be made again: {reason}", record.procedure));
    }
    if result as i32 != 0 {
        return Err(format!("{} cannot be made again: {}", record.procedure, error_name(s.values.upper, result)));
    }
    if left.iter().any(|again| again.number != NOT_MADE) {
        return Err(format!("{} cannot be made again: it yields no object here", record.procedure));
    }
    Ok(())
}

impl Session {
    /// Whether a call has changed a predefined object that the library lacks: nothing can be done with it here.
    fn changes_what_is_missing(&mut self, record: &Record) -> bool {
        let Some((kind, handle)) = record.changed else { return false };
        let (kind, handle) = (KINDS[usize::from(kind)], handle as usize);
        let null = self.values.null(kind).filter(|&null| null != handle);
        null.is_some_and(|null| self.down_handle(kind, handle) == self.down_handle(kind, null))
            && self.objects.decode(kind, handle).is_none()
    }

    /// Whether a call has added an entry to an info that is longer than this library's can be, and tells it nothing.
    fn is_too_long(&self, record: &Record) -> bool {
        let limits = ["MPI_MAX_INFO_KEY", "MPI_MAX_INFO_VAL"].map(|name| self.library.constant(name));
        let is_longer = |(text, most): (&Argument, Option<usize>)| match (text, most) {
            (Argument::Bytes(text), Some(most)) => text.len() > most,
            _ => false,
        };
        let texts = record.arguments.iter().skip(1);
        record.procedure == "MPI_Info_set" && !self.values.same() && texts.zip(limits).any(is_longer)
    }

    /// Frees what the program has freed but other objects needed; where delete functions of the program may run then, later.
    fn free_the_dead(&mut self) {
        let all = self.objects.all();
        let dead = all.filter(|(.., object)| object.references == 0 && object.record.is_some() && object.lower != 0);
        let dead: Vec<(Kind, u32, usize)> = dead.map(|(kind, number, object)| (kind, number, object.lower)).collect();
        for (kind, number, handle) in dead {
            if kind == Kind::Datatype && self.has_lingering(kind, number) {
                self.late.types.push(handle);
                continue;
            }
            // As where the program has freed it.
            if kind != Kind::Errhandler {
                self.objects.forget_lower(kind, number);
            }
            self.give_back(kind, handle);
        }
        if self.late != Late::default() {
            stop_soon();
        }
    }
}

/// Makes persistent requests again, in the order in which they were made (those of collectives are made together by all
/// ranks); then posts and starts pending receives again, in the order in which that was done.
///
/// # Safety
/// The memory of the image is in place.
unsafe fn requests() -> Result<(), String> {
    let mut s = session();
    let null = s.library.request_null;
    let mut all: Vec<(u32, Request)> = s.requests.all().map(|(number, request)| (number, request.clone())).collect();
    for (number, _) in &all {
        s.objects.set_lower(Kind::Request, *number, null);
    }
    all.sort_by_key(|(_, request)| request.made);
    for (number, request) in all.iter().filter(|(_, request)| request.persistent && !request.over) {
        // SAFETY: the caller's.
        unsafe { s.request_again(*number, request)? };
    }
    all.sort_by_key(|(_, request)| request.started);
    for (number, request) in all.iter().filter(|(_, request)| request.stage == Stage::Active) {
        if !request.persistent {
            // SAFETY: the caller's.
            unsafe { s.request_again(*number, request)? };
        } else if request.what == What::Recv {
            let library = s.library;
            let mut handle = s.objects.get(Kind::Request, *number).map_or(null, |object| object.lower);
            lower!(library, MPI_Start(&raw mut handle));
        }
    }
    Ok(())
}

impl Session {
    /// Makes a request again by the call that made it.
    ///
    /// # Safety
    /// The memory of the image is in place.
    unsafe fn request_again(&mut self, number: u32, request: &Request) -> Result<(), String> {
        let shape = &self.shapes[usize::from(request.index)];
        let library = self.library;
        let mut scratch = Scratch::of(shape);
        let index = usize::from(request.index);
        // SAFETY: the program's arguments, in place.
        let lowered = unsafe { crate::absent::lowered(self, index, &request.args, &mut scratch) };
        let (function, below) = lowered.map_err(|_| format!("{} has no {}", library.name, shape.procedure.name))?;
        let at = shape.procedure.param_index(Kind::Request).unwrap_or(6);
        // SAFETY: as above.
        let result = unsafe { invoke(function, &below[..shape.lanes.len()]) };
        if result as i32 != 0 {
            return Err(format!("{} cannot be made again: {}", shape.procedure.name, error_name(library.abi, result)));
        }
        // SAFETY: the library has written the request.
        let handle = unsafe { crate::words::read_handle(below[at], library.abi.layout().handle_bytes) };
        self.objects.set_lower(Kind::Request, number, handle);
        self.keep(shape, number, &mut scratch);
        Ok(())
    }
}
