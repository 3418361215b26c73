//! Every constant of MPI with its value in each binary interface: the one place for these facts.

mod handles;
mod numbers;

use crate::interface::Abi;
use crate::model::Kind;
use std::sync::OnceLock;

/// What a constant is about. The same number means different things in different domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// Handle of this kind.
    Handle(Kind),
    /// Rank, wildcards and sentinels included.
    Rank,
    /// Tag.
    Tag,
    /// `MPI_UNDEFINED`, which serves many domains.
    Undefined,
    /// Address of a buffer.
    BufferAddress,
    /// Address of a status or of several.
    StatusAddress,
    /// `argv` of a spawn.
    ArgumentAddress,
    /// Address of error codes of a spawn.
    ErrorCodesAddress,
    /// Address of weights of a graph.
    WeightsAddress,
    /// Level of thread support.
    ThreadLevel,
    /// Error class.
    ErrorClass,
    /// Size that the interface fixes: of texts, and of the overhead of a buffered send.
    Size,
    /// Bits of a file's access mode.
    FileMode,
    /// Bits of an assertion about a window.
    WindowAssertion,
    /// Order of an array.
    Order,
    /// Distribution of a dimension.
    Distribution,
    /// Argument of a distribution.
    DistributionArgument,
    /// Combiner of a datatype.
    Combiner,
    /// Class of a Fortran type.
    TypeClass,
    /// Result of a comparison.
    Comparison,
    /// Kind of a topology.
    Topology,
    /// Kind of a split.
    SplitType,
    /// Kind of a lock.
    LockType,
    /// How a window was made.
    WindowFlavor,
    /// Memory model of a window.
    WindowModel,
    /// What a seek counts from.
    Whence,
    /// Predefined attribute key.
    Keyval,
    /// Offset in a file.
    FileOffset,
}

/// Value of a constant in one binary interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// The interface has no such constant.
    Absent,
    /// This number.
    Number(i64),
    /// The address of this symbol of the library.
    Symbol(&'static str),
    /// What the library's variable of this name holds.
    Variable(&'static str),
}

/// A constant with its value in each interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Name in the standard.
    pub name: &'static str,
    /// What it is about.
    pub domain: Domain,
    /// Values, in the order of [`Abi::ALL`].
    pub values: [Value; 3],
}

impl Constant {
    /// Value in an interface.
    pub const fn value(&self, abi: Abi) -> Value {
        self.values[abi as usize]
    }
}

/// All constants. Of two names for one value, the first is the one that values are named by.
pub fn constants() -> impl Iterator<Item = &'static Constant> {
    numbers::NUMBERS.iter().chain(handles::HANDLES)
}

/// Those of a domain: calls ask for them, so that not all are looked through.
pub(crate) fn constants_of(domain: Domain) -> impl Iterator<Item = &'static Constant> {
    static DOMAINS: OnceLock<Vec<&'static [Constant]>> = OnceLock::new();
    let domains = DOMAINS.get_or_init(|| {
        let of = |table: &'static [Constant]| table.chunk_by(|a, b| a.domain == b.domain);
        of(numbers::NUMBERS).chain(of(handles::HANDLES)).collect()
    });
    domains.iter().filter(move |rows| rows[0].domain == domain).copied().flatten()
}

/// The constant of this name.
pub const fn constant(name: &str) -> Option<&'static Constant> {
    match find(numbers::NUMBERS, name) {
        Some(found) => Some(found),
        None => find(handles::HANDLES, name),
    }
}

/// The number that a constant is; for tables made at compile time, hence the panic.
pub(crate) const fn number(name: &str, abi: Abi) -> i64 {
    match constant(name) {
        Some(c) => match c.value(abi) {
            Value::Number(n) => n,
            _ => panic!("not a number"),
        },
        None => panic!("no such constant"),
    }
}

const fn find(table: &'static [Constant], name: &str) -> Option<&'static Constant> {
    let mut i = 0;
    while i < table.len() {
        if equal(table[i].name.as_bytes(), name.as_bytes()) {
            return Some(&table[i]);
        }
        i += 1;
    }
    None
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}
