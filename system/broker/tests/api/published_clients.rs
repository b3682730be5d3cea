//! Behaviour that clients of the published API rely on: lenient bodies, nulls, repeated deletions, and errors with positions.

use axum::body::Body;
use http::{Method, Request};
use serde_json::{Value, json};

use crate::support::{Api, Fleet, TestResponse, text};

async fn send(api: &Api, method: Method, path: &str, strict: &str, body: &Value) -> TestResponse {
    let mut request = Request::new(Body::from(body.to_string()));
    *request.method_mut() = method;
    *request.uri_mut() = format!("/api/v1{path}").parse().unwrap();
    request.headers_mut().insert("authorization", api.admin.parse().unwrap());
    if !strict.is_empty() {
        request.headers_mut().insert("sindri-strict", strict.parse().unwrap());
    }
    api.send(request).await
}

/// Requests with a field that the operation does not have, and the path of the field in an error.
async fn requests_with_unknown_fields(fleet: &Fleet) -> Vec<(Method, String, u16, Value, &'static str)> {
    let (agent, stack, generator) = (&fleet.agent.0, &fleet.stack, &fleet.generator.0);
    let revision = fleet.api.submit(stack, false).await;
    fleet.poll().await;
    let said = json!({"id": revision["id"], "status": "healthy", "checked_at": "2026-01-01T00:00:00Z", "by": "me"});
    let condition = json!({"type": "Ready", "status": "True", "since": "now"});
    let webhook = json!({"name": "n", "url": "https://a.example/", "event_types": ["*"], "filters": {"cluster": "c"}});
    let post = |path: &str, status, body, field| (Method::POST, path.to_owned(), status, body, field);
    vec![
        post("/agents", 201, json!({"name": "n", "cluster_name": "c", "status": "ACTIVE"}), "status"),
        (Method::PUT, format!("/agents/{agent}"), 200, json!({"name": "east", "created_at": "x"}), "created_at"),
        post(&format!("/agents/{agent}/heartbeat"), 204, json!({"k8s_reachable": true, "load": 1}), "load"),
        post(&format!("/agents/{agent}/labels"), 201, json!({"agent_id": agent, "label": "l", "id": "x"}), "id"),
        post(
            &format!("/agents/{agent}/annotations"),
            201,
            json!({"agent_id": agent, "key": "k", "value": "v", "id": "x"}),
            "id",
        ),
        post(
            &format!("/agents/{agent}/events"),
            201,
            json!({"agent_id": agent, "deployment_object_id": revision["id"], "event_type": "DEPLOY",
                   "status": "SUCCESS", "created_at": "x"}),
            "created_at",
        ),
        (
            Method::PATCH,
            format!("/agents/{agent}/health-status"),
            200,
            json!({"deployment_objects": [said]}),
            "deployment_objects.0.by",
        ),
        post("/generators", 201, json!({"name": "new", "is_active": true}), "is_active"),
        (
            Method::PUT,
            format!("/generators/{generator}"),
            200,
            json!({"name": "shop", "is_system": false}),
            "is_system",
        ),
        post("/stacks", 201, json!({"name": "s", "generator_id": generator, "labels": []}), "labels"),
        (Method::PUT, format!("/stacks/{stack}"), 200, json!({"id": stack, "generator": "g"}), "generator"),
        post(
            &format!("/stacks/{stack}/deployment-objects"),
            201,
            json!({"yaml_content": "a: 1", "sequence_id": 7, "yaml_checksum": "x"}),
            "sequence_id, yaml_checksum",
        ),
        post(
            &format!("/stacks/{stack}/annotations"),
            201,
            json!({"stack_id": stack, "key": "k", "value": "v", "id": "x"}),
            "id",
        ),
        post("/webhooks", 201, webhook, "filters.?.cluster"),
        (
            Method::DELETE,
            format!("/generators/{generator}/register"),
            204,
            json!({"agent_id": agent, "reason": "r"}),
            "reason",
        ),
        (
            Method::PUT,
            format!("/agents/{agent}/stacks/{stack}/status"),
            403,
            json!({"deployment_object_id": revision["id"], "conditions": [condition]}),
            "",
        ),
    ]
}

