//! Read-only commands of an agent, and its shutdown.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use sindri_agent::{list_orphans, preview_passes};
use sindri_client::Client;
use sindri_model::StackId;
use tokio::task::JoinSet;

use crate::support::{BUNDLE, admin, agent_of, broker, client, cluster, declare, in_time, listener, serve};

const INTERVAL: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(10);

/// Broker with a stack for an agent, and a cluster.
pub struct Environment {
    _serving: (JoinSet<()>, JoinSet<std::io::Result<()>>),
    pub broker: SocketAddr,
    pub api: SocketAddr,
    pub admin: Client,
    pub key: String,
    pub stack: StackId,
}

impl Environment {
    pub async fn new() -> Self {
        let ((at_broker, broker_address), (at_cluster, api)) = (listener().await, listener().await);
        let serving = (cluster(at_cluster), serve(&broker().await, at_broker, None));
        let admin = client(broker_address, &admin().reveal());
        let (key, stack) = declare(&admin).await;
        Self { _serving: serving, broker: broker_address, api, admin, key, stack }
    }

    fn agent(&self) -> sindri_agent::Agent {
        agent_of(self.broker, self.api, &self.key, INTERVAL)
    }

    /// Runs the agent until the newest revision is applied, and shuts it down.
    pub async fn apply(&self) {
        let id = self.admin.find_agent("east", "demo").await.unwrap().id;
        let newest = self.admin.get_stack_status(self.stack).await.unwrap().deployment_object_id;
        let applied = async {
            loop {
                let outcomes = self.admin.list_outcomes(id).await.unwrap();
                if outcomes.iter().any(|outcome| Some(outcome.deployment_object_id) == newest) {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        in_time(self.agent().run(applied)).await.unwrap();
    }

    pub async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let config = kube::Config::new(format!("http://{}", self.api).parse().unwrap());
        let client = kube::Client::try_from(config).unwrap();
        let request = http::Request::builder().method(method).uri(path);
        let request =
            request.header("content-type", "application/merge-patch+json").body(body.to_string().into_bytes());
        client.request(request.unwrap()).await.unwrap()
    }

    /// Returns the resourceVersions of all ConfigMaps, which every write changes.
    pub async fn resource_versions(&self) -> Value {
        let list = self.call("GET", "/api/v1/configmaps", Value::Null).await;
        let items = list["items"].as_array().unwrap();
        items.iter().map(|item| item["metadata"]["resourceVersion"].clone()).collect()
    }
}

#[tokio::test]
async fn a_preview_lists_changes_and_writes_nothing() {
    let env = Environment::new().await;
    let before = env.resource_versions().await;
    let preview = preview_passes(&env.agent()).await.unwrap();
    assert!(preview.starts_with("stack web at sequence "), "{preview}");
    assert!(preview.contains("\n+ ConfigMap default/a  (new)\n    "), "{preview}");
    assert!(preview.contains("data: (none) → {\"x\":\"1\"}"), "{preview}");
    assert_eq!(env.resource_versions().await, before);

    env.apply().await;
    let before = env.resource_versions().await;
    let preview = preview_passes(&env.agent()).await.unwrap();
    assert!(preview.ends_with("\n= 1 objects are unchanged\n\n"), "{preview}");
    env.admin
        .submit_revision(env.stack, &BUNDLE.replace("x: '1'", "x: '2'").replace("name: a", "name: b"))
        .await
        .unwrap();
    let preview = preview_passes(&env.agent()).await.unwrap();
    assert!(
        preview.contains("+ ConfigMap default/b  (new)") && preview.contains("\n- ConfigMap default/a\n"),
        "{preview}"
    );
    assert_eq!(env.resource_versions().await, before);
}

#[tokio::test]
async fn orphaned_objects_are_listed_and_kept() {
    let env = Environment::new().await;
    env.apply().await;
    assert_eq!(list_orphans(&env.agent()).await.unwrap(), [""; 0], "its stack is in the target state");
    // As if it belonged to a stack of a former agent.
    let other = "10000000-0000-4000-8000-000000000000";
    let metadata = json!({"labels": {"brokkr.io/stack": other}, "annotations": {"brokkr.io/stack-id": other}});
    env.call("PATCH", "/api/v1/namespaces/default/configmaps/a", json!({"metadata": metadata})).await;
    let before = env.resource_versions().await;
    assert_eq!(list_orphans(&env.agent()).await.unwrap(), [format!("stack {other}: ConfigMap default/a")]);
    assert_eq!(env.resource_versions().await, before);
}

#[tokio::test]
async fn an_agent_releases_its_lease_at_shutdown_and_the_next_one_starts_at_once() {
    let env = Environment::new().await;
    env.apply().await;
    let lease = "/apis/coordination.k8s.io/v1/namespaces/sindri-system/leases/sindri-agent";
    assert_eq!(env.call("GET", lease, Value::Null).await["spec"]["holderIdentity"], "");
    env.admin.submit_revision(env.stack, &BUNDLE.replace("x: '1'", "x: '2'")).await.unwrap();
    // Waiting for a Lease to expire would take longer than `in_time` allows.
    env.apply().await;
    let object = env.call("GET", "/api/v1/namespaces/default/configmaps/a", Value::Null).await;
    assert_eq!(object["data"]["x"], "2");
}
