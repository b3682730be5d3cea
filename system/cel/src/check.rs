//! Static check of a rule: names, fields and types. Messages are those of the real API server.

use crate::functions;
use crate::issue::Issue;
use crate::node::{Comprehension, Element, Entry, Node, NodeKind, Position};
use crate::pattern::Pattern;
use crate::signatures::overloads;
use crate::time;
use crate::types::{Substitution, Type};

/// Returns the type of a rule, or its errors. `declared` has the types of the variables.
pub(crate) fn check(node: &Node, declared: &[(&str, Type)]) -> Result<Type, Vec<Issue>> {
    let variables = declared.iter().map(|(name, variable_type)| ((*name).to_owned(), variable_type.clone())).collect();
    let mut checker = Checker {
        variables,
        substitution: Substitution::default(),
        issues: Vec::new(),
        secondary_issues: Vec::new(),
        mixed_list_calls: 0,
    };
    let found = checker.check(node);
    if checker.issues.is_empty() {
        checker.issues = std::mem::take(&mut checker.secondary_issues);
    }
    if checker.issues.is_empty() { Ok(checker.substitution.resolve(&found, true)) } else { Err(checker.issues) }
}

struct Checker {
    /// Types of variables, the innermost last.
    variables: Vec<(String, Type)>,
    substitution: Substitution,
    issues: Vec<Issue>,
    /// Errors that are reported only if there are no others.
    secondary_issues: Vec<Issue>,
    /// Number of enclosing calls whose lists may have elements of different types.
    mixed_list_calls: usize,
}

impl Checker {
    fn check(&mut self, node: &Node) -> Type {
        match &node.kind {
            NodeKind::Null => Type::Null,
            NodeKind::Bool(_) => Type::Bool,
            NodeKind::Int(_) => Type::Int,
            NodeKind::Uint(_) => Type::Uint,
            NodeKind::Double(_) => Type::Double,
            NodeKind::Text(_) => Type::Text,
            NodeKind::Bytes(_) => Type::Bytes,
            NodeKind::Name(name) => self.check_name(node.position, name),
            NodeKind::Message(name) => self.report_undeclared(node.position, name),
            NodeKind::Field { of, name, is_optional } => self.check_field(node.position, of, name, *is_optional),
            NodeKind::Has { of, name } => {
                self.check_field(node.position, of, name, false);
                Type::Bool
            }
            NodeKind::List(elements) => self.check_list(elements),
            NodeKind::Map(entries) => self.check_map(entries),
            NodeKind::And(left, right) | NodeKind::Or(left, right) => self.check_logical(left, right),
            NodeKind::If { condition, then, otherwise } => {
                let arguments = [condition, then, otherwise].map(|part| self.check(part));
                self.resolve_overload(node.position, "_?_:_", false, &arguments)
            }
            NodeKind::Call { name, is_member, arguments, .. } => {
                self.check_call(node.position, name, *is_member, arguments)
            }
            NodeKind::Loop { over, first, second, comprehension } => {
                self.check_loop(node.position, over, first, second.as_deref(), comprehension)
            }
            NodeKind::OptionalMap { of, variable, to, is_flat } => self.check_optional_map(of, variable, to, *is_flat),
        }
    }

    fn report(&mut self, position: Position, message: String) -> Type {
        self.issues.push(Issue { line: position.line, column: position.column, message });
        Type::Error
    }

