//! abi/codegen
fn main() {}
