//! The rights of an agent: those that the project documents, and no others. On a control plane that knows rights the agents
//! of the suite run with exactly these.

use std::path::{Path, PathBuf};

use http::Method;
use serde_json::{Value, json};
use sindri_cluster::{Access, Secret};
use sindri_model::yaml;
use sindri_world::environment::ClusterCall;

use crate::api;
use crate::waiter::Waiter;

/// What operators apply.
const DOCUMENTED: &str = include_str!("../../fixtures/rbac/agent.yaml");
/// The same for an agent of one namespace.
const DOCUMENTED_FOR_ONE: &str = include_str!("../../fixtures/rbac/agent-in-one-namespace.yaml");
/// The namespaces that these name.
const HOME: &str = "sindri-system";
const EXAMPLE: &str = "team";
/// Longer than any story.
const TOKEN_SECONDS: u64 = 3_600;

/// Grants the rights, of one namespace or of all, and writes a kubeconfig that has them; `None` where nobody asks for rights.
pub fn grant(
    waiter: &Waiter,
    access: &Access,
    directory: &Path,
    name: &str,
    namespace: Option<&str>,
) -> Result<Option<PathBuf>, String> {
    if access.token.is_none() {
        return Ok(None);
    }
    let documented = match namespace {
        Some(namespace) => DOCUMENTED_FOR_ONE.replace(EXAMPLE, namespace),
        None => DOCUMENTED.to_owned(),
    };
    let documents = yaml::parse_documents(&documented).map_err(|errors| errors[0].to_string())?;
    for document in documents {
        let target = format!("{}?fieldManager=operator&force=true", path(&document.content)?);
        let body = document.content.to_string().into_bytes();
        let content_type = "application/apply-patch+yaml";
        api::carry_out(waiter, access, ClusterCall { method: Method::PATCH, target, content_type, body })?;
    }
    let body = json!({"spec": {"expirationSeconds": TOKEN_SECONDS}}).to_string().into_bytes();
    let home = namespace.unwrap_or(HOME);
    let target = format!("/api/v1/namespaces/{home}/serviceaccounts/sindri-agent/token");
    let request = ClusterCall { method: Method::POST, target, content_type: "application/json", body };
    let answer = api::carry_out(waiter, access, request)?;
    let token = answer["status"]["token"].as_str().ok_or("the answer has no token")?;
    write(access, &Secret::new(token), directory, name).map(Some).map_err(|error| error.to_string())
}

fn path(object: &Value) -> Result<String, String> {
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
        other => return Err(format!("{other} is no right")),
    };
    Ok(format!("{root}{}/{plural}/{name}", namespace.unwrap_or_default()))
}

fn write(access: &Access, token: &Secret, directory: &Path, name: &str) -> std::io::Result<PathBuf> {
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
