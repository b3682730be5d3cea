//! What must never happen, checked at every write of every cluster, and what must hold at the end.
//!
//! Judged by the ledger of what was asked and by the journal of the API servers.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use sindri_agent::{CHECKSUM_ANNOTATION, INVENTORY_LABEL, INVENTORY_NAMESPACE, LEASE_NAME, STACK_ANNOTATION};
use sindri_apiserver::{Actor, StoredKey, Timestamp, Write};
use sindri_model::ObjectKey;

use crate::ledger::{Instruction, Ledger};

/// A property that did not hold, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which property.
    pub oracle: &'static str,
    /// What was seen.
    pub message: String,
}

/// A namespace that its agent deleted although it was wanted: right only as a rollback.
#[derive(Clone, Debug)]
pub struct TakenBack {
    /// The cluster.
    pub cluster: String,
    /// The stack by id.
    pub stack: String,
    /// The namespace.
    pub name: String,
    /// When the agent had made it.
    pub made: Timestamp,
    /// When it deleted it.
    pub deleted: Timestamp,
}

/// Watches one cluster.
#[derive(Clone, Debug, Default)]
pub struct Watchman {
    cluster: String,
    /// What the agent made, by UID, and when.
    made: BTreeMap<String, Timestamp>,
    /// What the agent wrote at least once, by UID.
    touched: BTreeSet<String>,
    /// Namespaces and definitions that the agent deleted: what goes with them is its doing.
    deleted: BTreeSet<ObjectKey>,
    /// To be judged at the end, when the events are known.
    pub taken_back: Vec<TakenBack>,
}

/// Whether a write was the agent's.
pub fn is_agents(write: &Write) -> bool {
    matches!(&write.actor, Actor::Client { user_agent, .. } if user_agent.starts_with("sindri-agent/"))
}

/// A stored key as the model writes it.
pub fn model_key(key: &StoredKey) -> ObjectKey {
    ObjectKey {
        group: key.group.clone(),
        kind: key.kind.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    }
}

/// How a write reads: `create ConfigMap shop/a`.
pub fn describe(write: &Write) -> String {
    let deleting = |object: &Value| object["metadata"]["deletionTimestamp"].is_string();
    let verb = match (&write.before, &write.after) {
        (None, _) => "create",
        (Some(_), None) => "delete",
        (Some(before), Some(after)) if !deleting(before) && deleting(after) => "delete",
        (Some(_), Some(_)) => "change",
    };
    format!("{verb} {}", model_key(&write.key))
}

/// What the agent keeps for itself.
fn is_inventory(key: &ObjectKey) -> bool {
    let of_core = key.group.is_empty();
    (of_core && key.kind == "Namespace" && key.name == INVENTORY_NAMESPACE)
        || (of_core && key.kind == "ConfigMap" && key.name.starts_with("inventory-"))
        || is_lease(key)
}

/// By which one process says that it acts: written again and again, whatever happens.
pub fn is_lease(key: &ObjectKey) -> bool {
    key.kind == "Lease" && key.name == LEASE_NAME
}

impl Watchman {
    /// Watches the cluster of this agent.
    pub fn new(cluster: &str) -> Self {
        Self { cluster: cluster.to_owned(), ..Self::default() }
    }

    /// Judges one write.
    pub fn judge(&mut self, write: &Write, ledger: &Ledger) -> Result<(), Violation> {
        let key = model_key(&write.key);
        if !is_agents(write) {
            return self.judge_cascade(write, &key);
        }
        if is_inventory(&key) {
            return Ok(());
        }
        let what = describe(write);
        if what.starts_with("delete") {
            return self.judge_delete(write, &key, ledger);
        }
        if !ledger.ever_declared(&self.cluster, &key) {
            let message = format!("the agent of {} wrote {key}, which nobody ever declared", self.cluster);
            return Err(Violation { oracle: "nothing-foreign-touched", message });
        }
        if what.starts_with("create") {
            self.made.insert(write.uid.clone(), write.at);
        }
        self.touched.insert(write.uid.clone());
        Ok(())
    }

