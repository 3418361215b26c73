//! The C bindings: from a procedure of `apis.json` to its arguments as C passes them, plain and large-count.

use crate::json::{Api, Parameter};
use crate::kinds;
use crate::model::{CType, Direction, Kind, Length, Param, Passing, Procedure, Return, Side};
use crate::rules;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;

/// Kinds that C passes by one pointer whatever their direction.
const ALWAYS_POINTER: [Kind; 7] = [
    Kind::Buffer,
    Kind::BufferAddress,
    Kind::String,
    Kind::ExtraState,
    Kind::AttributeValue,
    Kind::Status,
    Kind::FortranStatus,
];

/// All procedures of the C binding, large-count ones and removed ones included, sorted by name.
///
/// # Errors
/// When the standard has a kind, a length or a direction that phasecast does not know.
pub fn procedures(apis: &BTreeMap<String, Api>) -> Result<Vec<Procedure>> {
    let mut all = Vec::new();
    for api in apis.values() {
        let attributes = &api.attributes;
        if !attributes.c_expressible || attributes.callback || attributes.predefined_function.is_some() {
            continue;
        }
        let named = || format!("in {}", api.name);
        all.push(bind(api, false).with_context(named)?);
        if api.parameters.iter().any(|p| p.kind.starts_with("POLY") || p.large_only) {
            all.push(bind(api, true).with_context(named)?);
        }
    }
    for (name, replacement, kept) in rules::REMOVED {
        let model = all.iter().find(|p| p.name == *replacement).with_context(|| format!("{name}: no {replacement}"))?;
        let params = kept.iter().map(|i| model.params[*i]).collect::<Vec<_>>();
        all.push(Procedure { name, params: leak(params), ..*model });
    }
    all.sort_by_key(|p| p.name);
    Ok(all)
}

/// What the generator makes lives as long as it runs.
fn leak<T>(items: Vec<T>) -> &'static [T] {
    items.leak()
}

fn bind(api: &Api, large: bool) -> Result<Procedure> {
    let name: &'static str = format!("{}{}", api.name, if large { "_c" } else { "" }).leak();
    let parameters: Vec<&Parameter> =
        api.parameters.iter().filter(|p| !p.suppress.contains("c_parameter") && (large || !p.large_only)).collect();
    let mut params = parameters.iter().map(|p| param(p, &parameters, large)).collect::<Result<Vec<_>>>()?;
    rules::correct(name, &mut params);
    let sides = sides(&params);
    let returns = match kinds::lookup(&api.return_kind).with_context(|| format!("unknown kind {}", api.return_kind))? {
        row if api.return_kind == "ERROR_CODE" || row.kind == Kind::ErrorCode => Return::ErrorCode,
        row => match row.small {
            CType::Double => Return::Double,
            CType::Aint => Return::Aint,
            CType::Handle => Return::Handle(row.kind),
            CType::Int | CType::Fint => Return::Int,
            other => bail!("a procedure that returns {other:?}"),
        },
    };
    let class = rules::class(name, &params);
    let since = rules::since(name, &params, class);
    Ok(Procedure { name, params: leak(params), sides: leak(sides), returns, class, since })
}

fn param(p: &Parameter, all: &[&Parameter], large: bool) -> Result<Param> {
    let row = kinds::lookup(&p.kind).with_context(|| format!("unknown kind {}", p.kind))?;
    let direction = match p.param_direction.as_str() {
        "in" => Direction::In,
        "out" => Direction::Out,
        "inout" => Direction::InOut,
        other => bail!("unknown direction {other}"),
    };
    let length = length(p, all)?;
    let passing = passing(p, row.kind, direction);
    Ok(Param {
        name: p.name.clone().leak(),
        kind: rules::rank_kind(row.kind, &p.name, direction),
        ctype: if large { row.large.unwrap_or(row.small) } else { row.small },
        passing,
        direction,
        length: if passing == Passing::Value { Length::One } else { length },
        root_only: p.root_only,
        large: large && row.large.is_some(),
    })
}

fn length(p: &Parameter, all: &[&Parameter]) -> Result<Length> {
    let index = |name: &str| all.iter().position(|q| q.name == name).map(|i| i as u8);
    Ok(match &p.length {
        Value::Null if p.kind.starts_with("STRING_") => Length::Implied,
        Value::Null => Length::One,
        Value::String(name) if name == "*" || name.is_empty() => Length::Implied,
        Value::String(name) => match index(name) {
            Some(i) => Length::Param(i),
            None if name.starts_with("MPI_") => Length::Constant(name.clone().leak()),
            None => bail!("length {name} of {} is no argument", p.name),
        },
        Value::Array(list) => match list.as_slice() {
            [Value::String(name), three] if three == "3" => {
                Length::Triples(index(name).with_context(|| format!("length {name} is no argument"))?)
            }
            other => bail!("unknown length {other:?}"),
        },
        other => bail!("unknown length {other}"),
    })
}

/// How C passes it, by the rules of pympistandard's `isoc.py`.
fn passing(p: &Parameter, kind: Kind, direction: Direction) -> Passing {
    let sized = !p.length.is_null();
    if matches!(p.kind.as_str(), "STRING_ARRAY" | "STRING_2DARRAY" | "ARGUMENT_LIST")
        || (sized && kind != Kind::String && p.pointer != Some(true))
    {
        return Passing::Array;
    }
    let pointer = ALWAYS_POINTER.contains(&kind)
        || kind == Kind::Function
        || p.kind == "LOGICAL_VOID"
        || p.kind == "TOOL_MPI_OBJ"
        || (p.pointer != Some(false) && (direction != Direction::In || p.pointer == Some(true)));
    if pointer { Passing::Pointer } else { Passing::Value }
}

/// Each buffer with the first count, datatype and number of partitions after it.
fn sides(params: &[Param]) -> Vec<Side> {
    let after = |from: usize, kind: Kind| {
        params.iter().enumerate().skip(from + 1).find(|(_, p)| p.kind == kind).map(|(i, _)| i as u8)
    };
    params
        .iter()
        .enumerate()
        .filter(|(_, p)| p.kind == Kind::Buffer)
        .map(|(i, _)| Side {
            buffer: i as u8,
            count: after(i, Kind::Count),
            datatype: after(i, Kind::Datatype),
            partitions: after(i, Kind::Partition),
        })
        .collect()
}
