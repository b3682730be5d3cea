//! The table of routes: method, path, roles, name, summary and handler.
//!
//! The router, the check of roles and the OpenAPI document are generated from this table only. Unless the summary says
//! otherwise, an agent may use a route only for itself, and a generator only for its own stacks.

use std::sync::LazyLock;

use bytes::Bytes;
use serde_json::Value;

use super::http::denial::Denial;
use super::http::openapi::{self, Document};
use super::http::route::{Role, Roles, Route, Tag, delete, get, patch, post, put};
use super::resources::{
    admins, agents, approvals, audit, config, events, fleet, generators, health_reports, history, keys, labels,
    named_events, overview, policies, probes, proposals, revisions, stack_status, stacks, suspension, target_state,
    targets, webhook_deliveries, webhooks,
};

/// Base path of the API.
pub(crate) const API: &str = "/api/v1";

/// Text of the OpenAPI document. Created once, because it never changes and every client may read it.
static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| openapi_document().to_string().into());

const ALL: Roles = &[Role::Admin, Role::Agent, Role::Generator];
const ADMIN: Roles = &[Role::Admin];
const AGENT: Roles = &[Role::Agent];
const ADMIN_AGENT: Roles = &[Role::Admin, Role::Agent];
const ADMIN_GENERATOR: Roles = &[Role::Admin, Role::Generator];

/// Returns the routes that need no key.
pub(crate) fn public_routes() -> Vec<Route> {
    vec![
        get("/healthz", None, "is_alive", "Responds while the process runs", probes::liveness),
        get("/readyz", None, "is_ready", "Responds with 200 if the store accepts changes", probes::readiness),
        get("/metrics", None, "read_metrics", "Returns the metrics in the OpenMetrics format", probes::metrics),
        get("/docs/openapi.json", None, "read_openapi", "Returns this OpenAPI document", read_openapi),
    ]
}

/// Describes every route as an OpenAPI 3.1 document.
pub fn openapi_document() -> Value {
    let public = public_routes().into_iter().map(|route| (route.path.to_owned(), route));
    let api = api_routes().into_iter().map(|route| (format!("{API}{}", route.path), route));
    openapi::describe_routes(public.chain(api))
}

async fn read_openapi() -> Document {
    Document(DOCUMENT.clone())
}

/// Returns the routes below the base path of the API.
pub(crate) fn api_routes() -> Vec<Route> {
    let whoami = post("/auth/pak", ALL, "who_am_i", "Returns the holder of the key", agents::read_identity).reading();
    let groups = [
        (Tag::Keys, vec![whoami]),
        (Tag::Agents, agent_routes()),
        (Tag::Agents, agent_detail_routes()),
        (Tag::Generators, generator_routes()),
        (Tag::Stacks, stack_routes()),
        (Tag::Approvals, approval_routes()),
        (Tag::Administration, fleet_routes()),
        (Tag::Webhooks, webhook_routes()),
    ];
    let tagged = groups.into_iter().map(|(tag, routes)| routes.into_iter().map(move |route| route.tagged(tag)));
    tagged.flatten().collect()
}

