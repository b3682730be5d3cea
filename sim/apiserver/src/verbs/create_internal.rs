//! Create by a controller of the server itself, with the same defaults, admission and validation as for clients.

use std::sync::Arc;

use http::Method;
use jiff::Timestamp;
use serde_json::Value;

use super::create::create;
use super::resource_request::{FieldValidation, Options, ResourceRequest};
use crate::auth::user::User;
use crate::http::error::ApiError;
use crate::http::media::ResponseFormat;
use crate::http::request::Request;
use crate::http::webhook_call::WebhookAnswers;
use crate::state::server_state::ServerState;
use crate::storage::journal::Verb;

/// Names of a controller that creates objects.
#[derive(Clone, Copy)]
pub(crate) struct ControllerIdentity {
    /// Name of the controller in the journal.
    pub(crate) controller: &'static str,
    /// Field manager of its writes.
    pub(crate) manager: &'static str,
}

/// Creates an object for a controller.
pub(crate) fn create_for_controller(
    state: &mut ServerState,
    now: Timestamp,
    maker: ControllerIdentity,
    (group, plural): (&str, &str),
    namespace: Option<&str>,
    object: Value,
) -> Result<Arc<Value>, ApiError> {
    let target = state.registry.preferred(group, plural).ok_or_else(ApiError::no_such_resource)?;
    let http_request = Request::new(Method::POST, "/").map_err(|error| ApiError::bad_request(error.to_string()))?;
    let answers = WebhookAnswers::default();
    let request = ResourceRequest {
        now,
        started: now,
        http: &http_request,
        user: User::default(),
        target,
        namespace: namespace.map(str::to_owned),
        name: String::new(),
        subresource: "",
        format: ResponseFormat::PLAIN,
        controller: Some(maker.controller),
        answers: &answers,
    };
    let options = Options { dry_run: false, manager: maker.manager.to_owned(), validation: FieldValidation::Ignore };
    Ok(create(state, &request, &options, object, Verb::Create, Vec::new())?.object.object())
}
