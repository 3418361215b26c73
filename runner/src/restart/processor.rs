//! Processor features by the names that Linux gives them, and the baselines to which a program can be held.
use clap::ValueEnum;

/// Features of x86-64-v2, beyond x86-64 itself.
const V2: [&str; 7] = ["cx16", "lahf_lm", "popcnt", "pni", "ssse3", "sse4_1", "sse4_2"];
/// Features of x86-64-v3, beyond v2.
const V3: [&str; 9] = ["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"];
/// Other features that libraries look for when they choose code.
const OTHERS: [&str; 16] = [
    "adx",
    "aes",
    "erms",
    "fsrm",
    "gfni",
    "pclmulqdq",
    "rdrand",
    "rdseed",
    "sha_ni",
    "sse4a",
    "vaes",
    "vpclmulqdq",
    "xop",
    "fma4",
    "movdiri",
    "movdir64b",
];

/// How many processors this process may use.
pub fn count() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// What is to be told where a program that has asked for its processors had other many in the base run than here.
pub fn others_note([there, here]: [u32; 2]) -> String {
    format!(
        "in the base run the launcher gave a rank {there} of the processors, here {here}. The program goes by that, as OpenMP does, and is restarted with the threads that it had there: a run here may have others, and take another time. A launcher that binds ranks as the base's did makes the two alike"
    )
}

/// To what processor a program is held while it is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Baseline {
    /// Processors since about 2009
    #[value(name = "x86-64-v2")]
    V2,
    /// Processors since about 2013 (AVX2)
    #[value(name = "x86-64-v3")]
    V3,
    /// This processor, with all it can do
    #[value(name = "native")]
    Native,
}

impl Baseline {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Baseline::V2 => "x86-64-v2",
            Baseline::V3 => "x86-64-v3",
            Baseline::Native => "native",
        }
    }

    /// The best that moves to most machines: v3 where this processor has it, else v2.
    pub fn usual(flags: &[String]) -> Baseline {
        if Baseline::V3.lacking(flags).is_empty() { Baseline::V3 } else { Baseline::V2 }
    }

    /// The features that a target must have; `flags` are those of this processor.
    pub fn features(self, flags: &[String]) -> Vec<String> {
        let names =
            |lists: &[&[&str]]| lists.iter().flat_map(|list| list.iter()).map(|name| name.to_string()).collect();
        match self {
            Baseline::V2 => names(&[&V2]),
            Baseline::V3 => names(&[&V2, &V3]),
            Baseline::Native => flags.iter().filter(|flag| matters(flag)).cloned().collect(),
        }
    }

    /// The features of it that this processor, with these flags, does not have.
    pub fn lacking(self, flags: &[String]) -> Vec<String> {
        self.features(flags).into_iter().filter(|feature| !flags.contains(feature)).collect()
    }
}

/// Whether code is chosen by this feature.
fn matters(flag: &str) -> bool {
    let listed = |list: &[&str]| list.contains(&flag);
    listed(&V2) || listed(&V3) || listed(&OTHERS) || flag.starts_with("avx") || flag.starts_with("amx_")
}

/// The features of this processor.
pub fn flags() -> Vec<String> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = cpuinfo.lines().find_map(|line| line.strip_prefix("flags")?.split_once(':'));
    line.map_or_else(Vec::new, |(_, flags)| flags.split_whitespace().map(str::to_string).collect())
}

/// Whether programs may set the FS base by themselves, as each crossing into MPI does.
pub fn fsgsbase() -> bool {
    const AT_HWCAP2: u64 = 26;
    const FSGSBASE: u64 = 2;
    let auxv = std::fs::read("/proc/self/auxv").unwrap_or_default();
    let number = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or(0);
    auxv.chunks_exact(16).any(|pair| number(&pair[..8]) == AT_HWCAP2 && number(&pair[8..]) & FSGSBASE != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baselines_are_nested() {
        let flags: Vec<String> = V2.iter().chain(&V3).chain(&["avx512f", "fpu"]).map(|f| f.to_string()).collect();
        assert_eq!(Baseline::usual(&flags), Baseline::V3);
        assert_eq!(Baseline::usual(&flags[..9]), Baseline::V2);
        assert_eq!(Baseline::V3.lacking(&flags[..15]), [V3[8]]);
        assert!(Baseline::V2.lacking(&flags[..7]).is_empty() && Baseline::Native.lacking(&flags[..3]).is_empty());
        let native = Baseline::Native.features(&flags);
        assert!(native.contains(&"avx512f".into()) && !native.contains(&"fpu".into()));
        assert!(Baseline::V2.features(&flags).iter().all(|f| Baseline::V3.features(&flags).contains(f)));
    }
}
