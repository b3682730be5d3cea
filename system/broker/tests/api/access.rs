//! Every route with every role: allowed, or rejected with the right status.

use std::collections::BTreeSet;

use http::{Method, Request};
use serde_json::{Value, json};
use sindri_broker::openapi_document;

use crate::support::{Api, Fleet, event, text};

/// The status of an allowed request, and the roles that are allowed: `A` the administrator, `r` an administrator whose key
/// only reads, who may do what changes nothing, `a` the agent in the path, `x`
/// another agent, `g` the generator in the path, `y` another generator.
struct Route(Method, &'static str, &'static str, u16);

const fn route(method: Method, path: &'static str, allowed: &'static str, success: u16) -> Route {
    Route(method, path, allowed, success)
}

const ROUTES: &[Route] = &[
    route(Method::POST, "/auth/pak", "Araxgy", 200),
    route(Method::GET, "/agents", "Argy", 200),
    route(Method::POST, "/agents", "A", 201),
    route(Method::GET, "/agents/", "Ara", 200),
    route(Method::GET, "/agents/{id}", "Ara", 200),
    route(Method::PUT, "/agents/{id}", "Aa", 200),
    route(Method::DELETE, "/agents/{id}", "A", 204),
    route(Method::GET, "/agents/{id}/annotations", "Ara", 200),
    route(Method::POST, "/agents/{id}/annotations", "A", 201),
    route(Method::PUT, "/agents/{id}/annotations/{key}", "A", 200),
    route(Method::DELETE, "/agents/{id}/annotations/{key}", "A", 204),
    route(Method::GET, "/agents/{id}/events", "Ara", 200),
    route(Method::POST, "/agents/{id}/events", "Aa", 201),
    route(Method::GET, "/agents/{id}/fleet-status", "Ar", 200),
    route(Method::PATCH, "/agents/{id}/health-status", "Aa", 200),
    route(Method::POST, "/agents/{id}/heartbeat", "Aa", 204),
    route(Method::GET, "/agents/{id}/labels", "Ara", 200),
    route(Method::POST, "/agents/{id}/labels", "A", 201),
    route(Method::DELETE, "/agents/{id}/labels/{label}", "A", 204),
    route(Method::PUT, "/agents/{id}/leader", "a", 204),
    route(Method::GET, "/agents/{id}/proposals", "a", 200),
    route(Method::PUT, "/agents/{id}/proposals/{proposal_id}/plan", "a", 204),
    route(Method::GET, "/agents/{id}/outcomes", "Ara", 200),
    route(Method::GET, "/agents/{id}/policies", "Ara", 200),
    route(Method::GET, "/agents/{id}/registrations", "Ara", 200),
    route(Method::POST, "/agents/{id}/rotate-pak", "Aa", 200),
    route(Method::GET, "/agents/{id}/stacks", "Ara", 200),
    route(Method::PUT, "/agents/{id}/stacks/{stack_id}/approval", "a", 200),
    route(Method::GET, "/agents/{id}/stacks/{stack_id}/status", "Ara", 404),
    route(Method::PUT, "/agents/{id}/stacks/{stack_id}/status", "a", 204),
    route(Method::GET, "/agents/{id}/target-state", "Ara", 200),
    route(Method::GET, "/agents/{id}/targets", "Ara", 200),
    route(Method::POST, "/agents/{id}/targets", "Ag", 201),
    route(Method::DELETE, "/agents/{id}/targets/{stack_id}", "Ag", 204),
    route(Method::GET, "/agents/{id}/webhooks/pending", "Aa", 200),
    route(Method::GET, "/admins", "Ar", 200),
    route(Method::POST, "/admins", "A", 201),
    route(Method::GET, "/admins/{id}", "Ar", 200),
    route(Method::DELETE, "/admins/{id}", "A", 204),
    route(Method::POST, "/admins/{id}/rotate-pak", "A", 200),
    route(Method::POST, "/admin/config/reload", "A", 200),
    route(Method::GET, "/admin/audit-logs", "Ar", 200),
    route(Method::POST, "/admin/rotate-pak", "A", 200),
    route(Method::GET, "/agent-events", "Ar", 200),
    route(Method::GET, "/agent-events/{id}", "Ar", 200),
    route(Method::GET, "/approvals", "Argy", 200),
    route(Method::GET, "/approvals/{id}", "Arg", 200),
    route(Method::POST, "/approvals/{id}/approve", "Ag", 200),
    route(Method::POST, "/approvals/{id}/reject", "Ag", 200),
    route(Method::GET, "/deployment-objects/{id}", "Arag", 200),
    route(Method::GET, "/deployment-objects/{id}/health", "Ar", 200),
    route(Method::GET, "/events", "Argy", 200),
    route(Method::GET, "/fleet", "Ar", 200),
    route(Method::GET, "/generators", "Ar", 200),
    route(Method::POST, "/generators", "A", 201),
    route(Method::GET, "/generators/{id}", "Arg", 200),
    route(Method::PUT, "/generators/{id}", "Ag", 200),
    route(Method::DELETE, "/generators/{id}", "Ag", 204),
    route(Method::POST, "/generators/{id}/register", "Aa", 201),
    route(Method::DELETE, "/generators/{id}/register", "Aa", 204),
    route(Method::GET, "/generators/{id}/registered-agents", "Arg", 200),
    route(Method::POST, "/generators/{id}/rotate-pak", "Ag", 201),
    route(Method::GET, "/paks", "Ar", 200),
    route(Method::GET, "/stacks", "Argy", 200),
    route(Method::POST, "/stacks", "Ag", 201),
    route(Method::GET, "/stacks/{id}", "Arg", 200),
    route(Method::PUT, "/stacks/{id}", "Ag", 200),
    route(Method::DELETE, "/stacks/{id}", "Ag", 204),
    route(Method::GET, "/stacks/{id}/annotations", "Arag", 200),
    route(Method::POST, "/stacks/{id}/annotations", "Ag", 201),
    route(Method::PUT, "/stacks/{id}/annotations/{key}", "Ag", 200),
    route(Method::DELETE, "/stacks/{id}/annotations/{key}", "Ag", 204),
    route(Method::PATCH, "/stacks/{id}/suspension", "Ag", 200),
    route(Method::GET, "/stacks/{id}/deployment-objects", "Arg", 200),
    route(Method::POST, "/stacks/{id}/deployment-objects", "Ag", 201),
    route(Method::GET, "/stacks/{id}/events", "Arag", 200),
    route(Method::GET, "/stacks/{id}/health", "Ar", 200),
    route(Method::GET, "/stacks/{id}/history", "Arg", 200),
    route(Method::POST, "/stacks/{id}/proposals", "Ag", 201),
    route(Method::GET, "/stacks/{id}/proposals/{proposal_id}", "Arg", 200),
    route(Method::GET, "/stacks/{id}/labels", "Arag", 200),
    route(Method::POST, "/stacks/{id}/labels", "Ag", 201),
    route(Method::DELETE, "/stacks/{id}/labels/{label}", "Ag", 204),
    route(Method::GET, "/stacks/{id}/status", "Arg", 200),
    route(Method::GET, "/status", "Argy", 200),
    route(Method::POST, "/webhook-deliveries/{id}/result", "a", 200),
    route(Method::GET, "/webhooks", "Ar", 200),
    route(Method::POST, "/webhooks", "A", 201),
    route(Method::GET, "/webhooks/event-types", "Ar", 200),
    route(Method::GET, "/webhooks/{id}", "Ar", 200),
    route(Method::PUT, "/webhooks/{id}", "A", 200),
    route(Method::DELETE, "/webhooks/{id}", "A", 204),
    route(Method::GET, "/webhooks/{id}/deliveries", "Ar", 200),
    route(Method::POST, "/webhooks/{id}/test", "A", 200),
];

