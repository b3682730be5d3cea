//! Parsing with the `cel` crate, without its macros. No other file uses that crate.
//!
//! Its evaluation is not used: it cannot be interrupted, iterates maps in random order, may panic in arithmetic, and has no
//! static types.

use cel::Env;
use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, SourceInfo};

use crate::functions;
use crate::issue::{Issue, Issues};
use crate::node::{Comprehension, Element, Entry, Node, NodeKind, Position};
use crate::types::Type;

/// Maximum length of a rule.
const BYTES_MAX: usize = 16 * 1024;
/// Maximum number of tokens of a rule, including those in strings: the parser's stack grows with them.
const TOKENS_MAX: usize = 1_000;
/// Maximum nesting of expressions while parsing.
const NESTING_MAX: u16 = 24;
/// Maximum depth of the syntax tree: the stack of the evaluation grows with it.
const DEPTH_MAX: usize = 64;

/// Number of times that the parser continues after an error. At 0 it does not report the error.
const RECOVERIES_MAX: u32 = 1;
/// Messages of the library for too deep nesting, for giving up, and for unknown errors.
const TOO_DEEP: &str = "Recursion limit";
const GAVE_UP: &str = "error recovery attempt limit";
const UNEXPLAINED: &str = "UNKNOWN";
/// Names of the accumulators of comprehensions, which variables must not have.
const ACCUMULATORS: [&str; 2] = ["__result__", "@result"];

/// Parses a rule.
pub(crate) fn parse(rule: &str) -> Result<Node, Issues> {
    check_limits(rule)?;
    let parser = Env::default().parser().enable_optional_syntax(true);
    let parser = parser.max_recursion_depth(NESTING_MAX).error_recovery_limit(RECOVERIES_MAX);
    let (expression, source) =
        parser.parse_with_source_info(rule).map_err(|errors| convert_errors(&errors.errors, rule))?;
    let converter = Converter { source: &source };
    converter.convert(&expression, 0).map_err(|issue| Issues::new(vec![issue], rule))
}

fn check_limits(rule: &str) -> Result<(), Issues> {
    let reject = |message| Err(Issues::new(vec![Issue { line: 1, column: 1, message }], rule));
    if rule.len() > BYTES_MAX {
        return reject(format!("{} bytes exceed the limit of {BYTES_MAX}", rule.len()));
    }
    match count_tokens(rule) {
        tokens if tokens > TOKENS_MAX => reject(format!("{tokens} tokens exceed the limit of {TOKENS_MAX}")),
        _ => Ok(()),
    }
}

/// Returns an upper bound of the number of tokens.
fn count_tokens(rule: &str) -> usize {
    let mut in_word = false;
    let mut count = 0;
    for character in rule.chars() {
        let is_word = character.is_alphanumeric() || character == '_';
        count += usize::from(!(character.is_whitespace() || is_word && in_word));
        in_word = is_word;
    }
    count
}

/// Converts the errors of the parser.
fn convert_errors(errors: &[cel::ParseError], rule: &str) -> Issues {
    let number = |position: isize| usize::try_from(position).unwrap_or(1).max(1);
    let relevant = errors.iter().filter(|error| !error.msg.contains(GAVE_UP));
    let mut issues: Vec<Issue> = relevant
        .map(|error| {
            let is_deep = error.msg.contains(TOO_DEEP) || error.msg == UNEXPLAINED;
            let message = if is_deep { format!("nested more than {NESTING_MAX} deep") } else { error.msg.clone() };
            Issue { line: number(error.pos.0), column: number(error.pos.1), message }
        })
        .collect();
    if issues.is_empty() {
        issues.push(Issue { line: 1, column: 1, message: "the rule cannot be parsed".to_owned() });
    }
    Issues::new(issues, rule)
}

/// Converts the library's syntax tree.
struct Converter<'a> {
    source: &'a SourceInfo,
}

