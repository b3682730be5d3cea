//! A parsed request about objects: its target, its options, and the response to a write.

use std::sync::Arc;

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::admission::attributes::{Attributes, Kind, Operation};
use crate::auth::authorization_request::AuthorizationRequest;
use crate::auth::user::User;
use crate::http::error::ApiError;
use crate::http::media;
use crate::http::media::{Representation, ResponseFormat};
use crate::http::request::Request;
use crate::http::response::Response;
use crate::http::webhook_call::WebhookAnswers;
use crate::object::field_error::FieldError;
use crate::object::fields::format_timestamp;
use crate::object::key::StoredKey;
use crate::object::stored::Stored;
use crate::printing::render;
use crate::registry::conversion;
use crate::registry::resource::Target;
use crate::state::server_state::ServerState;
use crate::storage::journal::{Actor, Attribution, Verb};
use crate::strategy::Strategy;
use crate::strategy::kinds::strategy_for;

/// Longest name of a field manager in bytes.
const MANAGER_BYTES_MAX: usize = 128;

/// A parsed request about objects.
pub(crate) struct ResourceRequest<'a> {
    pub(crate) now: Timestamp,
    /// Time of the first run of the request, for the times in its objects. Only calls of webhooks lead to further runs.
    pub(crate) started: Timestamp,
    /// The HTTP request.
    pub(crate) http: &'a Request,
    pub(crate) user: User,
    pub(crate) target: Target,
    pub(crate) namespace: Option<String>,
    /// Empty for collections.
    pub(crate) name: String,
    /// Subresource, such as `status`; empty for the object itself.
    pub(crate) subresource: &'static str,
    pub(crate) format: ResponseFormat,
    /// Controller that makes the request, if it is not a client.
    pub(crate) controller: Option<&'static str>,
    pub(crate) answers: &'a WebhookAnswers,
}

/// The options of a write.
pub(crate) struct Options {
    pub(crate) dry_run: bool,
    pub(crate) manager: String,
    pub(crate) validation: FieldValidation,
}

/// Handling of unknown and repeated fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// A successful write.
pub(crate) struct WriteResult {
    pub(crate) object: Arc<Stored>,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

impl ResourceRequest<'_> {
    pub(crate) fn timestamp(&self) -> String {
        format_timestamp(self.started)
    }

