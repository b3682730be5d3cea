//! Permissions of an agent: on a control plane with RBAC the agents of the suite have exactly the documented permissions.

use std::path::{Path, PathBuf};

use http::Method;
use serde_json::{Value, json};
use sindri_cluster::{Access, Secret};
use sindri_model::yaml;
use sindri_world::environment::ClusterCall;

use crate::cluster_api;
use crate::runtime::InterruptibleRuntime;

/// Manifests that operators apply.
const DOCUMENTED: &str = include_str!("../../fixtures/rbac/agent.yaml");
/// Manifests for an agent that is restricted to one namespace.
const DOCUMENTED_FOR_NAMESPACE: &str = include_str!("../../fixtures/rbac/agent-in-one-namespace.yaml");
/// Namespaces in these manifests.
const HOME: &str = "sindri-system";
const EXAMPLE: &str = "team";
/// Longer than any scenario.
const TOKEN_SECONDS: u64 = 3_600;

/// Grants the permissions, for one namespace or for all, and writes a kubeconfig that has them. Returns `None` for a server
/// without authentication.
pub fn grant_agent_permissions(
    runtime: &InterruptibleRuntime,
    access: &Access,
    directory: &Path,
    name: &str,
    namespace: Option<&str>,
) -> Result<Option<PathBuf>, String> {
    if access.token.is_none() {
        return Ok(None);
    }
    let documented = match namespace {
        Some(namespace) => DOCUMENTED_FOR_NAMESPACE.replace(EXAMPLE, namespace),
        None => DOCUMENTED.to_owned(),
    };
    let documents = yaml::parse_documents(&documented).map_err(|errors| errors[0].to_string())?;
    for document in documents {
        let target = format!("{}?fieldManager=operator&force=true", object_path(&document.content)?);
        let body = document.content.to_string().into_bytes();
        let content_type = "application/apply-patch+yaml";
        cluster_api::send_expecting_success(
            runtime,
            access,
            ClusterCall { method: Method::PATCH, target, content_type, body },
        )?;
    }
    let body = json!({"spec": {"expirationSeconds": TOKEN_SECONDS}}).to_string().into_bytes();
    let home = namespace.unwrap_or(HOME);
    let target = format!("/api/v1/namespaces/{home}/serviceaccounts/sindri-agent/token");
    let request = ClusterCall { method: Method::POST, target, content_type: "application/json", body };
    let response = cluster_api::send_expecting_success(runtime, access, request)?;
    let token = response["status"]["token"].as_str().ok_or("the response has no token")?;
    write_kubeconfig(access, &Secret::new(token), directory, name).map(Some).map_err(|error| error.to_string())
}

fn object_path(object: &Value) -> Result<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    let root = match text(&object["apiVersion"]).as_str() {
        "v1" => "/api/v1".to_owned(),
        other => format!("/apis/{other}"),
    };
    let namespace = object["metadata"]["namespace"].as_str().map(|namespace| format!("/namespaces/{namespace}"));
    let plural = match kind.as_str() {
        "Namespace" => "namespaces",
        "ServiceAccount" => "serviceaccounts",
        "Role" => "roles",
        "RoleBinding" => "rolebindings",
        "ClusterRole" => "clusterroles",
        "ClusterRoleBinding" => "clusterrolebindings",
        other => return Err(format!("{other} is no kind of the documented permissions")),
    };
    Ok(format!("{root}{}/{plural}/{name}", namespace.unwrap_or_default()))
}

fn write_kubeconfig(access: &Access, token: &Secret, directory: &Path, name: &str) -> std::io::Result<PathBuf> {
    let authority = directory.join(format!("{name}-authority.pem"));
    std::fs::write(&authority, access.authority_pem.as_deref().unwrap_or_default())?;
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": access.server, "certificate-authority": authority}}],
        "users": [{"name": name, "user": {"token": token.expose()}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    });
    let file = directory.join(format!("{name}-kubeconfig.json"));
    std::fs::write(&file, config.to_string())?;
    Ok(file)
}
