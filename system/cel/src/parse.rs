//! The only place that knows the CEL library, of which the parser is used, without its macros.
//!
//! Its evaluation is not: it cannot be stopped, its maps are walked in an order that differs from run to run, its
//! arithmetic may panic, and it knows nothing of types before it runs.

use cel::Env;
use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, SourceInfo};

use crate::functions;
use crate::issue::{Issue, Issues};
use crate::node::{Element, Entry, Kind, Node, Place, Purpose};
use crate::types::Type;

/// The longest rule.
const BYTES_MAX: usize = 16 * 1024;
/// The most words and signs of a rule, those inside of its strings included: the parser's stack grows with them.
const PARTS_MAX: usize = 1_000;
/// The most expressions inside of each other while parsing.
const NESTING_MAX: u16 = 24;
/// The deepest rule: the stack of the evaluation grows with it.
const DEPTH_MAX: usize = 64;

/// How often the parser goes on after an error. Once, or it does not say what the error was.
const RECOVERIES_MAX: u32 = 1;
/// What the library says of rules that are nested too deeply, when it gave up, and when it has no words.
const TOO_DEEP: &str = "Recursion limit";
const GAVE_UP: &str = "error recovery attempt limit";
const UNEXPLAINED: &str = "UNKNOWN";
/// What its loops call what they gather; no variable may have the name.
const GATHERED: [&str; 2] = ["__result__", "@result"];

/// Reads a rule.
pub(crate) fn parse(rule: &str) -> Result<Node, Issues> {
    bounded(rule)?;
    let parser = Env::default().parser().enable_optional_syntax(true);
    let parser = parser.max_recursion_depth(NESTING_MAX).error_recovery_limit(RECOVERIES_MAX);
    let (expression, source) = parser.parse_with_source_info(rule).map_err(|errors| syntax(&errors.errors, rule))?;
    let reader = Reader { source: &source };
    reader.read(&expression, 0).map_err(|issue| Issues::new(vec![issue], rule))
}