/// Returns the code with which the published API rejects a role; for routes that it does not have, one of the same kind.
fn denial_code(Route(method, path, allowed, _): &Route, role: char) -> &'static str {
    let is_agent = role == 'a' || role == 'x';
    match (method.as_str(), *path) {
        _ if role == 'r' && *path != "/agents/{id}/proposals" => "read_only_key",
        _ if ["A", "Ar"].contains(allowed) => "admin_required",
        ("GET", "/agents" | "/events" | "/status") => "generator_required",
        (_, "/agents/{id}/targets" | "/agents/{id}/targets/{stack_id}") if *method != Method::GET => match role {
            'y' => "target_generator_mismatch",
            _ => "target_create_denied",
        },
        (_, path) if path.starts_with("/agents/") => "agent_pak_mismatch",
        (_, "/generators/{id}/register") if is_agent => "agent_pak_mismatch",
        (_, "/generators/{id}/register") => "forbidden",
        (_, "/generators/{id}/registered-agents") => "not_authorized",
        (_, path) if path.starts_with("/generators/") => "generator_not_owned",
        ("GET", "/stacks") => "stacks_list_denied",
        ("POST", "/stacks") if is_agent => "stack_create_denied",
        ("POST", "/stacks") => "stack_generator_mismatch",
        ("GET", "/stacks/{id}/labels" | "/stacks/{id}/annotations" | "/stacks/{id}/events") => "stack_not_accessible",
        (_, path) if path.starts_with("/stacks/") => "stack_not_owned",
        (_, "/deployment-objects/{id}") if is_agent => "agent_not_associated",
        (_, "/deployment-objects/{id}") => "generator_not_associated",
        (_, "/webhook-deliveries/{id}/result") => "agent_pak_required",
        _ => "forbidden",
    }
}