fn agent_routes() -> Vec<Route> {
    vec![
        get("/agents", ADMIN_GENERATOR, "list_agents", "Lists all agents by name", agents::list)
            .denying(Denial::GeneratorRequired),
        post(
            "/agents",
            ADMIN,
            "create_agent",
            "Creates an agent and returns its key, which is not shown again",
            agents::create,
        )
        .with_errors(&[409, 422]),
        // The trailing slash distinguishes this search from the list; existing agents find their own record with it.
        get("/agents/", ADMIN_AGENT, "find_agent", "Finds the agent with this name and cluster name", agents::find)
            .with_errors(&[404]),
        get("/agents/{id}", ADMIN_AGENT, "read_agent", "Returns one agent", agents::read),
        put(
            "/agents/{id}",
            ADMIN_AGENT,
            "update_agent",
            "Updates the given fields and keeps the others",
            agents::update,
        )
        .with_errors(&[409]),
        delete("/agents/{id}", ADMIN, "delete_agent", "Deletes an agent and its key", agents::delete),
        post(
            "/agents/{id}/heartbeat",
            ADMIN_AGENT,
            "send_heartbeat",
            "Records that the agent is running",
            agents::heartbeat,
        ),
        put(
            "/agents/{id}/leader",
            AGENT,
            "announce_leader",
            "Records the process of the agent that is its leader; reports of its other processes are rejected",
            agents::announce_leader,
        ),
        get(
            "/agents/{id}/stacks",
            ADMIN_AGENT,
            "list_stacks_of_agent",
            "Lists the stacks that are assigned to the agent",
            agents::list_stacks,
        ),
        get(
            "/agents/{id}/registrations",
            ADMIN_AGENT,
            "list_registrations_of_agent",
            "Lists the registrations of the agent with generators",
            agents::list_registrations,
        ),
        get(
            "/agents/{id}/target-state",
            ADMIN_AGENT,
            "read_target_state",
            "Returns the target state of the agent; with mode=incremental pages of what the agent has not confirmed",
            target_state::read,
        )
        .for_active_agents(),
        get(
            "/agents/{id}/policies",
            ADMIN_AGENT,
            "list_policies",
            "Lists the annotations of the agent's stacks that begin with sindri.dev/, which set policies",
            policies::list,
        ),
        get(
            "/agents/{id}/outcomes",
            ADMIN_AGENT,
            "list_outcomes",
            "Lists the last event of the agent for each entry of its target state",
            events::list_outcomes,
        ),
        get(
            "/agents/{id}/targets",
            ADMIN_AGENT,
            "list_targets",
            "Lists the explicit targets of the agent",
            targets::list,
        ),
        post("/agents/{id}/targets", ADMIN_GENERATOR, "add_target", "Assigns a stack to the agent", targets::add)
            .with_errors(&[409, 422])
            .denying(Denial::TargetCreateDenied),
        delete(
            "/agents/{id}/targets/{stack_id}",
            ADMIN_GENERATOR,
            "remove_target",
            "Removes the target; the agent receives a removal of the stack",
            targets::remove,
        )
        .denying(Denial::TargetCreateDenied),
        post(
            "/agents/{id}/rotate-pak",
            ADMIN_AGENT,
            "rotate_agent_pak",
            "Replaces the key of the agent and returns the new one",
            keys::rotate_agent_key,
        )
        .for_active_agents()
        .with_errors(&[409]),
    ]
}

