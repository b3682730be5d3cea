//! Writes an exchange again with words for what differs from run to run.

use serde_json::{Map, Value, json};

use super::learn::Learnt;
use super::text::{
    Numbered, digits_after, is_age, replace_certificates, replace_times, replace_tokens, replace_uids, replace_word,
};
use super::{Known, VERSION, is_bookmark, is_collection};

/// The first port that services get on nodes.
const FIRST_PORT: usize = 30_001;

/// Whose version it is.
#[derive(Clone, Copy, PartialEq)]
enum Holder {
    Object,
    Collection,
}

pub struct Rewriter<'a> {
    learnt: Learnt,
    known: Known<'a>,
    versions: Vec<u64>,
    in_request: bool,
    uids: Numbered,
    tokens: Numbered,
    etags: Numbered,
}

impl<'a> Rewriter<'a> {
    pub fn new(learnt: Learnt, known: Known<'a>) -> Self {
        let versions = learnt.versions.iter().copied().collect();
        Self {
            learnt,
            known,
            versions,
            in_request: false,
            uids: Numbered::new("uid"),
            tokens: Numbered::new("token"),
            etags: Numbered::new("etag"),
        }
    }

    /// One step. Only what is sent may use a version that was a list's.
    pub fn step(&mut self, step: &Value) -> Value {
        let Value::Object(parts) = step else { return self.rewrite(step) };
        let mut rewritten = Map::new();
        for (key, part) in parts {
            self.in_request = key == "request";
            rewritten.insert(key.clone(), self.rewrite(part));
        }
        Value::Object(rewritten)
    }

    fn rewrite(&mut self, value: &Value) -> Value {
        self.rewrite_in(value, Holder::Object)
    }

