//! The output of `demo`, with kubectl and without.

use std::path::Path;

use crate::support::{TestRun, text};

/// Expected parts of the output, in this order.
const EXPECTED: &[&str] = &[
    "To try it yourself, in another terminal:",
    "$ sindri agent create east --cluster east\n",
    "$ sindri stack create shop\n",
    "$ sindri apply shop --file ./fixtures/bundles/shop-v1.yaml\n  stack shop is at revision 1, sequence ",
    " with 5 objects\n",
    "$ sindri status\n  STACK  REVISION  east\n  shop   1         Ready\n",
    "settings",
    "{\"data\":{\"colour\":\"pink\"}}",
    "The agent restored the declared value after ",
    "$ sindri delete shop\n",
    " all its objects are deleted, and the broker has the report:",
];

fn assert_shows_all_steps(printed: &str) {
    let mut rest = printed;
    for part in EXPECTED {
        let (_, after) = rest.split_once(part).unwrap_or_else(|| panic!("{part:?} is missing in:\n{printed}"));
        rest = after;
    }
    assert!(rest.contains("All processes have ended, and "), "{printed}");
    assert!(printed.contains("brokkr_…") && !printed.contains("brokkr_BR"), "a key was printed:\n{printed}");
}

#[test]
fn the_demonstration_shows_a_stack_from_its_creation_to_its_deletion() {
    let run = TestRun::new();
    let output = run.run(&["demo", "--seconds", "0"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    assert_shows_all_steps(&text(&output.stdout));
    run.assert_clean();
}

#[test]
fn without_kubectl_the_demonstration_uses_the_api() {
    let run = TestRun::new();
    // Only the tools that the program needs.
    let tools = tempfile::tempdir().unwrap();
    for name in ["setsid", "rm", "sleep"] {
        std::os::unix::fs::symlink(Path::new("/usr/bin").join(name), tools.path().join(name)).unwrap();
    }
    let output = run.command(&["demo", "--seconds", "0"]).env("PATH", tools.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    let printed = text(&output.stdout);
    assert_shows_all_steps(&printed);
    assert!(printed.contains("\nPATCH /api/v1/namespaces/shop/configmaps/settings "), "{printed}");
    assert!(!printed.contains("$ kubectl"), "{printed}");
    run.assert_clean();
}
