//! MPI's C++ bindings, which Open MPI 4 and MPICH have: their libraries ask the library for C, which is idle here, by procedures
//! of its own for what the standard's cannot say, which is how functions of C++ are called.
use crate::closures::{Closure, HANDLER, KEY, OPERATION, new, replace};
use crate::entries::{CART, GRAPH};
use crate::fortran::call;
use crate::symbols as s;
use core::ffi::c_char;
use core::mem::transmute;

type Word = usize;

/// Open MPI: an operation that has `ompi_mpi_cxx_op_intercept` as its function calls this one.
///
/// # Safety
/// Called by Open MPI's library for C++, as all of these.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_op_set_cxx_callback(operation: Word, function: Word) {
    unsafe extern "C" fn apply(input: Word, output: Word, length: Word, datatype: Word, closure: &Closure) {
        // SAFETY: the library's function, which takes the program's as a fifth argument.
        unsafe {
            let function: unsafe extern "C" fn(Word, Word, Word, Word, Word) = transmute(closure.function);
            function(input, output, length, datatype, closure.data);
        }
    }
    // SAFETY: the caller's.
    unsafe { replace(OPERATION, operation, [of(apply as *const (), function), 0]) };
}

/// MPICH: the function of an operation is called by `proxy`.
///
/// # Safety
/// Called by MPICH's library for C++, as all of these.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPII_Op_set_cxx(operation: i32, proxy: Word) {
    unsafe extern "C" fn apply(input: Word, output: Word, length: &i32, datatype: &i32, closure: &Closure) {
        // SAFETY: the library's proxy.
        unsafe {
            let proxy: unsafe extern "C" fn(Word, Word, i32, i32, Word) = transmute(closure.data);
            proxy(input, output, *length, *datatype, closure.function);
        }
    }
    // SAFETY: the caller's.
    unsafe { replace(OPERATION, operation as u32 as usize, [of(apply as *const (), proxy), 0]) };
}

/// MPICH: the function of an error handler is called by `proxy`.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPII_Errhandler_set_cxx(handler: i32, proxy: Word) {
    unsafe extern "C" fn handle(object: Word, code: *mut i32, closure: &Closure, kind: Word) {
        // SAFETY: the library's proxy. After it, MPICH returns no error: C++ would call the handler for it once more.
        unsafe {
            let proxy: unsafe extern "C" fn(i32, Word, *mut i32, Word) = transmute(closure.data);
            proxy(kind as i32, object, code, closure.function);
            *code = 0;
        }
    }
    // SAFETY: the caller's.
    unsafe { replace(HANDLER, handler as u32 as usize, [of(handle as *const (), proxy), 0]) };
}

/// MPICH: the functions of a key are called by proxies.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPII_Keyval_set_proxy(key: i32, copy: Word, delete: Word) {
    /// The value is an address.
    const ADDRESS: i32 = 0;
    type Copy = unsafe extern "C" fn(Word, i32, i32, Word, i32, Word, Word, *mut i32) -> i32;
    type Delete = unsafe extern "C" fn(Word, i32, i32, i32, Word, Word) -> i32;
    unsafe extern "C" fn copied(
        object: i32,
        key: i32,
        closure: &Closure,
        value: Word,
        new: Word,
        flag: *mut i32,
    ) -> i32 {
        // SAFETY: the library's proxy, which writes one byte of the flag.
        unsafe {
            *flag = 0;
            let proxy: Copy = transmute(closure.data);
            proxy(closure.function, object, key, closure.extra, ADDRESS, value, new, flag)
        }
    }
    unsafe extern "C" fn deleted(object: i32, key: i32, value: Word, closure: &Closure) -> i32 {
        // SAFETY: the library's proxy.
        unsafe {
            let proxy: Delete = transmute(closure.data);
            proxy(closure.function, object, key, ADDRESS, value, closure.extra)
        }
    }
    // SAFETY: the caller's.
    unsafe {
        replace(KEY, key as u32 as usize, [of(copied as *const (), copy), of(deleted as *const (), delete)]);
    }
}

fn of(code: *const (), data: Word) -> usize {
    new(Closure { code: code as usize, data, function: 0, extra: 0 })
}

/// Defines how Open MPI's library for C++ makes keys of attributes.
macro_rules! keys {
    ($($name:ident: $create:ident;)*) => { $(
        /// # Safety
        /// As above.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(copy: Word, delete: Word, key: Word, extra: Word) -> i32 {
            // SAFETY: the caller's.
            unsafe { call(s::$create, &[copy, delete, key, extra]) }
        }
    )* };
}

keys! {
    ompi_cxx_attr_create_keyval_comm: MPI_Comm_create_keyval;
    ompi_cxx_attr_create_keyval_type: MPI_Type_create_keyval;
    ompi_cxx_attr_create_keyval_win: MPI_Win_create_keyval;
}

/// Defines how it makes error handlers, which a function of its own calls, and how it calls that of an object.
macro_rules! handlers {
    ($($name:ident: $create:ident, $calls:literal $(, $invoke:ident: $call:ident)?;)*) => { $(
        /// # Safety
        /// As above.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(function: Word) -> Word {
            let closure = Closure {
                code: handle as *const () as usize,
                data: phasecast_preload::anywhere($calls) as usize,
                function,
                extra: 0,
            };
            let mut handler = 0usize;
            // SAFETY: the caller's.
            unsafe { call(s::$create, &[new(closure), &raw mut handler as usize]) };
            handler
        }

        $(
            /// # Safety
            /// As above.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $invoke(object: Word, code: i32) -> i32 {
                // SAFETY: the caller's.
                unsafe { call(s::$call, &[object, code as u32 as usize]) };
                code
            }
        )?
    )* };
}

handlers! {
    ompi_cxx_errhandler_create_comm: MPI_Comm_create_errhandler, c"ompi_mpi_cxx_comm_errhandler_invoke",
        ompi_cxx_errhandler_invoke_comm: MPI_Comm_call_errhandler;
    ompi_cxx_errhandler_create_file: MPI_File_create_errhandler, c"ompi_mpi_cxx_file_errhandler_invoke",
        ompi_cxx_errhandler_invoke_file: MPI_File_call_errhandler;
    ompi_cxx_errhandler_create_win: MPI_Win_create_errhandler, c"ompi_mpi_cxx_win_errhandler_invoke";
}

unsafe extern "C" fn handle(object: Word, code: Word, closure: &Closure) {
    // SAFETY: the library's function that calls those of C++.
    unsafe {
        let calls: unsafe extern "C" fn(Word, Word, *const c_char, Word) = transmute(closure.data);
        calls(object, code, c"".as_ptr(), closure.function);
    }
}

/// Which class of Open MPI's for C++ a communicator belongs to.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_cxx_comm_get_type(comm: Word) -> i32 {
    const INTRACOMM: i32 = 1;
    const INTERCOMM: i32 = 2;
    const CARTCOMM: i32 = 3;
    const GRAPHCOMM: i32 = 4;
    let (mut inter, mut topology) = (0i32, 0i32);
    // SAFETY: procedures that write an integer.
    unsafe {
        call(s::MPI_Comm_test_inter, &[comm, &raw mut inter as usize]);
        call(s::MPI_Topo_test, &[comm, &raw mut topology as usize]);
    }
    match topology as usize {
        CART => CARTCOMM,
        GRAPH => GRAPHCOMM,
        _ if inter != 0 => INTERCOMM,
        _ => INTRACOMM,
    }
}
