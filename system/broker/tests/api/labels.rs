//! Labels, annotations, and updates of stacks and generators.

use serde_json::json;

use crate::support::{Fleet, text};

#[tokio::test]
async fn a_common_label_assigns_the_stack() {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    let west = api.create_agent("west", &[&fleet.generator.0]).await;
    api.submit(&fleet.stack, false).await;
    let body = json!({"agent_id": west.0, "label": "a/b c".replace(' ', "-")});
    let created = api.post(&api.admin, &format!("/agents/{}/labels", west.0), &body).await.expect_status(201).json();
    assert_eq!(created["label"], "a/b-c");
    assert!(api.poll(&west).await.is_empty());
    let labels = format!("/stacks/{}/labels", fleet.stack);
    api.post(&fleet.generator.1, &labels, &json!("a/b-c")).await.expect_status(201);
    assert_eq!(api.poll(&west).await.len(), 1);
    assert_eq!(api.get(&west.1, &labels).await.expect_status(200).json()[0]["label"], "a/b-c");
    let gone = api.call(&fleet.generator.1, http::Method::DELETE, &format!("{labels}/a%2Fb-c"), None).await;
    gone.expect_status(204);
    assert_eq!(api.poll(&west).await[0]["is_deletion_marker"], true);
}

#[tokio::test]
async fn an_existing_label_is_a_conflict_and_a_missing_one_is_not_found() {
    let fleet = Fleet::new().await;
    let (api, agent, stack) = (&fleet.api, &fleet.agent.0, &fleet.stack);
    for (path, body, owner_and_noun) in [
        (format!("/agents/{agent}/labels"), json!({"agent_id": agent, "label": "x"}), "agent_label"),
        (
            format!("/agents/{agent}/annotations"),
            json!({"agent_id": agent, "key": "x", "value": ""}),
            "agent_annotation",
        ),
        (format!("/stacks/{stack}/labels"), json!("x"), "stack_label"),
        (
            format!("/stacks/{stack}/annotations"),
            json!({"stack_id": stack, "key": "x", "value": ""}),
            "stack_annotation",
        ),
    ] {
        let created = api.post(&api.admin, &path, &body).await.expect_status(201).json();
        assert_eq!(api.get(&api.admin, &path).await.json(), json!([created]));
        assert_eq!(api.post(&api.admin, &path, &body).await.expect_error(409), "unique_violation");
        api.delete(&format!("{path}/x")).await.expect_status(204);
        assert_eq!(api.delete(&format!("{path}/x")).await.expect_error(404), format!("{owner_and_noun}_not_found"));
        assert_eq!(api.get(&api.admin, &path).await.json(), json!([]));
    }
}

#[tokio::test]
async fn an_annotation_is_set_in_one_step_by_those_who_may_add_it() {
    let fleet = Fleet::new().await;
    let (api, other) = (&fleet.api, fleet.api.create_generator("other").await);
    let (agent, stack) = (&fleet.agent.0, &fleet.stack);
    let of_agent = format!("/agents/{agent}/annotations/tier%2Fa");
    let of_stack = format!("/stacks/{stack}/annotations/sindri.dev%2Fsuspend");
    let first = api.put(&api.admin, &of_agent, &json!({"value": "gold"})).await.expect_status(200).json();
    assert_eq!((text(&first["key"]), text(&first["value"])), ("tier/a".to_owned(), "gold".to_owned()));
    assert_eq!(api.put(&api.admin, &of_agent, &json!({"value": "gold"})).await.expect_status(200).json(), first);
    let second = api.put(&api.admin, &of_agent, &json!({"value": "tin"})).await.expect_status(200).json();
    assert_eq!((&second["id"], text(&second["value"])), (&first["id"], "tin".to_owned()));
    assert_eq!(api.put(&fleet.generator.1, &of_agent, &json!({"value": ""})).await.expect_error(403), "admin_required");

    api.put(&fleet.generator.1, &of_stack, &json!({"value": "true"})).await.expect_status(200);
    assert_eq!(api.put(&other.1, &of_stack, &json!({"value": "false"})).await.expect_error(403), "stack_not_owned");
    assert_eq!(api.put(&fleet.agent.1, &of_stack, &json!({"value": "false"})).await.status, 403);
    for (key, value, status) in [("sindri.dev%2Fsuspend", ",", 422), ("a%20b", "x", 400), ("a", "\0", 400)] {
        let path = format!("/stacks/{stack}/annotations/{key}");
        assert_eq!(api.put(&api.admin, &path, &json!({"value": value})).await.status, status, "{key}");
    }
    let kept = api.get(&api.admin, &format!("/stacks/{stack}/annotations")).await.expect_status(200).json();
    assert_eq!((kept.as_array().unwrap().len(), text(&kept[0]["value"])), (1, "true".to_owned()));
}