#[tokio::test]
async fn unknown_fields_are_ignored_unless_the_client_asks_for_strict_parsing() {
    let fleet = Fleet::new().await;
    for (method, path, status, body, field) in requests_with_unknown_fields(&fleet).await {
        if !field.is_empty() {
            let refused = send(&fleet.api, method.clone(), &path, "true", &body).await;
            let message = text(&refused.json()["message"]);
            assert!(message.ends_with(&format!("unknown fields: {field}")), "{method} {path}: {message}");
            assert_eq!(refused.expect_error(400), "invalid_json", "{method} {path}");
        }
        let response = send(&fleet.api, method.clone(), &path, "", &body).await;
        assert_eq!(response.status.as_u16(), status, "{method} {path}: {:?}", response.body);
    }
    let body = json!({"name": "m"});
    send(&fleet.api, Method::POST, "/generators", "true", &body).await.expect_status(201);
    let invalid = send(&fleet.api, Method::POST, "/generators", "maybe", &body).await;
    assert_eq!(invalid.expect_error(400), "invalid_header");
}

/// Returns the names of the fields, and those that are null.
fn fields(record: &Value) -> (Vec<&str>, Vec<&str>) {
    let fields = record.as_object().unwrap();
    let null = fields.iter().filter(|(_, value)| value.is_null()).map(|(name, _)| name.as_str());
    (fields.keys().map(String::as_str).collect(), null.collect())
}

#[tokio::test]
async fn optional_fields_that_are_empty_are_null() {
    let fleet = Fleet::new().await;
    let (api, agent, stack) = (&fleet.api, &fleet.agent.0, &fleet.stack);
    let revision = api.submit(stack, false).await;
    fleet.poll().await;
    api.report(&fleet.agent, &revision, "SUCCESS").await;
    let webhook = api.create_webhook("hook", &[]).await;
    api.post(&api.admin, &format!("/webhooks/{webhook}/test"), &json!({})).await.expect_status(200);
    let read = async |path: &str| api.get(&api.admin, path).await.expect_status(200).json();
    let whoami = async |key: &str| api.post(key, "/auth/pak", &json!({})).await.expect_status(200).json();
    let agent_nulls =
        ["deleted_at", "k8s_api_latency_ms", "k8s_reachable", "k8s_reported_at", "last_heartbeat"].as_slice();
    let fleet_nulls =
        ["connected_since", "heartbeat_age_seconds", "k8s_api_latency_ms", "k8s_reachable", "last_heartbeat"]
            .as_slice();
    let delivery = read(&format!("/webhooks/{webhook}/deliveries")).await[0].clone();
    let audit = read("/admin/audit-logs?action=stack.created").await["logs"][0].clone();
    for (record, nulls) in [
        (whoami(&api.admin).await, ["agent", "generator"].as_slice()),
        (whoami(&fleet.agent.1).await, ["generator"].as_slice()),
        (read(&format!("/agents/{agent}")).await, agent_nulls),
        (read("/agents").await[0].clone(), agent_nulls),
        (read(&format!("/generators/{}", fleet.generator.0)).await, &["deleted_at", "description"]),
        (read(&format!("/stacks/{stack}")).await, &["deleted_at", "description"]),
        (revision, &["deleted_at"]),
        (fleet.poll().await.remove(0), &["deleted_at"]),
        (read("/agent-events").await[0].clone(), &["deleted_at", "message"]),
        (read("/fleet").await[0].clone(), fleet_nulls),
        (read(&format!("/webhooks/{webhook}")).await, &["filters", "target_labels"]),
        (
            delivery,
            [
                "acquired_by",
                "acquired_until",
                "completed_at",
                "last_attempt_at",
                "last_error",
                "next_retry_at",
                "target_labels",
            ]
            .as_slice(),
        ),
        (audit, &["ip_address", "user_agent"]),
    ] {
        let (_, found) = fields(&record);
        assert_eq!(found, nulls, "{record}");
    }
}

