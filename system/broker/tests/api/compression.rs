//! Compression of responses.

use axum::body::Body;
use http::Request;

use crate::support::{Api, Fleet, TestResponse};

async fn get_with_encoding(api: &Api, path: &str, key: &str, encoding: &str, tag: &str) -> TestResponse {
    let request = Request::get(path)
        .header("authorization", key)
        .header("accept-encoding", encoding)
        .header("if-none-match", tag)
        .body(Body::empty())
        .unwrap();
    api.send(request).await
}

#[tokio::test]
async fn only_a_long_response_is_compressed_if_the_client_accepts_it() {
    let api = Api::new().await;
    let plain = get_with_encoding(&api, "/docs/openapi.json", "", "identity", "").await.expect_status(200);
    assert!(plain.headers.get("content-encoding").is_none());
    assert_eq!(plain.header("vary"), "accept-encoding");
    let packed = get_with_encoding(&api, "/docs/openapi.json", "", "gzip, br", "").await.expect_status(200);
    assert_eq!((packed.header("content-encoding"), packed.header("vary")), ("gzip", "accept-encoding"));
    assert!(packed.headers.get("content-length").is_none());
    assert!(packed.body.len() * 4 < plain.body.len(), "{} of {}", packed.body.len(), plain.body.len());
    assert_eq!(packed.body[..2], [0x1f, 0x8b]);
    let short = get_with_encoding(&api, "/healthz", "", "gzip", "").await.expect_status(200);
    assert!(short.headers.get("content-encoding").is_none());
}

#[tokio::test]
async fn a_poll_with_the_etag_of_a_compressed_response_is_not_modified() {
    let fleet = Fleet::new().await;
    let yaml = format!("# {}\na: 1\n", "x".repeat(2000));
    let path = format!("/stacks/{}/deployment-objects", fleet.stack);
    fleet.api.post(&fleet.api.admin, &path, &serde_json::json!({"yaml_content": yaml})).await.expect_status(201);
    let path = format!("/api/v1/agents/{}/target-state", fleet.agent.0);
    let first = get_with_encoding(&fleet.api, &path, &fleet.agent.1, "gzip", "").await.expect_status(200);
    assert_eq!(first.header("content-encoding"), "gzip");
    let tag = first.header("etag").to_owned();
    assert!(tag.starts_with("W/\""), "{tag}");
    for encoding in ["gzip", "identity"] {
        get_with_encoding(&fleet.api, &path, &fleet.agent.1, encoding, &tag).await.expect_status(304);
    }
}
