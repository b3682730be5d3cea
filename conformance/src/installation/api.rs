//! Requests to the API server as its administrator.

use http::Method;
use serde_json::Value;
use sindri_cluster::Access;
use sindri_world::environment::ClusterCall;

use crate::cluster_api;
use crate::runtime::InterruptibleRuntime;

/// Namespace of both charts.
pub const NAMESPACE: &str = "sindri-system";
const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const NOT_FOUND: u16 = 404;

/// Client of the API server.
#[derive(Clone, Copy)]
pub struct Api<'a> {
    /// Runs the requests.
    pub runtime: &'a InterruptibleRuntime,
    /// The cluster.
    pub access: &'a Access,
}

impl Api<'_> {
    /// Reads an object or a list; `None` if it does not exist.
    pub fn get(&self, path: &str) -> Result<Option<Value>, String> {
        self.send(Method::GET, path, JSON, None)
    }

    /// Creates an object and returns the response.
    pub fn create(&self, path: &str, object: &Value) -> Result<Value, String> {
        self.send(Method::POST, path, JSON, Some(object))?.ok_or_else(|| format!("POST {path}: {NOT_FOUND}"))
    }

    /// Merges fields into an object, unless it is gone.
    pub fn merge(&self, path: &str, fields: &Value) -> Result<(), String> {
        self.send(Method::PATCH, path, MERGE_PATCH, Some(fields)).map(drop)
    }

    fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &'static str,
        body: Option<&Value>,
    ) -> Result<Option<Value>, String> {
        let request = format!("{method} {path}");
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let call = ClusterCall { method, target: path.to_owned(), content_type, body };
        match cluster_api::send(self.runtime, self.access, call)? {
            (NOT_FOUND, _) => Ok(None),
            (status, body) if status < 300 => Ok(Some(body)),
            (status, body) => Err(format!("{request}: {status} {}", body["message"])),
        }
    }
}

/// Path of the objects of a resource of the core group in the namespace of the charts.
pub fn path(resource: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/{resource}")
}

/// Returns a field that is text; empty if it is anything else.
pub fn text(field: &Value) -> &str {
    field.as_str().unwrap_or_default()
}

/// Returns the entries of a field that is a list; none if it is anything else.
pub fn entries(field: &Value) -> impl Iterator<Item = &Value> {
    field.as_array().into_iter().flatten()
}
