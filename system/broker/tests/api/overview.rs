//! Overview of stacks on clusters, and the history of a stack.

use serde_json::{Value, json};

use crate::support::{Fleet, text};

async fn overview(fleet: &Fleet, key: &str, query: &str) -> Value {
    fleet.api.get(key, &format!("/status{query}")).await.expect_status(200).json()
}

/// Returns `stack/agent state` of each assignment.
fn states(overview: &Value) -> Vec<String> {
    let agents = overview["agents"].as_array().unwrap();
    let name = |id: &Value| text(&agents.iter().find(|agent| agent["id"] == *id).unwrap()["name"]);
    let stacks = overview["stacks"].as_array().unwrap().iter();
    let cells = stacks.flat_map(|stack| {
        let assignments = stack["assignments"].as_array().unwrap().iter();
        assignments.map(|cell| {
            let stack = stack["name"].as_str().unwrap();
            format!("{stack}/{} {}", name(&cell["agent_id"]), cell["state"].as_str().unwrap())
        })
    });
    cells.collect()
}

async fn activate(fleet: &Fleet, agent: &(String, String)) {
    let active = json!({"status": "ACTIVE"});
    fleet.api.put(&fleet.api.admin, &format!("/agents/{}", agent.0), &active).await.expect_status(200);
}

async fn beat(fleet: &Fleet, agent: &(String, String)) {
    fleet.api.post(&agent.1, &format!("/agents/{}/heartbeat", agent.0), &json!({})).await.expect_status(204);
}

async fn report(fleet: &Fleet, revision: &Value, conditions: &Value) {
    let body = json!({"deployment_object_id": revision["id"], "conditions": conditions});
    let path = format!("/agents/{}/stacks/{}/status", fleet.agent.0, fleet.stack);
    fleet.api.put(&fleet.agent.1, &path, &body).await.expect_status(204);
}

#[tokio::test]
async fn each_assignment_has_one_state_with_its_cause() {
    let fleet = Fleet::new().await;
    let admin = fleet.api.admin.clone();
    let inactive = overview(&fleet, &admin, "").await;
    assert_eq!(states(&inactive), ["web/east Inactive"]);
    assert_eq!(inactive["stacks"][0]["assignments"][0]["last_reported"], "Pending");
    activate(&fleet, &fleet.agent).await;
    let offline = overview(&fleet, &admin, "").await;
    assert_eq!(states(&offline), ["web/east Offline"], "it has never sent a heartbeat");
    assert_eq!(
        (&offline["agents"][0]["is_online"], &offline["agents"][0]["last_heartbeat"]),
        (&json!(false), &Value::Null)
    );
    beat(&fleet, &fleet.agent).await;
    let empty = overview(&fleet, &admin, "").await;
    assert_eq!((&empty["stacks"][0]["revision"], states(&empty)), (&Value::Null, vec!["web/east Pending".to_owned()]));
    let first = fleet.api.submit(&fleet.stack, false).await;
    fleet.poll().await;
    let long = "x".repeat(2_000);
    let failed = json!([{"type": "Applied", "status": "False", "reason": "Failed", "message": long}]);
    report(&fleet, &first, &failed).await;
    let all = overview(&fleet, &admin, "").await;
    let revision = json!({
        "number": 1, "sequence_id": first["sequence_id"], "submitted_at": "2023-11-14T22:13:20Z", "is_deletion_marker": false,
    });
    assert_eq!(all["stacks"][0]["revision"], revision);
    let failure = json!({
        "agent_id": fleet.agent.0, "state": "Failed", "since": "2023-11-14T22:13:20Z", "reason": "Failed",
        "message": format!("{}…", "x".repeat(239)),
    });
    assert_eq!(all["stacks"][0]["assignments"], json!([failure]));
    let one = overview(&fleet, &admin, &format!("?stack={}", fleet.stack)).await;
    assert_eq!(one["stacks"][0]["assignments"][0]["message"], format!("{}…", "x".repeat(999)));
    let second = fleet.api.submit(&fleet.stack, false).await;
    let pending = overview(&fleet, &admin, "").await;
    assert_eq!(
        (&pending["stacks"][0]["revision"]["number"], states(&pending)),
        (&json!(2), vec!["web/east Pending".to_owned()])
    );
    report(&fleet, &second, &json!([{"type": "Applied", "status": "True"}, {"type": "Ready", "status": "True"}])).await;
    let ready = overview(&fleet, &admin, "").await;
    let cell = json!({"agent_id": fleet.agent.0, "state": "Ready", "since": "2023-11-14T22:13:20Z"});
    assert_eq!(ready["stacks"][0]["assignments"], json!([cell]));
    let suspension = json!({"stack_id": fleet.stack, "key": "sindri.dev/suspend", "value": "west, east"});
    fleet.api.post(&admin, &format!("/stacks/{}/annotations", fleet.stack), &suspension).await.expect_status(201);
    assert_eq!(states(&overview(&fleet, &admin, "").await), ["web/east Suspended"]);
}

