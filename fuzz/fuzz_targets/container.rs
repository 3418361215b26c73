//! Files of phases and signatures.
#![no_main]
#[path = "../../trace/tests/common/inputs.rs"]
mod inputs;

libfuzzer_sys::fuzz_target!(|data: &[u8]| inputs::container(data));