/// Routes that need no key.
const OPEN: [&str; 4] = ["/docs/openapi.json", "/healthz", "/metrics", "/readyz"];

#[test]
fn the_table_has_every_route_that_is_served() {
    let document = openapi_document();
    let server: BTreeSet<(String, String)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| (path.clone(), method.clone()))
        })
        .collect();
    let open = OPEN.iter().map(|path| ((*path).to_owned(), "get".to_owned()));
    let keyed = ROUTES.iter().map(|Route(method, path, ..)| (format!("/api/v1{path}"), method.as_str().to_lowercase()));
    assert_eq!(server, open.chain(keyed).collect());
}

#[tokio::test]
async fn each_route_accepts_exactly_its_roles() {
    for route in ROUTES {
        for role in "Araxgy".chars() {
            let (status, body) = send(route, role).await;
            // Objects of another agent or generator are reported as not found.
            let is_hidden = (role == 'x' && route.1.starts_with("/webhook-deliveries"))
                || (role == 'y' && route.1.starts_with("/approvals/"));
            let refused = if is_hidden { 404 } else { 403 };
            let is_allowed = route.2.contains(role);
            let expected = if is_allowed { route.3 } else { refused };
            assert_eq!(status, expected, "{} {} as {role}: {body}", route.0, route.1);
            if !is_allowed && !is_hidden {
                let problem: Value = serde_json::from_str(&body).unwrap();
                assert_eq!(problem["code"], denial_code(route, role), "{} {} as {role}", route.0, route.1);
            }
        }
    }
}

#[tokio::test]
async fn each_route_rejects_a_missing_and_a_wrong_key() {
    let fleet = Fleet::new().await;
    let wrong = format!("{}x", fleet.api.admin);
    for Route(method, path, ..) in ROUTES {
        for key in ["", "nonsense", "Bearer brokkr_BRabcdef_abc", &wrong] {
            let response = fleet.api.call(key, method.clone(), &path.replace(['{', '}'], ""), Some(&json!({}))).await;
            assert_eq!(response.expect_error(401), "unauthorized", "{method} {path} with {key:?}");
        }
    }
    for path in OPEN {
        fleet.api.send(Request::get(path).body(axum::body::Body::empty()).unwrap()).await.expect_status(200);
    }
}

#[tokio::test]
async fn a_key_is_accepted_with_and_without_the_scheme_bearer() {
    let api = Api::new().await;
    for scheme in ["Bearer ", "bearer ", ""] {
        api.get(&format!("{scheme}{}", api.admin), "/agents").await.expect_status(200);
    }
    api.get(&format!("Basic {}", api.admin), "/agents").await.expect_status(401);
}

#[tokio::test]
async fn the_key_of_a_deleted_agent_is_rejected() {
    let fleet = Fleet::new().await;
    fleet.api.get(&fleet.agent.1, &format!("/agents/{}", fleet.agent.0)).await.expect_status(200);
    fleet.api.delete(&format!("/agents/{}", fleet.agent.0)).await.expect_status(204);
    fleet.api.get(&fleet.agent.1, &format!("/agents/{}", fleet.agent.0)).await.expect_status(401);
}

