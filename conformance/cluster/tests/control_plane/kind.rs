//! Provider `kind`, with scripts instead of `kind` and `docker` that record their arguments.

use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use crate::support::{TestHome, text};

struct FakeTools {
    home: TestHome,
}

impl FakeTools {
    fn new() -> Self {
        let home = TestHome::without_cache();
        std::fs::create_dir(home.path().join("cache/tools")).unwrap();
        Self { home }
    }

    /// Writes a program that records its arguments and runs the script.
    fn program(&self, name: &str, script: &str) {
        let path = self.home.path().join("cache/tools").join(name);
        let calls = self.home.path().join("cache/calls");
        let text = format!("#!/bin/sh\necho \"{name} $*\" >>{}\n{script}\n", calls.display());
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let tools = self.home.path().join("cache/tools");
        // The shell and its tools, but neither docker nor kind of this machine.
        for name in ["sh", "setsid", "sleep", "rm", "cat"] {
            let link = tools.join(name);
            if !link.exists() {
                std::os::unix::fs::symlink(format!("/usr/bin/{name}"), link).unwrap();
            }
        }
        self.home.command(arguments).env("PATH", tools).output().unwrap()
    }

    fn calls(&self) -> String {
        std::fs::read_to_string(self.home.path().join("cache/calls")).unwrap_or_default()
    }

    fn assert_unavailable(&self, message: &str) {
        let output = self.run(&["up", "--cluster", "kind"]);
        let output_text = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{output_text}");
        assert!(
            output_text.contains("not run: kind cannot run here: ") && output_text.contains(message),
            "{output_text}"
        );
        self.home.assert_clean();
    }
}

const NETWORK_ABSENT: &str = r#"[ "$2" = inspect ] && exit 1; exit 0"#;

#[test]
fn missing_requirements_are_named_and_nothing_is_left_behind() {
    let fakes = FakeTools::new();
    fakes.assert_unavailable("Docker is missing or does not run; install it and start it");
    fakes.program("docker", NETWORK_ABSENT);
    fakes.assert_unavailable("kind is missing; get it from https://kind.sigs.k8s.io/");
    fakes.program(
        "kind",
        r#"[ "$1" = create ] && { echo "unable to apply caps: operation not permitted"; exit 1; }; exit 0"#,
    );
    fakes.assert_unavailable("this Docker runs no privileged containers; use --cluster container, or another machine");
    let calls = fakes.calls();
    assert!(calls.contains("kind delete cluster --name kind-1 "), "{calls}");
    assert!(calls.contains("docker network rm kind"), "{calls}");
}

#[test]
fn a_kind_cluster_is_created_from_the_configuration_and_deleted_at_the_end() {
    let fakes = FakeTools::new();
    // The network existed before, so it is not deleted.
    fakes.program("docker", "exit 0");
    let create = r#"[ "$1" = create ] || exit 0
printf 'clusters:\n- cluster:\n    server: https://127.0.0.1:6443\n' >"$6""#;
    fakes.program("kind", create);
    let output = fakes.run(&["up", "--cluster", "kind"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("(kind) at https://127.0.0.1:6443"), "{}", text(&output.stdout));
    assert!(!fakes.calls().contains("kind delete"));
    assert_eq!(text(&fakes.run(&["down"]).stdout), "kind-1 is ended\n");
    let calls = fakes.calls();
    assert!(
        calls.contains("fixtures/kind/cluster.yaml") && calls.contains("kind delete cluster --name kind-1 "),
        "{calls}"
    );
    assert!(!calls.contains("docker network rm"), "{calls}");
    fakes.home.assert_clean();
}
