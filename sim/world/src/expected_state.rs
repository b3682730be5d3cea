//! Instructions of the operator in the order in which they were given, and the state that follows from them.
//! The oracles judge by this.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sindri_model::policy::{BRAKE_ANNOTATION, REMOVAL_ANNOTATION};
use sindri_model::{AgentId, Checksum, GeneratorId, ObjectKey, RevisionId, StackId};

use crate::expected_object::{ExpectedObject, read_bundle};
use crate::wall_clock::wall_time;

/// One instruction of the operator about a stack.
#[derive(Clone, Debug)]
pub enum ExpectedInstruction {
    /// Apply this revision.
    Submit(SubmittedRevision),
    /// Remove the stack from one agent's cluster, or from all.
    Remove {
        /// The agent; `None` for all.
        agent: Option<String>,
        /// False if the objects are kept.
        deletes_objects: bool,
        /// Time at which it was instructed.
        instructed: Timestamp,
    },
}

/// A revision as the operator submitted it.
#[derive(Clone, Debug)]
pub struct SubmittedRevision {
    /// Its id, as soon as the broker has returned it.
    pub id: Option<RevisionId>,
    /// Time at which it was submitted.
    pub submitted: Timestamp,
    /// Checksum of the bundle.
    pub checksum: Checksum,
    /// Objects that it declares; empty if the bundle is not valid.
    pub objects: Vec<ExpectedObject>,
    /// Keys of the declared objects with their namespaces filled in; true where the agent may delete the object and
    /// create it again.
    replaceable: BTreeMap<ObjectKey, bool>,
}

impl SubmittedRevision {
    /// Reads the bundle of a revision.
    pub fn from_bundle(text: &str, submitted: Timestamp) -> Self {
        let objects = read_bundle(text);
        let replaceable = objects.iter().map(|object| (object.key.clone(), object.may_be_replaced())).collect();
        Self { id: None, submitted, checksum: Checksum::compute(text), objects, replaceable }
    }

    /// Returns true if the agent may delete an object of it and create it again.
    pub fn may_replace(&self, key: &ObjectKey) -> bool {
        self.replaceable.get(key) == Some(&true)
    }

    /// Returns true if it declares an object.
    pub fn declares(&self, key: &ObjectKey) -> bool {
        self.replaceable.contains_key(key)
    }
}

/// Reason why a stack is targeted at an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TargetReason {
    /// A target that names both.
    Id,
    /// A label that both have.
    Label(String),
}

/// That a stack is targeted at an agent.
#[derive(Clone, Debug)]
struct Targeting {
    reasons: BTreeSet<TargetReason>,
    since: Timestamp,
}

/// A stack as the operator knows it.
#[derive(Clone, Debug)]
pub struct ExpectedStack {
    /// Its id.
    pub id: StackId,
    /// Every instruction, oldest first.
    pub instructions: Vec<ExpectedInstruction>,
    /// Agents that it is targeted at, by name, with the reasons.
    targets: BTreeMap<String, Targeting>,
    /// Names of all agents that it was ever targeted at.
    pub ever_targeted: BTreeSet<String>,
    /// Names of agents that had it when they were deleted at the broker. The operator has not said since whether their
    /// successors keep it.
    pub undecided: BTreeSet<String>,
    /// Names of agents whose clusters were set back after it was removed there. The broker knows that the removal is
    /// complete, so to remove it again is no instruction.
    set_back: BTreeSet<String>,
    /// Policies that the operator set, by the name of the annotation.
    pub policies: BTreeMap<String, String>,
    /// True if it was deleted.
    pub is_deleted: bool,
    /// Bundle of the newest revision.
    pub newest_text: String,
    /// True if the operator must submit it again: held deletions of the newest revision were rejected, or a restore of the broker made
    /// it forget revisions that agents may have applied.
    pub must_be_submitted: bool,
    /// True if its policy was at any time that a removal keeps its objects.
    has_ever_released: bool,
    /// True if its brake was off at any time: then nothing of it waits for an approval.
    was_brake_off: bool,
}

impl ExpectedStack {
    /// Creates a stack without instructions.
    pub fn new(id: StackId) -> Self {
        Self {
            id,
            instructions: Vec::new(),
            targets: BTreeMap::new(),
            ever_targeted: BTreeSet::new(),
            undecided: BTreeSet::new(),
            set_back: BTreeSet::new(),
            policies: BTreeMap::new(),
            is_deleted: false,
            newest_text: String::new(),
            must_be_submitted: false,
            has_ever_released: false,
            was_brake_off: false,
        }
    }

