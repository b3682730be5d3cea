//! Every route with every kind of key: allowed, or refused in the right way.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Api, Fleet, event, text};

/// The answer of a route that is allowed, and to whom: A the administrator, `a` the agent that it is about, `x`
/// another agent, `g` the generator that it is about, `y` another generator.
struct Route(Method, &'static str, &'static str, u16);

const fn route(method: Method, path: &'static str, allowed: &'static str, success: u16) -> Route {
    Route(method, path, allowed, success)
}

const ROUTES: &[Route] = &[
    route(Method::POST, "/auth/pak", "Aaxgy", 200),
    route(Method::GET, "/agents", "Agy", 200),
    route(Method::POST, "/agents", "A", 201),
    route(Method::GET, "/agents/?name=east&cluster_name=c", "Aa", 200),
    route(Method::GET, "/agents/AGENT", "Aa", 200),
    route(Method::PUT, "/agents/AGENT", "Aa", 200),
    route(Method::DELETE, "/agents/AGENT", "A", 204),
    route(Method::GET, "/agents/AGENT/events", "Aa", 200),
    route(Method::POST, "/agents/AGENT/events", "Aa", 201),
    route(Method::POST, "/agents/AGENT/heartbeat", "a", 204),
    route(Method::GET, "/agents/AGENT/registrations", "Aa", 200),
    route(Method::GET, "/agents/AGENT/stacks", "Aa", 200),
    route(Method::GET, "/agents/AGENT/target-state", "Aa", 200),
    route(Method::GET, "/agents/AGENT/targets", "Aa", 200),
    route(Method::POST, "/agents/AGENT/targets", "Ag", 201),
    route(Method::DELETE, "/agents/AGENT/targets/STACK", "Ag", 204),
    route(Method::GET, "/agent-events", "A", 200),
    route(Method::GET, "/agent-events/EVENT", "A", 200),
    route(Method::GET, "/deployment-objects/REVISION", "Aag", 200),
    route(Method::GET, "/generators", "A", 200),
    route(Method::POST, "/generators", "A", 201),
    route(Method::GET, "/generators/GENERATOR", "Ag", 200),
    route(Method::POST, "/generators/ANOTHER/register", "Aa", 201),
    route(Method::DELETE, "/generators/GENERATOR/register", "Aa", 204),
    route(Method::GET, "/generators/GENERATOR/registered-agents", "Ag", 200),
    route(Method::GET, "/stacks", "Agy", 200),
    route(Method::POST, "/stacks", "Ag", 201),
    route(Method::GET, "/stacks/STACK", "Ag", 200),
    route(Method::DELETE, "/stacks/STACK", "Ag", 204),
    route(Method::GET, "/stacks/STACK/deployment-objects", "Ag", 200),
    route(Method::POST, "/stacks/STACK/deployment-objects", "Ag", 201),
];

#[tokio::test]
async fn each_route_takes_the_keys_that_it_should_and_no_others() {
    for route in ROUTES {
        for role in "Aaxgy".chars() {
            let (status, body) = ask(route, role).await;
            let expected = if route.2.contains(role) { route.3 } else { 403 };
            assert_eq!(status, expected, "{} {} as {role}: {body}", route.0, route.1);
        }
    }
}

#[tokio::test]
async fn each_route_refuses_a_request_without_a_key_and_with_a_wrong_one() {
    let fleet = Fleet::new().await;
    let wrong = format!("{}x", fleet.api.admin);
    for Route(method, path, ..) in ROUTES {
        for key in ["", "nonsense", "Bearer brokkr_BRabcdef_abc", &wrong] {
            let answer = fleet.api.call(key, method.clone(), path, Some(&json!({}))).await;
            assert_eq!(answer.refusal(401), "unauthorized", "{method} {path} with {key:?}");
        }
    }
}

#[tokio::test]
async fn a_key_is_accepted_with_and_without_the_word_bearer() {
    let api = Api::new().await;
    for scheme in ["Bearer ", "bearer ", ""] {
        api.get(&format!("{scheme}{}", api.admin), "/agents").await.with(200);
    }
    api.get(&format!("Basic {}", api.admin), "/agents").await.with(401);
}

#[tokio::test]
async fn the_key_of_a_deleted_agent_is_worth_nothing() {
    let fleet = Fleet::new().await;
    fleet.api.get(&fleet.agent.1, &format!("/agents/{}", fleet.agent.0)).await.with(200);
    fleet.api.delete(&format!("/agents/{}", fleet.agent.0)).await.with(204);
    fleet.api.get(&fleet.agent.1, &format!("/agents/{}", fleet.agent.0)).await.with(401);
}

#[tokio::test]
async fn a_generator_sees_its_own_stacks_only() {
    let fleet = Fleet::new().await;
    let other = fleet.api.generator("other").await;
    let count = |answer: Value| answer.as_array().unwrap().len();
    assert_eq!(count(fleet.api.get(&fleet.generator.1, "/stacks").await.with(200).json()), 1);
    assert_eq!(count(fleet.api.get(&other.1, "/stacks").await.with(200).json()), 0);
}

/// Asks in a world of its own, so that no request sees what another did.
async fn ask(Route(method, path, ..): &Route, role: char) -> (u16, String) {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    let another = api.generator("another").await;
    let west = api.agent("west", &[]).await;
    let spare = api.stack("spare", &fleet.generator.0).await;
    let revision = api.submit(&fleet.stack, false).await;
    fleet.poll().await;
    api.report(&fleet.agent, &revision, "SUCCESS").await;
    let events = api.get(&api.admin, "/agent-events").await.with(200).json();

    let key = match role {
        'A' => &api.admin,
        'a' => &fleet.agent.1,
        'x' => &west.1,
        'g' => &fleet.generator.1,
        'y' => &another.1,
        other => panic!("{other}"),
    };
    let body = body(method, path, &fleet, &spare, &text(&revision["id"]));
    let path = path
        .replace("AGENT", &fleet.agent.0)
        .replace("STACK", &fleet.stack)
        .replace("GENERATOR", &fleet.generator.0)
        .replace("ANOTHER", &another.0)
        .replace("REVISION", &text(&revision["id"]))
        .replace("EVENT", &text(&events[0]["id"]));
    let answer = api.call(key, method.clone(), &path, body.as_ref()).await;
    (answer.status.as_u16(), String::from_utf8_lossy(&answer.body).into_owned())
}

fn body(method: &Method, path: &str, fleet: &Fleet, spare: &str, revision: &str) -> Option<Value> {
    let agent = &fleet.agent.0;
    Some(match (method.as_str(), path) {
        ("POST", "/agents") => json!({"name": "north", "cluster_name": "c"}),
        ("PUT", "/agents/AGENT") => json!({"status": "ACTIVE"}),
        ("POST", "/agents/AGENT/events") => event(agent, revision, "FAILURE"),
        ("POST", "/agents/AGENT/targets") => json!({"agent_id": agent, "stack_id": spare}),
        ("POST", "/generators") => json!({"name": "third"}),
        (_, path) if path.ends_with("/register") => json!({"agent_id": agent}),
        ("POST", "/stacks") => json!({"name": "new", "generator_id": fleet.generator.0}),
        ("POST", "/stacks/STACK/deployment-objects") => json!({"yaml_content": "a: 1"}),
        _ => return None,
    })
}