fn bounded(rule: &str) -> Result<(), Issues> {
    let refuse = |words| Err(Issues::new(vec![Issue { line: 1, column: 1, words }], rule));
    if rule.len() > BYTES_MAX {
        return refuse(format!("{} bytes are more than the limit of {BYTES_MAX}", rule.len()));
    }
    match parts(rule) {
        parts if parts > PARTS_MAX => refuse(format!("{parts} words and signs are more than the limit of {PARTS_MAX}")),
        _ => Ok(()),
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

/// What the parser said, without what it says of itself.
fn syntax(errors: &[cel::ParseError], rule: &str) -> Issues {
    let number = |position: isize| usize::try_from(position).unwrap_or(1).max(1);
    let own = errors.iter().filter(|error| !error.msg.contains(GAVE_UP));
    let mut issues: Vec<Issue> = own
        .map(|error| {
            let is_deep = error.msg.contains(TOO_DEEP) || error.msg == UNEXPLAINED;
            let words = if is_deep { format!("nested more than {NESTING_MAX} deep") } else { error.msg.clone() };
            Issue { line: number(error.pos.0), column: number(error.pos.1), words }
        })
        .collect();
    if issues.is_empty() {
        issues.push(Issue { line: 1, column: 1, words: "it cannot be parsed".to_owned() });
    }
    Issues::new(issues, rule)
}

/// Turns what was parsed into what can be evaluated.
struct Reader<'a> {
    source: &'a SourceInfo,
}

impl Reader<'_> {
    fn read(&self, expression: &IdedExpr, depth: usize) -> Result<Node, Issue> {
        if depth > DEPTH_MAX {
            return Err(self.issue(expression, format!("more than {DEPTH_MAX} deep")));
        }
        let kind = match &expression.expr {
            Expr::Literal(literal) => literal_kind(literal),
            Expr::Ident(name) => Kind::Name(name.trim_start_matches('.').to_owned()),
            Expr::Select(select) => match qualified(expression).filter(|name| Type::named(name).is_some()) {
                Some(name) => Kind::Name(name),
                None => {
                    let (of, name) = (self.boxed(&select.operand, depth)?, select.field.clone());
                    Kind::Field { of, name, is_optional: false }
                }
            },
            Expr::List(list) => self.list(list, depth)?,
            Expr::Map(map) => self.map(expression, map, depth)?,
            Expr::Call(call) => self.call(expression, call, depth)?,
            Expr::Struct(message) => Kind::Message(message.type_name.clone()),
            Expr::Comprehension(_) | Expr::Unspecified => {
                return Err(self.issue(expression, "not an expression".to_owned()));
            }
        };
        Ok(Node { place: self.place(expression.id), kind })
    }

    fn list(&self, list: &ListExpr, depth: usize) -> Result<Kind, Issue> {
        let elements = list.elements.iter().enumerate().map(|(index, element)| {
            let is_optional = list.optional_indices.contains(&index);
            Ok(Element { node: self.read(element, depth + 1)?, is_optional })
        });
        elements.collect::<Result<_, _>>().map(Kind::List)
    }

    fn map(&self, expression: &IdedExpr, map: &MapExpr, depth: usize) -> Result<Kind, Issue> {
        let entries = map.entries.iter().map(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => Ok(Entry {
                key: self.read(&entry.key, depth + 1)?,
                value: self.read(&entry.value, depth + 1)?,
                is_optional: entry.optional,
            }),
            EntryExpr::StructField(_) => Err(self.issue(expression, "a field outside of a message".to_owned())),
        });
        entries.collect::<Result<_, _>>().map(Kind::Map)
    }

    fn call(&self, expression: &IdedExpr, call: &CallExpr, depth: usize) -> Result<Kind, Issue> {
        if let Some(kind) = self.special(call, depth)? {
            return Ok(kind);
        }
        let target = call.target.as_deref();
        // `optional.of` is a function, not something that is done to `optional`.
        let full = target.and_then(qualified).map(|prefix| format!("{prefix}.{}", call.func_name));
        let (name, target) = match full.filter(|name| functions::named(name).is_some()) {
            Some(full) => (full, None),
            None => (call.func_name.trim_start_matches('.').to_owned(), target),
        };
        let mut arguments = Vec::with_capacity(call.args.len() + 1);
        for argument in target.into_iter().chain(&call.args) {
            arguments.push(self.read(argument, depth + 1)?);
        }
        if name == "_?._" {
            return self.optional_field(expression, arguments);
        }
        let function = functions::named(&name);
        Ok(Kind::Call { name, is_member: target.is_some(), arguments, function })
    }

    fn optional_field(&self, expression: &IdedExpr, arguments: Vec<Node>) -> Result<Kind, Issue> {
        match <[Node; 2]>::try_from(arguments) {
            Ok([of, Node { kind: Kind::Text(name), .. }]) => {
                Ok(Kind::Field { of: Box::new(of), name, is_optional: true })
            }
            Ok(_) | Err(_) => Err(self.issue(expression, "unsupported optional field selection".to_owned())),
        }
    }

    /// What does not evaluate all of its arguments: the logical operators, `has` and the loops.
    fn special(&self, call: &CallExpr, depth: usize) -> Result<Option<Kind>, Issue> {
        Ok(Some(match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
            ("_&&_", None, [left, right]) => Kind::And(self.boxed(left, depth)?, self.boxed(right, depth)?),
            ("_||_", None, [left, right]) => Kind::Or(self.boxed(left, depth)?, self.boxed(right, depth)?),
            ("_?_:_", None, [condition, then, otherwise]) => Kind::If {
                condition: self.boxed(condition, depth)?,
                then: self.boxed(then, depth)?,
                otherwise: self.boxed(otherwise, depth)?,
            },
            ("has", None, [IdedExpr { expr: Expr::Select(select), .. }]) => {
                Kind::Has { of: self.boxed(&select.operand, depth)?, name: select.field.clone() }
            }
            ("has", None, [other]) => return Err(self.issue(other, "invalid argument to has() macro".to_owned())),
            (name @ ("optMap" | "optFlatMap"), Some(of), [variable, to]) => Kind::Inside {
                of: self.boxed(of, depth)?,
                variable: self.variable(variable, &format!("{name}() variable name must be a simple identifier"))?,
                to: self.boxed(to, depth)?,
                is_flat: name == "optFlatMap",
            },
            (name, Some(over), arguments) => return self.around(name, over, arguments, depth),
            (_, _, _) => return Ok(None),
        }))
    }

    /// A loop, if it is one.
    fn around(&self, name: &str, over: &IdedExpr, arguments: &[IdedExpr], depth: usize) -> Result<Option<Kind>, Issue> {
        let variables = match (name, arguments.len()) {
            ("all" | "exists" | "exists_one" | "existsOne" | "filter", 2) | ("map", 2 | 3) => 1,
            ("all" | "exists" | "exists_one" | "existsOne", 3) | ("transformList" | "transformMap", 3 | 4) => 2,
            (_, _) => return Ok(None),
        };
        let (names, rest) = arguments.split_at(variables);
        let words = if name == "map" || name == "filter" {
            "argument is not an identifier"
        } else {
            "argument must be a simple name"
        };
        let names = names.iter().map(|name| self.variable(name, words)).collect::<Result<Vec<_>, _>>()?;
        let parts = rest.iter().map(|part| self.read(part, depth + 1)).collect::<Result<Vec<_>, _>>()?;
        let over = self.boxed(over, depth)?;
        let mut names = names.into_iter();
        let Some((first, purpose)) = names.next().zip(purpose(name, parts)) else { return Ok(None) };
        Ok(Some(Kind::Loop { over, first, second: names.next(), purpose }))
    }

    fn variable(&self, expression: &IdedExpr, words: &str) -> Result<String, Issue> {
        match &expression.expr {
            Expr::Ident(name) if GATHERED.contains(&name.as_str()) => {
                Err(self.issue(expression, "iteration variable overwrites accumulator variable".to_owned()))
            }
            Expr::Ident(name) => Ok(name.clone()),
            _ => Err(self.issue(expression, words.to_owned())),
        }
    }

    fn boxed(&self, expression: &IdedExpr, depth: usize) -> Result<Box<Node>, Issue> {
        self.read(expression, depth + 1).map(Box::new)
    }

    fn place(&self, id: u64) -> Place {
        let (start, _) = self.source.offset_for(id).unwrap_or_default();
        let before: String = self.source.source.chars().take(usize::try_from(start).unwrap_or(0)).collect();
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
        Place { line, column }
    }

    fn issue(&self, expression: &IdedExpr, words: String) -> Issue {
        let Place { line, column } = self.place(expression.id);
        Issue { line, column, words }
    }
}

