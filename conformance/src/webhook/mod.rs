//! A real admission webhook: the API server asks this program about writes, and the answer rewrites one object.
//!
//! It answers whenever this program waits, as it does while a story goes on. Only an API server that shares the loopback
//! interface with this program can ask.

mod review;
mod server;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};
use sindri_cluster::Access;
use sindri_world::environment::ClusterCall;
use tokio::time::Instant;

use crate::api;
use crate::rewrite::Rewrite;
use crate::waiter::Waiter;
use server::Server;

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
/// An object that nobody makes: only tried, to see whether the API server asks.
const PROBE: &str = "sindri-webhook-probe";
const PROBES: &str = "/api/v1/namespaces/default/configmaps?dryRun=All";
/// How long an API server may take to know of a configuration, or to forget it.
const EFFECT_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long the API server waits for an answer, in seconds: longer than this program ever does not wait.
const ANSWER_SECS_MAX: u64 = 10;

/// A webhook that an API server asks.
pub struct Webhook {
    configuration: String,
    _server: Server,
}

impl Webhook {
    /// Serves it, registers it, and waits until the API server asks it.
    pub fn register(waiter: &Waiter, access: &Access, rewrite: Rewrite) -> Result<Self, String> {
        let name = format!("{}.{}.sindri.dev", rewrite.name, rewrite.resource);
        let rewrites = vec![probe(), rewrite];
        let configuration = |server: &Server| configuration(&name, &rewrites, server.port, &server.certificate_pem);
        let server = Server::start(waiter, rewrites.clone())?;
        api::carry_out(waiter, access, request(Method::POST, CONFIGURATIONS, &configuration(&server)))?;
        await_effect(waiter, access, true)?;
        Ok(Self { configuration: format!("{CONFIGURATIONS}/{name}"), _server: server })
    }

    /// Takes it away again, and waits until the API server does not ask any more: it refuses what it cannot ask about.
    pub fn remove(self, waiter: &Waiter, access: &Access) -> Result<(), String> {
        api::carry_out(waiter, access, request(Method::DELETE, &self.configuration, &json!({})))?;
        await_effect(waiter, access, false)
    }
}

fn probe() -> Rewrite {
    Rewrite { resource: "configmaps".to_owned(), name: PROBE.to_owned(), patch: json!({"data": {"asked": "yes"}}) }
}

fn request(method: Method, target: &str, body: &Value) -> ClusterCall {
    let body = body.to_string().into_bytes();
    ClusterCall { method, target: target.to_owned(), content_type: "application/json", body }
}

/// Tries to make the probe until it comes back rewritten, or as it was sent.
fn await_effect(waiter: &Waiter, access: &Access, wanted: bool) -> Result<(), String> {
    let end = Instant::now() + EFFECT_MAX;
    loop {
        let tried = request(Method::POST, PROBES, &json!({"metadata": {"name": PROBE}}));
        let (status, answer) = api::call(waiter, access, tried)?;
        if status < 300 && (answer["data"]["asked"] == "yes") == wanted {
            return Ok(());
        }
        if Instant::now() >= end {
            let change = if wanted { "ask the webhook" } else { "stop asking the webhook" };
            return Err(format!("the API server did not {change} within {EFFECT_MAX:?}: {status} {answer}"));
        }
        waiter.pause(LOOK_EVERY).map_err(|cut| cut.to_string())?;
    }
}

/// What the API server is told: about which objects it asks, and whom. About others nobody has to wait.
fn configuration(name: &str, rewrites: &[Rewrite], port: u16, certificate_pem: &str) -> Value {
    let resources: Vec<&str> = rewrites.iter().map(|rewrite| rewrite.resource.as_str()).collect();
    let names = json!(rewrites.iter().map(|rewrite| rewrite.name.as_str()).collect::<Vec<_>>());
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": name,
            "clientConfig": {"url": format!("https://127.0.0.1:{port}/"), "caBundle": STANDARD.encode(certificate_pem)},
            "rules": [{
                "operations": ["CREATE", "UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources,
            }],
            "matchConditions": [{
                // An object whose name is still to be generated has none, and an error would refuse it.
                "name": "named", "expression": format!("has(object.metadata.name) && object.metadata.name in {names}"),
            }],
            "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": ANSWER_SECS_MAX,
            "admissionReviewVersions": ["v1"],
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_server_asks_about_the_named_objects_only() {
        let rewrite = Rewrite { resource: "secrets".into(), name: "note".into(), patch: json!({}) };
        let configuration = configuration("note.secrets.sindri.dev", &[probe(), rewrite], 4430, "PEM");
        let webhook = &configuration["webhooks"][0];
        assert_eq!(webhook["rules"][0]["resources"], json!(["configmaps", "secrets"]));
        let expression = r#"has(object.metadata.name) && object.metadata.name in ["sindri-webhook-probe","note"]"#;
        assert_eq!(webhook["matchConditions"][0]["expression"], expression);
        assert_eq!(webhook["clientConfig"], json!({"url": "https://127.0.0.1:4430/", "caBundle": "UEVN"}));
    }
}
