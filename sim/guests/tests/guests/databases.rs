//! A world with the Database controller in it, what people do there, and what must hold.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sindri_apiserver::{Verb, Write};
use sindri_guests::client::{Kind, is_deleting, name, uid};
use sindri_guests::database::{
    APPLIED, CHILDREN, Child, Controller, DATABASE, MANAGER, MANAGER_LABEL, Manner, Observed, Reconciler, condition,
    covers, definition, desired, is_owned_by, plan,
};
use sindri_guests::harness::{Process, State, World, is_guests};

/// The API server.
pub const API: &str = "cluster";
/// The machine of the controller.
pub const GUEST: &str = "database";
/// Where the databases are.
pub const PLACE: &str = "default";
/// What other people write on children.
const REMARK: &str = "example.com/remark";

pub fn reconciler(process: &Process, manner: Manner) -> Reconciler {
    let (clock, entropy) = (process.clock.clone(), process.entropy.clone());
    Reconciler { client: process.client(API), clock, entropy, manner }
}

/// An API server that knows databases, and the controller.
pub fn move_in(world: &mut World, manner: Manner) {
    world.add_api(API);
    world.define(API, &definition());
    world.add_guest(GUEST, move |process| Controller { reconciler: reconciler(&process, manner) }.run());
}

pub fn declare(world: &mut World, name: &str) {
    let spec = json!({"image": "db:1", "replicas": 1, "storage": "1Gi"});
    let metadata = json!({"name": name, "namespace": PLACE});
    let database =
        json!({"apiVersion": DATABASE.api_version(), "kind": DATABASE.kind, "metadata": metadata, "spec": spec});
    world.create(API, DATABASE, &database);
}

pub fn scale(world: &mut World, name: &str, replicas: u64) {
    world.change(API, DATABASE, PLACE, name, |database| database["spec"]["replicas"] = json!(replicas));
}

pub fn database(world: &mut World, name: &str) -> Value {
    world.get(API, DATABASE, PLACE, name).unwrap()
}

/// The children that carry the controller's label, whoever's they are.
pub fn managed(world: &mut World, child: Child) -> Vec<Value> {
    let managed = |object: &Value| object["metadata"]["labels"][MANAGER_LABEL] == MANAGER;
    world.list(API, child.kind()).into_iter().filter(managed).collect()
}

/// The one child of this kind of a database that is called as it should be.
pub fn child_of(world: &mut World, child: Child, of: &str) -> Value {
    let called = child.name(&json!({"metadata": {"name": of}}));
    world.get(API, child.kind(), PLACE, &called).unwrap_or_else(|| panic!("{called} is not there"))
}

pub fn version(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

/// Somebody else remarks something on every child that there is.
pub fn meddle(world: &mut World, remark: u64) {
    for child in CHILDREN {
        for object in managed(world, child) {
            world.change(API, child.kind(), PLACE, name(&object), |object| {
                object["metadata"]["annotations"][REMARK] = json!(remark.to_string());
            });
        }
    }
}

/// Whether exactly one set of children is there for each database, as declared and reported; if not, why not.
pub fn settled(world: &mut World) -> Result<(), String> {
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
        settled_one(world, database)?;
    }
    Ok(())
}

fn settled_one(world: &mut World, database: &Value) -> Result<(), String> {
    let mut observed = Observed::new();
    for child in CHILDREN {
        observed.extend(managed(world, child).into_iter().find(|o| is_owned_by(o, database)).map(|o| (child, o)));
    }
    let planned = plan(database, &observed);
    if !planned.steps.is_empty() || planned.obstacle.is_some() {
        return Err(format!("{} is not as declared", name(database)));
    }
    let told = database.pointer("/status/observedGeneration");
    if told != database.pointer("/metadata/generation") || condition(database, APPLIED) != "True" {
        return Err(format!("{} is not reported to be as declared", name(database)));
    }
    Ok(())
}

/// Adds the judges that see every write.
pub fn add_judges(world: &mut World) {
    world.judge(API, no_update_is_lost);
    let mut complete = BTreeSet::new();
    world.judge(API, move |write, state| status_is_last(&mut complete, write, state));
}

/// What other people remarked stays when the controller writes.
fn no_update_is_lost(write: &Write, _: &State) -> Result<(), String> {
    let (Some(before), Some(after)) = (&write.before, &write.after) else { return Ok(()) };
    let lost = before["metadata"]["annotations"][REMARK] != after["metadata"]["annotations"][REMARK];
    if is_guests(write) && write.verb == Verb::Update && lost {
        return Err(format!("lost update: a remark on {} {}", write.key.kind, write.key.name));
    }
    Ok(())
}

/// A database is said to be as declared only when each of its children has been so.
fn status_is_last(complete: &mut BTreeSet<(String, u64, Child)>, write: &Write, state: &State) -> Result<(), String> {
    // Whether something has been as declared is asked before each write: what one write left is seen at the next.
    // What other people remark makes nothing complete, and is most of what is written.
    let is_remark = !is_guests(write) && write.verb == Verb::Update && !is(&write.key.kind, DATABASE);
    if is_remark {
        return Ok(());
    }
    let databases = state.iter().filter(|(key, _)| is(&key.kind, DATABASE)).map(|(_, object)| object);
    for database in databases {
        for child in CHILDREN {
            let mut wanted = desired(child, database);
            wanted["metadata"].as_object_mut().unwrap().remove("name");
            let of_kind = state.iter().filter(|(key, _)| is(&key.kind, child.kind())).map(|(_, object)| object);
            if of_kind.into_iter().any(|object| covers(object, &wanted)) {
                complete.insert((uid(database).to_owned(), generation(database), child));
            }
        }
    }
    let Some(after) = write.after.as_deref().filter(|_| is(&write.key.kind, DATABASE)) else { return Ok(()) };
    if write.subresource != "status" || condition(after, APPLIED) != "True" || is_deleting(after) {
        return Ok(());
    }
    let told = after.pointer("/status/observedGeneration").and_then(Value::as_u64).unwrap();
    let is_complete = |child: &Child| complete.contains(&(uid(after).to_owned(), told, *child));
    if CHILDREN.iter().all(is_complete) {
        return Ok(());
    }
    Err(format!("early status: {} is said to be as declared and never was", name(after)))
}

fn is(kind: &str, of: Kind) -> bool {
    kind == of.kind
}

fn generation(object: &Value) -> u64 {
    object["metadata"]["generation"].as_u64().unwrap()
}
