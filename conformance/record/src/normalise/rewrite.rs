//! Rewrites an exchange with placeholders for volatile values.

use serde_json::{Map, Value, json};

use super::exchange_data::ExchangeData;
use super::resource_version::{VERSION, is_bookmark, is_collection};
use super::text::{
    Numbered, digits_after, is_age, replace_certificates, replace_times, replace_tokens, replace_uids, replace_word,
};
use super::volatile::VolatileValues;

/// Placeholder of the first node port.
const FIRST_PORT: usize = 30_001;

/// Owner of a resourceVersion.
#[derive(Clone, Copy, PartialEq)]
enum VersionOwner {
    Object,
    Collection,
}

/// Rewrites the steps of one exchange in order.
pub struct Rewriter<'a> {
    volatile: VolatileValues,
    data: ExchangeData<'a>,
    versions: Vec<u64>,
    in_request: bool,
    uids: Numbered,
    tokens: Numbered,
    etags: Numbered,
}

impl<'a> Rewriter<'a> {
    pub fn new(volatile: VolatileValues, data: ExchangeData<'a>) -> Self {
        let versions = volatile.versions.iter().copied().collect();
        Self {
            volatile,
            data,
            versions,
            in_request: false,
            uids: Numbered::new("uid"),
            tokens: Numbered::new("token"),
            etags: Numbered::new("etag"),
        }
    }

    /// Rewrites one step. Only requests may contain the resourceVersion of a list.
    pub fn rewrite_step(&mut self, step: &Value) -> Value {
        let Value::Object(parts) = step else { return self.rewrite(step) };
        let mut rewritten = Map::new();
        for (key, part) in parts {
            self.in_request = key == "request";
            rewritten.insert(key.clone(), self.rewrite(part));
        }
        Value::Object(rewritten)
    }

    fn rewrite(&mut self, value: &Value) -> Value {
        self.rewrite_in(value, VersionOwner::Object)
    }