#[tokio::test]
async fn a_target_state_has_the_fields_of_the_published_api_and_names_of_stacks_only_on_request() {
    let fleet = Fleet::new().await;
    fleet.api.submit(&fleet.stack, false).await;
    let (api, path) = (&fleet.api, format!("/agents/{}/target-state", fleet.agent.0));
    let published = [
        "created_at",
        "deleted_at",
        "id",
        "is_deletion_marker",
        "sequence_id",
        "stack_id",
        "submitted_at",
        "updated_at",
        "yaml_checksum",
        "yaml_content",
    ];
    for query in ["", "?mode=full", "?mode=incremental"] {
        for key in [&fleet.agent.1, &api.admin] {
            let state = api.get(key, &format!("{path}{query}")).await.expect_status(200).json();
            assert_eq!(state[0].as_object().unwrap().keys().collect::<Vec<_>>(), published, "{query}");
        }
    }
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = format!("/api/v1{path}").parse().unwrap();
    request.headers_mut().insert("authorization", fleet.agent.1.parse().unwrap());
    request.headers_mut().insert("sindri-stack-names", "1".parse().unwrap());
    let named = api.send(request).await.expect_status(200);
    assert_eq!(named.json()[0]["stack_name"], "web");
    let plain = api.get(&fleet.agent.1, &path).await.expect_status(200);
    assert_eq!(named.header("etag"), format!("W/{}", plain.header("etag")), "one state in two forms");
}

#[tokio::test]
async fn the_audit_log_has_the_id_and_the_name_of_the_actor() {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    let request = json!({"name": "mine", "generator_id": fleet.generator.0});
    api.post(&fleet.generator.1, "/stacks", &request).await.expect_status(201);
    api.post(&fleet.agent.1, &format!("/agents/{}/rotate-pak", fleet.agent.0), &json!({})).await.expect_status(200);
    let admins = api.get(&api.admin, "/admins").await.expect_status(200).json();
    for (filter, id, name) in [
        ("actor_type=admin", admins[0]["id"].clone(), "admin"),
        ("actor_type=generator", json!(fleet.generator.0), "shop"),
        ("actor_type=agent", json!(fleet.agent.0), "east"),
    ] {
        let path = format!("/admin/audit-logs?limit=1&{filter}");
        let logs = api.get(&api.admin, &path).await.expect_status(200).json();
        let log = &logs["logs"][0];
        assert_eq!((&log["actor_id"], &log["actor_name"]), (&id, &json!(name)), "{filter}");
    }
}

#[tokio::test]
async fn a_repeated_deletion_of_an_agent_or_a_registration_succeeds() {
    let fleet = Fleet::new().await;
    let (api, generator) = (&fleet.api, &fleet.generator.0);
    let (path, body) = (format!("/generators/{generator}/register"), json!({"agent_id": fleet.agent.0}));
    for _ in 0..2 {
        api.call(&api.admin, Method::DELETE, &path, Some(&body)).await.expect_status(204);
    }
    let unknown = path.replace(generator, &fleet.stack);
    let response = api.call(&api.admin, Method::DELETE, &unknown, Some(&body)).await;
    assert_eq!(response.expect_error(404), "generator_not_found");
    let before = api.count_audit_entries().await;
    for _ in 0..3 {
        api.delete(&format!("/agents/{}", fleet.agent.0)).await.expect_status(204);
    }
    assert_eq!(api.count_audit_entries().await, before + 1, "only the first one is a change");
}

#[tokio::test]
async fn a_bundle_that_is_not_yaml_is_rejected_with_line_and_column() {
    let fleet = Fleet::new().await;
    let path = format!("/stacks/{}/deployment-objects", fleet.stack);
    for (yaml, position) in [
        ("a: b: c\n", "document 1, line 1, column 5: "),
        ("a: 1\n---\n\tb: 1\n", "document 2, line 3, column 1: "),
        ("a: 1\n--- {a: ]\n", "document 2, line 2, column 9: "),
    ] {
        for is_deletion_marker in [false, true] {
            let body = json!({"yaml_content": yaml, "is_deletion_marker": is_deletion_marker});
            let response = fleet.api.post(&fleet.generator.1, &path, &body).await;
            let message = text(&response.json()["message"]);
            assert!(message.contains(position), "{yaml:?}: {message}");
            assert_eq!(response.expect_error(400), "invalid_deployment_object", "{yaml:?}");
        }
    }
    // The agent reports errors in the objects themselves.
    fleet.api.post(&fleet.generator.1, &path, &json!({"yaml_content": "kind: Nothing"})).await.expect_status(201);
}