    /// A controller that deletes what was in a namespace of ours acts for the agent.
    fn judge_cascade(&self, write: &Write, key: &ObjectKey) -> Result<(), Violation> {
        let by_controller = matches!(write.actor, Actor::Controller(_)) && write.after.is_none();
        let made_by_cluster = (key.kind == "ServiceAccount" && key.name == "default")
            || (key.kind == "ConfigMap" && key.name == "kube-root-ca.crt");
        let taken_along = self
            .deleted
            .iter()
            .find(|deleted| deleted.kind == "Namespace" && key.namespace.as_deref() == Some(deleted.name.as_str()));
        match taken_along {
            Some(namespace) if by_controller && !made_by_cluster && !self.touched.contains(&write.uid) => {
                let message = format!("the agent of {} deleted {namespace}, and with it {key}", self.cluster);
                Err(Violation { oracle: "nothing-foreign-touched", message })
            }
            _ => Ok(()),
        }
    }

    fn judge_delete(&mut self, write: &Write, key: &ObjectKey, ledger: &Ledger) -> Result<(), Violation> {
        let foreign = |message| Err(Violation { oracle: "nothing-foreign-touched", message });
        if !self.touched.contains(&write.uid) {
            return foreign(format!("the agent of {} deleted {key}, which it had never written", self.cluster));
        }
        self.deleted.insert(key.clone());
        let annotations = write.before.as_ref().map(|before| &before["metadata"]["annotations"]);
        let annotation = |name: &str| annotations.and_then(|all| all[name].as_str()).unwrap_or_default();
        let Some(stack) = ledger.by_id(annotation(STACK_ANNOTATION)) else {
            // The marks were stripped; that it wrote the object itself is proof enough.
            return Ok(());
        };
        // Any instruction from the revision that last wrote the object on may ask for its removal.
        let written = stack.instructions.iter().position(|instruction| {
            matches!(instruction, Instruction::Declare(declaration)
                if declaration.checksum.as_str() == annotation(CHECKSUM_ANNOTATION))
        });
        let asked = stack.instructions[written.unwrap_or(0)..].iter().any(|instruction| match instruction {
            Instruction::Declare(declaration) => !declaration.declares(key) || declaration.replaces(key),
            Instruction::Remove { agent } => agent.as_ref().is_none_or(|agent| *agent == self.cluster),
        });
        if asked {
            return Ok(());
        }
        match self.made.get(&write.uid) {
            Some(made) if key.kind == "Namespace" => {
                self.taken_back.push(TakenBack {
                    cluster: self.cluster.clone(),
                    stack: stack.id.to_string(),
                    name: key.name.clone(),
                    made: *made,
                    deleted: write.at,
                });
                Ok(())
            }
            _ => {
                let message = format!("the agent of {} deleted {key}, which every revision declares", self.cluster);
                Err(Violation { oracle: "no-wanted-object-deleted", message })
            }
        }
    }

    /// What is left in the cluster that the agent made and nobody wants.
    pub fn leaks<'a>(
        &self,
        objects: impl Iterator<Item = (&'a StoredKey, &'a Value)>,
        ledger: &Ledger,
    ) -> Vec<ObjectKey> {
        let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        objects
            .filter(|(key, object)| {
                let key = model_key(key);
                if is_inventory(&key) {
                    let stack = object["metadata"]["labels"][INVENTORY_LABEL].as_str().unwrap_or_default();
                    let known = ledger.by_id(stack);
                    return key.kind == "ConfigMap"
                        && known.is_some_and(|stack| stack.kept_at(&self.cluster).is_none());
                }
                let wanted = ledger
                    .stacks
                    .values()
                    .filter_map(|stack| stack.kept_at(&self.cluster))
                    .any(|declaration| declaration.declares(&key));
                self.made.contains_key(&uid(object)) && !wanted
            })
            .map(|(key, _)| model_key(key))
            .collect()
    }
}

/// Whether a live object has everything that a manifest declares.
pub fn holds(live: &Value, declared: &Value) -> bool {
    match (live, declared) {
        (Value::Object(live), Value::Object(declared)) => declared.iter().all(|(field, value)| match field.as_str() {
            // What a Secret declares in clear text comes back encoded.
            "stringData" => live.get("data").is_some_and(|data| holds(data, &encoded(value))),
            _ => value.is_null() || live.get(field).is_some_and(|live| holds(live, value)),
        }),
        (Value::Array(live), Value::Array(declared)) => {
            live.len() == declared.len() && live.iter().zip(declared).all(|(live, declared)| holds(live, declared))
        }
        _ => live == declared,
    }
}

fn encoded(plain: &Value) -> Value {
    let fields = plain.as_object().into_iter().flatten();
    let encode = |value: &Value| Value::String(BASE64.encode(value.as_str().unwrap_or_default()));
    fields.map(|(name, value)| (name.clone(), encode(value))).collect()
}
