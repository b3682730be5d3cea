//! How a request that succeeds is answered: each status is a type, so that the document knows it.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::json;
use sindri_model::wire::{AGENT_STATUS_HEADER, AgentStatus};

use super::describe::{Answer, Operation, agent_status_schema, json_content};

/// Something was made, and this is it.
pub(crate) struct Created<T>(pub T);

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, Json(self.0)).into_response()
    }
}

impl<T: JsonSchema> Answer for Created<T> {
    fn tell(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        operation.answers.insert(201, json_content::<T>("It was made.", schemas));
    }
}

/// It was done, and there is nothing to say.
pub(crate) struct NoContent;

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl Answer for NoContent {
    fn tell(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        operation.answers.insert(204, json!({"description": "It was done."}));
    }
}

/// It was noted; the agent is told its own status, if that is known.
pub(crate) struct Noted {
    pub status: Option<AgentStatus>,
}

impl IntoResponse for Noted {
    fn into_response(self) -> Response {
        let mut response = StatusCode::NO_CONTENT.into_response();
        if let Some(status) = self.status {
            response.headers_mut().insert(AGENT_STATUS_HEADER, HeaderValue::from_static(status.as_str()));
        }
        response
    }
}

impl Answer for Noted {
    fn tell(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        let status = json!({"description": "The agent's own status.", "schema": agent_status_schema()});
        let answer = json!({"description": "It was noted.", "headers": {AGENT_STATUS_HEADER: status}});
        operation.answers.insert(204, answer);
    }
}

/// It was done; an empty object, because existing clients read one.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Done {}
