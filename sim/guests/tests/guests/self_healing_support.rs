//! A world with the self-healing controller: a cluster with nodes, changes of other clients, and the oracles.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use sindri_apiserver::Write;
use sindri_guests::compare::covers;
use sindri_guests::harness::{State, World, is_guest_write};
use sindri_guests::object::{is_deleting, name, text, uid};
use sindri_guests::owners::owner_references;
use sindri_guests::self_healing::{
    ACCEPTED, AGENT, CHILDREN, Child, Controller, MANAGER, MANAGER_LABEL, MODEL_CONFIG, NAME_LABEL, RESYNC, Reconciler,
    References, SECRET, Variant, condition, crds, desired_child, resolve,
};

/// Name of the API server.
pub const API: &str = "cluster";
/// Host of the controller.
pub const GUEST: &str = "self-healing";
/// Namespace of all objects.
pub const NAMESPACE: &str = "default";
/// Nodes of the cluster.
pub const NODES: [&str; 2] = ["node-1", "node-2"];
/// Number of pods of each agent.
pub const PODS: u64 = 3;
/// Time limit of convergence without faults.
pub const LIMIT: Duration = Duration::from_secs(RESYNC.as_secs() + 30);
/// Key that must occur in no log line and in no status.
pub const KEY: &str = "do-not-show-this-key";

/// Adds the API server, two model configurations with their keys, and the controller.
pub fn start(world: &mut World, variant: Variant) {
    world.add_api_with_nodes(API, &NODES);
    crds().iter().for_each(|crd| world.install_crd(API, crd));
    for model in ["small", "large"] {
        let secret = format!("{model}-key");
        add_key(world, &secret, KEY);
        add_model(world, model, &secret);
    }
    world.add_guest(GUEST, move |process| {
        let (client, clock) = (process.client(API), process.clock.clone());
        Controller { reconciler: Reconciler { client, clock, variant } }.run()
    });
}

pub fn add_key(world: &mut World, secret: &str, key: &str) {
    let metadata = json!({"name": secret, "namespace": NAMESPACE});
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"key": key}});
    world.create(API, SECRET, &object);
}

pub fn change_key(world: &mut World, secret: &str, key: &str) {
    world.edit(API, SECRET, NAMESPACE, secret, |object| object["stringData"] = json!({"key": key}));
}

pub fn add_model(world: &mut World, model_config: &str, secret: &str) {
    let metadata = json!({"name": model_config, "namespace": NAMESPACE});
    let spec = json!({"model": format!("{model_config}-1"), "secret": secret});
    let (version, kind) = (MODEL_CONFIG.api_version(), MODEL_CONFIG.kind);
    let object = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
    world.create(API, MODEL_CONFIG, &object);
}

pub fn change_model(world: &mut World, model_config: &str, model: &str) {
    world.edit(API, MODEL_CONFIG, NAMESPACE, model_config, |object| object["spec"]["model"] = json!(model));
}

/// Creates an agent with a Service.
pub fn declare(world: &mut World, agent: &str, model_config: &str) {
    let metadata = json!({"name": agent, "namespace": NAMESPACE});
    let spec = json!({"image": "bot:1", "replicas": PODS, "port": 80, "modelConfig": model_config});
    let object = json!({"apiVersion": AGENT.api_version(), "kind": AGENT.kind, "metadata": metadata, "spec": spec});
    world.create(API, AGENT, &object);
}

pub fn edit_agent(world: &mut World, agent: &str, change: impl FnOnce(&mut Value)) {
    world.edit(API, AGENT, NAMESPACE, agent, |object| change(&mut object["spec"]));
}

pub fn agent(world: &mut World, name: &str) -> Option<Value> {
    world.get(API, AGENT, NAMESPACE, name)
}

pub fn phase(world: &mut World, name: &str) -> String {
    agent(world, name).map(|agent| text(&agent, "/status/phase").to_owned()).unwrap_or_default()
}

/// Returns the object with the name of a child.
pub fn child_of(world: &mut World, child: Child, agent: &str) -> Option<Value> {
    let child_name = child.name(&json!({"metadata": {"name": agent}}));
    world.get(API, child.kind(), NAMESPACE, &child_name)
}

/// Returns the UIDs of the existing children.
pub fn child_uids(world: &mut World, agent: &str) -> BTreeMap<Child, String> {
    let existing = CHILDREN.into_iter().filter_map(|child| Some((child, child_of(world, child, agent)?)));
    existing.map(|(child, object)| (child, uid(&object).to_owned())).collect()
}

/// Returns the statuses that the controller wrote for the agents of a name, from an index of the journal on.
pub fn statuses(world: &World, from: usize, agent: &str) -> Vec<Value> {
    let is_status = |write: &&Write| {
        is_guest_write(write)
            && write.subresource == "status"
            && write.key.kind == AGENT.kind
            && write.key.name == agent
    };
    world.writes(API)[from..].iter().filter(is_status).filter_map(|write| write.after.as_deref().cloned()).collect()
}

/// Returns the phases of statuses without repetitions.
pub fn phases(statuses: &[Value]) -> Vec<&str> {
    let mut phases: Vec<&str> = statuses.iter().map(|agent| text(agent, "/status/phase")).collect();
    phases.dedup();
    phases
}

