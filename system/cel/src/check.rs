//! Whether a rule can mean something, before there is anything to evaluate it for: names, fields and types.
//!
//! Where nothing is known about a type, everything is possible. What is found is worded as the real API server words it.

use crate::functions;
use crate::issue::Issue;
use crate::node::{Element, Entry, Kind, Node, Place, Purpose};
use crate::pattern::Pattern;
use crate::signatures::overloads;
use crate::time;
use crate::types::{Substitution, Type};

/// The type of a rule, or what is wrong with it. Names are declared with their types.
pub(crate) fn check(node: &Node, declared: &[(&str, Type)]) -> Result<Type, Vec<Issue>> {
    let names = declared.iter().map(|(name, known)| ((*name).to_owned(), known.clone())).collect();
    let mut checker =
        Checker { names, known: Substitution::default(), issues: Vec::new(), later: Vec::new(), mixed: 0 };
    let found = checker.check(node);
    if checker.issues.is_empty() {
        checker.issues = std::mem::take(&mut checker.later);
    }
    if checker.issues.is_empty() { Ok(checker.known.resolved(&found, true)) } else { Err(checker.issues) }
}

struct Checker {
    /// What names stand for, the innermost last.
    names: Vec<(String, Type)>,
    known: Substitution,
    issues: Vec<Issue>,
    /// What is told only if there is nothing else.
    later: Vec<Issue>,
    /// How many calls there are around a place within which a list may hold anything.
    mixed: usize,
}

impl Checker {
    fn check(&mut self, node: &Node) -> Type {
        match &node.kind {
            Kind::Null => Type::Null,
            Kind::Bool(_) => Type::Bool,
            Kind::Int(_) => Type::Int,
            Kind::Uint(_) => Type::Uint,
            Kind::Double(_) => Type::Double,
            Kind::Text(_) => Type::Text,
            Kind::Bytes(_) => Type::Bytes,
            Kind::Name(name) => self.name(node.place, name),
            Kind::Message(name) => self.undeclared(node.place, name),
            Kind::Field { of, name, is_optional } => self.field(node.place, of, name, *is_optional),
            Kind::Has { of, name } => {
                self.field(node.place, of, name, false);
                Type::Bool
            }
            Kind::List(elements) => self.list(elements),
            Kind::Map(entries) => self.map(entries),
            Kind::And(left, right) | Kind::Or(left, right) => self.logical(left, right),
            Kind::If { condition, then, otherwise } => {
                let arguments = [condition, then, otherwise].map(|part| self.check(part));
                self.resolve(node.place, "_?_:_", false, &arguments)
            }
            Kind::Call { name, is_member, arguments, .. } => self.call(node.place, name, *is_member, arguments),
            Kind::Loop { over, first, second, purpose } => {
                self.around(node.place, over, first, second.as_deref(), purpose)
            }
            Kind::Inside { of, variable, to, is_flat } => self.inside(of, variable, to, *is_flat),
        }
    }

    fn issue(&mut self, place: Place, words: String) -> Type {
        self.issues.push(Issue { line: place.line, column: place.column, words });
        Type::Error
    }

