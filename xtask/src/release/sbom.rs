//! The software bill of materials: every crate in the shipped binaries, in the form of CycloneDX.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::binaries::version;
use crate::process::Run;

/// Packages whose binaries are shipped.
const SHIPPED: [&str; 4] = ["sindri-broker", "sindri-agent", "sindri-cli", "sindri-apiserver"];

/// Makes the document for a target triple.
pub fn make_sbom(triple: &str) -> Result<Value, String> {
    let run = Run::cargo().args(["metadata", "--format-version=1", "--locked", "--filter-platform", triple]);
    let (code, output) = run.captured()?;
    // Cargo may print other lines before the document.
    let document = output.lines().find(|line| line.starts_with('{'));
    match document.map(serde_json::from_str) {
        Some(Ok(metadata)) if code == 0 => describe(&metadata),
        _ => Err(format!("cargo metadata: {}", output.lines().next().unwrap_or("no output"))),
    }
}

/// Makes the document from the metadata of cargo.
fn describe(metadata: &Value) -> Result<Value, String> {
    let packages = by_id(&metadata["packages"]);
    let nodes = by_id(&metadata["resolve"]["nodes"]);
    let mut known = BTreeSet::new();
    let is_shipped = |package: &&Value| package["name"].as_str().is_some_and(|name| SHIPPED.contains(&name));
    let mut open: Vec<&str> = packages.values().copied().filter(|package| is_shipped(package)).map(id).collect();
    if open.len() != SHIPPED.len() {
        return Err(format!("cargo metadata has not all of {}", SHIPPED.join(", ")));
    }
    while let Some(next) = open.pop() {
        if known.insert(next) {
            open.extend(nodes.get(next).into_iter().flat_map(|node| list_dependencies(node)));
        }
    }
    let components: Vec<Value> =
        known.iter().filter_map(|id| packages.get(id)).map(|package| describe_package(package)).collect();
    let dependencies: Vec<Value> = known
        .iter()
        .filter_map(|id| nodes.get(id))
        .map(|node| json!({"ref": id(node), "dependsOn": list_dependencies(node).collect::<Vec<_>>()}))
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "sindri", "version": version()}},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn by_id(list: &Value) -> BTreeMap<&str, &Value> {
    list.as_array().into_iter().flatten().map(|entry| (id(entry), entry)).collect()
}

fn id(entry: &Value) -> &str {
    entry["id"].as_str().unwrap_or_default()
}

/// Lists what becomes part of a binary: no build scripts, no crates of tests.
fn list_dependencies(node: &Value) -> impl Iterator<Item = &str> {
    let is_normal = |dependency: &&Value| {
        let kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
        kinds.into_iter().any(|kind| kind["kind"].is_null())
    };
    let dependencies = node["deps"].as_array().into_iter().flatten();
    dependencies.filter(is_normal).filter_map(|dependency| dependency["pkg"].as_str())
}

fn describe_package(package: &Value) -> Value {
    let text = |field: &str| package[field].as_str().unwrap_or_default();
    let mut component = json!({
        "type": "library",
        "bom-ref": id(package),
        "name": text("name"),
        "version": text("version"),
        "purl": format!("pkg:cargo/{}@{}", text("name"), text("version")),
        "licenses": [{"expression": text("license").replace('/', " OR ")}],
    });
    if text("license").is_empty() {
        component["licenses"] = json!([]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_listed_and_what_only_builds_or_tests_is_not() {
        let sbom = make_sbom("x86_64-unknown-linux-gnu").unwrap();
        let components = sbom["components"].as_array().unwrap();
        let names: BTreeSet<&str> = components.iter().filter_map(|component| component["name"].as_str()).collect();
        for linked in ["sindri-model", "tokio", "rustls", "libsqlite3-sys", "kube-client"] {
            assert!(names.contains(linked), "{linked} is missing");
        }
        for other in ["proptest", "turmoil", "cc", "xtask", "testcontainers"] {
            assert!(!names.contains(other), "{other} is not linked");
        }
        assert!(components.iter().all(|component| component["licenses"][0]["expression"].is_string()));
    }
}
