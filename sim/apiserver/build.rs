//! Makes the data that the server is built on from what was recorded of a real one: its types without their prose, and
//! its discovery documents.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};

/// Where the record is, from this crate.
const RECORD: &str = "../../fixtures/kubernetes/1.35";
/// What of a schema the server uses.
const USED: [&str; 18] = [
    "additionalProperties",
    "default",
    "enum",
    "format",
    "items",
    "oneOf",
    "properties",
    "required",
    "type",
    "x-kubernetes-group-version-kind",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-unions",
];
const REFERENCE: &str = "#/components/schemas/";

fn main() {
    println!("cargo::rerun-if-changed={RECORD}/openapi");
    println!("cargo::rerun-if-changed={RECORD}/discovery");
    println!("cargo::rerun-if-changed={RECORD}/version.json");
    println!("cargo::rerun-if-changed={RECORD}/exchanges/tables.json");
    let record = Path::new(RECORD);
    write("types.json", &Value::Object(types(&record.join("openapi/v3")).into_iter().collect()));
    let document = |name: &str| read(&record.join("discovery").join(name));
    let discovery = json!({
        "core": document("aggregated-api.json"), "groups": document("aggregated-apis.json"),
        "classic": document("classic.json"), "version": read(&record.join("version.json")),
    });
    write("discovery.json", &discovery);
    write("columns.json", &columns(record));
    write_text("documents.rs", &documents(&record.join("openapi/v3")));
}

/// A table of the recorded OpenAPI documents, by the names of their files, as they are.
fn documents(directory: &Path) -> String {
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(directory).expect("recorded schemas") {
        let file = entry.expect("readable").file_name().into_string().expect("a plain name");
        if let Some(name) = file.strip_suffix(".json.gz") {
            let path = format!("/{RECORD}/openapi/v3/{file}");
            rows.push(format!("({name:?}, include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {path:?}))),\n"));
        }
    }
    rows.sort();
    format!("static DOCUMENTS: &[(&str, &[u8])] = &[\n{}];\n", rows.concat())
}

/// The columns of tables, by group and resource, from the exchange that is about them.
fn columns(record: &Path) -> Value {
    let exchange = read(&record.join("exchanges/tables.json"));
    let mut columns = Map::new();
    for step in exchange["steps"].as_array().into_iter().flatten() {
        let body = &step["response"]["body"];
        let found = body.get("columnDefinitions").or_else(|| body.get("/columnDefinitions"));
        let path = step["request"]["path"].as_str().unwrap_or_default().split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => continue,
        };
        let plural = match rest {
            ["namespaces", _, plural, ..] => plural,
            [plural, ..] => plural,
            [] => continue,
        };
        if let Some(found) = found.filter(|found| found.is_array()) {
            columns.entry(format!("{group}/{plural}")).or_insert_with(|| found.clone());
        }
    }
    Value::Object(columns)
}

fn types(directory: &Path) -> BTreeMap<String, Value> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(directory).expect("recorded schemas").map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    let mut types = BTreeMap::new();
    for file in files {
        let document = read(&file);
        let schemas = document.pointer("/components/schemas").and_then(Value::as_object).cloned().unwrap_or_default();
        types.extend(schemas.into_iter().map(|(name, schema)| (name, compact(&schema))));
    }
    types
}

/// A schema without its prose, and with its references by name.
fn compact(schema: &Value) -> Value {
    let Value::Object(fields) = schema else { return schema.clone() };
    let mut kept = Map::new();
    let referred = fields.get("$ref").or_else(|| fields.get("allOf")?.get(0)?.get("$ref"));
    if let Some(name) = referred.and_then(Value::as_str).and_then(|name| name.strip_prefix(REFERENCE)) {
        kept.insert("$ref".to_owned(), json!(name));
    }
    for (key, value) in fields.iter().filter(|(key, _)| USED.contains(&key.as_str())) {
        let value = match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                Value::Object(properties.iter().map(|(name, schema)| (name.clone(), compact(schema))).collect())
            }
            ("items" | "additionalProperties", schema) => compact(schema),
            (_, value) => value.clone(),
        };
        kept.insert(key.clone(), value);
    }
    Value::Object(kept)
}

fn read(path: &Path) -> Value {
    let mut text = String::new();
    let mut file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let read = if path.extension().is_some_and(|extension| extension == "gz") {
        GzDecoder::new(file).read_to_string(&mut text)
    } else {
        file.read_to_string(&mut text)
    };
    read.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn write(name: &str, value: &Value) {
    write_text(name, &value.to_string());
}

#[expect(clippy::disallowed_methods, reason = "cargo's own variable says where to write")]
fn write_text(name: &str, text: &str) {
    let directory = PathBuf::from(std::env::var("OUT_DIR").expect("set by cargo"));
    std::fs::write(directory.join(name), text).expect("cargo's directory can be written");
}
