//! A rule that was read: what stands where, no deeper than allowed.

use crate::functions::Implementation;

/// A place in a rule: a line and a column, both from one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub line: usize,
    pub column: usize,
}

/// A part of a rule.
#[derive(Debug)]
pub(crate) struct Node {
    pub place: Place,
    pub kind: Kind,
}

/// What a part of a rule is.
#[derive(Debug)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// A variable or the name of a type.
    Name(String),
    /// `a.b`, or `a.?b`, which gives an optional value.
    Field {
        of: Box<Node>,
        name: String,
        is_optional: bool,
    },
    Has {
        of: Box<Node>,
        name: String,
    },
    List(Vec<Element>),
    Map(Vec<Entry>),
    /// `a.b{}`, which nothing here has.
    Message(String),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    If {
        condition: Box<Node>,
        then: Box<Node>,
        otherwise: Box<Node>,
    },
    /// A function or an operator; of a member its target is the first argument.
    Call {
        name: String,
        is_member: bool,
        arguments: Vec<Node>,
        function: Option<Implementation>,
    },
    Loop {
        over: Box<Node>,
        first: String,
        second: Option<String>,
        purpose: Purpose,
    },
    /// `optMap` and `optFlatMap`.
    Inside {
        of: Box<Node>,
        variable: String,
        to: Box<Node>,
        is_flat: bool,
    },
}

/// An element of a list; an optional one may be left out.
#[derive(Debug)]
pub(crate) struct Element {
    pub node: Node,
    pub is_optional: bool,
}

/// An entry of a map; an optional one may be left out.
#[derive(Debug)]
pub(crate) struct Entry {
    pub key: Node,
    pub value: Node,
    pub is_optional: bool,
}

/// What a loop is for.
#[derive(Debug)]
pub(crate) enum Purpose {
    All(Box<Node>),
    Exists(Box<Node>),
    ExistsOne(Box<Node>),
    Filter(Box<Node>),
    Map {
        filter: Option<Box<Node>>,
        to: Box<Node>,
    },
    /// A map from the keys to something made of the entries.
    Transform {
        filter: Option<Box<Node>>,
        to: Box<Node>,
    },
}
