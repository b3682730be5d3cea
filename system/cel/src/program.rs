//! A rule that was read and checked.

use std::collections::BTreeSet;

use crate::check::check;
use crate::evaluate::evaluate;
use crate::failure::Failure;
use crate::issue::Issues;
use crate::node::{Kind, Node, Purpose};
use crate::parse::parse;
use crate::types::Type;
use crate::value::Cel;

/// A rule that can be evaluated as often as one likes.
#[derive(Debug)]
pub struct Program {
    node: Node,
    output: Type,
    names: BTreeSet<String>,
}

impl Program {
    /// Reads a rule, and checks it against the types of the names that it may use.
    pub fn compile(rule: &str, declared: &[(&str, Type)]) -> Result<Self, Issues> {
        let node = parse(rule)?;
        let output = check(&node, declared).map_err(|issues| Issues::new(issues, rule))?;
        let mut names = BTreeSet::new();
        collect(&node, &mut names);
        Ok(Self { node, output, names })
    }

    /// What a value of it will be, as far as it can be told.
    pub fn output(&self) -> &Type {
        &self.output
    }

    /// Whether a name is anywhere in it.
    pub fn uses(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Its value, in a bounded number of steps.
    pub fn evaluate<'a>(&'a self, variables: &[(&str, Cel<'a>)]) -> Result<Cel<'a>, Failure> {
        evaluate(&self.node, variables)
    }
}

fn collect(node: &Node, names: &mut BTreeSet<String>) {
    let mut below = |nodes: &[&Node]| nodes.iter().for_each(|node| collect(node, names));
    match &node.kind {
        Kind::Name(name) => {
            names.insert(name.clone());
        }
        Kind::Null
        | Kind::Bool(_)
        | Kind::Int(_)
        | Kind::Uint(_)
        | Kind::Double(_)
        | Kind::Text(_)
        | Kind::Bytes(_)
        | Kind::Message(_) => {}
        Kind::Field { of, .. } | Kind::Has { of, .. } => below(&[of]),
        Kind::List(elements) => elements.iter().for_each(|element| below(&[&element.node])),
        Kind::Map(entries) => entries.iter().for_each(|entry| below(&[&entry.key, &entry.value])),
        Kind::And(left, right) | Kind::Or(left, right) => below(&[left, right]),
        Kind::If { condition, then, otherwise } => below(&[condition, then, otherwise]),
        Kind::Call { arguments, .. } => arguments.iter().for_each(|argument| below(&[argument])),
        Kind::Inside { of, to, .. } => below(&[of, to]),
        Kind::Loop { over, purpose, .. } => {
            below(&[over]);
            match purpose {
                Purpose::All(test) | Purpose::Exists(test) | Purpose::ExistsOne(test) | Purpose::Filter(test) => {
                    below(&[test]);
                }
                Purpose::Map { filter, to } | Purpose::Transform { filter, to } => {
                    filter.iter().for_each(|filter| below(&[filter]));
                    below(&[to]);
                }
            }
        }
    }
}
