//! Description of an operation by the types of its handler: parameters, body, responses and errors.
//!
//! The OpenAPI document is generated from it, so that it cannot differ from what the compiler has checked.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::State;
use http::HeaderName;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};
use sindri_model::wire::AgentStatus;

use super::authentication::Actor;
use super::error_response::ErrorResponse;
use crate::broker::Broker;

/// Description of one operation.
#[derive(Debug, Default)]
pub(crate) struct Operation {
    /// Schemas of the parameters in braces in the path, in their order.
    pub path_schemas: Vec<Value>,
    /// Parameters in the query and in headers.
    pub parameters: Vec<Value>,
    pub body: Option<Value>,
    /// Responses to requests that succeed, by status.
    pub responses: BTreeMap<u16, Value>,
    /// Statuses of errors.
    pub errors: BTreeSet<u16>,
}

/// An argument of a handler, extracted from the request.
pub(crate) trait DescribeRequest {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator);
}

/// The return type of a handler.
pub(crate) trait DescribeResponse {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator);
}

/// A handler with arguments `T`.
pub(crate) trait DescribeHandler<T> {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator);
}

macro_rules! describe_handlers {
    ($($argument:ident),*) => {
        impl<F, Fut, $($argument,)*> DescribeHandler<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Fut,
            Fut: Future<Output: DescribeResponse>,
            $($argument: DescribeRequest,)*
        {
            fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator) {
                $($argument::describe(operation, schemas);)*
                <Fut::Output as DescribeResponse>::describe(operation, schemas);
            }
        }
    };
}

describe_handlers!();
describe_handlers!(A);
describe_handlers!(A, B);
describe_handlers!(A, B, C);
describe_handlers!(A, B, C, D);
describe_handlers!(A, B, C, D, E);
describe_handlers!(A, B, C, D, E, G);

impl DescribeRequest for State<Broker> {
    fn describe(_operation: &mut Operation, _schemas: &mut SchemaGenerator) {}
}

/// Describes nothing: the table of routes has the roles.
impl DescribeRequest for Actor {
    fn describe(_operation: &mut Operation, _schemas: &mut SchemaGenerator) {}
}

impl<T: DescribeResponse> DescribeResponse for Result<T, ErrorResponse> {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        T::describe(operation, schemas);
    }
}

impl<T: JsonSchema> DescribeResponse for Json<T> {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        operation.responses.insert(200, json_content::<T>(OK, schemas));
    }
}

impl DescribeResponse for &'static str {
    fn describe(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        operation.responses.insert(200, text_content("text/plain"));
    }
}

impl DescribeResponse for ([(HeaderName, &'static str); 1], String) {
    fn describe(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        operation.responses.insert(200, text_content("application/openmetrics-text"));
    }
}

/// Description of a response with status 200 that needs no further explanation.
pub(crate) const OK: &str = "Success.";

/// Returns a response whose body is a `T` as JSON.
pub(crate) fn json_content<T: JsonSchema>(description: &str, schemas: &mut SchemaGenerator) -> Value {
    let schema = schemas.subschema_for::<T>();
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}

fn text_content(media: &str) -> Value {
    json!({"description": OK, "content": {media: {"schema": {"type": "string"}}}})
}

/// Returns an optional parameter; `location` is `query`, `header` or `path`.
pub(crate) fn parameter(location: &str, name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": location, "description": description, "schema": schema})
}

/// Returns the schema of an agent's status in a header.
pub(crate) fn agent_status_schema() -> Value {
    json!({"type": "string", "enum": [AgentStatus::Active.as_str(), AgentStatus::Inactive.as_str()]})
}
