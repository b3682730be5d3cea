//! The properties of a self-healing controller, one function each. The error describes the violation.

use std::time::Duration;

use serde_json::{Value, json};
use sindri_apiserver::{Fault, Verb, Write};
use sindri_guests::harness::{POD, PodOutcome, PodRule, World, is_guest_write};
use sindri_guests::object::{text, uid};
use sindri_guests::self_healing::{
    ACCEPTED, AGENT, CHILDREN, Child, MODEL_CONFIG, READY, REPAIR_MAX, RESYNC, SECRET, condition,
};

use crate::self_healing_support::{
    API, GUEST, LIMIT, NAMESPACE, PODS, add_model, agent, await_converged, change_key, change_model, check_converged,
    child_of, child_uids, declare, edit_agent, ensure, phase, phases, statuses,
};

/// A property of the suite.
pub type Property = fn(&mut World) -> Result<(), String>;

/// The properties, each with a name.
pub const SUITE: [(&str, Property); 13] = [
    ("repair", a_deleted_child_is_recreated),
    ("drift", a_changed_child_is_corrected),
    ("references", a_change_of_a_referenced_object_arrives_at_once),
    ("rollout", pods_are_replaced_when_their_key_changes),
    ("missing reference", without_its_references_an_agent_keeps_its_children),
    ("undeclared", a_child_that_is_no_longer_declared_is_deleted),
    ("ownership", an_object_of_another_client_is_not_changed),
    ("deletion", children_are_deleted_with_their_agent),
    ("recreation", a_recreated_agent_gets_new_children),
    ("status", the_phase_is_pending_once_and_stays_ready_through_a_repair),
    ("degraded", an_agent_without_pods_does_not_stay_ready),
    ("missed event", a_resync_mends_a_missed_event),
    ("quiet", nothing_is_written_without_a_change),
];

/// Time within which a watch event must be acted on.
const AT_ONCE: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_secs(10);

/// Creates an agent, and waits until it is ready and all events are processed.
fn with_bot(world: &mut World) -> Result<(), String> {
    declare(world, "bot", "small");
    await_converged(world)?;
    world.advance(AT_ONCE);
    Ok(())
}

/// Returns the controller's writes of children from an index of the journal on.
fn child_writes(world: &World, from: usize) -> Vec<(Verb, String)> {
    let is_child_write = |write: &&Write| is_guest_write(write) && write.key.kind != AGENT.kind;
    let writes = world.writes(API)[from..].iter().filter(is_child_write);
    writes.map(|write| (write.verb, write.key.kind.clone())).collect()
}

fn a_deleted_child_is_recreated(world: &mut World) -> Result<(), String> {
    with_bot(world)?;
    for child in CHILDREN {
        let (before, from) = (child_uids(world, "bot"), world.writes(API).len());
        let object = child_of(world, child, "bot").ok_or("a child is missing")?;
        world.delete(API, child.kind(), NAMESPACE, text(&object, "/metadata/name"));
        let is_back = |world: &mut World| child_of(world, child, "bot").is_some_and(|new| uid(&new) != before[&child]);
        ensure(world.advance_until_written(AT_ONCE, is_back), &format!("{child:?} is not recreated at once"))?;
        await_converged(world)?;
        let kind = child.kind().kind.to_owned();
        ensure(child_writes(world, from) == [(Verb::Create, kind)], "more is written than one child")?;
        // Later events of this child must not hide that the deletion of the next one causes none.
        world.advance(AT_ONCE);
    }
    Ok(())
}

fn a_changed_child_is_corrected(world: &mut World) -> Result<(), String> {
    with_bot(world)?;
    let from = world.writes(API).len();
    world.edit(API, Child::Deployment.kind(), NAMESPACE, "bot", |object| object["spec"]["replicas"] = json!(1));
    world.edit(API, Child::Service.kind(), NAMESPACE, "bot", |object| object["spec"]["ports"][0]["port"] = json!(81));
    world.edit(API, SECRET, NAMESPACE, "bot-config", |object| object["data"] = json!({"key": "eA=="}));
    world.advance(AT_ONCE);
    ensure(child_writes(world, from).len() == 3, "each changed child is updated once and at once")?;
    await_converged(world)
}

