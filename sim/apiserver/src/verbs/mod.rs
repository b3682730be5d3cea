//! One file per verb; here what they share: the call, its options, and the body.

mod body;
mod create;
mod create_internal;
mod delete;
mod json_patch;
mod list_options;
mod manager_versions;
mod patch;
mod read;
mod refine;
mod scale;
mod subresource;
mod update;

pub(crate) use create_internal::Maker;
pub(crate) use delete::{CLEANUP, FOREGROUND, ORPHAN, Propagation};

use http::Method;
use jiff::Timestamp;
use serde_json::json;

use crate::auth::{User, Wish};
use crate::discovery::groups;
use crate::encoding::protobuf;
use crate::http::error::{ApiError, warning_header};
use crate::http::media;
use crate::http::media::{Form, Wanted};
use crate::http::request::Request;
use crate::http::response::Response;
use crate::http::route::Objects;
use crate::object::field_error::FieldError;
use crate::object::fields::stamp;
use crate::object::key::StoredKey;
use crate::object::stored::Stored;
use crate::printing::render;
use crate::registry::conversion;
use crate::registry::resource::Target;
use crate::server::{ApiServer, Authorship, BODY_BYTES_MAX};
use crate::storage::journal::{Actor, Verb};

/// The longest name of a manager.
const MANAGER_BYTES_MAX: usize = 128;

/// A request about objects, understood.
pub(crate) struct Call<'a> {
    pub(crate) now: Timestamp,
    pub(crate) request: &'a Request,
    pub(crate) user: User,
    pub(crate) target: Target,
    pub(crate) namespace: Option<String>,
    /// Empty for collections.
    pub(crate) name: String,
    /// The part of the object that is meant, such as `status`; empty for the object itself.
    pub(crate) subresource: &'static str,
    pub(crate) wanted: Wanted,
    /// The controller that makes this call, if it is not a client.
    pub(crate) controller: Option<&'static str>,
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
    pub(crate) object: std::sync::Arc<Stored>,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

impl ApiServer {
    /// Answers a request about objects.
    pub(crate) fn answer_objects(
        &mut self,
        now: Timestamp,
        request: &Request,
        user: User,
        path: Objects,
    ) -> Result<Response, ApiError> {
        if request.method == Method::POST {
            self.await_crd(&path);
        }
        if !self.registry.has_group(&path.group) {
            return Err(ApiError::NoSuchPath);
        }
        let is_custom = groups::is_custom(&path.group);
        let missing = || if is_custom { ApiError::NoSuchPath } else { ApiError::no_such_resource() };
        let target = self.registry.target(&path.group, &path.version, &path.plural).ok_or_else(missing)?;
        let misplaced = match (target.resource.namespaced, &path.namespace, &path.name) {
            (true, None, name) => name.is_some(),
            (true, Some(_), _) | (false, None, _) => false,
            (false, Some(_), _) => true,
        };
        if misplaced {
            return Err(missing());
        }
        let subresource = match path.subresource.as_deref() {
            None => "",
            Some(asked) => match target.version.subresources.keys().find(|served| *served == asked) {
                Some(_) => known_subresource(asked).ok_or_else(missing)?,
                None if target.resource.custom => {
                    let name = path.name.unwrap_or_default();
                    return Err(ApiError::not_found(&target.resource, &name));
                }
                None => return Err(missing()),
            },
        };
        let name = path.name.unwrap_or_default();
        let is_custom = target.resource.custom;
        // About instances it is first asked what is wanted.
        if !is_custom && subresource.is_empty() {
            check_dots(&name)?;
        }
        check_verb(request, &target, &path.namespace, &name, subresource)?;
        let of_list = name.is_empty() && request.method == Method::GET;
        if is_custom && request.method == Method::PATCH && subresource != "scale" {
            // What is sent is looked at before what is wanted.
            patch::check_media(patch::media_of(request), is_custom)?;
        }
        let is_stream = request.method == Method::GET && request.flag("watch") && subresource != "status";
        let wanted = media::wanted(request, media::Subject { is_custom, of_list, is_stream })?;
        if is_custom && subresource.is_empty() {
            check_dots(&name)?;
        }
        if request.body.len() > BODY_BYTES_MAX {
            return Err(ApiError::too_large(BODY_BYTES_MAX));
        }
        let translated = protobuf_body(request, &target);
        let request = translated.as_ref().unwrap_or(request);
        let namespace = path.namespace;
        let call = Call { now, request, user, target, namespace, name, subresource, wanted, controller: None };
        call.check_metadata_form(of_list)?;
        let response = self.dispatch(&call)?;
        let response = if wanted.is_beta { response.in_beta() } else { response }.in_notation(wanted.notation);
        Ok(match &call.target.version.deprecation {
            Some(warning) => response.with_header("warning", warning_header(warning)),
            None => response,
        })
    }

