//! The three binary interfaces that programs speak, and how each lays out what it passes: widths of handles, the status,
//! and the numbers that a tracer compares with on its hot path.

use crate::constants::number;
use crate::model::Kind;

/// A binary interface of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Abi {
    /// Open MPI 4 and 5: handles are pointers.
    OpenMpi = 0,
    /// MPICH 3.2 to 5 and its kin (Intel MPI, MVAPICH, Cray MPICH): handles are 32-bit numbers.
    Mpich = 1,
    /// The standard interface of MPI 5: handles are pointers, predefined ones small numbers. The neutral form.
    Standard = 2,
}

impl Abi {
    /// All interfaces, in the order of the columns of the table of constants.
    pub const ALL: [Abi; 3] = [Abi::OpenMpi, Abi::Mpich, Abi::Standard];

    /// Its layout.
    pub fn layout(self) -> &'static Layout {
        &LAYOUTS[self as usize]
    }

    /// The interface of a library, by its file name or soname: `libmpi.so.40`, `libmpich.so.12`, `libmpi_abi.so.0`.
    /// `None` for any other name, and for a bare `libmpi.so`, which may be either.
    pub fn of_library(path: &str) -> Option<Abi> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let (stem, version) = name.split_once(".so")?;
        let version = version.trim_start_matches('.').split('.').next().unwrap_or("");
        match (stem, version) {
            ("libmpi_abi", _) => Some(Abi::Standard),
            ("libmpi", "12") => Some(Abi::Mpich),
            ("libmpi", "40" | "20") => Some(Abi::OpenMpi),
            ("libmpich" | "libmpi_cray" | "libmpi_intel" | "libmpi_gnu", _) => Some(Abi::Mpich),
            _ => None,
        }
    }

    /// The interface of a loaded library, by the symbols that it has. A library of MPICH 5 speaks MPICH's interface
    /// unless it is `libmpi_abi`, so ask [`Abi::of_library`] first.
    pub fn of_symbols(exists: impl Fn(&str) -> bool) -> Option<Abi> {
        if exists("ompi_mpi_comm_world") {
            Some(Abi::OpenMpi)
        } else if exists("MPI_UNWEIGHTED") {
            Some(Abi::Mpich)
        } else {
            exists("MPI_Abi_get_version").then_some(Abi::Standard)
        }
    }
}

/// How an interface lays things out, and its most used constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Which interface.
    pub abi: Abi,
    /// Bytes of a handle, and so the stride of an array of requests. Files differ: [`Layout::handle_bytes_of`].
    pub handle_bytes: usize,
    /// The bits of a register that are the handle.
    pub handle_mask: u64,
    /// The status.
    pub status: StatusLayout,
    /// `MPI_ANY_SOURCE`.
    pub any_source: i32,
    /// `MPI_PROC_NULL`.
    pub proc_null: i32,
    /// `MPI_ROOT`.
    pub root: i32,
    /// `MPI_ANY_TAG`.
    pub any_tag: i32,
    /// `MPI_UNDEFINED`.
    pub undefined: i32,
    /// `MPI_SUCCESS`.
    pub success: i32,
    /// `MPI_ERR_IN_STATUS`.
    pub err_in_status: i32,
    /// `MPI_BOTTOM`, as an address.
    pub bottom: usize,
    /// `MPI_IN_PLACE`, as an address.
    pub in_place: usize,
    /// `MPI_STATUS_IGNORE` and `MPI_STATUSES_IGNORE`, as an address.
    pub status_ignore: usize,
    /// `MPI_THREAD_SINGLE`, `_FUNNELED`, `_SERIALIZED` and `_MULTIPLE`.
    pub thread_levels: [i32; 4],
    /// `MPI_KEYVAL_INVALID`.
    pub keyval_invalid: i32,
    /// `MPI_MAX_OBJECT_NAME`: the most bytes of an object's name, its end included.
    pub max_object_name: usize,
    /// `MPI_MAX_PROCESSOR_NAME`, in bytes.
    pub max_processor_name: usize,
    /// `MPI_MAX_LIBRARY_VERSION_STRING`, in bytes.
    pub max_library_version: usize,
}

impl Layout {
    /// Bytes of a handle of this kind: MPICH's files are pointers, though its other handles are numbers.
    pub fn handle_bytes_of(&self, kind: Kind) -> usize {
        if kind == Kind::File { size_of::<usize>() } else { self.handle_bytes }
    }
}

/// Where the fields of a status are, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusLayout {
    /// Bytes of a status, and so the stride of an array of statuses.
    pub size: usize,
    /// Offset of `MPI_SOURCE`.
    pub source: usize,
    /// Offset of `MPI_TAG`.
    pub tag: usize,
    /// Offset of `MPI_ERROR`.
    pub error: usize,
    /// Where the bytes received and the mark of cancellation are.
    pub count: CountLayout,
}

/// How a status holds the number of bytes received and whether the operation was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountLayout {
    /// A 64-bit number of bytes, and an `int` that is not zero if cancelled.
    Apart {
        /// Offset of the bytes.
        bytes: usize,
        /// Offset of the mark.
        cancelled: usize,
    },
    /// The low 32 bits of the number of bytes; then its high bits, shifted by one, with the mark in the lowest.
    Packed {
        /// Offset of the low half.
        low: usize,
        /// Offset of the high half.
        high: usize,
    },
}

const fn layout(abi: Abi, handle_bytes: usize, status: StatusLayout) -> Layout {
    Layout {
        abi,
        handle_bytes,
        handle_mask: if handle_bytes == 4 { 0xffff_ffff } else { u64::MAX },
        status,
        any_source: number("MPI_ANY_SOURCE", abi) as i32,
        proc_null: number("MPI_PROC_NULL", abi) as i32,
        root: number("MPI_ROOT", abi) as i32,
        any_tag: number("MPI_ANY_TAG", abi) as i32,
        undefined: number("MPI_UNDEFINED", abi) as i32,
        success: number("MPI_SUCCESS", abi) as i32,
        err_in_status: number("MPI_ERR_IN_STATUS", abi) as i32,
        bottom: number("MPI_BOTTOM", abi) as usize,
        in_place: number("MPI_IN_PLACE", abi) as usize,
        status_ignore: number("MPI_STATUS_IGNORE", abi) as usize,
        thread_levels: [
            number("MPI_THREAD_SINGLE", abi) as i32,
            number("MPI_THREAD_FUNNELED", abi) as i32,
            number("MPI_THREAD_SERIALIZED", abi) as i32,
            number("MPI_THREAD_MULTIPLE", abi) as i32,
        ],
        keyval_invalid: number("MPI_KEYVAL_INVALID", abi) as i32,
        max_object_name: number("MPI_MAX_OBJECT_NAME", abi) as usize,
        max_processor_name: number("MPI_MAX_PROCESSOR_NAME", abi) as usize,
        max_library_version: number("MPI_MAX_LIBRARY_VERSION_STRING", abi) as usize,
    }
}

static LAYOUTS: [Layout; 3] = [
    layout(
        Abi::OpenMpi,
        8,
        StatusLayout { size: 24, source: 0, tag: 4, error: 8, count: CountLayout::Apart { bytes: 16, cancelled: 12 } },
    ),
    layout(
        Abi::Mpich,
        4,
        StatusLayout { size: 20, source: 8, tag: 12, error: 16, count: CountLayout::Packed { low: 0, high: 4 } },
    ),
    layout(
        Abi::Standard,
        8,
        StatusLayout { size: 32, source: 0, tag: 4, error: 8, count: CountLayout::Packed { low: 12, high: 16 } },
    ),
];