    fn undeclared(&mut self, place: Place, name: &str) -> Type {
        self.issue(place, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn name(&mut self, place: Place, name: &str) -> Type {
        match self.names.iter().rev().find(|(known, _)| known == name) {
            Some((_, known)) => known.clone(),
            None if Type::named(name).is_some() => Type::Type,
            None => self.undeclared(place, name),
        }
    }

    fn field(&mut self, place: Place, of: &Node, name: &str, is_optional: bool) -> Type {
        let found = self.check(of);
        let (target, was_optional) = match self.known.resolved(&found, false) {
            Type::Optional(of) => (*of, true),
            other => (other, false),
        };
        let result = match target {
            Type::Map(_, value) => *value,
            Type::Object(shape) => match shape.fields.get(name) {
                Some((_, shape)) => shape.declared().unwrap_or(Type::Dyn),
                None => self.issue(place, format!("undefined field '{name}'")),
            },
            Type::Variable(_) => {
                self.known.fits(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                self.issue(place, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if is_optional || was_optional { Type::optional(result) } else { result }
    }

    /// What is inside of something optional, which nothing else may be.
    fn unwrapped(&mut self, place: Place, found: Type) -> Type {
        match found {
            Type::Optional(of) => *of,
            Type::Dyn | Type::Error => found,
            other => {
                self.issue(place, format!("expected type 'optional_type({other})' but found '{other}'"));
                other
            }
        }
    }

    fn list(&mut self, elements: &[Element]) -> Type {
        let mut joined = None;
        for element in elements {
            let mut found = self.check(&element.node);
            if element.is_optional {
                found = self.unwrapped(element.node.place, found);
            }
            joined = Some(self.joined(element.node.place, joined, found));
        }
        Type::list(joined.unwrap_or_else(|| self.known.fresh()))
    }

    fn map(&mut self, entries: &[Entry]) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            let key = self.check(&entry.key);
            keys = Some(self.joined(entry.key.place, keys, key));
            let mut value = self.check(&entry.value);
            if entry.is_optional {
                value = self.unwrapped(entry.value.place, value);
            }
            values = Some(self.joined(entry.value.place, values, value));
        }
        let key = keys.unwrap_or_else(|| self.known.fresh());
        let value = values.unwrap_or_else(|| self.known.fresh());
        Type::Map(Box::new(key), Box::new(value))
    }

    fn joined(&mut self, place: Place, before: Option<Type>, found: Type) -> Type {
        let Some(before) = before else { return found };
        match self.known.joined(&before, &found) {
            Some(joined) => joined,
            None => {
                if self.mixed == 0 {
                    let words = format!("expected type '{before}' but found '{found}'");
                    self.later.push(Issue { line: place.line, column: place.column, words });
                }
                Type::Dyn
            }
        }
    }

    fn mismatch(&mut self, place: Place, expected: &Type, found: &Type) -> Type {
        self.issue(place, format!("expected type '{expected}' but found '{found}'"))
    }

    fn logical(&mut self, left: &Node, right: &Node) -> Type {
        let found = [(left, self.check(left)), (right, self.check(right))];
        let mut result = Type::Bool;
        for (side, found) in found {
            if !self.known.fits(&found, &Type::Bool) {
                result = self.mismatch(side.place, &Type::Bool, &found);
            }
        }
        result
    }

    fn call(&mut self, place: Place, name: &str, is_member: bool, arguments: &[Node]) -> Type {
        // What is put into a text may be anything.
        self.mixed += usize::from(name == "format");
        // The real checker looks at what is called last.
        let (target, rest) = arguments.split_at(usize::from(is_member).min(arguments.len()));
        let rest: Vec<Type> = rest.iter().map(|argument| self.check(argument)).collect();
        let mut found: Vec<Type> = target.iter().map(|target| self.check(target)).collect();
        found.extend(rest);
        self.mixed -= usize::from(name == "format");
        if overloads(name).is_none() || functions::named(name).is_none() {
            return self.undeclared(place, name);
        }
        let result = self.resolve(place, name, is_member, &found);
        self.literals(name, arguments);
        result
    }

    /// The type of a call, by all the ways in which it may be meant.
    fn resolve(&mut self, place: Place, name: &str, is_member: bool, arguments: &[Type]) -> Type {
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
            self.issue(place, format!("found no matching overload for '{name}' applied to '{signature}'"))
        })
    }

    /// Times and patterns that are written in the rule itself must be some.
    fn literals(&mut self, name: &str, arguments: &[Node]) {
        let (position, is_right): (usize, fn(&str) -> bool) = match name {
            "timestamp" => (0, |text| time::timestamp(text).is_some()),
            "duration" => (0, |text| time::duration(text).is_some()),
            "matches" => (1, |text| Pattern::new(text).is_ok()),
            _ => return,
        };
        if let Some(Node { place, kind: Kind::Text(text) }) = arguments.get(position)
            && !is_right(text)
        {
            self.later.push(Issue {
                line: place.line,
                column: place.column,
                words: format!("invalid {name} argument"),
            });
        }
    }

    fn around(&mut self, place: Place, over: &Node, first: &str, second: Option<&str>, purpose: &Purpose) -> Type {
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
                let words = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.issue(over.place, words);
                (Type::Error, Type::Error)
            }
        };
        let depth = self.names.len();
        self.names.push((first.to_owned(), one.clone()));
        self.names.extend(second.map(|second| (second.to_owned(), two)));
        let result = self.purpose(place, &one, purpose);
        self.names.truncate(depth);
        result
    }

    fn purpose(&mut self, place: Place, element: &Type, purpose: &Purpose) -> Type {
        match purpose {
            Purpose::All(test) | Purpose::Exists(test) => {
                let found = self.check(test);
                if !self.known.fits(&found, &Type::Bool) {
                    self.mismatch(test.place, &Type::Bool, &found);
                }
                Type::Bool
            }
            Purpose::ExistsOne(test) => {
                self.test(place, test, &Type::Int);
                Type::Bool
            }
            Purpose::Filter(test) => {
                let list = Type::list(element.clone());
                self.test(place, test, &list);
                list
            }
            Purpose::Map { filter, to } => {
                let list = Type::list(self.check(to));
                if let Some(filter) = filter {
                    self.test(place, filter, &list);
                }
                list
            }
            Purpose::Transform { filter, to } => {
                let map = Type::Map(Box::new(element.clone()), Box::new(self.check(to)));
                if let Some(filter) = filter {
                    self.test(place, filter, &map);
                }
                map
            }
        }
    }

    /// What decides whether something is gathered is a condition of what is gathered.
    fn test(&mut self, place: Place, test: &Node, gathered: &Type) {
        let found = self.check(test);
        self.resolve(place, "_?_:_", false, &[found, gathered.clone(), gathered.clone()]);
    }

    fn inside(&mut self, of: &Node, variable: &str, to: &Node, is_flat: bool) -> Type {
        let found = self.check(of);
        let found = self.known.resolved(&found, false);
        let inner = self.unwrapped(of.place, found);
        self.names.push((variable.to_owned(), inner));
        let result = self.check(to);
        self.names.pop();
        if is_flat { result } else { Type::optional(result) }
    }
}
