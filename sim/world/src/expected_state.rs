//! Instructions of the operator in the order in which they were given, and the state that follows from them.
//! The oracles judge by this.

use std::collections::{BTreeMap, BTreeSet};

use sindri_agent::REPLACE_ANNOTATION;
use sindri_model::{AgentId, Bundle, Checksum, DeclaredObject, GeneratorId, ObjectKey, RevisionId, StackId};

use crate::object_key::with_default_namespace;

/// One instruction of the operator about a stack.
#[derive(Clone, Debug)]
pub enum Instruction {
    /// Apply this revision.
    Submit(SubmittedRevision),
    /// Remove the stack from one agent's cluster, or from all.
    Remove {
        /// The agent; `None` for all.
        agent: Option<String>,
    },
}

/// A revision as the operator submitted it.
#[derive(Clone, Debug)]
pub struct SubmittedRevision {
    /// Its id, as soon as the broker has returned it.
    pub id: Option<RevisionId>,
    /// Checksum of the bundle.
    pub checksum: Checksum,
    /// Objects that it declares; empty if the bundle is not valid.
    pub objects: Vec<DeclaredObject>,
    /// Keys of the declared objects with their namespaces filled in; true where the agent may delete the object and
    /// create it again.
    replaceable: BTreeMap<ObjectKey, bool>,
}

impl SubmittedRevision {
    /// Reads the bundle of a revision.
    pub fn from_bundle(text: &str) -> Self {
        let objects = Bundle::parse(text).map(Bundle::into_objects).unwrap_or_default();
        let may_replace =
            |object: &DeclaredObject| object.annotations.get(REPLACE_ANNOTATION).is_some_and(|value| value == "true");
        let replaceable =
            objects.iter().map(|object| (with_default_namespace(&object.key), may_replace(object))).collect();
        Self { id: None, checksum: Checksum::compute(text), objects, replaceable }
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

/// A stack as the operator knows it.
#[derive(Clone, Debug)]
pub struct ExpectedStack {
    /// Its id.
    pub id: StackId,
    /// Every instruction, oldest first.
    pub instructions: Vec<Instruction>,
    /// Names of the agents that it is targeted at.
    pub targets: BTreeSet<String>,
    /// Names of all agents that it was ever targeted at.
    pub ever_targeted: BTreeSet<String>,
    /// Names of agents that had it when they were deleted at the broker. The operator has not said since whether their
    /// successors keep it.
    pub undecided: BTreeSet<String>,
    /// True if it was deleted.
    pub is_deleted: bool,
    /// True if its removal keeps its objects.
    pub is_released_on_removal: bool,
}

impl ExpectedStack {
    /// Creates a stack without instructions.
    pub fn new(id: StackId) -> Self {
        Self {
            id,
            instructions: Vec::new(),
            targets: BTreeSet::new(),
            ever_targeted: BTreeSet::new(),
            undecided: BTreeSet::new(),
            is_deleted: false,
            is_released_on_removal: false,
        }
    }

    /// Iterates over the submitted revisions, oldest first.
    pub fn revisions(&self) -> impl DoubleEndedIterator<Item = &SubmittedRevision> {
        self.instructions.iter().filter_map(|instruction| match instruction {
            Instruction::Submit(revision) => Some(revision),
            Instruction::Remove { .. } => None,
        })
    }

    /// Returns true if its removal keeps this object.
    pub fn releases(&self, key: &ObjectKey) -> bool {
        self.is_released_on_removal && self.revisions().any(|revision| revision.declares(key))
    }

    /// Records that it is targeted at an agent.
    pub fn target(&mut self, agent: &str) {
        self.targets.insert(agent.to_owned());
        self.ever_targeted.insert(agent.to_owned());
        self.undecided.remove(agent);
    }

    /// Records that its target at an agent was removed.
    pub fn untarget(&mut self, agent: &str) {
        self.instructions.push(Instruction::Remove { agent: Some(agent.to_owned()) });
        self.targets.remove(agent);
        self.undecided.remove(agent);
    }

    /// Records that it was deleted.
    pub fn delete(&mut self) {
        self.instructions.push(Instruction::Remove { agent: None });
        self.is_deleted = true;
        self.undecided.clear();
    }

    /// Records that an agent was deleted at the broker, without an instruction about the objects in its cluster.
    pub fn lose_agent(&mut self, agent: &str) {
        if self.targets.remove(agent) {
            self.undecided.insert(agent.to_owned());
        }
    }

    /// Returns the revision that must be in an agent's cluster; `None` if the stack must not be there.
    pub fn must_exist_at(&self, agent: &str) -> Option<&SubmittedRevision> {
        (!self.is_deleted && self.targets.contains(agent)).then(|| self.revisions().next_back()).flatten()
    }

    /// Returns the revision that may be in an agent's cluster: the one that must be, or one that is undecided.
    pub fn may_exist_at(&self, agent: &str) -> Option<&SubmittedRevision> {
        let undecided = || self.undecided.contains(agent).then(|| self.revisions().next_back()).flatten();
        self.must_exist_at(agent).or_else(undecided)
    }
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
}

impl ExpectedState {
    /// Finds the stack with this id.
    pub fn find_stack(&self, id: &str) -> Option<&ExpectedStack> {
        self.stacks.values().find(|stack| stack.id.to_string() == id)
    }

    /// Returns true if any revision allows the object to be deleted and created again.
    pub fn may_replace(&self, key: &ObjectKey) -> bool {
        self.stacks.values().flat_map(ExpectedStack::revisions).any(|revision| revision.may_replace(key))
    }

    /// Returns true if any revision of a stack that was ever targeted at this agent declares the object.
    pub fn has_ever_declared(&self, agent: &str, key: &ObjectKey) -> bool {
        self.stacks
            .values()
            .filter(|stack| stack.ever_targeted.contains(agent))
            .flat_map(ExpectedStack::revisions)
            .any(|revision| revision.declares(key))
    }
}
