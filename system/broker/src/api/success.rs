//! How a request that succeeds is answered: each status is a type, so that the document knows it.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::json;

use super::describe::{Answer, Operation, json_content};

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

/// It was done; an empty object, because existing clients read one.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Done {}
