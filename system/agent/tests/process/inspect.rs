//! What an agent shows without touching anything, and how it ends.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use sindri_client::Client;
use sindri_model::StackId;
use tokio::task::JoinSet;

use crate::support::{BUNDLE, admin, agent_of, broker, client, cluster, declare, in_time, listener, serve};

const INTERVAL: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(10);

/// A broker with a stack for an agent, and a cluster.
struct Place {
    _serving: (JoinSet<()>, JoinSet<std::io::Result<()>>),
    broker: SocketAddr,
    api: SocketAddr,
    admin: Client,
    key: String,
    stack: StackId,
}

impl Place {
    async fn new() -> Self {
        let ((at_broker, broker_address), (at_cluster, api)) = (listener().await, listener().await);
        let serving = (cluster(at_cluster), serve(&broker().await, at_broker, None));
        let admin = client(broker_address, &admin().reveal());
        let (key, stack) = declare(&admin).await;
        Self { _serving: serving, broker: broker_address, api, admin, key, stack }
    }

    fn agent(&self) -> sindri_agent::Agent {
        agent_of(self.broker, self.api, &self.key, INTERVAL)
    }

    /// Runs the agent until the newest revision is applied, and lets it end.
    async fn apply(&self) {
        let id = self.admin.find_agent("east", "demo").await.unwrap().id;
        let newest = self.admin.stack_status(self.stack).await.unwrap().deployment_object_id;
        let applied = async {
            loop {
                let outcomes = self.admin.outcomes(id).await.unwrap();
                if outcomes.iter().any(|outcome| Some(outcome.deployment_object_id) == newest) {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        in_time(self.agent().run(applied)).await.unwrap();
    }

    async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let config = kube::Config::new(format!("http://{}", self.api).parse().unwrap());
        let client = kube::Client::try_from(config).unwrap();
        let request = http::Request::builder().method(method).uri(path);
        let request =
            request.header("content-type", "application/merge-patch+json").body(body.to_string().into_bytes());
        client.request(request.unwrap()).await.unwrap()
    }

    /// Everything that a write would change.
    async fn versions(&self) -> Value {
        let list = self.call("GET", "/api/v1/configmaps", Value::Null).await;
        let items = list["items"].as_array().unwrap();
        items.iter().map(|item| item["metadata"]["resourceVersion"].clone()).collect()
    }
}

#[tokio::test]
async fn a_plan_is_shown_and_nothing_is_done() {
    let place = Place::new().await;
    let before = place.versions().await;
    let shown = place.agent().preview().await.unwrap();
    assert!(shown.starts_with(&format!("stack {} at sequence ", place.stack)), "{shown}");
    assert!(shown.contains("\n+ ConfigMap default/a  (new)\n    "), "{shown}");
    assert!(shown.contains("data: (none) → {\"x\":\"1\"}"), "{shown}");
    assert_eq!(place.versions().await, before);

    place.apply().await;
    let before = place.versions().await;
    let shown = place.agent().preview().await.unwrap();
    assert!(shown.ends_with("\n= 1 objects are as they are declared\n\n"), "{shown}");
    place.admin.submit(place.stack, &BUNDLE.replace("x: '1'", "x: '2'").replace("name: a", "name: b")).await.unwrap();
    let shown = place.agent().preview().await.unwrap();
    assert!(shown.contains("+ ConfigMap default/b  (new)") && shown.contains("\n- ConfigMap default/a\n"), "{shown}");
    assert_eq!(place.versions().await, before);
}

#[tokio::test]
async fn what_belongs_to_no_stack_is_listed_and_left() {
    let place = Place::new().await;
    place.apply().await;
    assert_eq!(place.agent().orphans().await.unwrap(), [""; 0], "its stack is wanted");
    // As if it had been left by an agent that is gone.
    let other = "10000000-0000-4000-8000-000000000000";
    let marks = json!({"labels": {"brokkr.io/stack": other}, "annotations": {"brokkr.io/stack-id": other}});
    place.call("PATCH", "/api/v1/namespaces/default/configmaps/a", json!({"metadata": marks})).await;
    let before = place.versions().await;
    assert_eq!(place.agent().orphans().await.unwrap(), [format!("stack {other}: ConfigMap default/a")]);
    assert_eq!(place.versions().await, before);
}

#[tokio::test]
async fn an_agent_that_ends_gives_its_lease_back_and_the_next_one_goes_on_at_once() {
    let place = Place::new().await;
    place.apply().await;
    let lease = "/apis/coordination.k8s.io/v1/namespaces/sindri-system/leases/sindri-agent";
    assert_eq!(place.call("GET", lease, Value::Null).await["spec"]["holderIdentity"], "");
    place.admin.submit(place.stack, &BUNDLE.replace("x: '1'", "x: '2'")).await.unwrap();
    // Waiting for a Lease that nobody renews would take longer than `in_time` allows.
    place.apply().await;
    let object = place.call("GET", "/api/v1/namespaces/default/configmaps/a", Value::Null).await;
    assert_eq!(object["data"]["x"], "2");
}
