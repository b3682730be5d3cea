//! Desired state of one stack: its objects with their resource types and namespaces, or its removal.

use std::sync::Arc;

use serde_json::{Value, json};
use sindri_model::{Checksum, IgnoredFields, ObjectKey, RevisionId, StackId};

use super::inventory::RevisionPosition;
use super::order::Turn;
use crate::cluster::ownership::{RevisionOwner, add_ownership};
use crate::cluster::{ApiResource, ApplyPatch};

/// Kubernetes object that a revision declares.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredObject {
    /// Number of its document in the bundle.
    pub document: usize,
    /// Key of the object, with its namespace.
    pub key: Arc<ObjectKey>,
    /// Resource type of the object.
    pub resource: Arc<ApiResource>,
    /// Manifest; the ownership label and annotations, name and namespace are added when it is sent.
    pub manifest: Value,
    /// Ownership values of the revision.
    pub owner: Arc<RevisionOwner>,
    /// Fields that are left to other field managers once the object exists.
    pub ignored: IgnoredFields,
    /// True if it may be deleted and created again when the server rejects a change.
    pub replace: bool,
    /// Turn in which it is applied.
    pub turn: Turn,
    /// Checksum of the manifest of an object that is created once, and not again when it is gone.
    pub once: Option<Checksum>,
}

impl DesiredObject {
    /// Returns true if later turns wait until it is ready. A claim may be bound only when its pod exists, and a Service may
    /// never get an address; such an object is waited for only if it declares a turn.
    pub fn is_waited_for(&self) -> bool {
        !self.turn.is_foundation() && self.key.kind != "PersistentVolumeClaim"
    }

    /// Returns the object as it is applied. With the UID of a live object it changes that one and no other: an apply that
    /// arrives late does not create the object again after it was deleted.
    pub fn to_patch(&self, uid: Option<&str>) -> ApplyPatch<'_> {
        self.to_patch_of(uid, None)
    }

    /// The same for exactly this version of the live object.
    pub fn to_patch_of(&self, uid: Option<&str>, resource_version: Option<&str>) -> ApplyPatch<'_> {
        let mut object = add_ownership(&self.manifest, &self.owner, &self.key);
        let conditions = [("uid", uid), ("resourceVersion", resource_version)];
        for (field, value) in conditions.into_iter().filter_map(|(field, value)| Some((field, value?))) {
            object["metadata"][field] = json!(value);
        }
        ApplyPatch::new(&self.resource, &self.key, &object)
    }
}

/// Desired state of one stack.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredStack {
    /// Id of the stack.
    pub stack: StackId,
    /// Id of the revision.
    pub revision: RevisionId,
    /// Position of the revision in the order of all revisions.
    pub position: RevisionPosition,
    /// Objects, or removal.
    pub goal: Goal,
}

/// Goal of a pass.
#[derive(Clone, Debug, PartialEq)]
pub enum Goal {
    /// The stack has exactly these objects.
    Present(Vec<Arc<DesiredObject>>),
    /// The stack has no objects.
    Removed,
}

impl Goal {
    /// Returns true if a revision declares no object; false for a removal.
    pub fn declares_nothing(&self) -> bool {
        matches!(self, Self::Present(objects) if objects.is_empty())
    }

    /// Returns the declared objects; none for a removal.
    pub fn objects(&self) -> &[Arc<DesiredObject>] {
        match self {
            Self::Present(objects) => objects,
            Self::Removed => &[],
        }
    }
}