impl Converter<'_> {
    fn convert(&self, expression: &IdedExpr, depth: usize) -> Result<Node, Issue> {
        if depth > DEPTH_MAX {
            return Err(self.issue(expression, format!("nested more than {DEPTH_MAX} deep")));
        }
        let kind = match &expression.expr {
            Expr::Literal(literal) => convert_literal(literal),
            Expr::Ident(name) => NodeKind::Name(name.trim_start_matches('.').to_owned()),
            Expr::Select(select) => match qualified_name(expression).filter(|name| Type::from_name(name).is_some()) {
                Some(name) => NodeKind::Name(name),
                None => {
                    let (of, name) = (self.convert_boxed(&select.operand, depth)?, select.field.clone());
                    NodeKind::Field { of, name, is_optional: false }
                }
            },
            Expr::List(list) => self.convert_list(list, depth)?,
            Expr::Map(map) => self.convert_map(expression, map, depth)?,
            Expr::Call(call) => self.convert_call(expression, call, depth)?,
            Expr::Struct(message) => NodeKind::Message(message.type_name.clone()),
            Expr::Comprehension(_) | Expr::Unspecified => {
                return Err(self.issue(expression, "not an expression".to_owned()));
            }
        };
        Ok(Node { position: self.position(expression.id), kind })
    }

    fn convert_list(&self, list: &ListExpr, depth: usize) -> Result<NodeKind, Issue> {
        let elements = list.elements.iter().enumerate().map(|(index, element)| {
            let is_optional = list.optional_indices.contains(&index);
            Ok(Element { node: self.convert(element, depth + 1)?, is_optional })
        });
        elements.collect::<Result<_, _>>().map(NodeKind::List)
    }

    fn convert_map(&self, expression: &IdedExpr, map: &MapExpr, depth: usize) -> Result<NodeKind, Issue> {
        let entries = map.entries.iter().map(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => Ok(Entry {
                key: self.convert(&entry.key, depth + 1)?,
                value: self.convert(&entry.value, depth + 1)?,
                is_optional: entry.optional,
            }),
            EntryExpr::StructField(_) => Err(self.issue(expression, "a field outside of a message".to_owned())),
        });
        entries.collect::<Result<_, _>>().map(NodeKind::Map)
    }

    fn convert_call(&self, expression: &IdedExpr, call: &CallExpr, depth: usize) -> Result<NodeKind, Issue> {
        if let Some(kind) = self.convert_special_call(call, depth)? {
            return Ok(kind);
        }
        let target = call.target.as_deref();
        // `optional.of` is a function, not a member call on `optional`.
        let full = target.and_then(qualified_name).map(|prefix| format!("{prefix}.{}", call.func_name));
        let (name, target) = match full.filter(|name| functions::find(name).is_some()) {
            Some(full) => (full, None),
            None => (call.func_name.trim_start_matches('.').to_owned(), target),
        };
        let mut arguments = Vec::with_capacity(call.args.len() + 1);
        for argument in target.into_iter().chain(&call.args) {
            arguments.push(self.convert(argument, depth + 1)?);
        }
        if name == "_?._" {
            return self.convert_optional_field(expression, arguments);
        }
        let function = functions::find(&name);
        Ok(NodeKind::Call { name, is_member: target.is_some(), arguments, function })
    }

    fn convert_optional_field(&self, expression: &IdedExpr, arguments: Vec<Node>) -> Result<NodeKind, Issue> {
        match <[Node; 2]>::try_from(arguments) {
            Ok([of, Node { kind: NodeKind::Text(name), .. }]) => {
                Ok(NodeKind::Field { of: Box::new(of), name, is_optional: true })
            }
            Ok(_) | Err(_) => Err(self.issue(expression, "unsupported optional field selection".to_owned())),
        }
    }

    /// Converts calls that do not evaluate all their arguments: logical operators, `has` and macros.
    fn convert_special_call(&self, call: &CallExpr, depth: usize) -> Result<Option<NodeKind>, Issue> {
        Ok(Some(match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
            ("_&&_", None, [left, right]) => {
                NodeKind::And(self.convert_boxed(left, depth)?, self.convert_boxed(right, depth)?)
            }
            ("_||_", None, [left, right]) => {
                NodeKind::Or(self.convert_boxed(left, depth)?, self.convert_boxed(right, depth)?)
            }
            ("_?_:_", None, [condition, then, otherwise]) => NodeKind::If {
                condition: self.convert_boxed(condition, depth)?,
                then: self.convert_boxed(then, depth)?,
                otherwise: self.convert_boxed(otherwise, depth)?,
            },
            ("has", None, [IdedExpr { expr: Expr::Select(select), .. }]) => {
                NodeKind::Has { of: self.convert_boxed(&select.operand, depth)?, name: select.field.clone() }
            }
            ("has", None, [other]) => return Err(self.issue(other, "invalid argument to has() macro".to_owned())),
            (name @ ("optMap" | "optFlatMap"), Some(of), [variable, to]) => NodeKind::OptionalMap {
                of: self.convert_boxed(of, depth)?,
                variable: self
                    .read_variable(variable, &format!("{name}() variable name must be a simple identifier"))?,
                to: self.convert_boxed(to, depth)?,
                is_flat: name == "optFlatMap",
            },
            (name, Some(over), arguments) => return self.convert_comprehension(name, over, arguments, depth),
            (_, _, _) => return Ok(None),
        }))
    }

    /// Converts a comprehension macro, if the call is one.
    fn convert_comprehension(
        &self,
        name: &str,
        over: &IdedExpr,
        arguments: &[IdedExpr],
        depth: usize,
    ) -> Result<Option<NodeKind>, Issue> {
        let variables = match (name, arguments.len()) {
            ("all" | "exists" | "exists_one" | "existsOne" | "filter", 2) | ("map", 2 | 3) => 1,
            ("all" | "exists" | "exists_one" | "existsOne", 3) | ("transformList" | "transformMap", 3 | 4) => 2,
            (_, _) => return Ok(None),
        };
        let (names, rest) = arguments.split_at(variables);
        let message = if name == "map" || name == "filter" {
            "argument is not an identifier"
        } else {
            "argument must be a simple name"
        };
        let names = names.iter().map(|name| self.read_variable(name, message)).collect::<Result<Vec<_>, _>>()?;
        let parts = rest.iter().map(|part| self.convert(part, depth + 1)).collect::<Result<Vec<_>, _>>()?;
        let over = self.convert_boxed(over, depth)?;
        let mut names = names.into_iter();
        let Some((first, comprehension)) = names.next().zip(select_comprehension(name, parts)) else { return Ok(None) };
        Ok(Some(NodeKind::Loop { over, first, second: names.next(), comprehension }))
    }

    fn read_variable(&self, expression: &IdedExpr, message: &str) -> Result<String, Issue> {
        match &expression.expr {
            Expr::Ident(name) if ACCUMULATORS.contains(&name.as_str()) => {
                Err(self.issue(expression, "iteration variable overwrites accumulator variable".to_owned()))
            }
            Expr::Ident(name) => Ok(name.clone()),
            _ => Err(self.issue(expression, message.to_owned())),
        }
    }

    fn convert_boxed(&self, expression: &IdedExpr, depth: usize) -> Result<Box<Node>, Issue> {
        self.convert(expression, depth + 1).map(Box::new)
    }

    fn position(&self, id: u64) -> Position {
        let (start, _) = self.source.offset_for(id).unwrap_or_default();
        let before: String = self.source.source.chars().take(usize::try_from(start).unwrap_or(0)).collect();
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
        Position { line, column }
    }

    fn issue(&self, expression: &IdedExpr, message: String) -> Issue {
        let Position { line, column } = self.position(expression.id);
        Issue { line, column, message }
    }
}

