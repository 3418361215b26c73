//! The words in which a procedure of MPI is described: what each argument is, how it travels, and (`class`) what the
//! procedure does for somebody who follows a program's communication. The code generator shares these files, so that it
//! can be rebuilt even where the generated table is out of date.

mod class;

pub use class::{Callers, Class, IoStep, Pattern, RmaStep, SendMode, Timing, Vector, Which};

/// Version of the MPI standard, as (major, minor).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u8, pub u8);

/// What an argument means. Kinds of the standard that nobody here tells apart are folded together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Address of data to be sent, received, read, written, packed or exposed.
    Buffer,
    /// Where the address of memory made or given back by MPI goes.
    BufferAddress,
    /// Number of elements of a datatype.
    Count,
    /// Distance within a buffer or a window, in elements or bytes.
    Displacement,
    /// A size in bytes.
    Bytes,
    /// Offset in a file.
    Offset,
    /// An address as a number.
    Location,
    /// Rank to which this process sends.
    Dest,
    /// Rank from which this process receives; may be `MPI_ANY_SOURCE` on input.
    Source,
    /// Rank with a special part in a collective.
    Root,
    /// Rank whose window a one-sided procedure works on.
    TargetRank,
    /// Any other rank.
    Rank,
    /// Message tag.
    Tag,
    /// Number of partitions, or index of one.
    Partition,
    /// Communicator.
    Communicator,
    /// Datatype.
    Datatype,
    /// Reduction operation.
    Operation,
    /// Request.
    Request,
    /// Matched message.
    Message,
    /// Group.
    Group,
    /// Window.
    Window,
    /// File.
    File,
    /// Info object.
    Info,
    /// Error handler.
    Errhandler,
    /// Session.
    Session,
    /// Handle of the tools interface (`MPI_T_*`).
    ToolHandle,
    /// Status.
    Status,
    /// Status in its Fortran form.
    FortranStatus,
    /// Handle in its Fortran form.
    FortranHandle,
    /// Length of an array given in another argument.
    ArrayLength,
    /// Index in an array.
    Index,
    /// Truth value.
    Flag,
    /// Text.
    String,
    /// Length of a text.
    StringLength,
    /// `argc`.
    ArgumentCount,
    /// `argv`.
    ArgumentList,
    /// Attribute key.
    Keyval,
    /// Attribute value.
    AttributeValue,
    /// The caller's own pointer, handed back to a callback.
    ExtraState,
    /// Callback.
    Function,
    /// Error code or error class.
    ErrorCode,
    /// Level of thread support.
    ThreadLevel,
    /// The level of `MPI_Pcontrol`.
    ProfileLevel,
    /// Seconds.
    Seconds,
    /// The `...` of C.
    Varargs,
    /// Any other number: dimension, colour, key, assertion, order, comparison, version and so on.
    Number,
}

/// The C type of an argument or, for a pointer or an array, of what it points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CType {
    /// `void`.
    Void,
    /// `char`.
    Char,
    /// `int`, or an enumeration of that size.
    Int,
    /// `MPI_Aint`: 8 bytes on all machines that phasecast runs on.
    Aint,
    /// `MPI_Count`: 8 bytes.
    Count,
    /// `MPI_Offset`: 8 bytes.
    Offset,
    /// `MPI_Fint`: 4 bytes.
    Fint,
    /// `double`.
    Double,
    /// A handle: its width depends on the binary interface.
    Handle,
    /// A pointer to an opaque object of the tools interface: 8 bytes with every interface.
    Opaque,
    /// `MPI_Status`.
    Status,
    /// `MPI_F08_status`.
    F08Status,
    /// A function.
    Function,
    /// The `...` of C.
    Varargs,
}

/// How an argument is passed in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Passing {
    /// As it is.
    Value,
    /// By the address of one.
    Pointer,
    /// By the address of the first of several.
    Array,
}

/// Who reads and who writes an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// MPI reads it.
    In,
    /// MPI writes it.
    Out,
    /// Both.
    InOut,
}

/// How many elements an array argument has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Length {
    /// It is no array.
    One,
    /// As many as the argument with this index says.
    Param(u8),
    /// Triples, as many as the argument with this index says.
    Triples(u8),
    /// At most this constant of the interface.
    Constant(&'static str),
    /// Only the standard's text says: size of the group, number of neighbours, of requests and so on.
    Implied,
}

/// One argument of a procedure, in the order of the C binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Name in the standard.
    pub name: &'static str,
    /// What it means.
    pub kind: Kind,
    /// C type of the argument or of what it points at.
    pub ctype: CType,
    /// By value, pointer or array.
    pub passing: Passing,
    /// Who reads and writes it.
    pub direction: Direction,
    /// Number of elements, if an array.
    pub length: Length,
    /// Significant at the root only.
    pub root_only: bool,
    /// This argument is wider in the large-count (`_c`) procedure than in the plain one.
    pub large: bool,
}

/// What a procedure returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Return {
    /// An error code.
    ErrorCode,
    /// Seconds, as `double`.
    Double,
    /// An `MPI_Aint`.
    Aint,
    /// A handle of this kind, in C form.
    Handle(Kind),
    /// A handle in Fortran or integer form.
    Int,
}

/// One buffer of a communication, with the arguments that say how much is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Side {
    /// Index of the buffer.
    pub buffer: u8,
    /// Index of the count, or of the array of counts.
    pub count: Option<u8>,
    /// Index of the datatype, or of the array of datatypes.
    pub datatype: Option<u8>,
    /// Index of the number of partitions, each of `count` elements.
    pub partitions: Option<u8>,
}

/// A procedure of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Procedure {
    /// Name of the C binding, as `MPI_Send`.
    pub name: &'static str,
    /// Arguments of the C binding.
    pub params: &'static [Param],
    /// Its buffers, in the order of the arguments.
    pub sides: &'static [Side],
    /// What it returns.
    pub returns: Return,
    /// What it does.
    pub class: Class,
    /// The standard it came with; MPI 3.1 stands for itself and all before it.
    pub since: Version,
}
