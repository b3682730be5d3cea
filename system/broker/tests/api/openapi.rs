//! The OpenAPI document: the committed file equals the generated one, and it is consistent.

use std::collections::BTreeSet;

use axum::body::Body;
use http::Request;
use serde_json::Value;
use sindri_broker::openapi_document;

use crate::support::Api;

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

#[test]
fn the_committed_document_is_the_generated_one() {
    let text = format!("{:#}\n", openapi_document());
    if is_update_requested() {
        std::fs::write(COMMITTED, &text).unwrap();
    }
    let committed = std::fs::read_to_string(COMMITTED).unwrap_or_default();
    let is_current = committed == text;
    assert!(is_current, "docs/openapi.json is old: UPDATE=1 cargo test --workspace --test api openapi");
}

/// Returns true if the file is to be written instead of compared.
fn is_update_requested() -> bool {
    #[expect(clippy::disallowed_methods, reason = "a test is a program of its own")]
    std::env::var("UPDATE").is_ok()
}

#[tokio::test]
async fn the_document_needs_no_key() {
    let api = Api::new().await;
    let response = api.send(Request::get("/docs/openapi.json").body(Body::empty()).unwrap()).await.expect_status(200);
    assert_eq!(response.header("content-type"), "application/json");
    assert_eq!(response.json(), openapi_document());
}

fn operations(document: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, methods)| {
        methods.as_object().unwrap().iter().map(move |(method, described)| (path, method, described))
    })
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                found.insert(reference.clone());
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn every_reference_resolves() {
    let (document, mut found) = (openapi_document(), BTreeSet::new());
    references(&document, &mut found);
    assert!(found.contains("#/components/schemas/Problem"));
    for reference in found {
        assert!(document.pointer(reference.strip_prefix('#').unwrap()).is_some(), "{reference}");
    }
}

#[test]
fn every_path_parameter_is_declared_and_every_operation_id_is_unique() {
    let (document, mut names) = (openapi_document(), BTreeSet::new());
    for (path, method, described) in operations(&document) {
        assert!(names.insert(described["operationId"].as_str().unwrap()), "{method} {path}");
        let parameters = described["parameters"].as_array().unwrap();
        let declared: Vec<&str> = parameters
            .iter()
            .filter(|parameter| parameter["in"] == "path" && parameter["required"] == true)
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        let in_path: Vec<&str> = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        assert_eq!(declared, in_path, "{method} {path}");
        let all: BTreeSet<_> =
            parameters.iter().map(|described| (described["in"].to_string(), described["name"].to_string())).collect();
        assert_eq!(all.len(), parameters.len(), "{method} {path}");
        assert!(parameters.iter().all(|parameter| parameter["schema"].is_object()), "{method} {path}");
    }
    assert!(names.len() > 60);
}

#[test]
fn every_operation_describes_its_responses_errors_and_roles() {
    let document = openapi_document();
    for (path, method, described) in operations(&document) {
        let statuses: Vec<&String> = described["responses"].as_object().unwrap().keys().collect();
        assert!(statuses.iter().any(|status| status.starts_with('2')), "{method} {path}");
        assert!(statuses.iter().any(|status| *status == "503"), "{method} {path}");
        assert!(!described["summary"].as_str().unwrap().is_empty());
        if path.starts_with("/api/") {
            assert!(
                ["401", "403"].iter().all(|status| statuses.iter().any(|described| described == status)),
                "{method} {path}"
            );
            assert_eq!(described["security"][0]["key"], serde_json::json!([]), "{method} {path}");
            assert!(!described["x-roles"].as_array().unwrap().is_empty(), "{method} {path}");
        }
        if ["post", "put", "patch"].contains(&method.as_str()) && described.get("requestBody").is_some() {
            assert!(statuses.iter().any(|status| *status == "415"), "{method} {path}");
        }
    }
    let key = &document["components"]["securitySchemes"]["key"];
    assert_eq!((&key["type"], &key["in"], &key["name"]), (&"apiKey".into(), &"header".into(), &"Authorization".into()));
}

#[test]
fn texts_and_lists_of_requests_have_the_limits_that_the_broker_enforces() {
    let document = openapi_document();
    for (schema, field, bound) in [
        ("NewStack", "description", "/maxLength"),
        ("UpdateStackRequest", "description", "/maxLength"),
        ("NewGenerator", "description", "/maxLength"),
        ("UpdateGeneratorRequest", "description", "/maxLength"),
        ("CreateDeploymentObjectRequest", "yaml_content", "/maxLength"),
        ("CreateWebhookRequest", "signing_secret", "/maxLength"),
        ("UpdateWebhookRequest", "signing_secret", "/maxLength"),
        ("CreateWebhookRequest", "event_types", "/items/maxLength"),
        ("UpdateWebhookRequest", "event_types", "/items/maxLength"),
        ("UpdateWebhookRequest", "event_types", "/maxItems"),
    ] {
        let described = &document["components"]["schemas"][schema]["properties"][field];
        assert!(described.pointer(bound).is_some_and(|bound| bound.is_u64()), "{schema}.{field}: {described}");
    }
}
