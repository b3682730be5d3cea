//! What an expression gives: parts of an object, which are only lent, and what was made from them.
//!
//! A part of an object may come with what its schema says about it: then a text may be a time, a whole number a double,
//! fields have the names that rules know them by, and sets are equal in any order.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;

use base64::Engine as _;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::functions::network::{Cidr, Url};
use crate::quantity::Quantity;
use crate::shape::{ListKind, ObjectShape, Shape};
use crate::time;

/// A value. Cheap to copy.
#[derive(Clone)]
pub enum Cel<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number without a sign.
    Uint(u64),
    /// A number with a fraction.
    Double(f64),
    /// A text.
    Text(Text<'a>),
    /// Bytes.
    Bytes(Rc<[u8]>),
    /// A list.
    List(List<'a>),
    /// A map or an object.
    Map(Entries<'a>),
    /// A point in time.
    Timestamp(Timestamp),
    /// A stretch of time, in nanoseconds.
    Duration(i64),
    /// A type, by its name.
    Type(&'static str),
    /// A value that may not be there.
    Optional(Option<Rc<Cel<'a>>>),
    /// An amount.
    Quantity(Quantity),
    /// An address.
    Ip(IpAddr),
    /// A range of addresses.
    Cidr(Cidr),
    /// A locator.
    Url(Rc<Url>),
    /// Something that no rule may look at.
    Kept(&'a Value),
}

/// A text.
#[derive(Clone)]
pub enum Text<'a> {
    /// Part of the object or of the rule.
    Lent(&'a str),
    /// Made by the rule.
    Made(Rc<str>),
}

/// A list.
#[derive(Clone)]
pub enum List<'a> {
    /// Part of the object, with what is known about its elements and what tells them apart.
    Lent(&'a [Value], Option<(&'a Shape, &'a ListKind)>),
    /// Made by the rule; what tells elements apart may come from a list that it was made from.
    Made(Rc<[Cel<'a>]>, Option<&'a ListKind>),
}

/// A map or an object.
#[derive(Clone)]
pub enum Entries<'a> {
    /// Any part of the object.
    Lent(&'a Map<String, Value>),
    /// A map with known values.
    Typed(&'a Map<String, Value>, &'a Shape),
    /// An object with known fields.
    Object(&'a Map<String, Value>, &'a ObjectShape),
    /// Made by the rule.
    Made(Rc<BTreeMap<Key, Cel<'a>>>),
}

/// A key of a map.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number without a sign.
    Uint(u64),
    /// A text.
    Text(String),
}

impl<'a> Cel<'a> {
    /// A part of an object about which nothing is known.
    pub fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => {
                let whole = number.as_i64().map(Self::Int).or_else(|| number.as_u64().map(Self::Uint));
                whole.unwrap_or_else(|| Self::Double(number.as_f64().unwrap_or(f64::NAN)))
            }
            Value::String(text) => Self::Text(Text::Lent(text)),
            Value::Array(list) => Self::List(List::Lent(list, None)),
            Value::Object(map) => Self::Map(Entries::Lent(map)),
        }
    }

    /// A part of an object of which the schema is known. What does not follow its schema is taken as it is.
    pub fn shaped(value: &'a Value, shape: &'a Shape) -> Self {
        let known = match (shape, value) {
            (Shape::Hidden, value) => Some(Self::Kept(value)),
            (Shape::Double, Value::Number(number)) => number.as_f64().map(Self::Double),
            (Shape::Int, Value::Number(number)) if number.is_f64() => {
                number.as_f64().filter(|number| number.fract() == 0.0).map(|number| Self::Int(number as i64))
            }
            (Shape::Bytes, Value::String(text)) => bytes(text).map(|bytes| Self::Bytes(Rc::from(bytes))),
            (Shape::Timestamp, Value::String(text)) => time::schema_timestamp(text).map(Self::Timestamp),
            (Shape::Date, Value::String(text)) => time::date(text).and_then(time::midnight).map(Self::Timestamp),
            (Shape::Duration, Value::String(text)) => time::schema_duration(text).map(Self::Duration),
            (Shape::List(items, kind), Value::Array(list)) => Some(Self::List(List::Lent(list, Some((items, kind))))),
            (Shape::Map(values), Value::Object(map)) => Some(Self::Map(Entries::Typed(map, values))),
            (Shape::Object(shape), Value::Object(map)) => Some(Self::Map(Entries::Object(map, shape))),
            (_, _) => None,
        };
        known.unwrap_or_else(|| Self::of(value))
    }

    /// A value that is there.
    pub fn some(value: Self) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    pub(crate) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(Text::Made(text.into()))
    }

    pub(crate) fn list(elements: Vec<Self>) -> Self {
        Self::List(List::Made(elements.into(), None))
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What it is, never what it holds: the name of its type.
    pub fn kind(&self) -> &'static str {
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
            Self::Kept(_) => "unknown",
        }
    }

    /// As a key of a map; `None` for what cannot be one.
    pub(crate) fn key(&self) -> Option<Key> {
        match self {
            Self::Bool(value) => Some(Key::Bool(*value)),
            Self::Int(value) => Some(Key::Int(*value)),
            Self::Uint(value) => Some(Key::Uint(*value)),
            Self::Text(text) => Some(Key::Text(text.to_string())),
            _ => None,
        }
    }
}

/// The bytes that base64 stands for, with the letters that the real server reads.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let without: String = text.chars().filter(|character| !matches!(character, '\r' | '\n')).collect();
    base64::engine::general_purpose::URL_SAFE
        .decode(&without)
        .or_else(|_| base64::engine::general_purpose::STANDARD.decode(&without))
        .ok()
}

/// Only what it is: it may hold what nobody should read.
impl fmt::Debug for Cel<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Cel({})", self.kind())
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Lent(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl<'a> List<'a> {
    /// How many elements there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Lent(list, _) => list.len(),
            Self::Made(list, _) => list.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Cel<'a>> {
        match self {
            Self::Lent(list, None) => list.get(index).map(Cel::of),
            Self::Lent(list, Some((items, _))) => list.get(index).map(|value| Cel::shaped(value, items)),
            Self::Made(list, _) => list.get(index).cloned(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Cel<'a>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// What tells its elements apart.
    pub(crate) fn kind(&self) -> Option<&'a ListKind> {
        match self {
            Self::Lent(_, known) => known.map(|(_, kind)| kind),
            Self::Made(_, kind) => *kind,
        }
    }
}

impl<'a> Entries<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Lent(map) | Self::Typed(map, _) | Self::Object(map, _) => map.len(),
            Self::Made(map) => map.len(),
        }
    }

    /// By a name that is in the rule.
    pub(crate) fn field(&self, name: &str) -> Option<Cel<'a>> {
        match self {
            Self::Lent(map) => map.get(name).map(Cel::of),
            Self::Typed(map, values) => map.get(name).map(|value| Cel::shaped(value, values)),
            Self::Object(map, shape) => {
                let (own, shape) = shape.fields.get(name)?;
                // A field that is null is as good as missing.
                map.get(own).filter(|value| !value.is_null()).map(|value| Cel::shaped(value, shape))
            }
            Self::Made(map) => map.get(&Key::Text(name.to_owned())).cloned(),
        }
    }

    /// By a value; numbers of any kind are one key if they are equal.
    pub(crate) fn get(&self, key: &Cel<'a>) -> Option<Cel<'a>> {
        if let Cel::Text(name) = key {
            return self.field(name);
        }
        let Self::Made(map) = self else { return None };
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

    /// Sorted; those of an object as rules know them.
    pub(crate) fn keys(&self) -> Vec<Cel<'a>> {
        match self {
            Self::Lent(map) | Self::Typed(map, _) => {
                let mut names: Vec<&str> = map.keys().map(String::as_str).collect();
                names.sort_unstable();
                names.into_iter().map(|name| Cel::Text(Text::Lent(name))).collect()
            }
            Self::Object(map, shape) => {
                let known = shape.fields.iter().filter(|(_, (own, _))| map.contains_key(own));
                known.map(|(name, _)| Cel::Text(Text::Lent(name))).collect()
            }
            Self::Made(map) => map.keys().map(Key::value).collect(),
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