    /// Iterates over the submitted revisions, oldest first.
    pub fn revisions(&self) -> impl DoubleEndedIterator<Item = &SubmittedRevision> {
        self.instructions.iter().filter_map(|instruction| match instruction {
            ExpectedInstruction::Submit(revision) => Some(revision),
            ExpectedInstruction::Remove { .. } => None,
        })
    }

    /// Returns true if any revision declares an object.
    pub fn has_ever_declared(&self, key: &ObjectKey) -> bool {
        self.revisions().any(|revision| revision.declares(key))
    }

    /// Records a policy; `None` removes it.
    pub fn set_policy(&mut self, annotation: String, value: Option<String>) {
        match value {
            Some(value) => self.policies.insert(annotation, value),
            None => self.policies.remove(&annotation),
        };
        self.has_ever_released |= self.is_released_on_removal();
        self.was_brake_off |= self.policies.get(BRAKE_ANNOTATION).is_some_and(|value| value == "off");
        if !self.is_released_on_removal() {
            // A removal that is still under way deletes objects from here on.
            for instruction in &mut self.instructions {
                if let ExpectedInstruction::Remove { deletes_objects, .. } = instruction {
                    *deletes_objects = true;
                }
            }
        }
    }

    fn is_released_on_removal(&self) -> bool {
        self.policies.get(REMOVAL_ANNOTATION).is_some_and(|value| value == "release")
    }

    fn instruct_removal(&mut self, agent: Option<String>) {
        let deletes_objects = !self.is_released_on_removal();
        self.instructions.push(ExpectedInstruction::Remove { agent, deletes_objects, instructed: wall_time() });
    }

    /// Returns true if a removal of it may have kept this object.
    pub fn may_release(&self, key: &ObjectKey) -> bool {
        self.has_ever_released && self.has_ever_declared(key)
    }

    /// Records that it is targeted at an agent.
    pub fn target(&mut self, agent: &str, reason: TargetReason) {
        let new = || Targeting { reasons: BTreeSet::new(), since: wall_time() };
        self.targets.entry(agent.to_owned()).or_insert_with(new).reasons.insert(reason);
        self.ever_targeted.insert(agent.to_owned());
        self.undecided.remove(agent);
        self.set_back.remove(agent);
    }

    /// Records that a reason why it is targeted at an agent was removed. The last one removes the stack there. Removing a
    /// target that names both removes the stack also from an agent that was created again.
    pub fn untarget(&mut self, agent: &str, reason: &TargetReason) {
        let targeting = self.targets.get_mut(agent);
        let is_known = targeting.as_ref().is_some_and(|targeting| targeting.reasons.contains(reason));
        let may_be_left_over = *reason == TargetReason::Id && !self.set_back.contains(agent);
        if !is_known && !may_be_left_over {
            return;
        }
        let is_last = targeting.is_none_or(|targeting| {
            targeting.reasons.remove(reason);
            targeting.reasons.is_empty()
        });
        if is_last {
            self.targets.remove(agent);
            self.undecided.remove(agent);
            self.instruct_removal(Some(agent.to_owned()));
        }
    }

    /// Records that it was deleted. To delete it again is no instruction: the broker does not know it any more.
    pub fn delete(&mut self) {
        if self.is_deleted {
            return;
        }
        self.instruct_removal(None);
        self.is_deleted = true;
        self.undecided.clone_from(&self.set_back);
    }

    /// Records that a cluster was set back to an earlier state: objects of a removed stack may exist again, and nothing
    /// says that they are to be removed once more. The stacks of a deleted agent were not removed.
    pub fn set_cluster_back(&mut self, agent: &str) {
        let was_removed = self.ever_targeted.contains(agent) && self.must_exist_at(agent).is_none();
        if was_removed && self.undecided.insert(agent.to_owned()) {
            self.set_back.insert(agent.to_owned());
        }
    }

