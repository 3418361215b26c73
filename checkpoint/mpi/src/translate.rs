//! Arguments and results between the program's interface and the library's: handles, numbers, statuses, texts, error
//! codes.
use crate::calls::MOST;
use crate::comms;
use crate::log::NOT_MADE;
use crate::replay::MadeAgain;
use crate::session::Session;
use crate::shape::{Lane, Shape};
use crate::words::{Scratch, handle_bytes, read_handle, read_status, write_handle, write_one_status, write_status};
use phasecast_abi::{Class, Direction, Domain, Kind, Length};

impl Session {
    /// The library's form of a handle of the program.
    #[inline(always)]
    pub fn down_handle(&mut self, kind: Kind, handle: usize) -> usize {
        match self.objects.recent(kind, handle) {
            Some(lower) => lower,
            None => self.look_down(kind, handle),
        }
    }

    #[inline(never)]
    fn look_down(&mut self, kind: Kind, handle: usize) -> usize {
        let handle = self.objects.bits(kind, handle);
        let lower = if let Some(index) = self.objects.decode(kind, handle) {
            self.objects.get(kind, index).map_or(0, |object| object.lower)
        } else if kind == Kind::Keyval {
            return self.values.down(Domain::Keyval, handle as i32 as i64, self.library) as usize;
        } else {
            match self.values.handle_down(kind, handle) {
                Some(lower) => lower,
                None if self.values.same() => return handle,
                // The library may take any other for an address. It refuses null.
                None => {
                    let null = self.values.null(kind).and_then(|null| self.values.handle_down(kind, null));
                    return null.unwrap_or(handle);
                }
            }
        };
        self.objects.keep_recent(kind, handle, lower);
        lower
    }

    /// The program's form of a handle of the library; a new object if it is not known yet.
    pub fn up_handle(&mut self, kind: Kind, handle: usize) -> (usize, Option<u32>) {
        if kind == Kind::Request && self.replaying.is_empty() {
            if handle == self.library.request_null {
                return (self.values.request_null, None);
            }
            let index = self.objects.add(kind, handle);
            return (self.objects.encode(kind, index), Some(index));
        }
        // A test that finds no message may leave what it was given, which is 0: no library has such a message.
        if kind == Kind::Message && handle == 0 {
            return (self.values.above("MPI_MESSAGE_NULL").unwrap_or(0), None);
        }
        let predefined = if kind == Kind::Keyval { None } else { self.values.handle_up(kind, handle) };
        // What is an object of its own in one library may be predefined in another, as an empty group is; in an array the
        // predefined ones have no place among those that are made again.
        let again = self.replaying.pop_if(|again| {
            let is_object =
                predefined.is_none_or(|above| again.argument.is_some() && self.values.null(kind) != Some(above));
            again.kind == kind && is_object
        });
        if let Some(MadeAgain { number, .. }) = again.filter(|again| again.number != NOT_MADE) {
            self.objects.set_lower(kind, number, handle);
            return (self.objects.encode(kind, number), None);
        }
        if let Some(above) = predefined {
            return (above, None);
        }
        if kind == Kind::Keyval {
            let index = self.objects.add(kind, handle);
            return (self.objects.encode(kind, index), Some(index));
        }
        if kind != Kind::Message
            && let Some(index) = self.objects.by_lower(kind, handle)
        {
            self.one_more(kind, index, handle);
            return (self.objects.encode(kind, index), None);
        }
        let index = self.objects.add(kind, handle);
        (self.objects.encode(kind, index), Some(index))
    }

