//! Claims of all stacks on objects, from their bundles: so that an object can move from one stack to another without being
//! deleted in between, and two stacks never write the same object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sindri_model::policy::{PolicyValue, SUSPEND_ANNOTATION};
use sindri_model::wire::StackPolicy;
use sindri_model::{ObjectKey, Sequence, StackId};

use super::revision::{DeclaredKeys, Revision};
use crate::cluster::namespaces::DEFAULT_NAMESPACE;

/// Stack that declares an object, with the sequence of its revision: the order of the tuple is the order of claims.
type Claimant = (Sequence, StackId);

/// Declared objects of every stack in the target state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// Namespace of objects that name none.
    default_namespace: String,
    /// Name of the agent.
    agent: String,
    /// Sequence of the last change of the target state, if the broker tells it.
    version: Option<Sequence>,
    /// Stacks of the target state.
    stacks: BTreeMap<StackId, ClaimingStack>,
    /// Claimants of each object, in the order in which they were added.
    by_key: BTreeMap<Arc<ObjectKey>, Vec<Claimant>>,
    /// Objects that the cluster does not let a claimant write.
    denied: BTreeMap<Claimant, BTreeSet<ObjectKey>>,
}

/// Stack of the target state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ClaimingStack {
    /// True if its bundle could be parsed.
    is_parsed: bool,
    /// Name of the stack, if the broker has sent it.
    name: Option<String>,
    /// True if nothing of it is written on this cluster.
    is_suspended: bool,
}

impl Default for Claims {
    fn default() -> Self {
        Self::new(DEFAULT_NAMESPACE)
    }
}

impl Claims {
    /// Returns empty claims; `default_namespace` is that of objects that name none.
    pub fn new(default_namespace: &str) -> Self {
        let default_namespace = default_namespace.to_owned();
        let (agent, stacks, by_key) = (String::new(), BTreeMap::new(), BTreeMap::new());
        Self { default_namespace, agent, version: None, stacks, by_key, denied: BTreeMap::new() }
    }

    /// Returns the claims for the agent of this name.
    #[must_use]
    pub fn with_agent_name(self, name: &str) -> Self {
        Self { agent: name.to_owned(), ..self }
    }

    /// Returns the claims with the version of the target state.
    #[must_use]
    pub fn with_version(self, version: Option<Sequence>) -> Self {
        Self { version, ..self }
    }

    /// Returns the sequence of the last change of the target state. It is at least that of each revision in it, and higher
    /// than that of a removal that was cancelled.
    pub fn version(&self) -> Option<Sequence> {
        self.version
    }

    /// Adds the name and the declared objects of a stack.
    pub fn add_revision(&mut self, revision: &Revision) {
        self.add(revision.stack_id, revision.sequence_id, &revision.declared);
        self.stacks.entry(revision.stack_id).or_default().name.clone_from(&revision.stack_name);
    }

    /// Adds the declared objects of a stack.
    pub fn add(&mut self, stack: StackId, sequence: Sequence, declared: &DeclaredKeys) {
        self.stacks.entry(stack).or_default().is_parsed = declared.is_some();
        for key in declared.iter().flatten() {
            self.by_key.entry(key.clone()).or_default().push((sequence, stack));
        }
    }

    /// Adds whether a stack is suspended on this cluster.
    pub fn add_policy(&mut self, policy: &StackPolicy) {
        let suspension = policy.annotations.get(SUSPEND_ANNOTATION);
        let parsed = suspension.and_then(|value| PolicyValue::parse(SUSPEND_ANNOTATION, value).ok().flatten());
        let is_suspended = matches!(parsed, Some(PolicyValue::Suspend(suspension)) if suspension.includes(&self.agent));
        self.stacks.entry(policy.stack_id).or_default().is_suspended = is_suspended;
    }

    /// Returns the name of a stack, or its id if the name is not known.
    pub fn name(&self, stack: StackId) -> String {
        let name = self.stacks.get(&stack).and_then(|known| known.name.clone());
        name.unwrap_or_else(|| stack.to_string())
    }

    /// Returns true if nothing of a stack is written on this cluster.
    pub fn is_suspended(&self, stack: StackId) -> bool {
        self.stacks.get(&stack).is_some_and(|known| known.is_suspended)
    }

    /// Returns true if a stack declares an object, or if its bundle is not known.
    pub fn may_declare(&self, stack: StackId, key: &ObjectKey) -> bool {
        let is_parsed = self.stacks.get(&stack).is_some_and(|known| known.is_parsed);
        !is_parsed || self.claimants(key).iter().any(|(_, claimant)| *claimant == stack)
    }

