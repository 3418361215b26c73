//! Translation to the neutral form and back, for every constant, and for statuses and numbers at random.

use phasecast_abi::{Abi, Domain, Kind, NoSymbols, Status, Symbols, Value, constant, constants};
use proptest::prelude::*;

/// A library in which each symbol has an address of its own.
struct Library;

impl Symbols for Library {
    fn address(&self, symbol: &str) -> Option<usize> {
        let hash = symbol.bytes().fold(7usize, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
        Some(0x7f00_0000_0000 | (hash & 0xffff_ffff) << 4)
    }

    fn variable(&self, symbol: &str) -> Option<usize> {
        self.address(symbol).map(|a| a + 8)
    }
}

fn resolved(value: Value) -> Option<i64> {
    match value {
        Value::Absent => None,
        Value::Number(n) => Some(n),
        Value::Symbol(s) => Library.address(s).map(|a| a as i64),
        Value::Variable(s) => Library.variable(s).map(|a| a as i64),
    }
}

#[test]
fn every_constant_survives_the_way_to_neutral_and_back() {
    let mut pairs = 0;
    for abi in Abi::ALL {
        for c in constants().filter(|c| c.domain != Domain::Size) {
            let (Some(own), Some(neutral)) = (resolved(c.value(abi)), resolved(c.value(Abi::Standard))) else {
                continue;
            };
            assert_eq!(abi.to_neutral(c.domain, own, &Library), Some(neutral), "{abi:?} {}", c.name);
            assert_eq!(abi.from_neutral(c.domain, neutral, &Library), Some(own), "{abi:?} {}", c.name);
            pairs += 1;
        }
    }
    assert!(pairs > 3 * 260, "only {pairs} pairs");
}

#[test]
fn names_and_domains_are_unambiguous() {
    let mut names: Vec<&str> = constants().map(|c| c.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a constant stands twice in the table");
    for abi in Abi::ALL {
        for c in constants().filter(|c| c.domain != Domain::Size) {
            let Some(own) = resolved(c.value(abi)) else { continue };
            let name = abi.constant_name(c.domain, own, &Library).expect("a constant has a name");
            let alias = constant(name).expect("it is in the table");
            assert_eq!(alias.value(Abi::Standard), c.value(Abi::Standard), "{abi:?}: {} and {name} are one", c.name);
        }
    }
}

#[test]
fn what_is_no_constant_is_refused() {
    let comm = Domain::Handle(Kind::Communicator);
    assert_eq!(Abi::Mpich.to_neutral(comm, 0x8400_0007, &NoSymbols), None);
    assert_eq!(Abi::OpenMpi.to_neutral(comm, 0x5555_0000_1000, &Library), None);
    assert_eq!(Abi::OpenMpi.to_neutral(Domain::Size, 256, &NoSymbols), None);
    assert_eq!(Abi::OpenMpi.to_neutral(Domain::Rank, -77, &NoSymbols), None);
    assert_eq!(Abi::Mpich.to_neutral(Domain::FileMode, 1 << 20, &NoSymbols), None);
    assert_eq!(Abi::OpenMpi.from_neutral(Domain::Handle(Kind::Datatype), 0x2e0, &Library), None, "MPI_LOGICAL16");
}

#[test]
fn junk_above_a_narrow_handle_does_not_matter() {
    let world = Abi::Mpich.to_neutral(Domain::Handle(Kind::Communicator), 0x7fff_0000_4400_0000_u64 as i64, &NoSymbols);
    assert_eq!(world, Some(0x101));
    let float_int =
        Abi::Mpich.to_neutral(Domain::Handle(Kind::Datatype), i64::from(0x8c00_0000_u32 as i32), &NoSymbols);
    assert_eq!(float_int, Some(0x228));
}

#[test]
fn sums_of_modes_translate_bit_by_bit() {
    let mpich = Abi::Mpich;
    let bit = |name: &str, abi: Abi| resolved(constant(name).expect("known").value(abi)).expect("a number");
    let sum = |abi| bit("MPI_MODE_CREATE", abi) | bit("MPI_MODE_WRONLY", abi) | bit("MPI_MODE_EXCL", abi);
    assert_eq!(mpich.to_neutral(Domain::FileMode, sum(mpich), &NoSymbols), Some(sum(Abi::Standard)));
    assert_eq!(Abi::OpenMpi.to_neutral(Domain::WindowAssertion, 0, &NoSymbols), Some(0));
}

#[test]
fn libraries_are_known_by_name_and_by_symbols() {
    assert_eq!(Abi::of_library("/usr/lib/x86_64-linux-gnu/libmpi.so.40"), Some(Abi::OpenMpi));
    assert_eq!(Abi::of_library("libmpi.so.40.30.4"), Some(Abi::OpenMpi));
    assert_eq!(Abi::of_library("libmpich.so.12"), Some(Abi::Mpich));
    assert_eq!(Abi::of_library("/opt/libmpi.so.12"), Some(Abi::Mpich));
    assert_eq!(Abi::of_library("libmpi_abi.so.1"), Some(Abi::Standard));
    assert_eq!(Abi::of_library("libmpi.so"), None);
    assert_eq!(Abi::of_library("libm.so.6"), None);
    assert_eq!(Abi::of_symbols(|s| s == "ompi_mpi_comm_world"), Some(Abi::OpenMpi));
    assert_eq!(Abi::of_symbols(|s| s == "MPI_UNWEIGHTED" || s == "MPI_Abi_get_version"), Some(Abi::Mpich));
    assert_eq!(Abi::of_symbols(|s| s == "MPI_Abi_get_version"), Some(Abi::Standard));
    assert_eq!(Abi::of_symbols(|_| false), None);
}

#[test]
fn a_short_status_is_refused() {
    for abi in Abi::ALL {
        let size = abi.layout().status.size;
        assert_eq!(Status::read(abi, &vec![0; size - 1]), None);
        assert_eq!(Status::default().write(abi, &mut vec![0; size - 1]), None);
        assert!(Status::read(abi, &vec![0; size]).is_some());
    }
}

#[test]
fn error_codes_of_mpich_carry_their_class() {
    let truncate = |abi| resolved(constant("MPI_ERR_TRUNCATE").expect("known").value(abi)).expect("a number") as i32;
    let code = truncate(Abi::Mpich) | 0x0c80_0000;
    assert_eq!(Abi::Mpich.error_class_to_neutral(code), truncate(Abi::Standard));
    assert_eq!(Abi::OpenMpi.error_class_to_neutral(12_345), 14, "MPI_ERR_UNKNOWN");
}

proptest! {
    #[test]
    fn error_classes_are_those_of_the_table(class in prop_oneof![0..200i32, 950..1100, any::<i32>()]) {
        for abi in Abi::ALL {
            let of_code = if abi == Abi::Mpich { class & 0x7f } else { class };
            let neutral = abi.to_neutral(Domain::ErrorClass, of_code.into(), &NoSymbols).unwrap_or(14);
            prop_assert_eq!(i64::from(abi.error_class_to_neutral(class)), neutral);
        }
    }

    #[test]
    fn statuses_survive_every_interface(
        source in prop_oneof![0..1_000_000i32, Just(-1), Just(-3)],
        tag in prop_oneof![0..i32::MAX, Just(-2)],
        error in 0..63i32,
        bytes in 0..(1u64 << 62),
        cancelled: bool,
    ) {
        let status = Status { source, tag, error, bytes, cancelled };
        for abi in Abi::ALL {
            let has_error = abi.from_neutral(Domain::ErrorClass, error.into(), &NoSymbols).is_some();
            let status = if has_error { status } else { Status { error: 0, ..status } };
            let mut raw = vec![0xaa; abi.layout().status.size + 8];
            status.write(abi, &mut raw).expect("it fits");
            prop_assert_eq!(Status::read(abi, &raw), Some(status));
            prop_assert_eq!(&raw[abi.layout().status.size..], &[0xaa; 8]);
        }
    }

    #[test]
    fn plain_ranks_and_tags_mean_themselves(n in 0..i32::MAX) {
        for abi in Abi::ALL {
            for domain in [Domain::Rank, Domain::Tag] {
                prop_assert_eq!(abi.to_neutral(domain, n.into(), &NoSymbols), Some(n.into()));
                prop_assert_eq!(abi.from_neutral(domain, n.into(), &NoSymbols), Some(n.into()));
            }
        }
    }

    #[test]
    fn no_value_makes_translation_panic(value: i64, index in 0usize..293) {
        let domain = constants().nth(index).expect("an index").domain;
        for abi in Abi::ALL {
            if let Some(neutral) = abi.to_neutral(domain, value, &Library) {
                prop_assert!(abi.from_neutral(domain, neutral, &Library).is_some());
            }
        }
    }
}
