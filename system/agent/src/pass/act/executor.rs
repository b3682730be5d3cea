//! The third step: carries a plan out. It has no opinion: what to write and in which order the plan says.
//!
//! It keeps the inventory ahead of the cluster, begins nothing after a failed write, goes on past a failed
//! delete, and takes back the namespaces that it made for nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryFutureExt;
use futures_util::future::try_join;
use sindri_model::{ObjectKey, StackId};
use thiserror::Error;

use crate::cluster::{Applied, Cluster, ClusterError};
use crate::pass::inventory::{self, Inventory, InventoryError, Position};
use crate::pass::plan::{Plan, Strangers};

use super::write::Validated;

/// How long a pass waits for a definition to be served.
pub(super) const SERVED_WAIT_MAX: Duration = Duration::from_secs(30);
/// How long a pass waits for deleted objects to be gone; the rest is left to the next pass.
pub(super) const GONE_WAIT_MAX: Duration = Duration::from_secs(10);

/// Why a pass did not carry out its plan.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ActError {
    /// The inventory could not be written; nothing was done after that.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// Objects that the server does not accept; none of the bundle was written, namespaces and definitions aside.
    #[error("{} of the objects are not valid: {}", .0.len(), list(.0))]
    Invalid(Vec<ClusterError>),
    /// Some writes failed; what was written before them stays.
    #[error("{}", list(.0))]
    Write(Vec<ClusterError>),
    /// A definition was applied and its kind did not appear.
    #[error("{key} was applied and is still not served after {} s", SERVED_WAIT_MAX.as_secs())]
    NotServed {
        /// The definition.
        key: Arc<ObjectKey>,
    },
    /// An object that is to be replaced was deleted and did not go.
    #[error("{key} is being replaced: it was deleted and is not gone after {} s; it is made anew once it is", GONE_WAIT_MAX.as_secs())]
    NotReplaced {
        /// The object.
        key: Arc<ObjectKey>,
    },
    /// Some deletes failed; the others were carried out.
    #[error("{} objects could not be deleted: {}", .0.len(), list(.0))]
    Deletes(Vec<NotDeleted>),
}

impl From<ClusterError> for ActError {
    fn from(error: ClusterError) -> Self {
        Self::Write(vec![error])
    }
}

/// Why an object is still there.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NotDeleted {
    /// The cluster did not do it.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Deleting it would delete objects of others, which came after the plan was made.
    #[error("{key} is kept: it holds {held}, which is not of this stack")]
    HoldsOthers {
        /// The namespace or the definition.
        key: Arc<ObjectKey>,
        /// One of the objects.
        held: Arc<ObjectKey>,
    },
}

fn list<E: std::fmt::Display>(errors: &[E]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What a carried-out plan left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Each object that was written, or found unchanged, as the server gave it back.
    pub applied: BTreeMap<Arc<ObjectKey>, Applied>,
    /// Deleted, and not gone yet.
    pub leaving: Vec<Arc<ObjectKey>>,
    /// Compared, and not as they were declared.
    pub drifted: Vec<Arc<ObjectKey>>,
}

/// Carries out the plans of one stack.
pub struct Executor<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The stack.
    pub stack: StackId,
    /// Its inventory, kept as it is in the cluster.
    pub inventory: &'a mut Inventory,
    /// Where the revision stands.
    pub position: Position,
    /// With the brake on, what of others may go with a namespace or a definition: somebody has approved it.
    pub guard: Option<Strangers>,
}

impl Executor<'_> {
    /// Carries out a plan; on a failed write takes back the namespaces that it made.
    pub async fn carry_out(&mut self, plan: &Plan) -> Result<Done, ActError> {
        let validated = self.prepare(plan).await?;
        let mut done = Done { leaving: plan.leaving.clone(), ..Done::default() };
        let mut made = Vec::new();
        if let Err(error) = self.write(plan, validated, &mut done, &mut made).await {
            self.take_back(&made, &done).await;
            // Identities that are known by now help the next pass; the error at hand says more than a second one.
            let _ = self.save(self.identified(&done)).await;
            return Err(error);
        }
        let mut after = self.identified(&done);
        if !plan.writes.is_empty() {
            after.applied = Some(self.position);
        }
        self.save(after).await?;
        self.compare(&plan.checks, &mut done).await?;
        self.delete_all(&plan.deletes, &mut done).await?;
        Ok(done)
    }

    /// Writes the inventory ahead. Validation writes nothing and need not wait for that, unless something is written first; when
    /// the inventory cannot be written, nobody waits for validation.
    async fn prepare<'a>(&mut self, plan: &'a Plan) -> Result<Option<Validated<'a>>, ActError> {
        let noting = inventory::save(self.cluster, self.stack, self.inventory, &plan.ahead).map_err(ActError::from);
        let validated = match plan.before_and_after_validation() {
            ([], rest) => Some(try_join(noting, async { Ok(self.validate(rest).await) }).await?.1),
            _ => {
                noting.await?;
                None
            }
        };
        *self.inventory = plan.ahead.clone();
        Ok(validated)
    }

    pub(super) async fn save(&mut self, after: Inventory) -> Result<(), ActError> {
        inventory::save(self.cluster, self.stack, self.inventory, &after).await?;
        *self.inventory = after;
        Ok(())
    }

    fn identified(&self, done: &Done) -> Inventory {
        let mut after = self.inventory.clone();
        done.applied.iter().for_each(|(key, applied)| after.identify(key, &applied.live.uid));
        after
    }
}