    /// Returns the first other stack that declares an object, by sequence.
    pub fn other_claimant(&self, stack: StackId, key: &ObjectKey) -> Option<StackId> {
        self.claimants(key).into_iter().map(|(_, claimant)| claimant).find(|claimant| *claimant != stack)
    }

    /// Returns the claims with the objects that the cluster does not let a stack write; `None` if they are the same.
    pub fn with_denied(&self, stack: StackId, sequence: Sequence, objects: BTreeSet<ObjectKey>) -> Option<Self> {
        let claimant = (sequence, stack);
        if self.denied.get(&claimant).unwrap_or(&BTreeSet::new()) == &objects {
            return None;
        }
        let mut claims = self.clone();
        claims.denied.insert(claimant, objects);
        Some(claims)
    }

    /// Takes over what is denied to revisions that these claims have too.
    pub fn keep_denied(&mut self, before: &Self) {
        let claimants: BTreeSet<Claimant> = self.by_key.values().flatten().copied().collect();
        let kept = before.denied.iter().filter(|(claimant, _)| claimants.contains(claimant));
        self.denied = kept.map(|(claimant, objects)| (*claimant, objects.clone())).collect();
    }

    /// Returns the first other stack that declares an object in an earlier revision than `sequence`, and may write it.
    pub fn earlier_claimant(&self, stack: StackId, sequence: Sequence, key: &ObjectKey) -> Option<StackId> {
        let is_denied = |claimant: &Claimant| self.denied.get(claimant).is_some_and(|objects| objects.contains(key));
        let mut others = self.claimants(key).into_iter().filter(|(_, other)| *other != stack);
        others.find(|claimant| claimant.0 < sequence && !is_denied(claimant)).map(|(_, other)| other)
    }

    /// Returns true if a stack is in the target state, also if it is to be removed.
    pub fn has_stack(&self, stack: StackId) -> bool {
        self.stacks.contains_key(&stack)
    }

    /// Returns the objects for which a bundle names a namespace, and their stacks. Some may be cluster-scoped.
    pub fn list_in_namespace(&self, namespace: &str) -> Vec<(Arc<ObjectKey>, StackId)> {
        let inside = self.by_key.iter().filter(|(key, _)| key.namespace.as_deref() == Some(namespace));
        inside.filter_map(|(key, claimants)| Some((key.clone(), claimants.first()?.1))).collect()
    }

    /// Returns true if a stack other than `stack` declares an object in a namespace.
    pub fn has_other_in_namespace(&self, stack: StackId, namespace: &str) -> bool {
        let mut in_namespace = self.by_key.iter().filter(|(key, _)| key.namespace.as_deref() == Some(namespace));
        in_namespace.any(|(_, claimants)| claimants.iter().any(|(_, claimant)| *claimant != stack))
    }

    /// Returns an object of a kind that a stack declares, and the stack.
    pub fn find_of_kind(&self, group: &str, kind: &str) -> Option<(Arc<ObjectKey>, StackId)> {
        let (key, claimants) = self.by_key.iter().find(|(key, _)| key.group == group && key.kind == kind)?;
        claimants.first().map(|(_, stack)| (key.clone(), *stack))
    }

