//! Values of expressions: borrowed parts of an object, and owned results.
//!
//! A part of an object may have a shape from its schema: then a string may be a timestamp, an integer a double, fields have
//! their names in rules, and sets are equal in any order.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;

use base64::Engine as _;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::network::{Cidr, Url};
use crate::quantity::Quantity;
use crate::shape::{ListKind, ObjectShape, Shape};
use crate::time;

/// A value. Cheap to clone.
#[derive(Clone)]
pub enum Cel<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// A string.
    Text(Text<'a>),
    /// Bytes.
    Bytes(Rc<[u8]>),
    /// A list.
    List(List<'a>),
    /// A map or an object.
    Map(Entries<'a>),
    /// A point in time.
    Timestamp(Timestamp),
    /// A duration in nanoseconds.
    Duration(i64),
    /// A type, by its name.
    Type(&'static str),
    /// An optional value.
    Optional(Option<Rc<Cel<'a>>>),
    /// A quantity.
    Quantity(Quantity),
    /// An IP address.
    Ip(IpAddr),
    /// A CIDR range.
    Cidr(Cidr),
    /// A URL.
    Url(Rc<Url>),
    /// A value that rules may only compare for equality.
    Hidden(&'a Value),
}

/// A string.
#[derive(Clone)]
pub enum Text<'a> {
    /// Part of the object or of the rule.
    Borrowed(&'a str),
    /// Computed by the rule.
    Owned(Rc<str>),
}

/// A list.
#[derive(Clone)]
pub enum List<'a> {
    /// Part of the object, with the shape and the identity of its elements.
    Borrowed(&'a [Value], Option<(&'a Shape, &'a ListKind)>),
    /// Computed by the rule; the identity of the elements may come from an operand.
    Owned(Rc<[Cel<'a>]>, Option<&'a ListKind>),
}

/// A map or an object.
#[derive(Clone)]
pub enum Entries<'a> {
    /// Part of the object without a shape.
    Borrowed(&'a Map<String, Value>),
    /// A map whose values have a shape.
    Typed(&'a Map<String, Value>, &'a Shape),
    /// An object whose fields have shapes.
    Object(&'a Map<String, Value>, &'a ObjectShape),
    /// Computed by the rule.
    Owned(Rc<BTreeMap<Key, Cel<'a>>>),
}

/// A key of a map.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// `true` or `false`.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A string.
    Text(String),
}

impl<'a> Cel<'a> {
    /// Converts a part of an object without a shape.
    pub fn from_json(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => {
                let whole = number.as_i64().map(Self::Int).or_else(|| number.as_u64().map(Self::Uint));
                whole.unwrap_or_else(|| Self::Double(number.as_f64().unwrap_or(f64::NAN)))
            }
            Value::String(text) => Self::Text(Text::Borrowed(text)),
            Value::Array(list) => Self::List(List::Borrowed(list, None)),
            Value::Object(map) => Self::Map(Entries::Borrowed(map)),
        }
    }

    /// Converts a part of an object with a shape. A value that does not match its shape is converted without it.
    pub fn with_shape(value: &'a Value, shape: &'a Shape) -> Self {
        let known = match (shape, value) {
            (Shape::Hidden, value) => Some(Self::Hidden(value)),
            (Shape::Double, Value::Number(number)) => number.as_f64().map(Self::Double),
            (Shape::Int, Value::Number(number)) if number.is_f64() => {
                number.as_f64().filter(|number| number.fract() == 0.0).map(|number| Self::Int(number as i64))
            }
            (Shape::Bytes, Value::String(text)) => decode_base64(text).map(|bytes| Self::Bytes(Rc::from(bytes))),
            (Shape::Timestamp, Value::String(text)) => time::schema_timestamp(text).map(Self::Timestamp),
            (Shape::Date, Value::String(text)) => time::date(text).and_then(time::midnight).map(Self::Timestamp),
            (Shape::Duration, Value::String(text)) => time::schema_duration(text).map(Self::Duration),
            (Shape::List(items, kind), Value::Array(list)) => {
                Some(Self::List(List::Borrowed(list, Some((items, kind)))))
            }
            (Shape::Map(values), Value::Object(map)) => Some(Self::Map(Entries::Typed(map, values))),
            (Shape::Object(shape), Value::Object(map)) => Some(Self::Map(Entries::Object(map, shape))),
            (_, _) => None,
        };
        known.unwrap_or_else(|| Self::from_json(value))
    }

    /// Creates an optional value that is present.
    pub fn some(value: Self) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    pub(crate) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(Text::Owned(text.into()))
    }

    pub(crate) fn list(elements: Vec<Self>) -> Self {
        Self::List(List::Owned(elements.into(), None))
    }

    /// Returns the string, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the name of the type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Type(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Hidden(_) => "unknown",
        }
    }

    /// Converts to a key of a map; `None` if the type cannot be one.
    pub(crate) fn to_key(&self) -> Option<Key> {
        match self {
            Self::Bool(value) => Some(Key::Bool(*value)),
            Self::Int(value) => Some(Key::Int(*value)),
            Self::Uint(value) => Some(Key::Uint(*value)),
            Self::Text(text) => Some(Key::Text(text.to_string())),
            _ => None,
        }
    }
}

/// Decodes base64 with the alphabets that the real API server accepts.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let without: String = text.chars().filter(|character| !matches!(character, '\r' | '\n')).collect();
    base64::engine::general_purpose::URL_SAFE
        .decode(&without)
        .or_else(|_| base64::engine::general_purpose::STANDARD.decode(&without))
        .ok()
}

/// Shows the type only: the value may be secret.
impl fmt::Debug for Cel<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Cel({})", self.type_name())
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }
}

