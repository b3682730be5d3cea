//! Every route: where it is, whose keys it takes, what it is called and what serves it.
//!
//! The router, the gate before each handler and the OpenAPI document are made of this table and of nothing else. An
//! agent means itself only, and a generator what belongs to it, where the summary does not say otherwise.

use std::sync::LazyLock;

use bytes::Bytes;
use serde_json::Value;

use super::http::openapi::{self, Document};
use super::http::route::{Role, Roles, Route, delete, get, patch, post, put};
use super::resources::{
    agents, approvals, audit, events, fleet, generators, health_reports, keys, labels, policies, probes, revisions,
    stack_status, stacks, target_state, targets, webhook_deliveries, webhooks,
};

/// Base path of the API.
pub(crate) const API: &str = "/api/v1";

/// Text of the OpenAPI document. Made once: it never changes, and every client may read it.
static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| openapi_document().to_string().into());

const ALL: Roles = &[Role::Admin, Role::Agent, Role::Generator];
const ADMIN: Roles = &[Role::Admin];
const AGENT: Roles = &[Role::Agent];
const ADMIN_AGENT: Roles = &[Role::Admin, Role::Agent];
const ADMIN_GENERATOR: Roles = &[Role::Admin, Role::Generator];

/// What needs no key.
pub(crate) fn open_routes() -> Vec<Route> {
    vec![
        get("/healthz", None, "is_alive", "The process lives", probes::alive),
        get("/readyz", None, "is_ready", "The broker can serve", probes::ready),
        get("/metrics", None, "read_metrics", "What is counted", probes::metrics),
        get("/docs/openapi.json", None, "read_openapi", "This document", read_openapi),
    ]
}

/// Describes every route as an OpenAPI 3.1 document.
pub fn openapi_document() -> Value {
    let open = open_routes().into_iter().map(|route| (route.path.to_owned(), route));
    let api = api_routes().into_iter().map(|route| (format!("{API}{}", route.path), route));
    openapi::document(open.chain(api))
}

async fn read_openapi() -> Document {
    Document(DOCUMENT.clone())
}

/// What is below the API's base path.
pub(crate) fn api_routes() -> Vec<Route> {
    let whoami = post("/auth/pak", ALL, "who_am_i", "Whose key was shown", agents::whoami);
    let subjects = [
        vec![whoami],
        of_agents(),
        of_agent_parts(),
        of_generators(),
        of_stacks(),
        of_approvals(),
        of_fleet(),
        of_webhooks(),
    ];
    subjects.into_iter().flatten().collect()
}

fn of_agents() -> Vec<Route> {
    vec![
        get("/agents", ADMIN_GENERATOR, "list_agents", "Every agent, by name", agents::list),
        post("/agents", ADMIN, "create_agent", "Makes an agent and shows its key, this once", agents::create)
            .or(&[409, 422]),
        // With the slash it is a search for one agent; existing agents find themselves with it.
        get("/agents/", ADMIN_AGENT, "find_agent", "The agent of that name in that cluster", agents::find).or(&[404]),
        get("/agents/{id}", ADMIN_AGENT, "read_agent", "One agent", agents::read),
        put("/agents/{id}", ADMIN_AGENT, "update_agent", "Changes what is given and leaves the rest", agents::update)
            .or(&[409]),
        delete("/agents/{id}", ADMIN, "delete_agent", "Deletes an agent and its key", agents::delete),
        post("/agents/{id}/heartbeat", AGENT, "send_heartbeat", "The agent lives", agents::heartbeat),
        get(
            "/agents/{id}/stacks",
            ADMIN_AGENT,
            "list_stacks_of_agent",
            "The stacks that it should have",
            agents::stacks,
        ),
        get(
            "/agents/{id}/registrations",
            ADMIN_AGENT,
            "list_registrations_of_agent",
            "The generators whose stacks it accepts",
            agents::registrations,
        ),
        get(
            "/agents/{id}/target-state",
            ADMIN_AGENT,
            "read_target_state",
            "Everything that is wanted of it; never an increment unless it is asked for",
            target_state::target_state,
        ),
        get(
            "/agents/{id}/policies",
            ADMIN_AGENT,
            "list_policies",
            "How it is to treat its stacks: their annotations that begin with sindri.dev/",
            policies::of_agent,
        ),
        get(
            "/agents/{id}/outcomes",
            ADMIN_AGENT,
            "list_outcomes",
            "What it last reported about each thing in its target state",
            events::outcomes,
        ),
        get("/agents/{id}/targets", ADMIN_AGENT, "list_targets", "Its explicit targets", targets::list),
        post("/agents/{id}/targets", ADMIN_GENERATOR, "add_target", "Sends a stack to it", targets::add)
            .or(&[409, 422]),
        delete(
            "/agents/{id}/targets/{stack_id}",
            ADMIN_GENERATOR,
            "remove_target",
            "Takes a stack away from it, which it is told to remove",
            targets::remove,
        ),
        post("/agents/{id}/rotate-pak", ADMIN_AGENT, "rotate_agent_pak", "A new key for it", keys::rotate_of_agent),
    ]
}

