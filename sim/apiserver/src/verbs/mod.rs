//! One file per verb; here what they share: the call, its options, and the body.

mod create;
mod delete;
mod json_patch;
mod patch;
mod read;
mod refine;
mod update;

pub(crate) use delete::{CLEANUP, FOREGROUND, ORPHAN, Propagation};

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::error::{ApiError, FieldError};
use crate::journal::{Actor, StoredKey, Verb};
use crate::media::{self, Form};
use crate::pointer::{stamp, text};
use crate::registry::Target;
use crate::request::Request;
use crate::response::Response;
use crate::route::Objects;
use crate::server::{ApiServer, Authorship};
use crate::{render, yaml};

/// A request about objects, understood.
pub(crate) struct Call<'a> {
    pub(crate) now: Timestamp,
    pub(crate) request: &'a Request,
    pub(crate) target: Target,
    pub(crate) namespace: Option<String>,
    /// Empty for collections.
    pub(crate) name: String,
    /// Whether the `/status` of the object is meant.
    pub(crate) status: bool,
    pub(crate) form: Form,
}

/// The options of a write.
pub(crate) struct Options {
    pub(crate) dry_run: bool,
    pub(crate) manager: String,
    pub(crate) validation: FieldValidation,
}

/// What happens to fields that the schema does not know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// A write that went through.
pub(crate) struct Written {
    pub(crate) object: std::sync::Arc<Value>,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

impl ApiServer {
    /// Answers a request about objects.
    pub(crate) fn answer_objects(
        &mut self,
        now: Timestamp,
        request: &Request,
        path: Objects,
    ) -> Result<Response, ApiError> {
        let target = self.registry.target(&path.group, &path.version, &path.plural).ok_or(ApiError::NoSuchPath)?;
        let misplaced = match (target.resource.namespaced, &path.namespace, &path.name) {
            (true, None, name) => name.is_some(),
            (true, Some(_), _) | (false, None, _) => false,
            (false, Some(_), _) => true,
        };
        let status = match path.subresource.as_deref() {
            None => false,
            Some("status") if target.version.status => true,
            Some(_) => return Err(ApiError::NoSuchPath),
        };
        if misplaced {
            return Err(ApiError::NoSuchPath);
        }
        let form = media::form(request)?;
        let name = path.name.unwrap_or_default();
        let call = Call { now, request, target, namespace: path.namespace, name, status, form };
        self.dispatch(&call)
    }

    fn dispatch(&mut self, call: &Call<'_>) -> Result<Response, ApiError> {
        let watching = call.request.flag("watch");
        match (&call.request.method, call.name.is_empty()) {
            (&Method::GET, _) if watching && !call.status => self.watch(call),
            (&Method::GET, true) => self.list(call),
            (&Method::GET, false) => self.get_object(call),
            (&Method::POST, true) if call.namespace.is_some() || !call.target.resource.namespaced => {
                let written = self.post(call)?;
                Ok(call.written(&written))
            }
            (&Method::PUT, false) => {
                let written = self.put(call)?;
                Ok(call.written(&written))
            }
            (&Method::PATCH, false) => {
                let written = self.patch(call)?;
                Ok(call.written(&written))
            }
            (&Method::DELETE, false) if !call.status => self.delete(call),
            (&Method::DELETE, true) if !call.target.resource.is_namespace() => self.delete_collection(call),
            (method, _) => Err(ApiError::method_not_allowed(&call.target.resource, &method.as_str().to_lowercase())),
        }
    }
}

impl Call<'_> {
    pub(crate) fn stamp(&self) -> String {
        stamp(self.now)
    }

