//! Some exchanges, recorded twice on new clusters.

use sindri_cluster::{Home, LocalProvider, Stop, Version};
use sindri_record::compare::differences;
use sindri_record::files::{self, Files};
use sindri_record::library::read_scripts;
use sindri_record::session::Session;

use crate::root;

/// Exchanges with all types of volatile values: times, names, addresses, tokens, streams, CRDs, controllers.
const EXCHANGES: [&str; 14] = [
    "access",
    "apply-conflicts",
    "create-generate-name",
    "defaults",
    "definitions-apply",
    "definitions-validation",
    "delete-policies",
    "garbage",
    "list-limit-continue",
    "namespaces-alone",
    "server",
    "services",
    "tables",
    "watch",
];

fn record() -> Files {
    let mut chosen = read_scripts(root()).unwrap();
    chosen.retain(|script| EXCHANGES.contains(&script.name.as_str()));
    assert_eq!(chosen.len(), EXCHANGES.len(), "a script is missing");
    let (stop, provider) = (Stop::default(), LocalProvider::new(Home::from_env()));
    let session = Session {
        provider: &provider,
        version: Version::default(),
        documents: true,
        scripts: &chosen,
        stop: &stop,
        report: |_| (),
    };
    session.record().unwrap()
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn recording_twice_gives_the_stored_files() {
    let (first, second) = (record(), record());
    assert_eq!(differences(&first, &second), [], "first and second recording");
    let mut stored = files::read(&files::directory(root(), &Version::default().to_string())).unwrap();
    stored.retain(|name, _| !name.starts_with("exchanges/") || first.contains_key(name));
    assert_eq!(differences(&stored, &first), [], "stored and new recording");
}
