//! Applications (seed 001, section 2): strategies of parallelisation, each given as formulae, as a task graph or as a LOOP
//! program; all three end as formulae.
use super::error::{Fault, MAX_BYTES, ModelError, Source, read_text, read_toml};
use super::formula::{Scope, Statement, formulae, run, size_of};
use super::graph::{Graph, GraphFile};
use super::library::Costs;
use super::loops::{Derived, derive, parse};
use super::system::System;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;

/// Version of application files.
pub const FORMAT: i64 = 1;
/// What application files are called in messages.
const KIND: &str = "application file";
/// The most strategies of an application.
const MAX_STRATEGIES: usize = 64;
/// The names that computation formulae end in, and those of communication.
const COMPUTATION: [&str; 1] = ["comp"];
const COMMUNICATION: [&str; 2] = ["comm_time", "comm"];
/// "PerPreT provides predictions [...] in the +-10 % accuracy range for most cases" (seed 001, section 5).
const USUAL_UNCERTAINTY: f64 = 0.1;

/// What computation formulae count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Arithmetic operations, which take as long as the system's sustained rate says.
    #[default]
    Operations,
    /// Seconds on the machine where they were measured.
    Seconds,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[allow(dead_code, reason = "checked before the rest is read")]
    format: i64,
    application: String,
    #[serde(default, rename = "type")]
    data_type: Option<String>,
    #[serde(default)]
    rate: Option<String>,
    #[serde(default)]
    size: Option<f64>,
    #[serde(default)]
    unit: Unit,
    #[serde(default)]
    measured_on: Option<String>,
    #[serde(default)]
    uncertainty: Option<f64>,
    #[serde(default)]
    constants: BTreeMap<String, f64>,
    #[serde(default)]
    computation: Option<Spanned<String>>,
    #[serde(default)]
    communication: Option<Spanned<String>>,
    #[serde(default)]
    strategies: Vec<StrategyFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StrategyFile {
    name: String,
    #[serde(default)]
    computation: Option<Spanned<String>>,
    #[serde(default)]
    communication: Option<Spanned<String>>,
    #[serde(default, rename = "loop")]
    program: Option<Spanned<String>>,
    #[serde(default)]
    graph: Option<GraphFile>,
}

/// An application.
#[derive(Clone, Debug)]
pub struct Application {
    /// Its name.
    pub name: String,
    /// The table of a system's rates that it asks for.
    pub rate: String,
    /// The size of the problem, where none is asked for.
    pub size: Option<f64>,
    /// What its computation formulae count.
    pub unit: Unit,
    /// Where seconds were measured.
    pub measured_on: String,
    /// How far off its predictions are, as a share.
    pub uncertainty: f64,
    /// Its strategies, at least one.
    pub strategies: Vec<Strategy>,
    constants: BTreeMap<String, f64>,
    type_bytes: f64,
}

/// A strategy of parallelisation.
#[derive(Clone, Debug)]
pub struct Strategy {
    /// Its name.
    pub name: String,
    /// How it was given: `formulae`, `task graph`, `LOOP program`.
    pub given: &'static str,
    computation: Computation,
    communication: Formulae,
}

#[derive(Clone, Debug)]
enum Computation {
    Formulae(Formulae),
    Graph(Graph),
}

#[derive(Clone, Debug)]
struct Formulae {
    text: String,
    statements: Vec<Statement>,
    source: Source,
}

impl Formulae {
    fn read(text: String, source: Source) -> Result<Formulae, ModelError> {
        let statements = formulae(&text).map_err(|fault| source.error(&fault))?;
        Ok(Formulae { text, statements, source })
    }

    fn derived(text: String, path: &Path, of: String) -> Result<Formulae, ModelError> {
        let source = Source { of, ..Source::file(path, &text) };
        Formulae::read(text, source)
    }
}

impl Strategy {
    /// Its computation formulae in words.
    pub fn computation(&self) -> String {
        match &self.computation {
            Computation::Formulae(formulae) => formulae.text.trim().to_owned(),
            Computation::Graph(graph) if graph.is_whole => format!("comp = {};", graph.derived.computation),
            Computation::Graph(_) => "the longest sum of any processor's tasks".to_owned(),
        }
    }

