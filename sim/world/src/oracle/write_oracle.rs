//! Judges every write of one cluster as it is committed, and lists what is left over at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::Value;
use sindri_agent::{
    AGENT_NAMESPACE, CHECKSUM_ANNOTATION, INVENTORY_LABEL, PRUNE_ANNOTATION, STACK_ANNOTATION, STACK_LABEL,
};
use sindri_apiserver::{Actor, StoredKey, Timestamp, Write};
use sindri_model::{ObjectKey, RevisionId};

use super::violation::Violation;
use crate::expected_object::is_container_of;
use crate::expected_state::{ExpectedInstruction, ExpectedStack, ExpectedState};
use crate::journal::{Operation, is_by_agent, is_copy, is_lease};
use crate::object_key::from_stored_key;

/// Longest time between the agent's look at the content of a namespace and its delete: one request may take this long.
const CHECK_AGE_MAX: SignedDuration = SignedDuration::from_secs(30);

/// A namespace that an agent deleted although its stack declares it. Correct only as the rollback of a pass that
/// created it and then failed.
#[derive(Clone, Debug)]
pub struct NamespaceRollback {
    /// Name of the cluster.
    pub cluster: String,
    /// Id of the stack.
    pub stack: String,
    /// Name of the namespace.
    pub name: String,
    /// Time at which the agent created it.
    pub created: Timestamp,
    /// Time at which the agent deleted it.
    pub deleted: Timestamp,
}

/// An object that is gone although the newest revision of a stack declares it. Wrong if the agent had already reported
/// that revision as applied since the object existed.
#[derive(Clone, Debug)]
pub struct SuspectDeletion {
    /// Name of the cluster.
    pub cluster: String,
    /// The object.
    pub key: ObjectKey,
    /// The revision that declares it.
    pub revision: RevisionId,
    /// Time at which the object was created.
    pub created: Timestamp,
    /// Time at which it was deleted.
    pub deleted: Timestamp,
}

/// An object from a time on; `None` if it did not exist.
type State = (Timestamp, Option<Arc<Value>>);

/// Oracle of one cluster.
#[derive(Clone, Debug, Default)]
pub struct WriteOracle {
    cluster: String,
    /// Creation times of the objects that the agent created, by UID.
    created: BTreeMap<String, Timestamp>,
    /// UIDs of the objects that the agent wrote at least once.
    touched: BTreeSet<String>,
    /// Objects that the agent deleted, with the time. It is responsible for everything that a deleted namespace takes with it.
    deleted: BTreeMap<ObjectKey, Timestamp>,
    /// Times at which other clients created objects, by UID.
    foreign_since: BTreeMap<String, Timestamp>,
    /// Objects that controllers of the cluster created by themselves.
    made_by_cluster: BTreeSet<String>,
    /// Namespaces in which other clients created an object, by its kind and name.
    foreign: BTreeMap<(String, String), BTreeSet<String>>,
    /// Deletions to be judged at the end of the run, once the events of the broker are known.
    pub rollbacks: Vec<NamespaceRollback>,
    /// Deletions of objects that a newest revision declares, to be judged at the end too.
    pub suspects: Vec<SuspectDeletion>,
    /// Deleted CRDs, by the group and kind that they defined.
    deleted_crds: BTreeMap<(String, String), ObjectKey>,
    /// Ids of the stacks whose inventories other clients deleted.
    lost_inventories: BTreeSet<String>,
    /// States of each object of a bundle, oldest first.
    history: BTreeMap<ObjectKey, Vec<State>>,
}

/// Returns true for objects that the agent keeps for its own use, and for Events, with which it reports.
fn is_own_object(key: &ObjectKey) -> bool {
    let is_core = key.group.is_empty();
    (is_core && key.kind == "Namespace" && key.name == AGENT_NAMESPACE)
        || (is_core && key.kind == "ConfigMap" && key.name.starts_with("inventory-"))
        || is_copy(key)
        || is_lease(key)
        || (is_core && key.kind == "Event")
}

fn is_prune_disabled(object: &Value) -> bool {
    object["metadata"]["annotations"][PRUNE_ANNOTATION] == "disabled"
}