#[tokio::test]
async fn a_deleted_stack_is_listed_until_its_removal_is_confirmed() {
    let fleet = Fleet::new().await;
    let (api, admin) = (&fleet.api, fleet.api.admin.clone());
    activate(&fleet, &fleet.agent).await;
    beat(&fleet, &fleet.agent).await;
    api.submit(&fleet.stack, false).await;
    fleet.poll().await;
    api.delete(&format!("/stacks/{}", fleet.stack)).await.expect_status(204);
    let deleted = overview(&fleet, &admin, "").await;
    assert_eq!(states(&deleted), ["web/east Removing"]);
    assert_eq!(
        (&deleted["stacks"][0]["deleted_at"], &deleted["stacks"][0]["revision"]["number"]),
        (&json!("2023-11-14T22:13:20Z"), &json!(2))
    );
    let marker = fleet.poll().await.remove(0);
    report(&fleet, &marker, &json!([{"type": "Applied", "status": "False", "reason": "Failed", "message": "kept"}]))
        .await;
    assert_eq!(states(&overview(&fleet, &fleet.generator.1, "").await), ["web/east Failed"]);
    api.report(&fleet.agent, &marker, "SUCCESS").await;
    assert_eq!(overview(&fleet, &admin, "").await["stacks"], json!([]));
}

#[tokio::test]
async fn a_generator_sees_its_own_stacks_and_their_agents() {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    let other = api.create_generator("other").await;
    let west = api.create_agent("west", &[&other.0]).await;
    let foreign = api.create_stack("foreign", &other.0).await;
    api.target(&west.0, &foreign).await;
    let names = |overview: &Value, list: &str| -> Vec<String> {
        overview[list].as_array().unwrap().iter().map(|item| text(&item["name"])).collect()
    };
    let seen = overview(&fleet, &fleet.generator.1, "").await;
    assert_eq!((names(&seen, "stacks"), names(&seen, "agents")), (vec!["web".to_owned()], vec!["east".to_owned()]));
    let seen = overview(&fleet, &other.1, "").await;
    assert_eq!((names(&seen, "stacks"), names(&seen, "agents")), (vec!["foreign".to_owned()], vec!["west".to_owned()]));
    let hidden = overview(&fleet, &other.1, &format!("?stack={}", fleet.stack)).await;
    assert_eq!((&hidden["stacks"], &hidden["agents"]), (&json!([]), &json!([])));
    let all = overview(&fleet, &api.admin, "").await;
    assert_eq!((names(&all, "stacks").len(), names(&all, "agents").len()), (2, 2));
    let refused = api.get(&other.1, &format!("/stacks/{}/history", fleet.stack)).await;
    assert_eq!(refused.expect_error(403), "stack_not_owned");
}

#[tokio::test]
async fn pages_have_each_stack_once_with_its_assignments() {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    for number in 0..4 {
        let stack = api.create_stack(&format!("s{number}"), &fleet.generator.0).await;
        api.target(&fleet.agent.0, &stack).await;
    }
    let whole = overview(&fleet, &api.admin, "").await["stacks"].clone();
    let (mut paged, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let response = api.get(&api.admin, &format!("/status{query}")).await.expect_status(200);
        paged.extend(response.json()["stacks"].as_array().unwrap().iter().cloned());
        let Some(link) = response.headers.get("link") else { break };
        query = link.to_str().unwrap().strip_prefix('<').unwrap().split('>').next().unwrap().to_owned();
    }
    assert_eq!((paged.len(), Value::Array(paged)), (5, whole));
}

