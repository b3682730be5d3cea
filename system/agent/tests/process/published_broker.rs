//! An agent with a broker that offers the published API and none of Sindri's additions.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::IF_NONE_MATCH;
use sindri_broker::{Broker, router};
use sindri_model::wire::{EVENT_TYPE_DEPLOY, EventStatus};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::proxy::{object_status, wait_for_object};
use crate::support::{admin, agent_of, broker, client, cluster, declare, in_time, listener};

const INTERVAL: Duration = Duration::from_millis(250);
/// Endings of the paths under `/agents/{id}` that only Sindri's broker serves.
const ADDITIONS: [&str; 4] = ["/policies", "/outcomes", "/status", "/approval"];
/// Response headers that only Sindri's broker sends.
const ADDED_HEADERS: [&str; 3] = ["x-sindri-epoch", "sindri-agent-status", "etag"];

/// Removes Sindri's additions: routes are not found, without an explanation, and headers are not sent or read. Without
/// `mode=full` only what the agent has not confirmed is returned.
async fn remove_additions(mut request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    if path.starts_with("/api/v1/agents/") && ADDITIONS.iter().any(|ending| path.ends_with(ending)) {
        return StatusCode::NOT_FOUND.into_response();
    }
    if path.ends_with("/target-state") && request.uri().query() != Some("mode=full") {
        *request.uri_mut() = format!("{path}?mode=incremental").parse().unwrap();
    }
    request.headers_mut().remove(IF_NONE_MATCH);
    request.headers_mut().remove("sindri-held-revisions");
    let mut response = next.run(request).await;
    for name in ADDED_HEADERS {
        response.headers_mut().remove(name);
    }
    response
}

fn serve_published(broker: Broker, listener: TcpListener) -> JoinSet<io::Result<()>> {
    let routes: Router = router(broker).layer(from_fn(remove_additions));
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, routes).await });
    serving
}

async fn wait_for_status(api: SocketAddr, status: u16) {
    in_time(async {
        while object_status(api).await != status {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_agent_applies_corrects_removes_and_reports_without_sindris_additions() {
    let ((broker_listener, address), (api_listener, api)) = (listener().await, listener().await);
    let _cluster = cluster(api_listener);
    let _serving = serve_published(broker().await, broker_listener);
    let administrator = client(address, &admin().reveal());
    let (key, stack) = declare(&administrator).await;
    let agent = agent_of(address, api, &key, INTERVAL);
    let mut running = JoinSet::new();
    running.spawn(async move { agent.run(std::future::pending()).await.unwrap() });
    wait_for_object(api).await;
    // A second revision without the object removes it, although the first one was confirmed.
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: default}\n";
    administrator.submit_revision(stack, other).await.unwrap();
    wait_for_status(api, 404).await;
    let agent_id = administrator.find_agent("east", "demo").await.unwrap().id;
    in_time(async {
        loop {
            let events = administrator.list_events(agent_id).await.unwrap();
            let succeeded = events.iter().filter(|event| event.status == EventStatus::Success).count();
            assert!(events.iter().all(|event| event.event_type == EVENT_TYPE_DEPLOY), "{events:?}");
            assert!(succeeded == events.len() && succeeded <= 2, "{events:?}");
            if succeeded == 2 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}
