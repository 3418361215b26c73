//! Numbers, addresses and predefined handles between the program's interface and that of the machine's library.
use crate::library::Library;
use crate::upper::Upper;
use phasecast_abi::{Abi, Constant, Domain, Kind, Value, constant, constants};
use rustc_hash::FxHashMap;

/// Translates what both sides know from the start.
pub struct Values {
    /// The program's interface.
    pub upper: Abi,
    /// The library's.
    pub lower: Abi,
    /// `MPI_REQUEST_NULL` in the program's form.
    pub request_null: usize,
    /// The program's null handles.
    nulls: FxHashMap<Kind, usize>,
    down: FxHashMap<(Kind, usize), usize>,
    up: FxHashMap<(Kind, usize), usize>,
    program: Upper,
    /// Addresses that mean something else than memory, in the program's form.
    constant_addresses: Vec<usize>,
    /// The library's form of such an address, by its neutral form.
    below: FxHashMap<(Domain, i64), usize>,
}

/// Domains in which some addresses are constants.
const ADDRESSES: [Domain; 5] = [
    Domain::BufferAddress,
    Domain::StatusAddress,
    Domain::ArgumentAddress,
    Domain::ErrorCodesAddress,
    Domain::WeightsAddress,
];

impl Values {
    /// The translation between a program and a library.
    pub fn new(program: Upper, library: &Library) -> Values {
        let (upper, lower) = (program.abi(), library.abi);
        let (mut down, mut up) = (FxHashMap::default(), FxHashMap::default());
        for constant in constants() {
            let Domain::Handle(kind) = constant.domain else { continue };
            let value = |abi: Abi, symbols: &dyn phasecast_abi::Symbols| -> Option<usize> {
                use phasecast_abi::Value;
                match constant.value(abi) {
                    Value::Absent => None,
                    Value::Number(number) => Some(number as usize),
                    Value::Symbol(name) => symbols.address(name),
                    Value::Variable(name) => symbols.variable(name),
                }
            };
            if let (Some(above), Some(below)) = (value(upper, &program), value(lower, library)) {
                down.entry((kind, above)).or_insert(below);
                up.entry((kind, below)).or_insert(above);
            }
        }
        let mut values = Values {
            upper,
            lower,
            request_null: 0,
            nulls: FxHashMap::default(),
            down,
            up,
            program,
            constant_addresses: Vec::new(),
            below: FxHashMap::default(),
        };
        let null = |c: &'static Constant| match c.domain {
            Domain::Handle(kind) if c.name.ends_with("_NULL") => Some((kind, values.above(c.name)?)),
            _ => None,
        };
        values.nulls = constants().filter_map(null).collect();
        values.request_null = values.null(Kind::Request).unwrap_or(0);
        for constant in constants().filter(|c| ADDRESSES.contains(&c.domain)) {
            if let (Some(above), Some(below)) = (values.above(constant.name), library.constant(constant.name)) {
                values.constant_addresses.push(above);
                if let Some(neutral) = upper.to_neutral(constant.domain, above as i64, &values.program) {
                    values.below.insert((constant.domain, neutral), below);
                }
            }
        }
        values
    }

    /// Whether both sides speak the same interface.
    pub fn same(&self) -> bool {
        self.upper == self.lower
    }

    /// What is known of the program's library.
    pub fn program(&self) -> &Upper {
        &self.program
    }

    /// The library's form of a predefined handle.
    pub fn handle_down(&self, kind: Kind, handle: usize) -> Option<usize> {
        self.down.get(&(kind, handle)).copied()
    }

    /// The program's form of a predefined handle.
    pub fn handle_up(&self, kind: Kind, handle: usize) -> Option<usize> {
        let known = self.up.get(&(kind, handle)).copied();
        // MPICH has predefined objects of its own, whose handles say so in their first bits.
        known.or_else(|| (self.same() && self.upper == Abi::Mpich && handle >> 30 == 1).then_some(handle))
    }

    /// An object of the library stands for a predefined one of the program from now on.
    pub fn stand(&mut self, kind: Kind, above: usize, below: usize) {
        self.down.insert((kind, above), below);
        self.up.insert((kind, below), above);
    }

    /// Predefined handles of the program, with their form below.
    pub fn predefined(&self) -> impl Iterator<Item = (Kind, usize, usize)> + '_ {
        self.down.iter().map(|(&(kind, above), &below)| (kind, above, below))
    }

    /// The program's null handle of a kind.
    pub fn null(&self, kind: Kind) -> Option<usize> {
        self.nulls.get(&kind).copied()
    }

    /// The program's form of a constant.
    pub fn above(&self, name: &str) -> Option<usize> {
        use phasecast_abi::{Symbols, Value};
        match phasecast_abi::constant(name)?.value(self.upper) {
            Value::Absent => None,
            Value::Number(number) => Some(number as usize),
            Value::Symbol(symbol) => self.program.address(symbol),
            Value::Variable(symbol) => self.program.variable(symbol),
        }
    }

    /// A number of the program in the library's form; itself where it has no other.
    #[inline]
    pub fn down(&self, domain: Domain, value: i64, library: &Library) -> i64 {
        if self.upper == self.lower {
            return value;
        }
        let neutral = match domain {
            // Any other number may be what the constant is in the neutral form.
            Domain::DistributionArgument => return distribution_argument(value, self.upper, self.lower),
            // The program may hold a code, of which the class is a part.
            Domain::ErrorClass => Some(self.upper.error_class_to_neutral(value as i32).into()),
            _ => self.upper.to_neutral(domain, value, &self.program),
        };
        neutral.and_then(|n| self.lower.from_neutral(domain, n, library)).unwrap_or(value)
    }

    /// A number of the library in the program's form; itself where it has no other.
    #[inline]
    pub fn up(&self, domain: Domain, value: i64, library: &Library) -> i64 {
        if self.upper == self.lower {
            return value;
        }
        if domain == Domain::DistributionArgument {
            return distribution_argument(value, self.lower, self.upper);
        }
        let neutral = self.lower.to_neutral(domain, value, library);
        neutral.and_then(|n| self.upper.from_neutral(domain, n, &self.program)).unwrap_or(value)
    }
}

/// An argument of a distribution: a number, or the constant.
fn distribution_argument(value: i64, from: Abi, to: Abi) -> i64 {
    let usual = |abi: Abi| match constant("MPI_DISTRIBUTE_DFLT_DARG").map(|usual| usual.value(abi)) {
        Some(Value::Number(number)) => Some(number),
        _ => None,
    };
    usual(to).filter(|_| usual(from) == Some(value)).unwrap_or(value)
}

impl Values {
    /// An address of the program that may be a constant, in the library's form.
    #[inline]
    pub fn address_down(&self, domain: Domain, value: usize) -> usize {
        let same = self.upper == self.lower && domain != Domain::WeightsAddress;
        if same || !self.constant_addresses.contains(&value) {
            return value;
        }
        let neutral = self.upper.to_neutral(domain, value as i64, &self.program);
        // The library's addresses of constants are numbers, or variables that `below` holds.
        neutral.and_then(|n| self.below.get(&(domain, n)).copied()).unwrap_or(value)
    }
}

impl Values {
    /// Whether an address of the program means something else than memory.
    pub fn address_is_constant(&self, value: usize) -> bool {
        self.constant_addresses.contains(&value)
    }
}
