//! Generates the server's data from recordings of a real one: its types without descriptions, its discovery documents and
//! the columns of its tables.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};

/// Directory of the recordings, relative to this crate: a link, through which they are part of its package.
const RECORDINGS: &str = "recorded";
/// Fields of a schema that the server uses.
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
/// Placeholder of times in recordings.
const TIME: &str = "2000-01-01T00:00:00Z";

fn main() {
    println!("cargo::rerun-if-changed={RECORDINGS}/openapi");
    println!("cargo::rerun-if-changed={RECORDINGS}/discovery");
    println!("cargo::rerun-if-changed={RECORDINGS}/version.json");
    println!("cargo::rerun-if-changed={RECORDINGS}/bootstrap.json.gz");
    for exchange in ["tables", "bootstrap", "bootstrap-controllers"] {
        println!("cargo::rerun-if-changed={RECORDINGS}/exchanges/{exchange}.json");
    }
    let recordings = Path::new(RECORDINGS);
    write("types.json", &Value::Object(read_types(&recordings.join("openapi/v3")).into_iter().collect()));
    let document = |name: &str| read(&recordings.join("discovery").join(name));
    let discovery = json!({
        "core": document("aggregated-api.json"), "groups": document("aggregated-apis.json"),
        "classic": document("classic.json"), "version": read(&recordings.join("version.json")),
    });
    write("discovery.json", &discovery);
    write("columns.json", &table_columns(recordings));
    write("bootstrap.json", &Value::Array(initial_objects(recordings)));
    write_text("documents.rs", &document_table(&recordings.join("openapi/v3")));
}

/// Returns the source code of a table of the recorded OpenAPI v3 documents by file name, and of the one of version 2.
fn document_table(directory: &Path) -> String {
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(directory).expect("recorded schemas") {
        let file = entry.expect("readable").file_name().into_string().expect("a plain name");
        if let Some(name) = file.strip_suffix(".json.gz") {
            let path = format!("/{RECORDINGS}/openapi/v3/{file}");
            rows.push(format!("({name:?}, include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {path:?}))),\n"));
        }
    }
    rows.sort();
    let version_2 =
        format!("include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{RECORDINGS}/openapi/v2.json.gz\"))");
    format!("static DOCUMENTS: &[(&str, &[u8])] = &[\n{}];\nstatic DOCUMENT_2: &[u8] = {version_2};\n", rows.concat())
}

/// Returns the objects of a new control plane, as lists: those of the API server, and the service accounts of the controllers.
fn initial_objects(recordings: &Path) -> Vec<Value> {
    let recorded = read(&recordings.join("bootstrap.json.gz"));
    let mut lists: Vec<Value> = recorded.as_object().into_iter().flatten().map(initial_list).collect();
    let exchange = read(&recordings.join("exchanges/bootstrap-controllers.json"));
    let tables = exchange["steps"].as_array().into_iter().flatten().map(|step| &step["response"]["body"]["rows"]);
    let accounts: Vec<Value> = tables
        .flat_map(|rows| rows.as_array().into_iter().flatten())
        .map(
            |row| json!({"metadata": {"name": row["cells"][0], "namespace": "kube-system", "creationTimestamp": TIME}}),
        )
        .collect();
    let key = json!({"group": "", "plural": "serviceaccounts", "apiVersion": "v1", "kind": "ServiceAccount"});
    lists.push(merged(key, json!({ "items": accounts })));
    lists
}

/// Returns a recorded list with the names of its resource.
fn initial_list((path, list): (&String, &Value)) -> Value {
    let api_version = list["apiVersion"].as_str().unwrap_or_default();
    let key = json!({
        "group": api_version.split_once('/').map_or("", |(group, _)| group), "plural": path.rsplit('/').next(),
        "apiVersion": api_version, "kind": list["kind"].as_str().unwrap_or_default().trim_end_matches("List"),
    });
    merged(key, json!({ "items": list["items"] }))
}

fn merged(mut one: Value, other: Value) -> Value {
    if let (Value::Object(fields), Value::Object(more)) = (&mut one, other) {
        fields.extend(more);
    }
    one
}

/// Returns the table columns by group and resource, from the recorded exchanges about tables.
fn table_columns(recordings: &Path) -> Value {
    let exchanges = ["tables", "bootstrap"].map(|name| read(&recordings.join(format!("exchanges/{name}.json"))));
    let mut columns = Map::new();
    for step in exchanges.iter().flat_map(|exchange| exchange["steps"].as_array().into_iter().flatten()) {
        let body = &step["response"]["body"];
        let definitions = body.get("columnDefinitions").or_else(|| body.get("/columnDefinitions"));
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
        if let Some(definitions) = definitions.filter(|definitions| definitions.is_array()) {
            columns.entry(format!("{group}/{plural}")).or_insert_with(|| definitions.clone());
        }
    }
    Value::Object(columns)
}

fn read_types(directory: &Path) -> BTreeMap<String, Value> {
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

/// Removes the unused fields of a schema, and replaces references by type names.
fn compact(schema: &Value) -> Value {
    let Value::Object(fields) = schema else { return schema.clone() };
    let mut kept = Map::new();
    let reference = fields.get("$ref").or_else(|| fields.get("allOf")?.get(0)?.get("$ref"));
    if let Some(name) = reference.and_then(Value::as_str).and_then(|name| name.strip_prefix(REFERENCE)) {
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