fn of_agent_parts() -> Vec<Route> {
    vec![
        get("/agents/{id}/labels", ADMIN_AGENT, "list_agent_labels", "Its labels", labels::of_agent),
        post("/agents/{id}/labels", ADMIN, "add_agent_label", "Labels it", labels::add_to_agent).or(&[409]),
        delete(
            "/agents/{id}/labels/{label}",
            ADMIN,
            "remove_agent_label",
            "Takes a label from it",
            labels::remove_from_agent,
        ),
        get(
            "/agents/{id}/annotations",
            ADMIN_AGENT,
            "list_agent_annotations",
            "Its annotations",
            labels::annotations_of_agent,
        ),
        post("/agents/{id}/annotations", ADMIN, "add_agent_annotation", "Annotates it", labels::annotate_agent)
            .or(&[409]),
        delete(
            "/agents/{id}/annotations/{key}",
            ADMIN,
            "remove_agent_annotation",
            "Takes an annotation from it",
            labels::remove_annotation_from_agent,
        ),
        get("/agents/{id}/events", ADMIN_AGENT, "list_events_of_agent", "What it reported", events::of_agent),
        post("/agents/{id}/events", ADMIN_AGENT, "record_event", "Reports an outcome", events::record).or(&[409, 422]),
        get("/agent-events", ADMIN, "list_events", "What agents reported", events::list),
        get("/agent-events/{id}", ADMIN, "read_event", "One event", events::read),
        patch(
            "/agents/{id}/health-status",
            AGENT,
            "report_health",
            "How what it applied is doing",
            health_reports::report,
        )
        .or(&[422]),
        put(
            "/agents/{id}/stacks/{stack_id}/status",
            AGENT,
            "report_stack_status",
            "How a stack is on its cluster; replaces what it said before",
            stack_status::report,
        )
        .or(&[422]),
        put(
            "/agents/{id}/stacks/{stack_id}/approval",
            AGENT,
            "request_approval",
            "Asks whether it may carry a plan out; asking again says what was decided",
            approvals::propose,
        )
        .or(&[422]),
        get(
            "/agents/{id}/webhooks/pending",
            ADMIN_AGENT,
            "claim_webhook_deliveries",
            "Messages that it is to send now; nobody else will for a minute",
            webhook_deliveries::pending,
        ),
        post(
            "/webhook-deliveries/{id}/result",
            AGENT,
            "report_webhook_delivery",
            "How its attempt to send a message went",
            webhook_deliveries::result,
        ),
    ]
}

fn of_generators() -> Vec<Route> {
    vec![
        get("/generators", ADMIN, "list_generators", "Every generator, by name", generators::list),
        post(
            "/generators",
            ADMIN,
            "create_generator",
            "Makes a generator and shows its key, this once",
            generators::create,
        )
        .or(&[409]),
        get("/generators/{id}", ADMIN_GENERATOR, "read_generator", "One generator", generators::read),
        put(
            "/generators/{id}",
            ADMIN_GENERATOR,
            "update_generator",
            "Changes what is given and leaves the rest",
            generators::update,
        )
        .or(&[409]),
        delete(
            "/generators/{id}",
            ADMIN_GENERATOR,
            "delete_generator",
            "Deletes a generator, its key and its stacks",
            generators::delete,
        ),
        post(
            "/generators/{id}/rotate-pak",
            ADMIN_GENERATOR,
            "rotate_generator_pak",
            "A new key for it",
            keys::rotate_of_generator,
        ),
        post("/generators/{id}/register", ADMIN_AGENT, "register_agent", "Registers an agent", generators::register)
            .or(&[409]),
        delete(
            "/generators/{id}/register",
            ADMIN_AGENT,
            "unregister_agent",
            "Ends a registration",
            generators::unregister,
        ),
        get(
            "/generators/{id}/registered-agents",
            ADMIN_GENERATOR,
            "list_registered_agents",
            "The agents that accept its stacks",
            generators::registered_agents,
        ),
    ]
}

