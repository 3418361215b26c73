//! How each argument of each procedure is treated on its way down and up: worked out from the table of procedures.
use crate::calls::{FEW, WORDS};
use crate::library::Library;
use crate::route::{self, Route};
use crate::{changes, completion, point, waits};
use phasecast_abi::{CType, Class, Direction, Domain, Kind, Length, PROCEDURES, Param, Passing, Procedure, Return};

/// How an argument is treated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lane {
    /// It is passed on as it is.
    Same,
    /// A number by value.
    Number(Domain),
    /// An address that may be a constant.
    Address(Domain),
    /// Whether ranks may be ordered anew: no, as images are bound to ranks, which another library could order otherwise.
    Reorder,
    /// A handle by value, or an array of handles that is read.
    Handle(Kind),
    /// Where one handle is read, written or both.
    HandleAt(Kind, Direction),
    /// An array of handles.
    Handles(Kind, Direction, Length),
    /// A number is written here.
    NumberAt(Domain),
    /// Numbers are read from here.
    Numbers(Domain, Length),
    /// Numbers are written here.
    NumbersAt(Domain, Length),
    /// A status is read here.
    StatusIn,
    /// A status is written here.
    StatusOut,
    /// A status is changed here.
    StatusChanged,
    /// A text is written here, of at most so many bytes in the program's interface.
    Text(&'static str),
}

impl Lane {
    /// Whether something must be done with it after the call.
    fn comes_up(&self) -> bool {
        match self {
            Lane::HandleAt(_, d) | Lane::Handles(_, d, _) => *d != Direction::In,
            Lane::NumberAt(_) | Lane::NumbersAt(..) | Lane::StatusOut | Lane::StatusChanged | Lane::Text(_) => true,
            _ => false,
        }
    }
}

/// How an argument is treated that is a word.
#[derive(Clone, Copy, Debug)]
pub enum Word {
    /// It is passed on as it is.
    Same,
    /// A handle.
    Handle(Kind),
    /// Where a request is written: a place of ours.
    Request,
    /// As its lane says.
    Other,
}

impl Word {
    fn of(lane: &Lane) -> Word {
        match *lane {
            Lane::Same => Word::Same,
            Lane::Handle(kind) => Word::Handle(kind),
            Lane::HandleAt(Kind::Request, Direction::Out) => Word::Request,
            _ => Word::Other,
        }
    }
}

/// The treatment of a procedure's arguments.
#[derive(Debug)]
pub struct Shape {
    /// The procedure.
    pub procedure: &'static Procedure,
    /// What carries it out.
    pub route: Route,
    /// Its address in the library; 0 if the library lacks it.
    pub function: usize,
    /// A lane for each argument.
    pub lanes: Vec<Lane>,
    /// Where the arguments of a message are.
    pub point: point::Places,
    /// Where those of a completion are, if it is one.
    pub completion: Option<completion::Places>,
    /// The arguments that are translated on the way down.
    pub down: Vec<u8>,
    /// What is done with the first arguments where all are words.
    pub words: [Word; WORDS],
    /// The arguments that are brought up after the call.
    pub up: Vec<u8>,
    /// Its arguments are few words that need no memory, and nothing is to be done after it.
    pub direct: bool,
    /// The same, if the program passes `MPI_STATUS_IGNORE`.
    pub direct_without_status: bool,
    /// The same, if it posts a send or receive: but for the request.
    pub posted: bool,
    /// It makes a request, and reads arrays that are translated (of handles, or of counts where the library has only the plain
    /// form), which the library may read until the request is complete.
    pub lasting: bool,
    /// It frees a handle of an object that is known by the library's handle of it: the argument and the kind.
    pub frees: Option<(usize, Kind)>,
    /// What the procedure changes of an object, if that lasts.
    pub change: Option<changes::Change>,
    /// Where it puts or gets, if it does.
    pub target: Option<Target>,
    /// By what it waits where several threads call, if it waits.
    pub waits: Vec<waits::Counterpart>,
}

/// Where the arguments are that say what memory of which rank is put to or got from.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The window.
    pub window: usize,
    /// The rank.
    pub rank: usize,
    /// The displacement in that rank's memory.
    pub displacement: usize,
}

impl Target {
    fn of(procedure: &Procedure) -> Option<Target> {
        Some(Target {
            window: procedure.param_index(Kind::Window)?,
            rank: procedure.param_named("target_rank")?,
            displacement: procedure.param_named("target_disp")?,
        })
    }
}

