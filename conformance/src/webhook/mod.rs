//! A real admission webhook: the API server calls this program for writes, and the response rewrites one object.
//!
//! It responds while this program waits, as it does during a scenario. Only an API server that shares the loopback interface
//! with this program can call it.

mod review;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};
use sindri_cluster::Access;
use sindri_cluster::webhook_server::{ReviewReply, WebhookAddress, WebhookServer};
use sindri_world::environment::ClusterCall;
use tokio::time::Instant;

use crate::cluster_api;
use crate::rewrite::Rewrite;
use crate::runtime::InterruptibleRuntime;

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
/// Object that is only created as a dry run, to check whether the API server calls the webhook.
const PROBE: &str = "sindri-webhook-probe";
const PROBES: &str = "/api/v1/namespaces/default/configmaps?dryRun=All";
/// Timeout of starting the server.
const START_MAX: Duration = Duration::from_secs(5);
/// Timeout until an API server uses a configuration, or no longer uses it.
const EFFECT_MAX: Duration = Duration::from_secs(30);
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Timeout of the API server for the webhook, in seconds: longer than this program ever runs without a wait.
const TIMEOUT_SECS: u64 = 10;

/// A webhook that is registered at an API server.
pub struct Webhook {
    configuration: String,
    _server: WebhookServer,
}

impl Webhook {
    /// Starts the webhook, registers it, and waits until the API server calls it.
    pub fn register(runtime: &InterruptibleRuntime, access: &Access, rewrite: Rewrite) -> Result<Self, String> {
        let name = format!("{}.{}.sindri.dev", rewrite.name, rewrite.resource);
        let rewrites = vec![probe(), rewrite];
        let server = start(runtime, rewrites.clone())?;
        let configuration = configuration(&name, &rewrites, &server.address);
        cluster_api::send_expecting_success(runtime, access, request(Method::POST, CONFIGURATIONS, &configuration))?;
        wait_for_effect(runtime, access, true)?;
        Ok(Self { configuration: format!("{CONFIGURATIONS}/{name}"), _server: server })
    }

    /// Removes the registration, and waits until the API server no longer calls the webhook: it rejects writes whose webhook does
    /// not respond.
    pub fn remove(self, runtime: &InterruptibleRuntime, access: &Access) -> Result<(), String> {
        cluster_api::send_expecting_success(runtime, access, request(Method::DELETE, &self.configuration, &json!({})))?;
        wait_for_effect(runtime, access, false)
    }
}

/// Starts the server. It responds during later waits of the runtime.
fn start(runtime: &InterruptibleRuntime, rewrites: Vec<Rewrite>) -> Result<WebhookServer, String> {
    let respond = Arc::new(move |_path: &str, body: &[u8]| reply(body, &rewrites));
    let started = runtime.block_on(START_MAX, WebhookServer::start(respond)).map_err(|error| error.to_string())?;
    started.map_err(|error| error.to_string())
}

fn reply(review: &[u8], rewrites: &[Rewrite]) -> ReviewReply {
    let (status, content_type, body) = match review::respond(review, rewrites) {
        Ok(review) => (200, "application/json", review.to_string()),
        Err(error) => (400, "text/plain; charset=utf-8", error.to_string()),
    };
    ReviewReply { status, content_type, body, delay: Duration::ZERO }
}

fn probe() -> Rewrite {
    Rewrite { resource: "configmaps".to_owned(), name: PROBE.to_owned(), patch: json!({"data": {"asked": "yes"}}) }
}

fn request(method: Method, target: &str, body: &Value) -> ClusterCall {
    let body = body.to_string().into_bytes();
    ClusterCall { method, target: target.to_owned(), content_type: "application/json", body }
}

/// Creates the probe as a dry run until the response is rewritten, or unchanged.
fn wait_for_effect(runtime: &InterruptibleRuntime, access: &Access, is_active: bool) -> Result<(), String> {
    let end = Instant::now() + EFFECT_MAX;
    loop {
        let probe = request(Method::POST, PROBES, &json!({"metadata": {"name": PROBE}}));
        let (status, body) = cluster_api::send(runtime, access, probe)?;
        if status < 300 && (body["data"]["asked"] == "yes") == is_active {
            return Ok(());
        }
        if Instant::now() >= end {
            let change = if is_active { "call the webhook" } else { "stop calling the webhook" };
            return Err(format!("the API server did not {change} within {EFFECT_MAX:?}: {status} {body}"));
        }
        runtime.sleep(CHECK_INTERVAL).map_err(|error| error.to_string())?;
    }
}

/// Returns the configuration. It matches only the named objects, so that other writes are not delayed.
fn configuration(name: &str, rewrites: &[Rewrite], address: &WebhookAddress) -> Value {
    let resources: Vec<&str> = rewrites.iter().map(|rewrite| rewrite.resource.as_str()).collect();
    let names = json!(rewrites.iter().map(|rewrite| rewrite.name.as_str()).collect::<Vec<_>>());
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": name,
            "clientConfig": {
                "url": format!("https://{}/", address.authority), "caBundle": STANDARD.encode(&address.certificate),
            },
            "rules": [{
                "operations": ["CREATE", "UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources,
            }],
            "matchConditions": [{
                // An object with `generateName` has no name yet, and an error in the expression would reject it.
                "name": "named", "expression": format!("has(object.metadata.name) && object.metadata.name in {names}"),
            }],
            "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": TIMEOUT_SECS,
            "admissionReviewVersions": ["v1"],
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_webhook_is_called_for_the_named_objects_only() {
        let rewrite = Rewrite { resource: "secrets".into(), name: "note".into(), patch: json!({}) };
        let address = WebhookAddress { authority: "127.0.0.1:4430".into(), certificate: "PEM".into() };
        let configuration = configuration("note.secrets.sindri.dev", &[probe(), rewrite], &address);
        let webhook = &configuration["webhooks"][0];
        assert_eq!(webhook["rules"][0]["resources"], json!(["configmaps", "secrets"]));
        let expression = r#"has(object.metadata.name) && object.metadata.name in ["sindri-webhook-probe","note"]"#;
        assert_eq!(webhook["matchConditions"][0]["expression"], expression);
        assert_eq!(webhook["clientConfig"], json!({"url": "https://127.0.0.1:4430/", "caBundle": "UEVN"}));
    }
}
