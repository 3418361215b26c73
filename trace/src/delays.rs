//! Delays that the tracer puts before calls of a program, to see what becomes of its order (seed 000, section 3.2.2).
//!
//! They come to the tracer as a text file, one delay a line, which the environment variable `PHASECAST_DELAYS` names:
//! ```text
//! rank TAB fixed_ns TAB share TAB every TAB offset TAB module
//! ```
//! A line that begins with `#`, and an empty one, say nothing. The call is told by where it returns to, as
//! [`crate::Trace::site`] names it: an offset (hexadecimal) in the file of a module, so that it is the same in every run.

/// The environment variable that names the file.
pub const VARIABLE: &str = "PHASECAST_DELAYS";
/// The longest single delay, in ns: an hour.
pub const LONGEST_NS: u64 = 3_600_000_000_000;
/// The largest share of the block before a call.
pub const LARGEST_SHARE: f64 = 1000.0;

/// A delay before the calls from one place on one rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Delay {
    /// The rank.
    pub rank: u32,
    /// How long, in ns.
    pub fixed_ns: u64,
    /// And this share of the block before the call: of the time since the call of MPI before it has returned.
    pub share: f64,
    /// Only every n-th call is delayed, the first one first; at least 1.
    pub every: u64,
    /// Where the call returns to: bytes from the start of the module's file.
    pub offset: u64,
    /// The name of the module's file, without its folder.
    pub module: String,
}

impl Delay {
    /// The place as [`crate::Trace::site`] names it.
    pub fn site(&self) -> String {
        format!("{}+{:#x}", self.module, self.offset)
    }
}

/// Module and offset of a place as [`crate::Trace::site`] names it; none if it is an address in no module.
pub fn parse_site(site: &str) -> Option<(String, u64)> {
    let (module, offset) = site.rsplit_once("+0x")?;
    let offset = u64::from_str_radix(offset, 16).ok()?;
    (!module.is_empty()).then(|| (module.to_owned(), offset))
}

/// The file of some delays.
pub fn to_text(delays: &[Delay]) -> String {
    let line =
        |d: &Delay| format!("{}\t{}\t{}\t{}\t{:#x}\t{}\n", d.rank, d.fixed_ns, d.share, d.every, d.offset, d.module);
    delays.iter().map(line).collect()
}

/// The delays of a file.
///
/// # Errors
/// The first line that is none, in words.
pub fn parse(text: &str) -> Result<Vec<Delay>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let parsed = lines.map(|(number, line)| {
        parse_line(line).ok_or_else(|| format!("line {} is no delay: {}", number + 1, line.escape_debug()))
    });
    parsed.collect()
}

fn parse_line(line: &str) -> Option<Delay> {
    let mut words = line.splitn(6, '\t');
    let mut next = || words.next();
    let delay = Delay {
        rank: next()?.parse().ok()?,
        fixed_ns: next()?.parse().ok().filter(|ns| *ns <= LONGEST_NS)?,
        share: next()?.parse().ok().filter(|share| (0.0..=LARGEST_SHARE).contains(share))?,
        every: next()?.parse().ok().filter(|every| *every > 0)?,
        offset: u64::from_str_radix(next()?.strip_prefix("0x")?, 16).ok()?,
        module: next()?.to_owned(),
    };
    (!delay.module.is_empty()).then_some(delay)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            list in prop::collection::vec(
                (any::<u32>(), 0..=LONGEST_NS, 0.0..=LARGEST_SHARE, 1u64.., any::<u64>(), "[a-z][a-z+0x .-]{0,8}"), 0..6),
        ) {
            let list: Vec<Delay> = list
                .into_iter()
                .map(|(rank, fixed_ns, share, every, offset, module)| Delay { rank, fixed_ns, share, every, offset, module })
                .collect();
            prop_assert_eq!(parse(&to_text(&list)), Ok(list.clone()));
            for delay in &list {
                prop_assert_eq!(parse_site(&delay.site()), Some((delay.module.clone(), delay.offset)));
            }
        }

        #[test]
        fn no_text_is_too_bad(text in "[0-9a-fx\t\n.+#-]{0,80}", any in any::<String>()) {
            let _ = (parse(&text), parse(&any), parse_site(&text), parse_site(&any));
        }
    }

    #[test]
    fn a_bad_line_is_named() {
        assert_eq!(parse("# none\n\n"), Ok(vec![]));
        let error = parse("0\t5\t0.5\t1\t0x10\ta.out\n1\t5\t-1\t1\t0x10\ta.out\n").unwrap_err();
        assert!(error.starts_with("line 2 "), "{error}");
        for bad in
            ["0\t5\t0\t0\t0x1\ta", "0\t5\tNaN\t1\t0x1\ta", "0\t5\t0\t1\t1\ta", "0\t5\t0\t1\t0x1\t", "0\t5\t0\t1\t0x1"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
