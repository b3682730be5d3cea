//! Pagination of lists.

use serde_json::{Value, json};

use crate::support::{Api, Fleet, TestResponse, text};

pub fn next_link(response: &TestResponse) -> Option<String> {
    let link = response.headers.get("link")?.to_str().unwrap();
    Some(link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap().to_owned())
}

/// Follows the links from page to page.
async fn list_pages(api: &Api, path: &str, query: &str) -> (Vec<Value>, usize) {
    let (mut all, mut parts, mut query) = (Vec::new(), 0, query.to_owned());
    loop {
        let response = api.get(&api.admin, &format!("{path}{query}")).await.expect_status(200);
        parts += 1;
        all.extend(response.json().as_array().unwrap().iter().cloned());
        match next_link(&response) {
            Some(found) => query = found,
            None => return (all, parts),
        }
    }
}

#[tokio::test]
async fn the_pages_of_every_list_have_each_entry_once() {
    let fleet = Fleet::new().await;
    let (api, agent, stack) = (&fleet.api, &fleet.agent.0, &fleet.stack);
    for number in 0..5 {
        let generator = api.create_generator(&format!("g{number}")).await.0;
        api.create_agent(&format!("a{number}"), &[]).await;
        let other = api.create_stack(&format!("s{number}"), &fleet.generator.0).await;
        api.target(agent, &other).await;
        let revision = api.submit(stack, false).await;
        fleet.poll().await;
        api.report(&fleet.agent, &revision, "SUCCESS").await;
        api.create_webhook(&format!("w{number}"), &[]).await;
        let held = serde_json::json!({
            "deployment_object_id": revision["id"], "digest": number.to_string().repeat(64), "reasons": [], "plan": "",
        });
        api.put(&fleet.agent.1, &format!("/agents/{agent}/stacks/{stack}/approval"), &held).await.expect_status(200);
        let body = serde_json::json!({"agent_id": agent});
        api.post(&api.admin, &format!("/generators/{generator}/register"), &body).await.expect_status(201);
        for (path, body) in [
            (format!("/agents/{agent}/labels"), serde_json::json!({"agent_id": agent, "label": number.to_string()})),
            (format!("/stacks/{stack}/labels"), serde_json::json!(number.to_string())),
            (
                format!("/agents/{agent}/annotations"),
                serde_json::json!({"agent_id": agent, "key": number.to_string(), "value": ""}),
            ),
            (
                format!("/stacks/{stack}/annotations"),
                serde_json::json!({"stack_id": stack, "key": number.to_string(), "value": ""}),
            ),
        ] {
            api.post(&api.admin, &path, &body).await.expect_status(201);
        }
    }
    let webhooks = api.get(&api.admin, "/webhooks").await.json();
    for path in [
        "/agents".to_owned(),
        "/agent-events".to_owned(),
        "/approvals".to_owned(),
        "/generators".to_owned(),
        "/stacks".to_owned(),
        "/fleet".to_owned(),
        "/paks".to_owned(),
        "/webhooks".to_owned(),
        format!("/agents/{agent}/labels"),
        format!("/agents/{agent}/annotations"),
        format!("/agents/{agent}/events"),
        format!("/agents/{agent}/registrations"),
        format!("/agents/{agent}/stacks"),
        format!("/agents/{agent}/targets"),
        format!("/stacks/{stack}/labels"),
        format!("/stacks/{stack}/annotations"),
        format!("/stacks/{stack}/deployment-objects"),
        format!("/webhooks/{}/deliveries", text(&webhooks[0]["id"])),
    ] {
        let whole = api.get(&api.admin, &path).await.expect_status(200);
        assert!(next_link(&whole).is_none(), "{path}");
        let whole = whole.json().as_array().unwrap().clone();
        assert!(whole.len() >= 5, "{path} has {}", whole.len());
        let (all, parts) = list_pages(api, &path, "?limit=2").await;
        assert_eq!(all, whole, "{path}");
        assert_eq!(parts, whole.len() / 2 + 1, "{path}");
    }
}