#[tokio::test]
async fn a_new_key_replaces_the_old_one() {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    let rotated = api.post(&fleet.agent.1, &format!("/agents/{}/rotate-pak", fleet.agent.0), &json!({})).await;
    let rotated = rotated.expect_status(200).json();
    assert_eq!(text(&rotated["agent"]["id"]), fleet.agent.0);
    let path = format!("/generators/{}/rotate-pak", fleet.generator.0);
    let generator = api.post(&fleet.generator.1, &path, &json!({})).await.expect_status(201).json();
    assert_eq!(text(&generator["generator"]["id"]), fleet.generator.0);
    let admin = api.post(&api.admin, "/admin/rotate-pak", &json!({})).await.expect_status(200).json();
    api.post(&api.admin, "/auth/pak", &json!({})).await.expect_status(401);
    let identity = api.post(&text(&admin["pak"]), "/auth/pak", &json!({})).await.expect_status(200).json();
    assert_eq!(identity["admin"], true);
    for (old, new) in [(&fleet.agent.1, text(&rotated["pak"])), (&fleet.generator.1, text(&generator["pak"]))] {
        api.post(old, "/auth/pak", &json!({})).await.expect_status(401);
        api.post(&new, "/auth/pak", &json!({})).await.expect_status(200);
    }
}

#[tokio::test]
async fn a_generator_lists_only_its_own_stacks_with_any_filter() {
    let fleet = Fleet::new().await;
    let (api, other) = (&fleet.api, fleet.api.create_generator("other").await);
    let paks = api.get(&api.admin, "/paks").await.expect_status(200).json();
    let pak = paks.as_array().unwrap().iter().find(|pak| pak["name"] == "shop").unwrap();
    let filtered = format!("/stacks?pak_id={}", text(&pak["id"]));
    let count =
        async |key: &str, path: &str| api.get(key, path).await.expect_status(200).json().as_array().unwrap().len();
    assert_eq!(count(&fleet.generator.1, "/stacks").await, 1);
    assert_eq!(count(&other.1, "/stacks").await, 0);
    assert_eq!(count(&other.1, &filtered).await, 0);
    assert_eq!(count(&api.admin, &filtered).await, 1);
    let unknown = format!("/stacks?pak_id={}", fleet.stack);
    assert_eq!(count(&api.admin, &unknown).await, 0);
}

/// The objects in the paths of the routes.
struct World {
    fleet: Fleet,
    /// Id and key of an administrator that only reads.
    reader: (String, String),
    another: (String, String),
    west: (String, String),
    spare: String,
    revision: String,
    event: String,
    webhook: String,
    delivery: String,
    approval: String,
    proposal: String,
}

impl World {
    async fn new() -> Self {
        let fleet = Fleet::new().await;
        let (api, agent, stack) = (&fleet.api, &fleet.agent.0, &fleet.stack);
        let reader = api.create_admin("reader", "reader").await;
        let another = api.create_generator("another").await;
        let west = api.create_agent("west", &[]).await;
        let spare = api.create_stack("spare", &fleet.generator.0).await;
        let revision = api.submit(stack, false).await;
        fleet.poll().await;
        api.report(&fleet.agent, &revision, "SUCCESS").await;
        let events = api.get(&api.admin, "/agent-events").await.expect_status(200).json();
        let post = async |path: String, body: Value| api.post(&api.admin, &path, &body).await.expect_status(201);
        post(format!("/agents/{agent}/labels"), json!({"agent_id": agent, "label": "old"})).await;
        let annotation = json!({"agent_id": agent, "key": "old", "value": "v"});
        post(format!("/agents/{agent}/annotations"), annotation).await;
        post(format!("/stacks/{stack}/labels"), json!("old")).await;
        post(format!("/stacks/{stack}/annotations"), json!({"stack_id": stack, "key": "old", "value": "v"})).await;
        let webhook = api.create_webhook("hook", &["old"]).await;
        api.post(&api.admin, &format!("/webhooks/{webhook}/test"), &json!({})).await.expect_status(200);
        let pending =
            api.get(&fleet.agent.1, &format!("/agents/{agent}/webhooks/pending")).await.expect_status(200).json();
        let (event, delivery) = (text(&events[0]["id"]), text(&pending[0]["id"]));
        let request = approval(&text(&revision["id"]), "a");
        let asked = api.put(&fleet.agent.1, &format!("/agents/{agent}/stacks/{stack}/approval"), &request).await;
        let approval = text(&asked.expect_status(200).json()["id"]);
        let proposed = json!({"yaml_content": "a: 1"});
        let proposed = api.post(&api.admin, &format!("/stacks/{stack}/proposals"), &proposed).await.expect_status(201);
        let proposal = text(&proposed.json()["id"]);
        let revision = text(&revision["id"]);
        Self { reader, another, west, spare, revision, event, webhook, delivery, approval, proposal, fleet }
    }

