//! What someone does in a cluster by hand: with kubectl if it is installed, else over the API.

use http::Method;
use serde_json::Value;
use sindri_cluster::Access;
use sindri_cluster::program::{Ending, say};
use sindri_conformance::api;
use sindri_conformance::waiter::Waiter;
use sindri_world::environment::ClusterCall;

use crate::command::Shell;

/// The setting that is edited.
pub const SETTINGS: &str = "/api/v1/namespaces/shop/configmaps/settings";
/// The namespace of the stack.
pub const NAMESPACE: &str = "/api/v1/namespaces/shop";
const PATCH: &str = r#"{"data":{"colour":"pink"}}"#;

/// Something done by hand, in both ways.
pub struct Gesture {
    kubectl: &'static [&'static str],
    method: Method,
    targets: &'static [&'static str],
    body: &'static str,
}

/// Looks at everything in the namespace.
pub const LOOK: Gesture = Gesture {
    kubectl: &["--namespace", "shop", "get", "deployments,services,configmaps,secrets"],
    method: Method::GET,
    targets: &[
        "/apis/apps/v1/namespaces/shop/deployments",
        "/api/v1/namespaces/shop/services",
        "/api/v1/namespaces/shop/configmaps",
        "/api/v1/namespaces/shop/secrets",
    ],
    body: "",
};

/// Changes a setting that the stack declares.
pub const EDIT: Gesture = Gesture {
    kubectl: &["--namespace", "shop", "patch", "configmap", "settings", "--type", "merge", "--patch", PATCH],
    method: Method::PATCH,
    targets: &[SETTINGS],
    body: PATCH,
};

/// Looks at that setting.
pub const LOOK_AT_COLOUR: Gesture = Gesture {
    kubectl: &["--namespace", "shop", "get", "configmap", "settings", "--output", "jsonpath={.data}"],
    method: Method::GET,
    targets: &[SETTINGS],
    body: "",
};

/// Looks at which namespaces there are.
pub const LOOK_AT_NAMESPACES: Gesture =
    Gesture { kubectl: &["get", "namespaces"], method: Method::GET, targets: &["/api/v1/namespaces"], body: "" };

/// A hand in a cluster.
pub struct Hand {
    access: Access,
    has_kubectl: bool,
}

impl Hand {
    /// Looks whether kubectl is there.
    pub fn new(shell: &Shell, access: &Access) -> Self {
        let has_kubectl = shell.quietly("kubectl", &["version", "--client"]).is_ok();
        Self { access: access.clone(), has_kubectl }
    }

    /// Does it, and shows how.
    pub fn perform(&self, gesture: &Gesture, shell: &Shell, waiter: &Waiter) -> Result<(), Ending> {
        if self.has_kubectl {
            return shell.run("kubectl", gesture.kubectl).map(drop);
        }
        for target in gesture.targets {
            say(format!("{} {target} {}", gesture.method, gesture.body).trim_end());
            let (status, answer) = self.call(waiter, gesture.method.clone(), target, gesture.body)?;
            if status >= 300 {
                return Err(Ending::Broken(format!("{} {target}: {status} {}", gesture.method, answer["message"])));
            }
            for line in lines(&answer) {
                say(format!("  {line}"));
            }
        }
        Ok(())
    }

    /// Reads without showing it.
    pub fn read(&self, waiter: &Waiter, target: &str) -> Result<(u16, Value), Ending> {
        self.call(waiter, Method::GET, target, "")
    }

    fn call(&self, waiter: &Waiter, method: Method, target: &str, body: &str) -> Result<(u16, Value), Ending> {
        let content_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let call = ClusterCall { method, target: target.to_owned(), content_type, body: body.as_bytes().to_vec() };
        api::call(waiter, &self.access, call).map_err(Ending::Broken)
    }
}

/// The names of a list, or the data of one object.
fn lines(answer: &Value) -> Vec<String> {
    match answer["items"].as_array() {
        Some(items) => items.iter().filter_map(|item| item["metadata"]["name"].as_str()).map(str::to_owned).collect(),
        None => vec![answer["data"].to_string()],
    }
}