/// Returns the comprehension of a macro.
fn select_comprehension(name: &str, parts: Vec<Node>) -> Option<Comprehension> {
    let mut parts = parts.into_iter().map(Box::new);
    Some(match (name, parts.next()?, parts.next()) {
        ("all", test, None) => Comprehension::All(test),
        ("exists", test, None) => Comprehension::Exists(test),
        ("exists_one" | "existsOne", test, None) => Comprehension::ExistsOne(test),
        ("filter", test, None) => Comprehension::Filter(test),
        ("map" | "transformList", to, None) => Comprehension::Map { filter: None, to },
        ("map" | "transformList", filter, Some(to)) => Comprehension::Map { filter: Some(filter), to },
        ("transformMap", to, None) => Comprehension::Transform { filter: None, to },
        ("transformMap", filter, Some(to)) => Comprehension::Transform { filter: Some(filter), to },
        (_, _, _) => return None,
    })
}

fn convert_literal(literal: &LiteralValue) -> NodeKind {
    match literal {
        LiteralValue::Null => NodeKind::Null,
        LiteralValue::Boolean(value) => NodeKind::Bool(*value.inner()),
        LiteralValue::Int(value) => NodeKind::Int(*value.inner()),
        LiteralValue::UInt(value) => NodeKind::Uint(*value.inner()),
        LiteralValue::Double(value) => NodeKind::Double(*value.inner()),
        LiteralValue::String(value) => NodeKind::Text(value.inner().to_owned()),
        LiteralValue::Bytes(value) => NodeKind::Bytes(value.inner().to_vec()),
    }
}

/// Returns a qualified name such as `a.b.c`.
fn qualified_name(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) => Some(format!("{}.{}", qualified_name(&select.operand)?, select.field)),
        _ => None,
    }
}
