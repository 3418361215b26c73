//! Files of ranks and their tails, as the readers of whole traces see them.
#![no_main]
#[path = "../../trace/tests/common/inputs.rs"]
mod inputs;

libfuzzer_sys::fuzz_target!(|data: &[u8]| inputs::rank_file(data));
