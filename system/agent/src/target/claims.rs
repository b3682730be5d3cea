//! Which stack declares which object, as the broker last said: so that an object can move from one stack to another
//! without being deleted in between, and two stacks never write the same one.

use std::collections::BTreeMap;
use std::sync::Arc;

use sindri_model::{ObjectKey, Sequence, StackId};

use crate::cluster::Cluster;
use crate::pass::observe::DEFAULT_NAMESPACE;
use crate::target::revision::Declared;

/// A stack that declares an object, in the order of revisions.
type Declarer = (Sequence, StackId);

/// The objects of every stack in the target state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// Where objects go that do not say where.
    default_namespace: String,
    stacks: BTreeMap<StackId, (Sequence, bool)>,
    /// Who declares an object, in the order in which that was noted.
    by_key: BTreeMap<Arc<ObjectKey>, Vec<Declarer>>,
}

impl Cluster {
    /// Claims for objects of this cluster: none yet.
    pub fn no_claims(&self) -> Claims {
        Claims::placed_in(self.scope().unwrap_or(DEFAULT_NAMESPACE))
    }
}

impl Default for Claims {
    fn default() -> Self {
        Self::placed_in(DEFAULT_NAMESPACE)
    }
}

impl Claims {
    /// Nobody declares anything; objects that do not say where they go will go there.
    pub fn placed_in(default_namespace: &str) -> Self {
        let default_namespace = default_namespace.to_owned();
        Self { default_namespace, stacks: BTreeMap::new(), by_key: BTreeMap::new() }
    }

    /// Notes what a stack declares.
    pub fn add(&mut self, stack: StackId, sequence: Sequence, declared: &Declared) {
        self.stacks.insert(stack, (sequence, declared.is_some()));
        for key in declared.iter().flatten() {
            self.by_key.entry(key.clone()).or_default().push((sequence, stack));
        }
    }

    /// Whether a stack may still want an object that carries its marks: it declares it, or nobody can say.
    pub fn may_want(&self, stack: &str, key: &ObjectKey) -> bool {
        let known = self.stacks.iter().find(|(known, _)| known.to_string() == stack);
        match known {
            Some((known, (_, true))) => self.declarers(key).iter().any(|(_, declarer)| declarer == known),
            Some((_, (_, false))) | None => true,
        }
    }

    /// The first other stack that declares an object, by the order of revisions.
    pub fn other(&self, stack: StackId, key: &ObjectKey) -> Option<StackId> {
        self.declarers(key).into_iter().map(|(_, declarer)| declarer).find(|declarer| *declarer != stack)
    }

    /// The same, if it comes before this stack.
    pub fn earlier(&self, stack: StackId, sequence: Sequence, key: &ObjectKey) -> Option<StackId> {
        let mut others = self.declarers(key).into_iter().filter(|(_, other)| *other != stack);
        others.find(|(before, _)| *before < sequence).map(|(_, other)| other)
    }

    fn declarers(&self, key: &ObjectKey) -> Vec<Declarer> {
        let mut declarers = self.by_key.get(key).cloned().unwrap_or_default();
        // A bundle may leave the namespace out.
        if key.namespace.as_deref() == Some(&self.default_namespace) {
            let unplaced = ObjectKey { namespace: None, ..key.clone() };
            declarers.extend(self.by_key.get(&unplaced).into_iter().flatten());
        }
        declarers.sort_unstable();
        declarers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(digit: char) -> StackId {
        format!("{digit}0000000-0000-4000-8000-000000000000").parse().unwrap()
    }

    fn key(namespace: Option<&str>) -> ObjectKey {
        let namespace = namespace.map(str::to_owned);
        ObjectKey { group: String::new(), kind: "ConfigMap".into(), namespace, name: "a".into() }
    }

    #[test]
    fn an_object_without_a_namespace_is_the_one_in_the_default_namespace() {
        let mut claims = Claims::default();
        claims.add(stack('1'), Sequence(1), &Some(vec![key(None).into()]));
        assert_eq!(claims.other(stack('2'), &key(Some("default"))), Some(stack('1')));
        assert_eq!(claims.other(stack('1'), &key(Some("default"))), None, "it is no other");
        assert_eq!(claims.other(stack('2'), &key(Some("shop"))), None);
    }

    #[test]
    fn a_stack_of_which_nothing_is_known_may_want_everything() {
        let mut claims = Claims::default();
        claims.add(stack('1'), Sequence(1), &Some(Vec::new()));
        claims.add(stack('2'), Sequence(2), &None);
        let may_want = |digit: char| claims.may_want(&stack(digit).to_string(), &key(Some("shop")));
        assert!(!may_want('1'), "it says what it declares, and that is not among it");
        assert!(may_want('2'), "its bundle cannot be read");
        assert!(may_want('3'), "nobody has said anything of it");
    }
}
