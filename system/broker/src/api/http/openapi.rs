//! The OpenAPI document, generated from routes and the types of their handlers.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use sindri_model::Problem;

use super::describe::{DescribeResponse, Operation, parameter};
use super::error_response::STATUSES;
use super::route::{Route, Tag};

/// Error statuses of every operation.
const ERRORS_OF_EVERY_OPERATION: [u16; 2] = [500, 503];
/// Error statuses of every operation that needs a key.
const ERRORS_WITH_KEY: [u16; 3] = [401, 403, 429];

/// The document as a response.
pub(crate) struct Document(pub Bytes);

impl IntoResponse for Document {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.0));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

impl DescribeResponse for Document {
    fn describe(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        let content = json!({"application/json": {"schema": {"type": "object"}}});
        operation.responses.insert(200, json!({"description": "The OpenAPI document.", "content": content}));
    }
}

/// Describes routes, each with its whole path, as an OpenAPI 3.1 document.
pub(crate) fn describe_routes(routes: impl IntoIterator<Item = (String, Route)>) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.definitions_path = "/components/schemas".into();
    });
    let mut schemas = settings.into_generator();
    schemas.subschema_for::<Problem>();
    let mut paths = Map::new();
    for (path, route) in routes {
        let operation = describe_operation(&path, &route, &mut schemas);
        let operations = paths.entry(path).or_insert_with(|| json!({}));
        operations[route.method.as_str().to_ascii_lowercase()] = operation;
    }
    let schemas = schemas.take_definitions(true);
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sindri broker",
            "description": "Declares which stacks run on which clusters, and returns the status that agents report.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The broker that serves this document."}],
        "tags": tags(),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": error_responses(),
            "securitySchemes": {
                "key": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "A key, with or without the scheme Bearer.",
                },
            },
        },
    });
    write_enums(&mut document);
    document
}

fn tags() -> Vec<Value> {
    let to_value = |tag: Tag| json!({"name": tag.describe().0, "description": tag.describe().1});
    Tag::ALL.into_iter().map(to_value).collect()
}

/// Replaces each `oneOf` of single texts by an `enum`, because generators of clients do not understand the former. The
/// descriptions of the texts become a part of the description of the whole.
fn write_enums(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(write_enums),
        Value::Object(fields) => {
            if let Some((texts, meaning)) = fields.get("oneOf").and_then(Value::as_array).and_then(|one| to_enum(one)) {
                fields.remove("oneOf");
                let whole = fields.get("description").and_then(Value::as_str).unwrap_or_default();
                fields.insert("description".to_owned(), format!("{whole}\n\n{meaning}").trim().into());
                fields.insert("type".to_owned(), "string".into());
                fields.insert("enum".to_owned(), texts);
            }
            fields.values_mut().for_each(write_enums);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the texts and what they mean; `None` if an alternative is not a single text.
fn to_enum(alternatives: &[Value]) -> Option<(Value, String)> {
    let texts: Option<Vec<&str>> = alternatives.iter().map(|one| one.get("const")?.as_str()).collect();
    let texts = texts?;
    let describe = |(text, one): (&&str, &Value)| match one["description"].as_str() {
        Some(meaning) => format!("- `{text}`: {meaning}"),
        None => format!("- `{text}`"),
    };
    let meaning: Vec<String> = texts.iter().zip(alternatives).map(describe).collect();
    Some((json!(texts), meaning.join("\n")))
}

fn describe_operation(path: &str, route: &Route, schemas: &mut SchemaGenerator) -> Value {
    let mut description = Operation::default();
    (route.describe)(&mut description, schemas);
    let mut statuses = description.errors;
    statuses.extend(route.other_errors.iter().chain(&ERRORS_OF_EVERY_OPERATION));
    if route.roles.is_some() {
        statuses.extend(ERRORS_WITH_KEY);
    }
    let mut responses: Map<String, Value> =
        description.responses.into_iter().map(|(status, response)| (status.to_string(), response)).collect();
    responses.extend(statuses.into_iter().map(|status| (status.to_string(), error_reference(status))));
    let parameters: Vec<Value> =
        path_parameters(path, description.path_schemas).chain(description.parameters).collect();
    let mut operation = json!({
        "operationId": route.name,
        "tags": [route.tag.describe().0],
        "summary": route.summary,
        "description": describe_roles(route),
        "parameters": parameters,
        "responses": responses,
        "security": [],
    });
    if let Some(roles) = route.role_names() {
        operation["security"] = json!([{"key": []}]);
        operation["x-roles"] = json!(roles);
    }
    if let Some(body) = description.body {
        operation["requestBody"] = body;
    }
    operation
}

/// Returns the description of an operation: its summary as a sentence, and who may use it.
fn describe_roles(route: &Route) -> String {
    let summary = route.summary;
    let Some(roles) = route.role_names() else { return format!("{summary}. No key is needed.") };
    let condition = if route.needs_active_agent { " An agent that was deactivated is refused." } else { "" };
    format!("{summary}. Keys: {}.{condition}", roles.join(", "))
}

/// Returns the parameters in braces in the path, with their schemas.
fn path_parameters(path: &str, schemas: Vec<Value>) -> impl Iterator<Item = Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let names: Vec<String> = names.map(str::to_owned).collect();
    names.into_iter().zip(schemas).map(|(name, schema)| {
        let mut parameter = parameter("path", &name, "Id or name in the path.", schema);
        parameter["required"] = true.into();
        parameter
    })
}

fn error_reference(status: u16) -> Value {
    json!({"$ref": format!("#/components/responses/Error{status}")})
}

fn error_responses() -> Map<String, Value> {
    let content = json!({"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}});
    let to_response = |description: &str| json!({"description": description, "content": content});
    STATUSES.iter().map(|(status, meaning)| (format!("Error{status}"), to_response(meaning))).collect()
}
