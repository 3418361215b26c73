//! What each kind of `apis.json` is to phasecast, and its C type: the only list of kinds there is.

use crate::model::{CType, Kind};

/// A kind of `apis.json`: its meaning, its C type, and its C type in the large-count binding if that differs.
pub struct KindRow {
    /// What it means.
    pub kind: Kind,
    /// C type.
    pub small: CType,
    /// C type in the `_c` procedure.
    pub large: Option<CType>,
}

/// Looks a kind up; `None` if the standard has grown one that phasecast does not know.
pub fn lookup(name: &str) -> Option<KindRow> {
    let row = |kind, small| Some(KindRow { kind, small, large: None });
    let poly = |kind, small, large| Some(KindRow { kind, small, large: Some(large) });
    use CType::{
        Aint, Char, Count, Double, F08Status, Fint, Function, Handle, Int, Offset, Opaque, Status, Varargs, Void,
    };
    match name {
        "BUFFER" => row(Kind::Buffer, Void),
        "C_BUFFER" | "C_BUFFER2" => row(Kind::BufferAddress, Void),
        "EXTRA_STATE" | "EXTRA_STATE2" => row(Kind::ExtraState, Void),
        "ATTRIBUTE_VAL" | "ATTRIBUTE_VAL_10" => row(Kind::AttributeValue, Void),
        "LOGICAL_VOID" => row(Kind::Flag, Void),
        "TOOL_MPI_OBJ" => row(Kind::ToolHandle, Void),

        "COMMUNICATOR" => row(Kind::Communicator, Handle),
        "DATATYPE" => row(Kind::Datatype, Handle),
        "ERRHANDLER" => row(Kind::Errhandler, Handle),
        "FILE" => row(Kind::File, Handle),
        "GROUP" => row(Kind::Group, Handle),
        "INFO" => row(Kind::Info, Handle),
        "MESSAGE" => row(Kind::Message, Handle),
        "OPERATION" => row(Kind::Operation, Handle),
        "REQUEST" => row(Kind::Request, Handle),
        "SESSION" => row(Kind::Session, Handle),
        "WINDOW" => row(Kind::Window, Handle),
        "CVAR" | "PVAR" | "PVAR_SESSION" | "EVENT_REGISTRATION" | "EVENT_INSTANCE" | "TOOLS_ENUM" => {
            row(Kind::ToolHandle, Opaque)
        }

        "STATUS" => row(Kind::Status, Status),
        "F08_STATUS" => row(Kind::FortranStatus, F08Status),
        "F90_STATUS" => row(Kind::FortranStatus, Fint),
        "F90_COMM" | "F90_DATATYPE" | "F90_ERRHANDLER" | "F90_FILE" | "F90_GROUP" | "F90_INFO" | "F90_MESSAGE"
        | "F90_OP" | "F90_REQUEST" | "F90_SESSION" | "F90_WIN" => row(Kind::FortranHandle, Fint),

        "POLYXFER_NUM_ELEM"
        | "POLYXFER_NUM_ELEM_NNI"
        | "POLYDTYPE_NUM_ELEM"
        | "POLYDTYPE_NUM_ELEM_NNI"
        | "POLYDTYPE_NUM_ELEM_PI" => poly(Kind::Count, Int, Count),
        "XFER_NUM_ELEM" | "XFER_NUM_ELEM_NNI" => row(Kind::Count, Count),
        "POLYNUM_BYTES" | "POLYNUM_BYTES_NNI" => poly(Kind::Bytes, Int, Count),
        "POLYDTYPE_PACK_SIZE" => poly(Kind::Bytes, Aint, Count),
        "NUM_BYTES" => row(Kind::Bytes, Count),
        "NUM_BYTES_SMALL" => row(Kind::Bytes, Int),
        "WINDOW_SIZE" | "ALLOC_MEM_NUM_BYTES" | "WIN_ATTACH_SIZE" => row(Kind::Bytes, Aint),
        "POLYDISPLACEMENT" | "POLYRMA_DISPLACEMENT" => poly(Kind::Displacement, Int, Aint),
        "POLYDISPLACEMENT_COUNT" => poly(Kind::Displacement, Int, Count),
        "POLYDISPLACEMENT_AINT_COUNT" | "POLYDTYPE_STRIDE_BYTES" | "POLYDISPOFFSET" | "POLYLOCATION" => {
            poly(Kind::Displacement, Aint, Count)
        }
        "DISPLACEMENT" | "DISPLACEMENT_NNI" | "RMA_DISPLACEMENT_NNI" => row(Kind::Displacement, Aint),
        "LOCATION_SMALL" => row(Kind::Location, Aint),
        "OFFSET" => row(Kind::Offset, Offset),
        "POLYNUM_PARAM_VALUES" => poly(Kind::ArrayLength, Int, Count),
        "GENERIC_DTYPE_COUNT" | "TOOLS_TICK_COUNT" => row(Kind::Number, Count),

        "RANK" | "RANK_NNI" => row(Kind::Rank, Int),
        "TAG" => row(Kind::Tag, Int),
        "PARTITION" => row(Kind::Partition, Int),
        "ARRAY_LENGTH" | "ARRAY_LENGTH_NNI" | "ARRAY_LENGTH_PI" | "NUM_DIMS" | "TOOLS_NUM_ELEM_SMALL" => {
            row(Kind::ArrayLength, Int)
        }
        "INDEX" => row(Kind::Index, Int),
        "LOGICAL" | "LOGICAL_OPTIONAL" => row(Kind::Flag, Int),
        "STRING" => row(Kind::String, Char),
        "STRING_ARRAY" | "STRING_2DARRAY" => row(Kind::String, Char),
        "STRING_LENGTH" | "INFO_VALUE_LENGTH" => row(Kind::StringLength, Int),
        "ARGUMENT_COUNT" => row(Kind::ArgumentCount, Int),
        "ARGUMENT_LIST" => row(Kind::ArgumentList, Char),
        "KEYVAL" => row(Kind::Keyval, Int),
        "ERROR_CODE" | "ERROR_CLASS" => row(Kind::ErrorCode, Int),
        "THREAD_LEVEL" => row(Kind::ThreadLevel, Int),
        "PROFILE_LEVEL" => row(Kind::ProfileLevel, Int),
        "FUNCTION" | "POLYFUNCTION" | "EVENT_CB_FUNCTION" | "EVENT_FREE_CB_FUNCTION" | "EVENT_DROP_CB_FUNCTION" => {
            row(Kind::Function, Function)
        }
        "VARARGS" => row(Kind::Varargs, Varargs),
        "WALL_TIME" | "TICK_RESOLUTION" => row(Kind::Seconds, Double),

        "ACCESS_MODE" | "ASSERT" | "BIND_TYPE" | "CALLBACK_SAFETY" | "CAT_INDEX" | "COLOR" | "COMBINER"
        | "COMM_COMPARISON" | "COMM_SIZE" | "COMM_SIZE_PI" | "COORDINATE" | "CVAR_INDEX" | "CVAR_INDEX_SPECIAL"
        | "DEGREE" | "DIMENSION" | "DISTRIB_ENUM" | "DTYPE_DISTRIBUTION" | "EVENT_INDEX" | "FILE_DESCRIPTOR"
        | "GENERIC_DTYPE_INT" | "GROUP_COMPARISON" | "KEY" | "KEY_INDEX" | "LOCK_TYPE" | "MATH" | "ORDER"
        | "PROCESS_GRID_SIZE" | "PVAR_CLASS" | "PVAR_INDEX" | "SOURCE_INDEX" | "SOURCE_ORDERING" | "SPLIT_TYPE"
        | "TOOLENUM_INDEX" | "TOOLENUM_SIZE" | "TOOL_VAR_VALUE" | "TOOL_VAR_VERBOSITY" | "TOPOLOGY_TYPE"
        | "TYPECLASS" | "TYPECLASS_SIZE" | "UPDATE_MODE" | "UPDATE_NUMBER" | "VARIABLE_SCOPE" | "VERSION"
        | "WEIGHT" => row(Kind::Number, Int),
        _ => None,
    }
}
