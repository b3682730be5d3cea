//! What an expression gives: parts of the object, which are only lent, and what was made from them.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

use serde_json::{Map, Value};

/// A value. Cheap to copy.
#[derive(Clone, Debug)]
pub(super) enum Cel<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    List(List<'a>),
    Map(Entries<'a>),
}

#[derive(Clone, Debug)]
pub(super) enum Text<'a> {
    Lent(&'a str),
    Made(Rc<str>),
}

#[derive(Clone, Debug)]
pub(super) enum List<'a> {
    Lent(&'a [Value]),
    Made(Rc<[Cel<'a>]>),
}

#[derive(Clone, Debug)]
pub(super) enum Entries<'a> {
    Lent(&'a Map<String, Value>),
    Made(Rc<BTreeMap<String, Cel<'a>>>),
}

impl<'a> Cel<'a> {
    pub fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => {
                let whole = number.as_i64().map(Self::Int).or_else(|| number.as_u64().map(Self::Uint));
                whole.unwrap_or_else(|| Self::Double(number.as_f64().unwrap_or(f64::NAN)))
            }
            Value::String(text) => Self::Text(Text::Lent(text)),
            Value::Array(list) => Self::List(List::Lent(list)),
            Value::Object(map) => Self::Map(Entries::Lent(map)),
        }
    }

    pub fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(Text::Made(text.into()))
    }

    pub fn list(elements: Vec<Self>) -> Self {
        Self::List(List::Made(elements.into()))
    }

    /// What it is, never what it holds: for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an int",
            Self::Uint(_) => "a uint",
            Self::Double(_) => "a double",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
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
    pub fn len(&self) -> usize {
        match self {
            Self::Lent(list) => list.len(),
            Self::Made(list) => list.len(),
        }
    }

    pub fn get(&self, index: usize) -> Option<Cel<'a>> {
        match self {
            Self::Lent(list) => list.get(index).map(Cel::of),
            Self::Made(list) => list.get(index).cloned(),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Cel<'a>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

impl<'a> Entries<'a> {
    pub fn len(&self) -> usize {
        match self {
            Self::Lent(map) => map.len(),
            Self::Made(map) => map.len(),
        }
    }

    pub fn get(&self, name: &str) -> Option<Cel<'a>> {
        match self {
            Self::Lent(map) => map.get(name).map(Cel::of),
            Self::Made(map) => map.get(name).cloned(),
        }
    }

    /// Sorted.
    pub fn names(&self) -> Vec<Cel<'a>> {
        match self {
            Self::Lent(map) => {
                let mut names: Vec<&str> = map.keys().map(String::as_str).collect();
                names.sort_unstable();
                names.into_iter().map(|name| Cel::Text(Text::Lent(name))).collect()
            }
            Self::Made(map) => map.keys().map(|name| Cel::text(name.as_str())).collect(),
        }
    }
}
