//! Collects volatile values of an exchange that cannot be recognised by their format: resourceVersions, generated names, addresses,
//! ports and continue tokens.

use std::collections::BTreeSet;

use serde_json::Value;

use super::exchange_data::ExchangeData;
use super::resource_version::{VERSION, is_bookmark, is_collection};

/// Prefix of the volume with the service account token of a pod.
const ACCESS_VOLUME: &str = "kube-api-access-";
const SUFFIX_LENGTH: usize = 5;

/// Collected values. Lists are in the order of appearance.
#[derive(Debug, Default)]
pub struct VolatileValues {
    /// resourceVersions of objects.
    pub versions: BTreeSet<u64>,
    /// Generated names with their `generateName`.
    pub names: Vec<(String, String)>,
    /// All `generateName`s.
    bases: Vec<String>,
    /// IP addresses of Services.
    pub addresses: Vec<String>,
    /// Node ports of Services.
    pub ports: Vec<u64>,
    /// Continue tokens.
    pub continues: Vec<String>,
}

impl VolatileValues {
    /// Collects resourceVersions from the recorded steps, and everything else from complete bodies too.
    pub fn collect(steps: &[Value], data: ExchangeData<'_>) -> Self {
        let mut volatile = Self::default();
        volatile.versions.extend(data.object_versions.iter().filter_map(|version| version.parse::<u64>().ok()));
        for response in
            steps.iter().flat_map(|step| ["response", "events", "reviews"].map(|part| step.get(part))).flatten()
        {
            volatile.read_versions(response, false);
        }
        data.bodies.iter().chain(steps).for_each(|value| volatile.read(value, data.script));
        volatile
    }

    fn read_versions(&mut self, value: &Value, in_bookmark: bool) {
        match value {
            Value::Array(elements) => elements.iter().for_each(|element| self.read_versions(element, false)),
            Value::Object(fields) => {
                if !in_bookmark && !is_collection(value) {
                    let chosen = fields.iter().filter(|(key, _)| key.ends_with(VERSION)).map(|(_, field)| field);
                    let versions = value.pointer(VERSION).into_iter().chain(chosen).filter_map(Value::as_str);
                    self.versions.extend(versions.filter_map(|version| version.parse::<u64>().ok()));
                }
                fields.values().for_each(|field| self.read_versions(field, is_bookmark(value)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn read(&mut self, value: &Value, script: &str) {
        match value {
            Value::Array(elements) => elements.iter().for_each(|element| self.read(element, script)),
            Value::Object(fields) => {
                for (key, field) in fields {
                    self.read_field(key, field, script);
                    self.read(field, script);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn read_field(&mut self, key: &str, field: &Value, script: &str) {
        match (key, field) {
            ("metadata", Value::Object(_)) => self.read_metadata(field),
            ("details", Value::Object(_)) => self.read_details(field),
            ("clusterIP", Value::String(address)) if is_address(address) && !script.contains(address.as_str()) => {
                add_once(&mut self.addresses, address.clone());
            }
            ("name", Value::String(name)) if name.strip_prefix(ACCESS_VOLUME).is_some_and(is_suffix) => {
                add_once(&mut self.names, (name.clone(), ACCESS_VOLUME.to_owned()));
            }
            ("nodePort" | "healthCheckNodePort", Value::Number(port)) if !script.contains(&port.to_string()) => {
                port.as_u64().into_iter().for_each(|port| add_once(&mut self.ports, port));
            }
            _ => {}
        }
    }

    fn read_metadata(&mut self, metadata: &Value) {
        let text = |key: &str| metadata.get(key).and_then(Value::as_str).unwrap_or_default();
        let (base, name) = (text("generateName"), text("name"));
        if !base.is_empty() {
            add_once(&mut self.bases, base.to_owned());
        }
        if !base.is_empty() && name.len() > base.len() && name.starts_with(base) {
            add_once(&mut self.names, (name.to_owned(), base.to_owned()));
        }
        if !text("continue").is_empty() {
            add_once(&mut self.continues, text("continue").to_owned());
        }
    }

    /// Reads the generated name of a rejected object from the error.
    fn read_details(&mut self, details: &Value) {
        let name = details.get("name").and_then(Value::as_str).unwrap_or_default();
        let base = self.bases.iter().find(|base| name.strip_prefix(base.as_str()).is_some_and(is_suffix)).cloned();
        base.into_iter().for_each(|base| add_once(&mut self.names, (name.to_owned(), base)));
    }
}

/// Returns true for five letters and digits, as the server appends them to `generateName`.
fn is_suffix(text: &str) -> bool {
    text.len() == SUFFIX_LENGTH && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

fn is_address(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok()
}

fn add_once<T: PartialEq>(list: &mut Vec<T>, value: T) {
    if !list.contains(&value) {
        list.push(value);
    }
}
