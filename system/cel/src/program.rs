//! A compiled rule.

use std::collections::BTreeSet;

use crate::check::check;
use crate::evaluate::evaluate;
use crate::evaluation_error::EvaluationError;
use crate::issue::Issues;
use crate::node::{Comprehension, Node, NodeKind};
use crate::parse::parse;
use crate::types::Type;
use crate::value::Cel;

/// A compiled rule, which can be evaluated any number of times.
#[derive(Debug)]
pub struct Program {
    node: Node,
    output: Type,
    names: BTreeSet<String>,
}

impl Program {
    /// Parses a rule and checks it against the types of its variables.
    pub fn compile(rule: &str, declared: &[(&str, Type)]) -> Result<Self, Issues> {
        let node = parse(rule)?;
        let output = check(&node, declared).map_err(|issues| Issues::new(issues, rule))?;
        let mut names = BTreeSet::new();
        collect_names(&node, &mut names);
        Ok(Self { node, output, names })
    }

    /// Returns the static type of the result.
    pub fn output(&self) -> &Type {
        &self.output
    }

    /// Returns true if the rule contains this name.
    pub fn uses(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Evaluates the rule in a bounded number of steps.
    pub fn evaluate<'a>(&'a self, variables: &[(&str, Cel<'a>)]) -> Result<Cel<'a>, EvaluationError> {
        evaluate(&self.node, variables)
    }
}

fn collect_names(node: &Node, names: &mut BTreeSet<String>) {
    let mut collect_from = |nodes: &[&Node]| nodes.iter().for_each(|node| collect_names(node, names));
    match &node.kind {
        NodeKind::Name(name) => {
            names.insert(name.clone());
        }
        NodeKind::Null
        | NodeKind::Bool(_)
        | NodeKind::Int(_)
        | NodeKind::Uint(_)
        | NodeKind::Double(_)
        | NodeKind::Text(_)
        | NodeKind::Bytes(_)
        | NodeKind::Message(_) => {}
        NodeKind::Field { of, .. } | NodeKind::Has { of, .. } => collect_from(&[of]),
        NodeKind::List(elements) => elements.iter().for_each(|element| collect_from(&[&element.node])),
        NodeKind::Map(entries) => entries.iter().for_each(|entry| collect_from(&[&entry.key, &entry.value])),
        NodeKind::And(left, right) | NodeKind::Or(left, right) => collect_from(&[left, right]),
        NodeKind::If { condition, then, otherwise } => collect_from(&[condition, then, otherwise]),
        NodeKind::Call { arguments, .. } => arguments.iter().for_each(|argument| collect_from(&[argument])),
        NodeKind::OptionalMap { of, to, .. } => collect_from(&[of, to]),
        NodeKind::Loop { over, comprehension, .. } => {
            collect_from(&[over]);
            match comprehension {
                Comprehension::All(test)
                | Comprehension::Exists(test)
                | Comprehension::ExistsOne(test)
                | Comprehension::Filter(test) => {
                    collect_from(&[test]);
                }
                Comprehension::Map { filter, to } | Comprehension::Transform { filter, to } => {
                    filter.iter().for_each(|filter| collect_from(&[filter]));
                    collect_from(&[to]);
                }
            }
        }
    }
}