#[tokio::test]
async fn an_administrator_reports_for_an_agent() {
    let fleet = Fleet::new().await;
    let (api, agent) = (&fleet.api, &fleet.agent.0);
    let revision = api.submit(&fleet.stack, false).await;
    let said = json!({"id": revision["id"], "status": "degraded", "checked_at": "2026-01-01T00:00:00Z"});
    let (path, body) = (format!("/agents/{agent}/health-status"), json!({"deployment_objects": [said]}));
    api.call(&api.admin, Method::PATCH, &path, Some(&body)).await.expect_status(200);
    api.post(&api.admin, &format!("/agents/{agent}/heartbeat"), &json!({})).await.expect_status(204);
    let record = api.get(&api.admin, "/fleet").await.expect_status(200).json()[0].clone();
    assert_eq!((&record["health_degraded"], &record["heartbeat_age_seconds"]), (&json!(1), &json!(0)));
}

#[tokio::test]
async fn the_metrics_have_the_published_names_beside_ours() {
    let fleet = Fleet::new().await;
    let (api, agent) = (&fleet.api, &fleet.agent.0);
    api.submit(&fleet.stack, false).await;
    api.submit(&fleet.stack, false).await;
    api.put(&api.admin, &format!("/agents/{agent}"), &json!({"status": "ACTIVE"})).await.expect_status(200);
    api.post(&fleet.agent.1, &format!("/agents/{agent}/heartbeat"), &json!({})).await.expect_status(204);
    let response = api.send(Request::get("/metrics").body(Body::empty()).unwrap()).await.expect_status(200);
    let metrics = String::from_utf8(response.body.to_vec()).unwrap();
    for line in [
        "brokkr_active_agents 1".to_owned(),
        "brokkr_stacks_total 1".to_owned(),
        "brokkr_deployment_objects_total 2".to_owned(),
        format!("brokkr_agent_heartbeat_age_seconds{{agent_id=\"{agent}\",agent_name=\"east\"}} 0"),
        "brokkr_http_requests_total{endpoint=\"/api/v1/agents\",method=\"POST\",status=\"201\"} 1".to_owned(),
        "brokkr_http_request_duration_seconds_count{endpoint=\"/api/v1/agents\",method=\"POST\"} 1".to_owned(),
        "sindri_http_requests_total{method=\"POST\",route=\"/api/v1/agents\",status=\"201\"} 1".to_owned(),
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }
}

/// Id of nothing.
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

#[tokio::test]
async fn what_does_not_exist_has_a_code_for_its_kind() {
    let fleet = Fleet::new().await;
    let (api, agent, stack) = (&fleet.api, &fleet.agent.0, &fleet.stack);
    let other = api.create_stack("other", &fleet.generator.0).await;
    let get = |path: &str, code| (&api.admin, Method::GET, path.replace("{unknown}", UNKNOWN), code);
    let delete = |path: String, code| (&api.admin, Method::DELETE, path, code);
    for (key, method, path, code) in [
        get("/admins/{unknown}", "admin_not_found"),
        get("/agents/{unknown}", "agent_not_found"),
        get("/agents/{unknown}/events", "agent_not_found"),
        get("/agent-events/{unknown}", "agent_event_not_found"),
        get("/approvals/{unknown}", "approval_not_found"),
        get("/deployment-objects/{unknown}", "deployment_object_not_found"),
        get("/deployment-objects/{unknown}/health", "deployment_object_not_found"),
        get("/generators/{unknown}", "generator_not_found"),
        get("/stacks/{unknown}", "stack_not_found"),
        get("/stacks/{unknown}/health", "stack_not_found"),
        get("/webhooks/{unknown}", "webhook_not_found"),
        get("/nothing", "route_not_found"),
        get(&format!("/agents/{agent}/stacks/{stack}/status"), "stack_status_not_found"),
        delete(format!("/agents/{agent}/annotations/nothing"), "agent_annotation_not_found"),
        delete(format!("/agents/{agent}/labels/nothing"), "agent_label_not_found"),
        delete(format!("/agents/{agent}/targets/{other}"), "agent_target_not_found"),
        delete(format!("/stacks/{stack}/annotations/nothing"), "stack_annotation_not_found"),
        delete(format!("/stacks/{stack}/labels/nothing"), "stack_label_not_found"),
        (&fleet.agent.1, Method::POST, format!("/webhook-deliveries/{UNKNOWN}/result"), "delivery_not_found"),
    ] {
        let body = json!({"success": true});
        let body = (method == Method::POST).then_some(&body);
        let response = api.call(key, method.clone(), &path, body).await;
        assert_eq!(response.expect_error(404), code, "{method} {path}");
    }
}