    /// Records that the broker forgot everything since a backup, in which the stack was as given; `None`: the stack is younger. Revisions
    /// that agents have applied since stay until the next instruction.
    fn forget_since(&mut self, backup: Option<&Self>) {
        let now = wall_time();
        let targets = backup.map(|stack| stack.targets.clone()).unwrap_or_default();
        let forgotten: Vec<String> =
            self.targets.keys().filter(|agent| !targets.contains_key(*agent)).cloned().collect();
        for agent in forgotten {
            self.undecided.insert(agent.clone());
            self.set_back.insert(agent);
        }
        if let Some(stack) = backup {
            self.undecided.extend(stack.undecided.iter().cloned());
            self.set_back.extend(stack.set_back.iter().cloned());
        }
        // The name of a younger stack is free again.
        self.is_deleted = backup.is_none_or(|stack| stack.is_deleted);
        self.targets = targets;
        for (agent, targeting) in self.targets.iter_mut().filter(|_| !self.is_deleted) {
            targeting.since = now;
            self.undecided.remove(agent);
            self.set_back.remove(agent);
        }
        if let Some(backup) = backup {
            self.newest_text.clone_from(&backup.newest_text);
            // Agents that have applied a revision which the broker does not know any more do not go back.
            self.must_be_submitted |= self.revisions().count() > backup.revisions().count();
            let changed: BTreeSet<String> = self.policies.keys().chain(backup.policies.keys()).cloned().collect();
            for annotation in changed {
                let value = backup.policies.get(&annotation).cloned();
                self.set_policy(annotation, value);
            }
        }
    }

    /// Records that an agent was deleted at the broker, without an instruction about the objects in its cluster.
    pub fn lose_agent(&mut self, agent: &str) {
        if self.targets.remove(agent).is_some() {
            self.undecided.insert(agent.to_owned());
        }
    }

    /// Returns the revision that must be in an agent's cluster; `None` if the stack must not be there.
    pub fn must_exist_at(&self, agent: &str) -> Option<&SubmittedRevision> {
        (!self.is_deleted && self.targets.contains_key(agent)).then(|| self.revisions().next_back()).flatten()
    }

    /// Returns true if it declares an object in an agent's cluster, and every revision since before this time has.
    pub fn has_declared_since(&self, agent: &str, key: &ObjectKey, time: Timestamp) -> bool {
        let is_targeted = self.targets.get(agent).is_some_and(|targeting| targeting.since < time);
        if !is_targeted || self.must_exist_at(agent).is_none() {
            return false;
        }
        let mut declaring = self.revisions().rev().take_while(|revision| revision.declares(key));
        declaring.any(|revision| revision.submitted < time)
    }

    /// Returns the objects that earlier revisions declared, and the one that must be in an agent's cluster does not.
    fn dropped_at(&self, agent: &str) -> Vec<&ExpectedObject> {
        let newest = self.must_exist_at(agent);
        let is_dropped = |object: &&ExpectedObject| newest.is_none_or(|newest| !newest.declares(&object.key));
        self.revisions().flat_map(|revision| &revision.objects).filter(is_dropped).collect()
    }

    /// Returns the revision that may be in an agent's cluster: the one that must be, or one that is undecided.
    pub fn may_exist_at(&self, agent: &str) -> Option<&SubmittedRevision> {
        let undecided = || self.undecided.contains(agent).then(|| self.revisions().next_back()).flatten();
        self.must_exist_at(agent).or_else(undecided)
    }
}

/// Returns true if one of these objects is in a namespace, or of a kind, among the others.
fn has_content<'a>(containers: &[&ExpectedObject], mut objects: impl Iterator<Item = &'a ExpectedObject>) -> bool {
    objects.any(|object| containers.iter().any(|container| container.contains(&object.key)))
}

/// All instructions of the operator.
#[derive(Clone, Debug, Default)]
pub struct ExpectedState {
    /// Generator under which the operator submits stacks.
    pub generator: Option<GeneratorId>,
    /// Ids of the agents by name.
    pub agents: BTreeMap<String, AgentId>,
    /// Stacks by name.
    pub stacks: BTreeMap<String, ExpectedStack>,
    /// Plans that the operator approved, with the reasons why they were held.
    pub approved: Vec<String>,
    /// Stacks at the last backup of the broker.
    backup: Vec<ExpectedStack>,
}

impl ExpectedState {
    /// Records a backup of the broker.
    pub fn back_up(&mut self) {
        self.backup = self.stacks.values().cloned().collect();
    }

    /// Records that the last backup of the broker was restored.
    pub fn restore(&mut self) {
        for stack in self.stacks.values_mut() {
            stack.forget_since(self.backup.iter().find(|backup| backup.id == stack.id));
        }
    }