    pub(crate) fn subresource(&self) -> &'static str {
        if self.status { "status" } else { "" }
    }

    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(&self.target.resource, &self.name)
    }

    pub(crate) fn key(&self, name: &str) -> StoredKey {
        let resource = &self.target.resource;
        StoredKey {
            group: resource.group.clone(),
            version: resource.storage.clone(),
            kind: resource.kind.clone(),
            plural: resource.plural.clone(),
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }

    pub(crate) fn authorship(&self, options: &Options, verb: Verb) -> Authorship {
        let actor = Actor::Client {
            user_agent: self.request.headers.user_agent.clone(),
            field_manager: options.manager.clone(),
        };
        Authorship { actor, verb, subresource: self.subresource() }
    }

    /// The options of a write, from the query.
    pub(crate) fn options(&self, kind: &str) -> Result<Options, ApiError> {
        let refuse = |error: FieldError| Err(ApiError::invalid_kind("meta.k8s.io", kind, "", &[error]));
        let dry_run = match self.request.parameter("dryRun") {
            None => false,
            Some("All") => true,
            Some(other) => {
                return refuse(FieldError::unsupported("dryRun", &json!(other), &["\"All\"".to_owned()]));
            }
        };
        let validation = match self.request.parameter("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let supported = ["\"Ignore\"", "\"Strict\"", "\"Warn\""].map(str::to_owned);
                return refuse(FieldError::unsupported("fieldValidation", &json!(other), &supported));
            }
        };
        let manager = self.request.parameter("fieldManager").map_or_else(|| self.agent_name(), str::to_owned);
        if manager.len() > 128 {
            return refuse(FieldError::invalid("fieldManager", &json!(manager), "may not be more than 128 bytes"));
        }
        Ok(Options { dry_run, manager, validation })
    }

    /// The field manager of a client that names none: its user agent up to the first slash.
    fn agent_name(&self) -> String {
        let agent = self.request.headers.user_agent.split('/').next().unwrap_or_default();
        let name: String = agent.chars().filter(|character| !character.is_control()).take(32).collect();
        if name.is_empty() { "unknown".to_owned() } else { name }
    }

    /// The object in the body of a create or an update.
    pub(crate) fn body_object(&self) -> Result<Value, ApiError> {
        let media = self.request.headers.content_type.split(';').next().unwrap_or_default().trim();
        let read = match media {
            "" | "application/json" => yaml::read_json(&self.request.body),
            "application/yaml" => yaml::read_yaml(&self.request.body),
            _ => {
                let accepted = ["application/json", "application/yaml"];
                return Err(ApiError::unsupported_media(&accepted));
            }
        };
        let kind = &self.target.resource.kind;
        let malformed = |why: &str| {
            ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {why}"
            ))
        };
        let object = read.map_err(|why| malformed(&why))?;
        if !object.is_object() {
            return Err(malformed("the body is not an object"));
        }
        self.check_type(&object)?;
        Ok(object)
    }

    /// Whether the object is of the type and has the name that the path says.
    pub(crate) fn check_type(&self, object: &Value) -> Result<(), ApiError> {
        let (kind, expected) = (text(object, "/kind"), &self.target.resource.kind);
        if !kind.is_empty() && kind != expected {
            let version = &self.target.version.name;
            return Err(ApiError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {expected}"
            )));
        }
        let (version, expected) = (text(object, "/apiVersion"), self.target.api_version());
        if !version.is_empty() && version != expected {
            let message =
                format!("the API version in the data ({version}) does not match the expected API version ({expected})");
            return Err(ApiError::bad_request(message));
        }
        if object.get("metadata").is_some_and(|metadata| !metadata.is_object() && !metadata.is_null()) {
            return Err(ApiError::bad_request("metadata must be an object"));
        }
        let name = text(object, "/metadata/name");
        if !self.name.is_empty() && !name.is_empty() && name != self.name {
            let message = format!("the name of the object ({name}) does not match the name on the URL ({})", self.name);
            return Err(ApiError::bad_request(message));
        }
        let namespace = text(object, "/metadata/namespace");
        if !namespace.is_empty() && self.namespace.as_deref().is_some_and(|expected| expected != namespace) {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(ApiError::bad_request(message));
        }
        Ok(())
    }

    /// The answer to a write that went through.
    fn written(&self, written: &Written) -> Response {
        let status = if written.created { 201 } else { 200 };
        let body = render::object(&self.target, self.form, self.now, &written.object);
        let mut response = Response::json(status, &body);
        for warning in &written.warnings {
            response = response.with_header("warning", format!("299 - {warning:?}"));
        }
        response
    }
}
