//! Result of one pass of one stack, and its errors.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sindri_health::AssessedObject;
use sindri_model::{BundleError, DocumentError, ObjectKey};
use thiserror::Error;

use super::act::{ActError, DeleteError};
use super::approval::HoldMessage;
use super::creation::CreationResult;
use super::desired::DesiredObject;
use super::inventory::{InventoryError, RevisionPosition};
use super::plan::{PlanError, WaitingTurn};
use super::resolve::ResolveError;
use crate::cluster::ClusterError;

/// Result of a pass that did not fail.
#[derive(Debug, Default)]
pub struct PassSummary {
    /// Objects that are being deleted, or wait for another stack; the pass is complete only when they are gone.
    pub terminating: Vec<Arc<ObjectKey>>,
    /// Objects that are no longer declared, and that stay until they belong to another stack, which declares them now.
    pub claimed: Vec<ClaimedObject>,
    /// Objects that differed from what this revision had applied.
    pub drifted: Vec<Arc<ObjectKey>>,
    /// Deletions that wait for an approval.
    pub held: Option<HoldMessage>,
    /// Declared objects as the pass left them.
    pub declared: Vec<SeenObject>,
    /// True if the revision declares no object. False also for a pass that ended before it had looked at every object.
    pub declares_nothing: bool,
    /// Fields that the cluster rewrites at every apply: object and path.
    pub rewritten_fields: Vec<(Arc<ObjectKey>, String)>,
    /// Objects that were kept and do not belong to the stack any more.
    pub released: Vec<Arc<ObjectKey>>,
    /// True if nothing was written, because the stack is suspended.
    pub is_suspended: bool,
    /// True if the revision of a suspended stack was completely applied before.
    pub was_applied: bool,
    /// Reasons why objects of some kinds could not be read, and were left alone; everything else was done.
    pub unreadable: Vec<ClusterError>,
    /// Reason why some objects, or all, are not applied yet.
    pub waiting: Option<Waiting>,
}

/// Object that a stack does not declare any more, and another one does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedObject {
    /// Key of the object.
    pub key: Arc<ObjectKey>,
    /// Name of the stack that declares it.
    pub stack: String,
    /// True if that stack is suspended on this cluster.
    pub is_suspended: bool,
}

impl fmt::Display for ClaimedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, stack, is_suspended } = self;
        write!(f, "{key} stays until stack {stack}, which declares it now, has taken it over")?;
        if *is_suspended {
            write!(f, "; stack {stack} is suspended on this cluster: run sindri stack resume {stack}")?;
        }
        Ok(())
    }
}

/// Reason why objects are not applied yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The objects of an earlier turn are not ready.
    Turn(WaitingTurn),
    /// These stacks are not ready.
    Stacks(Vec<String>),
}

impl Waiting {
    /// Returns the objects that are waited for.
    pub fn objects(&self) -> &[Arc<ObjectKey>] {
        match self {
            Self::Turn(WaitingTurn { objects, .. }) => objects,
            Self::Stacks(_) => &[],
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(WaitingTurn { turn, objects }) => {
                let keys: Vec<String> = objects.iter().map(ToString::to_string).collect();
                write!(f, "the other objects are applied when {turn} is ready: {}", keys.join(", "))
            }
            Self::Stacks(names) => {
                write!(f, "applied when these stacks are ready on this cluster: {}", names.join(", "))
            }
        }
    }
}

impl PassSummary {
    /// Describes the objects that are waited for, after `prefix` those that are being deleted.
    pub fn describe_terminating(&self, prefix: &str) -> String {
        let is_claimed = |key: &&Arc<ObjectKey>| self.claimed.iter().any(|claimed| claimed.key == **key);
        let deleted = self.terminating.iter().filter(|key| !is_claimed(key)).map(ToString::to_string);
        let deleted: Vec<String> = deleted.collect();
        let deleted = (!deleted.is_empty()).then(|| format!("{prefix}: {}", deleted.join(", ")));
        let claimed = self.claimed.iter().map(ToString::to_string);
        deleted.into_iter().chain(claimed).collect::<Vec<_>>().join("; ")
    }

    /// Describes the kinds that could not be read, if there are any.
    pub fn describe_unreadable(&self) -> Option<String> {
        let reasons: Vec<String> = self.unreadable.iter().map(ToString::to_string).collect();
        let count = reasons.len();
        (count > 0).then(|| {
            format!("{count} kinds could not be read, and their objects are left alone: {}", reasons.join("; "))
        })
    }
}

/// Desired object, and the live object as a pass left it.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenObject {
    /// Desired object.
    pub object: Arc<DesiredObject>,
    /// State of the live object.
    pub state: SeenState,
}

/// State of the live object of a desired one.
#[derive(Clone, Debug, PartialEq)]
pub enum SeenState {
    /// It exists.
    Present {
        /// resourceVersion of the live object.
        resource_version: String,
        /// Health after this pass wrote it; `None` if the pass did not write it.
        health: Option<AssessedObject>,
    },
    /// It does not exist.
    Missing,
    /// It is applied once, was created, and is gone.
    Done(CreationResult),
    /// Its kind could not be read.
    Unread,
}

