//! A user of the cluster in the demonstration: with kubectl if it is installed, else over the API.

use http::Method;
use serde_json::Value;
use sindri_cluster::Access;
use sindri_cluster::program::{ExitReason, print_line};
use sindri_conformance::cluster_api;
use sindri_conformance::runtime::InterruptibleRuntime;
use sindri_world::environment::ClusterCall;

use crate::shell::Shell;

/// Path of the ConfigMap that is edited.
pub const SETTINGS: &str = "/api/v1/namespaces/shop/configmaps/settings";
/// Path of the stack's namespace.
pub const NAMESPACE: &str = "/api/v1/namespaces/shop";
const PATCH: &str = r#"{"data":{"colour":"pink"}}"#;

/// An action of the user, with kubectl and over the API.
pub struct UserAction {
    kubectl: &'static [&'static str],
    method: Method,
    targets: &'static [&'static str],
    body: &'static str,
}

/// Lists the objects in the namespace.
pub const LIST_OBJECTS: UserAction = UserAction {
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

/// Changes a value that the stack declares.
pub const EDIT_SETTINGS: UserAction = UserAction {
    kubectl: &["--namespace", "shop", "patch", "configmap", "settings", "--type", "merge", "--patch", PATCH],
    method: Method::PATCH,
    targets: &[SETTINGS],
    body: PATCH,
};

/// Reads that value.
pub const READ_SETTINGS: UserAction = UserAction {
    kubectl: &["--namespace", "shop", "get", "configmap", "settings", "--output", "jsonpath={.data}"],
    method: Method::GET,
    targets: &[SETTINGS],
    body: "",
};

/// Lists the namespaces.
pub const LIST_NAMESPACES: UserAction =
    UserAction { kubectl: &["get", "namespaces"], method: Method::GET, targets: &["/api/v1/namespaces"], body: "" };

/// User of the cluster.
pub struct ClusterUser {
    access: Access,
    has_kubectl: bool,
}

impl ClusterUser {
    /// Checks whether kubectl is installed.
    pub fn new(shell: &Shell, access: &Access) -> Self {
        let has_kubectl = shell.run_quietly("kubectl", &["version", "--client"]).is_ok();
        Self { access: access.clone(), has_kubectl }
    }

    /// Performs an action, and prints the command or request.
    pub fn perform(
        &self,
        action: &UserAction,
        shell: &Shell,
        runtime: &InterruptibleRuntime,
    ) -> Result<(), ExitReason> {
        if self.has_kubectl {
            return shell.run("kubectl", action.kubectl).map(drop);
        }
        for target in action.targets {
            print_line(format!("{} {target} {}", action.method, action.body).trim_end());
            let (status, body) = self.call(runtime, action.method.clone(), target, action.body)?;
            if status >= 300 {
                return Err(ExitReason::Failed(format!("{} {target}: {status} {}", action.method, body["message"])));
            }
            for line in summarize(&body) {
                print_line(format!("  {line}"));
            }
        }
        Ok(())
    }

    /// Reads an object without printing it.
    pub fn read(&self, runtime: &InterruptibleRuntime, target: &str) -> Result<(u16, Value), ExitReason> {
        self.call(runtime, Method::GET, target, "")
    }

    fn call(
        &self,
        runtime: &InterruptibleRuntime,
        method: Method,
        target: &str,
        body: &str,
    ) -> Result<(u16, Value), ExitReason> {
        let content_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let call = ClusterCall { method, target: target.to_owned(), content_type, body: body.as_bytes().to_vec() };
        cluster_api::send(runtime, &self.access, call).map_err(ExitReason::Failed)
    }
}

/// Returns the names in a list, or the data of one object.
fn summarize(body: &Value) -> Vec<String> {
    match body["items"].as_array() {
        Some(items) => items.iter().filter_map(|item| item["metadata"]["name"].as_str()).map(str::to_owned).collect(),
        None => vec![body["data"].to_string()],
    }
}
