//! A file of a rank and its tails that grow, as a live prediction sees them.
#![no_main]
#[path = "../../trace/tests/common/inputs.rs"]
mod inputs;

libfuzzer_sys::fuzz_target!(|data: &[u8]| inputs::follow(data));
