//! Translation of numbers, addresses, predefined handles and statuses between a binary interface and the neutral form,
//! which is the MPI-5 ABI's.

use crate::constants::{Constant, Domain, Value, constants_of};
use crate::interface::{Abi, CountLayout};
use std::sync::OnceLock;

/// Finds what only the loaded library knows: where its symbols are.
pub trait Symbols {
    /// Address of a symbol of the MPI library.
    fn address(&self, symbol: &str) -> Option<usize>;
    /// The pointer that a variable of the MPI library holds.
    fn variable(&self, symbol: &str) -> Option<usize>;
}

/// No library at hand: enough for MPICH's and the MPI-5 interface, and for the numbers of Open MPI's.
#[derive(Clone, Copy, Debug)]
pub struct NoSymbols;

impl Symbols for NoSymbols {
    fn address(&self, _: &str) -> Option<usize> {
        None
    }

    fn variable(&self, _: &str) -> Option<usize> {
        None
    }
}

/// How a domain treats values that are no constants.
#[derive(PartialEq)]
enum Others {
    /// Numbers from zero up mean themselves.
    NonNegative,
    /// Any other value is an address.
    Addresses,
    /// Values are sums of constants.
    Bits,
    /// There are none.
    Unknown,
}

impl Domain {
    fn others(self) -> Others {
        match self {
            Domain::Rank | Domain::Tag | Domain::FileOffset | Domain::DistributionArgument => Others::NonNegative,
            Domain::BufferAddress
            | Domain::StatusAddress
            | Domain::ArgumentAddress
            | Domain::ErrorCodesAddress
            | Domain::WeightsAddress => Others::Addresses,
            Domain::FileMode | Domain::WindowAssertion => Others::Bits,
            _ => Others::Unknown,
        }
    }
}

impl Abi {
    /// The neutral form of a value of this interface. Handles and addresses are passed as their bits. `None` if it has
    /// none: a handle that the program made, an error code that is no class, a constant that the MPI-5 ABI lacks, a size
    /// (sizes are looked up by name, no call passes them).
    pub fn to_neutral(self, domain: Domain, value: i64, symbols: &dyn Symbols) -> Option<i64> {
        translate(domain, value, self, Abi::Standard, symbols)
    }

    /// The value in this interface of a neutral form; the reverse of [`Abi::to_neutral`].
    pub fn from_neutral(self, domain: Domain, neutral: i64, symbols: &dyn Symbols) -> Option<i64> {
        translate(domain, neutral, Abi::Standard, self, symbols)
    }

    /// Name of the constant that a value is, in this interface.
    pub fn constant_name(self, domain: Domain, value: i64, symbols: &dyn Symbols) -> Option<&'static str> {
        let value = self.normal(domain, value);
        constants_of(domain).find(|c| self.resolve(c.value(self), symbols) == Some(value)).map(|c| c.name)
    }

    /// Handles narrower than a register come with junk above.
    fn normal(self, domain: Domain, value: i64) -> i64 {
        match domain {
            Domain::Handle(kind) if self.layout().handle_bytes_of(kind) == 4 => value & 0xffff_ffff,
            _ => value,
        }
    }

    fn resolve(self, value: Value, symbols: &dyn Symbols) -> Option<i64> {
        match value {
            Value::Absent => None,
            Value::Number(number) => Some(number),
            Value::Symbol(name) => symbols.address(name).map(|a| a as i64),
            Value::Variable(name) => symbols.variable(name).map(|a| a as i64),
        }
    }
}

fn translate(domain: Domain, value: i64, from: Abi, to: Abi, symbols: &dyn Symbols) -> Option<i64> {
    if domain == Domain::Size {
        return None;
    }
    let value = from.normal(domain, value);
    if domain.others() == Others::Bits {
        return bits(domain, value, from, to, symbols);
    }
    // The first row with the value that both sides have: an alias may be all that one of them knows.
    let row = constants_of(domain).find_map(|c| {
        (from.resolve(c.value(from), symbols) == Some(value)).then(|| to.resolve(c.value(to), symbols)).flatten()
    });
    if row.is_some() {
        return row;
    }
    let known = constants_of(domain).any(|c| from.resolve(c.value(from), symbols) == Some(value));
    let undefined = i64::from(from.layout().undefined);
    match domain.others() {
        _ if known => None,
        Others::NonNegative if value >= 0 => Some(value),
        Others::Addresses => Some(value),
        _ if value == undefined && !matches!(domain, Domain::Handle(_)) => Some(i64::from(to.layout().undefined)),
        _ => None,
    }
}

fn bits(domain: Domain, value: i64, from: Abi, to: Abi, symbols: &dyn Symbols) -> Option<i64> {
    let mut rest = value;
    let mut out = 0;
    for c in constants_of(domain) {
        if let Some(bit) = from.resolve(c.value(from), symbols)
            && rest & bit == bit
        {
            out |= to.resolve(c.value(to), symbols)?;
            rest &= !bit;
        }
    }
    (rest == 0).then_some(out)
}

