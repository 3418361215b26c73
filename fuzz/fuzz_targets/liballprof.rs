//! liballprof's text.
#![no_main]
#[path = "../../trace/tests/common/inputs.rs"]
mod inputs;

libfuzzer_sys::fuzz_target!(|data: &[u8]| inputs::liballprof(data));