impl<'a> List<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Borrowed(list, _) => list.len(),
            Self::Owned(list, _) => list.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Cel<'a>> {
        match self {
            Self::Borrowed(list, None) => list.get(index).map(Cel::from_json),
            Self::Borrowed(list, Some((items, _))) => list.get(index).map(|value| Cel::with_shape(value, items)),
            Self::Owned(list, _) => list.get(index).cloned(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Cel<'a>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Returns the identity of the elements.
    pub(crate) fn kind(&self) -> Option<&'a ListKind> {
        match self {
            Self::Borrowed(_, known) => known.map(|(_, kind)| kind),
            Self::Owned(_, kind) => *kind,
        }
    }
}

impl<'a> Entries<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Borrowed(map) | Self::Typed(map, _) | Self::Object(map, _) => map.len(),
            Self::Owned(map) => map.len(),
        }
    }

    /// Returns a field by its name in rules.
    pub(crate) fn field(&self, name: &str) -> Option<Cel<'a>> {
        match self {
            Self::Borrowed(map) => map.get(name).map(Cel::from_json),
            Self::Typed(map, values) => map.get(name).map(|value| Cel::with_shape(value, values)),
            Self::Object(map, shape) => {
                let (own, shape) = shape.fields.get(name)?;
                // A null field counts as missing.
                map.get(own).filter(|value| !value.is_null()).map(|value| Cel::with_shape(value, shape))
            }
            Self::Owned(map) => map.get(&Key::Text(name.to_owned())).cloned(),
        }
    }

    /// Returns an entry by a key. Numeric keys of different types are equal if their values are.
    pub(crate) fn get(&self, key: &Cel<'a>) -> Option<Cel<'a>> {
        if let Cel::Text(name) = key {
            return self.field(name);
        }
        let Self::Owned(map) = self else { return None };
        let (int, uint) = match key {
            Cel::Bool(value) => return map.get(&Key::Bool(*value)).cloned(),
            Cel::Int(value) => (Some(*value), u64::try_from(*value).ok()),
            Cel::Uint(value) => (i64::try_from(*value).ok(), Some(*value)),
            Cel::Double(value) if value.fract() == 0.0 => (Some(*value as i64), Some(*value as u64)),
            _ => return None,
        };
        let found = int.and_then(|int| map.get(&Key::Int(int)));
        found.or_else(|| uint.and_then(|uint| map.get(&Key::Uint(uint)))).cloned()
    }

    /// Returns the keys, sorted; those of an object by their names in rules.
    pub(crate) fn keys(&self) -> Vec<Cel<'a>> {
        match self {
            Self::Borrowed(map) | Self::Typed(map, _) => {
                let mut names: Vec<&str> = map.keys().map(String::as_str).collect();
                names.sort_unstable();
                names.into_iter().map(|name| Cel::Text(Text::Borrowed(name))).collect()
            }
            Self::Object(map, shape) => {
                let known = shape.fields.iter().filter(|(_, (own, _))| map.contains_key(own));
                known.map(|(name, _)| Cel::Text(Text::Borrowed(name))).collect()
            }
            Self::Owned(map) => map.keys().map(Key::value).collect(),
        }
    }
}

impl Key {
    fn value<'a>(&self) -> Cel<'a> {
        match self {
            Self::Bool(value) => Cel::Bool(*value),
            Self::Int(value) => Cel::Int(*value),
            Self::Uint(value) => Cel::Uint(*value),
            Self::Text(text) => Cel::text(text.as_str()),
        }
    }
}