    /// Its communication formulae in words.
    pub fn communication(&self) -> &str {
        self.communication.text.trim()
    }
}

/// A text of a TOML file with its place there.
fn placed(path: &Path, file: &str, value: &Spanned<String>, of: String) -> Source {
    let inner = value.get_ref();
    let literal = file.get(value.span()).unwrap_or_default();
    match literal.find(inner.as_str()) {
        Some(at) => Source { path: path.to_owned(), text: file.to_owned(), offset: value.span().start + at, of },
        None => Source { of, ..Source::file(path, inner) },
    }
}

impl Application {
    /// Reads an application file.
    ///
    /// # Errors
    /// If the file cannot be read, is none, or holds a formula, task graph or LOOP program that cannot be understood; with
    /// its place.
    pub fn read(path: &Path) -> Result<Application, ModelError> {
        Application::parse(path, &read_text(path, KIND)?)
    }

    /// Reads an application from the text of a file; `path` is for messages.
    ///
    /// # Errors
    /// As [`Application::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Application, ModelError> {
        let foreign = |what: String| ModelError::Foreign { path: path.to_owned(), kind: KIND, line: None, what };
        let value = |key: &str, what: String| ModelError::Value { path: path.to_owned(), key: key.to_owned(), what };
        if text.len() > MAX_BYTES {
            return Err(foreign(format!("it has {} bytes, and none is longer than {MAX_BYTES}", text.len())));
        }
        let table: toml::Table = read_toml(path, text, KIND)?;
        match table.get("format").map(|format| format.as_integer()) {
            Some(Some(FORMAT)) => {}
            Some(Some(found)) => {
                return Err(foreign(format!("it has format {found}, and this phasecast reads {FORMAT}")));
            }
            _ => return Err(foreign("it has no whole number `format`".into())),
        }
        let file: File = read_toml(path, text, KIND)?;
        let data_type = file.data_type.as_deref().unwrap_or("double");
        let type_bytes = size_of(data_type)
            .ok_or_else(|| value("type", format!("is {data_type}. Give char, int, long, float, double or complex")))?;
        let uncertainty = file.uncertainty.unwrap_or(USUAL_UNCERTAINTY);
        if !(0.0..=100.0).contains(&uncertainty) {
            return Err(value("uncertainty", format!("is {uncertainty}, which is no share from 0 to 100. Mend it")));
        }
        if file.strategies.len() > MAX_STRATEGIES {
            return Err(value("strategies", format!("are more than {MAX_STRATEGIES}. Make two files")));
        }
        if let Some(name) = file.constants.keys().find(|name| ["p_size", "n_procs", "N", "P"].contains(&name.as_str()))
        {
            return Err(value(
                &format!("constants.{name}"),
                "is given by the point that is asked for. Rename it".into(),
            ));
        }
        let shared = StrategyFile {
            name: file.application.clone(),
            computation: file.computation,
            communication: file.communication,
            program: None,
            graph: None,
        };
        let mut strategies = Vec::new();
        for (at, strategy) in file.strategies.iter().enumerate() {
            if file.strategies[..at].iter().any(|other| other.name == strategy.name) {
                return Err(value("strategies", format!("has two named {}. Rename one", strategy.name)));
            }
            strategies.push(strategy_of(path, text, strategy, &shared)?);
        }
        if strategies.is_empty() {
            strategies.push(strategy_of(path, text, &shared, &shared)?);
        }
        Ok(Application {
            rate: file.rate.unwrap_or_else(|| "default".into()),
            size: file.size,
            unit: file.unit,
            measured_on: file.measured_on.unwrap_or_default(),
            uncertainty,
            strategies,
            constants: file.constants,
            type_bytes,
            name: file.application,
        })
    }

    fn scope<'a>(&self, size: f64, processors: u64, costs: Option<Costs<'a>>) -> Scope<'a> {
        let mut values = self.constants.clone();
        for (name, value) in [("p_size", size), ("N", size), ("n_procs", processors as f64), ("P", processors as f64)] {
            values.insert(name.to_owned(), value);
        }
        Scope { values, type_bytes: self.type_bytes, costs }
    }

    /// What a processor of a strategy computes at a size among so many processors, in [`Application::unit`].
    ///
    /// # Errors
    /// If the formulae have no value there, or one below 0.
    pub fn computation(&self, strategy: &Strategy, size: f64, processors: u64) -> Result<f64, ModelError> {
        let mut scope = self.scope(size, processors, None);
        let formulae = match &strategy.computation {
            Computation::Graph(graph) => return graph.longest(&scope),
            Computation::Formulae(formulae) => formulae,
        };
        value_of(formulae, &mut scope, &COMPUTATION)
    }

    /// The seconds that a strategy communicates on a system.
    ///
    /// # Errors
    /// As [`Application::computation`].
    pub fn communication(
        &self,
        strategy: &Strategy,
        system: &System,
        size: f64,
        processors: u64,
    ) -> Result<f64, ModelError> {
        let mut scope = self.scope(size, processors, Some(Costs { system, processors }));
        value_of(&strategy.communication, &mut scope, &COMMUNICATION)
    }
}