/// A status in neutral form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Status {
    /// Rank of the sender, in neutral form.
    pub source: i32,
    /// Tag, in neutral form.
    pub tag: i32,
    /// Error class, in neutral form; `MPI_ERR_UNKNOWN` for a code that is no class. Only calls that return
    /// `MPI_ERR_IN_STATUS` set it: junk otherwise.
    pub error: i32,
    /// Bytes received.
    pub bytes: u64,
    /// Whether the operation was cancelled.
    pub cancelled: bool,
}

impl Status {
    /// Reads a status of an interface from its bytes; `None` if they are too few.
    #[inline]
    pub fn read(abi: Abi, raw: &[u8]) -> Option<Status> {
        let layout = abi.layout();
        let at = |offset: usize| Some(i32::from_ne_bytes(raw.get(offset..offset + 4)?.try_into().ok()?));
        raw.get(..layout.status.size)?;
        let (bytes, cancelled) = match layout.status.count {
            CountLayout::Apart { bytes, cancelled } => {
                (u64::from_ne_bytes(raw.get(bytes..bytes + 8)?.try_into().ok()?), at(cancelled)? != 0)
            }
            CountLayout::Packed { low, high } => {
                let (low, high) = (at(low)? as u32, at(high)? as u32);
                (u64::from(low) | u64::from(high >> 1) << 32, high & 1 != 0)
            }
        };
        // Ranks and tags from zero up, and success, mean the same everywhere: the tables need not be asked.
        let neutral = |domain, v: i32| abi.to_neutral(domain, v.into(), &NoSymbols).map_or(v, |n| n as i32);
        let rank = |v: i32| if v >= 0 { v } else { neutral(Domain::Rank, v) };
        let tag = |v: i32| if v >= 0 { v } else { neutral(Domain::Tag, v) };
        let error = |v: i32| if v == 0 { v } else { abi.error_class_to_neutral(v) };
        Some(Status {
            source: rank(at(layout.status.source)?),
            tag: tag(at(layout.status.tag)?),
            error: error(at(layout.status.error)?),
            bytes,
            cancelled,
        })
    }

    /// Writes the status in the form of an interface; bytes beyond those of a status stay. `None`, and nothing written,
    /// if the space is too small.
    pub fn write(&self, abi: Abi, raw: &mut [u8]) -> Option<()> {
        let layout = abi.layout();
        let raw = raw.get_mut(..layout.status.size)?;
        raw.fill(0);
        let mut put = |offset: usize, value: i32| raw[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
        let from = |domain, v: i32| abi.from_neutral(domain, v.into(), &NoSymbols).map_or(v, |n| n as i32);
        let number = |domain, v: i32| if v >= 0 { v } else { from(domain, v) };
        put(layout.status.source, number(Domain::Rank, self.source));
        put(layout.status.tag, number(Domain::Tag, self.tag));
        put(layout.status.error, if self.error == 0 { 0 } else { from(Domain::ErrorClass, self.error) });
        match layout.status.count {
            CountLayout::Apart { bytes, cancelled } => {
                put(cancelled, i32::from(self.cancelled));
                raw[bytes..bytes + 8].copy_from_slice(&self.bytes.to_ne_bytes());
            }
            CountLayout::Packed { low, high } => {
                put(low, self.bytes as u32 as i32);
                put(high, (((self.bytes >> 32) as u32) << 1 | u32::from(self.cancelled)) as i32);
            }
        }
        Some(())
    }
}

impl Abi {
    /// The neutral error class of an error code; `MPI_ERR_UNKNOWN` if the code does not tell.
    pub fn error_class_to_neutral(self, code: i32) -> i32 {
        /// MPICH's codes carry their class in these bits.
        const MPICH_CLASS: i32 = 0x7f;
        let class = if self == Abi::Mpich { code & MPICH_CLASS } else { code };
        let classes = self.classes();
        match classes.binary_search_by_key(&class, |&(class, _)| class) {
            Ok(at) => classes[at].1,
            Err(_) => crate::constants::number("MPI_ERR_UNKNOWN", Abi::Standard) as i32,
        }
    }

    /// Error classes with their neutral form, in order. Statuses hold junk in the place of one, for which all constants would be
    /// looked through.
    fn classes(self) -> &'static [(i32, i32)] {
        static CLASSES: OnceLock<[Vec<(i32, i32)>; 3]> = OnceLock::new();
        let of = |abi: Abi| {
            let form = |abi: Abi, c: &Constant| Some(abi.resolve(c.value(abi), &NoSymbols)? as i32);
            let rows = constants_of(Domain::ErrorClass).filter_map(|c| Some((form(abi, c)?, form(Abi::Standard, c)?)));
            let mut rows: Vec<_> = rows.collect();
            // Of two names for one value the first one counts.
            rows.sort_by_key(|&(class, _)| class);
            rows.dedup_by_key(|&mut (class, _)| class);
            rows
        };
        &CLASSES.get_or_init(|| Abi::ALL.map(of))[self as usize]
    }
}