    fn rewrite_in(&mut self, value: &Value, owner: VersionOwner) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(elements) => {
                Value::Array(elements.iter().map(|element| self.rewrite_in(element, VersionOwner::Object)).collect())
            }
            Value::Object(fields) => {
                let is_collection = owner == VersionOwner::Collection || is_collection(value);
                Value::Object(fields.iter().map(|(key, field)| self.field(value, key, field, is_collection)).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn field(&mut self, parent: &Value, key: &str, field: &Value, is_collection: bool) -> (String, Value) {
        let owner = if is_bookmark(parent) { VersionOwner::Collection } else { VersionOwner::Object };
        let rewritten = match (key, field) {
            ("metadata" | "/metadata", Value::Object(metadata)) => self.metadata(metadata, is_collection),
            (key, Value::String(version)) if key.ends_with(VERSION) && is_collection => {
                json!(self.version(version, VersionOwner::Collection))
            }
            (key, Value::String(version)) if key == "resourceVersion" || key.ends_with(VERSION) => {
                json!(self.version(version, VersionOwner::Object))
            }
            ("/metadata/managedFields", Value::Array(managers)) => self.managers(managers),
            ("causes" | "resourceRules" | "nonResourceRules", Value::Array(elements)) => {
                sort_elements(elements.iter().map(|element| self.rewrite(element)).collect())
            }
            ("message", Value::String(message)) => json!(self.text(&sort_causes(message, parent))),
            ("serverAddress", Value::String(_)) => json!("<server>"),
            ("ETag" | "If-None-Match", Value::String(etag)) => json!(self.etags.placeholder(etag)),
            ("nodePort" | "healthCheckNodePort", Value::Number(_)) => self.port(field),
            (key, Value::Array(cells)) if key == "cells" || key.ends_with("/cells") => {
                Value::Array(cells.iter().map(|cell| self.cell(cell)).collect())
            }
            _ => self.rewrite_in(field, owner),
        };
        (self.text(key), rewritten)
    }

    fn metadata(&mut self, metadata: &Map<String, Value>, is_collection: bool) -> Value {
        let mut rewritten = Map::new();
        for (key, field) in metadata {
            let field = match (key.as_str(), field) {
                ("resourceVersion", Value::String(version)) if is_collection => {
                    json!(self.version(version, VersionOwner::Collection))
                }
                ("resourceVersion", Value::String(version)) => json!(self.version(version, VersionOwner::Object)),
                ("managedFields", Value::Array(managers)) => self.managers(managers),
                _ => self.rewrite(field),
            };
            rewritten.insert(self.text(key), field);
        }
        Value::Object(rewritten)
    }

    fn managers(&mut self, managers: &[Value]) -> Value {
        sort_managers(managers.iter().map(|manager| self.rewrite(manager)).collect())
    }

    /// Replaces a resourceVersion by its rank among those of objects. A version that no object has is kept, unless it belongs to a
    /// list.
    fn version(&self, version: &str, owner: VersionOwner) -> String {
        let Ok(number) = version.parse::<u64>() else { return version.to_owned() };
        let is_list = match owner {
            VersionOwner::Collection => true,
            VersionOwner::Object => self.in_request && self.data.list_versions.contains(version),
        };
        match self.versions.binary_search(&number) {
            _ if is_list && number > 0 => self.floor(number),
            Ok(rank) => format!("rv-{}", rank + 1),
            Err(_) => version.to_owned(),
        }
    }

    /// Placeholder with the number of objects that are not newer.
    fn floor(&self, number: u64) -> String {
        format!("rv-{}+", self.versions.partition_point(|version| *version <= number))
    }

    fn port(&self, port: &Value) -> Value {
        let found = self.volatile.ports.iter().position(|known| Some(*known) == port.as_u64());
        found.map_or_else(|| port.clone(), |index| json!(FIRST_PORT + index))
    }

    fn cell(&mut self, cell: &Value) -> Value {
        match cell {
            Value::String(text) if is_age(text) => json!("<age>"),
            _ => self.rewrite(cell),
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = replace_word(text, self.data.authority, "<server>");
        for (index, (name, base)) in self.volatile.names.iter().enumerate() {
            text = replace_word(&text, name, &format!("{base}generated-{}", index + 1));
        }
        for (index, address) in self.volatile.addresses.iter().enumerate() {
            text = replace_word(&text, address, &format!("cluster-ip-{}", index + 1));
        }
        if text.contains("nodePort: {") {
            for (index, port) in self.volatile.ports.iter().enumerate() {
                text = replace_word(&text, &port.to_string(), &(FIRST_PORT + index).to_string());
            }
        }
        for (index, token) in self.volatile.continues.iter().enumerate() {
            text = text.replace(token.as_str(), &format!("continue-{}", index + 1));
        }
        text = replace_uids(&text, &mut self.uids);
        text = replace_tokens(&text, &mut self.tokens);
        text = replace_certificates(&text);
        text = replace_times(&text, self.data.script);
        self.versions_in(&text)
    }

    /// Replaces resourceVersions in queries, and in messages that mention one.
    fn versions_in(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for before in
            ["resourceVersion=", "resourceVersion: \"", "\"resourceVersion\":\"", "\\\"resourceVersion\\\":\\\""]
        {
            text = digits_after(&text, before, |version| self.version(version, VersionOwner::Object));
        }
        if text.to_lowercase().contains("resource version") || text.contains("ResourceVersion") {
            text = digits_after(&text, "precondition (", |version| self.version(version, VersionOwner::Object));
            text = digits_after(&text, "in record (", |version| self.version(version, VersionOwner::Object));
            for before in ["ResourceVersion in precondition: ", "ResourceVersion in object meta: "] {
                text = digits_after(&text, before, |version| self.version(version, VersionOwner::Object));
            }
            // The server's current version: it is unknown which other writes came before.
            for before in [" (", "current: "] {
                text = digits_after(&text, before, |version| self.current(version));
            }
        }
        text
    }

    fn current(&self, version: &str) -> String {
        match version.parse::<u64>() {
            Ok(number) if self.versions.first().is_some_and(|first| number >= *first) => self.floor(number),
            Ok(_) | Err(_) => version.to_owned(),
        }
    }
}

/// Sorts managed fields. The server sorts them by the second of their last change, which differs from run to run.
fn sort_managers(mut managers: Vec<Value>) -> Value {
    let part = |manager: &Value, key: &str| manager.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    managers.sort_by_key(|manager| ["operation", "manager", "apiVersion", "subresource"].map(|key| part(manager, key)));
    Value::Array(managers)
}

/// Sorts lists that the server builds from maps, in random order.
fn sort_elements(mut elements: Vec<Value>) -> Value {
    elements.sort_by_cached_key(Value::to_string);
    Value::Array(elements)
}

/// Sorts the errors in a message, in the order of the sorted causes.
fn sort_causes(message: &str, status: &Value) -> String {
    let causes = status.pointer("/details/causes").and_then(Value::as_array);
    let describe = |cause: &Value| {
        let part = |key: &str| cause.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        format!("{}: {}", part("field"), part("message"))
    };
    let mut parts: Vec<String> = causes.into_iter().flatten().map(describe).collect();
    let list = format!("[{}]", parts.join(", "));
    parts.sort();
    sort_lines(&message.replace(&list, &format!("[{}]", parts.join(", "))))
}

/// Sorts the errors of an applied object, one on each line, in the order of a Go map.
fn sort_lines(message: &str) -> String {
    let Some((before, lines)) = message.split_once("errors:\n") else { return message.to_owned() };
    let mut lines: Vec<&str> = lines.split('\n').collect();
    lines.sort_unstable();
    format!("{before}errors:\n{}", lines.join("\n"))
}
