//! Fields of each message: `protobuf/types.json`, as `protobuf/main.go` wrote it, parsed once.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use crate::object::fields::{array_at, string_at};

const TYPES: &str = include_str!("../../../protobuf/types.json");
/// Recursive type of the schemas of CRDs.
const SCHEMA: &str = "apiextensions/v1.JSONSchemaProps";
/// Kinds of request options, which clients send with any group.
const OPTIONS: [&str; 4] = ["CreateOptions", "DeleteOptions", "PatchOptions", "UpdateOptions"];

/// A message type.
#[derive(Debug)]
pub(super) struct Message {
    /// Name of its type in Go.
    pub(super) name: String,
    /// Its fields, sorted by number.
    pub(super) fields: Vec<Field>,
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    /// Name in JSON; empty if the field's content is embedded in the parent.
    pub(super) name: String,
    /// Name in Go.
    pub(super) go_name: String,
    /// True if JSON has the field even if it is empty.
    pub(super) is_always_present: bool,
    pub(super) field_type: FieldType,
}

/// Type of a field.
#[derive(Debug)]
pub(super) enum FieldType {
    String,
    Bool,
    Integer,
    Float,
    Bytes,
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    Duration,
    /// Arbitrary JSON.
    RawJson,
    /// `fieldsV1` of a managed fields entry.
    FieldsV1,
    /// A list of strings in a message of its own.
    WrappedStrings,
    /// A schema or a list of schemas.
    SchemaOrSchemas,
    /// A schema or a boolean.
    SchemaOrBool,
    /// A schema or a list of strings.
    SchemaOrStrings,
    /// A message, by name.
    Message(String),
    /// A field that may be absent.
    Optional(Box<FieldType>),
    List(Box<FieldType>),
    /// A map with string keys.
    Map(Box<FieldType>),
}

impl FieldType {
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
            "s" => Self::String,
            "b" => Self::Bool,
            "i" => Self::Integer,
            "f" => Self::Float,
            "y" => Self::Bytes,
            "Q" => Self::Quantity,
            "I" => Self::IntOrString,
            "t" => Self::Time,
            "u" => Self::MicroTime,
            "d" => Self::Duration,
            "R" => Self::RawJson,
            "F" => Self::FieldsV1,
            "E" => Self::WrappedStrings,
            "A" => Self::SchemaOrSchemas,
            "B" => Self::SchemaOrBool,
            "S" => Self::SchemaOrStrings,
            message => Self::Message(message.to_owned()),
        }
    }
}

/// All kinds and message types.
pub(super) struct MessageTable {
    kinds: BTreeMap<String, String>,
    messages: BTreeMap<String, Message>,
}

/// Returns the table.
pub(super) fn table() -> &'static MessageTable {
    static PARSED: OnceLock<MessageTable> = OnceLock::new();
    PARSED.get_or_init(|| MessageTable::parse(&serde_json::from_str(TYPES).expect("the table is part of the program")))
}

impl MessageTable {
    fn parse(document: &Value) -> Self {
        let rows = |part: &str| document[part].as_object().into_iter().flatten();
        let kind = |(kind, message): (&String, &Value)| (kind.clone(), string_at(message, "").to_owned());
        let message = |(name, fields): (&String, &Value)| {
            let mut fields: Vec<Field> = array_at(fields, "").iter().map(Field::parse).collect();
            fields.sort_by_key(|field| field.number);
            let short = name.rsplit('.').next().unwrap_or_default().to_owned();
            (name.clone(), Message { name: short, fields })
        };
        Self { kinds: rows("kinds").map(kind).collect(), messages: rows("types").map(message).collect() }
    }

    /// Returns a message type by name.
    pub(super) fn message(&self, name: &str) -> &Message {
        self.messages.get(name).expect("a test checks that the table is complete")
    }

    /// Returns the message type of schemas.
    pub(super) fn schema(&self) -> &Message {
        self.message(SCHEMA)
    }

    /// Returns every kind as `group/version/Kind`, with its message type.
    #[cfg(test)]
    pub(super) fn all_kinds(&self) -> impl Iterator<Item = (&str, &Message)> {
        self.kinds.iter().map(|(kind, name)| (kind.as_str(), self.message(name)))
    }

    /// Returns the message type of a kind, if it has one.
    pub(super) fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Message> {
        let (group, version) = if OPTIONS.contains(&kind) { ("", "v1") } else { (group, version) };
        self.kinds.get(&format!("{group}/{version}/{kind}")).map(|name| self.message(name))
    }
}

impl Message {
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        // Most messages have numbers from 1 without gaps.
        let likely = self.fields.get((number as usize).wrapping_sub(1)).filter(|field| field.number == number);
        likely.or_else(|| self.fields.iter().find(|field| field.number == number))
    }
}

impl Field {
    fn parse(row: &Value) -> Self {
        let name = string_at(row, "/1");
        let capital = || name[..1].to_uppercase() + &name[1..];
        let go_name = Some(string_at(row, "/4")).filter(|name| !name.is_empty()).map_or_else(capital, str::to_owned);
        Self {
            number: row[0].as_u64().and_then(|number| u32::try_from(number).ok()).expect("a number of the table"),
            name: name.to_owned(),
            go_name,
            is_always_present: row[3] == 1,
            field_type: FieldType::parse(string_at(row, "/2")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::kinds::built_in;

    fn referenced_message(field_type: &FieldType) -> Option<&str> {
        match field_type {
            FieldType::Message(name) => Some(name),
            FieldType::Optional(inner) | FieldType::List(inner) | FieldType::Map(inner) => referenced_message(inner),
            _ => None,
        }
    }

    #[test]
    fn every_referenced_message_is_in_the_table() {
        let fields = table().messages.values().flat_map(|message| &message.fields);
        for name in fields
            .filter_map(|field| referenced_message(&field.field_type))
            .chain(table().kinds.values().map(String::as_str))
        {
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
                    let message = table().find_kind(&resource.group, &version.name, kind);
                    assert!(message.is_some(), "{} {kind}", resource.qualified());
                }
            }
        }
    }
}
