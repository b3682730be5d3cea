//! The crates in the shipped binaries, from the metadata of cargo.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::process::Run;

/// Packages whose binaries are shipped.
const SHIPPED: [&str; 4] = ["sindri-broker", "sindri-agent", "sindri-cli", "sindri-apiserver"];

/// A crate in a shipped binary.
pub struct ShippedCrate {
    /// Its description by cargo.
    pub package: Value,
    /// Identifiers of the crates that it links.
    pub dependencies: Vec<String>,
}

impl ShippedCrate {
    /// Returns a text of the description; empty if it has none.
    pub fn text(&self, field: &str) -> &str {
        self.package[field].as_str().unwrap_or_default()
    }
}

/// Lists the crates for a target triple.
pub fn list_shipped_crates(triple: &str) -> Result<Vec<ShippedCrate>, String> {
    let run = Run::cargo().args(["metadata", "--format-version=1", "--locked", "--filter-platform", triple]);
    let (code, output) = run.captured()?;
    // Cargo may print other lines before the document.
    let document = output.lines().find(|line| line.starts_with('{'));
    match document.map(serde_json::from_str) {
        Some(Ok(metadata)) if code == 0 => find_shipped(&metadata),
        _ => Err(format!("cargo metadata: {}", output.lines().next().unwrap_or("no output"))),
    }
}

fn find_shipped(metadata: &Value) -> Result<Vec<ShippedCrate>, String> {
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
    let describe = |id: &str| {
        let dependencies = nodes.get(id).into_iter().flat_map(|node| list_dependencies(node)).map(str::to_owned);
        Some(ShippedCrate { package: (*packages.get(id)?).clone(), dependencies: dependencies.collect() })
    };
    Ok(known.into_iter().filter_map(describe).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_listed_and_what_only_builds_or_tests_is_not() {
        let crates = list_shipped_crates("x86_64-unknown-linux-gnu").unwrap();
        let names: BTreeSet<&str> = crates.iter().map(|shipped| shipped.text("name")).collect();
        for linked in ["sindri-model", "tokio", "rustls", "libsqlite3-sys", "kube-client"] {
            assert!(names.contains(linked), "{linked} is missing");
        }
        for other in ["proptest", "turmoil", "cc", "xtask", "testcontainers"] {
            assert!(!names.contains(other), "{other} is not linked");
        }
        assert!(crates.iter().all(|shipped| !shipped.text("license").is_empty()));
    }
}
