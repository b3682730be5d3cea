//! `demo`: what it shows, with kubectl and without.

use std::path::Path;

use crate::support::{Place, text};

/// What a reader sees, in this order.
const STORY: &[&str] = &[
    "To play along, in another terminal:",
    "$ sindri agent create east --cluster east\n",
    "$ sindri stack create shop\n",
    "$ sindri apply shop --file ./fixtures/bundles/shop-v1.yaml\n  stack shop is at sequence ",
    " with 5 objects\n",
    "$ sindri status\n  STACK  SEQUENCE  AGENT  STATUS\n  shop ",
    " east   applied\n",
    "settings",
    "{\"data\":{\"colour\":\"pink\"}}",
    "the agent has restored what was declared:",
    "$ sindri delete shop\n",
    "nothing of it is left, and the broker knows it:",
];

fn assert_tells_the_story(said: &str) {
    let mut rest = said;
    for words in STORY {
        let (_, after) = rest.split_once(words).unwrap_or_else(|| panic!("{words:?} is missing in:\n{said}"));
        rest = after;
    }
    assert!(rest.contains("Everything is ended, and "), "{said}");
    assert!(said.contains("brokkr_…") && !said.contains("brokkr_BR"), "a key was shown:\n{said}");
}

#[test]
fn the_demonstration_shows_a_stack_from_its_declaration_to_its_end() {
    let place = Place::new();
    let output = place.run(&["demo", "--seconds", "0"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    assert_tells_the_story(&text(&output.stdout));
    place.assert_left_clean();
}

#[test]
fn without_kubectl_it_shows_the_same_over_the_api() {
    let place = Place::new();
    // A machine with a shell and little else.
    let tools = tempfile::tempdir().unwrap();
    for name in ["setsid", "rm", "sleep"] {
        std::os::unix::fs::symlink(Path::new("/usr/bin").join(name), tools.path().join(name)).unwrap();
    }
    let output = place.command(&["demo", "--seconds", "0"]).env("PATH", tools.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    let said = text(&output.stdout);
    assert_tells_the_story(&said);
    assert!(said.contains("\nPATCH /api/v1/namespaces/shop/configmaps/settings "), "{said}");
    assert!(!said.contains("$ kubectl"), "{said}");
    place.assert_left_clean();
}