    /// How many elements an array argument has.
    ///
    /// # Safety
    /// `args` are those of the procedure, as the program passed them.
    pub unsafe fn length(&mut self, shape: &Shape, args: &[usize; MOST], length: Length) -> usize {
        let int = |at: u8| args[usize::from(at)] as i32;
        match length {
            Length::One => 1,
            Length::Param(at) if shape.procedure.params[usize::from(at)].passing != phasecast_abi::Passing::Value => {
                // SAFETY: the caller's: a number that the library has written.
                unsafe { *(args[usize::from(at)] as *const i32) }.max(0) as usize
            }
            Length::Param(at) => int(at).max(0) as usize,
            Length::Triples(at) => 3 * int(at).max(0) as usize,
            Length::Constant(_) => 0,
            Length::Implied => {
                let at = shape.procedure.param_index(Kind::Communicator);
                let Some(handle) = at.map(|at| args[at]) else { return 0 };
                match shape.procedure.class {
                    Class::Collective { neighbourhood: true, .. } => {
                        let lower = self.down_handle(Kind::Communicator, handle);
                        comms::degree(self.library, lower)
                    }
                    _ => self.comm(handle).map_or(0, |comm| comm.peers.len()),
                }
            }
        }
    }

    /// Elements of an array that is read; where the table of procedures does not say, by what the standard says.
    ///
    /// # Safety
    /// As for [`Session::length`].
    pub unsafe fn elements(&mut self, shape: &Shape, args: &[usize; MOST], i: usize, length: Length) -> usize {
        let ints = |at: usize, count: usize| -> usize {
            // SAFETY: the caller's: so many numbers stand there.
            (0..count).map(|j| unsafe { (args[at] as *const i32).add(j).read_unaligned() }.max(0) as usize).sum()
        };
        match (shape.procedure.name, shape.procedure.params[i].name) {
            ("MPI_Dist_graph_create", "destinations" | "weights") => ints(3, args[1] as i32 as usize),
            ("MPI_Dist_graph_create_adjacent", "sourceweights") => args[1] as i32 as usize,
            ("MPI_Dist_graph_create_adjacent", "destweights") => args[4] as i32 as usize,
            ("MPI_Graph_create" | "MPI_Graph_map", "edges") => {
                let nodes = (args[1] as i32).max(0) as usize;
                // SAFETY: the caller's: the last of so many numbers.
                let last = |at: usize| unsafe { (args[2] as *const i32).add(at).read_unaligned() };
                nodes.checked_sub(1).map_or(0, |at| last(at).max(0) as usize)
            }
            ("MPI_Cart_sub", _) => {
                let lower = self.down_handle(Kind::Communicator, args[0]);
                comms::degree(self.library, lower) / 2
            }
            // SAFETY: the caller's.
            _ => unsafe { self.length(shape, args, length) },
        }
    }

    /// The library's form of argument `i`.
    ///
    /// # Safety
    /// `args` are those of the procedure, as the program passed them.
    #[inline(always)]
    pub unsafe fn down_arg(&mut self, shape: &Shape, args: &[usize; MOST], i: usize, scratch: &mut Scratch) -> usize {
        let given = args[i];
        match shape.lanes[i] {
            Lane::Same => given,
            Lane::Handle(kind) => self.down_handle(kind, given),
            lane => {
                // SAFETY: the caller's.
                unsafe { self.down_rare(shape, args, i, lane, scratch) }
            }
        }
    }

    /// The library's form of a number, of an address that may be a constant, or of a status that is ignored.
    #[inline(never)]
    pub fn down_word(&self, lane: Lane, given: usize) -> usize {
        match lane {
            Lane::Number(Domain::Rank | Domain::Tag) if given as i32 >= 0 => given,
            // The only number with constants that is longer than an int.
            Lane::Number(Domain::FileOffset) => {
                self.values.down(Domain::FileOffset, given as i64, self.library) as usize
            }
            Lane::Number(domain) => self.values.down(domain, i64::from(given as i32), self.library) as usize,
            Lane::Address(domain) => self.values.address_down(domain, given),
            Lane::Reorder => 0,
            Lane::StatusOut => self.values.lower.layout().status_ignore,
            _ => given,
        }
    }

