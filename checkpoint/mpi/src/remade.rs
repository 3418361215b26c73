//! Constructors that are made again after a restart by another procedure, as what they yield depends on the machine or on
//! the library.
use crate::calls::lower;
use crate::log::{Argument, Record};
use crate::objects::slot;
use crate::session::Session;
use phasecast_abi::Kind;

impl Record {
    /// Ranks that share something on this machine stay together on another, where others may share it:
    /// `MPI_Comm_split_type` is made again as `MPI_Comm_split`.
    pub fn as_split(&mut self, color: usize, key: usize) {
        if self.procedure != "MPI_Comm_split_type" {
            return;
        }
        let [comm, _, _, _, new] = &mut self.arguments[..] else { return };
        let placeholder = || Argument::Word(0);
        let (comm, new) = (std::mem::replace(comm, placeholder()), std::mem::replace(new, placeholder()));
        self.arguments = vec![comm, Argument::Word(color), Argument::Word(key), new];
        self.is_now("MPI_Comm_split");
        self.needs.retain(|&(kind, _)| usize::from(kind) == slot(Kind::Communicator));
    }

    /// The order of a rank's neighbours, by which the program's buffers are arranged, is the library's own where other ranks
    /// have named them: `MPI_Dist_graph_create` is made again as `MPI_Dist_graph_create_adjacent`, with the neighbours of
    /// `comm` as they stand now.
    pub fn as_adjacent(&mut self, s: &mut Session, comm: usize) {
        if self.procedure != "MPI_Dist_graph_create" {
            return;
        }
        let library = s.library;
        let lower = s.down_handle(Kind::Communicator, comm);
        let (mut sources, mut destinations, mut weighted) = (0i32, 0i32, 0i32);
        let (in_at, out_at, weighted_at) = (&raw mut sources, &raw mut destinations, &raw mut weighted);
        if lower!(library, MPI_Dist_graph_neighbors_count(lower, in_at, out_at, weighted_at)) != 0 {
            return;
        }
        let list = |count: i32| vec![0i32; count.max(1) as usize];
        let (mut from, mut from_weights) = (list(sources), list(sources));
        let (mut to, mut to_weights) = (list(destinations), list(destinations));
        let (from_at, from_weights_at) = (from.as_mut_ptr(), from_weights.as_mut_ptr());
        let (to_at, to_weights_at) = (to.as_mut_ptr(), to_weights.as_mut_ptr());
        let rc = lower!(
            library,
            MPI_Dist_graph_neighbors(lower, sources, from_at, from_weights_at, destinations, to_at, to_weights_at)
        );
        let [parent, .., info, reorder, new] = &mut self.arguments[..] else { return };
        if rc != 0 {
            return;
        }
        let bytes = |list: &[i32]| Argument::Bytes(list.iter().flat_map(|number| number.to_ne_bytes()).collect());
        let unweighted = s.values.above("MPI_UNWEIGHTED").unwrap_or(0);
        let weights = |list: &[i32]| if weighted != 0 { bytes(list) } else { Argument::Word(unweighted) };
        let mut kept = [parent, info, reorder, new].map(|word| std::mem::replace(word, Argument::Word(0))).into_iter();
        let number = |count: i32| Argument::Word(count as usize);
        let mut arguments: Vec<Argument> = kept.next().into_iter().collect();
        arguments.extend([number(sources), bytes(&from), weights(&from_weights)]);
        arguments.extend([number(destinations), bytes(&to), weights(&to_weights)]);
        arguments.extend(kept);
        self.arguments = arguments;
        self.is_now("MPI_Dist_graph_create_adjacent");
    }

    /// It is of another procedure, the last of whose arguments is the new communicator.
    fn is_now(&mut self, procedure: &str) {
        self.procedure = procedure.into();
        if let Some((argument, ..)) = &mut self.made {
            *argument = self.arguments.len() as u8 - 1;
        }
    }
}
