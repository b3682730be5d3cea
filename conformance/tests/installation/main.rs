//! Both charts on a real Kubernetes, installed, upgraded, rolled back and uninstalled by a real helm, with the real programs.
//!
//! `cargo xtask test` builds the control plane and helm, and then runs this.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::Value;
use sindri_client::Client;
use sindri_cluster::{Home, LocalProvider, Options, Provider};
use sindri_conformance::binaries::Binaries;
use sindri_conformance::installation::{AGENT, BROKER, Installation, Registration, path, text};
use sindri_conformance::runtime::InterruptibleRuntime;
use sindri_conformance::workspace::Workspace;
use sindri_model::StackId;
use sindri_model::wire::{AssignmentState, NewStack};

/// Variable with the path of helm.
const HELM: &str = "SINDRI_TEST_HELM";
const BUNDLE: &str = include_str!("workloads.yaml");
const KEYS: &str = "sindri-broker-keys";
/// Paths of the objects of the bundle, after their namespace.
const OBJECTS: [&str; 10] = [
    "/api/v1/namespaces/shop/configmaps/settings",
    "/api/v1/namespaces/shop/secrets/password",
    "/api/v1/namespaces/shop/serviceaccounts/shop",
    "/api/v1/namespaces/shop/services/web",
    "/apis/apps/v1/namespaces/shop/deployments/web",
    "/apis/apps/v1/namespaces/shop/statefulsets/store",
    "/apis/apps/v1/namespaces/shop/daemonsets/collector",
    "/apis/apps/v1/namespaces/shop/replicasets/copies",
    "/apis/batch/v1/namespaces/shop/jobs/migrate",
    "/apis/batch/v1/namespaces/shop/cronjobs/clean",
];
/// Flags with which the agent polls every second.
const QUICK: [&str; 2] = ["--set", "settings.polling_interval=1"];
/// A change of the pods.
const CHANGED: [&str; 2] = ["--set", "podLabels.changed=yes"];

fn start() -> Installation {
    let helm = PathBuf::from(std::env::var_os(HELM).expect("cargo xtask test --part installation sets it"));
    let directory = Path::new(env!("CARGO_BIN_EXE_sindri-conformance")).parent().unwrap();
    let runtime = Rc::new(InterruptibleRuntime::new().unwrap());
    let workspace = Workspace::new(Binaries::find(directory).unwrap(), runtime).unwrap();
    let cluster = LocalProvider::new(Home::from_env()).start(&Options::default()).unwrap();
    Installation::new(workspace, cluster, &helm).unwrap()
}

#[test]
#[ignore = "needs the control plane and helm: cargo xtask test --part installation"]
fn the_charts_are_installed_upgraded_rolled_back_and_uninstalled_and_their_agent_deploys_every_workload() {
    let mut installation = start();
    installation.install(BROKER, &[]).unwrap();
    check_keys(&installation);
    let registration = installation.register_agent().unwrap();
    installation.install(AGENT, &QUICK).unwrap();
    assert_eq!(installation.running_pods(), 3, "a broker, and two replicas of the agent");

    let stack = submit(&installation, &registration);
    wait_until_ready(&mut installation, &registration, stack);
    let before = read_objects(&installation);
    assert!(before.iter().all(Option::is_some), "{before:?}");

    check_changes(&mut installation, &registration, stack);
    assert_eq!(read_ids(&read_objects(&installation)), read_ids(&before), "objects were replaced");

    installation
        .call_broker(&registration.administrator_key, async |client: &Client| client.delete_stack(stack).await)
        .unwrap();
    installation
        .wait_for("the stack to be removed", |installation| {
            let is_gone = installation.api().get("/api/v1/namespaces/shop")?.is_none();
            Ok((is_gone && find_state(installation, &registration, stack)?.is_none()).then_some(()))
        })
        .unwrap();
    assert!(read_objects(&installation).iter().all(Option::is_none));

    let releases = [BROKER, AGENT].map(|release| installation.run_helm(&["get", "all", release]).unwrap());
    check_uninstall(&mut installation);
    check_no_key_is_printed(&installation, &registration, &releases);
}

