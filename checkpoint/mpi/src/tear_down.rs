//! The end of an image's MPI in a launch that goes on: all objects below are freed.
use crate::callbacks::{self, QUIET};
use crate::calls::lower;
use crate::log::Named;
use crate::objects::KINDS;
use crate::requests::Stage;
use crate::session::Session;
use phasecast_abi::Kind;
use std::sync::atomic::Ordering::Relaxed;

impl Session {
    /// Frees all objects below, so that the library is as it was after `MPI_Init`: in the same order on all ranks, the
    /// youngest first. Pending receives are cancelled before.
    pub fn tear_down(&mut self) {
        callbacks::forget();
        QUIET.store(true, Relaxed);
        let library = self.library;
        let ignore = library.abi.layout().status_ignore;
        let null = library.request_null;
        let requests: Vec<(u32, Stage, bool)> =
            self.requests.all().map(|(number, r)| (number, r.stage, r.persistent)).collect();
        for (number, stage, persistent) in requests {
            let Some(mut handle) = self.objects.get(Kind::Request, number).map(|o| o.lower).filter(|&h| h != null)
            else {
                continue;
            };
            if stage == Stage::Active {
                lower!(library, MPI_Cancel(&raw mut handle));
                lower!(library, MPI_Wait(&raw mut handle, ignore));
            }
            if persistent {
                lower!(library, MPI_Request_free(&raw mut handle));
            }
        }
        if self.memory.attached.is_some() {
            let (mut at, mut size) = (0usize, 0i32);
            lower!(library, MPI_Buffer_detach(&raw mut at, &raw mut size));
        }
        let attaches = self.log.records.values().filter(|record| record.procedure.contains("_attach_buffer"));
        let having: Vec<Named> = attaches.filter_map(|record| record.changed).collect();
        for (kind, handle) in having {
            let kind = KINDS[usize::from(kind)];
            let (below, mut at, mut size) = (self.down_handle(kind, handle as usize), 0usize, 0usize);
            match kind {
                Kind::Session => lower!(library, MPI_Session_detach_buffer_c(below, &raw mut at, &raw mut size)),
                _ => lower!(library, MPI_Comm_detach_buffer_c(below, &raw mut at, &raw mut size)),
            };
        }
        lower!(library, MPI_Barrier(self.private));
        let made: Vec<(Kind, u32)> = self
            .log
            .records
            .values()
            .rev()
            .filter(|r| !r.is_of_predefined())
            .filter_map(|r| r.made.map(|(_, kind, number)| (KINDS[usize::from(kind)], number)))
            .collect();
        for (kind, number) in made {
            let Some(object) = self.objects.get(kind, number).filter(|o| o.lower != 0) else { continue };
            let mut handle = object.lower;
            // What the program has freed is gone below already, but for communicators that were made again for others.
            if object.references == 0 && kind != Kind::Communicator {
                continue;
            }
            match kind {
                Kind::Communicator => lower!(library, MPI_Comm_free(&raw mut handle)),
                Kind::Window => lower!(library, MPI_Win_free(&raw mut handle)),
                Kind::File => lower!(library, MPI_File_close(&raw mut handle)),
                Kind::Session => lower!(library, MPI_Session_finalize(&raw mut handle)),
                _ => {
                    self.give_back(kind, handle);
                    0
                }
            };
        }
        self.end_wakeups();
        let (mut private, mut own) = (self.private, self.private_self);
        lower!(library, MPI_Comm_free(&raw mut private));
        lower!(library, MPI_Comm_free(&raw mut own));
        QUIET.store(false, Relaxed);
    }
}