fn value_of(formulae: &Formulae, scope: &mut Scope, results: &[&str]) -> Result<f64, ModelError> {
    let value = run(&formulae.statements, scope, results).map_err(|fault| formulae.source.error(&fault))?;
    if value < 0.0 {
        let at = formulae.statements.last().map_or(0..0, |last| last.at.clone());
        let of = |name: &str| scope.values.get(name).copied().unwrap_or_default();
        let what = format!(
            "the result is {value} at p_size = {}, n_procs = {}: less than nothing. Mend the formula, or leave that point out",
            of("p_size"),
            of("n_procs")
        );
        return Err(formulae.source.error(&Fault::new(at, what)));
    }
    Ok(value)
}

fn strategy_of(path: &Path, text: &str, file: &StrategyFile, shared: &StrategyFile) -> Result<Strategy, ModelError> {
    let of = format!("strategy {:?}", file.name);
    let wrong = |what: &str| ModelError::Value { path: path.to_owned(), key: of.clone(), what: what.to_owned() };
    let given = |what: &str, value: &Spanned<String>| {
        Formulae::read(value.get_ref().clone(), placed(path, text, value, format!("{what} of {of}")))
    };
    let mut strategy = match (&file.program, &file.graph) {
        (Some(_), Some(_)) => return Err(wrong("has both a loop and a graph. Make two strategies of it")),
        (Some(program), None) => {
            let source = placed(path, text, program, format!("LOOP program of {of}"));
            let derived =
                parse(program.get_ref()).and_then(|items| derive(&items)).map_err(|fault| source.error(&fault))?;
            let communication = communication_of(&derived, path, &of)?;
            let text = format!("comp = {};", derived.computation);
            let computation =
                Computation::Formulae(Formulae::derived(text, path, format!("derived from the LOOP program of {of}"))?);
            Strategy { name: file.name.clone(), given: "LOOP program", computation, communication }
        }
        (None, Some(graph)) => {
            let graph = Graph::new(path, &of, graph)?;
            let communication = communication_of(&graph.derived, path, &of)?;
            let computation = Computation::Graph(graph);
            Strategy { name: file.name.clone(), given: "task graph", computation, communication }
        }
        (None, None) => {
            let computation = file.computation.as_ref().or(shared.computation.as_ref());
            let computation = computation.ok_or_else(|| wrong("has no `computation`, `loop` or `graph`. Add one"))?;
            let communication = match file.communication.as_ref().or(shared.communication.as_ref()) {
                Some(communication) => given("communication", communication)?,
                None => Formulae::derived(String::new(), path, of.clone())?,
            };
            let computation = Computation::Formulae(given("computation", computation)?);
            return Ok(Strategy { name: file.name.clone(), given: "formulae", computation, communication });
        }
    };
    // Formulae beside a program or graph stand in the place of those derived from it.
    if let Some(computation) = &file.computation {
        strategy.computation = Computation::Formulae(given("computation", computation)?);
    }
    if let Some(communication) = &file.communication {
        strategy.communication = given("communication", communication)?;
    }
    Ok(strategy)
}

fn communication_of(derived: &Derived, path: &Path, of: &str) -> Result<Formulae, ModelError> {
    Formulae::derived(derived.communication(), path, format!("derived from {of}"))
}
