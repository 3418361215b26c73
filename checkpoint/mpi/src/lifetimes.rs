//! How long objects and their records are needed: by the program, by other objects, by requests under way, and
//! communicators by the other ranks.
use crate::log::{lasting, named};
use crate::objects::KINDS;
use crate::session::Session;
use phasecast_abi::Kind;
use std::collections::BTreeSet;

impl Session {
    /// One user less of an object.
    pub fn unused(&mut self, kind: Kind, index: u32) {
        let Some(object) = self.objects.get_mut(kind, index) else { return };
        object.users = object.users.saturating_sub(1);
        if object.users == 0 && object.references == 0 {
            self.drop_object(kind, index);
        } else if object.references == 0 {
            self.all_freed(kind, index);
        }
    }

    /// Objects that one record makes together ([`made_several`](crate::log::made_several)) go when the last of them is
    /// needed by nothing else.
    fn all_freed(&mut self, kind: Kind, index: u32) {
        let Some(number) = self.objects.get(kind, index).and_then(|object| object.record) else { return };
        let Some(record) = self.log.records.get(&number).filter(|record| !record.also.is_empty()) else { return };
        let own: Vec<(Kind, u32)> = record.own().collect();
        let idle = |&(kind, index): &(Kind, u32)| {
            self.objects.get(kind, index).is_none_or(|object| object.references == 0 && object.users <= 1)
        };
        if own.iter().all(idle) {
            self.log_remove(number);
            own.into_iter().for_each(|(kind, index)| self.unused(kind, index));
        }
    }

    /// The program has freed a handle.
    pub fn freed(&mut self, kind: Kind, handle: usize) {
        let Some(index) = self.objects.decode(kind, handle) else { return };
        let Some(object) = self.objects.get_mut(kind, index) else { return };
        object.references = object.references.saturating_sub(1);
        let (references, users) = (object.references, object.users);
        if references > 0 {
            return;
        }
        // A handler that is set on something is still there to be asked for.
        if kind != Kind::Errhandler || users == 0 {
            self.objects.forget_lower(kind, index);
        }
        if kind == Kind::Communicator {
            // What was set on it is gone, even where it has to be made again for others.
            self.log_remove_changes(named(kind, handle), |_| true);
            // Requests may still be under way on it, or a file open that was opened by its ranks.
            if users == 0 && !self.requests.all().any(|(_, request)| request.comm == handle) {
                self.forget_comm(handle);
            }
            self.objects.unset_lower(kind, index);
        } else if users == 0 {
            self.drop_object(kind, index);
        } else {
            self.all_freed(kind, index);
        }
    }

    fn drop_object(&mut self, kind: Kind, index: u32) {
        let Some(object) = self.objects.get(kind, index) else { return };
        if kind == Kind::Communicator && object.record.is_some_and(|n| self.log.records.contains_key(&n)) {
            return;
        }
        let record = object.record;
        self.objects.forget_lower(kind, index);
        if lasting(kind) {
            self.log_remove_changes(named(kind, self.objects.encode(kind, index)), |_| true);
        }
        if let Some(record) = record {
            self.log_remove(record);
        }
        self.release(kind, index);
    }

    /// The number of an object that nobody needs is free for another, and so its handle, under which nothing is known now.
    fn release(&mut self, kind: Kind, index: u32) {
        if kind == Kind::Communicator {
            self.forget_comm(self.objects.encode(kind, index));
        }
        self.forget_attributes(kind, index);
        self.objects.release(kind, index);
    }

    /// Numbers of the communicators that this rank needs: those in use, those that these were made from, and those whose
    /// attributes are to be deleted.
    pub fn needed_comms(&self) -> BTreeSet<u64> {
        let mut needed = BTreeSet::new();
        for record in self.log.records.values().rev() {
            let Some((_, kind, index)) = record.made else { continue };
            if record.comm == 0 {
                continue;
            }
            let kind = KINDS[usize::from(kind)];
            let in_use = self.objects.get(kind, index).is_some_and(|o| o.references > 0 || o.users > 0);
            if in_use || self.has_lingering(kind, index) {
                needed.insert(record.comm);
            }
        }
        needed
    }

    /// Removes the records of communicators that no rank needs.
    pub fn keep_comms(&mut self, needed: &BTreeSet<u64>) {
        let gone: Vec<u64> = self
            .log
            .records
            .iter()
            .rev()
            .filter(|(_, r)| r.comm != 0 && !needed.contains(&r.comm))
            .map(|(&number, _)| number)
            .collect();
        for number in gone {
            let made = self.log.records.get(&number).and_then(|r| r.made);
            self.log_remove(number);
            if let Some((_, kind, index)) = made {
                self.release(KINDS[usize::from(kind)], index);
            }
        }
    }
}