fn of_stacks() -> Vec<Route> {
    vec![
        get("/stacks", ADMIN_GENERATOR, "list_stacks", "The stacks that live, by name", stacks::list),
        post("/stacks", ADMIN_GENERATOR, "create_stack", "Makes a stack", stacks::create).or(&[409, 422]),
        get("/stacks/{id}", ADMIN_GENERATOR, "read_stack", "One stack", stacks::read),
        put(
            "/stacks/{id}",
            ADMIN_GENERATOR,
            "update_stack",
            "Changes what is given and leaves the rest",
            stacks::update,
        )
        .or(&[409]),
        delete(
            "/stacks/{id}",
            ADMIN_GENERATOR,
            "delete_stack",
            "Deletes a stack; every agent that received it is told to remove it",
            stacks::delete,
        ),
        get(
            "/stacks/{id}/deployment-objects",
            ADMIN_GENERATOR,
            "list_deployment_objects",
            "Its revisions, ascending",
            revisions::list,
        ),
        post(
            "/stacks/{id}/deployment-objects",
            ADMIN_GENERATOR,
            "submit_deployment_object",
            "Submits a revision, or the instruction to remove the stack",
            revisions::submit,
        )
        .or(&[409]),
        get(
            "/deployment-objects/{id}",
            ALL,
            "read_deployment_object",
            "One revision; an agent reads what was ever its business",
            revisions::read,
        ),
        get(
            "/deployment-objects/{id}/health",
            ADMIN,
            "read_deployment_health",
            "Its health",
            health_reports::of_revision,
        ),
        get("/stacks/{id}/health", ADMIN, "read_stack_health", "Its health on every cluster", health_reports::of_stack),
        get(
            "/stacks/{id}/status",
            ADMIN_GENERATOR,
            "read_stack_status",
            "How it is on every cluster that should have it or has to remove it",
            stack_status::of_stack,
        ),
        get(
            "/stacks/{id}/labels",
            ALL,
            "list_stack_labels",
            "Its labels; an agent reads those of stacks that concern it",
            labels::of_stack,
        ),
        post("/stacks/{id}/labels", ADMIN_GENERATOR, "add_stack_label", "Labels it", labels::add_to_stack).or(&[409]),
        delete(
            "/stacks/{id}/labels/{label}",
            ADMIN_GENERATOR,
            "remove_stack_label",
            "Takes a label from it",
            labels::remove_from_stack,
        ),
        get(
            "/stacks/{id}/annotations",
            ALL,
            "list_stack_annotations",
            "Its annotations; an agent reads those of stacks that concern it",
            labels::annotations_of_stack,
        ),
        post(
            "/stacks/{id}/annotations",
            ADMIN_GENERATOR,
            "add_stack_annotation",
            "Annotates it",
            labels::annotate_stack,
        )
        .or(&[409]),
        delete(
            "/stacks/{id}/annotations/{key}",
            ADMIN_GENERATOR,
            "remove_stack_annotation",
            "Takes an annotation from it",
            labels::remove_annotation_from_stack,
        ),
    ]
}

fn of_approvals() -> Vec<Route> {
    vec![
        get("/approvals", ADMIN_GENERATOR, "list_approvals", "What agents hold or held back", approvals::list),
        get("/approvals/{id}", ADMIN_GENERATOR, "read_approval", "One plan that is or was held back", approvals::read),
        post(
            "/approvals/{id}/approve",
            ADMIN_GENERATOR,
            "approve",
            "Lets the agent carry it out, and makes it look at once",
            approvals::approve,
        )
        .or(&[409]),
        post(
            "/approvals/{id}/reject",
            ADMIN_GENERATOR,
            "reject",
            "Keeps the agent from carrying it out",
            approvals::reject,
        )
        .or(&[409]),
    ]
}

fn of_fleet() -> Vec<Route> {
    vec![
        get("/fleet", ADMIN, "list_fleet", "How every agent is doing", fleet::list),
        get("/agents/{id}/fleet-status", ADMIN, "read_fleet_status", "How one agent is doing", fleet::read),
        get("/admin/audit-logs", ADMIN, "list_audit_logs", "Who did what, newest first", audit::list),
        get("/paks", ADMIN, "list_paks", "Every key, without anything secret", keys::list),
    ]
}

fn of_webhooks() -> Vec<Route> {
    vec![
        get("/webhooks", ADMIN, "list_webhooks", "Every subscription, by name", webhooks::list),
        post("/webhooks", ADMIN, "create_webhook", "Makes a subscription", webhooks::create).or(&[409, 422]),
        get("/webhooks/event-types", ADMIN, "list_event_types", "What can happen", webhooks::event_types),
        get("/webhooks/{id}", ADMIN, "read_webhook", "One subscription, without its secrets", webhooks::read),
        put("/webhooks/{id}", ADMIN, "update_webhook", "Changes what is given and leaves the rest", webhooks::update)
            .or(&[409, 422]),
        delete("/webhooks/{id}", ADMIN, "delete_webhook", "Deletes a subscription and its messages", webhooks::delete),
        get(
            "/webhooks/{id}/deliveries",
            ADMIN,
            "list_webhook_deliveries",
            "Its messages, newest first",
            webhook_deliveries::list,
        ),
        post(
            "/webhooks/{id}/test",
            ADMIN,
            "test_webhook",
            "Sends one message, to see whether it arrives",
            webhooks::test,
        ),
    ]
}