    /// # Safety
    /// As for [`Session::down_arg`].
    unsafe fn down_rare(
        &mut self,
        shape: &Shape,
        args: &[usize; MOST],
        i: usize,
        lane: Lane,
        scratch: &mut Scratch,
    ) -> usize {
        let given = args[i];
        let (upper, lower) = (self.values.upper, self.values.lower);
        match lane {
            Lane::Same | Lane::Handle(_) | Lane::Number(_) | Lane::Address(_) | Lane::Reorder => {
                self.down_word(lane, given)
            }
            Lane::HandleAt(kind, direction) => {
                let (above, below) = (handle_bytes(upper, kind), handle_bytes(lower, kind));
                let at = scratch.take(below);
                // SAFETY: the caller's: a handle stands there if it is read.
                unsafe {
                    if direction != Direction::Out {
                        let handle = self.down_handle(kind, read_handle(given, above));
                        write_handle(at, below, handle);
                    }
                }
                if given == 0 { 0 } else { at }
            }
            Lane::Handles(kind, direction, length) => {
                // SAFETY: the caller's.
                let length = unsafe { self.length(shape, args, length) };
                let (above, below) = (handle_bytes(upper, kind), handle_bytes(lower, kind));
                let at = scratch.take(length * below);
                // An array that is not significant (at other ranks, in place) may be no address at all.
                if direction != Direction::Out && given > 4096 && given < usize::MAX - 4096 {
                    for i in 0..length {
                        // SAFETY: the caller's: so many handles stand there.
                        unsafe {
                            let handle = self.down_handle(kind, read_handle(given + i * above, above));
                            write_handle(at + i * below, below, handle);
                        }
                    }
                }
                at
            }
            Lane::Numbers(domain, length) => {
                if given == 0 {
                    return 0;
                }
                // SAFETY: the caller's.
                let length = unsafe { self.elements(shape, args, i, length) };
                let at = scratch.take(length * 4);
                for i in 0..length {
                    // SAFETY: the caller's: so many numbers stand there.
                    let value = unsafe { (given as *const i32).add(i).read_unaligned() };
                    let value = match domain {
                        Domain::Rank | Domain::Tag if value >= 0 => value,
                        _ => self.values.down(domain, i64::from(value), self.library) as i32,
                    };
                    // SAFETY: there is room.
                    unsafe { (at as *mut i32).add(i).write(value) };
                }
                at
            }
            Lane::StatusIn | Lane::StatusChanged => {
                let at = scratch.take(lower.layout().status.size);
                // SAFETY: the caller's: a status stands there.
                let status = unsafe { read_status(upper, given) };
                // SAFETY: there is room.
                unsafe { write_status(lower, at, &status) };
                at
            }
            Lane::StatusOut if given == upper.layout().status_ignore => lower.layout().status_ignore,
            Lane::StatusOut => scratch.take(lower.layout().status.size),
            Lane::Text(_) => scratch.take(8200),
            Lane::NumberAt(_) | Lane::NumbersAt(..) => given,
        }
    }