    /// Finds the stack with this id.
    pub fn find_stack(&self, id: &str) -> Option<&ExpectedStack> {
        self.stacks.values().find(|stack| stack.id.to_string() == id)
    }

    /// Returns true if a stack declares an object in a namespace, or of a kind, that this stack declared earlier and does
    /// not declare any more: then the namespace or the CRD stays.
    pub fn has_needed_container(&self, stack: &ExpectedStack, agent: &str) -> bool {
        let newest = self.stacks.values().filter_map(|other| other.may_exist_at(agent));
        let wanted = newest.flat_map(|revision| &revision.objects);
        has_content(&stack.dropped_at(agent), wanted)
    }

    /// Returns true if a stack may still have an object in a namespace, or of a kind, that another stack does not declare any
    /// more: while it cannot be applied, nothing that it dropped is deleted.
    pub fn may_have_content(stack: &ExpectedStack, agent: &str, container: &ExpectedStack) -> bool {
        has_content(&container.dropped_at(agent), stack.revisions().flat_map(|revision| &revision.objects))
    }

    /// Returns true if an approved plan says that an object is deleted with its namespace or CRD. Long lists are cut.
    pub fn is_approved(&self, container: &ObjectKey, key: &ObjectKey) -> bool {
        let (container, key) = (container.to_string(), key.to_string());
        self.approved.iter().any(|plan| plan.contains(&container) && (plan.contains(&key) || plan.contains(" more")))
    }

    /// Returns true if a namespace or CRD may be deleted without an approval: the brake of a stack that declared it was off.
    pub fn needs_no_approval(&self, container: &ObjectKey) -> bool {
        self.stacks.values().any(|stack| stack.was_brake_off && stack.has_ever_declared(container))
    }

    /// Returns true if any revision allows the object to be deleted and created again.
    pub fn may_replace(&self, key: &ObjectKey) -> bool {
        self.stacks.values().flat_map(ExpectedStack::revisions).any(|revision| revision.may_replace(key))
    }

    /// Returns true if any revision of a stack that was ever targeted at this agent declares the object.
    pub fn has_ever_declared(&self, agent: &str, key: &ObjectKey) -> bool {
        self.stacks.values().any(|stack| stack.ever_targeted.contains(agent) && stack.has_ever_declared(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUNDLE: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}";

    fn stack(id: &str) -> ExpectedStack {
        let mut stack = ExpectedStack::new(id.parse().unwrap());
        stack.instructions.push(ExpectedInstruction::Submit(SubmittedRevision::from_bundle(BUNDLE, wall_time())));
        stack.target("east", TargetReason::Id);
        stack
    }

    #[test]
    fn a_restore_of_the_broker_takes_back_what_was_instructed_since_the_backup() {
        let mut state = ExpectedState::default();
        state.stacks.insert("old".to_owned(), stack("01890000-0000-7000-8000-000000000001"));
        state.back_up();
        state.stacks.insert("young".to_owned(), stack("01890000-0000-7000-8000-000000000002"));
        let old = state.stacks.get_mut("old").unwrap();
        old.instructions.push(ExpectedInstruction::Submit(SubmittedRevision::from_bundle(BUNDLE, wall_time())));
        old.target("west", TargetReason::Id);
        old.untarget("east", &TargetReason::Id);
        old.set_policy(REMOVAL_ANNOTATION.to_owned(), Some("release".to_owned()));
        state.restore();
        let old = &state.stacks["old"];
        assert!(old.must_exist_at("east").is_some() && old.must_be_submitted);
        assert!(old.must_exist_at("west").is_none() && old.may_exist_at("west").is_some(), "nothing says that it goes");
        assert!(old.policies.is_empty());
        let young = &state.stacks["young"];
        assert!(young.is_deleted && young.may_exist_at("east").is_some(), "the broker does not know it any more");
    }

    #[test]
    fn a_deleted_stack_stays_deleted_after_a_restore() {
        let mut state = ExpectedState::default();
        state.stacks.insert("old".to_owned(), stack("01890000-0000-7000-8000-000000000001"));
        state.stacks.get_mut("old").unwrap().delete();
        state.stacks.get_mut("old").unwrap().set_cluster_back("east");
        state.back_up();
        state.restore();
        let old = &state.stacks["old"];
        assert!(old.may_exist_at("east").is_some(), "its objects may exist again");
        assert!(!old.must_be_submitted, "nothing was submitted since");
    }
}