fn agent_detail_routes() -> Vec<Route> {
    vec![
        get(
            "/agents/{id}/labels",
            ADMIN_AGENT,
            "list_agent_labels",
            "Lists the labels of the agent",
            labels::list_agent_labels,
        ),
        post("/agents/{id}/labels", ADMIN, "add_agent_label", "Adds a label", labels::add_agent_label)
            .with_errors(&[409]),
        delete(
            "/agents/{id}/labels/{label}",
            ADMIN,
            "remove_agent_label",
            "Removes a label",
            labels::remove_agent_label,
        ),
        get(
            "/agents/{id}/annotations",
            ADMIN_AGENT,
            "list_agent_annotations",
            "Lists the annotations of the agent",
            labels::list_agent_annotations,
        ),
        post(
            "/agents/{id}/annotations",
            ADMIN,
            "add_agent_annotation",
            "Adds an annotation",
            labels::add_agent_annotation,
        )
        .with_errors(&[409]),
        put(
            "/agents/{id}/annotations/{key}",
            ADMIN,
            "set_agent_annotation",
            "Adds an annotation, or replaces its value in one step",
            labels::set_agent_annotation,
        ),
        delete(
            "/agents/{id}/annotations/{key}",
            ADMIN,
            "remove_agent_annotation",
            "Removes an annotation",
            labels::remove_agent_annotation,
        ),
        get(
            "/agents/{id}/events",
            ADMIN_AGENT,
            "list_events_of_agent",
            "Lists the events of the agent",
            events::list_for_agent,
        ),
        post("/agents/{id}/events", ADMIN_AGENT, "record_event", "Records an outcome of the agent", events::record)
            .with_errors(&[409, 422]),
        get("/agent-events", ADMIN, "list_events", "Lists the events of all agents", events::list),
        get("/agent-events/{id}", ADMIN, "read_event", "Returns one event", events::read),
        patch(
            "/agents/{id}/health-status",
            ADMIN_AGENT,
            "report_health",
            "Reports the health of applied revisions",
            health_reports::report,
        )
        .with_errors(&[409, 422]),
        get(
            "/agents/{id}/stacks/{stack_id}/status",
            ADMIN_AGENT,
            "read_reported_stack_status",
            "Returns the last report of the agent about a stack",
            stack_status::read_report,
        ),
        put(
            "/agents/{id}/stacks/{stack_id}/status",
            AGENT,
            "report_stack_status",
            "Reports the conditions of a stack on the agent's cluster; replaces the previous report",
            stack_status::report,
        )
        .with_errors(&[409, 422]),
        put(
            "/agents/{id}/stacks/{stack_id}/approval",
            AGENT,
            "request_approval",
            "Requests approval of a plan; a repeated request returns the decision",
            approvals::request,
        )
        .with_errors(&[422]),
        get(
            "/agents/{id}/proposals",
            AGENT,
            "list_proposals",
            "Lists the oldest proposals that the agent has not answered",
            proposals::list,
        )
        .for_active_agents(),
        put(
            "/agents/{id}/proposals/{proposal_id}/plan",
            AGENT,
            "report_plan",
            "Records the plan of the agent for a proposal; the first one stays",
            proposals::report,
        ),
        get(
            "/agents/{id}/webhooks/pending",
            ADMIN_AGENT,
            "claim_webhook_deliveries",
            "Acquires deliveries that the agent sends; they are reserved for it for one minute",
            webhook_deliveries::acquire,
        )
        .for_active_agents()
        .changing(),
        post(
            "/webhook-deliveries/{id}/result",
            AGENT,
            "report_webhook_delivery",
            "Reports the result of an attempt to deliver",
            webhook_deliveries::report_result,
        )
        .denying(Denial::AgentPakRequired),
    ]
}

fn generator_routes() -> Vec<Route> {
    vec![
        get("/generators", ADMIN, "list_generators", "Lists all generators by name", generators::list),
        post(
            "/generators",
            ADMIN,
            "create_generator",
            "Creates a generator and returns its key, which is not shown again",
            generators::create,
        )
        .with_errors(&[409]),
        get("/generators/{id}", ADMIN_GENERATOR, "read_generator", "Returns one generator", generators::read),
        put(
            "/generators/{id}",
            ADMIN_GENERATOR,
            "update_generator",
            "Updates the given fields and keeps the others",
            generators::update,
        )
        .with_errors(&[409]),
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
            "Replaces the key of the generator and returns the new one",
            keys::rotate_generator_key,
        )
        .with_errors(&[409]),
        post(
            "/generators/{id}/register",
            ADMIN_AGENT,
            "register_agent",
            "Registers an agent with the generator",
            generators::register,
        )
        .for_active_agents()
        .with_errors(&[409])
        .denying(Denial::Forbidden),
        delete(
            "/generators/{id}/register",
            ADMIN_AGENT,
            "unregister_agent",
            "Removes a registration",
            generators::unregister,
        )
        .for_active_agents()
        .denying(Denial::Forbidden),
        get(
            "/generators/{id}/registered-agents",
            ADMIN_GENERATOR,
            "list_registered_agents",
            "Lists the agents that are registered with the generator",
            generators::list_registered_agents,
        )
        .denying(Denial::NotAuthorized),
    ]
}

