//! Syntax tree of a rule.

use crate::functions::context::Implementation;

/// Position in a rule; line and column are counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub line: usize,
    pub column: usize,
}

/// A node of the syntax tree.
#[derive(Debug)]
pub(crate) struct Node {
    pub position: Position,
    pub kind: NodeKind,
}

/// Content of a node.
#[derive(Debug)]
pub(crate) enum NodeKind {
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
    /// `a.b{}`, which is not supported.
    Message(String),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    If {
        condition: Box<Node>,
        then: Box<Node>,
        otherwise: Box<Node>,
    },
    /// Call of a function or an operator; the target of a member call is the first argument.
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
        comprehension: Comprehension,
    },
    /// `optMap` and `optFlatMap`.
    OptionalMap {
        of: Box<Node>,
        variable: String,
        to: Box<Node>,
        is_flat: bool,
    },
}

/// An element of a list literal; an optional one may be absent.
#[derive(Debug)]
pub(crate) struct Element {
    pub node: Node,
    pub is_optional: bool,
}

/// An entry of a map literal; an optional one may be absent.
#[derive(Debug)]
pub(crate) struct Entry {
    pub key: Node,
    pub value: Node,
    pub is_optional: bool,
}

/// Macro of a loop and its expressions.
#[derive(Debug)]
pub(crate) enum Comprehension {
    All(Box<Node>),
    Exists(Box<Node>),
    ExistsOne(Box<Node>),
    Filter(Box<Node>),
    Map {
        filter: Option<Box<Node>>,
        to: Box<Node>,
    },
    /// `transformMap`: a map from the keys to values computed from the entries.
    Transform {
        filter: Option<Box<Node>>,
        to: Box<Node>,
    },
}
