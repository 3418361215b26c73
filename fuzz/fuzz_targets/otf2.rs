//! Records of an OTF2 archive, as the OTF2 library hands them on.
#![no_main]
#[path = "../../trace/tests/common/inputs.rs"]
mod inputs;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    inputs::imported(|out| phasecast_trace::import::otf2::records::import(data, out));
});
