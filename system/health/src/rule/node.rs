//! A rule that was read: only what can be evaluated, every name known, no deeper than allowed.

use std::rc::Rc;

/// A part of a rule.
#[derive(Debug)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Rc<str>),
    /// The object itself.
    Object,
    /// The variable of a loop around it.
    Variable(String),
    Field {
        of: Box<Node>,
        name: String,
    },
    Has {
        of: Box<Node>,
        name: String,
    },
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    If {
        condition: Box<Node>,
        then: Box<Node>,
        otherwise: Box<Node>,
    },
    Call {
        function: Function,
        arguments: Vec<Node>,
    },
    Loop {
        over: Box<Node>,
        variable: String,
        purpose: Purpose,
    },
}

/// What a loop is for.
#[derive(Debug)]
pub(super) enum Purpose {
    All(Box<Node>),
    Exists(Box<Node>),
    ExistsOne(Box<Node>),
    Filter(Box<Node>),
    Map { filter: Option<Box<Node>>, to: Box<Node> },
}

/// What is computed from values alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Not,
    Negate,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Index,
    Size,
    StartsWith,
    EndsWith,
    Contains,
    ToInt,
    ToUint,
    ToDouble,
    ToText,
}

impl Function {
    /// As it is called: the library's names of operators, and the functions' own; `is_member` for `a.f(b)`.
    pub fn named(name: &str, is_member: bool, arguments: usize) -> Option<Self> {
        Some(match (name, is_member, arguments) {
            ("!_", false, 1) => Self::Not,
            ("-_", false, 1) => Self::Negate,
            ("_+_", false, 2) => Self::Add,
            ("_-_", false, 2) => Self::Subtract,
            ("_*_", false, 2) => Self::Multiply,
            ("_/_", false, 2) => Self::Divide,
            ("_%_", false, 2) => Self::Remainder,
            ("_==_", false, 2) => Self::Equal,
            ("_!=_", false, 2) => Self::NotEqual,
            ("_<_", false, 2) => Self::Less,
            ("_<=_", false, 2) => Self::LessOrEqual,
            ("_>_", false, 2) => Self::Greater,
            ("_>=_", false, 2) => Self::GreaterOrEqual,
            ("@in", false, 2) => Self::In,
            ("_[_]", false, 2) => Self::Index,
            ("size", _, 1) => Self::Size,
            ("startsWith", true, 2) => Self::StartsWith,
            ("endsWith", true, 2) => Self::EndsWith,
            ("contains", true, 2) => Self::Contains,
            ("int", false, 1) => Self::ToInt,
            ("uint", false, 1) => Self::ToUint,
            ("double", false, 1) => Self::ToDouble,
            ("string", false, 1) => Self::ToText,
            (_, _, _) => return None,
        })
    }
}