#[tokio::test]
async fn a_stack_and_a_generator_are_updated_by_fields_and_by_the_whole_object() {
    let fleet = Fleet::new().await;
    let (api, path) = (&fleet.api, format!("/stacks/{}", fleet.stack));
    let changed = api.put(&fleet.generator.1, &path, &json!({"description": "d"})).await.expect_status(200).json();
    assert_eq!((text(&changed["name"]), text(&changed["description"])), ("web".to_owned(), "d".to_owned()));
    let mut whole = changed.clone();
    whole["name"] = json!("shop-web");
    assert_eq!(text(&api.put(&api.admin, &path, &whole).await.expect_status(200).json()["name"]), "shop-web");
    whole["id"] = json!(fleet.agent.0);
    assert_eq!(api.put(&api.admin, &path, &whole).await.expect_error(400), "stack_id_mismatch");
    api.create_stack("other", &fleet.generator.0).await;
    assert_eq!(api.put(&api.admin, &path, &json!({"name": "other"})).await.expect_error(409), "unique_violation");

    let path = format!("/generators/{}", fleet.generator.0);
    let mut whole = api.get(&api.admin, &path).await.json();
    whole["name"] = json!("renamed");
    let changed = api.put(&fleet.generator.1, &path, &whole).await.expect_status(200).json();
    assert_eq!(text(&changed["name"]), "renamed");
    api.create_generator("taken").await;
    assert_eq!(api.put(&api.admin, &path, &json!({"name": "taken"})).await.expect_error(409), "unique_violation");
}

#[tokio::test]
async fn deleting_a_generator_deletes_its_stacks_and_its_key() {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    api.submit(&fleet.stack, false).await;
    fleet.poll().await;
    let path = format!("/generators/{}", fleet.generator.0);
    api.call(&fleet.generator.1, http::Method::DELETE, &path, None).await.expect_status(204);
    api.post(&fleet.generator.1, "/auth/pak", &json!({})).await.expect_status(401);
    assert_eq!(api.get(&api.admin, &path).await.expect_error(404), "generator_not_found");
    assert_eq!(api.get(&api.admin, &format!("/stacks/{}", fleet.stack)).await.expect_error(404), "stack_not_found");
    assert_eq!(fleet.poll().await[0]["is_deletion_marker"], true);
}

#[tokio::test]
async fn dependencies_between_stacks_are_checked_and_sent_to_agents() {
    let fleet = Fleet::new().await;
    let (api, web) = (&fleet.api, &fleet.stack);
    let db = api.create_stack("db", &fleet.generator.0).await;
    let depend = async |stack: &str, on: &str| {
        let body = json!({"stack_id": stack, "key": "sindri.dev/depends-on", "value": on});
        api.post(&fleet.generator.1, &format!("/stacks/{stack}/annotations"), &body).await
    };
    assert_eq!(depend(web, "nothing").await.expect_error(422), "foreign_key_violation");
    depend(web, " db ,").await.expect_status(201);
    assert_eq!(depend(&db, "web").await.expect_error(422), "dependency_cycle");
    assert_eq!(depend(&db, "db").await.expect_error(422), "dependency_cycle");
    api.submit(web, false).await;
    let policies = format!("/agents/{}/policies", fleet.agent.0);
    let policy = api.get(&fleet.agent.1, &policies).await.expect_status(200).json()[0].clone();
    assert_eq!(
        policy["depends_on"],
        json!([{"name": "db", "stack_id": null}]),
        "the agent does not have the other stack"
    );
    let target = json!({"agent_id": fleet.agent.0, "stack_id": db});
    api.post(&api.admin, &format!("/agents/{}/targets", fleet.agent.0), &target).await.expect_status(201);
    let policy = api.get(&fleet.agent.1, &policies).await.expect_status(200).json()[0].clone();
    assert_eq!(policy["depends_on"], json!([{"name": "db", "stack_id": db}]));
}

