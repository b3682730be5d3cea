//! Responses of requests that succeed. Each status is a type, so that the OpenAPI document has it.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::json;
use sindri_model::wire::{AGENT_STATUS_HEADER, AgentStatus};

use super::connection::closing_connection;
use super::describe::{DescribeResponse, Operation, agent_status_schema, json_content};

/// 201 with the created object.
pub(crate) struct Created<T>(pub T);

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, Json(self.0)).into_response()
    }
}

impl<T: JsonSchema> DescribeResponse for Created<T> {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        operation.responses.insert(201, json_content::<T>("Created.", schemas));
    }
}

/// 204 without a body.
pub(crate) struct NoContent;

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl DescribeResponse for NoContent {
    fn describe(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        operation.responses.insert(204, json!({"description": "Done; there is no body."}));
    }
}

/// 204 to a heartbeat, with the agent's status in a header; it is not known while the store does not respond.
pub(crate) struct HeartbeatAccepted {
    pub status: Option<AgentStatus>,
}

impl IntoResponse for HeartbeatAccepted {
    fn into_response(self) -> Response {
        let response = StatusCode::NO_CONTENT.into_response();
        match self.status {
            Some(status) => {
                let mut response = response;
                response.headers_mut().insert(AGENT_STATUS_HEADER, HeaderValue::from_static(status.as_str()));
                response
            }
            None => closing_connection(response),
        }
    }
}

impl DescribeResponse for HeartbeatAccepted {
    fn describe(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        let status = json!({"description": "Status of the agent.", "schema": agent_status_schema()});
        let response = json!({"description": "The heartbeat was accepted.", "headers": {AGENT_STATUS_HEADER: status}});
        operation.responses.insert(204, response);
    }
}

/// Empty JSON object, which existing clients expect where there is nothing to return.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EmptyObject {}