    /// Returns the stacks that declare an object. Bundles are not resolved here: one may omit the default namespace, and one
    /// may name a namespace for a cluster-scoped object, whose own key has none.
    fn claimants(&self, key: &ObjectKey) -> Vec<Claimant> {
        let is_in_namespace = |other: &ObjectKey| match (&key.namespace, &other.namespace) {
            (None, _) => true,
            (Some(namespace), None) => *namespace == self.default_namespace,
            (Some(namespace), Some(other)) => namespace == other,
        };
        let is_same = |other: &ObjectKey| other.group == key.group && other.kind == key.kind && is_in_namespace(other);
        // Keys are ordered by their names.
        let (group, kind, namespace) = (String::new(), String::new(), None);
        let first = ObjectKey { group, kind, namespace, name: key.name.clone() };
        let of_name = self.by_key.range::<ObjectKey, _>(first..).take_while(|(other, _)| other.name == key.name);
        let same = of_name.filter(|(other, _)| is_same(other));
        let mut claimants: Vec<Claimant> = same.flat_map(|(_, claimants)| claimants).copied().collect();
        claimants.sort_unstable();
        claimants
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::copy::fixtures;

    fn stack(digit: char) -> StackId {
        format!("{digit}0000000-0000-4000-8000-000000000000").parse().unwrap()
    }

    fn key(namespace: Option<&str>) -> ObjectKey {
        let namespace = namespace.map(str::to_owned);
        ObjectKey { group: String::new(), kind: "ConfigMap".into(), namespace, name: "a".into() }
    }

    #[test]
    fn an_object_without_a_namespace_claims_the_one_in_the_default_namespace() {
        let mut claims = Claims::default();
        claims.add(stack('1'), Sequence(1), &Some(vec![key(None).into()]));
        assert_eq!(claims.other_claimant(stack('2'), &key(Some("default"))), Some(stack('1')));
        assert_eq!(claims.other_claimant(stack('1'), &key(Some("default"))), None, "its own stack is not another one");
        assert_eq!(claims.other_claimant(stack('2'), &key(Some("shop"))), None);
    }

    #[test]
    fn a_namespace_in_the_manifest_of_a_cluster_scoped_object_does_not_matter() {
        let mut claims = Claims::default();
        claims.add(stack('1'), Sequence(1), &Some(vec![key(Some("ops")).into(), key(None).into()]));
        assert_eq!(
            claims.other_claimant(stack('2'), &key(None)),
            Some(stack('1')),
            "the key of the live object has none"
        );
        assert_eq!(claims.other_claimant(stack('2'), &key(Some("shop"))), None);
        assert_eq!(claims.other_claimant(stack('2'), &ObjectKey { name: "b".into(), ..key(None) }), None);
        assert_eq!(claims.other_claimant(stack('2'), &ObjectKey { kind: "Secret".into(), ..key(None) }), None);
    }

    #[test]
    fn a_stack_is_named_by_its_name_and_suspended_for_its_agent() {
        let mut claims = Claims::default().with_agent_name("east");
        let revision = Revision::from_wire(fixtures::revision(1, 1, "a: 1"));
        let named = revision.stack_id;
        claims.add_revision(&revision);
        let annotations = |agent: &str| [(SUSPEND_ANNOTATION.to_owned(), agent.to_owned())].into();
        for (stack_id, agent) in [(named, "east"), (stack('2'), "west"), (stack('3'), "")] {
            claims.add_policy(&StackPolicy { stack_id, annotations: annotations(agent), depends_on: Vec::new() });
        }
        assert_eq!((claims.name(named), claims.name(stack('4'))), ("stack 1".to_owned(), stack('4').to_string()));
        let is_suspended = [named, stack('2'), stack('3'), stack('4')].map(|stack| claims.is_suspended(stack));
        assert_eq!(is_suspended, [true, false, false, false]);
    }

    #[test]
    fn an_object_that_a_stack_may_not_write_is_free_for_another_one_until_its_revision_changes() {
        let claims = |sequence| {
            let mut claims = Claims::default();
            claims.add(stack('1'), Sequence(sequence), &Some(vec![key(None).into()]));
            claims
        };
        let owner = |claims: &Claims| claims.earlier_claimant(stack('2'), Sequence(9), &key(Some("default")));
        let denied = BTreeSet::from([key(Some("default"))]);
        let before = claims(1).with_denied(stack('1'), Sequence(1), denied.clone()).unwrap();
        assert_eq!((owner(&claims(1)), owner(&before)), (Some(stack('1')), None));
        assert_eq!(before.with_denied(stack('1'), Sequence(1), denied), None, "nothing new");
        assert_eq!(
            before.other_claimant(stack('2'), &key(None)),
            Some(stack('1')),
            "it is still declared, and not deleted"
        );
        let [mut same, mut newer] = [claims(1), claims(2)];
        same.keep_denied(&before);
        newer.keep_denied(&before);
        assert_eq!((owner(&same), owner(&newer)), (None, Some(stack('1'))));
        let allowed = same.with_denied(stack('1'), Sequence(1), BTreeSet::new()).unwrap();
        assert_eq!(owner(&allowed), Some(stack('1')), "the permission was granted");
    }

    #[test]
    fn a_stack_whose_bundle_is_unknown_may_declare_every_object() {
        let mut claims = Claims::default();
        claims.add(stack('1'), Sequence(1), &Some(Vec::new()));
        claims.add(stack('2'), Sequence(2), &None);
        let may_declare = |digit: char| claims.may_declare(stack(digit), &key(Some("shop")));
        assert!(!may_declare('1'), "its bundle does not declare the object");
        assert!(may_declare('2'), "its bundle cannot be parsed");
        assert!(may_declare('3'), "it is not in the target state");
    }
}
