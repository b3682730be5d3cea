//! Quotas of generators.

use serde_json::{Value, json};
use sindri_broker::Quotas;

use crate::support::{Api, TestResponse, text};

async fn submit(api: &Api, key: &str, stack: &str, bytes: usize) -> TestResponse {
    let body = json!({"yaml_content": format!("a: {}", "x".repeat(bytes - 3))});
    api.post(key, &format!("/stacks/{stack}/deployment-objects"), &body).await
}

async fn create_stack(api: &Api, generator: &(String, String), name: &str) -> TestResponse {
    api.post(&generator.1, "/stacks", &json!({"name": name, "generator_id": generator.0})).await
}

fn expect_message(response: TestResponse, status: u16, code: &str, part: &str) {
    let problem: Value = response.json();
    assert!(text(&problem["message"]).contains(part), "{problem}");
    assert_eq!(response.expect_error(status), code);
}

#[tokio::test]
async fn a_generator_has_as_many_stacks_as_its_quota() {
    let api = Api::with_quotas(Quotas { stacks: Some(2), ..Quotas::default() }).await;
    let (shop, other) = (api.create_generator("shop").await, api.create_generator("other").await);
    let first = create_stack(&api, &shop, "one").await.expect_status(201).json();
    create_stack(&api, &shop, "two").await.expect_status(201);
    expect_message(create_stack(&api, &shop, "three").await, 403, "quota_exceeded", "may have 2 (quotas.stacks)");
    create_stack(&api, &other, "one").await.expect_status(201);
    // An administrator has no quota, and a deleted stack makes room at once.
    api.create_stack("by-admin", &shop.0).await;
    for stack in [text(&first["id"])] {
        api.delete(&format!("/stacks/{stack}")).await.expect_status(204);
    }
    expect_message(create_stack(&api, &shop, "three").await, 403, "quota_exceeded", "has 2 stacks");
    let listed = api.get(&shop.1, "/stacks").await.expect_status(200).json();
    api.delete(&format!("/stacks/{}", text(&listed[0]["id"]))).await.expect_status(204);
    create_stack(&api, &shop, "three").await.expect_status(201);
}

#[tokio::test]
async fn the_revisions_of_a_generator_have_at_most_the_size_of_its_quota() {
    let api = Api::with_quotas(Quotas { revision_bytes: Some(1_000), ..Quotas::default() }).await;
    let shop = api.create_generator("shop").await;
    let stack = api.create_stack("web", &shop.0).await;
    submit(&api, &shop.1, &stack, 600).await.expect_status(201);
    submit(&api, &shop.1, &stack, 400).await.expect_status(201);
    let refused = submit(&api, &shop.1, &stack, 10).await;
    expect_message(refused, 403, "quota_exceeded", "have 1000 bytes, and may have 1000 (quotas.revision_bytes)");
    let marker = json!({"yaml_content": "", "is_deletion_marker": true});
    api.post(&shop.1, &format!("/stacks/{stack}/deployment-objects"), &marker).await.expect_status(201);
    submit(&api, &api.admin, &stack, 10).await.expect_status(201);
}

#[tokio::test]
async fn a_generator_submits_at_most_its_quota_in_a_minute() {
    let api = Api::with_quotas(Quotas { submissions_per_minute: Some(3), ..Quotas::default() }).await;
    let (shop, other) = (api.create_generator("shop").await, api.create_generator("other").await);
    let (stack, elsewhere) = (api.create_stack("web", &shop.0).await, api.create_stack("web", &other.0).await);
    for _ in 0..3 {
        submit(&api, &shop.1, &stack, 10).await.expect_status(201);
    }
    let refused = submit(&api, &shop.1, &stack, 10).await;
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((15..=21).contains(&wait), "{wait}");
    expect_message(refused, 429, "rate_limited", "3 times per minute (quotas.submissions_per_minute)");
    submit(&api, &other.1, &elsewhere, 10).await.expect_status(201);
    submit(&api, &api.admin, &stack, 10).await.expect_status(201);
    api.get(&shop.1, "/stacks").await.expect_status(200);
}

#[tokio::test]
async fn an_agent_or_a_generator_sends_at_most_its_quota_of_requests_in_a_minute() {
    let api = Api::with_quotas(Quotas { requests_per_minute: Some(4), ..Quotas::default() }).await;
    let shop = api.create_generator("shop").await;
    let agent = api.create_agent("east", &[&shop.0]).await;
    let poll = format!("/agents/{}/target-state", agent.0);
    for (key, path) in [(&shop.1, "/stacks"), (&agent.1, poll.as_str())] {
        for _ in 0..4 {
            api.get(key, path).await.expect_status(200);
        }
        let refused = api.get(key, path).await;
        assert!((10..=16).contains(&refused.header("retry-after").parse().unwrap()));
        expect_message(refused, 429, "rate_limited", "4 requests per minute (quotas.requests_per_minute)");
    }
    for _ in 0..10 {
        api.get(&api.admin, "/stacks").await.expect_status(200);
    }
}