    fn dispatch(&mut self, call: &Call<'_>) -> Result<Response, ApiError> {
        if !matches!(call.subresource, "" | "status") {
            return self.answer_subresource(call);
        }
        let watching = call.request.flag("watch");
        let written = match (&call.request.method, call.name.is_empty()) {
            (&Method::GET, _) if watching && !call.status() => return self.watch(call),
            (&Method::GET, true) => return self.list(call),
            (&Method::GET, false) => return self.get_object(call),
            (&Method::DELETE, false) => return self.delete(call),
            (&Method::DELETE, true) => return self.delete_collection(call),
            (&Method::POST, _) if call.target.resource.is_review() => return self.review(call),
            (&Method::POST, _) => self.post(call)?,
            (&Method::PUT, _) => self.put(call)?,
            (&Method::PATCH, _) => self.patch(call)?,
            _ => return Err(ApiError::method_not_allowed()),
        };
        Ok(call.written(&written))
    }
}

fn check_dots(name: &str) -> Result<(), ApiError> {
    if matches!(name, "." | "..") {
        return Err(ApiError::bad_request(format!("Name parameter invalid: {name:?}: may not be '{name}'")));
    }
    Ok(())
}

/// The request in JSON, if it is a message. About instances of definitions there are none, but there are options.
fn protobuf_body(request: &Request, target: &Target) -> Option<Request> {
    let has_message = !target.resource.custom || request.method == Method::DELETE;
    if !has_message || !protobuf::is_media(&request.headers.content_type) {
        return None;
    }
    let expected = if request.method == Method::DELETE {
        ("v1".to_owned(), "DeleteOptions")
    } else {
        (target.api_version(), target.resource.kind.as_str())
    };
    protobuf::to_json_request(request, (&expected.0, expected.1))
}

/// The subresources that this server answers; those that reach into machines are not among them.
fn known_subresource(name: &str) -> Option<&'static str> {
    ["approval", "binding", "ephemeralcontainers", "eviction", "finalize", "resize", "scale", "status", "token"]
        .into_iter()
        .find(|known| *known == name)
}

/// Whether discovery lists what a request wants to do.
fn check_verb(
    request: &Request,
    target: &Target,
    namespace: &Option<String>,
    name: &str,
    subresource: &str,
) -> Result<(), ApiError> {
    let verb = match (&request.method, name.is_empty()) {
        (&Method::GET, true) => "list",
        (&Method::GET, false) => "get",
        (&Method::POST, true) if namespace.is_some() || !target.resource.namespaced => "create",
        (&Method::POST, false) if !subresource.is_empty() => "create",
        (&Method::PUT, false) => "update",
        (&Method::PATCH, false) => "patch",
        (&Method::DELETE, true) if namespace.is_some() || !target.resource.namespaced => "deletecollection",
        (&Method::DELETE, false) => "delete",
        _ => "",
    };
    let verbs = target.version.subresources.get(subresource).unwrap_or(&target.resource.verbs);
    if verbs.iter().any(|served| served == verb) {
        return Ok(());
    }
    Err(if target.resource.custom && !verb.is_empty() {
        ApiError::custom_method_not_allowed(&target.resource, verb)
    } else {
        ApiError::method_not_allowed()
    })
}

