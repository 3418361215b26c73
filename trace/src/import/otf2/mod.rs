//! OTF2 archives (Score-P, Extrae, TAU) as traces, through the system's OTF2 library.
//!
//! Not in an archive: whether a receive was posted with `MPI_ANY_SOURCE`, and call sites.
mod definitions;
mod events;
mod library;
#[cfg(any(test, feature = "fuzzing"))]
pub mod records;

use super::{Format, Imported};
use crate::error::TraceError;
use crate::model::{CommDef, Ending, Trailer};
use crate::units::Rank;
use crate::writer::{TraceWriter, made_header};
use definitions::{Definitions, Location, World};
use events::{Lane, Missing};
use library::{Code, Library, Object};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Events between two reports of progress.
const STEP: u64 = 1 << 18;

/// Imports the archive with this anchor file (`*.otf2`) to a new trace folder `out`. `progress` is told events of events.
///
/// # Errors
/// If the OTF2 library is not installed, the archive cannot be read, or `out` exists or cannot be written.
pub fn import(anchor: &Path, out: &Path, progress: &dyn Fn(u64, u64)) -> Result<Imported, TraceError> {
    let library = Library::load(anchor)?;
    let writer = TraceWriter::create(out)?;
    let reader = Reader::open(&library, anchor)?;
    let world = reader.definitions()?;
    let total: u64 = world.ranks.iter().flatten().fold(0, |sum, l| sum.saturating_add(l.events));
    let mut done = 0u64;
    reader.open_events(&world)?;
    let imported = convert(&world, &writer, |location, lane| {
        reader.events(location, lane, &mut |read| {
            done = done.saturating_add(read);
            progress(done.min(total), total);
        })
    })?;
    reader.close();
    writer.finish()?;
    Ok(imported)
}

/// Writes each rank's file; `read` hands the events of a location to its lane.
fn convert(
    world: &World,
    writer: &TraceWriter,
    mut read: impl FnMut(&Location, &mut Lane<'_>) -> Result<(), TraceError>,
) -> Result<Imported, TraceError> {
    let (mut calls, mut missing) = (0, Missing::default());
    let names: Vec<&str> = world.names.iter().map(String::as_str).collect();
    for (rank, locations) in (0u32..).zip(&world.ranks) {
        let mut header = made_header(Rank(rank), world.ranks.len() as u32, "", &names);
        header.mpi = "not told (OTF2)".into();
        let mut file = writer.rank(&header)?;
        let (defs, locals) = comms(world, rank);
        file.comms(&defs)?;
        let mut end = 0;
        for (thread, location) in locations.iter().enumerate() {
            if thread > 0 {
                file.next_thread()?;
            }
            let mut lane = Lane::new(world, rank, &locals, &mut file, &mut missing);
            read(location, &mut lane)?;
            calls += lane.calls;
            end = end.max(file.last().0);
        }
        file.finish(Trailer { ending: Ending::Finalized, calls: 0, end_units: end, own_ns: 0, modules: Vec::new() })?;
    }
    Ok(Imported { format: Format::Otf2, ranks: world.ranks.len() as u32, calls, notes: missing.notes() })
}

/// The communicators of a rank, and the rank's own number of each of the archive's. Number 0 is the world.
fn comms(world: &World, rank: u32) -> (Vec<CommDef>, HashMap<u32, u32>) {
    let all: Vec<u32> = (0..world.ranks.len() as u32).collect();
    let mut defs = vec![CommDef { local: 0, members: all.clone(), remote: Vec::new() }];
    let mut locals = HashMap::new();
    for comm in &world.order {
        let members = match world.comms.get(comm) {
            Some(members) if members.contains(&rank) => members.clone(),
            None if world.selves.contains(comm) => vec![rank],
            _ => continue,
        };
        if members == all && !locals.values().any(|&local| local == 0) {
            locals.insert(*comm, 0);
            continue;
        }
        let local = defs.len() as u32;
        defs.push(CommDef { local, members, remote: Vec::new() });
        locals.insert(*comm, local);
    }
    (defs, locals)
}

/// An archive that is open; closed when it is dropped.
struct Reader<'a> {
    library: &'a Library,
    path: &'a Path,
    handle: Object,
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle came from Reader_Open and is closed only here.
        unsafe { (self.library.close)(self.handle) };
    }
}