#[tokio::test]
async fn a_link_keeps_the_other_parameters() {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    let response = api.get(&api.admin, "/admin/audit-logs?action=agent.%2A&limit=1").await.expect_status(200);
    let (link, body) = (next_link(&response).unwrap(), response.json());
    assert_eq!(link, format!("?action=agent.%2A&limit=1&after={}", text(&body["logs"][0]["id"])));
    let second = api.get(&api.admin, &format!("/admin/audit-logs{link}")).await.expect_status(200).json();
    assert_ne!(second["logs"][0], body["logs"][0]);
    assert!(text(&second["logs"][0]["action"]).starts_with("agent."));
}

#[tokio::test]
async fn the_audit_log_is_filtered_and_counted() {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    let list_audit_log =
        async |query: &str| api.get(&api.admin, &format!("/admin/audit-logs?{query}")).await.expect_status(200).json();
    let all = list_audit_log("").await;
    assert_eq!((&all["limit"], &all["offset"]), (&100.into(), &0.into()));
    assert_eq!(all["count"], all["total"]);
    let of_stack = list_audit_log(&format!("resource_type=stack&resource_id={}", fleet.stack)).await;
    assert_eq!(of_stack["total"], 1);
    assert_eq!(of_stack["logs"][0]["action"], "stack.created");
    assert_eq!(of_stack["logs"][0]["actor_type"], "admin");
    assert_eq!(list_audit_log("actor_type=agent").await["total"], 0);
    assert_eq!(list_audit_log("from=2100-01-01T00:00:00Z").await["total"], 0);
    assert_eq!(list_audit_log("to=2100-01-01T00:00:00Z").await["total"], all["total"]);
    let rest = list_audit_log("offset=1&limit=100000").await;
    assert_eq!((&rest["limit"], &rest["offset"]), (&1000.into(), &1.into()));
    assert_eq!(rest["logs"].as_array().unwrap()[..], all["logs"].as_array().unwrap()[1..]);
}

#[tokio::test]
async fn a_page_ends_when_its_texts_are_large_and_links_to_the_rest() {
    let fleet = Fleet::new().await;
    let (api, path) = (&fleet.api, format!("/stacks/{}/deployment-objects", fleet.stack));
    let comment = "#".repeat(1024 * 1024);
    for number in 0..9 {
        let request = serde_json::json!({"yaml_content": format!("a: {number}\n{comment}\n")});
        api.post(&api.admin, &path, &request).await.expect_status(201);
    }
    let first = api.get(&api.admin, &path).await.expect_status(200);
    assert!(first.body.len() < 6 * 1024 * 1024, "{}", first.body.len());
    assert!(next_link(&first).is_some());
    let (all, parts) = list_pages(api, &path, "").await;
    let checksums: std::collections::BTreeSet<String> = all.iter().map(|item| text(&item["yaml_checksum"])).collect();
    assert_eq!((all.len(), checksums.len(), parts), (9, 9, 3));
    let light = api.get(&api.admin, &format!("{path}?content=false")).await.expect_status(200);
    assert!(next_link(&light).is_none());
    let light = light.json();
    assert_eq!(light.as_array().unwrap().len(), 9);
    assert_eq!((&light[8]["yaml_content"], &light[8]["yaml_checksum"]), (&"".into(), &all[8]["yaml_checksum"]));
}

#[tokio::test]
async fn a_long_message_of_an_event_is_cut() {
    let fleet = Fleet::new().await;
    let revision = fleet.api.submit(&fleet.stack, false).await;
    fleet.poll().await;
    let mut event = crate::support::event(&fleet.agent.0, &text(&revision["id"]), "FAILURE");
    event["message"] = "x".repeat(1024 * 1024).into();
    let path = format!("/agents/{}/events", fleet.agent.0);
    let recorded = fleet.api.post(&fleet.agent.1, &path, &event).await.expect_status(201).json();
    assert_eq!(text(&recorded["message"]).len(), 16 * 1024);
}

/// Follows the links of lists that are in a field of the body, checks the size of each page, and returns the number of entries and of
/// pages.
pub async fn count_in_pages(api: &Api, path: &str, query: &str, field: Option<&str>) -> (usize, usize) {
    let (mut entries, mut pages, mut query) = (0, 0, query.to_owned());
    loop {
        let response = api.get(&api.admin, &format!("{path}{query}")).await.expect_status(200);
        assert!(response.body.len() < 6 * 1024 * 1024, "{path}: {} bytes", response.body.len());
        let body = response.json();
        let list = field.map_or(&body, |field| &body[field]);
        entries += list.as_array().unwrap().len();
        pages += 1;
        match next_link(&response) {
            Some(next) => query = next,
            None => return (entries, pages),
        }
    }
}