fn a_change_of_a_referenced_object_arrives_at_once(world: &mut World) -> Result<(), String> {
    with_bot(world)?;
    declare(world, "other", "large");
    await_converged(world)?;
    world.advance(AT_ONCE);
    let reconciled = world.requests(API, "GET agents/other").len();
    change_model(world, "small", "small-2");
    let has_model = |world: &mut World| {
        let deployment = child_of(world, Child::Deployment, "bot").unwrap_or_default();
        text(&deployment, "/spec/template/spec/containers/0/env/0/value") == "small-2"
    };
    ensure(world.advance_until_written(AT_ONCE, has_model), "a change of the ModelConfig does not arrive at once")?;
    // Later events of the Deployment must not hide that the next change causes none.
    await_converged(world)?;
    world.advance(AT_ONCE);
    let before = child_of(world, Child::Secret, "bot").unwrap_or_default();
    change_key(world, "small-key", "another");
    let has_key =
        |world: &mut World| child_of(world, Child::Secret, "bot").is_some_and(|new| new["data"] != before["data"]);
    ensure(world.advance_until_written(AT_ONCE, has_key), "a change of the Secret does not arrive at once")?;
    world.advance(AT_ONCE);
    let is_alone = world.requests(API, "GET agents/other").len() == reconciled;
    ensure(is_alone, "an agent that does not refer to the object is reconciled too")
}

/// Returns the UIDs of all pods.
fn pods(world: &mut World) -> Vec<String> {
    world.list(API, POD).iter().map(|pod| uid(pod).to_owned()).collect()
}

fn pods_are_replaced_when_their_key_changes(world: &mut World) -> Result<(), String> {
    with_bot(world)?;
    let before = pods(world);
    change_key(world, "small-key", "another");
    world.advance(LIMIT);
    await_converged(world)?;
    let after = pods(world);
    ensure(after.len() == before.len() && !after.iter().any(|pod| before.contains(pod)), "a pod has the old key")
}

fn without_its_references_an_agent_keeps_its_children(world: &mut World) -> Result<(), String> {
    with_bot(world)?;
    let (before, from) = (child_uids(world, "bot"), world.writes(API).len());
    world.delete(API, MODEL_CONFIG, NAMESPACE, "small");
    world.advance(LIMIT);
    ensure(child_uids(world, "bot") == before && child_writes(world, from).is_empty(), "children are deleted")?;
    let bot = agent(world, "bot").ok_or("the agent is gone")?;
    let accepted = condition(&bot, ACCEPTED).cloned().unwrap_or_default();
    let is_reported = accepted["status"] == "False" && accepted["message"] == "ModelConfig small does not exist";
    ensure(is_reported, "the missing reference is not reported")?;
    ensure(phase(world, "bot") == "Ready", "the pods still run")?;
    add_model(world, "small", "small-key");
    await_converged(world)
}

fn a_child_that_is_no_longer_declared_is_deleted(world: &mut World) -> Result<(), String> {
    with_bot(world)?;
    let remove_port = |spec: &mut Value| drop(spec.as_object_mut().and_then(|spec| spec.remove("port")));
    edit_agent(world, "bot", remove_port);
    world.advance(AT_ONCE);
    ensure(child_of(world, Child::Service, "bot").is_none(), "the Service is no longer declared, and stays")?;
    await_converged(world)?;
    edit_agent(world, "bot", |spec| spec["port"] = json!(82));
    await_converged(world)
}

fn an_object_of_another_client_is_not_changed(world: &mut World) -> Result<(), String> {
    let metadata = json!({"name": "bot", "namespace": NAMESPACE});
    let spec = json!({"ports": [{"port": 443}]});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec});
    let foreign = world.create(API, Child::Service.kind(), &service);
    declare(world, "bot", "small");
    world.advance(SOON);
    let live = child_of(world, Child::Service, "bot").unwrap_or_default();
    ensure(
        live["metadata"]["resourceVersion"] == foreign["metadata"]["resourceVersion"],
        "a foreign Service is changed",
    )?;
    let bot = agent(world, "bot").ok_or("the agent is gone")?;
    let accepted = condition(&bot, ACCEPTED).cloned().unwrap_or_default();
    ensure(text(&accepted, "/message").contains("Service bot exists and does not belong"), "it is not reported")?;
    world.delete(API, AGENT, NAMESPACE, "bot");
    world.advance(SOON);
    ensure(child_of(world, Child::Service, "bot").is_some(), "a foreign Service is deleted with the agent")
}

fn children_are_deleted_with_their_agent(world: &mut World) -> Result<(), String> {
    with_bot(world)?;
    declare(world, "other", "small");
    await_converged(world)?;
    world.delete(API, AGENT, NAMESPACE, "bot");
    world.advance(SOON);
    if let Some(child) = child_uids(world, "bot").keys().next() {
        return Err(format!("{child:?} outlives its agent"));
    }
    ensure(child_uids(world, "other").len() == CHILDREN.len(), "children of another agent are deleted")?;
    ensure(world.get(API, SECRET, NAMESPACE, "small-key").is_some(), "a referenced object is deleted")?;
    check_converged(world)
}