#[tokio::test]
async fn a_stack_is_not_renamed_into_a_cycle_of_dependencies() {
    let fleet = Fleet::new().await;
    let (api, web) = (&fleet.api, &fleet.stack);
    let db = api.create_stack("db", &fleet.generator.0).await;
    let annotate = async |stack: &str, on: &str| {
        let body = json!({"stack_id": stack, "key": "sindri.dev/depends-on", "value": on});
        api.post(&fleet.generator.1, &format!("/stacks/{stack}/annotations"), &body).await.expect_status(201);
    };
    let rename = async |name: &str| api.put(&api.admin, &format!("/stacks/{db}"), &json!({"name": name})).await;
    annotate(web, "db").await;
    rename("other").await.expect_status(200);
    annotate(&db, "web").await;
    assert_eq!(rename("db").await.expect_error(422), "dependency_cycle");
    rename("another").await.expect_status(200);
}

#[tokio::test]
async fn a_policy_is_valid_and_outlives_the_deletion_of_its_stack() {
    let fleet = Fleet::new().await;
    let (api, stack) = (&fleet.api, &fleet.stack);
    let path = format!("/stacks/{stack}/annotations");
    let annotate = async |key: &str, value: &str| {
        api.post(&fleet.generator.1, &path, &json!({"stack_id": stack, "key": key, "value": value})).await
    };
    assert_eq!(annotate("sindri.dev/removal", "Release").await.expect_error(422), "invalid_policy");
    assert_eq!(annotate("sindri.dev/ignore", "spec").await.expect_error(422), "invalid_policy");
    annotate("sindri.dev/ignore", "/spec/replicas").await.expect_status(201);
    annotate("sindri.dev/removal", "release").await.expect_status(201);
    annotate("sindri.dev/suspend", "true").await.expect_status(201);
    annotate("team", "shop").await.expect_status(201);
    api.submit(stack, false).await;
    fleet.poll().await;
    let delete = async |path: String| api.call(&api.admin, http::Method::DELETE, &path, None).await;
    assert_eq!(delete(format!("/stacks/{stack}")).await.expect_error(409), "stack_suspended");
    assert_eq!(delete(format!("/generators/{}", fleet.generator.0)).await.expect_error(409), "stack_suspended");
    delete(format!("{path}/sindri.dev%2Fsuspend")).await.expect_status(204);
    delete(format!("/stacks/{stack}")).await.expect_status(204);
    let policies = api.get(&fleet.agent.1, &format!("/agents/{}/policies", fleet.agent.0)).await.expect_status(200);
    assert_eq!(
        policies.json()[0]["annotations"],
        json!({"sindri.dev/ignore": "/spec/replicas", "sindri.dev/removal": "release"})
    );
}

#[tokio::test]
async fn a_suspension_names_a_limited_number_of_agents() {
    let fleet = Fleet::new().await;
    let path = format!("/stacks/{}/suspension", fleet.stack);
    for list in ["suspend", "resume"] {
        let change = json!({list: vec!["a"; 4097]});
        let refused = fleet.api.call(&fleet.generator.1, http::Method::PATCH, &path, Some(&change)).await;
        assert_eq!(refused.expect_error(400), "too_many_agents", "{list}");
    }
}