fn stack_routes() -> Vec<Route> {
    vec![
        get("/stacks", ADMIN_GENERATOR, "list_stacks", "Lists the stacks that are not deleted, by name", stacks::list)
            .denying(Denial::StacksListDenied),
        post("/stacks", ADMIN_GENERATOR, "create_stack", "Creates a stack", stacks::create)
            .with_errors(&[409, 422])
            .denying(Denial::StackCreateDenied),
        get("/stacks/{id}", ADMIN_GENERATOR, "read_stack", "Returns one stack", stacks::read),
        put(
            "/stacks/{id}",
            ADMIN_GENERATOR,
            "update_stack",
            "Updates the given fields and keeps the others",
            stacks::update,
        )
        .with_errors(&[409]),
        delete(
            "/stacks/{id}",
            ADMIN_GENERATOR,
            "delete_stack",
            "Deletes a stack; every agent that received it receives a removal",
            stacks::delete,
        ),
        patch(
            "/stacks/{id}/suspension",
            ADMIN_GENERATOR,
            "change_stack_suspension",
            "Suspends the stack on the clusters of some agents, or writes it there again, and returns all of them",
            suspension::change,
        )
        .with_errors(&[422]),
        get(
            "/stacks/{id}/deployment-objects",
            ADMIN_GENERATOR,
            "list_deployment_objects",
            "Lists the revisions of the stack in ascending order",
            revisions::list,
        ),
        post(
            "/stacks/{id}/deployment-objects",
            ADMIN_GENERATOR,
            "submit_deployment_object",
            "Submits a revision or a deletion marker",
            revisions::submit,
        )
        .with_errors(&[409]),
        post(
            "/stacks/{id}/proposals",
            ADMIN_GENERATOR,
            "create_proposal",
            "Asks the agents of the stack for their plans of a text that is not submitted",
            proposals::create,
        )
        .with_errors(&[422]),
        get(
            "/stacks/{id}/proposals/{proposal_id}",
            ADMIN_GENERATOR,
            "read_proposal",
            "Returns a proposal with the plans of the agents; it expires after ten minutes",
            proposals::read,
        ),
        get(
            "/stacks/{id}/history",
            ADMIN_GENERATOR,
            "list_history",
            "Lists the revisions of the stack with their numbers and without their bundles, newest first",
            history::list,
        ),
        get(
            "/status",
            ADMIN_GENERATOR,
            "read_status",
            "Returns the state of each stack on each cluster; deleted stacks until every agent has removed them",
            overview::read,
        )
        .denying(Denial::GeneratorRequired),
        get(
            "/deployment-objects/{id}",
            ALL,
            "read_deployment_object",
            "Returns one revision; an agent may read revisions of stacks that are or were assigned to it",
            revisions::read,
        )
        .for_active_agents(),
        get(
            "/deployment-objects/{id}/health",
            ADMIN,
            "read_deployment_health",
            "Returns the health of the revision",
            health_reports::read_revision_health,
        ),
        get(
            "/stacks/{id}/health",
            ADMIN,
            "read_stack_health",
            "Returns the health of the stack on every cluster",
            health_reports::read_stack_health,
        ),
        get(
            "/stacks/{id}/status",
            ADMIN_GENERATOR,
            "read_stack_status",
            "Returns the status of the stack on every cluster that should have it or must remove it",
            stack_status::read,
        ),
        get(
            "/stacks/{id}/events",
            ALL,
            "list_events_of_stack",
            "Lists the events about the stack; an agent sees its own, of stacks that are or were assigned to it",
            events::list_for_stack,
        ),
        get(
            "/events",
            ADMIN_GENERATOR,
            "list_named_events",
            "Lists events with the names of their agents and stacks",
            named_events::list,
        )
        .denying(Denial::GeneratorRequired),
        get(
            "/stacks/{id}/labels",
            ALL,
            "list_stack_labels",
            "Lists the labels of the stack; an agent may read those of stacks that are or were assigned to it",
            labels::list_stack_labels,
        ),
        post("/stacks/{id}/labels", ADMIN_GENERATOR, "add_stack_label", "Adds a label", labels::add_stack_label)
            .with_errors(&[409]),
        delete(
            "/stacks/{id}/labels/{label}",
            ADMIN_GENERATOR,
            "remove_stack_label",
            "Removes a label",
            labels::remove_stack_label,
        ),
        get(
            "/stacks/{id}/annotations",
            ALL,
            "list_stack_annotations",
            "Lists the annotations of the stack; an agent may read those of stacks that are or were assigned to it",
            labels::list_stack_annotations,
        ),
        post(
            "/stacks/{id}/annotations",
            ADMIN_GENERATOR,
            "add_stack_annotation",
            "Adds an annotation",
            labels::add_stack_annotation,
        )
        .with_errors(&[409]),
        put(
            "/stacks/{id}/annotations/{key}",
            ADMIN_GENERATOR,
            "set_stack_annotation",
            "Adds an annotation, or replaces its value in one step",
            labels::set_stack_annotation,
        )
        .with_errors(&[422]),
        delete(
            "/stacks/{id}/annotations/{key}",
            ADMIN_GENERATOR,
            "remove_stack_annotation",
            "Removes an annotation",
            labels::remove_stack_annotation,
        ),
    ]
}

