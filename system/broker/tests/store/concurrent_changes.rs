//! Administrators that change different fields of one record at the same time.

use axum::Router;
use axum::body::Body;
use futures_util::future::join_all;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use sindri_broker::{Broker, EncryptionKey, Sender, TargetPolicy, WebhookSettings, router, system_connector};
use sindri_model::{Clock, Pak};
use tower::ServiceExt;

use crate::support::{ALL, World, at, contracts, entropy};

contracts!(concurrent_changes_of_different_fields_all_survive, concurrent_suspensions_on_several_clusters_all_survive,);

const ROUNDS: usize = 25;

struct Api {
    router: Router,
    key: String,
}

impl Api {
    async fn new(world: &World) -> Self {
        let key = Pak::generate(&entropy());
        let broker = Broker::start(world.store.clone(), Clock::new(|| at(0)), entropy()).await.unwrap();
        broker.create_admin_key(&key).await.unwrap();
        let policy = TargetPolicy::default();
        let sender = Sender::new(system_connector(policy));
        let settings = WebhookSettings { key: EncryptionKey::parse(&"ab".repeat(32)).unwrap(), policy, sender };
        Self { router: router(broker.with_webhooks(settings)), key: key.reveal() }
    }

    async fn call(&self, method: Method, path: &str, body: &Value) -> Value {
        let request =
            Request::builder().method(method).uri(format!("/api/v1{path}")).header("authorization", &self.key);
        let response = self.router.clone().oneshot(request.body(Body::from(body.to_string())).unwrap()).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!([StatusCode::OK, StatusCode::CREATED].contains(&status), "{path}: {status} {body:?}");
        serde_json::from_slice(&body).unwrap()
    }
}

/// Changes of one field each.
fn changes(resource: &str, round: usize) -> Vec<Value> {
    let text = format!("x{round}");
    let of_webhook = || {
        vec![
            json!({"name": text}),
            json!({"event_types": [format!("{}.*", ["agent", "stack", "deployment"][round % 3])]}),
            json!({"target_labels": [text]}),
            json!({"enabled": round % 2 == 1}),
            json!({"max_retries": round % 20}),
            json!({"timeout_seconds": round % 60 + 1}),
            json!({"auth_header": "Bearer x", "url": "https://hooks.example.com/x"}),
        ]
    };
    match resource {
        "/webhooks" => of_webhook(),
        "/agents" => vec![
            json!({"name": text}),
            json!({"cluster_name": text}),
            json!({"status": if round.is_multiple_of(2) { "ACTIVE" } else { "INACTIVE" }}),
        ],
        "/generators" => {
            vec![json!({"name": text}), json!({"description": text}), json!({"is_active": round % 2 == 1})]
        }
        _ => vec![json!({"name": text}), json!({"description": text})],
    }
}

async fn concurrent_changes_of_different_fields_all_survive(world: World) {
    world.add_agents::<1>().await;
    let api = Api::new(&world).await;
    for (resource, new, record) in [
        ("/webhooks", json!({"name": "w", "url": "https://hooks.example.com/", "event_types": ["*"]}), None),
        ("/stacks", json!({"name": "s", "generator_id": world.generator}), None),
        ("/agents", json!({"name": "a", "cluster_name": "c"}), Some("agent")),
        ("/generators", json!({"name": "g"}), Some("generator")),
    ] {
        let created = api.call(Method::POST, resource, &new).await;
        let created = record.map_or(&created, |record| &created[record]);
        let path = format!("{resource}/{}", created["id"].as_str().unwrap());
        for round in 0..ROUNDS {
            let changes = changes(resource, round);
            join_all(changes.iter().map(|change| api.call(Method::PUT, &path, change))).await;
            let record = api.call(Method::GET, &path, &Value::Null).await;
            for (field, value) in changes.iter().flat_map(|change| change.as_object().unwrap()) {
                let is_secret = ["auth_header", "url"].contains(&field.as_str());
                let (shown, expected) =
                    if is_secret { (format!("has_{field}"), &json!(true)) } else { (field.clone(), value) };
                assert_eq!(&record[&shown], expected, "{field} of {path} in round {round}: {record}");
            }
        }
    }
}

async fn concurrent_suspensions_on_several_clusters_all_survive(world: World) {
    world.add_agents::<1>().await;
    let stack = world.add_stack("web").await;
    let api = Api::new(&world).await;
    let path = format!("/stacks/{stack}/suspension");
    for round in 0..ROUNDS {
        // Each round suspends the clusters of the next agents, and resumes those of the round before.
        let change = |number: usize| json!({"suspend": [format!("{round}-{number}")], "resume": [format!("{}-{number}", round.wrapping_sub(1))]});
        let changes: Vec<Value> = (0..5).map(change).collect();
        join_all(changes.iter().map(|change| api.call(Method::PATCH, &path, change))).await;
        let suspension = api.call(Method::PATCH, &path, &json!({})).await;
        let expected: Vec<String> = (0..5).map(|number| format!("{round}-{number}")).collect();
        assert_eq!(suspension, json!({"everywhere": false, "agents": expected}), "round {round}");
    }
    let names: Vec<String> = (0..5).map(|number| format!("{}-{number}", ROUNDS - 1)).collect();
    let resumed = api.call(Method::PATCH, &path, &json!({"resume": names})).await;
    assert_eq!(resumed, json!({"everywhere": false, "agents": []}));
    let annotations = world.store.list_stack_annotations(stack, ALL).await.unwrap();
    assert_eq!(annotations.len(), 0, "a stack that is suspended nowhere has no annotation");
    world.annotate_stack(stack, "sindri.dev/suspend", "true").await;
    let everywhere = api.call(Method::PATCH, &path, &json!({"suspend": ["east"], "resume": ["west"]})).await;
    assert_eq!(everywhere, json!({"everywhere": true, "agents": []}));
}