fn a_recreated_agent_gets_new_children(world: &mut World) -> Result<(), String> {
    with_bot(world)?;
    let (before, from) = (child_uids(world, "bot"), world.writes(API).len());
    world.delete(API, AGENT, NAMESPACE, "bot");
    // The garbage collector has not run yet.
    declare(world, "bot", "small");
    await_converged(world)?;
    world.advance(SOON);
    check_converged(world)?;
    let after = child_uids(world, "bot");
    ensure(CHILDREN.iter().all(|child| after[child] != before[child]), "a child of the earlier agent is kept")?;
    let written = statuses(world, from, "bot");
    ensure(phases(&written).first() == Some(&"Pending"), "the pods of the earlier agent count for the new one")
}

fn the_phase_is_pending_once_and_stays_ready_through_a_repair(world: &mut World) -> Result<(), String> {
    with_bot(world)?;
    let written = statuses(world, 0, "bot");
    ensure(phases(&written) == ["Pending", "Ready"], "the phase is pending first, and then ready")?;
    let message = |agent: &Value| condition(agent, READY).map(|ready| text(ready, "/message").to_owned());
    ensure(written.first().and_then(message).as_deref() == Some("0 of 3 pods are ready"), "the first count is wrong")?;
    ensure(written.last().and_then(message).as_deref() == Some("3 of 3 pods are ready"), "the last count is wrong")?;
    let transition = |agent: &Value| condition(agent, READY).map(|ready| ready["lastTransitionTime"].clone());
    let since = written.last().and_then(transition);
    let from = world.writes(API).len();
    world.delete(API, Child::Deployment.kind(), NAMESPACE, "bot");
    world.advance(AT_ONCE);
    await_converged(world)?;
    let written = statuses(world, from, "bot");
    ensure(phases(&written) == ["Ready"], "the phase changes during a repair")?;
    ensure(written.iter().any(|agent| agent["status"]["readyReplicas"] == 0), "the count is not the observed one")?;
    ensure(written.last().and_then(transition) == since, "the transition time changes without a transition")
}

fn an_agent_without_pods_does_not_stay_ready(world: &mut World) -> Result<(), String> {
    with_bot(world)?;
    world.set_pod_outcome(API, PodRule { outcome: PodOutcome::CrashLoop, ..PodRule::default() });
    world.advance(REPAIR_MAX / 2);
    ensure(phase(world, "bot") == "Ready", "a short failure is no degradation")?;
    world.advance(REPAIR_MAX / 2 + AT_ONCE);
    let bot = agent(world, "bot").ok_or("the agent is gone")?;
    ensure(text(&bot, "/status/phase") == "Degraded", "an agent without a pod is called ready")?;
    ensure(bot["status"]["readyReplicas"] == 0 && bot["status"]["replicas"] == PODS, "the count is wrong")?;
    world.clear_pod_outcomes(API);
    world.advance(SOON);
    check_converged(world)
}

fn a_resync_mends_a_missed_event(world: &mut World) -> Result<(), String> {
    with_bot(world)?;
    // The controller cannot find out which agents refer to the changed object.
    let unavailable = Fault::Refuse { status: 503, retry_after_secs: None };
    world.fail_requests(API, "GET /agents !agents/ !watch", unavailable, None);
    change_model(world, "small", "small-2");
    world.advance(AT_ONCE);
    world.stop_failing(API);
    world.advance(AT_ONCE);
    assert!(check_converged(world).is_err(), "no event was missed");
    // And one is missed while the controller is down.
    await_converged(world).map_err(|problem| format!("a missed event is never mended: {problem}"))?;
    world.kill(GUEST);
    change_key(world, "small-key", "another");
    world.delete(API, Child::Service.kind(), NAMESPACE, "bot");
    world.advance(SOON);
    world.restart(GUEST);
    world.advance(AT_ONCE);
    await_converged(world)
}

fn nothing_is_written_without_a_change(world: &mut World) -> Result<(), String> {
    with_bot(world)?;
    for span in [SOON, 2 * RESYNC] {
        let (from, requests) = (world.writes(API).len(), world.request_count(API));
        world.advance(span);
        ensure(!world.writes(API)[from..].iter().any(is_guest_write), "the controller keeps writing")?;
        ensure(world.request_count(API) - requests < 50, "the controller keeps reading")?;
    }
    check_converged(world)
}