/// What a loop with this name is for.
fn purpose(name: &str, parts: Vec<Node>) -> Option<Purpose> {
    let mut parts = parts.into_iter().map(Box::new);
    Some(match (name, parts.next()?, parts.next()) {
        ("all", test, None) => Purpose::All(test),
        ("exists", test, None) => Purpose::Exists(test),
        ("exists_one" | "existsOne", test, None) => Purpose::ExistsOne(test),
        ("filter", test, None) => Purpose::Filter(test),
        ("map" | "transformList", to, None) => Purpose::Map { filter: None, to },
        ("map" | "transformList", filter, Some(to)) => Purpose::Map { filter: Some(filter), to },
        ("transformMap", to, None) => Purpose::Transform { filter: None, to },
        ("transformMap", filter, Some(to)) => Purpose::Transform { filter: Some(filter), to },
        (_, _, _) => return None,
    })
}

fn literal_kind(literal: &LiteralValue) -> Kind {
    match literal {
        LiteralValue::Null => Kind::Null,
        LiteralValue::Boolean(value) => Kind::Bool(*value.inner()),
        LiteralValue::Int(value) => Kind::Int(*value.inner()),
        LiteralValue::UInt(value) => Kind::Uint(*value.inner()),
        LiteralValue::Double(value) => Kind::Double(*value.inner()),
        LiteralValue::String(value) => Kind::Text(value.inner().to_owned()),
        LiteralValue::Bytes(value) => Kind::Bytes(value.inner().to_vec()),
    }
}

/// `a.b.c`, where nothing but names is selected.
fn qualified(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) => Some(format!("{}.{}", qualified(&select.operand)?, select.field)),
        _ => None,
    }
}