fn approval_routes() -> Vec<Route> {
    vec![
        get("/approvals", ADMIN_GENERATOR, "list_approvals", "Lists approvals", approvals::list),
        get("/approvals/{id}", ADMIN_GENERATOR, "read_approval", "Returns one approval", approvals::read),
        post(
            "/approvals/{id}/approve",
            ADMIN_GENERATOR,
            "approve",
            "Approves the plan; the agent starts a new pass at once",
            approvals::approve,
        )
        .with_errors(&[409]),
        post("/approvals/{id}/reject", ADMIN_GENERATOR, "reject", "Rejects the plan", approvals::reject)
            .with_errors(&[409]),
    ]
}

fn fleet_routes() -> Vec<Route> {
    vec![
        get("/fleet", ADMIN, "list_fleet", "Returns the status of every agent", fleet::list),
        get("/agents/{id}/fleet-status", ADMIN, "read_fleet_status", "Returns the status of one agent", fleet::read),
        get("/admin/audit-logs", ADMIN, "list_audit_logs", "Lists the audit log, newest first", audit::list),
        post(
            "/admin/config/reload",
            ADMIN,
            "reload_config",
            "Reads the settings again, as SIGHUP does, and returns those that have changed",
            config::reload,
        )
        .with_errors(&[422]),
        get("/paks", ADMIN, "list_paks", "Lists all keys without their secrets", keys::list),
        post(
            "/admin/rotate-pak",
            ADMIN,
            "rotate_admin_pak",
            "Replaces the key of the administrator that sends the request and returns the new one",
            keys::rotate_own_admin_key,
        )
        .with_errors(&[409]),
        get("/admins", ADMIN, "list_admins", "Lists all administrators by name", admins::list),
        post(
            "/admins",
            ADMIN,
            "create_admin",
            "Creates an administrator and returns its key, which is not shown again",
            admins::create,
        )
        .with_errors(&[409]),
        get("/admins/{id}", ADMIN, "read_admin", "Returns one administrator", admins::read),
        delete("/admins/{id}", ADMIN, "delete_admin", "Deletes an administrator and its key", admins::delete)
            .with_errors(&[409]),
        post(
            "/admins/{id}/rotate-pak",
            ADMIN,
            "rotate_pak_of_admin",
            "Replaces the key of the administrator and returns the new one",
            keys::rotate_admin_key,
        )
        .with_errors(&[409]),
    ]
}

fn webhook_routes() -> Vec<Route> {
    vec![
        get("/webhooks", ADMIN, "list_webhooks", "Lists all subscriptions by name", webhooks::list),
        post("/webhooks", ADMIN, "create_webhook", "Creates a subscription", webhooks::create).with_errors(&[409, 422]),
        get("/webhooks/event-types", ADMIN, "list_event_types", "Lists the event types", webhooks::list_event_types),
        get("/webhooks/{id}", ADMIN, "read_webhook", "Returns one subscription without its secrets", webhooks::read),
        put(
            "/webhooks/{id}",
            ADMIN,
            "update_webhook",
            "Updates the given fields and keeps the others",
            webhooks::update,
        )
        .with_errors(&[409, 422]),
        delete(
            "/webhooks/{id}",
            ADMIN,
            "delete_webhook",
            "Deletes a subscription and its deliveries",
            webhooks::delete,
        ),
        get(
            "/webhooks/{id}/deliveries",
            ADMIN,
            "list_webhook_deliveries",
            "Lists the deliveries of the subscription, newest first",
            webhook_deliveries::list,
        ),
        post("/webhooks/{id}/test", ADMIN, "test_webhook", "Sends a test message", webhooks::test),
    ]
}