#[tokio::test]
async fn the_history_has_numbers_and_no_bundles() {
    let fleet = Fleet::new().await;
    let (first, second) = (fleet.api.submit(&fleet.stack, false).await, fleet.api.submit(&fleet.stack, true).await);
    let path = format!("/stacks/{}/history", fleet.stack);
    let all = fleet.api.get(&fleet.generator.1, &path).await.expect_status(200).json();
    let expected = |revision: &Value, number: i64| {
        json!({
            "id": revision["id"], "number": number, "sequence_id": revision["sequence_id"],
            "submitted_at": revision["submitted_at"], "yaml_checksum": revision["yaml_checksum"],
            "bytes": text(&revision["yaml_content"]).len(), "is_deletion_marker": revision["is_deletion_marker"],
        })
    };
    assert_eq!(all, json!([expected(&second, 2), expected(&first, 1)]));
    let page = fleet.api.get(&fleet.generator.1, &format!("{path}?limit=1")).await.expect_status(200);
    assert_eq!(page.json(), json!([expected(&second, 2)]));
    let rest = format!("{path}?limit=1&after={}", text(&second["id"]));
    assert_eq!(fleet.api.get(&fleet.generator.1, &rest).await.expect_status(200).json(), json!([expected(&first, 1)]));
}

#[tokio::test]
async fn events_have_names_and_a_generator_gets_those_of_its_stacks() {
    let fleet = Fleet::new().await;
    let (api, other) = (&fleet.api, fleet.api.create_generator("other").await);
    let (first, _) = (api.submit(&fleet.stack, false).await, fleet.poll().await);
    api.report(&fleet.agent, &first, "FAILURE").await;
    api.report(&fleet.agent, &first, "SUCCESS").await;
    let list = async |key: &str, query: &str| api.get(key, &format!("/events{query}")).await.expect_status(200).json();
    let own = list(&fleet.generator.1, "").await;
    let event = json!({
        "id": own[0]["id"], "created_at": "2023-11-14T22:13:20Z", "agent_id": fleet.agent.0, "agent_name": "east",
        "cluster_name": "c", "stack_id": fleet.stack, "stack_name": "web", "sequence_id": first["sequence_id"],
        "is_deletion_marker": false, "status": "FAILURE", "message": null,
    });
    assert_eq!((&own[0], own.as_array().unwrap().len()), (&event, 2));
    assert_eq!(list(&other.1, &format!("?stack={}", fleet.stack)).await, json!([]), "a stack of another generator");
    for (query, count) in [
        (format!("?agent={}", fleet.agent.0), 2),
        (format!("?stack={}&limit=1", fleet.stack), 1),
        (format!("?after={}", text(&own[0]["id"])), 1),
        ("?since=2023-11-14T22:13:20Z".to_owned(), 2),
        ("?since=2023-11-14T22:13:21Z".to_owned(), 0),
        (format!("?agent={}", fleet.stack), 0),
    ] {
        assert_eq!(list(&api.admin, &query).await.as_array().unwrap().len(), count, "{query}");
    }
    let newest = list(&api.admin, "?order=newest_first").await;
    assert_eq!((&newest[0], &newest[1]), (&own[1], &own[0]));
    let page = api.get(&api.admin, "/events?order=newest_first&limit=1").await.expect_status(200);
    assert_eq!(page.json(), json!([own[1]]));
    let next = format!("<?order=newest_first&limit=1&after={}>; rel=\"next\"", text(&own[1]["id"]));
    assert_eq!(page.header("link"), next);
    let rest = format!("?order=newest_first&after={}", text(&own[1]["id"]));
    assert_eq!(list(&api.admin, &rest).await, json!([own[0]]));
}
