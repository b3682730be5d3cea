//! Which number each field of a message has: `protobuf/types.json`, as `protobuf/main.go` wrote it, read once.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use crate::object::fields::{list, text};

const TYPES: &str = include_str!("../../../protobuf/types.json");
/// The type of the schemas of definitions, which are inside each other.
const SCHEMA: &str = "apiextensions/v1.JSONSchemaProps";
/// Options may come in the name of any group.
const OPTIONS: [&str; 4] = ["CreateOptions", "DeleteOptions", "PatchOptions", "UpdateOptions"];

/// A message.
#[derive(Debug)]
pub(super) struct Message {
    /// What its type is called in Go.
    pub(super) name: String,
    /// Its fields, by their numbers.
    pub(super) fields: Vec<Field>,
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    /// Its name in JSON; empty if the fields of the message in it stand in JSON beside those of its holder.
    pub(super) name: String,
    /// Its name in Go.
    pub(super) go: String,
    /// Whether JSON has it even when it is empty.
    pub(super) always: bool,
    pub(super) of: Of,
}

/// What is in a field.
#[derive(Debug)]
pub(super) enum Of {
    Text,
    Truth,
    Number,
    Fraction,
    Bytes,
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    Span,
    /// Any JSON.
    Any,
    /// The fields of a manager.
    Owned,
    /// Texts in a message of their own.
    Texts,
    /// A schema, or a list of them.
    OneOrMany,
    /// A schema, or whether anything goes.
    OneOrTruth,
    /// A schema, or names.
    OneOrNames,
    /// A message, by its name.
    Message(String),
    /// May be missing.
    Optional(Box<Of>),
    List(Box<Of>),
    /// By texts.
    Map(Box<Of>),
}

impl Of {
    fn parse(text: &str) -> Self {
        let inner = |text: &str| Box::new(Self::parse(text));
        if let Some(text) = text.strip_prefix('*') {
            return Self::Optional(inner(text));
        }
        if let Some(text) = text.strip_prefix("[]") {
            return Self::List(inner(text));
        }
        if let Some(text) = text.strip_prefix("{}") {
            return Self::Map(inner(text));
        }
        match text {
            "s" => Self::Text,
            "b" => Self::Truth,
            "i" => Self::Number,
            "f" => Self::Fraction,
            "y" => Self::Bytes,
            "Q" => Self::Quantity,
            "I" => Self::IntOrString,
            "t" => Self::Time,
            "u" => Self::MicroTime,
            "d" => Self::Span,
            "R" => Self::Any,
            "F" => Self::Owned,
            "E" => Self::Texts,
            "A" => Self::OneOrMany,
            "B" => Self::OneOrTruth,
            "S" => Self::OneOrNames,
            message => Self::Message(message.to_owned()),
        }
    }
}

/// The whole table.
pub(super) struct Table {
    kinds: BTreeMap<String, String>,
    messages: BTreeMap<String, Message>,
}

/// The table, read once.
pub(super) fn table() -> &'static Table {
    static READ: OnceLock<Table> = OnceLock::new();
    READ.get_or_init(|| Table::parse(&serde_json::from_str(TYPES).expect("the table is part of the program")))
}

impl Table {
    fn parse(written: &Value) -> Self {
        let rows = |part: &str| written[part].as_object().into_iter().flatten();
        let kind = |(kind, of): (&String, &Value)| (kind.clone(), text(of, "").to_owned());
        let message = |(name, fields): (&String, &Value)| {
            let mut fields: Vec<Field> = list(fields, "").iter().map(Field::parse).collect();
            fields.sort_by_key(|field| field.number);
            let short = name.rsplit('.').next().unwrap_or_default().to_owned();
            (name.clone(), Message { name: short, fields })
        };
        Self { kinds: rows("kinds").map(kind).collect(), messages: rows("types").map(message).collect() }
    }

    /// A message by its name.
    pub(super) fn message(&self, name: &str) -> &Message {
        self.messages.get(name).expect("a test sees that every message of the table is in it")
    }

    /// The message of schemas.
    pub(super) fn schema(&self) -> &Message {
        self.message(SCHEMA)
    }

    /// Every kind as `group/version/Kind`, with its message.
    #[cfg(test)]
    pub(super) fn all_kinds(&self) -> impl Iterator<Item = (&str, &Message)> {
        self.kinds.iter().map(|(kind, name)| (kind.as_str(), self.message(name)))
    }

    /// The message of a kind, if it has one.
    pub(super) fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Message> {
        let (group, version) = if OPTIONS.contains(&kind) { ("", "v1") } else { (group, version) };
        self.kinds.get(&format!("{group}/{version}/{kind}")).map(|name| self.message(name))
    }
}

impl Message {
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        // Most messages have their numbers from 1 without gaps.
        let likely = self.fields.get((number as usize).wrapping_sub(1)).filter(|field| field.number == number);
        likely.or_else(|| self.fields.iter().find(|field| field.number == number))
    }
}

impl Field {
    fn parse(row: &Value) -> Self {
        let name = text(row, "/1");
        let capital = || name[..1].to_uppercase() + &name[1..];
        let go = Some(text(row, "/4")).filter(|go| !go.is_empty()).map_or_else(capital, str::to_owned);
        Self {
            number: row[0].as_u64().and_then(|number| u32::try_from(number).ok()).expect("a number of the table"),
            name: name.to_owned(),
            go,
            always: row[3] == 1,
            of: Of::parse(text(row, "/2")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::kinds::built_in;

    fn message_in(of: &Of) -> Option<&str> {
        match of {
            Of::Message(name) => Some(name),
            Of::Optional(inner) | Of::List(inner) | Of::Map(inner) => message_in(inner),
            _ => None,
        }
    }

    #[test]
    fn every_message_of_the_table_is_in_it() {
        let fields = table().messages.values().flat_map(|message| &message.fields);
        for name in fields.filter_map(|field| message_in(&field.of)).chain(table().kinds.values().map(String::as_str)) {
            assert!(table().messages.contains_key(name), "{name}");
        }
        assert_eq!(table().schema().name, "JSONSchemaProps");
    }

    #[test]
    fn every_built_in_kind_and_its_list_has_a_message() {
        for resource in built_in() {
            for version in &resource.versions {
                let is_listed = resource.verbs.iter().any(|verb| verb == "list");
                for kind in
                    [Some(&resource.kind), Some(&resource.list_kind).filter(|_| is_listed)].into_iter().flatten()
                {
                    let found = table().of_kind(&resource.group, &version.name, kind);
                    assert!(found.is_some(), "{} {kind}", resource.qualified());
                }
            }
        }
    }
}
