//! The stored files, without a server.

use serde_json::Value;
use sindri_cluster::{Version, version};
use sindri_record::files::{self, Files};
use sindri_record::library::read_scripts;
use sindri_record::recording::{VERSION_FILE, exchange_file};

use crate::root;

/// Returns all pinned versions that are recorded, with their files.
fn recorded() -> Vec<(Version, Files)> {
    let read = |version: Version| (version, files::read(&files::directory(root(), &version.to_string())).unwrap());
    version::ALL.into_iter().map(read).filter(|(_, files)| !files.is_empty()).collect()
}

#[test]
fn the_default_version_is_recorded() {
    assert!(recorded().iter().any(|(version, _)| *version == Version::default()));
}

#[test]
fn the_recorded_version_is_the_pinned_one() {
    for (version, files) in recorded() {
        let version_file: Value = serde_json::from_str(&files[VERSION_FILE]).unwrap();
        let advice = format!("record it with `cargo xtask record --cluster local --version {version}`");
        assert_eq!(version_file["gitVersion"], version.release(), "{advice}");
    }
}

#[test]
fn every_script_has_a_recording_and_every_recording_a_script() {
    let expected: Vec<String> =
        read_scripts(root()).unwrap().iter().map(|script| exchange_file(&script.name)).collect();
    for (version, files) in recorded() {
        let found: Vec<String> = files.into_keys().filter(|name| name.starts_with("exchanges/")).collect();
        assert_eq!(found, expected, "record Kubernetes {version} again");
    }
}

#[test]
fn a_recording_has_the_steps_of_its_script() {
    for script in read_scripts(root()).unwrap() {
        let expected: usize = script.steps.iter().map(|step| step.each.len().max(1)).sum();
        for (version, files) in recorded() {
            let record: Value = serde_json::from_str(&files[&exchange_file(&script.name)]).unwrap();
            assert_eq!(record["steps"].as_array().unwrap().len(), expected, "{} of {version}", script.name);
            assert_eq!(record["about"], script.about, "{} of {version}", script.name);
        }
    }
}

#[test]
fn every_listed_openapi_document_is_stored() {
    for (_, files) in recorded() {
        let index: Value = serde_json::from_str(&files["openapi/v3.json"]).unwrap();
        for name in index["paths"].as_object().unwrap().keys() {
            let file = format!("openapi/v3/{}.json.gz", name.replace('/', "-"));
            let document: Value = serde_json::from_str(&files[&file]).unwrap();
            assert_eq!(document["openapi"], "3.0.0", "{file}");
        }
    }
}

#[test]
fn no_recording_contains_a_token_a_certificate_or_a_uid() {
    for (_, files) in recorded() {
        for (name, text) in files.iter().filter(|(name, _)| name.starts_with("exchanges/")) {
            assert!(!text.contains("BEGIN CERTIFICATE") && !text.contains("eyJhbGciOi"), "{name}");
            let record: Value = serde_json::from_str(text).unwrap();
            assert_no_uid(&record, name);
        }
    }
}

fn assert_no_uid(value: &Value, name: &str) {
    match value {
        Value::Array(elements) => elements.iter().for_each(|element| assert_no_uid(element, name)),
        Value::Object(fields) => {
            if let Some(uid) = fields.get("uid").and_then(Value::as_str) {
                assert!(uid.len() < 36, "{name}: {uid}");
            }
            fields.values().for_each(|field| assert_no_uid(field, name));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
