//! The agent's own mistakes of configuration: exit code 2 and one line that says what is wrong.

use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use sindri_cluster::{Options, Provider};
use sindri_conformance::binaries::Binaries;
use sindri_conformance::site::Site;
use sindri_conformance::waiter::Waiter;

use crate::support::{COMMAND, Place, text};

/// The last line that an agent prints before it ends with 2.
fn refused(site: &Site, broker: &str, key: &str, kubeconfig: &Path) -> String {
    let output = Command::new(&site.binaries().agent)
        .args(["--name", "east", "--cluster", "east", "--broker", broker, "--kubeconfig"])
        .arg(kubeconfig)
        .env("SINDRI__AGENT__PAK", key)
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    said.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn a_wrong_key_an_unknown_agent_and_a_missing_kubeconfig_are_named() {
    drop(Place::new());
    let binaries = Binaries::find(Path::new(COMMAND).parent().unwrap()).unwrap();
    let site = Site::new(binaries, Rc::new(Waiter::new().unwrap())).unwrap();
    let broker = site.start_broker().unwrap();
    let cluster = site.simulated().start(&Options::default()).unwrap();

    let words = refused(&site, &broker.url, "brokkr_BRwrong1_nothing", &cluster.access().kubeconfig);
    assert!(words.contains("cannot find agent east of cluster east: the broker does not accept the key"), "{words}");

    let words = refused(&site, &broker.url, &broker.key, &cluster.access().kubeconfig);
    assert!(words.contains("cannot find agent east of cluster east: the broker answered 404"), "{words}");

    let words = refused(&site, &broker.url, &broker.key, &site.path().join("none"));
    assert!(words.contains("none: "), "{words}");
    assert!(words.contains("No such file"), "{words}");
}
