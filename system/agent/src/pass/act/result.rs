//! Result of the execution of a plan, and its errors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sindri_model::ObjectKey;
use thiserror::Error;

use crate::cluster::{AppliedObject, ClusterError};
use crate::pass::inventory::InventoryError;

/// Time that a pass waits for a CRD to be served.
pub(super) const SERVED_WAIT_MAX: Duration = Duration::from_secs(30);
/// Time that a pass waits for deleted objects to be gone; the next pass waits for the rest.
pub(super) const GONE_WAIT_MAX: Duration = Duration::from_secs(10);

/// Reason why a plan was not executed completely.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ActError {
    /// The inventory could not be written; nothing was done after that.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// The server rejects objects; nothing of the bundle was written except namespaces and CRDs.
    #[error("{} of the objects are not valid: {}", .0.len(), join(.0))]
    Invalid(Vec<ClusterError>),
    /// Some writes failed; earlier writes are kept.
    #[error("{}", join(.0))]
    Write(Vec<ClusterError>),
    /// Nothing is known about some objects, or their namespace or CRD is being deleted; all others were written.
    #[error("{} of the objects are not written yet: {}", .0.len(), join(.0))]
    Postponed(Vec<ClusterError>),
    /// A CRD was applied and its kind is not served.
    #[error("{key} was applied and is still not served after {} s", SERVED_WAIT_MAX.as_secs())]
    NotServed {
        /// Key of the CRD.
        key: Arc<ObjectKey>,
    },
    /// An object that is to be replaced was deleted and still exists.
    #[error("{key} is being replaced: it was deleted and is not gone after {} s; it is created again once it is gone", GONE_WAIT_MAX.as_secs())]
    NotReplaced {
        /// Key of the object.
        key: Arc<ObjectKey>,
    },
    /// Another client took over an object that was to be replaced.
    #[error("{key} is not replaced: it does not belong to this stack any more")]
    HandedOver {
        /// Key of the object.
        key: Arc<ObjectKey>,
    },
    /// The target state changed during the pass; the next pass continues with the new one.
    #[error("the target state has changed")]
    Interrupted,
    /// Some deletes failed; the others were done.
    #[error("{} objects could not be deleted: {}", .0.len(), join(.0))]
    Deletes(Vec<DeleteError>),
}

impl ActError {
    /// Adds the failures of objects that were not written to those of writes.
    #[must_use]
    pub(super) fn with_postponed(mut self, postponed: Vec<ClusterError>) -> Self {
        if let Self::Write(errors) | Self::Invalid(errors) = &mut self {
            errors.extend(postponed);
        }
        self
    }

    /// Returns the objects that could not be written or deleted, each with its reason.
    pub fn objects(&self) -> Vec<(ObjectKey, String)> {
        let failed = |error: &ClusterError| error.object().map(|key| (key.clone(), error.to_string()));
        match self {
            Self::Inventory(_) | Self::Interrupted => Vec::new(),
            Self::Invalid(errors) | Self::Write(errors) | Self::Postponed(errors) => {
                errors.iter().filter_map(failed).collect()
            }
            Self::NotServed { key } | Self::NotReplaced { key } | Self::HandedOver { key } => {
                vec![(ObjectKey::clone(key), self.to_string())]
            }
            Self::Deletes(errors) => errors.iter().filter_map(DeleteError::object).collect(),
        }
    }

    /// Returns true if the work on an object panicked.
    pub fn has_panicked(&self) -> bool {
        match self {
            Self::Invalid(errors) | Self::Write(errors) | Self::Postponed(errors) => {
                errors.iter().any(ClusterError::is_internal)
            }
            Self::Deletes(errors) => {
                errors.iter().any(|error| matches!(error, DeleteError::Cluster(error) if error.is_internal()))
            }
            Self::Inventory(_) | Self::NotServed { .. } | Self::NotReplaced { .. } => false,
            Self::HandedOver { .. } | Self::Interrupted => false,
        }
    }
}

impl From<ClusterError> for ActError {
    fn from(error: ClusterError) -> Self {
        Self::Write(vec![error])
    }
}

/// Reason why an object was not deleted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DeleteError {
    /// The request failed.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The target state changed before the request was sent.
    #[error("{0} is not deleted yet: the target state has changed")]
    Interrupted(Arc<ObjectKey>),
    /// Another client changed it after the plan was made.
    #[error("{0} is not deleted yet: it was changed meanwhile; the next pass decides anew")]
    Changed(Arc<ObjectKey>),
    /// A CRD of which no version is served.
    #[error(
        "{0} is kept: no version of it is served, so that its custom resources cannot be listed; serve one, or \
         delete the CRD yourself"
    )]
    ContentUnknown(Arc<ObjectKey>),
    /// An object that a stack declares or owns would be deleted with it.
    #[error("{key} is kept: {declared} of stack {stack} would be deleted with it")]
    ContainsDeclared {
        /// Key of the namespace or the CRD.
        key: Arc<ObjectKey>,
        /// Key of that object.
        declared: Arc<ObjectKey>,
        /// Name of its stack.
        stack: String,
    },
    /// A foreign object, which was created after the plan was made, would be deleted with it.
    #[error("{key} is kept: it contains {foreign}, which does not belong to this stack")]
    ContainsForeign {
        /// Key of the namespace or the CRD.
        key: Arc<ObjectKey>,
        /// One of the foreign objects.
        foreign: Arc<ObjectKey>,
    },
    /// An object that is to be kept would be deleted with it.
    #[error("{key} is kept: it contains {kept}, whose annotation sindri.dev/prune keeps it")]
    ContainsKept {
        /// Key of the namespace or the CRD.
        key: Arc<ObjectKey>,
        /// One of the objects.
        kept: Arc<ObjectKey>,
    },
}

impl DeleteError {
    /// Returns the object that was not deleted, with the reason.
    fn object(&self) -> Option<(ObjectKey, String)> {
        let key = match self {
            Self::Cluster(error) => error.object()?,
            Self::Interrupted(_) => return None,
            Self::Changed(key) | Self::ContentUnknown(key) => key,
            Self::ContainsDeclared { key, .. } | Self::ContainsForeign { key, .. } | Self::ContainsKept { key, .. } => {
                key
            }
        };
        Some((key.clone(), self.to_string()))
    }
}

fn join<E: std::fmt::Display>(errors: &[E]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Result of the execution of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActResult {
    /// Objects that were written, or found unchanged by a dry run, as the server returned them.
    pub applied: BTreeMap<Arc<ObjectKey>, AppliedObject>,
    /// Objects that were deleted and still exist.
    pub terminating: Vec<Arc<ObjectKey>>,
    /// Objects that a dry run found different from their declaration.
    pub drifted: Vec<Arc<ObjectKey>>,
}
