//! What a datatype was made of, as the program is told it: of parts of arrays, the order and how each dimension is
//! distributed are constants among the integers.
use crate::calls::lower;
use crate::dispatch::Call;
use crate::session::session;
use phasecast_abi::{Abi, Domain, Kind};
use std::ops::Range;

/// `MPI_Type_get_contents` and the one for large counts.
///
/// # Safety
/// A call of the gate.
pub unsafe fn contents(call: &mut Call) -> usize {
    // SAFETY: the caller's.
    let result = unsafe { crate::forward::forward(call) };
    let mut s = session();
    if result as i32 != 0 || s.values.upper == s.values.lower {
        return result;
    }
    let library = s.library;
    let datatype = s.down_handle(Kind::Datatype, call.arg(0));
    drop(s);
    let (mut large, mut n, mut combiner) = (0i64, [0i64; 3], 0i32);
    let [ints, addresses, types] = n.each_mut().map(|n| &raw mut *n);
    if lower!(library, MPI_Type_get_envelope_c(datatype, ints, addresses, &raw mut large, types, &raw mut combiner))
        != 0
    {
        lower!(library, MPI_Type_get_envelope(datatype, ints, addresses, types, &raw mut combiner));
    }
    let Some(count) = usize::try_from(n[0]).ok().filter(|&count| count > 0) else { return result };
    let s = session();
    let combiner = s.values.lower.to_neutral(Domain::Combiner, combiner.into(), library);
    let parameters = call.shape.procedure.params;
    let Some(at) = parameters.iter().position(|p| p.name == "array_of_integers") else { return result };
    let integers = call.arg(at) as *mut i32;
    // SAFETY: the call has filled in so many integers.
    let integers = unsafe { std::slice::from_raw_parts_mut(integers, count) };
    for (place, domain) in constants(combiner, large > 0, integers) {
        for number in integers.get_mut(place).unwrap_or_default() {
            *number = s.values.up(domain, i64::from(*number), library) as i32;
        }
    }
    result
}

/// Where constants stand among the integers of a datatype with this combiner, in neutral form; the lengths of the array
/// are not among those of one that was made with large counts.
fn constants(combiner: Option<i64>, large: bool, integers: &[i32]) -> Vec<(Range<usize>, Domain)> {
    let is = |name| {
        let of = phasecast_abi::constant(name).map(|constant| constant.value(Abi::Standard));
        combiner.map(phasecast_abi::Value::Number) == of
    };
    let dimensions = |at: usize| integers.get(at).map_or(0, |&n| n.max(0) as usize);
    if is("MPI_COMBINER_SUBARRAY") {
        let order = if large { 1 } else { 1 + 3 * dimensions(0) };
        return vec![(order..order + 1, Domain::Order)];
    }
    if is("MPI_COMBINER_DARRAY") {
        let n = dimensions(2);
        let ways = if large { 3 } else { 3 + n };
        let (arguments, order) = (ways + n, ways + 3 * n);
        return vec![
            (ways..arguments, Domain::Distribution),
            (arguments..arguments + n, Domain::DistributionArgument),
            (order..order + 1, Domain::Order),
        ];
    }
    Vec::new()
}