/// Checks the keys that the Job has created with its own ServiceAccount, which is gone with its permissions.
fn check_keys(installation: &Installation) {
    let administrator = installation.read_secret(KEYS, "admin-key").unwrap();
    let encryption = installation.read_secret(KEYS, "encryption-key").unwrap();
    assert!(administrator.starts_with("brokkr_BR") && administrator.trim().len() > 50);
    assert!(encryption.len() == 64 && encryption.chars().all(|digit| digit.is_ascii_hexdigit()));
    for (group, resource) in [
        ("/apis/batch/v1", "jobs"),
        ("/api/v1", "serviceaccounts"),
        ("/apis/rbac.authorization.k8s.io/v1", "roles"),
        ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    ] {
        let names = list_names(installation, group, resource);
        assert!(!names.contains(&KEYS.to_owned()), "{resource}: {names:?}");
    }
}

fn submit(installation: &Installation, registration: &Registration) -> StackId {
    let (agent, generator_id) = (registration.agent, registration.generator);
    let submitted = installation.call_broker(&registration.administrator_key, async |client: &Client| {
        let stack = NewStack { name: "shop".to_owned(), description: None, generator_id };
        let stack = client.create_stack(&stack).await?.id;
        client.add_target(agent, stack).await?;
        client.submit_revision(stack, BUNDLE).await?;
        Ok(stack)
    });
    submitted.unwrap()
}

/// Returns the state of the stack on the cluster of the agent.
fn find_state(
    installation: &Installation,
    registration: &Registration,
    stack: StackId,
) -> Result<Option<AssignmentState>, String> {
    let key = &registration.administrator_key;
    let overview = installation.call_broker(key, async |client: &Client| client.get_overview(None).await)?;
    let stack = overview.stacks.iter().find(|known| known.id == stack);
    Ok(stack.and_then(|stack| stack.assignments.first()).map(|assignment| assignment.state))
}

fn wait_until_ready(installation: &mut Installation, registration: &Registration, stack: StackId) {
    let check = |installation: &Installation| {
        let state = find_state(installation, registration, stack)?;
        Ok((state == Some(AssignmentState::Ready)).then_some(()))
    };
    installation.wait_for("the stack to be ready", check).unwrap();
}

/// Upgrades and rolls back both charts. Pods are replaced each time; keys and stacks stay.
fn check_changes(installation: &mut Installation, registration: &Registration, stack: StackId) {
    let keys = read_object(installation, &path(&format!("secrets/{KEYS}")));
    let changed = |installation: &Installation| -> Vec<bool> {
        let pods = installation.list("/api/v1", "pods").unwrap();
        let ready = pods.iter().filter(|pod| pod["status"]["phase"] == "Running");
        ready.map(|pod| pod["metadata"]["labels"]["changed"] == "yes").collect()
    };
    installation.upgrade(BROKER, &CHANGED).unwrap();
    installation.upgrade(AGENT, &[QUICK, CHANGED].concat()).unwrap();
    wait_for_pods(installation);
    assert_eq!(changed(installation), [true; 3]);
    wait_until_ready(installation, registration, stack);
    for release in [AGENT, BROKER] {
        installation.run_helm(&["rollback", "--wait", release, "1"]).unwrap();
    }
    wait_for_pods(installation);
    assert_eq!(changed(installation), [false; 3]);
    assert_eq!(
        read_object(installation, &path(&format!("secrets/{KEYS}"))),
        keys,
        "the Secret with the keys was changed"
    );

    // The agents that run now have the token and the key of their pods, too.
    let bundle = BUNDLE.replace("colour: \"1\"", "colour: \"2\"");
    let submitted = installation.call_broker(&registration.administrator_key, async |client: &Client| {
        client.submit_revision(stack, &bundle).await
    });
    submitted.unwrap();
    let check = |installation: &Installation| {
        let settings = read_object(installation, OBJECTS[0]);
        Ok(settings.filter(|settings| settings["data"]["colour"] == "2"))
    };
    installation.wait_for("the second revision", check).unwrap();
    wait_until_ready(installation, registration, stack);
}

