//! kind, with programs of the same names that say what they were asked: what is missing is told, and what was made is
//! deleted.

use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use crate::support::{Place, text};

struct Fakes {
    place: Place,
}

impl Fakes {
    fn new() -> Self {
        let place = Place::without_cache();
        std::fs::create_dir(place.path().join("cache/tools")).unwrap();
        Self { place }
    }

    /// A program that writes its arguments down and does what the script says.
    fn program(&self, name: &str, script: &str) {
        let path = self.place.path().join("cache/tools").join(name);
        let asked = self.place.path().join("cache/asked");
        let text = format!("#!/bin/sh\necho \"{name} $*\" >>{}\n{script}\n", asked.display());
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let tools = self.place.path().join("cache/tools");
        // The shell and its helpers, but neither docker nor kind of this machine.
        for name in ["sh", "setsid", "sleep", "rm", "cat"] {
            let link = tools.join(name);
            if !link.exists() {
                std::os::unix::fs::symlink(format!("/usr/bin/{name}"), link).unwrap();
            }
        }
        self.place.command(arguments).env("PATH", tools).output().unwrap()
    }

    fn asked(&self) -> String {
        std::fs::read_to_string(self.place.path().join("cache/asked")).unwrap_or_default()
    }

    fn not_run(&self, words: &str) {
        let output = self.run(&["up", "--cluster", "kind"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("not run: kind cannot run here: ") && said.contains(words), "{said}");
        self.place.assert_left_clean();
    }
}

const NETWORK_ABSENT: &str = r#"[ "$2" = inspect ] && exit 1; exit 0"#;

#[test]
fn what_kind_needs_and_is_missing_is_named_and_nothing_stays() {
    let fakes = Fakes::new();
    fakes.not_run("Docker is missing or does not run; install it and start it");
    fakes.program("docker", NETWORK_ABSENT);
    fakes.not_run("kind is missing; get it from https://kind.sigs.k8s.io/");
    fakes.program(
        "kind",
        r#"[ "$1" = create ] && { echo "unable to apply caps: operation not permitted"; exit 1; }; exit 0"#,
    );
    fakes.not_run("this Docker runs no privileged containers; use --cluster container, or another machine");
    let asked = fakes.asked();
    assert!(asked.contains("kind delete cluster --name kind-1 "), "{asked}");
    assert!(asked.contains("docker network rm kind"), "{asked}");
}

#[test]
fn a_kind_cluster_is_made_from_the_configuration_and_deleted_at_the_end() {
    let fakes = Fakes::new();
    // The network was there before: it is someone else's.
    fakes.program("docker", "exit 0");
    let create = r#"[ "$1" = create ] || exit 0
printf 'clusters:\n- cluster:\n    server: https://127.0.0.1:6443\n' >"$6""#;
    fakes.program("kind", create);
    let output = fakes.run(&["up", "--cluster", "kind"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("(kind) at https://127.0.0.1:6443"), "{}", text(&output.stdout));
    assert!(!fakes.asked().contains("kind delete"));
    assert_eq!(text(&fakes.run(&["down"]).stdout), "kind-1 is ended\n");
    let asked = fakes.asked();
    assert!(
        asked.contains("fixtures/kind/cluster.yaml") && asked.contains("kind delete cluster --name kind-1 "),
        "{asked}"
    );
    assert!(!asked.contains("docker network rm"), "{asked}");
    fakes.place.assert_left_clean();
}