    fn key(&self, role: char) -> &str {
        match role {
            'A' => &self.fleet.api.admin,
            'r' => &self.reader.1,
            'a' => &self.fleet.agent.1,
            'x' => &self.west.1,
            'g' => &self.fleet.generator.1,
            'y' => &self.another.1,
            other => panic!("{other}"),
        }
    }

    /// Returns the path with an existing object in each place.
    fn path(&self, method: &Method, template: &str) -> String {
        let fleet = &self.fleet;
        let id = match template.split('/').nth(1).unwrap() {
            "admins" => &self.reader.0,
            "agents" => &fleet.agent.0,
            "agent-events" => &self.event,
            "approvals" => &self.approval,
            "deployment-objects" => &self.revision,
            "generators" if *method == Method::POST && template.ends_with("/register") => &self.another.0,
            "generators" => &fleet.generator.0,
            "stacks" => &fleet.stack,
            "webhooks" => &self.webhook,
            "webhook-deliveries" => &self.delivery,
            _ => "",
        };
        let path = template.replace("{id}", id).replace("{stack_id}", &fleet.stack);
        let path = path.replace("{proposal_id}", &self.proposal);
        let path = path.replace("{label}", "old").replace("{key}", "old");
        if path == "/agents/" { "/agents/?name=east&cluster_name=c".to_owned() } else { path }
    }

    fn body(&self, method: &Method, template: &str) -> Option<Value> {
        let (agent, stack) = (&self.fleet.agent.0, &self.fleet.stack);
        Some(match (method.as_str(), template) {
            ("POST", "/admins") => json!({"name": "anna"}),
            (_, path) if path.ends_with("/rotate-pak") => json!({"grace_seconds": 60}),
            ("POST", "/agents") => json!({"name": "north", "cluster_name": "c"}),
            ("PUT", "/agents/{id}") => json!({"name": "east"}),
            ("PATCH", "/stacks/{id}/suspension") => json!({"suspend": ["east"], "resume": ["west"]}),
            ("POST", "/agents/{id}/annotations") => json!({"agent_id": agent, "key": "k", "value": "v"}),
            ("PUT", path) if path.ends_with("/annotations/{key}") => json!({"value": "v"}),
            ("POST", "/agents/{id}/events") => event(agent, &self.revision, "FAILURE"),
            ("PATCH", "/agents/{id}/health-status") => {
                let said = json!({"id": self.revision, "status": "healthy", "checked_at": "2026-01-01T00:00:00Z"});
                json!({"deployment_objects": [said]})
            }
            ("PUT", "/agents/{id}/leader") => json!({"process": "pod-1"}),
            ("POST", "/agents/{id}/labels") => json!({"agent_id": agent, "label": "new"}),
            ("PUT", "/agents/{id}/stacks/{stack_id}/approval") => approval(&self.revision, "b"),
            ("PUT", "/agents/{id}/stacks/{stack_id}/status") => {
                json!({"deployment_object_id": self.revision, "conditions": [{"type": "Applied", "status": "True"}]})
            }
            ("POST", "/agents/{id}/targets") => json!({"agent_id": agent, "stack_id": self.spare}),
            ("POST", "/generators") => json!({"name": "third"}),
            ("PUT", "/generators/{id}") => json!({"description": "d"}),
            (_, path) if path.ends_with("/register") => json!({"agent_id": agent}),
            ("POST", "/stacks") => json!({"name": "new", "generator_id": self.fleet.generator.0}),
            ("PUT", "/stacks/{id}") => json!({"id": stack, "name": "renamed"}),
            ("POST", "/stacks/{id}/annotations") => json!({"stack_id": stack, "key": "k", "value": "v"}),
            ("POST", "/stacks/{id}/deployment-objects") => json!({"yaml_content": "a: 1"}),
            ("POST", "/stacks/{id}/proposals") => json!({"yaml_content": "a: 1"}),
            ("PUT", "/agents/{id}/proposals/{proposal_id}/plan") => {
                json!({"failed": false, "changes": false, "plan": ""})
            }
            ("POST", "/stacks/{id}/labels") => json!("new"),
            ("POST", "/webhook-deliveries/{id}/result") => json!({"success": true}),
            ("POST", "/webhooks") => json!({"name": "n", "url": "https://a.example/", "event_types": ["*"]}),
            ("PUT", "/webhooks/{id}") => json!({"enabled": false}),
            _ => return None,
        })
    }
}

