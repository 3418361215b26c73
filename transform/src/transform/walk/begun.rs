//! What nonblocking calls of a rank have begun and later calls may wait for, in the order in which it began.
use super::collectives::Part;
use std::collections::VecDeque;

/// Entries that are remembered of a rank.
const MOST: usize = 4096;

/// Something that a nonblocking call began.
#[derive(Clone, Copy)]
pub enum Begun {
    /// A message that waits for its receive on the target.
    Send(u32),
    /// One that does not; `waited` if it did on the base.
    Eager { waited: bool },
    /// A part in a collective.
    Collective(Part),
}

/// An entry, small as there may be many.
#[derive(Clone, Copy)]
enum Entry {
    Send(u32),
    /// So many in a row.
    Eager {
        waited: bool,
        count: u32,
    },
    /// The next of the parts.
    Collective,
}

/// All of a rank.
#[derive(Default)]
pub struct Pending {
    list: VecDeque<Entry>,
    parts: VecDeque<Part>,
    /// Entries that are waited for.
    waits: usize,
}

impl Pending {
    /// Whether a call that completes requests may wait for anything of it.
    #[inline]
    pub fn is_waited_for(&self) -> bool {
        self.waits > 0
    }

    /// Appends one; if there are too many, the oldest is given back.
    #[inline]
    pub fn push(&mut self, begun: Begun) -> Option<Begun> {
        let entry = match begun {
            Begun::Send(message) => Entry::Send(message),
            Begun::Eager { waited } => {
                if let Some(Entry::Eager { waited: before, count }) = self.list.back_mut()
                    && *before == waited
                {
                    *count = count.saturating_add(1);
                    return None;
                }
                Entry::Eager { waited, count: 1 }
            }
            Begun::Collective(part) => {
                self.parts.push_back(part);
                Entry::Collective
            }
        };
        self.waits += usize::from(!matches!(entry, Entry::Eager { .. }));
        self.list.push_back(entry);
        if self.list.len() <= MOST {
            return None;
        }
        if let Some(Entry::Eager { count, .. }) = self.list.front_mut() {
            *count = 1;
        }
        self.pop()
    }

    /// Takes the oldest.
    pub fn pop(&mut self) -> Option<Begun> {
        if let Entry::Eager { waited, count } = self.list.front_mut()? {
            let begun = Begun::Eager { waited: *waited };
            *count -= 1;
            if *count == 0 {
                self.list.pop_front();
            }
            return Some(begun);
        }
        self.waits -= 1;
        match self.list.pop_front()? {
            Entry::Send(message) => Some(Begun::Send(message)),
            _ => self.parts.pop_front().map(Begun::Collective),
        }
    }

    /// Takes the oldest if it is a message that is not waited for.
    pub fn pop_eager(&mut self) -> Option<Begun> {
        matches!(self.list.front(), Some(Entry::Eager { .. })).then(|| self.pop())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eager_messages_have_their_places_in_the_order() {
        let mut pending = Pending::default();
        let eager = Begun::Eager { waited: false };
        for begun in [eager, eager, Begun::Send(7), eager] {
            assert!(pending.push(begun).is_none());
        }
        assert_eq!((pending.list.len(), pending.is_waited_for()), (3, true));
        assert!(matches!(pending.pop(), Some(Begun::Eager { .. })));
        assert!(matches!(pending.pop_eager(), Some(Begun::Eager { .. })));
        assert!(pending.pop_eager().is_none());
        assert!(matches!(pending.pop(), Some(Begun::Send(7))) && !pending.is_waited_for());
        assert!(pending.pop().is_some() && pending.pop().is_none());
        assert!((0..=MOST as u32).filter_map(|id| pending.push(Begun::Send(id))).count() == 1);
        assert_eq!(pending.waits, MOST);
        assert!(size_of::<Entry>() <= 8);
    }
}