/// Entries whose texts of the largest size need two pages.
pub const LARGE_ENTRIES: usize = 300;

#[tokio::test]
async fn pages_of_descriptions_and_annotations_end_when_their_texts_are_large() {
    let fleet = Fleet::new().await;
    let (api, generator, agent, stack) = (&fleet.api, &fleet.generator.0, &fleet.agent.0, &fleet.stack);
    let longest = "\u{10000}".repeat(4_096);
    for number in 0..LARGE_ENTRIES {
        let (name, key) = (format!("n{number}"), format!("k{number}"));
        let create = json!({"name": name, "generator_id": generator, "description": longest});
        let created = api.post(&api.admin, "/stacks", &create).await.expect_status(201).json();
        api.target(agent, &text(&created["id"])).await;
        for (path, body) in [
            ("/generators".to_owned(), json!({"name": name, "description": longest})),
            (format!("/agents/{agent}/annotations"), json!({"agent_id": agent, "key": key, "value": longest})),
            (format!("/stacks/{stack}/annotations"), json!({"stack_id": stack, "key": key, "value": longest})),
        ] {
            api.post(&api.admin, &path, &body).await.expect_status(201);
        }
        // Each change is an entry of the audit log with its description.
        api.put(&api.admin, &format!("/stacks/{stack}"), &json!({"description": longest})).await.expect_status(200);
    }
    for (path, more) in [
        ("/stacks".to_owned(), 1),
        (format!("/agents/{agent}/stacks"), 1),
        ("/generators".to_owned(), 1),
        (format!("/agents/{agent}/annotations"), 0),
        (format!("/stacks/{stack}/annotations"), 0),
    ] {
        assert_eq!(count_in_pages(api, &path, "", None).await, (LARGE_ENTRIES + more, 2), "{path}");
    }
    let updates = count_in_pages(api, "/admin/audit-logs", "?action=stack.updated&limit=1000", Some("logs")).await;
    assert_eq!(updates, (LARGE_ENTRIES, 2));
    let longer = json!({"name": "long", "generator_id": generator, "description": format!("{longest}x")});
    assert_eq!(api.post(&api.admin, "/stacks", &longer).await.expect_error(400), "invalid_description");
    let changed = api.put(&api.admin, &format!("/stacks/{stack}"), &longer).await;
    assert_eq!(changed.expect_error(400), "invalid_description");
    assert_eq!(api.post(&api.admin, "/generators", &longer).await.expect_error(400), "invalid_description");
    let changed = api.put(&api.admin, &format!("/generators/{generator}"), &longer).await;
    assert_eq!(changed.expect_error(400), "invalid_description");
}

#[tokio::test]
async fn pages_of_health_reports_end_when_their_summaries_are_large() {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    let revision = api.submit(&fleet.stack, false).await;
    let (id, long) = (text(&revision["id"]), "x".repeat(16 * 1024 - 100));
    for number in 0..LARGE_ENTRIES {
        let agent = api.create_agent(&format!("a{number}"), &[&fleet.generator.0]).await;
        api.target(&agent.0, &fleet.stack).await;
        let status = if number == 0 { "failing" } else { "healthy" };
        let report =
            json!({"id": id, "status": status, "summary": {"said": long}, "checked_at": "2026-01-01T00:00:00Z"});
        let body = json!({"deployment_objects": [report]});
        let path = format!("/agents/{}/health-status", agent.0);
        api.call(&agent.1, http::Method::PATCH, &path, Some(&body)).await.expect_status(200);
    }
    let path = format!("/deployment-objects/{id}/health");
    assert_eq!(count_in_pages(api, &path, "", Some("health_records")).await, (LARGE_ENTRIES, 2));
    for path in [path, format!("/stacks/{}/health", fleet.stack)] {
        let page = api.get(&api.admin, &format!("{path}?limit=1")).await.expect_status(200).json();
        assert_eq!(page["overall_status"], "failing", "{path}: of all pages");
    }
    let stack = api.get(&api.admin, &format!("/stacks/{}/health", fleet.stack)).await.expect_status(200).json();
    let counts = &stack["deployment_objects"][0];
    assert_eq!((&counts["healthy_agents"], &counts["failing_agents"]), (&(LARGE_ENTRIES - 1).into(), &1.into()));
}
