//! Who asks, and what they may do. Off unless the server was given an administrator: then every request is allowed.

mod authenticate;
mod rbac;
mod review;

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Map, Value, json};

use authenticate::Issued;
pub(crate) use authenticate::Tokens;

use crate::http::error::ApiError;
use crate::http::request::Request;
use crate::http::route::{Objects, Route};
use crate::server::ApiServer;

/// The group whose members may do everything.
const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";

/// Someone who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl User {
    fn administrator() -> Self {
        let groups = vec![MASTERS.to_owned(), AUTHENTICATED.to_owned()];
        Self { name: "administrator".to_owned(), groups, ..Self::default() }
    }

    fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    /// As reviews show it.
    fn to_value(&self) -> Value {
        let mut info = Map::new();
        info.insert("username".to_owned(), json!(self.name));
        if !self.uid.is_empty() {
            info.insert("uid".to_owned(), json!(self.uid));
        }
        info.insert("groups".to_owned(), json!(self.groups));
        if !self.extra.is_empty() {
            info.insert("extra".to_owned(), json!(self.extra));
        }
        Value::Object(info)
    }
}

/// What someone wants to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// A path that is not about a resource.
    pub(crate) path: Option<String>,
}

impl Wish {
    /// What a request wants.
    pub(crate) fn of(request: &Request, route: &Route) -> Self {
        match route {
            Route::Objects(objects) => Self::of_objects(request, objects),
            _ => {
                let verb = request.method.as_str().to_lowercase();
                Self { verb, path: Some(request.path.clone()), ..Self::default() }
            }
        }
    }

    fn of_objects(request: &Request, objects: &Objects) -> Self {
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
        // A namespace is inside itself.
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

    /// The resource with its part.
    fn full_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// The refusal of this wish.
    pub(crate) fn refused(&self, user: &User) -> ApiError {
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
        ApiError::new(403, "Forbidden", message, Some(crate::http::error::details(name, group, resource)))
    }
}

impl ApiServer {
    /// The same server for one administrator, who has this token; everybody else may do what roles and bindings say.
    #[must_use]
    pub fn with_administrator(mut self, token: &str) -> Self {
        self.administrator = Some(crate::http::request::Credentials(token.to_owned()));
        self
    }

    /// Who asks, if they may do what they ask for.
    pub(crate) fn admit(&self, request: &Request, route: &Route) -> Result<User, ApiError> {
        if self.administrator.is_none() {
            return Ok(User::administrator());
        }
        let user = self.authenticate(request)?;
        let user = self.impersonate(request, user)?;
        self.require(&user, &Wish::of(request, route))?;
        Ok(user)
    }

    /// The refusal of a request that is not the administrator's.
    pub(crate) fn refuse_but_administrator(&self, request: &Request) -> Option<crate::http::response::Response> {
        // Without an administrator everybody is.
        self.administrator.as_ref()?;
        let path = request.path.clone();
        let wish = Wish { verb: request.method.as_str().to_lowercase(), path: Some(path), ..Wish::default() };
        match self.authenticate(request) {
            Err(refused) => Some(refused.into_response()),
            Ok(user) if user.is_master() => None,
            Ok(user) => Some(wish.refused(&user).into_response()),
        }
    }

    /// An error unless someone may do something.
    pub(crate) fn require(&self, user: &User, wish: &Wish) -> Result<(), ApiError> {
        if self.allows(user, wish).is_some() { Ok(()) } else { Err(wish.refused(user)) }
    }
}