/// Returns true for a workload without an owner: a controller may have created it, but for an object that a person has
/// deleted without it since then. It goes on running, and belongs to that person.
fn is_orphaned(key: &ObjectKey, object: &Value) -> bool {
    let is_workload = ["ReplicaSet", "Job", "Pod", "ControllerRevision"].contains(&key.kind.as_str());
    is_workload && object["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty)
}

impl WriteOracle {
    /// Creates the oracle of the cluster with this name.
    pub fn new(cluster: &str) -> Self {
        Self { cluster: cluster.to_owned(), ..Self::default() }
    }

    /// Judges one write. `last_list` returns when the agent last listed the objects of a resource, up to a time.
    pub fn judge(
        &mut self,
        write: &Write,
        expected: &ExpectedState,
        last_list: impl Fn(&StoredKey, Timestamp) -> Option<Timestamp>,
    ) -> Result<(), Violation> {
        let key = from_stored_key(&write.key);
        if expected.has_ever_declared(&self.cluster, &key) {
            self.history.entry(key.clone()).or_default().push((write.at, write.after.clone()));
        }
        if write.before.is_none() {
            self.deleted.remove(&key);
            self.deleted_crds.retain(|_, crd| *crd != key);
        }
        if !is_by_agent(write) {
            self.record_foreign(write, &key);
            return self.judge_cascade(write, &key, expected, last_list);
        }
        if is_own_object(&key) {
            self.touched.insert(write.uid.clone());
            return Ok(());
        }
        let operation = Operation::from_write(write);
        if operation == Operation::Delete {
            return self.judge_delete(write, &key, expected);
        }
        if !expected.has_ever_declared(&self.cluster, &key) {
            let message = format!("the agent of {} wrote {key}, which no revision ever declared", self.cluster);
            return Err(Violation { oracle: "nothing-foreign-touched", message });
        }
        if operation == Operation::Create {
            self.created.insert(write.uid.clone(), write.at);
        }
        self.touched.insert(write.uid.clone());
        Ok(())
    }

    /// Records objects that are not the agent's.
    fn record_foreign(&mut self, write: &Write, key: &ObjectKey) {
        if let Some(before) = &write.before {
            let stack = before["metadata"]["labels"][INVENTORY_LABEL].as_str().filter(|_| write.after.is_none());
            self.lost_inventories.extend(stack.map(str::to_owned));
            return;
        }
        self.foreign_since.insert(write.uid.clone(), write.at);
        match write.actor {
            // The claims of a StatefulSet hold data of people.
            Actor::Controller(_) if key.kind != "PersistentVolumeClaim" => {
                self.made_by_cluster.insert(write.uid.clone());
            }
            _ => {
                let namespaces = self.foreign.entry((key.kind.clone(), key.name.clone())).or_default();
                namespaces.extend(key.namespace.clone());
            }
        }
    }

    /// Returns true for an object that a service mesh or a platform creates in every namespace.
    fn is_injected(&self, key: &ObjectKey) -> bool {
        let namespaces = self.foreign.get(&(key.kind.clone(), key.name.clone()));
        namespaces.is_some_and(|namespaces| ["default", AGENT_NAMESPACE].iter().all(|name| namespaces.contains(*name)))
    }

    /// Judges a write of another client. A controller that empties a namespace, or deletes the custom resources of a
    /// CRD, which the agent deleted acts on behalf of the agent.
    fn judge_cascade(
        &mut self,
        write: &Write,
        key: &ObjectKey,
        expected: &ExpectedState,
        last_list: impl Fn(&StoredKey, Timestamp) -> Option<Timestamp>,
    ) -> Result<(), Violation> {
        let is_deleted_by_controller = matches!(write.actor, Actor::Controller(_)) && write.after.is_none();
        let Some((cause, at)) = self.find_cause(key).filter(|_| is_deleted_by_controller) else { return Ok(()) };
        self.record_suspects(write, key, expected);
        let is_orphaned = write.before.as_deref().is_some_and(|before| is_orphaned(key, before));
        let is_made_by_cluster = self.made_by_cluster.contains(&write.uid) && !is_orphaned || self.is_injected(key);
        let is_kept = write.before.as_deref().is_some_and(is_prune_disabled);
        let needs_approval = !is_made_by_cluster && (is_kept || !self.touched.contains(&write.uid));
        let is_permitted = expected.is_approved(&cause, key) || !is_kept && expected.needs_no_approval(&cause);
        if needs_approval && !is_permitted && !self.was_created_after_the_check(write, at, last_list) {
            let message = format!("the agent of {} deleted {cause}, and with it {key}", self.cluster);
            return Err(Violation { oracle: "nothing-foreign-touched", message });
        }
        Ok(())
    }

    /// Returns true if another client created an object between the agent's last look at its namespace and the delete.
    /// Kubernetes has no precondition for the content of a namespace, so that no client can know of it.
    fn was_created_after_the_check(
        &self,
        write: &Write,
        deleted: Timestamp,
        last_list: impl Fn(&StoredKey, Timestamp) -> Option<Timestamp>,
    ) -> bool {
        let (Some(created), Some(listed)) = (self.foreign_since.get(&write.uid), last_list(&write.key, deleted)) else {
            return false;
        };
        listed < *created && *created <= deleted && deleted.duration_since(listed) <= CHECK_AGE_MAX
    }

    /// Finds the namespace or CRD whose deletion by the agent deletes an object too, with the time of that deletion.
    fn find_cause(&self, key: &ObjectKey) -> Option<(ObjectKey, Timestamp)> {
        let is_namespace_of_it = |deleted: &&ObjectKey| {
            deleted.kind == "Namespace" && key.namespace.as_deref() == Some(deleted.name.as_str())
        };
        let crd = || self.deleted_crds.get(&(key.group.clone(), key.kind.clone()));
        let cause = self.deleted.keys().find(is_namespace_of_it).or_else(crd)?;
        Some((cause.clone(), self.deleted.get(cause).copied()?))
    }

    /// Records the deletion of an object that the newest revision of a stack declares.
    fn record_suspects(&mut self, write: &Write, key: &ObjectKey, expected: &ExpectedState) {
        let created = write.before.as_deref().and_then(|before| before["metadata"]["creationTimestamp"].as_str());
        let Some(created) = created.and_then(|text| text.parse().ok()) else { return };
        let newest = expected.stacks.values().filter_map(|stack| stack.must_exist_at(&self.cluster));
        let declaring = newest.filter(|revision| revision.declares(key) && !revision.may_replace(key));
        let suspects = declaring.filter_map(|revision| revision.id).map(|revision| SuspectDeletion {
            cluster: self.cluster.clone(),
            key: key.clone(),
            revision,
            created,
            deleted: write.at,
        });
        self.suspects.extend(suspects);
    }

    /// Returns true if an object, or its absence, was at some time between two times as a test wants it.
    pub fn was_ever(
        &self,
        key: &ObjectKey,
        from: Timestamp,
        to: Timestamp,
        is_met: impl Fn(Option<&Value>) -> bool,
    ) -> bool {
        let states = self.history.get(key).map(Vec::as_slice).unwrap_or_default();
        if states.first().is_none_or(|(start, _)| *start > from) && is_met(None) {
            return true;
        }
        let ends = states.iter().skip(1).map(|(end, _)| Some(*end)).chain([None]);
        let within =
            states.iter().zip(ends).filter(|((start, _), end)| *start <= to && end.is_none_or(|end| end >= from));
        within.map(|((_, state), _)| state.as_deref()).any(is_met)
    }

    fn judge_delete(&mut self, write: &Write, key: &ObjectKey, expected: &ExpectedState) -> Result<(), Violation> {
        if !self.touched.contains(&write.uid) {
            let message = format!("the agent of {} deleted {key}, which it had never written", self.cluster);
            return Err(Violation { oracle: "nothing-foreign-touched", message });
        }
        self.deleted.insert(key.clone(), write.at);
        let before = write.before.as_deref();
        if let Some(spec) = before.map(|before| &before["spec"]).filter(|_| key.kind == "CustomResourceDefinition") {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            self.deleted_crds.insert((text(&spec["group"]), text(&spec["names"]["kind"])), key.clone());
        }
        self.record_suspects(write, key, expected);
        if before.is_some_and(is_prune_disabled) && !expected.may_replace(key) {
            let message = format!("the agent of {} deleted {key}, whose annotation keeps it", self.cluster);
            return Err(Violation { oracle: "no-wanted-object-deleted", message });
        }
        let annotations = write.before.as_ref().map(|before| &before["metadata"]["annotations"]);
        let annotation = |name: &str| annotations.and_then(|all| all[name].as_str()).unwrap_or_default();
        let Some(stack) = expected.find_stack(annotation(STACK_ANNOTATION)) else {
            // The ownership annotations were removed; that the agent wrote the object is proof enough.
            return Ok(());
        };
        // Each instruction from the revision that last wrote the object on may ask for its deletion.
        let last_written = stack.instructions.iter().position(|instruction| {
            matches!(instruction, ExpectedInstruction::Submit(revision)
                if revision.checksum.as_str() == annotation(CHECKSUM_ANNOTATION))
        });
        let requests = stack.instructions[last_written.unwrap_or(0)..].iter();
        let mut requests = requests.filter_map(|instruction| match instruction {
            ExpectedInstruction::Submit(revision) if revision.declares(key) && !revision.may_replace(key) => None,
            ExpectedInstruction::Submit(revision) => Some(revision.submitted),
            ExpectedInstruction::Remove { agent, deletes_objects, instructed } => {
                let is_here = agent.as_ref().is_none_or(|agent| *agent == self.cluster);
                (*deletes_objects && is_here).then_some(*instructed)
            }
        });
        if let Some(requested) = requests.next() {
            return self.judge_moved(key, stack, requested, expected);
        }
        match self.created.get(&write.uid) {
            Some(created) if key.kind == "Namespace" => {
                self.rollbacks.push(NamespaceRollback {
                    cluster: self.cluster.clone(),
                    stack: stack.id.to_string(),
                    name: key.name.clone(),
                    created: *created,
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

    /// Checks that no other stack declared an object before its stack dropped it: such an object moves, and is not deleted.
    fn judge_moved(
        &self,
        key: &ObjectKey,
        stack: &ExpectedStack,
        dropped: Timestamp,
        expected: &ExpectedState,
    ) -> Result<(), Violation> {
        let mut others = expected.stacks.iter().filter(|(_, other)| other.id != stack.id);
        let heir = others.find(|(_, other)| other.has_declared_since(&self.cluster, key, dropped));
        match heir.filter(|_| !expected.may_replace(key)) {
            Some((heir, _)) => {
                let message =
                    format!("the agent of {} deleted {key}, which stack {heir} declared before", self.cluster);
                Err(Violation { oracle: "no-wanted-object-deleted", message })
            }
            None => Ok(()),
        }
    }

    /// Returns true if other clients deleted both traces of an object: its ownership label, and the inventory of its stack.
    fn is_untraceable(&self, key: &ObjectKey, object: &Value, expected: &ExpectedState) -> bool {
        let is_lost = |stack: &ExpectedStack| self.lost_inventories.contains(&stack.id.to_string());
        let mut stacks = expected.stacks.values().filter(|stack| stack.has_ever_declared(key));
        object["metadata"]["labels"][STACK_LABEL].is_null() && stacks.any(is_lost)
    }

    /// Lists the objects that the agent created and that no stack declares any more, and the inventories of stacks
    /// that are gone. A stack in `failing` keeps the objects of its earlier revisions.
    pub fn list_leaks<'a>(
        &self,
        objects: impl Iterator<Item = (&'a StoredKey, &'a Value)>,
        expected: &ExpectedState,
        failing: &BTreeSet<String>,
    ) -> Vec<ObjectKey> {
        let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        objects
            .filter(|(key, object)| {
                let key = from_stored_key(key);
                if is_own_object(&key) {
                    let stack = object["metadata"]["labels"][INVENTORY_LABEL].as_str().unwrap_or_default();
                    let is_gone = |name: &String, stack: &ExpectedStack| {
                        stack.may_exist_at(&self.cluster).is_none()
                            && !failing.contains(name)
                            && !expected.has_needed_container(stack, &self.cluster)
                    };
                    let mut stacks = expected.stacks.iter().filter(|(_, known)| known.id.to_string() == stack);
                    return key.kind == "ConfigMap" && stacks.any(|(name, stack)| is_gone(name, stack));
                }
                let is_declared = expected.stacks.iter().any(|(name, stack)| {
                    let newest = stack.may_exist_at(&self.cluster).is_some_and(|revision| revision.declares(&key));
                    newest || failing.contains(name) && stack.revisions().any(|revision| revision.declares(&key))
                });
                let is_needed = expected
                    .stacks
                    .values()
                    .filter_map(|stack| stack.may_exist_at(&self.cluster))
                    .flat_map(|revision| &revision.objects)
                    .any(|declared| is_container_of(object, &key, &declared.key));
                // Such an object is released: it stays, without the ownership label and annotations.
                let annotations = &object["metadata"]["annotations"];
                let has_no_owner = annotations[STACK_ANNOTATION].is_null();
                let is_kept = is_prune_disabled(object)
                    || has_no_owner && expected.stacks.values().any(|stack| stack.may_release(&key));
                self.created.contains_key(&uid(object))
                    && !is_declared
                    && !is_needed
                    && !is_kept
                    && !self.is_untraceable(&key, object, expected)
            })
            .map(|(key, _)| from_stored_key(key))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sindri_apiserver::Verb;

    use super::*;
    use crate::expected_state::{SubmittedRevision, TargetReason};

    const STACK: &str = "01b8dac5-b412-7592-a5c9-359bf5002870";

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a small number")
    }

    fn write(second: i64, actor: Actor, object: &Value, is_delete: bool) -> Write {
        let kind = object["kind"].as_str().unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let key = StoredKey {
            group: String::new(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
            namespace: text(&object["metadata"]["namespace"]),
            name: text(&object["metadata"]["name"]).unwrap_or_default(),
        };
        let state = Some(Arc::new(object.clone()));
        let (before, after) = if is_delete { (state, None) } else { (None, state) };
        let verb = if is_delete { Verb::Delete } else { Verb::Create };
        let uid = format!("uid of {kind}");
        Write {
            at: at(second),
            actor,
            verb,
            subresource: "",
            key: Arc::new(key),
            uid,
            resource_version: 1,
            before,
            after,
        }
    }

    /// Deletes a namespace at second 20 and with it an object that a person created at second 10; the agent listed the
    /// objects last at the given second.
    fn judge_delete_of_a_namespace(listed: Option<i64>) -> Result<(), Violation> {
        let text = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}";
        let mut stack = ExpectedStack::new(STACK.parse().expect("a valid id"));
        stack.instructions.push(ExpectedInstruction::Submit(SubmittedRevision::from_bundle(text, at(1))));
        stack.target("east", TargetReason::Id);
        stack.instructions.push(ExpectedInstruction::Remove { agent: None, deletes_objects: true, instructed: at(5) });
        let mut expected = ExpectedState::default();
        expected.stacks.insert("shop".to_owned(), stack);
        let agent = Actor::Client { user_agent: "sindri-agent/1".to_owned(), field_manager: String::new() };
        let person = Actor::Client { user_agent: "kubectl/1".to_owned(), field_manager: String::new() };
        let controller = Actor::Controller("namespace-controller");
        let namespace =
            json!({"kind": "Namespace", "metadata": {"name": "shop", "annotations": {STACK_ANNOTATION: STACK}}});
        let object = json!({"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}});
        let mut oracle = WriteOracle::new("east");
        let last_list = |_: &StoredKey, _| listed.map(at);
        let writes = [
            write(2, agent.clone(), &namespace, false),
            write(10, person, &object, false),
            write(20, agent, &namespace, true),
            write(21, controller, &object, true),
        ];
        writes.iter().try_for_each(|write| oracle.judge(write, &expected, last_list))
    }

    #[test]
    fn an_object_that_the_agent_could_not_see_before_the_delete_of_its_namespace_is_no_violation() {
        judge_delete_of_a_namespace(Some(9)).expect("it was created after the last look");
    }

    #[test]
    fn an_object_that_the_agent_saw_or_could_have_seen_is_a_violation() {
        for listed in [None, Some(15), Some(-15)] {
            let violation = judge_delete_of_a_namespace(listed).expect_err("it was deleted with the namespace");
            assert_eq!(violation.oracle, "nothing-foreign-touched", "{listed:?}");
        }
    }

    /// Returns the leaks after the agent created an object that the newest revision does not declare, and another client deleted the
    /// inventory.
    fn list_leaks_without_inventory(labels: &Value) -> Vec<ObjectKey> {
        let text =
            |name: &str| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: default}}}}");
        let mut stack = ExpectedStack::new(STACK.parse().expect("a valid id"));
        for (name, second) in [("a", 1), ("b", 3)] {
            let revision = SubmittedRevision::from_bundle(&text(name), at(second));
            stack.instructions.push(ExpectedInstruction::Submit(revision));
        }
        stack.target("east", TargetReason::Id);
        let mut expected = ExpectedState::default();
        expected.stacks.insert("shop".to_owned(), stack);
        let agent = Actor::Client { user_agent: "sindri-agent/1".to_owned(), field_manager: String::new() };
        let person = Actor::Client { user_agent: "kubectl/1".to_owned(), field_manager: String::new() };
        let object = json!({"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default", "uid": "uid of ConfigMap", "labels": labels}});
        let inventory = json!({"kind": "ConfigMap", "metadata": {"name": "inventory-x", "namespace": "sindri-system", "labels": {INVENTORY_LABEL: STACK}}});
        let mut oracle = WriteOracle::new("east");
        let created = write(2, agent, &object, false);
        for write in [&created, &write(4, person, &inventory, true)] {
            oracle.judge(write, &expected, |_: &StoredKey, _| None).expect("no violation");
        }
        oracle.list_leaks([(&*created.key, &object)].into_iter(), &expected, &BTreeSet::new())
    }

    #[test]
    fn an_object_that_lost_its_label_and_its_inventory_is_no_leak() {
        assert_eq!(list_leaks_without_inventory(&json!({})), []);
        assert_eq!(list_leaks_without_inventory(&json!({STACK_LABEL: STACK})).len(), 1, "its label leads to it");
    }
}
