//! The only place that knows the CEL library, of which the parser is used, without its macros.
//!
//! Its evaluation is not: it cannot be stopped, its maps are walked in an order that differs from run to run, its
//! arithmetic may panic, and its errors quote the values that they are about.

use std::rc::Rc;

use cel::Env;
use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SourceInfo};
use thiserror::Error;

use super::node::{Function, Node, Purpose};

/// The most words and signs of a rule, those inside of its strings included: the parser's stack grows with them.
const PARTS_MAX: usize = 1_000;
/// The most expressions inside of each other while parsing.
const NESTING_MAX: u16 = 24;
/// The deepest rule: the stack of the evaluation grows with it.
const DEPTH_MAX: usize = 64;

/// How often the parser goes on after an error. Once, or it does not say what the error was.
const RECOVERIES_MAX: u32 = 1;
/// What the library says of syntax, of rules that are nested too deeply, when it gave up, and when it has no words.
const SYNTAX: &str = "Syntax error: ";
const TOO_DEEP: &str = "Recursion limit";
const GAVE_UP: &str = "error recovery attempt limit";
const UNEXPLAINED: &str = "UNKNOWN";

/// A rule that cannot be used.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("line {line}, column {column}: {words}")]
pub(super) struct RuleError {
    pub line: usize,
    pub column: usize,
    pub words: String,
}

/// Reads a rule.
pub(super) fn parse(rule: &str) -> Result<Node, RuleError> {
    let parts = parts(rule);
    if parts > PARTS_MAX {
        let words = format!("{parts} words and signs are more than the limit of {PARTS_MAX}");
        return Err(RuleError { line: 1, column: 1, words });
    }
    let parser = Env::default().parser().enable_optional_syntax(false);
    let parser = parser.max_recursion_depth(NESTING_MAX).error_recovery_limit(RECOVERIES_MAX);
    match parser.parse_with_source_info(rule) {
        Ok((expression, source)) => Reader { source: &source, variables: Vec::new() }.read(&expression, 0),
        Err(errors) => Err(RuleError::first(&errors.errors)),
    }
}

/// How many words and signs there are at most.
fn parts(rule: &str) -> usize {
    let mut in_word = false;
    let mut count = 0;
    for character in rule.chars() {
        let is_word = character.is_alphanumeric() || character == '_';
        count += usize::from(!(character.is_whitespace() || is_word && in_word));
        in_word = is_word;
    }
    count
}

impl RuleError {
    /// The first that says something.
    fn first(errors: &[cel::ParseError]) -> Self {
        let is_own = |error: &&cel::ParseError| !error.msg.contains(GAVE_UP);
        errors.iter().find(is_own).or(errors.first()).map_or_else(Self::unexplained, Self::of)
    }

    fn of(error: &cel::ParseError) -> Self {
        let number = |position: isize| usize::try_from(position).unwrap_or(1).max(1);
        let words = error.msg.strip_prefix(SYNTAX).unwrap_or(&error.msg);
        let is_deep = words.contains(TOO_DEEP) || words == UNEXPLAINED;
        let words = if is_deep { format!("nested more than {NESTING_MAX} deep") } else { words.to_owned() };
        Self { line: number(error.pos.0), column: number(error.pos.1), words }
    }

    fn unexplained() -> Self {
        Self { line: 1, column: 1, words: "it cannot be parsed".to_owned() }
    }
}

