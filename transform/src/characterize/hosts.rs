//! Where ranks are: their hosts, and how many processors those have.
use super::mpi::Mpi;
use std::fs;

/// Where a rank is: its host's name, and the boot that its clock counts from.
pub type Host = (String, String);

/// Tells rank 0 where all are. All ranks call it.
pub fn hosts(mpi: &Mpi) -> Vec<Host> {
    let mut own = [[0u8; 64]; 5];
    let name = nix::unistd::gethostname().unwrap_or_default();
    let boot = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let put = |to: &mut [u8], text: &[u8]| {
        let length = text.len().min(to.len());
        to[..length].copy_from_slice(&text[..length]);
    };
    put(own[..4].as_flattened_mut(), name.as_encoded_bytes());
    put(&mut own[4], boot.trim_ascii());
    // Gathered as bytes: an array of arrays is a plain piece of memory.
    let all = mpi.gathered(mpi.world, own.as_flattened());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
    all.chunks_exact(320).map(|host| (text(&host[..256]), text(&host[256..]))).collect()
}

/// The model of this node's processors and how many logical ones there are: not only those that the launcher has bound
/// this rank to.
pub fn processors() -> (String, u32) {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| Some(line.strip_prefix("model name")?.split_once(": ")?.1));
    let count = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    (model.unwrap_or("unknown").trim().to_owned(), count as u32)
}