/// The shapes of all procedures. `same`: both sides speak the same interface, so that numbers need no translation.
pub fn shapes(same: bool, library: &Library) -> Vec<Shape> {
    let shape = |(index, procedure): (usize, &'static Procedure)| {
        let lanes: Vec<Lane> = procedure.params.iter().map(|p| lane(procedure, p, same)).collect();
        let places = |which: fn(&Lane) -> bool| (0u8..).zip(&lanes).filter(|(_, l)| which(l)).map(|(i, _)| i).collect();
        let (down, up): (Vec<u8>, Vec<u8>) = (places(|lane| *lane != Lane::Same), places(Lane::comes_up));
        let (point, completion) = (point::Places::of(procedure), completion::Places::of(procedure));
        let (change, target) = (changes::change_of(procedure.name), Target::of(procedure));
        let function = library.function(index).unwrap_or(0);
        let word = |lane: &Lane| match lane {
            Lane::Same | Lane::Number(_) | Lane::Address(_) | Lane::StatusOut => true,
            Lane::Handle(kind) => *kind != Kind::Keyval,
            _ => false,
        };
        let words = std::array::from_fn(|i| lanes.get(i).map_or(Word::Same, Word::of));
        let short = function != 0
            && lanes.len() <= WORDS
            && change.is_none()
            && target.is_none()
            && procedure.returns == Return::ErrorCode;
        let direct_without_status = short && lanes.iter().all(word);
        let request = Lane::HandleAt(Kind::Request, Direction::Out);
        let handles = |lane: &Lane| matches!(lane, Lane::Handles(_, Direction::In, _));
        let lasting = lanes.contains(&request) && (function == 0 || lanes.iter().any(handles));
        let freed = |(i, lane): (usize, &Lane)| match lane {
            Lane::HandleAt(Kind::Request | Kind::Message | Kind::Keyval, _) => None,
            // `MPI_Type_commit` leaves its datatype as it is.
            Lane::HandleAt(Kind::Datatype, _) if procedure.class != Class::DatatypeFree => None,
            Lane::HandleAt(kind, Direction::InOut) => Some((i, *kind)),
            _ => None,
        };
        let posted =
            short && lanes.len() <= FEW && point.posts() && lanes.iter().all(|lane| word(lane) || *lane == request);
        let direct = direct_without_status && up.is_empty();
        Shape {
            procedure,
            route: route::route(procedure, direct),
            function,
            direct,
            direct_without_status,
            posted,
            lasting,
            frees: lanes.iter().enumerate().find_map(freed),
            lanes,
            point,
            completion,
            down,
            words,
            up,
            change,
            target,
            waits: waits::counterparts(procedure),
        }
    };
    PROCEDURES.iter().enumerate().map(shape).collect()
}

fn lane(procedure: &Procedure, param: &Param, same: bool) -> Lane {
    let written = param.direction != Direction::In;
    if param.ctype == CType::Handle || (param.kind == Kind::Keyval) {
        return match param.passing {
            Passing::Value => Lane::Handle(param.kind),
            Passing::Pointer => Lane::HandleAt(param.kind, param.direction),
            Passing::Array => Lane::Handles(param.kind, param.direction, param.length),
        };
    }
    if param.kind == Kind::Flag && param.name == "reorder" {
        return Lane::Reorder;
    }
    let is_weights = |domain: &Domain| *domain == Domain::WeightsAddress;
    if same {
        // MPICH's constants for weights are addresses of variables, which each library has its own of.
        return domain(procedure, param).filter(is_weights).map_or(Lane::Same, Lane::Address);
    }
    let value = param.passing == Passing::Value;
    match (param.kind, param.ctype) {
        (Kind::Status, _) if param.passing == Passing::Array => Lane::Same,
        (Kind::Status, _) if param.direction == Direction::InOut => Lane::StatusChanged,
        (Kind::Status, _) if written => Lane::StatusOut,
        (Kind::Status, _) => Lane::StatusIn,
        (Kind::String, CType::Char) if written => match param.length {
            Length::Constant(name) => Lane::Text(name),
            _ => Lane::Same,
        },
        (Kind::Buffer, _) => Lane::Address(Domain::BufferAddress),
        _ => match domain(procedure, param) {
            None => Lane::Same,
            Some(domain @ (Domain::WeightsAddress | Domain::ArgumentAddress | Domain::ErrorCodesAddress)) => {
                Lane::Address(domain)
            }
            Some(domain) if value => Lane::Number(domain),
            Some(domain) if param.passing == Passing::Pointer && written => Lane::NumberAt(domain),
            Some(domain) if written => Lane::NumbersAt(domain, param.length),
            Some(domain) => Lane::Numbers(domain, param.length),
        },
    }
}

/// What the constants among a number's values are.
fn domain(procedure: &Procedure, param: &Param) -> Option<Domain> {
    let written = param.direction != Direction::In;
    Some(match param.kind {
        // A stride is among them, and those that are ranks are members of a group.
        Kind::Rank if matches!(param.length, Length::Triples(_)) => return None,
        Kind::Dest | Kind::Source | Kind::Root | Kind::TargetRank | Kind::Rank => Domain::Rank,
        Kind::Tag => Domain::Tag,
        Kind::ThreadLevel => Domain::ThreadLevel,
        Kind::ErrorCode if param.passing == Passing::Array => Domain::ErrorCodesAddress,
        // What the program ends with is its own number.
        Kind::ErrorCode if procedure.class == Class::Abort => return None,
        Kind::ErrorCode => Domain::ErrorClass,
        Kind::Index | Kind::ArrayLength | Kind::Count if written => Domain::Undefined,
        Kind::Offset | Kind::Displacement if procedure.name == "MPI_File_set_view" => Domain::FileOffset,
        Kind::ArgumentList if procedure.name.contains("spawn") => Domain::ArgumentAddress,
        Kind::String if procedure.name == "MPI_Comm_spawn" && param.name == "argv" => Domain::ArgumentAddress,
        _ => match param.name {
            "weights" | "sourceweights" | "destweights" => Domain::WeightsAddress,
            "amode" => Domain::FileMode,
            "assert" => Domain::WindowAssertion,
            "color" => Domain::Undefined,
            "lock_type" => Domain::LockType,
            "order" => Domain::Order,
            "split_type" => Domain::SplitType,
            "typeclass" => Domain::TypeClass,
            "whence" => Domain::Whence,
            "array_of_distribs" => Domain::Distribution,
            "array_of_dargs" => Domain::DistributionArgument,
            "combiner" => Domain::Combiner,
            "result" => Domain::Comparison,
            "status" if procedure.name == "MPI_Topo_test" => Domain::Topology,
            _ => return None,
        },
    })
}
