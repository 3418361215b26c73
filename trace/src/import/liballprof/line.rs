//! One line of liballprof's text: `name:enter:argument:...:exit`, arguments in the order of the C binding, times in
//! microseconds. A datatype is `number,size,extent`, a communicator `handle,rank,size`; pointers, and so requests, are
//! addresses; an array of counts may be followed by its values in a field of their own.
use phasecast_abi::{self as abi, Kind, Procedure};

/// A line, with a field for each argument of the procedure.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    /// The procedure, if the standard knows it and the line has a field for each of its arguments.
    pub(super) procedure: Option<&'static Procedure>,
    /// ns; none where the file has `-` (before MPI_Init, after MPI_Finalize).
    pub(super) enter: Option<u64>,
    pub(super) exit: Option<u64>,
    fields: Vec<&'a str>,
    /// Values of arrays of counts, by argument.
    lists: Vec<(usize, &'a str)>,
}

/// A communicator as a line names it: handle, rank in it, size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CommKey {
    pub(super) handle: i64,
    pub(super) rank: u32,
    pub(super) size: u32,
}

impl<'a> Line<'a> {
    /// Takes a line apart; a sentence if it is none.
    pub(super) fn parse(text: &'a str) -> Result<Line<'a>, String> {
        let mut fields: Vec<&str> = text.trim_end().split(':').collect();
        if fields.len() < 3 {
            return Err("it is not of the form name:enter:...:exit".into());
        }
        let name = fields.remove(0);
        let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(valid) {
            return Err("it does not start with the name of a procedure".into());
        }
        let enter = time(fields.remove(0))?;
        let exit = time(fields.pop().unwrap_or("-"))?;
        if enter.is_none() && exit.is_none() {
            return Err("it has no time".into());
        }
        let mut procedure = abi::by_name(name).and_then(abi::ProcId::get);
        let mut lists = Vec::new();
        if let Some(known) = procedure {
            match spread(known, &fields) {
                Some((flat, found)) => (fields, lists) = (flat, found),
                None => procedure = None,
            }
        }
        Ok(Line { name, procedure, enter, exit, fields, lists })
    }

    /// A number.
    pub(super) fn int(&self, index: usize) -> Option<i64> {
        self.fields.get(index)?.parse().ok()
    }

    /// An address.
    pub(super) fn address(&self, index: usize) -> Option<u64> {
        self.fields.get(index)?.parse().ok()
    }

    /// The first argument of a kind, as a number.
    pub(super) fn int_of(&self, kind: Kind) -> Option<i64> {
        self.int(self.procedure?.param_index(kind)?)
    }

    /// The size of a datatype in bytes.
    fn datatype_size(&self, index: usize) -> Option<u64> {
        self.fields.get(index)?.split(',').nth(1)?.parse().ok()
    }

    /// The communicator of the call.
    pub(super) fn comm(&self) -> Option<CommKey> {
        let index = self.procedure?.param_index(Kind::Communicator)?;
        let mut parts = self.fields.get(index)?.split(',');
        let key = CommKey {
            handle: parts.next()?.parse().ok()?,
            rank: parts.next()?.parse().ok()?,
            size: parts.next()?.parse().ok()?,
        };
        (parts.next().is_none() && key.rank < key.size).then_some(key)
    }

    /// Bytes of one buffer of the call: count x size of the datatype; counts per rank are added up.
    pub(super) fn side_bytes(&self, side: &abi::Side) -> Option<u64> {
        let size = self.datatype_size(usize::from(side.datatype?))?;
        let count = usize::from(side.count?);
        let elements = match self.lists.iter().find(|(index, _)| *index == count) {
            Some((_, list)) => list.split(',').try_fold(0u64, |sum, n| sum.checked_add(n.parse().ok()?))?,
            None => u64::try_from(self.int(count)?).ok()?,
        };
        elements.checked_mul(size)
    }

    /// Whether the counts of this buffer are per rank and the line does not hold them.
    pub(super) fn lacks_counts(&self, side: &abi::Side) -> bool {
        let Some(count) = side.count.map(usize::from) else { return false };
        let array = self.procedure.and_then(|p| p.params.get(count)).is_some_and(abi::Param::is_array);
        array && !self.lists.iter().any(|(index, _)| *index == count)
    }
}

/// One field for each argument, and the values of arrays; none if there are too few or too many fields.
#[expect(clippy::type_complexity, reason = "the two halves of a line, used once")]
fn spread<'a>(procedure: &Procedure, fields: &[&'a str]) -> Option<(Vec<&'a str>, Vec<(usize, &'a str)>)> {
    let mut extra = fields.len().checked_sub(procedure.params.len())?;
    let (mut flat, mut lists) = (Vec::with_capacity(procedure.params.len()), Vec::new());
    let mut rest = fields.iter();
    for (index, param) in procedure.params.iter().enumerate() {
        flat.push(*rest.next()?);
        if extra > 0 && param.is_array() && matches!(param.kind, Kind::Count | Kind::Displacement) {
            lists.push((index, *rest.next()?));
            extra -= 1;
        }
    }
    (extra == 0).then_some((flat, lists))
}

/// Microseconds with a decimal fraction as nanoseconds; `-` is no time.
fn time(text: &str) -> Result<Option<u64>, String> {
    if text == "-" {
        return Ok(None);
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let wrong = || format!("{text:.40} is not a time in microseconds");
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return Err(wrong());
    }
    let micros: u64 = whole.parse().map_err(|_| wrong())?;
    let nanos = fraction.bytes().chain(std::iter::repeat(b'0')).take(3).fold(0, |n, b| n * 10 + u64::from(b - b'0'));
    let time = micros.checked_mul(1000).and_then(|n| n.checked_add(nanos)).filter(|&n| n < 1 << 62);
    time.map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_exact() {
        assert_eq!(time("1237666046950106.000000"), Ok(Some(1_237_666_046_950_106_000)));
        assert_eq!(time("7.25"), Ok(Some(7_250)));
        assert_eq!(time("-"), Ok(None));
        for wrong in ["", ".5", "1e9", "nan", "-5", "99999999999999999999"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn counts_per_rank_are_added_up() {
        let text = "MPI_Alltoallv:5:100:200:1,2,3:300:4,4,4:10,8,8:400:500:3,2,1:600:0,0,0:10,8,8:0,1,3:9";
        let line = Line::parse(text).unwrap();
        let sides = line.procedure.unwrap().sides;
        assert_eq!(line.side_bytes(&sides[0]), Some(6 * 8));
        assert_eq!(line.comm(), Some(CommKey { handle: 0, rank: 1, size: 3 }));
        let bare = Line::parse("MPI_Alltoallv:5:100:200:300:10,8,8:400:500:600:10,8,8:0,1,3:9").unwrap();
        assert!(bare.lacks_counts(&sides[0]));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = Line::parse(&text).map(|l| (l.comm(), l.int_of(Kind::Dest)));
        }
    }
}
