//! Where a rank stands, for somebody who asks from outside because nothing goes on: in which procedure, and which ranks it
//! waits for.
use crate::requests::{Request, Stage};
use crate::session::{Session, current};
use crate::shape::Shape;
use phasecast_abi::Kind;
use phasecast_process::gate::Frame;
use phasecast_process::threads::{self, Standing};
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::fmt::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

/// What a rank answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stand {
    /// Whether it is between one restart and the next.
    pub restarting: bool,
    /// The procedure in which it is; empty if it computes.
    pub procedure: String,
    /// World ranks that it waits for: the peers of a message or of requests, or the members of a communicator. At most
    /// [`MOST`].
    pub ranks: Vec<u32>,
    /// Whether they are the members of a communicator, each of which has to make the call.
    pub together: bool,
    /// Whether it takes a message from anyone.
    pub anyone: bool,
}

/// As many ranks are told, and as many requests looked at.
const MOST: usize = 64;

static ANSWER: OnceLock<CString> = OnceLock::new();

/// Has answers of this rank written to a file, each in the place of the last.
pub fn answer_to(path: &Path) {
    if let Ok(path) = CString::new(path.as_os_str().as_bytes())
        && ANSWER.set(path).is_ok()
    {
        threads::on_ask(answer);
    }
}

/// A text that needs no memory from the heap: an answer is given within the handler of a signal.
struct Text {
    bytes: [u8; 1024],
    used: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.used + text.len();
        self.bytes.get_mut(self.used..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.used = end;
        Ok(())
    }
}

/// Writes where the rank stands.
fn answer(standing: Standing<'_>) {
    let Some(path) = ANSWER.get() else { return };
    let mut text = Text { bytes: [0; 1024], used: 0 };
    if tell(standing, &mut text).is_err() {
        return;
    }
    // SAFETY: system calls with a path and bytes that are there.
    unsafe {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC;
        let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o600);
        if file >= 0 {
            libc::syscall(libc::SYS_write, file, text.bytes.as_ptr(), text.used);
            libc::syscall(libc::SYS_close, file);
        }
    }
}

fn tell(standing: Standing<'_>, out: &mut Text) -> fmt::Result {
    let frame = if let Standing::Call(frame) = standing { Some(frame) } else { None };
    // SAFETY: the rank stands still for longer than any use of its session takes, and nothing is changed.
    let within = frame.zip(unsafe { current() });
    let call = within.and_then(|(frame, s)| Some((frame, s, s.shapes.get(frame.index as usize)?)));
    let procedure = call.map_or("", |(_, _, shape)| shape.procedure.name);
    let restarting = matches!(standing, Standing::Host);
    write!(out, r#"{{"restarting":{restarting},"procedure":"{procedure}","ranks":["#)?;
    let mut ranks = Ranks { count: 0, anyone: false, out };
    let together = call.map_or(Ok(false), |(frame, s, shape)| waits_for(frame, s, shape, &mut ranks))?;
    let anyone = ranks.anyone;
    write!(out, r#"],"together":{together},"anyone":{anyone}}}"#)
}

/// World ranks on their way into an answer.
struct Ranks<'a> {
    count: usize,
    anyone: bool,
    out: &'a mut Text,
}

impl Ranks<'_> {
    fn add(&mut self, rank: i32) -> fmt::Result {
        if rank < 0 || self.count == MOST {
            return Ok(());
        }
        self.count += 1;
        write!(self.out, "{}{rank}", if self.count > 1 { "," } else { "" })
    }

    /// A rank of a communicator, or any.
    fn peer(&mut self, s: &Session, comm: usize, rank: usize) -> fmt::Result {
        let (layout, rank) = (s.values.upper.layout(), rank as i32);
        self.anyone |= rank == layout.any_source;
        let comm = s.comms.get(&(comm & layout.handle_mask as usize));
        comm.and_then(|comm| comm.peers.get(usize::try_from(rank).ok()?)).map_or(Ok(()), |&rank| self.add(rank))
    }
}

/// Adds the ranks that a call waits for; returns whether they are those who make it together.
fn waits_for(frame: &Frame, s: &Session, shape: &Shape, ranks: &mut Ranks<'_>) -> Result<bool, fmt::Error> {
    // SAFETY: an argument of the frame's procedure.
    let arg = |at: usize| unsafe { frame.arg(at) };
    if let Some(places) = &shape.completion {
        // SAFETY: the arguments of the procedure that the frame's call is in.
        let handles = unsafe { places.handles(arg, s.values.upper.layout().handle_bytes) };
        for handle in handles.take(MOST) {
            let request = s.objects.decode(Kind::Request, handle).and_then(|number| s.requests.get(number));
            if let Some(request) = request.filter(|request| request.stage == Stage::Active) {
                of_request(s, request, ranks)?;
            }
        }
        return Ok(false);
    }
    let places = &shape.point;
    if places.dest.is_some() || places.source.is_some() {
        for at in [places.dest, places.source].into_iter().flatten() {
            ranks.peer(s, arg(places.comm), arg(at))?;
        }
        return Ok(false);
    }
    let comm = shape.procedure.param_index(Kind::Communicator).map(arg);
    let comm = comm.and_then(|comm| s.comms.get(&(comm & s.values.upper.layout().handle_mask as usize)));
    comm.into_iter().flat_map(|comm| &comm.peers).try_for_each(|&rank| ranks.add(rank))?;
    Ok(comm.is_some())
}

fn of_request(s: &Session, request: &Request, ranks: &mut Ranks<'_>) -> fmt::Result {
    let Some(shape) = s.shapes.get(usize::from(request.index)) else { return Ok(()) };
    let places = &shape.point;
    [places.dest, places.source].into_iter().flatten().try_for_each(|at| ranks.peer(s, request.comm, request.args[at]))
}