    /// Brings a result up: what the library has written for argument `i` to where the program wants it. Yields the number
    /// of a new object.
    ///
    /// # Safety
    /// The call has succeeded with `below` in place of `args`.
    pub unsafe fn up_arg(
        &mut self,
        shape: &'static Shape,
        args: &[usize; MOST],
        below: &[usize; MOST],
        i: usize,
    ) -> Option<(Kind, u32)> {
        let (given, passed) = (args[i], below[i]);
        let (upper, lower) = (self.values.upper, self.values.lower);
        if given == 0 {
            return None;
        }
        // SAFETY: the caller's, for all that is read and written here.
        unsafe {
            match shape.lanes[i] {
                // A record is of one of the objects that a call makes.
                Lane::HandleAt(_, Direction::Out)
                    if self.restoring && self.replaying.last().is_none_or(|again| again.argument != Some(i)) => {}
                Lane::HandleAt(kind, Direction::Out) => {
                    let handle = read_handle(passed, handle_bytes(lower, kind));
                    let (above, new) = self.up_handle(kind, handle);
                    write_handle(given, handle_bytes(upper, kind), above);
                    return new.map(|index| (kind, index));
                }
                Lane::HandleAt(kind, Direction::InOut) => {
                    let bytes = handle_bytes(upper, kind);
                    let (before, after) = (read_handle(given, bytes), read_handle(passed, handle_bytes(lower, kind)));
                    if after != self.down_handle(kind, before) {
                        let null = self.up_null(kind, after);
                        self.freed(kind, before);
                        write_handle(given, bytes, null);
                    }
                }
                Lane::Handles(kind, direction, length) if direction != Direction::In => {
                    let length = self.length(shape, args, length);
                    let (above, under) = (handle_bytes(upper, kind), handle_bytes(lower, kind));
                    let mut yielded = Vec::new();
                    for i in 0..length {
                        // There may be fewer than there is room for.
                        let handle = read_handle(passed + i * under, under);
                        if handle == 0 {
                            break;
                        }
                        let (handle, new) = self.up_handle(kind, handle);
                        if self.objects.decode(kind, handle).is_some() {
                            yielded.push((kind, new.unwrap_or(NOT_MADE)));
                        }
                        write_handle(given + i * above, above, handle);
                    }
                    if yielded.iter().any(|&(_, number)| number != NOT_MADE) && !self.restoring {
                        crate::log::made_several(self, shape, args, &yielded);
                    }
                }
                Lane::NumberAt(domain) => {
                    let at = given as *mut i32;
                    let value = at.read_unaligned();
                    if value < 0 || !matches!(domain, Domain::Rank | Domain::Undefined) {
                        at.write_unaligned(self.values.up(domain, i64::from(value), self.library) as i32);
                    }
                }
                Lane::NumbersAt(domain, length) => {
                    for i in 0..self.length(shape, args, length) {
                        let at = (given as *mut i32).add(i);
                        let value = at.read_unaligned();
                        if value < 0 {
                            at.write_unaligned(self.values.up(domain, i64::from(value), self.library) as i32);
                        }
                    }
                }
                // A test that has found nothing leaves it.
                Lane::StatusOut
                    if given != upper.layout().status_ignore
                        && shape.point.flag.is_none_or(|at| *(args[at] as *const i32) != 0) =>
                {
                    write_one_status(upper, given, &read_status(lower, passed));
                }
                Lane::StatusChanged if given != upper.layout().status_ignore => {
                    write_status(upper, given, &read_status(lower, passed));
                }
                Lane::Text(name) => {
                    let most = phasecast_abi::constant(name).map_or(128, |c| match c.value(upper) {
                        phasecast_abi::Value::Number(n) => n as usize,
                        _ => 128,
                    });
                    let text = std::ffi::CStr::from_ptr(passed as *const libc::c_char).to_bytes();
                    let length = text.len().min(most - 1);
                    std::ptr::copy_nonoverlapping(text.as_ptr(), given as *mut u8, length);
                    *((given + length) as *mut u8) = 0;
                    if length < text.len()
                        && let Some(at) = shape.procedure.param_index(Kind::StringLength)
                        && shape.procedure.params[at].direction == Direction::Out
                    {
                        *(args[at] as *mut i32) = length as i32;
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// What stands where a failed call was to write a new handle: null, if the library has written that.
    ///
    /// # Safety
    /// A handle can be written to `given` if it is not 0, and read from `passed`.
    pub unsafe fn up_if_null(&mut self, kind: Kind, given: usize, passed: usize) {
        if given == 0 {
            return;
        }
        // SAFETY: the caller's.
        let lower = unsafe { read_handle(passed, handle_bytes(self.values.lower, kind)) };
        if let Some(null) = self.values.handle_up(kind, lower) {
            // SAFETY: the caller's.
            unsafe { write_handle(given, handle_bytes(self.values.upper, kind), null) };
        }
    }

    /// The program's form of a null handle of the library.
    pub fn up_null(&self, kind: Kind, lower: usize) -> usize {
        if kind == Kind::Keyval {
            return self.values.upper.layout().keyval_invalid as u32 as usize;
        }
        self.values.handle_up(kind, lower).unwrap_or(0)
    }
}