/// Turns what was parsed into what can be evaluated.
struct Reader<'a> {
    source: &'a SourceInfo,
    /// Of the loops around the present place.
    variables: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self, expression: &IdedExpr, depth: usize) -> Result<Node, RuleError> {
        if depth > DEPTH_MAX {
            return Err(self.error(expression, format!("more than {DEPTH_MAX} deep")));
        }
        match &expression.expr {
            Expr::Literal(literal) => self.literal(expression, literal),
            Expr::Ident(name) => self.name(expression, name),
            Expr::Select(select) => {
                let (of, name) = (self.boxed(&select.operand, depth)?, select.field.clone());
                Ok(Node::Field { of, name })
            }
            Expr::List(list) => Ok(Node::List(self.all(&list.elements, depth)?)),
            Expr::Map(map) => {
                let entries = map.entries.iter().map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => {
                        Ok((self.read(&entry.key, depth + 1)?, self.read(&entry.value, depth + 1)?))
                    }
                    EntryExpr::StructField(_) => Err(self.error(expression, "a field outside of a message".to_owned())),
                });
                Ok(Node::Map(entries.collect::<Result<_, _>>()?))
            }
            Expr::Call(call) => self.call(expression, call, depth),
            Expr::Struct(_) => Err(self.error(expression, "messages are not known here".to_owned())),
            Expr::Comprehension(_) | Expr::Unspecified => Err(self.error(expression, "not an expression".to_owned())),
        }
    }

    fn literal(&self, expression: &IdedExpr, literal: &LiteralValue) -> Result<Node, RuleError> {
        Ok(match literal {
            LiteralValue::Null => Node::Null,
            LiteralValue::Boolean(value) => Node::Bool(*value.inner()),
            LiteralValue::Int(value) => Node::Int(*value.inner()),
            LiteralValue::UInt(value) => Node::Uint(*value.inner()),
            LiteralValue::Double(value) => Node::Double(*value.inner()),
            LiteralValue::String(value) => Node::Text(Rc::from(value.inner())),
            LiteralValue::Bytes(_) => return Err(self.error(expression, "bytes are not known here".to_owned())),
        })
    }

    fn name(&self, expression: &IdedExpr, name: &str) -> Result<Node, RuleError> {
        if self.variables.iter().any(|variable| variable == name) {
            return Ok(Node::Variable(name.to_owned()));
        }
        match name {
            "object" | "self" => Ok(Node::Object),
            _ => Err(self.error(expression, format!("nothing is called {name}; the object is called object"))),
        }
    }

    fn call(&mut self, expression: &IdedExpr, call: &CallExpr, depth: usize) -> Result<Node, RuleError> {
        if let Some(node) = self.special(expression, call, depth)? {
            return Ok(node);
        }
        let count = call.args.len() + usize::from(call.target.is_some());
        let Some(function) = Function::named(&call.func_name, call.target.is_some(), count) else {
            let words = format!("there is no function {} with so many arguments", call.func_name);
            return Err(self.error(expression, words));
        };
        let mut arguments = Vec::with_capacity(count);
        for argument in call.target.as_deref().into_iter().chain(&call.args) {
            arguments.push(self.read(argument, depth + 1)?);
        }
        Ok(Node::Call { function, arguments })
    }

    /// What does not evaluate all of its arguments: the logical operators, `has` and the loops.
    fn special(&mut self, expression: &IdedExpr, call: &CallExpr, depth: usize) -> Result<Option<Node>, RuleError> {
        Ok(Some(match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
            ("_&&_", None, [left, right]) => Node::And(self.boxed(left, depth)?, self.boxed(right, depth)?),
            ("_||_", None, [left, right]) => Node::Or(self.boxed(left, depth)?, self.boxed(right, depth)?),
            ("_?_:_", None, [condition, then, otherwise]) => Node::If {
                condition: self.boxed(condition, depth)?,
                then: self.boxed(then, depth)?,
                otherwise: self.boxed(otherwise, depth)?,
            },
            ("has", None, [IdedExpr { expr: Expr::Select(select), .. }]) => {
                Node::Has { of: self.boxed(&select.operand, depth)?, name: select.field.clone() }
            }
            ("has", None, _) => return Err(self.error(expression, "has() takes one field: has(a.b)".to_owned())),
            (name @ ("all" | "exists" | "exists_one" | "filter" | "map"), Some(over), [first, rest @ ..]) => {
                let Expr::Ident(variable) = &first.expr else {
                    return Err(self.error(first, format!("{name}() begins with the name of a variable")));
                };
                let over = self.boxed(over, depth)?;
                self.variables.push(variable.clone());
                let purpose = self.purpose(expression, name, rest, depth);
                self.variables.pop();
                Node::Loop { over, variable: variable.clone(), purpose: purpose? }
            }
            (_, _, _) => return Ok(None),
        }))
    }

    fn purpose(
        &mut self,
        expression: &IdedExpr,
        name: &str,
        arguments: &[IdedExpr],
        depth: usize,
    ) -> Result<Purpose, RuleError> {
        Ok(match (name, arguments) {
            ("all", [test]) => Purpose::All(self.boxed(test, depth)?),
            ("exists", [test]) => Purpose::Exists(self.boxed(test, depth)?),
            ("exists_one", [test]) => Purpose::ExistsOne(self.boxed(test, depth)?),
            ("filter", [test]) => Purpose::Filter(self.boxed(test, depth)?),
            ("map", [to]) => Purpose::Map { filter: None, to: self.boxed(to, depth)? },
            ("map", [filter, to]) => {
                Purpose::Map { filter: Some(self.boxed(filter, depth)?), to: self.boxed(to, depth)? }
            }
            (_, _) => return Err(self.error(expression, format!("{name}() does not take so many arguments"))),
        })
    }

    fn boxed(&mut self, expression: &IdedExpr, depth: usize) -> Result<Box<Node>, RuleError> {
        self.read(expression, depth + 1).map(Box::new)
    }

    fn all(&mut self, expressions: &[IdedExpr], depth: usize) -> Result<Vec<Node>, RuleError> {
        expressions.iter().map(|expression| self.read(expression, depth + 1)).collect()
    }

    fn error(&self, expression: &IdedExpr, words: String) -> RuleError {
        let (start, _) = self.source.offset_for(expression.id).unwrap_or_default();
        let before: String = self.source.source.chars().take(usize::try_from(start).unwrap_or(0)).collect();
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
        RuleError { line, column, words }
    }
}