    fn rewrite_in(&mut self, value: &Value, holder: Holder) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(elements) => {
                Value::Array(elements.iter().map(|element| self.rewrite_in(element, Holder::Object)).collect())
            }
            Value::Object(fields) => {
                let is_collection = holder == Holder::Collection || is_collection(value);
                Value::Object(fields.iter().map(|(key, field)| self.field(value, key, field, is_collection)).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn field(&mut self, parent: &Value, key: &str, field: &Value, is_collection: bool) -> (String, Value) {
        let holder = if is_bookmark(parent) { Holder::Collection } else { Holder::Object };
        let rewritten = match (key, field) {
            ("metadata" | "/metadata", Value::Object(metadata)) => self.metadata(metadata, is_collection),
            (key, Value::String(version)) if key.ends_with(VERSION) && is_collection => {
                json!(self.version(version, Holder::Collection))
            }
            (key, Value::String(version)) if key == "resourceVersion" || key.ends_with(VERSION) => {
                json!(self.version(version, Holder::Object))
            }
            ("/metadata/managedFields", Value::Array(managers)) => self.managers(managers),
            ("causes" | "resourceRules" | "nonResourceRules", Value::Array(elements)) => {
                sorted(elements.iter().map(|element| self.rewrite(element)).collect())
            }
            ("message", Value::String(message)) => json!(self.text(&with_sorted_causes(message, parent))),
            ("serverAddress", Value::String(_)) => json!("<server>"),
            ("ETag" | "If-None-Match", Value::String(etag)) => json!(self.etags.word(etag)),
            ("nodePort" | "healthCheckNodePort", Value::Number(_)) => self.port(field),
            (key, Value::Array(cells)) if key == "cells" || key.ends_with("/cells") => {
                Value::Array(cells.iter().map(|cell| self.cell(cell)).collect())
            }
            _ => self.rewrite_in(field, holder),
        };
        (self.text(key), rewritten)
    }

    fn metadata(&mut self, metadata: &Map<String, Value>, is_collection: bool) -> Value {
        let mut rewritten = Map::new();
        for (key, field) in metadata {
            let field = match (key.as_str(), field) {
                ("resourceVersion", Value::String(version)) if is_collection => {
                    json!(self.version(version, Holder::Collection))
                }
                ("resourceVersion", Value::String(version)) => json!(self.version(version, Holder::Object)),
                ("managedFields", Value::Array(managers)) => self.managers(managers),
                _ => self.rewrite(field),
            };
            rewritten.insert(self.text(key), field);
        }
        Value::Object(rewritten)
    }

    fn managers(&mut self, managers: &[Value]) -> Value {
        in_one_order(managers.iter().map(|manager| self.rewrite(manager)).collect())
    }

    /// A version by its rank among those of objects. One that no object has stays, unless it belongs to a list.
    fn version(&self, version: &str, holder: Holder) -> String {
        let Ok(number) = version.parse::<u64>() else { return version.to_owned() };
        let of_list = match holder {
            Holder::Collection => true,
            Holder::Object => self.in_request && self.known.list_versions.contains(version),
        };
        match self.versions.binary_search(&number) {
            _ if of_list && number > 0 => self.floor(number),
            Ok(rank) => format!("rv-{}", rank + 1),
            Err(_) => version.to_owned(),
        }
    }

    /// How many objects are not newer.
    fn floor(&self, number: u64) -> String {
        format!("rv-{}+", self.versions.partition_point(|version| *version <= number))
    }

    fn port(&self, port: &Value) -> Value {
        let found = self.learnt.ports.iter().position(|known| Some(*known) == port.as_u64());
        found.map_or_else(|| port.clone(), |index| json!(FIRST_PORT + index))
    }

    fn cell(&mut self, cell: &Value) -> Value {
        match cell {
            Value::String(text) if is_age(text) => json!("<age>"),
            _ => self.rewrite(cell),
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = replace_word(text, self.known.authority, "<server>");
        for (index, (name, base)) in self.learnt.names.iter().enumerate() {
            text = replace_word(&text, name, &format!("{base}generated-{}", index + 1));
        }
        for (index, address) in self.learnt.addresses.iter().enumerate() {
            text = replace_word(&text, address, &format!("cluster-ip-{}", index + 1));
        }
        if text.contains("nodePort: {") {
            for (index, port) in self.learnt.ports.iter().enumerate() {
                text = replace_word(&text, &port.to_string(), &(FIRST_PORT + index).to_string());
            }
        }
        for (index, token) in self.learnt.continues.iter().enumerate() {
            text = text.replace(token.as_str(), &format!("continue-{}", index + 1));
        }
        text = replace_uids(&text, &mut self.uids);
        text = replace_tokens(&text, &mut self.tokens);
        text = replace_certificates(&text);
        text = replace_times(&text, self.known.script);
        self.versions_in(&text)
    }

    /// Versions in queries, and in messages that say that they speak of one.
    fn versions_in(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for before in
            ["resourceVersion=", "resourceVersion: \"", "\"resourceVersion\":\"", "\\\"resourceVersion\\\":\\\""]
        {
            text = digits_after(&text, before, |version| self.version(version, Holder::Object));
        }
        if text.to_lowercase().contains("resource version") || text.contains("ResourceVersion") {
            text = digits_after(&text, "precondition (", |version| self.version(version, Holder::Object));
            text = digits_after(&text, "in record (", |version| self.version(version, Holder::Object));
            for before in ["ResourceVersion in precondition: ", "ResourceVersion in object meta: "] {
                text = digits_after(&text, before, |version| self.version(version, Holder::Object));
            }
            // How far the server is: what else was written meanwhile is not known.
            for before in [" (", "current: "] {
                text = digits_after(&text, before, |version| self.reached(version));
            }
        }
        text
    }

    fn reached(&self, version: &str) -> String {
        match version.parse::<u64>() {
            Ok(number) if self.versions.first().is_some_and(|first| number >= *first) => self.floor(number),
            Ok(_) | Err(_) => version.to_owned(),
        }
    }
}

/// The server orders managers by the second of their last change, which differs from run to run.
fn in_one_order(mut managers: Vec<Value>) -> Value {
    let part = |manager: &Value, key: &str| manager.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    managers.sort_by_key(|manager| ["operation", "manager", "apiVersion", "subresource"].map(|key| part(manager, key)));
    Value::Array(managers)
}

/// Lists that the server makes from maps come in any order.
fn sorted(mut elements: Vec<Value>) -> Value {
    elements.sort_by_cached_key(Value::to_string);
    Value::Array(elements)
}

/// A message that says everything that is wrong, in the order of its sorted causes.
fn with_sorted_causes(message: &str, status: &Value) -> String {
    let causes = status.pointer("/details/causes").and_then(Value::as_array);
    let said = |cause: &Value| {
        let part = |key: &str| cause.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        format!("{}: {}", part("field"), part("message"))
    };
    let mut parts: Vec<String> = causes.into_iter().flatten().map(said).collect();
    let whole = format!("[{}]", parts.join(", "));
    parts.sort();
    with_sorted_lines(&message.replace(&whole, &format!("[{}]", parts.join(", "))))
}

/// The same for what is wrong with an applied object, which is said in a line each, in the order of a map.
fn with_sorted_lines(message: &str) -> String {
    let Some((before, lines)) = message.split_once("errors:\n") else { return message.to_owned() };
    let mut lines: Vec<&str> = lines.split('\n').collect();
    lines.sort_unstable();
    format!("{before}errors:\n{}", lines.join("\n"))
}