/// Waits until only the pods that are wanted run.
fn wait_for_pods(installation: &mut Installation) {
    let count = |installation: &Installation| Ok((installation.running_pods() == 3).then_some(()));
    installation.wait_for("the pods to be replaced", count).unwrap();
}

/// Uninstalls both charts. The keys, the volume and the agent's own objects stay, as docs/installing.md says.
fn check_uninstall(installation: &mut Installation) {
    for release in [AGENT, BROKER] {
        installation.run_helm(&["uninstall", "--wait", release]).unwrap();
    }
    let ended = |installation: &Installation| Ok((installation.running_pods() == 0).then_some(()));
    installation.wait_for("the processes to end", ended).unwrap();
    for (group, resource) in [
        ("/apis/apps/v1", "deployments"),
        ("/apis/apps/v1", "statefulsets"),
        ("/apis/batch/v1", "jobs"),
        ("/apis/policy/v1", "poddisruptionbudgets"),
        ("/apis/rbac.authorization.k8s.io/v1", "roles"),
        ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
        ("/api/v1", "services"),
    ] {
        assert_eq!(list_names(installation, group, resource), Vec::<String>::new(), "{resource}");
    }
    assert_eq!(list_names(installation, "/api/v1", "serviceaccounts"), ["default"]);
    for kind in ["clusterroles", "clusterrolebindings"] {
        for name in ["sindri-agent-deploys", "sindri-agent-looks"] {
            let found = read_object(installation, &format!("/apis/rbac.authorization.k8s.io/v1/{kind}/{name}"));
            assert!(found.is_none(), "{kind} {name}");
        }
    }
    assert_eq!(list_names(installation, "/api/v1", "persistentvolumeclaims"), ["data-sindri-broker-0"]);
    assert!(read_object(installation, &path(&format!("secrets/{KEYS}"))).is_some());
}

/// Checks that neither helm nor a process has printed a key or a token, and that the releases have none.
fn check_no_key_is_printed(installation: &Installation, registration: &Registration, releases: &[String]) {
    let encryption = installation.read_secret(KEYS, "encryption-key").unwrap();
    let secret_part = |key: &str| key.rsplit('_').next().unwrap().to_owned();
    // Every token of a ServiceAccount begins with the same text: a JSON object in Base64.
    let token = "eyJhbGciOi".to_owned();
    let secrets =
        [secret_part(&registration.administrator_key), secret_part(&registration.agent_key), encryption, token];
    let output = installation.read_output();
    // The script of the Job has run twice, and has printed what it did.
    assert!(output.iter().any(|text| text.contains(&format!("secret/{KEYS} created"))));
    assert!(output.iter().any(|text| text.contains(&format!("the Secret {KEYS} exists and is not changed"))));
    for printed in output.iter().chain(releases) {
        let found = secrets.iter().position(|secret| printed.contains(secret));
        assert_eq!(found, None, "a key is printed");
    }
}

fn read_object(installation: &Installation, path: &str) -> Option<Value> {
    installation.api().get(path).unwrap()
}

fn read_objects(installation: &Installation) -> Vec<Option<Value>> {
    OBJECTS.iter().map(|path| read_object(installation, path)).collect()
}

fn read_ids(objects: &[Option<Value>]) -> Vec<String> {
    let id = |object: &Value| text(&object["metadata"]["uid"]).to_owned();
    objects.iter().map(|object| object.as_ref().map(id).unwrap_or_default()).collect()
}

fn list_names(installation: &Installation, group: &str, resource: &str) -> Vec<String> {
    let listed = installation.list(group, resource).unwrap();
    listed.iter().map(|object| text(&object["metadata"]["name"]).to_owned()).collect()
}