impl Call<'_> {
    pub(crate) fn stamp(&self) -> String {
        stamp(self.now)
    }

    /// This call as a wish with another verb.
    pub(crate) fn wish(&self, verb: &str) -> Wish {
        Wish {
            verb: verb.to_owned(),
            group: self.target.resource.group.clone(),
            resource: self.target.resource.plural.clone(),
            subresource: self.subresource.to_owned(),
            namespace: self.namespace.clone().unwrap_or_default(),
            name: self.name.clone(),
            path: None,
        }
    }

    /// Whether writing the status makes what is not there, without what the server gives it otherwise.
    pub(crate) fn makes_by_status(&self) -> bool {
        self.status() && self.target.resource.is("", "services")
    }

    /// Whether a declaration is applied.
    pub(crate) fn is_apply(&self) -> bool {
        let media = self.request.headers.content_type.split(';').next().unwrap_or_default().trim();
        self.request.method == Method::PATCH && media == patch::APPLY
    }

    /// Whether the `/status` of the object is meant.
    pub(crate) fn status(&self) -> bool {
        self.subresource == "status"
    }

    /// Metadata of one object is another form than that of many.
    fn check_metadata_form(&self, of_list: bool) -> Result<(), ApiError> {
        let watching = self.request.flag("watch");
        if self.wanted.form != Form::Metadata || watching || media::wants_metadata_list(self.request) == of_list {
            return Ok(());
        }
        let resource = &self.target.resource;
        let package = match resource.group.split('.').next() {
            None | Some("") => "core",
            Some(package) => package,
        };
        let message = if of_list {
            format!(
                "you requested PartialObjectMetadata, but the requested object is a list (*{package}.{})",
                resource.list_kind
            )
        } else {
            format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list (*{package}.{})",
                resource.kind
            )
        };
        Err(ApiError::new(406, "NotAcceptable", message, None))
    }

    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(&self.target.resource, &self.name)
    }

    pub(crate) fn key(&self, name: &str) -> StoredKey {
        let resource = &self.target.resource;
        StoredKey {
            group: conversion::home(resource).to_owned(),
            version: resource.storage.clone(),
            kind: resource.kind.clone(),
            plural: resource.plural.clone(),
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }

    pub(crate) fn authorship(&self, options: &Options, verb: Verb) -> Authorship {
        let client = || Actor::Client {
            user_agent: self.request.headers.user_agent.clone(),
            field_manager: options.manager.clone(),
        };
        let actor = self.controller.map_or_else(client, Actor::Controller);
        Authorship { actor, verb, subresource: self.subresource }
    }

    /// The options of a write, from the query.
    pub(crate) fn options(&self, kind: &str) -> Result<Options, ApiError> {
        let refuse = |error: FieldError| Err(ApiError::invalid_kind("meta.k8s.io", kind, "", &[error]));
        let dry_run = match self.request.query.get("dryRun").map(String::as_str) {
            None => false,
            Some("All") => true,
            Some(other) => {
                return refuse(FieldError::unsupported("dryRun", &json!([other]), &["\"All\"".to_owned()]));
            }
        };
        let validation = match self.request.parameter("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let supported = ["\"\"", "\"Ignore\"", "\"Strict\"", "\"Warn\""].map(str::to_owned);
                return refuse(FieldError::unsupported("fieldValidation", &json!(other), &supported));
            }
        };
        let manager = self.request.parameter("fieldManager").map_or_else(|| self.agent_name(), str::to_owned);
        if manager.len() > MANAGER_BYTES_MAX {
            return refuse(FieldError::too_long("fieldManager", MANAGER_BYTES_MAX));
        }
        if let Some((at, wrong)) = manager.char_indices().find(|(_, character)| character.is_control()) {
            let why = format!("invalid character U+{:04X} (at position {at})", u32::from(wrong));
            return refuse(FieldError::invalid("fieldManager", &json!(manager), &why));
        }
        Ok(Options { dry_run, manager, validation })
    }

    /// The field manager of a client that names none: its user agent up to the first slash.
    fn agent_name(&self) -> String {
        let agent = self.request.headers.user_agent.split('/').next().unwrap_or_default();
        let name: String = agent.chars().filter(|character| !character.is_control()).take(MANAGER_BYTES_MAX).collect();
        if name.is_empty() { "unknown".to_owned() } else { name }
    }

    /// The answer to a write that went through.
    fn written(&self, written: &Written) -> Response {
        let status = if written.created { 201 } else { 200 };
        let body = render::object(&self.target, self.wanted.form, self.now, &written.object);
        let mut response = Response::written(status, body);
        for warning in &written.warnings {
            response = response.with_header("warning", warning_header(warning));
        }
        response
    }
}