#[tokio::test]
async fn what_a_body_refers_to_and_cannot_be_used_is_422() {
    let fleet = Fleet::new().await;
    let (api, agent, stack) = (&fleet.api, &fleet.agent.0, &fleet.stack);
    let health = |status| {
        json!({"deployment_objects": [
            {"id": UNKNOWN, "status": status, "checked_at": "2026-01-01T00:00:00Z"},
        ]})
    };
    let annotation = |key, value| json!({"stack_id": stack, "key": key, "value": value});
    let event = crate::support::event(agent, UNKNOWN, "SUCCESS");
    for (method, path, body, code) in [
        (Method::POST, "/stacks".to_owned(), json!({"name": "n", "generator_id": UNKNOWN}), "foreign_key_violation"),
        (Method::POST, format!("/agents/{agent}/events"), event, "foreign_key_violation"),
        (Method::PATCH, format!("/agents/{agent}/health-status"), health("healthy"), "foreign_key_violation"),
        (Method::PATCH, format!("/agents/{agent}/health-status"), health("fine"), "invalid_health_record"),
        (
            Method::POST,
            format!("/stacks/{stack}/annotations"),
            annotation("sindri.dev/depends-on", "nothing"),
            "foreign_key_violation",
        ),
        (
            Method::POST,
            format!("/stacks/{stack}/annotations"),
            annotation("sindri.dev/depends-on", "web"),
            "dependency_cycle",
        ),
        (
            Method::POST,
            format!("/stacks/{stack}/annotations"),
            annotation("sindri.dev/brake-percent", "much"),
            "invalid_policy",
        ),
    ] {
        let response = send(api, method.clone(), &path, "", &body).await;
        assert_eq!(response.expect_error(422), code, "{method} {path} {body}");
    }
}

#[tokio::test]
async fn a_health_report_of_the_largest_size_is_one_transaction() {
    const RECORDS: usize = 1_000;
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    let mut records = Vec::new();
    for _ in 0..RECORDS {
        let id = api.submit(&fleet.stack, false).await["id"].clone();
        records.push(json!({"id": id, "status": "healthy", "checked_at": "2026-01-01T00:00:00Z"}));
    }
    let path = format!("/agents/{}/health-status", fleet.agent.0);
    let count_writes = async || {
        let response = api.send(Request::get("/metrics").body(Body::empty()).unwrap()).await.expect_status(200);
        let metrics = String::from_utf8(response.body.to_vec()).unwrap();
        let count = metrics.lines().find_map(|line| line.strip_prefix("sindri_store_write_duration_seconds_count "));
        count.unwrap().parse::<u64>().unwrap()
    };
    let before = count_writes().await;
    let body = json!({"deployment_objects": records});
    api.call(&fleet.agent.1, Method::PATCH, &path, Some(&body)).await.expect_status(200);
    assert_eq!(count_writes().await, before + 1);
    records.push(records[0].clone());
    let body = json!({"deployment_objects": records});
    let refused = api.call(&fleet.agent.1, Method::PATCH, &path, Some(&body)).await;
    assert_eq!(refused.expect_error(422), "invalid_health_record");
    let health = api.get(&api.admin, &format!("/stacks/{}/health", fleet.stack)).await.expect_status(200).json();
    assert_eq!(health["deployment_objects"][0]["healthy_agents"], 1);
}
