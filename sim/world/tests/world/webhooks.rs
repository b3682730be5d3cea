//! Admission webhooks of a simulated API server, which it calls over the virtual network.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use serde_json::{Value, json};
use sindri_apiserver::{ApiServer, SharedServer};
use sindri_world::engine::{EngineKind, HostNetwork, Program};
use sindri_world::http_faults::FaultInjector;
use sindri_world::{api_server, isolate, wall_time};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

type Log = Arc<Mutex<Vec<String>>>;

/// Returns a webhook that denies every write.
fn webhook() -> Program {
    Box::new(|network: HostNetwork| {
        Box::pin(async move {
            let review = |body: Bytes| async move {
                let review: Value = serde_json::from_slice(&body).unwrap();
                let status = json!({"message": format!("no {}", review["request"]["name"].as_str().unwrap())});
                let response = json!({"uid": review["request"]["uid"], "allowed": false, "status": status});
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
                    .to_string()
            };
            let listener = network.listen(443).await.unwrap();
            axum::serve(listener, Router::new().route("/review", post(review))).await.unwrap();
        })
    })
}

async fn send(network: &HostNetwork, path: &str, body: &Value) -> Value {
    let (mut stream, body) = (network.connect("api", 80, None).await.unwrap(), body.to_string());
    let head = format!("POST {path} HTTP/1.1\r\nhost: api\r\nconnection: close\r\ncontent-type: application/json");
    let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// Returns a client that registers the webhook, and then creates a ConfigMap every ten seconds.
fn client(log: Log) -> Program {
    Box::new(move |network: HostNetwork| {
        let log = log.clone();
        Box::pin(async move {
            let reference = json!({"namespace": "default", "name": "hooks", "path": "/review"});
            let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
            let configuration = json!({"metadata": {"name": "hooks"}, "webhooks": [{
                "name": "hooks.test.io", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 4,
                "clientConfig": {"service": reference}, "rules": [rule],
            }]});
            let service = json!({"metadata": {"name": "hooks"}, "spec": {"ports": [{"port": 443}]}});
            send(&network, "/api/v1/namespaces/default/services", &service).await;
            let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
            send(&network, path, &configuration).await;
            loop {
                let start = Instant::now();
                let path = "/api/v1/namespaces/default/configmaps";
                let response = send(&network, path, &json!({"metadata": {"name": "one"}})).await;
                let message = response["message"].as_str().unwrap_or("created").to_owned();
                log.lock().unwrap().push(format!("{} s: {message}", start.elapsed().as_secs()));
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
        })
    })
}

#[test]
fn webhooks_are_called_over_the_virtual_network() {
    let log = isolate(11, || {
        let log = Log::default();
        let mut engine = EngineKind::Fast.engine(11);
        let server = SharedServer::new(ApiServer::new(1, wall_time()));
        let api = engine.add_host("api", api_server(server, Arc::new(FaultInjector::new("api".to_owned()))));
        let hooks = engine.add_host("hooks.default.svc", webhook());
        engine.add_host("client", client(log.clone()));
        for (end, is_cut) in [(5, false), (15, true), (30, false)] {
            if is_cut {
                engine.partition(api, hooks);
            } else {
                engine.repair(api, hooks);
            }
            while engine.now() < Duration::from_secs(end) {
                engine.step(Duration::from_secs(end)).unwrap();
            }
        }
        log.lock().unwrap().clone()
    });
    let url = "https://hooks.default.svc:443/review?timeout=4s";
    let denied = "0 s: admission webhook \"hooks.test.io\" denied the request: no one";
    let failed = format!(
        "4 s: Internal error occurred: failed calling webhook \"hooks.test.io\": failed to call webhook: Post \"{url}\": context deadline exceeded"
    );
    assert_eq!(log, [denied, failed.as_str(), denied]);
}