/// Returns an error unless a condition holds.
pub fn ensure(holds: bool, problem: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem.to_owned()) }
}

pub fn await_converged(world: &mut World) -> Result<(), String> {
    world.advance_until_written(LIMIT, |world| check_converged(world).is_ok());
    check_converged(world)
}

/// Checks that each agent has its children in the desired state and all its pods, that its status says so, and that there
/// are no other children.
pub fn check_converged(world: &mut World) -> Result<(), String> {
    let agents = world.list(API, AGENT);
    for agent in &agents {
        check_agent(world, agent)?;
    }
    let names: Vec<&str> = agents.iter().map(name).collect();
    for child in CHILDREN {
        let children = world.list(API, child.kind()).into_iter().filter(is_managed);
        for object in children {
            let owner = object["metadata"]["labels"][NAME_LABEL].as_str().unwrap_or_default();
            ensure(names.contains(&owner), &format!("left over: {} {}", child.kind().kind, name(&object)))?;
        }
    }
    Ok(())
}

/// Returns true if an object has the label of the controller.
fn is_managed(object: &Value) -> bool {
    object["metadata"]["labels"][MANAGER_LABEL] == MANAGER
}

fn check_agent(world: &mut World, agent: &Value) -> Result<(), String> {
    let agent_name = name(agent);
    let model_config = world.get(API, MODEL_CONFIG, NAMESPACE, text(agent, "/spec/modelConfig"));
    let secret = model_config.as_ref().and_then(|found| world.get(API, SECRET, NAMESPACE, text(found, "/spec/secret")));
    let References::Complete(config) = resolve(agent, model_config.as_ref(), secret.as_ref()) else {
        return Err(format!("{agent_name} has no configuration"));
    };
    for child in CHILDREN {
        let live = child_of(world, child, agent_name).filter(is_managed);
        let is_as_declared = match (desired_child(child, agent, &config), &live) {
            (Some(mut desired), Some(live)) => {
                desired["metadata"] = json!({"labels": desired["metadata"]["labels"]});
                if child == Child::Deployment {
                    // That a new configuration replaces the pods is a property of its own.
                    desired["spec"]["template"]["metadata"]["annotations"] = json!({});
                }
                covers(live, &desired) && !is_deleting(live)
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        ensure(is_as_declared, &format!("{child:?} of {agent_name} does not have its desired state"))?;
    }
    let is_observed = agent.pointer("/status/observedGeneration") == agent.pointer("/metadata/generation");
    if !is_observed || condition(agent, ACCEPTED).is_none_or(|accepted| accepted["status"] != "True") {
        return Err(format!("{agent_name} is not reported as accepted"));
    }
    let deployment = child_of(world, Child::Deployment, agent_name).unwrap_or_default();
    let replicas = &agent["spec"]["replicas"];
    let is_observed = deployment.pointer("/status/observedGeneration") == deployment.pointer("/metadata/generation");
    let has_all_pods = ["replicas", "updatedReplicas", "readyReplicas"]
        .iter()
        .all(|count| deployment["status"].get(count).unwrap_or(&json!(0)) == replicas);
    ensure(is_observed && has_all_pods, &format!("{agent_name} does not have its pods"))?;
    let is_reported = agent["status"]["readyReplicas"] == *replicas && text(agent, "/status/phase") == "Ready";
    ensure(is_reported, &format!("{agent_name} is not reported as ready"))
}

/// Adds the oracles that check every write.
pub fn add_oracles(world: &mut World) {
    world.add_oracle(API, only_own_objects_are_written);
    let mut complete = BTreeSet::new();
    world.add_oracle(API, move |write, _| the_phase_is_true(&mut complete, write));
}

/// Oracle: the controller changes and deletes only objects that an agent owns.
fn only_own_objects_are_written(write: &Write, _: &State) -> Result<(), String> {
    let Some(before) = write.before.as_deref().filter(|_| is_guest_write(write) && write.key.kind != AGENT.kind) else {
        return Ok(());
    };
    let is_own = owner_references(before, AGENT).next().is_some();
    ensure(is_own, &format!("foreign object touched: {} {}", write.key.kind, write.key.name))
}

/// Oracle: an agent becomes ready only after its Deployment had all pods, and is never pending again. `complete` has the
/// UIDs of the agents whose Deployment had them.
fn the_phase_is_true(complete: &mut BTreeSet<String>, write: &Write) -> Result<(), String> {
    let Some(after) = write.after.as_deref() else { return Ok(()) };
    if write.key.kind == Child::Deployment.kind().kind {
        let has_all_pods = after["status"]["readyReplicas"] == after["spec"]["replicas"];
        let owners = owner_references(after, AGENT).map(|owner| text(owner, "/uid").to_owned());
        complete.extend(owners.filter(|_| has_all_pods));
    }
    let Some(before) = write.before.as_deref().filter(|_| write.key.kind == AGENT.kind && is_guest_write(write)) else {
        return Ok(());
    };
    match (text(before, "/status/phase"), text(after, "/status/phase")) {
        ("Ready" | "Degraded", "Pending") => Err(format!("set back: {} is pending again", name(after))),
        ("" | "Pending", "Ready") => {
            ensure(complete.contains(uid(after)), &format!("early status: {} never had its pods", name(after)))
        }
        _ => Ok(()),
    }
}
