//! The shape of `apis.json`, as far as it is needed, and the version of the package that it came in.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// One procedure, callback or predefined function of the standard.
#[derive(Deserialize)]
pub struct Api {
    /// Name, as `MPI_Send`.
    pub name: String,
    /// What holds of the whole procedure.
    pub attributes: Attributes,
    /// Arguments of all language bindings.
    pub parameters: Vec<Parameter>,
    /// Kind of the value returned.
    pub return_kind: String,
}

/// What holds of a whole procedure.
#[derive(Deserialize)]
pub struct Attributes {
    /// It has a C binding.
    pub c_expressible: bool,
    /// It is a prototype for functions of the user.
    pub callback: bool,
    /// It is a function made to be passed as a callback.
    pub predefined_function: Option<String>,
}

/// One argument.
#[derive(Deserialize)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// Kind, as `POLYXFER_NUM_ELEM_NNI`; `POLY` kinds are wider in the large-count binding.
    pub kind: String,
    /// `in`, `out` or `inout`.
    pub param_direction: String,
    /// Length of an array: absent, a name, `*`, or the list of a name and a number.
    pub length: serde_json::Value,
    /// Overrules whether C passes a pointer.
    pub pointer: Option<bool>,
    /// Significant at the root only.
    pub root_only: bool,
    /// In the large-count binding only.
    pub large_only: bool,
    /// Bindings that lack it.
    pub suppress: String,
}

/// Reads `apis.json`.
///
/// # Errors
/// When the file cannot be read or is not of the shape described here.
pub fn read(path: &Path) -> Result<BTreeMap<String, Api>> {
    let text = std::fs::read_to_string(path).with_context(|| {
        format!(
            "cannot read {}: install the PyPI package pympistandard and give the path of its apis.json",
            path.display()
        )
    })?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is not the apis.json of pympistandard 0.2 or alike", path.display()))
}

/// The version of the package, from the `dist-info` folder that pip and wheels put beside it.
///
/// # Errors
/// When there is no such folder, or more than one.
pub fn package_version(apis: &Path) -> Result<String> {
    let site = apis.ancestors().nth(3).with_context(|| format!("{} is not inside a package", apis.display()))?;
    let mut versions: Vec<String> = std::fs::read_dir(site)
        .with_context(|| format!("cannot list {}", site.display()))?
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            Some(name.strip_prefix("pympistandard-")?.strip_suffix(".dist-info")?.to_owned())
        })
        .collect();
    match (versions.pop(), versions.is_empty()) {
        (Some(version), true) => Ok(version),
        _ => bail!(
            "{} must hold exactly one pympistandard-VERSION.dist-info: keep the layout in which pip or the wheel put apis.json",
            site.display()
        ),
    }
}
