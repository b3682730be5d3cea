//! The attributes of a request that authorization decides on.

use http::Method;
use serde_json::json;

use super::user::User;
use crate::http::error::{ApiError, details};
use crate::http::request::Request;
use crate::http::route::{Objects, Route};

/// Attributes of a request that authorization decides on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AuthorizationRequest {
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Path of a request that is not about a resource.
    pub(crate) path: Option<String>,
}

impl AuthorizationRequest {
    /// Reads the attributes of a request.
    pub(crate) fn from_request(request: &Request, route: &Route) -> Self {
        match route {
            Route::Objects(objects) => Self::from_objects(request, objects),
            _ => {
                let verb = request.method.as_str().to_lowercase();
                Self { verb, path: Some(request.path.clone()), ..Self::default() }
            }
        }
    }

    fn from_objects(request: &Request, objects: &Objects) -> Self {
        let named = objects.name.is_some();
        let verb = match request.method {
            Method::GET if request.flag("watch") => "watch",
            Method::GET if named => "get",
            Method::GET => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if named => "delete",
            Method::DELETE => "deletecollection",
            _ => "",
        };
        let name = objects.name.clone().unwrap_or_default();
        // A request for a namespace counts as one inside it.
        let itself = objects.group.is_empty() && objects.plural == "namespaces";
        let namespace = if itself { name.clone() } else { objects.namespace.clone().unwrap_or_default() };
        Self {
            verb: verb.to_owned(),
            group: objects.group.clone(),
            resource: objects.plural.clone(),
            subresource: objects.subresource.clone().unwrap_or_default(),
            namespace,
            name,
            path: None,
        }
    }

    /// Returns the resource with its subresource.
    pub(super) fn full_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// Returns the error for a user without permission.
    pub(crate) fn to_denial(&self, user: &User) -> ApiError {
        let Self { verb, group, resource, namespace, name, .. } = self;
        if let Some(path) = &self.path {
            let message = format!("forbidden: User {:?} cannot {verb} path {path:?}", user.name);
            return ApiError::new(403, "Forbidden", message, Some(json!({})));
        }
        let qualified = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
        let object = if name.is_empty() { String::new() } else { format!(" {name:?}") };
        let place = if namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {namespace:?}")
        };
        let message = format!(
            "{qualified}{object} is forbidden: User {:?} cannot {verb} resource {:?} in API group {group:?} {place}",
            user.name,
            self.full_resource()
        );
        ApiError::new(403, "Forbidden", message, Some(details(name, group, resource)))
    }
}
