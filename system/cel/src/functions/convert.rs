//! Type conversions.

use std::rc::Rc;

use jiff::Timestamp;

use super::context::{EvaluationContext, EvaluationResult, Table};
use crate::evaluation_error::EvaluationError;
use crate::number::{INT_END, UINT_END, format_double};
use crate::time;
use crate::value::Cel;

const NANOS_A_SECOND: i64 = 1_000_000_000;

pub(super) const TABLE: Table = &[
    ("bool", to_bool),
    ("bytes", to_bytes),
    ("double", to_double),
    ("duration", to_duration),
    ("dyn", same),
    ("int", to_int),
    ("string", to_text),
    ("timestamp", to_timestamp),
    ("type", type_of),
    ("uint", to_uint),
];

/// Returns the canonical name of a type.
pub(crate) fn type_name(name: &str) -> &'static str {
    const NAMES: [&str; 16] = [
        "null_type",
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "google.protobuf.Timestamp",
        "google.protobuf.Duration",
        "type",
        "optional_type",
        "kubernetes.Quantity",
        "net.IP",
        "net.CIDR",
    ];
    NAMES.into_iter().find(|known| *known == name).unwrap_or("kubernetes.URL")
}

/// Describes a key or an index for a message.
pub(super) fn shown(value: &Cel<'_>) -> String {
    text_of(value).unwrap_or_else(|| value.type_name().to_owned())
}

fn same<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [value] => Ok(value.clone()),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn type_of<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [value] => Ok(Cel::Type(value.type_name())),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn impossible(value: &Cel<'_>, to: &str) -> EvaluationError {
    EvaluationError::new(format!("type conversion error from '{}' to '{to}'", value.type_name()))
}

fn to_bool<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Bool(value)] => Ok(Cel::Bool(*value)),
        [value @ Cel::Text(text)] => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Cel::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Cel::Bool(false)),
            _ => Err(impossible(value, "bool")),
        },
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn to_bytes<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [value @ Cel::Bytes(_)] => Ok(value.clone()),
        [Cel::Text(text)] => {
            context.steps.take_for_bytes(text.len())?;
            Ok(Cel::Bytes(Rc::from(text.as_bytes())))
        }
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn to_int<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let overflow = || EvaluationError::new("integer overflow");
    match arguments {
        [Cel::Int(value)] => Ok(Cel::Int(*value)),
        [Cel::Uint(value)] => i64::try_from(*value).map(Cel::Int).map_err(|_| overflow()),
        [Cel::Double(value)] => {
            // The ends are excluded: the double may have been rounded to them.
            let fits = value.is_finite() && *value > -INT_END && *value < INT_END;
            if fits { Ok(Cel::Int(*value as i64)) } else { Err(overflow()) }
        }
        [value @ Cel::Text(text)] => go_int(text).map(Cel::Int).ok_or_else(|| impossible(value, "int")),
        [Cel::Timestamp(value)] => Ok(Cel::Int(value.as_second())),
        [Cel::Duration(value)] => Ok(Cel::Int(*value)),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

/// Parses an integer as Go does.
fn go_int(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn to_uint<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let overflow = || EvaluationError::new("unsigned integer overflow");
    match arguments {
        [Cel::Uint(value)] => Ok(Cel::Uint(*value)),
        [Cel::Int(value)] => u64::try_from(*value).map(Cel::Uint).map_err(|_| overflow()),
        [Cel::Double(value)] => {
            let fits = value.is_finite() && *value >= 0.0 && *value < UINT_END;
            if fits { Ok(Cel::Uint(*value as u64)) } else { Err(overflow()) }
        }
        [value @ Cel::Text(text)] => {
            let number = (!text.starts_with('+')).then(|| text.parse().ok()).flatten();
            number.map(Cel::Uint).ok_or_else(|| impossible(value, "uint"))
        }
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn to_double<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Double(value)] => Ok(Cel::Double(*value)),
        [Cel::Int(value)] => Ok(Cel::Double(*value as f64)),
        [Cel::Uint(value)] => Ok(Cel::Double(*value as f64)),
        [value @ Cel::Text(text)] => text.parse().map(Cel::Double).map_err(|_| impossible(value, "double")),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn to_text<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [value @ Cel::Text(_)] => Ok(value.clone()),
        [Cel::Bytes(bytes)] => {
            context.steps.take_for_bytes(bytes.len())?;
            let text = std::str::from_utf8(bytes);
            text.map(Cel::text).map_err(|_| EvaluationError::new("invalid UTF-8 in bytes, cannot convert to string"))
        }
        [value] => text_of(value).map(Cel::text).ok_or_else(EvaluationError::no_such_overload),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

/// Converts a value to a string.
pub(super) fn text_of(value: &Cel<'_>) -> Option<String> {
    match value {
        Cel::Bool(value) => Some(value.to_string()),
        Cel::Int(value) => Some(value.to_string()),
        Cel::Uint(value) => Some(value.to_string()),
        Cel::Double(value) => Some(format_double(*value)),
        Cel::Text(text) => Some(text.to_string()),
        Cel::Timestamp(value) => Some(value.to_string()),
        Cel::Duration(value) => Some(time::seconds(*value)),
        Cel::Type(name) => Some((*name).to_owned()),
        Cel::Ip(address) => Some(address.to_string()),
        Cel::Cidr(range) => Some(range.to_string()),
        _ => None,
    }
}

fn to_timestamp<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let point = match arguments {
        [Cel::Timestamp(value)] => Some(*value),
        [Cel::Int(seconds)] => {
            let point = Timestamp::from_second(*seconds).ok().filter(|point| time::is_in_range(*point));
            return point.map(Cel::Timestamp).ok_or_else(|| EvaluationError::new("timestamp overflow"));
        }
        [Cel::Text(text)] => time::timestamp(text).filter(|point| time::is_in_range(*point)),
        _ => return Err(EvaluationError::no_such_overload()),
    };
    point
        .map(Cel::Timestamp)
        .ok_or_else(|| EvaluationError::new("type conversion error from 'string' to 'google.protobuf.Timestamp'"))
}

fn to_duration<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Duration(value)] => Ok(Cel::Duration(*value)),
        [Cel::Int(seconds)] => seconds
            .checked_mul(NANOS_A_SECOND)
            .map(Cel::Duration)
            .ok_or_else(|| EvaluationError::new("duration overflow")),
        [value @ Cel::Text(text)] => {
            time::duration(text).map(Cel::Duration).ok_or_else(|| impossible(value, "google.protobuf.Duration"))
        }
        _ => Err(EvaluationError::no_such_overload()),
    }
}