/// Reason why a pass failed.
#[derive(Debug, Error)]
pub enum PassError {
    /// The bundle could not be resolved.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The inventory could not be read or written.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// A request failed before the plan was made.
    #[error(transparent)]
    Observe(#[from] ClusterError),
    /// The last search of a removal could not look at any kind.
    #[error("the removal is not confirmed before the cluster was searched for further objects: {0}")]
    LastSearch(ClusterError),
    /// The revision must not be applied.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The plan was not executed completely.
    #[error(transparent)]
    Act(#[from] ActError),
    /// The revision is from the copy of the target state, and there is more to do than to correct drift.
    #[error("revision {0} was not completely applied before; this waits until the broker responds")]
    WaitsForBroker(RevisionPosition),
    /// The inventory was lost, and the broker has not said whether the revision was completely applied.
    #[error("the inventory was lost; this waits until the broker says whether the revision was applied")]
    LostInventory,
    /// Annotations of the stack have invalid values.
    #[error("annotations of the stack: {}", .0.join("; "))]
    Policy(Vec<String>),
    /// The pass exceeded its time limit.
    #[error("the pass took longer than {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The pass panicked; holds the message.
    #[error("{0}")]
    Panicked(String),
}

impl PassError {
    /// Returns true if the cause is the bundle, and not the cluster.
    pub fn is_caused_by_bundle(&self) -> bool {
        match self {
            Self::Resolve(ResolveError::Bundle(_) | ResolveError::Objects(_)) | Self::Plan(_) => true,
            Self::Policy(_) => true,
            Self::Act(error) => matches!(error, ActError::Invalid(_)),
            Self::Resolve(ResolveError::Cluster(_)) | Self::Inventory(_) | Self::Observe(_) | Self::LastSearch(_) => {
                false
            }
            Self::WaitsForBroker(_) | Self::LostInventory | Self::TimedOut(_) | Self::Panicked(_) => false,
        }
    }

    /// Returns true if the pass ended because the target state changed.
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Act(ActError::Interrupted) => true,
            Self::Act(ActError::Deletes(errors)) => {
                errors.iter().any(|error| matches!(error, DeleteError::Interrupted(_)))
            }
            _ => false,
        }
    }

    /// Returns true if a type of the bundle may be served at another path than before: its CRD was created again with another
    /// plural or scope.
    pub fn has_outdated_types(&self) -> bool {
        match self {
            Self::Observe(error) => error.is_path_not_found(),
            Self::Act(ActError::Invalid(errors) | ActError::Write(errors)) => {
                errors.iter().any(ClusterError::is_path_not_found)
            }
            _ => false,
        }
    }

    /// Returns true if another stack prevented something by what it declares.
    pub fn is_caused_by_claim(&self) -> bool {
        match self {
            Self::Plan(error) => matches!(error, PlanError::OwnedByOtherStacks(_)),
            Self::Act(ActError::Deletes(errors)) => {
                errors.iter().any(|error| matches!(error, DeleteError::ContainsDeclared { .. }))
            }
            _ => false,
        }
    }

    /// Returns the objects that the cluster did not let the stack write; `None` if the pass did not try.
    pub fn denied_objects(&self) -> Option<BTreeSet<ObjectKey>> {
        let Self::Act(ActError::Invalid(errors) | ActError::Write(errors) | ActError::Postponed(errors)) = self else {
            return None;
        };
        let denied = errors.iter().filter(|error| error.is_forbidden() && !error.is_about_terminating_parent());
        Some(denied.filter_map(ClusterError::object).cloned().collect())
    }

    /// Returns true if the pass panicked, or its work on an object or the parsing of its bundle did.
    pub fn has_panicked(&self) -> bool {
        match self {
            Self::Panicked(_) => true,
            Self::Resolve(ResolveError::Bundle(BundleError { errors })) => {
                errors.iter().any(|error| matches!(error, DocumentError::Internal(_)))
            }
            Self::Act(error) => error.has_panicked(),
            _ => false,
        }
    }

    /// Returns the objects that could not be written or deleted, each with its reason.
    pub fn objects(&self) -> Vec<(ObjectKey, String)> {
        match self {
            Self::Act(error) => error.objects(),
            Self::Plan(PlanError::OwnedByOtherStacks(owned)) => owned.clone(),
            _ => Vec::new(),
        }
    }

    /// Returns true if a write failed.
    pub fn is_failed_write(&self) -> bool {
        matches!(self, Self::Act(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_the_parser_is_a_panic_and_an_invalid_bundle_is_not() {
        let error = |error| PassError::Resolve(ResolveError::Bundle(BundleError { errors: vec![error] }));
        assert!(error(DocumentError::Internal("internal error: a".to_owned())).has_panicked());
        assert!(!error(DocumentError::NoObject).has_panicked());
    }
}
