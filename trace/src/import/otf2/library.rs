//! The OTF2 library of the system, loaded at run time: nothing of it is needed to build or to run anything else.
//! Signatures are those of its public headers, version 2 and 3 (`OTF2_Reader.h`, `OTF2_EvtReaderCallbacks.h`).
use crate::error::TraceError;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;

/// Names of the library: Debian's, then upstream's.
const NAMES: [&str; 6] = [
    "libopen-trace-format2.so.10",
    "libotf2.so.10",
    "libopen-trace-format2.so",
    "libotf2.so",
    "libopen-trace-format2.so.7",
    "libotf2.so.7",
];

/// An opaque object of the library.
pub(super) type Object = *mut c_void;
/// An error code; 0 is success.
pub(super) type Code = c_int;
/// What a callback returns.
pub(super) type Verdict = c_int;
/// Go on.
pub(super) const CONTINUE: Verdict = 0;
/// Stop reading.
pub(super) const INTERRUPT: Verdict = 1;

/// Called with user data, file, line, function, code, format and arguments; returns the code.
type OnError =
    unsafe extern "C" fn(*mut c_void, *const c_char, u64, *const c_char, Code, *const c_char, *mut c_void) -> Code;

/// Keeps the library from writing its errors to standard error: they come back as codes and are told in our words.
unsafe extern "C" fn silent(
    _: *mut c_void,
    _: *const c_char,
    _: u64,
    _: *const c_char,
    code: Code,
    _: *const c_char,
    _: *mut c_void,
) -> Code {
    code
}

/// Location, time, position, user data, attributes: the first arguments of every event.
macro_rules! event {
    ($($arg:ty),*) => { unsafe extern "C" fn(u64, u64, u64, *mut c_void, Object $(, $arg)*) -> Verdict };
}

macro_rules! library {
    ($($field:ident = $symbol:literal: fn($($arg:ty),*) -> $ret:ty;)*) => {
        /// The functions that are used.
        pub(super) struct Library {
            $(pub(super) $field: unsafe extern "C" fn($($arg),*) -> $ret,)*
            _loaded: libloading::Library,
        }

        impl Library {
            fn symbols(loaded: libloading::Library) -> Result<Library, libloading::Error> {
                Ok(Library {
                    // SAFETY: the symbol has this signature in the library's headers, and the library stays loaded as
                    // long as the pointer lives.
                    $($field: unsafe { *loaded.get(concat!("OTF2_", $symbol, "\0").as_bytes())? },)*
                    _loaded: loaded,
                })
            }
        }
    };
}

