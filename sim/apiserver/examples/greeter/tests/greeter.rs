//! Tests the controller against an API server in this process. Time is virtual: hours take milliseconds.

use std::time::Duration;

use greeter::{Greeting, GreetingSpec, RECONCILE_INTERVAL};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, CustomResourceExt};
use sindri_apiserver::{FaultRule, NamedFault, Sandbox, StreamEnd};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// Starts a cluster with the Greeting CRD, and the controller, which runs until the end of the test.
async fn cluster() -> (Sandbox, Client, JoinSet<()>) {
    let cluster = Sandbox::new(7);
    let client = cluster.client();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.create(&PostParams::default(), &Greeting::crd()).await.unwrap();
    await_condition(crds, "greetings.example.com", is_crd_established()).await.unwrap();
    let mut running = JoinSet::new();
    let controllers = client.clone();
    running.spawn(async move { greeter::run(controllers, "default").await });
    // A CRD is served a moment after it is established: the controller may have to restart its watches.
    sleep(Duration::from_secs(10)).await;
    (cluster, client, running)
}

async fn greet(client: &Client, name: &str, whom: &str) {
    let greetings: Api<Greeting> = Api::namespaced(client.clone(), "default");
    let greeting = Greeting::new(name, GreetingSpec { whom: whom.to_owned() });
    greetings.create(&PostParams::default(), &greeting).await.unwrap();
}

async fn words(client: &Client, name: &str) -> Option<String> {
    let words: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    words.get_opt(name).await.unwrap()?.data?.remove("words")
}

#[tokio::test(start_paused = true)]
async fn a_config_map_is_created_and_restored_after_changes() {
    let (_cluster, client, _running) = cluster().await;
    greet(&client, "world", "world").await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(words(&client, "world").await.as_deref(), Some("Hello, world!"));

    let all: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    all.delete("world", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(words(&client, "world").await.as_deref(), Some("Hello, world!"), "recreated after a delete");

    let other = serde_json::json!({"data": {"words": "Go away."}});
    all.patch("world", &PatchParams::default(), &Patch::Merge(other)).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(words(&client, "world").await.as_deref(), Some("Hello, world!"), "restored after a change");
}

#[tokio::test(start_paused = true)]
async fn the_config_map_is_deleted_with_its_greeting() {
    let (_cluster, client, _running) = cluster().await;
    greet(&client, "world", "world").await;
    sleep(Duration::from_secs(1)).await;
    let greetings: Api<Greeting> = Api::namespaced(client.clone(), "default");
    greetings.delete("world", &DeleteParams::default()).await.unwrap();
    // The control plane's garbage collector deletes the ConfigMap.
    sleep(Duration::from_secs(60)).await;
    assert_eq!(words(&client, "world").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_is_retried() {
    let (cluster, client, _running) = cluster().await;
    let refuse = NamedFault::Refuse { status: 503, retry_after_seconds: None };
    let rule =
        FaultRule { method: Some("PATCH".to_owned()), times: Some(2), fault: Some(refuse), ..FaultRule::default() };
    cluster.fail(rule).unwrap();
    greet(&client, "world", "world").await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(words(&client, "world").await.as_deref(), Some("Hello, world!"));
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_is_restarted() {
    let (cluster, client, _running) = cluster().await;
    for how in [StreamEnd::Closed, StreamEnd::Expired, StreamEnd::Cut] {
        let breaks = NamedFault::BreakStream { after_events: 0, how };
        let rule =
            FaultRule { verb: Some("watch".to_owned()), times: Some(2), fault: Some(breaks), ..FaultRule::default() };
        cluster.fail(rule).unwrap();
    }
    // Ends the current watches, so that new ones are started and break.
    cluster.machine(|machine| machine.compact());
    greet(&client, "world", "world").await;
    sleep(Duration::from_secs(120)).await;
    assert_eq!(words(&client, "world").await.as_deref(), Some("Hello, world!"));
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_does_not_cause_a_second_write() {
    let (cluster, client, _running) = cluster().await;
    let lose = Some(NamedFault::LoseResponse);
    cluster
        .fail(FaultRule { method: Some("PATCH".to_owned()), times: Some(1), fault: lose, ..FaultRule::default() })
        .unwrap();
    greet(&client, "world", "world").await;
    sleep(Duration::from_secs(30)).await;
    let writes = cluster.machine(sindri_apiserver::ApiServer::take_journal);
    let config_map_writes = writes.iter().filter(|write| write.key.plural == "configmaps" && write.key.name == "world");
    assert_eq!(config_map_writes.count(), 1, "the retried apply changed nothing");
}

#[tokio::test(start_paused = true)]
async fn an_idle_day_causes_no_writes_and_takes_no_time() {
    let (cluster, client, _running) = cluster().await;
    greet(&client, "world", "world").await;
    sleep(Duration::from_secs(60)).await;
    let (before, began) = (cluster.machine(|machine| machine.revision()), Instant::now());
    sleep(Duration::from_secs(24 * 60 * 60)).await;
    assert_eq!(cluster.machine(|machine| machine.revision()), before, "nothing was written in {:?}", began.elapsed());
    assert!(began.elapsed() > 200 * RECONCILE_INTERVAL, "it was reconciled repeatedly");
}
