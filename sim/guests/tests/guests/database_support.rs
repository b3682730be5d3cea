//! A world with the Database controller, changes of other clients, and the oracles.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sindri_apiserver::{Verb, Write};
use sindri_guests::client::ResourceKind;
use sindri_guests::compare::covers;
use sindri_guests::database::{
    APPLIED, CHILDREN, Child, Comparison, Controller, DATABASE, MANAGER, MANAGER_LABEL, ObservedChildren, Reconciler,
    Variant, condition_status, crd, desired_child, is_owned_by, plan,
};
use sindri_guests::harness::{Process, State, World, is_guest_write};
use sindri_guests::object::{is_deleting, name, uid};

/// Name of the API server.
pub const API: &str = "cluster";
/// Host of the controller.
pub const GUEST: &str = "database";
/// Namespace of the databases.
pub const NAMESPACE: &str = "default";
/// Annotation that other clients write on children.
const REMARK: &str = "example.com/remark";

pub fn reconciler(process: &Process, variant: Variant) -> Reconciler {
    let (clock, entropy) = (process.clock.clone(), process.entropy.clone());
    Reconciler { client: process.client(API), clock, entropy, variant }
}

/// Adds an API server with the CRD, and the controller.
pub fn add_controller(world: &mut World, variant: Variant) {
    world.add_api(API);
    install_controller(world, variant);
}

/// Adds the CRD to the API server, and the controller.
pub fn install_controller(world: &mut World, variant: Variant) {
    world.install_crd(API, &crd());
    world.add_guest(GUEST, move |process| Controller { reconciler: reconciler(&process, variant) }.run());
}

pub fn declare(world: &mut World, name: &str) {
    let spec = json!({"image": "db:1", "replicas": 1, "storage": "1Gi"});
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    let database =
        json!({"apiVersion": DATABASE.api_version(), "kind": DATABASE.kind, "metadata": metadata, "spec": spec});
    world.create(API, DATABASE, &database);
}

pub fn scale(world: &mut World, name: &str, replicas: u64) {
    world.edit(API, DATABASE, NAMESPACE, name, |database| database["spec"]["replicas"] = json!(replicas));
}

pub fn database(world: &mut World, name: &str) -> Value {
    world.get(API, DATABASE, NAMESPACE, name).unwrap()
}

/// Returns the children with the controller's label, of any owner.
pub fn managed(world: &mut World, child: Child) -> Vec<Value> {
    let managed = |object: &Value| object["metadata"]["labels"][MANAGER_LABEL] == MANAGER;
    world.list(API, child.kind()).into_iter().filter(managed).collect()
}

/// Returns the child of a database by its derived name.
pub fn child_of(world: &mut World, child: Child, database: &str) -> Value {
    let child_name = child.name(&json!({"metadata": {"name": database}}));
    world.get(API, child.kind(), NAMESPACE, &child_name).unwrap_or_else(|| panic!("{child_name} does not exist"))
}

pub fn resource_version(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

/// Another client annotates every child.
pub fn edit_children(world: &mut World, remark: u64) {
    for child in CHILDREN {
        for object in managed(world, child) {
            world.edit(API, child.kind(), NAMESPACE, name(&object), |object| {
                object["metadata"]["annotations"][REMARK] = json!(remark.to_string());
            });
        }
    }
}

/// Checks that each database has exactly one set of children in the desired state, and that its status says so.
pub fn check_converged(world: &mut World) -> Result<(), String> {
    let databases: Vec<Value> = world.list(API, DATABASE);
    for child in CHILDREN {
        let all = managed(world, child);
        for database in &databases {
            let count = all.iter().filter(|object| is_owned_by(object, database)).count();
            if count != 1 {
                return Err(format!("{} has {count} children of kind {}", name(database), child.kind().kind));
            }
        }
        if all.len() != databases.len() {
            return Err(format!(
                "{} children of kind {} are left over",
                all.len() - databases.len(),
                child.kind().kind
            ));
        }
    }
    for database in &databases {
        check_database(world, database)?;
    }
    Ok(())
}

fn check_database(world: &mut World, database: &Value) -> Result<(), String> {
    let mut observed = ObservedChildren::new();
    for child in CHILDREN {
        observed.extend(managed(world, child).into_iter().find(|o| is_owned_by(o, database)).map(|o| (child, o)));
    }
    let planned = plan(database, &observed, Comparison::Desired);
    if !planned.steps.is_empty() || planned.obstacle.is_some() {
        return Err(format!("{} does not have its desired state", name(database)));
    }
    let observed_generation = database.pointer("/status/observedGeneration");
    if observed_generation != database.pointer("/metadata/generation") || condition_status(database, APPLIED) != "True"
    {
        return Err(format!("{} is not reported as applied", name(database)));
    }
    Ok(())
}

/// Adds the oracles that check every write.
pub fn add_oracles(world: &mut World) {
    world.add_oracle(API, no_update_is_lost);
    let mut complete = BTreeSet::new();
    world.add_oracle(API, move |write, state| status_is_last(&mut complete, write, state));
}

/// Oracle: annotations of other clients survive writes of the controller.
fn no_update_is_lost(write: &Write, _: &State) -> Result<(), String> {
    let (Some(before), Some(after)) = (&write.before, &write.after) else { return Ok(()) };
    let lost = before["metadata"]["annotations"][REMARK] != after["metadata"]["annotations"][REMARK];
    if is_guest_write(write) && write.verb == Verb::Update && lost {
        return Err(format!("lost update: an annotation of {} {}", write.key.kind, write.key.name));
    }
    Ok(())
}

/// Oracle: the status says that a database is applied only after each of its children had its desired state.
fn status_is_last(complete: &mut BTreeSet<(String, u64, Child)>, write: &Write, state: &State) -> Result<(), String> {
    // The state before each write is checked, which includes the result of the write before it. Most writes are
    // annotations of other clients, which cannot complete a child.
    let is_remark = !is_guest_write(write) && write.verb == Verb::Update && !is_kind(&write.key.kind, DATABASE);
    if is_remark {
        return Ok(());
    }
    let databases = state.iter().filter(|(key, _)| is_kind(&key.kind, DATABASE)).map(|(_, object)| object);
    for database in databases {
        for child in CHILDREN {
            let mut desired = desired_child(child, database);
            desired["metadata"].as_object_mut().unwrap().remove("name");
            let of_kind = state.iter().filter(|(key, _)| is_kind(&key.kind, child.kind())).map(|(_, object)| object);
            if of_kind.into_iter().any(|object| covers(object, &desired)) {
                complete.insert((uid(database).to_owned(), generation(database), child));
            }
        }
    }
    let Some(after) = write.after.as_deref().filter(|_| is_kind(&write.key.kind, DATABASE)) else { return Ok(()) };
    if write.subresource != "status" || condition_status(after, APPLIED) != "True" || is_deleting(after) {
        return Ok(());
    }
    let generation = after.pointer("/status/observedGeneration").and_then(Value::as_u64).unwrap();
    let is_complete = |child: &Child| complete.contains(&(uid(after).to_owned(), generation, *child));
    if CHILDREN.iter().all(is_complete) {
        return Ok(());
    }
    Err(format!("early status: {} is reported as applied before all children are", name(after)))
}

fn is_kind(name: &str, kind: ResourceKind) -> bool {
    name == kind.kind
}

fn generation(object: &Value) -> u64 {
    object["metadata"]["generation"].as_u64().unwrap()
}
