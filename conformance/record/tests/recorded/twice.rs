//! A part of everything, recorded twice on fresh clusters.

use sindri_cluster::{Home, LocalProvider, Stop, Version};
use sindri_record::compare::differences;
use sindri_record::files::{self, Files};
use sindri_record::library::scripts;
use sindri_record::session::Session;

use crate::root;

/// One exchange of each kind that could differ: times, names, addresses, tokens, streams, definitions, controllers.
const PART: [&str; 14] = [
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
    let mut part = scripts(root()).unwrap();
    part.retain(|script| PART.contains(&script.name.as_str()));
    assert_eq!(part.len(), PART.len(), "a script of the part is gone");
    let (stop, provider) = (Stop::default(), LocalProvider::new(Home::from_env()));
    let session = Session {
        provider: &provider,
        version: Version::default(),
        documents: true,
        scripts: &part,
        stop: &stop,
        report: |_| (),
    };
    session.record().unwrap()
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn recording_twice_gives_the_files_that_are_kept() {
    let (first, second) = (record(), record());
    assert_eq!(differences(&first, &second), [], "the first time and the second");
    let mut kept = files::read(&files::directory(root(), &Version::default().to_string())).unwrap();
    kept.retain(|name, _| !name.starts_with("exchanges/") || first.contains_key(name));
    assert_eq!(differences(&kept, &first), [], "what is kept and what was found");
}