impl<'a> Reader<'a> {
    fn open(library: &'a Library, path: &'a Path) -> Result<Reader<'a>, TraceError> {
        let failed = |what: &str| TraceError::Import { path: path.to_owned(), what: what.into() };
        if !path.is_file() {
            return Err(failed("there is no file of that name"));
        }
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| failed("its name holds a zero byte"))?;
        // SAFETY: the name ends with a zero and lives during the call.
        let handle = unsafe { (library.open)(name.as_ptr()) };
        if handle.is_null() {
            return Err(failed("the OTF2 library cannot open it: it is no OTF2 anchor file, or it is damaged"));
        }
        let reader = Reader { library, path, handle };
        // SAFETY: the handle is a reader.
        reader.check(unsafe { (library.serial)(handle) }, "it cannot be read by one process")?;
        Ok(reader)
    }

    fn check(&self, code: Code, what: &str) -> Result<(), TraceError> {
        if code == 0 {
            return Ok(());
        }
        let why = self.library.reason(code);
        Err(TraceError::Import { path: self.path.to_owned(), what: format!("{what} ({why})") })
    }

    fn definitions(&self) -> Result<World, TraceError> {
        let library = self.library;
        let mut found = Definitions::default();
        // SAFETY: all handles are of the library's own making; `found` outlives the reading of definitions, which is the
        // only time that the library uses it, and nobody else uses it meanwhile.
        let code = unsafe {
            let defs = (library.global_def_reader)(self.handle);
            let callbacks = (library.def_callbacks)();
            (library.on_clock)(callbacks, definitions::clock);
            (library.on_string)(callbacks, definitions::string);
            (library.on_location)(callbacks, definitions::location);
            (library.on_region)(callbacks, definitions::region);
            (library.on_group)(callbacks, definitions::group);
            (library.on_comm)(callbacks, definitions::comm);
            let user = (&raw mut found).cast::<c_void>();
            let mut code = (library.register_global_defs)(self.handle, defs, callbacks, user);
            if code == 0 {
                let mut read = 0;
                code = (library.read_global_defs)(self.handle, defs, &mut read);
            }
            (library.drop_def_callbacks)(callbacks);
            code
        };
        self.check(code, "its definitions cannot be read")?;
        found.world().map_err(|what| TraceError::Import { path: self.path.to_owned(), what })
    }

    /// Opens the files of all locations and reads their own definitions, which map numbers to the global ones.
    fn open_events(&self, world: &World) -> Result<(), TraceError> {
        let library = self.library;
        let ids = || world.ranks.iter().flatten().map(|location| location.id);
        for id in ids() {
            // SAFETY: the handle is a reader.
            self.check(unsafe { (library.select_location)(self.handle, id) }, "a location cannot be selected")?;
        }
        // SAFETY: the handles are of the library's own making and used as its headers say: definitions are read before
        // events, and each local reader is closed once. A location without own definitions has no reader.
        unsafe {
            let has_defs = (library.open_def_files)(self.handle) == 0;
            self.check((library.open_event_files)(self.handle), "its events cannot be opened")?;
            if has_defs {
                for id in ids() {
                    let defs = (library.def_reader)(self.handle, id);
                    if !defs.is_null() {
                        let mut read = 0;
                        let code = (library.read_local_defs)(self.handle, defs, &mut read);
                        (library.close_def_reader)(self.handle, defs);
                        self.check(code, "the definitions of a location cannot be read")?;
                    }
                }
                (library.close_def_files)(self.handle);
            }
        }
        Ok(())
    }

    fn events(&self, location: &Location, lane: &mut Lane<'_>, report: &mut dyn FnMut(u64)) -> Result<(), TraceError> {
        let library = self.library;
        // SAFETY: the handle is a reader with its event files open.
        let events = unsafe { (library.event_reader)(self.handle, location.id) };
        if events.is_null() {
            let what = format!("the events of location {} are missing", location.id);
            return Err(TraceError::Import { path: self.path.to_owned(), what });
        }
        let user: *mut Lane<'_> = lane;
        // SAFETY: the handles are of the library's own making; `lane` outlives the reading of these events, which is the
        // only time that the library uses it.
        let mut code = unsafe {
            (library.apply_mapping)(events, true);
            (library.apply_offsets)(events, true);
            let callbacks = (library.event_callbacks)();
            Lane::register(library, callbacks);
            let code = (library.register_events)(self.handle, events, callbacks, user.cast());
            (library.drop_event_callbacks)(callbacks);
            code
        };
        let mut read = STEP;
        while code == 0 && read == STEP {
            // SAFETY: as above.
            code = unsafe { (library.read_events)(self.handle, events, STEP, &mut read) };
            report(read);
        }
        // SAFETY: the reader is closed once.
        unsafe { (library.close_event_reader)(self.handle, events) };
        // SAFETY: the library no longer uses the lane.
        if let Some(error) = unsafe { &mut *user }.error.take() {
            return Err(error);
        }
        self.check(code, "its events cannot be read")
    }

    fn close(self) {
        // SAFETY: the event files were opened; the reader itself is closed by dropping.
        unsafe { (self.library.close_event_files)(self.handle) };
    }
}
