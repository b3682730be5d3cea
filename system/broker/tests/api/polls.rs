//! Polls without a wait.

use serde_json::{Value, json};
use sindri_broker::Limits;

use crate::support::text;
use crate::test_server::{TestServer, get, header, post};

/// Returns the parts of a response head that must be equal; the date and the request id differ.
fn compared_parts(head: &str) -> Vec<Option<&str>> {
    let names = ["etag", "x-sindri-epoch", "sindri-agent-status", "content-type", "content-length"];
    let status = head.lines().next();
    std::iter::once(status).chain(names.into_iter().map(|name| header(head, name))).collect()
}

#[tokio::test]
async fn a_poll_has_the_same_response_from_the_store_and_from_memory() {
    let server = TestServer::new(Limits::default()).await;
    let body = json!({"name": "east", "cluster_name": "c"}).to_string();
    let created = server.request(&format!("{}{body}", post("/api/v1/agents", &server.admin, body.len()))).await;
    let created: Value = serde_json::from_str(&created.1).unwrap();
    let (agent, key) = (text(&created["agent"]["id"]), text(&created["initial_pak"]));
    let plain = format!("/api/v1/agents/{agent}/target-state");
    let with_mode = format!("{plain}?mode=full");
    let first = server.request(&get(&with_mode, &key)).await;
    assert_eq!(first, (200, "[]".to_owned()));
    let with_tag =
        |path: &str, etag: &str| get(path, &key).replace("\r\n\r\n", &format!("\r\nif-none-match: {etag}\r\n\r\n"));
    let mut heads = Vec::new();
    for path in [&with_mode, &plain] {
        let mut peer = server.connect().await;
        peer.send(&get(path, &key)).await;
        let whole = peer.read_head().await;
        assert!(header(&whole, "x-request-id").is_some());
        assert_eq!(header(&whole, "sindri-agent-status"), Some("INACTIVE"));
        let etag = header(&whole, "etag").unwrap().to_owned();
        let mut peer = server.connect().await;
        peer.send(&with_tag(path, &etag)).await;
        let unchanged = peer.read_head().await;
        assert!(unchanged.starts_with("HTTP/1.1 304"), "{unchanged}");
        heads.push((whole, unchanged));
    }
    assert_eq!(compared_parts(&heads[0].0), compared_parts(&heads[1].0));
    assert_eq!(compared_parts(&heads[0].1), compared_parts(&heads[1].1));
    assert_eq!(server.request(&get(&plain, &format!("{key}x"))).await.0, 401);
    assert_eq!(server.request(&get(&plain.replace("target", "targets"), &key)).await.0, 404);
}
