//! Objects of which the program has several handles, as it has asked for them several times: groups, error handlers and
//! datatypes.
use crate::calls::lower;
use crate::dispatch::stop_soon;
use crate::log::Record;
use crate::session::Session;
use phasecast_abi::Kind;

impl Session {
    /// The library has given an object once more, and counts a reference more where objects are freed by references: it is
    /// given back at once, as a restart makes the object once, however many handles of it the program has. One that the
    /// program had freed it has again now.
    pub fn one_more(&mut self, kind: Kind, index: u32, handle: usize) {
        if !matches!(kind, Kind::Group | Kind::Errhandler | Kind::Datatype) {
            return;
        }
        let record = self.objects.get(kind, index).and_then(|object| self.log.records.get(&object.record?));
        if record.is_some_and(Record::is_of_predefined) {
            return;
        }
        let Some(object) = self.objects.get_mut(kind, index) else { return };
        object.references += u32::from(!self.restoring);
        if object.references > 1 || self.restoring {
            self.give_back(kind, handle);
        }
    }

    /// The library need not keep an object for us.
    pub fn give_back(&self, kind: Kind, mut handle: usize) {
        let library = self.library;
        match kind {
            Kind::Group => lower!(library, MPI_Group_free(&raw mut handle)),
            Kind::Errhandler => lower!(library, MPI_Errhandler_free(&raw mut handle)),
            Kind::Datatype => lower!(library, MPI_Type_free(&raw mut handle)),
            Kind::Operation => lower!(library, MPI_Op_free(&raw mut handle)),
            Kind::Info => lower!(library, MPI_Info_free(&raw mut handle)),
            _ => 0,
        };
    }

    /// A handle that a request had of an object is gone, and with it the object if it was the last; a datatype at the end of
    /// this call, as functions of the program may run then.
    pub fn gives_back(&mut self, kind: Kind, index: u32) {
        let Some(object) = self.objects.get_mut(kind, index) else { return };
        if object.references > 1 {
            object.references -= 1;
            return;
        }
        let lower = object.lower;
        self.freed(kind, self.objects.encode(kind, index));
        if kind == Kind::Datatype {
            self.late.types.push(lower);
            stop_soon();
        } else {
            self.give_back(kind, lower);
        }
    }

    /// If the program has several handles of an object ([`Session::one_more`]), frees one, of which the library does not hear.
    pub fn one_less(&mut self, kind: Kind, index: u32) -> bool {
        let several = self.objects.get_mut(kind, index).filter(|object| object.references > 1);
        several.is_some_and(|object| {
            object.references -= 1;
            true
        })
    }
}
