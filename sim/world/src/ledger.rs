//! What was asked for, in the order in which it was asked: the oracles judge by this, never by what the system
//! says of itself.

use std::collections::{BTreeMap, BTreeSet};

use sindri_agent::REPLACE_ANNOTATION;
use sindri_model::{AgentId, Bundle, Checksum, DeclaredObject, GeneratorId, ObjectKey, RevisionId, StackId};

/// One thing that an operator asked of a stack.
#[derive(Clone, Debug)]
pub enum Instruction {
    /// To be like this.
    Declare(Declaration),
    /// To be gone from one agent's cluster, or from all.
    Remove {
        /// The agent; all if `None`.
        agent: Option<String>,
    },
}

/// A submitted revision.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// Its id, once the broker gave it one.
    pub revision: Option<RevisionId>,
    /// The checksum of its text.
    pub checksum: Checksum,
    /// What it declares; nothing if the text is broken.
    pub objects: Vec<DeclaredObject>,
    /// Where each of them goes, and whether it may be deleted and made anew.
    places: BTreeMap<ObjectKey, bool>,
}

/// A stack as the operator knows it.
#[derive(Clone, Debug)]
pub struct StackRecord {
    /// Its id.
    pub id: StackId,
    /// Everything that was asked, oldest first.
    pub instructions: Vec<Instruction>,
    /// The agents that it goes to.
    pub targets: BTreeSet<String>,
    /// Every agent that it ever went to.
    pub ever_targeted: BTreeSet<String>,
    /// Agents whose predecessor had it, since when nobody has said what is to become of it.
    pub undecided: BTreeSet<String>,
    /// Whether it was deleted.
    pub deleted: bool,
}

impl StackRecord {
    /// The submissions, oldest first.
    pub fn declarations(&self) -> impl DoubleEndedIterator<Item = &Declaration> {
        self.instructions.iter().filter_map(|instruction| match instruction {
            Instruction::Declare(declaration) => Some(declaration),
            Instruction::Remove { .. } => None,
        })
    }

    /// A stack of this id, of which nobody has asked anything.
    pub fn new(id: StackId) -> Self {
        Self {
            id,
            instructions: Vec::new(),
            targets: BTreeSet::new(),
            ever_targeted: BTreeSet::new(),
            undecided: BTreeSet::new(),
            deleted: false,
        }
    }

    /// It goes to an agent.
    pub fn target(&mut self, agent: &str) {
        self.targets.insert(agent.to_owned());
        self.ever_targeted.insert(agent.to_owned());
        self.undecided.remove(agent);
    }

    /// It is taken away from an agent.
    pub fn untarget(&mut self, agent: &str) {
        self.instructions.push(Instruction::Remove { agent: Some(agent.to_owned()) });
        self.targets.remove(agent);
        self.undecided.remove(agent);
    }

    /// It is deleted.
    pub fn delete(&mut self) {
        self.instructions.push(Instruction::Remove { agent: None });
        self.deleted = true;
        self.undecided.clear();
    }

    /// An agent is dismissed: nobody says what is to become of what it has.
    pub fn leave(&mut self, agent: &str) {
        if self.targets.remove(agent) {
            self.undecided.insert(agent.to_owned());
        }
    }

    /// What an agent's cluster should hold of it; `None` for nothing.
    pub fn wanted_at(&self, agent: &str) -> Option<&Declaration> {
        (!self.deleted && self.targets.contains(agent)).then(|| self.declarations().next_back()).flatten()
    }

    /// What an agent's cluster may hold of it: what it should, and what nobody has decided about.
    pub fn kept_at(&self, agent: &str) -> Option<&Declaration> {
        let left = || self.undecided.contains(agent).then(|| self.declarations().next_back()).flatten();
        self.wanted_at(agent).or_else(left)
    }
}

impl Declaration {
    /// Reads what a text declares.
    pub fn of(text: &str) -> Self {
        let objects = Bundle::parse(text).map(Bundle::into_objects).unwrap_or_default();
        let replace =
            |object: &DeclaredObject| object.annotations.get(REPLACE_ANNOTATION).is_some_and(|value| value == "true");
        let places = objects.iter().map(|object| (placed(&object.key), replace(object))).collect();
        Self { revision: None, checksum: Checksum::of(text), objects, places }
    }

    /// Whether an object of it may be deleted and made anew.
    pub fn replaces(&self, key: &ObjectKey) -> bool {
        self.places.get(key) == Some(&true)
    }

    /// Whether it declares an object.
    pub fn declares(&self, key: &ObjectKey) -> bool {
        self.places.contains_key(key)
    }
}

/// Everything that was asked for.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Whose stacks the operator submits.
    pub generator: Option<GeneratorId>,
    /// The agents by name.
    pub agents: BTreeMap<String, AgentId>,
    /// The stacks by name.
    pub stacks: BTreeMap<String, StackRecord>,
}

impl Ledger {
    /// The stack with this id.
    pub fn by_id(&self, id: &str) -> Option<&StackRecord> {
        self.stacks.values().find(|stack| stack.id.to_string() == id)
    }

    /// Whether any revision of a stack that ever went to this agent declares the object.
    pub fn ever_declared(&self, agent: &str, key: &ObjectKey) -> bool {
        self.stacks
            .values()
            .filter(|stack| stack.ever_targeted.contains(agent))
            .flat_map(StackRecord::declarations)
            .any(|declaration| declaration.declares(key))
    }
}

/// A key with its namespace filled in, as the cluster would.
pub fn placed(key: &ObjectKey) -> ObjectKey {
    let cluster_scoped = matches!(key.kind.as_str(), "Namespace" | "CustomResourceDefinition");
    let mut key = key.clone();
    if !cluster_scoped {
        key.namespace.get_or_insert_with(|| "default".to_owned());
    }
    key
}