library! {
    open = "Reader_Open": fn(*const c_char) -> Object;
    close = "Reader_Close": fn(Object) -> Code;
    serial = "Reader_SetSerialCollectiveCallbacks": fn(Object) -> Code;
    global_def_reader = "Reader_GetGlobalDefReader": fn(Object) -> Object;
    register_global_defs = "Reader_RegisterGlobalDefCallbacks": fn(Object, Object, Object, *mut c_void) -> Code;
    read_global_defs = "Reader_ReadAllGlobalDefinitions": fn(Object, Object, *mut u64) -> Code;
    select_location = "Reader_SelectLocation": fn(Object, u64) -> Code;
    open_def_files = "Reader_OpenDefFiles": fn(Object) -> Code;
    close_def_files = "Reader_CloseDefFiles": fn(Object) -> Code;
    open_event_files = "Reader_OpenEvtFiles": fn(Object) -> Code;
    close_event_files = "Reader_CloseEvtFiles": fn(Object) -> Code;
    def_reader = "Reader_GetDefReader": fn(Object, u64) -> Object;
    read_local_defs = "Reader_ReadAllLocalDefinitions": fn(Object, Object, *mut u64) -> Code;
    close_def_reader = "Reader_CloseDefReader": fn(Object, Object) -> Code;
    event_reader = "Reader_GetEvtReader": fn(Object, u64) -> Object;
    register_events = "Reader_RegisterEvtCallbacks": fn(Object, Object, Object, *mut c_void) -> Code;
    read_events = "Reader_ReadLocalEvents": fn(Object, Object, u64, *mut u64) -> Code;
    close_event_reader = "Reader_CloseEvtReader": fn(Object, Object) -> Code;
    apply_mapping = "EvtReader_ApplyMappingTables": fn(Object, bool) -> Code;
    apply_offsets = "EvtReader_ApplyClockOffsets": fn(Object, bool) -> Code;
    on_error = "Error_RegisterCallback": fn(Option<OnError>, *mut c_void) -> Option<OnError>;
    describe = "Error_GetDescription": fn(Code) -> *const c_char;

    def_callbacks = "GlobalDefReaderCallbacks_New": fn() -> Object;
    drop_def_callbacks = "GlobalDefReaderCallbacks_Delete": fn(Object) -> ();
    on_clock = "GlobalDefReaderCallbacks_SetClockPropertiesCallback":
        fn(Object, unsafe extern "C" fn(*mut c_void, u64, u64, u64, u64) -> Verdict) -> Code;
    on_string = "GlobalDefReaderCallbacks_SetStringCallback":
        fn(Object, unsafe extern "C" fn(*mut c_void, u32, *const c_char) -> Verdict) -> Code;
    on_location = "GlobalDefReaderCallbacks_SetLocationCallback":
        fn(Object, unsafe extern "C" fn(*mut c_void, u64, u32, u8, u64, u32) -> Verdict) -> Code;
    on_region = "GlobalDefReaderCallbacks_SetRegionCallback":
        fn(Object, unsafe extern "C" fn(*mut c_void, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32) -> Verdict) -> Code;
    on_group = "GlobalDefReaderCallbacks_SetGroupCallback":
        fn(Object, unsafe extern "C" fn(*mut c_void, u32, u32, u8, u8, u32, u32, *const u64) -> Verdict) -> Code;
    on_comm = "GlobalDefReaderCallbacks_SetCommCallback":
        fn(Object, unsafe extern "C" fn(*mut c_void, u32, u32, u32, u32) -> Verdict) -> Code;

    event_callbacks = "EvtReaderCallbacks_New": fn() -> Object;
    drop_event_callbacks = "EvtReaderCallbacks_Delete": fn(Object) -> ();
    on_enter = "EvtReaderCallbacks_SetEnterCallback": fn(Object, event!(u32)) -> Code;
    on_leave = "EvtReaderCallbacks_SetLeaveCallback": fn(Object, event!(u32)) -> Code;
    on_send = "EvtReaderCallbacks_SetMpiSendCallback": fn(Object, event!(u32, u32, u32, u64)) -> Code;
    on_isend = "EvtReaderCallbacks_SetMpiIsendCallback": fn(Object, event!(u32, u32, u32, u64, u64)) -> Code;
    on_irecv_request = "EvtReaderCallbacks_SetMpiIrecvRequestCallback": fn(Object, event!(u64)) -> Code;
    on_recv = "EvtReaderCallbacks_SetMpiRecvCallback": fn(Object, event!(u32, u32, u32, u64)) -> Code;
    on_irecv = "EvtReaderCallbacks_SetMpiIrecvCallback": fn(Object, event!(u32, u32, u32, u64, u64)) -> Code;
    on_cancelled = "EvtReaderCallbacks_SetMpiRequestCancelledCallback": fn(Object, event!(u64)) -> Code;
    on_collective_end = "EvtReaderCallbacks_SetMpiCollectiveEndCallback":
        fn(Object, event!(u8, u32, u32, u64, u64)) -> Code;
}

impl Library {
    /// Loads the library; `archive` is for the message.
    pub(super) fn load(archive: &Path) -> Result<Library, TraceError> {
        let missing = |why: String| TraceError::Import {
            path: archive.to_owned(),
            what: format!(
                "reading OTF2 needs the OTF2 library, version 2 or 3 ({why}). Install it: apt-get install libopen-trace-format2-dev"
            ),
        };
        let mut why = String::new();
        for name in NAMES {
            // SAFETY: loading it runs its initialisers only, which have no preconditions.
            match unsafe { libloading::Library::new(name) } {
                Ok(loaded) => {
                    let library = Library::symbols(loaded).map_err(|error| missing(error.to_string()))?;
                    // SAFETY: the function has the signature of `OTF2_ErrorCallback` and needs no data.
                    unsafe { (library.on_error)(Some(silent), std::ptr::null_mut()) };
                    return Ok(library);
                }
                Err(error) if why.is_empty() => why = error.to_string(),
                Err(_) => {}
            }
        }
        Err(missing(why))
    }

    /// The library's word for an error.
    pub(super) fn reason(&self, code: Code) -> String {
        // SAFETY: any code may be asked for; the answer is a static string or null.
        let text = unsafe { (self.describe)(code) };
        if text.is_null() {
            return format!("error {code}");
        }
        // SAFETY: it is not null, ends with a zero and is never freed.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}