    /// Returns the write as policies and webhooks see it.
    pub(super) fn attributes<'b>(
        &'b self,
        state: &'b ServerState,
        operation: Operation,
        name: &'b str,
        options: &'b Value,
    ) -> Attributes<'b> {
        let own_name = self.target.resource.is_namespace().then_some(name);
        Attributes {
            store: &state.store,
            registry: &state.registry,
            target: &self.target,
            kind: Kind::from_target(&self.target),
            namespace: self.namespace.as_deref().or(own_name).unwrap_or_default(),
            name,
            subresource: self.subresource,
            operation,
            user: &self.user,
            dry_run: options.get("dryRun").is_some_and(|stages| *stages == json!(["All"])),
            options,
            answers: self.answers,
        }
    }

    /// Returns the options of a create or an update as objects.
    pub(super) fn options_object(&self, kind: &str, options: &Options) -> Value {
        let mut object = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
        for name in ["fieldManager", "fieldValidation"] {
            if let Some(value) = self.http.parameter(name) {
                object[name] = json!(value);
            }
        }
        if options.dry_run {
            object["dryRun"] = json!(["All"]);
        }
        object
    }

    /// Returns the attributes for authorization of this request with another verb.
    pub(crate) fn to_authorization_request(&self, verb: &str) -> AuthorizationRequest {
        AuthorizationRequest {
            verb: verb.to_owned(),
            group: self.target.resource.group.clone(),
            resource: self.target.resource.plural.clone(),
            subresource: self.subresource.to_owned(),
            namespace: self.namespace.clone().unwrap_or_default(),
            name: self.name.clone(),
            path: None,
        }
    }

    /// Returns the rules of the requested kind.
    pub(crate) fn strategy(&self) -> &'static dyn Strategy {
        strategy_for(&self.target.resource)
    }

    /// True if the request writes to `/status` and creates the object if it is missing.
    pub(crate) fn creates_by_status(&self) -> bool {
        self.is_status() && self.strategy().allows_create_by_status()
    }

    /// True for server-side apply.
    pub(crate) fn is_apply(&self) -> bool {
        let media = self.http.headers.content_type.split(';').next().unwrap_or_default().trim();
        self.http.method == Method::PATCH && media == APPLY
    }

    /// True for the `/status` subresource.
    pub(crate) fn is_status(&self) -> bool {
        self.subresource == "status"
    }

    /// Checks that the client asks for `PartialObjectMetadata` of one object and `PartialObjectMetadataList` of a list.
    pub(super) fn check_metadata_form(&self, of_list: bool) -> Result<(), ApiError> {
        let watching = self.http.flag("watch");
        if self.format.representation != Representation::Metadata
            || watching
            || media::wants_metadata_list(self.http) == of_list
        {
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
            group: conversion::storage_group(resource).to_owned(),
            version: resource.storage.clone(),
            kind: resource.kind.clone(),
            plural: resource.plural.clone(),
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }

    pub(crate) fn attribution(&self, options: &Options, verb: Verb) -> Attribution {
        let client = || Actor::Client {
            user_agent: self.http.headers.user_agent.clone(),
            field_manager: options.manager.clone(),
        };
        let actor = self.controller.map_or_else(client, Actor::Controller);
        Attribution { actor, verb, subresource: self.subresource }
    }

    /// Reads the options of a write from the query.
    pub(crate) fn options(&self, kind: &str) -> Result<Options, ApiError> {
        let refuse = |error: FieldError| Err(ApiError::invalid_kind("meta.k8s.io", kind, "", &[error]));
        let dry_run = match self.http.query.get("dryRun").map(String::as_str) {
            None => false,
            Some("All") => true,
            Some(other) => {
                return refuse(FieldError::unsupported("dryRun", &json!([other]), &["\"All\"".to_owned()]));
            }
        };
        let validation = match self.http.parameter("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let supported = ["\"\"", "\"Ignore\"", "\"Strict\"", "\"Warn\""].map(str::to_owned);
                return refuse(FieldError::unsupported("fieldValidation", &json!(other), &supported));
            }
        };
        let manager = self.http.parameter("fieldManager").map_or_else(|| self.agent_name(), str::to_owned);
        if manager.len() > MANAGER_BYTES_MAX {
            return refuse(FieldError::too_long("fieldManager", MANAGER_BYTES_MAX));
        }
        if let Some((position, character)) = manager.char_indices().find(|(_, character)| character.is_control()) {
            let detail = format!("invalid character U+{:04X} (at position {position})", u32::from(character));
            return refuse(FieldError::invalid("fieldManager", &json!(manager), &detail));
        }
        Ok(Options { dry_run, manager, validation })
    }

    /// Returns the default field manager: the user agent up to the first slash.
    fn agent_name(&self) -> String {
        let agent = self.http.headers.user_agent.split('/').next().unwrap_or_default();
        let name: String = agent.chars().filter(|character| !character.is_control()).take(MANAGER_BYTES_MAX).collect();
        if name.is_empty() { "unknown".to_owned() } else { name }
    }

    /// Returns the response to a successful write.
    pub(super) fn response_to_write(&self, result: &WriteResult) -> Response {
        let status = if result.created { 201 } else { 200 };
        let body = render::object(&self.target, self.format.representation, self.now, &result.object);
        let mut response = Response::from_json(status, body);
        for warning in &result.warnings {
            response = response.with_warning(warning);
        }
        response
    }
}

pub(super) const APPLY: &str = "application/apply-patch+yaml";
