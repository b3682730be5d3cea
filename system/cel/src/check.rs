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
    let names = declared.iter().map(|(name, known)| ((*name).to_owned(), known.clone())).collect();
    let mut checker =
        Checker { names, known: Substitution::default(), issues: Vec::new(), secondary: Vec::new(), mixed: 0 };
    let found = checker.check(node);
    if checker.issues.is_empty() {
        checker.issues = std::mem::take(&mut checker.secondary);
    }
    if checker.issues.is_empty() { Ok(checker.known.resolved(&found, true)) } else { Err(checker.issues) }
}

struct Checker {
    /// Types of variables, the innermost last.
    names: Vec<(String, Type)>,
    known: Substitution,
    issues: Vec<Issue>,
    /// Errors that are reported only if there are no others.
    secondary: Vec<Issue>,
    /// Number of enclosing calls whose lists may have elements of different types.
    mixed: usize,
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
            NodeKind::Name(name) => self.name(node.position, name),
            NodeKind::Message(name) => self.undeclared(node.position, name),
            NodeKind::Field { of, name, is_optional } => self.field(node.position, of, name, *is_optional),
            NodeKind::Has { of, name } => {
                self.field(node.position, of, name, false);
                Type::Bool
            }
            NodeKind::List(elements) => self.list(elements),
            NodeKind::Map(entries) => self.map(entries),
            NodeKind::And(left, right) | NodeKind::Or(left, right) => self.logical(left, right),
            NodeKind::If { condition, then, otherwise } => {
                let arguments = [condition, then, otherwise].map(|part| self.check(part));
                self.resolve(node.position, "_?_:_", false, &arguments)
            }
            NodeKind::Call { name, is_member, arguments, .. } => self.call(node.position, name, *is_member, arguments),
            NodeKind::Loop { over, first, second, comprehension } => {
                self.around(node.position, over, first, second.as_deref(), comprehension)
            }
            NodeKind::OptionalMap { of, variable, to, is_flat } => self.inside(of, variable, to, *is_flat),
        }
    }

    fn issue(&mut self, position: Position, message: String) -> Type {
        self.issues.push(Issue { line: position.line, column: position.column, message });
        Type::Error
    }

    fn undeclared(&mut self, position: Position, name: &str) -> Type {
        self.issue(position, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn name(&mut self, position: Position, name: &str) -> Type {
        match self.names.iter().rev().find(|(known, _)| known == name) {
            Some((_, known)) => known.clone(),
            None if Type::named(name).is_some() => Type::Type,
            None => self.undeclared(position, name),
        }
    }

    fn field(&mut self, position: Position, of: &Node, name: &str, is_optional: bool) -> Type {
        let found = self.check(of);
        let (target, was_optional) = match self.known.resolved(&found, false) {
            Type::Optional(of) => (*of, true),
            other => (other, false),
        };
        let result = match target {
            Type::Map(_, value) => *value,
            Type::Object(shape) => match shape.fields.get(name) {
                Some((_, shape)) => Type::from_shape(shape).unwrap_or(Type::Dyn),
                None => self.issue(position, format!("undefined field '{name}'")),
            },
            Type::Variable(_) => {
                self.known.fits(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                self.issue(position, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if is_optional || was_optional { Type::optional(result) } else { result }
    }

    /// Returns the type inside an optional type; other types are an error.
    fn unwrapped(&mut self, position: Position, found: Type) -> Type {
        match found {
            Type::Optional(of) => *of,
            Type::Dyn | Type::Error => found,
            other => {
                self.issue(position, format!("expected type 'optional_type({other})' but found '{other}'"));
                other
            }
        }
    }

    fn list(&mut self, elements: &[Element]) -> Type {
        let mut joined = None;
        for element in elements {
            let mut found = self.check(&element.node);
            if element.is_optional {
                found = self.unwrapped(element.node.position, found);
            }
            joined = Some(self.joined(element.node.position, joined, found));
        }
        Type::list(joined.unwrap_or_else(|| self.known.fresh()))
    }

    fn map(&mut self, entries: &[Entry]) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            let key = self.check(&entry.key);
            keys = Some(self.joined(entry.key.position, keys, key));
            let mut value = self.check(&entry.value);
            if entry.is_optional {
                value = self.unwrapped(entry.value.position, value);
            }
            values = Some(self.joined(entry.value.position, values, value));
        }
        let key = keys.unwrap_or_else(|| self.known.fresh());
        let value = values.unwrap_or_else(|| self.known.fresh());
        Type::Map(Box::new(key), Box::new(value))
    }

    fn joined(&mut self, position: Position, before: Option<Type>, found: Type) -> Type {
        let Some(before) = before else { return found };
        match self.known.joined(&before, &found) {
            Some(joined) => joined,
            None => {
                if self.mixed == 0 {
                    let message = format!("expected type '{before}' but found '{found}'");
                    self.secondary.push(Issue { line: position.line, column: position.column, message });
                }
                Type::Dyn
            }
        }
    }

    fn mismatch(&mut self, position: Position, expected: &Type, found: &Type) -> Type {
        self.issue(position, format!("expected type '{expected}' but found '{found}'"))
    }

    fn logical(&mut self, left: &Node, right: &Node) -> Type {
        let found = [(left, self.check(left)), (right, self.check(right))];
        let mut result = Type::Bool;
        for (side, found) in found {
            if !self.known.fits(&found, &Type::Bool) {
                result = self.mismatch(side.position, &Type::Bool, &found);
            }
        }
        result
    }

    fn call(&mut self, position: Position, name: &str, is_member: bool, arguments: &[Node]) -> Type {
        // The arguments of `format` may have different types.
        self.mixed += usize::from(name == "format");
        // The real checker visits the target last.
        let (target, rest) = arguments.split_at(usize::from(is_member).min(arguments.len()));
        let rest: Vec<Type> = rest.iter().map(|argument| self.check(argument)).collect();
        let mut found: Vec<Type> = target.iter().map(|target| self.check(target)).collect();
        found.extend(rest);
        self.mixed -= usize::from(name == "format");
        if overloads(name).is_none() || functions::find(name).is_none() {
            return self.undeclared(position, name);
        }
        let result = self.resolve(position, name, is_member, &found);
        self.literals(name, arguments);
        result
    }

    /// Returns the type of a call by its matching overloads.
    fn resolve(&mut self, position: Position, name: &str, is_member: bool, arguments: &[Type]) -> Type {
        let mut result: Option<Type> = None;
        for overload in overloads(name).unwrap_or_default().iter().filter(|overload| overload.is_member == is_member) {
            let (wanted, gives) = overload.instance(&mut self.known);
            if !self.known.all_fit(arguments, &wanted) {
                continue;
            }
            let gives = self.known.resolved(&gives, false);
            result = Some(match result {
                None => gives,
                Some(before) if before == gives => before,
                Some(_) => Type::Dyn,
            });
        }
        result.unwrap_or_else(|| {
            let shown: Vec<String> =
                arguments.iter().map(|argument| self.known.resolved(argument, true).to_string()).collect();
            let signature = match shown.as_slice() {
                [target, rest @ ..] if is_member => format!("{target}.({})", rest.join(", ")),
                all => format!("({})", all.join(", ")),
            };
            self.issue(position, format!("found no matching overload for '{name}' applied to '{signature}'"))
        })
    }

    /// Checks literal timestamps, durations and patterns.
    fn literals(&mut self, name: &str, arguments: &[Node]) {
        let (position, is_right): (usize, fn(&str) -> bool) = match name {
            "timestamp" => (0, |text| time::timestamp(text).is_some()),
            "duration" => (0, |text| time::duration(text).is_some()),
            "matches" => (1, |text| Pattern::new(text).is_ok()),
            _ => return,
        };
        if let Some(Node { position, kind: NodeKind::Text(text) }) = arguments.get(position)
            && !is_right(text)
        {
            self.secondary.push(Issue {
                line: position.line,
                column: position.column,
                message: format!("invalid {name} argument"),
            });
        }
    }

    fn around(
        &mut self,
        position: Position,
        over: &Node,
        first: &str,
        second: Option<&str>,
        comprehension: &Comprehension,
    ) -> Type {
        let found = self.check(over);
        let (one, two) = match self.known.resolved(&found, false) {
            Type::List(of) if second.is_some() => (Type::Int, *of),
            Type::List(of) => (*of, Type::Dyn),
            Type::Map(key, value) => (*key, *value),
            range @ (Type::Dyn | Type::Error | Type::Variable(_)) => {
                self.known.fits(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.issue(over.position, message);
                (Type::Error, Type::Error)
            }
        };
        let depth = self.names.len();
        self.names.push((first.to_owned(), one.clone()));
        self.names.extend(second.map(|second| (second.to_owned(), two)));
        let result = self.comprehension(position, &one, comprehension);
        self.names.truncate(depth);
        result
    }

    fn comprehension(&mut self, position: Position, element: &Type, comprehension: &Comprehension) -> Type {
        match comprehension {
            Comprehension::All(test) | Comprehension::Exists(test) => {
                let found = self.check(test);
                if !self.known.fits(&found, &Type::Bool) {
                    self.mismatch(test.position, &Type::Bool, &found);
                }
                Type::Bool
            }
            Comprehension::ExistsOne(test) => {
                self.test(position, test, &Type::Int);
                Type::Bool
            }
            Comprehension::Filter(test) => {
                let list = Type::list(element.clone());
                self.test(position, test, &list);
                list
            }
            Comprehension::Map { filter, to } => {
                let list = Type::list(self.check(to));
                if let Some(filter) = filter {
                    self.test(position, filter, &list);
                }
                list
            }
            Comprehension::Transform { filter, to } => {
                let map = Type::Map(Box::new(element.clone()), Box::new(self.check(to)));
                if let Some(filter) = filter {
                    self.test(position, filter, &map);
                }
                map
            }
        }
    }

    /// Checks the filter of a comprehension as the condition of a ternary, as the real checker does.
    fn test(&mut self, position: Position, test: &Node, gathered: &Type) {
        let found = self.check(test);
        self.resolve(position, "_?_:_", false, &[found, gathered.clone(), gathered.clone()]);
    }

    fn inside(&mut self, of: &Node, variable: &str, to: &Node, is_flat: bool) -> Type {
        let found = self.check(of);
        let found = self.known.resolved(&found, false);
        let inner = self.unwrapped(of.position, found);
        self.names.push((variable.to_owned(), inner));
        let result = self.check(to);
        self.names.pop();
        if is_flat { result } else { Type::optional(result) }
    }
}
