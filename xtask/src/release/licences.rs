//! The licences of what is linked into the shipped binaries: their licences ask for their texts beside a binary.

use std::collections::BTreeMap;
use std::path::Path;

use super::files::fail;
use super::shipped_crates::ShippedCrate;

/// Beginnings of the names of files with a licence, in lower case.
const NAMES: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];
/// Directories of a crate that are not linked.
const NOT_SHIPPED: [&str; 6] = ["tests", "test", "benches", "examples", "fuzz", "target"];
/// Directories inside each other that are searched.
const DEPTH_MAX: usize = 4;
/// Beginning of the document, with the libraries that are no crates.
const INTRODUCTION: &str = "\
The programs of Sindri are licensed under the Apache License 2.0 (the file LICENSE). They contain the libraries below.

They also contain the standard library of Rust (MIT or Apache-2.0) and the GNU C Library, which is linked statically
(LGPL-2.1-or-later): the sources of Sindri and `cargo xtask dist` make the same programs with another version of it.
";

/// Makes the document: each text once, after the crates that have it.
pub fn make_licences(crates: &[ShippedCrate]) -> Result<String, String> {
    let mut crates_by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without_text = Vec::new();
    // A crate without a source was written here.
    for shipped in crates.iter().filter(|shipped| !shipped.text("source").is_empty()) {
        let line = format!("{} {} ({})", shipped.text("name"), shipped.text("version"), shipped.text("license"));
        let texts = read_texts(Path::new(shipped.text("manifest_path")))?;
        if texts.is_empty() {
            without_text.push(line.clone());
        }
        for text in texts {
            crates_by_text.entry(text).or_default().push(line.clone());
        }
    }
    let mut parts: Vec<(Vec<String>, String)> =
        crates_by_text.into_iter().map(|(text, crates)| (crates, text)).collect();
    parts.sort();
    let mut document = INTRODUCTION.to_owned();
    for (crates, text) in parts {
        document.push_str(&format!("\n{}\n{}\n\n{text}\n", "=".repeat(80), crates.join("\n")));
    }
    if !without_text.is_empty() {
        document.push_str(&format!("\n{}\n{}\n\n", "=".repeat(80), without_text.join("\n")));
        document.push_str("These crates name their licence and contain no text of it.\n");
    }
    Ok(document)
}

/// Reads the texts in the directory of a manifest and below, where libraries in C have theirs; each once.
fn read_texts(manifest: &Path) -> Result<Vec<String>, String> {
    let mut texts = Vec::new();
    collect_texts(manifest.parent().unwrap_or(manifest), DEPTH_MAX, &mut texts)?;
    texts.sort();
    texts.dedup();
    Ok(texts)
}

fn collect_texts(directory: &Path, depth: usize, texts: &mut Vec<String>) -> Result<(), String> {
    for entry in std::fs::read_dir(directory).map_err(fail(directory))?.flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().to_lowercase());
        let is_directory = path.is_dir();
        if is_directory && depth > 0 && !NOT_SHIPPED.contains(&name.as_str()) {
            collect_texts(&path, depth - 1, texts)?;
        } else if !is_directory && NAMES.iter().any(|start| name.starts_with(start)) && !name.ends_with(".rs") {
            let text = std::fs::read(&path).map_err(fail(&path))?;
            let text = String::from_utf8_lossy(&text).replace('\r', "");
            texts.push(text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::release::shipped_crates::list_shipped_crates;

    #[test]
    fn every_crate_of_others_is_listed_and_each_text_once() {
        let crates = list_shipped_crates("x86_64-unknown-linux-gnu").unwrap();
        let document = make_licences(&crates).unwrap();
        for shipped in &crates {
            let line = format!("\n{} {} (", shipped.text("name"), shipped.text("version"));
            assert_eq!(document.contains(&line), !shipped.text("source").is_empty(), "{line}");
        }
        // The second one is in the sources in C of a crate.
        for owner in ["Copyright (c) Tokio Contributors", "Daan Leijen"] {
            assert!(document.contains(owner), "{owner} is missing");
        }
        let texts: Vec<&str> =
            document.split(&"=".repeat(80)).filter_map(|part| Some(part.split_once("\n\n")?.1)).collect();
        let distinct: std::collections::BTreeSet<&&str> = texts.iter().collect();
        assert_eq!(distinct.len(), texts.len());
    }

    #[test]
    fn a_crate_without_a_text_is_named() {
        let directory = std::env::temp_dir().join(format!("sindri-licences-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let package = json!({
            "name": "a", "version": "1.0.0", "license": "MIT", "source": "registry",
            "manifest_path": directory.join("Cargo.toml"),
        });
        let crates = [ShippedCrate { package, dependencies: Vec::new() }];
        let without = make_licences(&crates).unwrap();
        std::fs::write(directory.join("LICENSE-MIT"), "Permission is granted\r\n").unwrap();
        let with = make_licences(&crates).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(without.contains("\na 1.0.0 (MIT)\n\nThese crates name their licence"), "{without}");
        assert!(with.ends_with("\na 1.0.0 (MIT)\n\nPermission is granted\n"), "{with}");
    }
}
