//! Variants of the controller. The default is correct; every other one is a mistake that authors of controllers make.

use serde_json::{Value, json};

use super::children::{CONFIG_ANNOTATION, Child};

/// A variant of the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// Without a mistake.
    #[default]
    Correct,
    /// Only agents and children are watched, not the objects to which agents refer.
    IgnoresReferences,
    /// Of the objects to which agents refer, only those that an agent itself names are watched.
    IgnoresIndirectReferences,
    /// An object of another client that has the name of a child is taken over.
    AdoptsForeignObjects,
    /// Owners are compared by name, not by UID.
    IgnoresUid,
    /// The Secret has no owner reference.
    OmitsOwnerReference,
    /// Children that are no longer declared stay.
    KeepsUndeclaredChildren,
    /// An agent whose references cannot be resolved has no children: existing ones are deleted.
    DeletesWithoutReferences,
    /// Pods are not replaced when their key changes.
    KeepsOldPods,
    /// The phase goes back to `Pending` while a child is repaired.
    PendingAtEachRepair,
    /// The phase stays `Ready` once it was reached.
    ReadyForever,
    /// The status contains the time of the last reconciliation, and each change of it causes another one.
    WritesStatusAlways,
    /// Agents are reconciled after events only.
    NoResync,
}

impl Variant {
    /// The variants with a mistake.
    pub const WRONG: [Variant; 12] = [
        Variant::IgnoresReferences,
        Variant::IgnoresIndirectReferences,
        Variant::AdoptsForeignObjects,
        Variant::IgnoresUid,
        Variant::OmitsOwnerReference,
        Variant::KeepsUndeclaredChildren,
        Variant::DeletesWithoutReferences,
        Variant::KeepsOldPods,
        Variant::PendingAtEachRepair,
        Variant::ReadyForever,
        Variant::WritesStatusAlways,
        Variant::NoResync,
    ];

    /// Changes the desired state of a child as this variant has it.
    pub(super) fn alter_child(self, child: Child, desired: &mut Value) {
        if self == Variant::OmitsOwnerReference && child == Child::Secret {
            desired["metadata"]["ownerReferences"] = json!([]);
        }
        if self == Variant::KeepsOldPods && child == Child::Deployment {
            desired["spec"]["template"]["metadata"]["annotations"] = json!({CONFIG_ANNOTATION: ""});
        }
    }
}
