fn main(){ let a:Vec<String>=std::env::args().collect(); std::process::exit(phasecast_checkpoint::host::run(a[2].as_ref(), a[3].as_ref())); }