fn approval(revision: &str, digit: &str) -> Value {
    json!({"deployment_object_id": revision, "digest": digit.repeat(64), "reasons": [], "plan": ""})
}

/// Sends a request to a new broker, so that no request sees the effects of another.
async fn send(Route(method, template, ..): &Route, role: char) -> (u16, String) {
    let world = World::new().await;
    let (path, body) = (world.path(method, template), world.body(method, template));
    let response = world.fleet.api.call(world.key(role), method.clone(), &path, body.as_ref()).await;
    (response.status.as_u16(), String::from_utf8_lossy(&response.body).into_owned())
}

/// Returns the schema that a reference names, or the schema itself.
fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).unwrap(),
        None => schema,
    }
}

/// Adds values that violate a bound of the schema, each with its place in the body and the name of the bound.
fn add_violations(document: &Value, schema: &Value, place: &str, found: &mut Vec<(String, &'static str, Value)>) {
    let schema = resolve(document, schema);
    let mut add = |bound, value| found.push((place.to_owned(), bound, value));
    let number = |bound: &str| schema[bound].as_i64();
    if let Some(max) = number("maxLength") {
        add("maxLength", json!("x".repeat(max as usize + 1)));
    }
    if number("minLength").is_some_and(|min| min > 0) {
        add("minLength", json!(""));
    }
    if schema["pattern"].is_string() {
        add("pattern", json!("a b\u{1}"));
    }
    if let Some(max) = number("maximum") {
        add("maximum", json!(max + 1));
    }
    if let Some(min) = number("minimum") {
        add("minimum", json!(min - 1));
    }
    if number("minItems").is_some() {
        add("minItems", json!([]));
    }
    if let Some(max) = number("maxItems") {
        add("maxItems", json!(vec!["x"; max as usize + 1]));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        add_violations(document, property, &format!("{place}/{name}"), found);
    }
    if schema["items"].is_object() {
        add_violations(document, &schema["items"], &format!("{place}/0"), found);
    }
}

/// Replaces the value at a place of a body; arrays that it does not have are created.
fn replace(body: &mut Value, place: &str, bound: &str, value: Value) {
    let Some((parent, name)) = place.rsplit_once('/') else { return *body = value };
    if name == "0" {
        let (outer, field) = parent.rsplit_once('/').unwrap();
        let outer = body.pointer_mut(outer).unwrap();
        return outer[field] = json!([value]);
    }
    let parent = body.pointer_mut(parent).unwrap();
    let first = parent[name].get(0).cloned();
    parent[name] = match (bound, first) {
        ("maxItems", Some(first)) => json!(vec![first; value.as_array().unwrap().len()]),
        _ => value,
    };
}

#[tokio::test]
async fn every_bound_of_a_body_in_the_openapi_document_is_enforced() {
    let (document, mut checked) = (openapi_document(), 0);
    for Route(method, template, allowed, _) in ROUTES {
        let described = &document["paths"][format!("/api/v1{template}")][method.as_str().to_lowercase()];
        let schema = &described["requestBody"]["content"]["application/json"]["schema"];
        let mut violations = Vec::new();
        add_violations(&document, schema, "", &mut violations);
        if violations.is_empty() {
            continue;
        }
        let world = World::new().await;
        let (key, path) = (world.key(allowed.chars().next().unwrap()), world.path(method, template));
        for (place, bound, value) in violations {
            let mut body = world.body(method, template).unwrap();
            replace(&mut body, &place, bound, value);
            let response = world.fleet.api.call(key, method.clone(), &path, Some(&body)).await;
            let is_refused = [400, 413, 422].contains(&response.status.as_u16());
            assert!(is_refused, "{method} {template} {place} {bound}: {} {:?}", response.status, response.body);
            checked += 1;
        }
    }
    assert!(checked > 60, "only {checked} bounds");
}