    fn report_undeclared(&mut self, position: Position, name: &str) -> Type {
        self.report(position, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn check_name(&mut self, position: Position, name: &str) -> Type {
        match self.variables.iter().rev().find(|(variable, _)| variable == name) {
            Some((_, variable_type)) => variable_type.clone(),
            None if Type::from_name(name).is_some() => Type::Type,
            None => self.report_undeclared(position, name),
        }
    }

    fn check_field(&mut self, position: Position, of: &Node, name: &str, is_optional: bool) -> Type {
        let found = self.check(of);
        let (target, was_optional) = match self.substitution.resolve(&found, false) {
            Type::Optional(of) => (*of, true),
            other => (other, false),
        };
        let result = match target {
            Type::Map(_, value) => *value,
            Type::Object(shape) => match shape.fields.get(name) {
                Some((_, shape)) => Type::from_shape(shape).unwrap_or(Type::Dyn),
                None => self.report(position, format!("undefined field '{name}'")),
            },
            Type::Variable(_) => {
                self.substitution.unifies(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                self.report(position, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if is_optional || was_optional { Type::optional(result) } else { result }
    }

    /// Returns the type inside an optional type; other types are an error.
    fn unwrap_optional(&mut self, position: Position, found: Type) -> Type {
        match found {
            Type::Optional(of) => *of,
            Type::Dyn | Type::Error => found,
            other => {
                self.report(position, format!("expected type 'optional_type({other})' but found '{other}'"));
                other
            }
        }
    }

    fn check_list(&mut self, elements: &[Element]) -> Type {
        let mut joined = None;
        for element in elements {
            let mut found = self.check(&element.node);
            if element.is_optional {
                found = self.unwrap_optional(element.node.position, found);
            }
            joined = Some(self.join_types(element.node.position, joined, found));
        }
        Type::list(joined.unwrap_or_else(|| self.substitution.create_variable()))
    }

    fn check_map(&mut self, entries: &[Entry]) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            let key = self.check(&entry.key);
            keys = Some(self.join_types(entry.key.position, keys, key));
            let mut value = self.check(&entry.value);
            if entry.is_optional {
                value = self.unwrap_optional(entry.value.position, value);
            }
            values = Some(self.join_types(entry.value.position, values, value));
        }
        let key = keys.unwrap_or_else(|| self.substitution.create_variable());
        let value = values.unwrap_or_else(|| self.substitution.create_variable());
        Type::Map(Box::new(key), Box::new(value))
    }

    fn join_types(&mut self, position: Position, previous: Option<Type>, found: Type) -> Type {
        let Some(previous) = previous else { return found };
        match self.substitution.join(&previous, &found) {
            Some(joined) => joined,
            None => {
                if self.mixed_list_calls == 0 {
                    let message = format!("expected type '{previous}' but found '{found}'");
                    self.secondary_issues.push(Issue { line: position.line, column: position.column, message });
                }
                Type::Dyn
            }
        }
    }

    fn report_mismatch(&mut self, position: Position, expected: &Type, found: &Type) -> Type {
        self.report(position, format!("expected type '{expected}' but found '{found}'"))
    }

    fn check_logical(&mut self, left: &Node, right: &Node) -> Type {
        let found = [(left, self.check(left)), (right, self.check(right))];
        let mut result = Type::Bool;
        for (side, found) in found {
            if !self.substitution.unifies(&found, &Type::Bool) {
                result = self.report_mismatch(side.position, &Type::Bool, &found);
            }
        }
        result
    }

    fn check_call(&mut self, position: Position, name: &str, is_member: bool, arguments: &[Node]) -> Type {
        // The arguments of `format` may have different types.
        self.mixed_list_calls += usize::from(name == "format");
        // The real checker visits the target last.
        let (target, rest) = arguments.split_at(usize::from(is_member).min(arguments.len()));
        let rest: Vec<Type> = rest.iter().map(|argument| self.check(argument)).collect();
        let mut found: Vec<Type> = target.iter().map(|target| self.check(target)).collect();
        found.extend(rest);
        self.mixed_list_calls -= usize::from(name == "format");
        if overloads(name).is_none() || functions::find(name).is_none() {
            return self.report_undeclared(position, name);
        }
        let result = self.resolve_overload(position, name, is_member, &found);
        self.check_literals(name, arguments);
        result
    }

    /// Returns the type of a call by its matching overloads.
    fn resolve_overload(&mut self, position: Position, name: &str, is_member: bool, arguments: &[Type]) -> Type {
        let mut result: Option<Type> = None;
        for overload in overloads(name).unwrap_or_default().iter().filter(|overload| overload.is_member == is_member) {
            let (parameters, result_type) = overload.instance(&mut self.substitution);
            if !self.substitution.all_unify(arguments, &parameters) {
                continue;
            }
            let result_type = self.substitution.resolve(&result_type, false);
            result = Some(match result {
                None => result_type,
                Some(previous) if previous == result_type => previous,
                Some(_) => Type::Dyn,
            });
        }
        result.unwrap_or_else(|| {
            let argument_types: Vec<String> =
                arguments.iter().map(|argument| self.substitution.resolve(argument, true).to_string()).collect();
            let signature = match argument_types.as_slice() {
                [target, rest @ ..] if is_member => format!("{target}.({})", rest.join(", ")),
                all => format!("({})", all.join(", ")),
            };
            self.report(position, format!("found no matching overload for '{name}' applied to '{signature}'"))
        })
    }

    /// Checks literal timestamps, durations and patterns.
    fn check_literals(&mut self, name: &str, arguments: &[Node]) {
        let (position, is_valid): (usize, fn(&str) -> bool) = match name {
            "timestamp" => (0, |text| time::timestamp(text).is_some()),
            "duration" => (0, |text| time::duration(text).is_some()),
            "matches" => (1, |text| Pattern::new(text).is_ok()),
            _ => return,
        };
        if let Some(Node { position, kind: NodeKind::Text(text) }) = arguments.get(position)
            && !is_valid(text)
        {
            self.secondary_issues.push(Issue {
                line: position.line,
                column: position.column,
                message: format!("invalid {name} argument"),
            });
        }
    }

    fn check_loop(
        &mut self,
        position: Position,
        over: &Node,
        first: &str,
        second: Option<&str>,
        comprehension: &Comprehension,
    ) -> Type {
        let found = self.check(over);
        let (one, two) = match self.substitution.resolve(&found, false) {
            Type::List(of) if second.is_some() => (Type::Int, *of),
            Type::List(of) => (*of, Type::Dyn),
            Type::Map(key, value) => (*key, *value),
            range @ (Type::Dyn | Type::Error | Type::Variable(_)) => {
                self.substitution.unifies(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.report(over.position, message);
                (Type::Error, Type::Error)
            }
        };
        let depth = self.variables.len();
        self.variables.push((first.to_owned(), one.clone()));
        self.variables.extend(second.map(|second| (second.to_owned(), two)));
        let result = self.check_comprehension(position, &one, comprehension);
        self.variables.truncate(depth);
        result
    }

    fn check_comprehension(&mut self, position: Position, element: &Type, comprehension: &Comprehension) -> Type {
        match comprehension {
            Comprehension::All(test) | Comprehension::Exists(test) => {
                let found = self.check(test);
                if !self.substitution.unifies(&found, &Type::Bool) {
                    self.report_mismatch(test.position, &Type::Bool, &found);
                }
                Type::Bool
            }
            Comprehension::ExistsOne(test) => {
                self.check_filter(position, test, &Type::Int);
                Type::Bool
            }
            Comprehension::Filter(test) => {
                let list = Type::list(element.clone());
                self.check_filter(position, test, &list);
                list
            }
            Comprehension::Map { filter, to } => {
                let list = Type::list(self.check(to));
                if let Some(filter) = filter {
                    self.check_filter(position, filter, &list);
                }
                list
            }
            Comprehension::Transform { filter, to } => {
                let map = Type::Map(Box::new(element.clone()), Box::new(self.check(to)));
                if let Some(filter) = filter {
                    self.check_filter(position, filter, &map);
                }
                map
            }
        }
    }

    /// Checks the filter of a comprehension as the condition of a ternary, as the real checker does.
    fn check_filter(&mut self, position: Position, test: &Node, result: &Type) {
        let found = self.check(test);
        self.resolve_overload(position, "_?_:_", false, &[found, result.clone(), result.clone()]);
    }

    fn check_optional_map(&mut self, of: &Node, variable: &str, to: &Node, is_flat: bool) -> Type {
        let found = self.check(of);
        let found = self.substitution.resolve(&found, false);
        let inner = self.unwrap_optional(of.position, found);
        self.variables.push((variable.to_owned(), inner));
        let result = self.check(to);
        self.variables.pop();
        if is_flat { result } else { Type::optional(result) }
    }
}
