//! What the types of a handler say of it: parameters, body, answers and refusals.
//!
//! The OpenAPI document is made of this, so that it cannot say anything else than what the compiler has checked.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::State;
use http::HeaderName;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};
use sindri_model::wire::AgentStatus;

use super::authentication::Actor;
use super::error_response::Refusal;
use crate::broker::Broker;

/// What is known of an operation.
#[derive(Debug, Default)]
pub(crate) struct Operation {
    /// What stands in the braces of the path, in their order.
    pub in_path: Vec<Value>,
    /// In the query and in headers.
    pub parameters: Vec<Value>,
    pub body: Option<Value>,
    pub answers: BTreeMap<u16, Value>,
    pub refusals: BTreeSet<u16>,
}

/// A part of a request, as a handler takes it.
pub(crate) trait Part {
    fn tell(operation: &mut Operation, schemas: &mut SchemaGenerator);
}

/// What a handler returns.
pub(crate) trait Answer {
    fn tell(operation: &mut Operation, schemas: &mut SchemaGenerator);
}

/// A handler that takes parts `T`.
pub(crate) trait Described<T> {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator);
}

macro_rules! described {
    ($($part:ident),*) => {
        impl<F, Fut, $($part,)*> Described<($($part,)*)> for F
        where
            F: Fn($($part),*) -> Fut,
            Fut: Future<Output: Answer>,
            $($part: Part,)*
        {
            fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator) {
                $($part::tell(operation, schemas);)*
                <Fut::Output as Answer>::tell(operation, schemas);
            }
        }
    };
}

described!();
described!(A);
described!(A, B);
described!(A, B, C);
described!(A, B, C, D);
described!(A, B, C, D, E);
described!(A, B, C, D, E, G);

impl Part for State<Broker> {
    fn tell(_operation: &mut Operation, _schemas: &mut SchemaGenerator) {}
}

/// Who asks is in the table of routes.
impl Part for Actor {
    fn tell(_operation: &mut Operation, _schemas: &mut SchemaGenerator) {}
}

impl<T: Answer> Answer for Result<T, Refusal> {
    fn tell(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        T::tell(operation, schemas);
    }
}

impl<T: JsonSchema> Answer for Json<T> {
    fn tell(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        operation.answers.insert(200, json_content::<T>("It is so.", schemas));
    }
}

impl Answer for &'static str {
    fn tell(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        operation.answers.insert(200, text_content("text/plain"));
    }
}

impl Answer for ([(HeaderName, &'static str); 1], String) {
    fn tell(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        operation.answers.insert(200, text_content("application/openmetrics-text"));
    }
}

/// A response whose body is a `T` as JSON.
pub(crate) fn json_content<T: JsonSchema>(description: &str, schemas: &mut SchemaGenerator) -> Value {
    let schema = schemas.subschema_for::<T>();
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}

fn text_content(media: &str) -> Value {
    json!({"description": "It is so.", "content": {media: {"schema": {"type": "string"}}}})
}

/// A parameter that may be left out.
pub(crate) fn parameter(place: &str, name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": place, "description": description, "schema": schema})
}

/// As the document has it.
pub(crate) fn agent_status_schema() -> Value {
    json!({"type": "string", "enum": [AgentStatus::Active.as_str(), AgentStatus::Inactive.as_str()]})
}
