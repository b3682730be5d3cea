//! One reconciliation: observe, plan, act, report.

use kube::Client;
use serde_json::{Value, json};
use sindri_model::{Clock, Entropy};

use super::children::{CHILDREN, Child, NAME_LABEL, is_owned_by};
use super::crd::DATABASE;
use super::plan::{ObservedChildren, Obstacle, Step, plan};
use super::status::build_status;
use super::variant::{ChildNames, StatusOrder, UpdateMode, Variant};
use crate::client::{CallError, Objects};
use crate::object::{is_deleting, name, text};

/// Largest number of immediate attempts after conflicts; then the backoff applies as after any failure.
const ATTEMPTS_MAX: usize = 5;
/// Largest number of times that [`ChildNames::Generated`] sends a create.
const SENDS_MAX: usize = 3;

/// Result of a reconciliation without a temporary failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReconcileResult {
    /// The database does not exist, or is being deleted.
    NothingToDo,
    /// Every child had its desired state, and the status says so.
    Applied,
    /// Children were created or updated. The next reconciliation verifies them.
    Changed,
    /// The desired state cannot be reached, and the status says why. A retry does not help soon.
    Rejected(String),
}

/// Reconciles databases, one at a time.
pub struct Reconciler {
    /// The cluster.
    pub client: Client,
    /// Source of the times in conditions.
    pub clock: Clock,
    /// Source of passwords.
    pub entropy: Entropy,
    /// Variant of the controller.
    pub variant: Variant,
}

impl Reconciler {
    /// Reconciles one database. An error is temporary.
    pub async fn reconcile(&self, namespace: &str, database: &str) -> Result<ReconcileResult, CallError> {
        let mut last = CallError::Conflict;
        for _ in 0..ATTEMPTS_MAX {
            match self.try_reconcile(namespace, database).await {
                Err(error) if error.is_stale() => last = error,
                // Writing the status was rejected too: only the log is left.
                Err(CallError::Permanent(reason)) => return Ok(ReconcileResult::Rejected(reason)),
                result => return result,
            }
        }
        Err(last)
    }

    async fn try_reconcile(&self, namespace: &str, database: &str) -> Result<ReconcileResult, CallError> {
        let Some(mut parent) = self.parents(namespace).get(database).await? else {
            return Ok(ReconcileResult::NothingToDo);
        };
        if is_deleting(&parent) {
            return Ok(ReconcileResult::NothingToDo);
        }
        let mut observed = ObservedChildren::new();
        let result = match self.observe_and_act(&mut parent, &mut observed).await {
            Ok(0) => ReconcileResult::Applied,
            Ok(_) => ReconcileResult::Changed,
            Err(CallError::Permanent(reason)) => ReconcileResult::Rejected(reason),
            Err(error) => return Err(error),
        };
        let rejection = match &result {
            ReconcileResult::Rejected(reason) => Some(reason.as_str()),
            ReconcileResult::NothingToDo | ReconcileResult::Applied | ReconcileResult::Changed => None,
        };
        self.write_status(&parent, &observed, rejection).await?;
        Ok(result)
    }

    /// Returns the number of writes.
    async fn observe_and_act(&self, parent: &mut Value, observed: &mut ObservedChildren) -> Result<usize, CallError> {
        *observed = self.observe(parent).await?;
        match self.variant.status {
            StatusOrder::Last => {}
            StatusOrder::First => *parent = self.write_status(parent, observed, None).await?,
        }
        self.execute_plan(parent, observed).await
    }

    fn parents(&self, namespace: &str) -> Objects {
        Objects::in_namespace(&self.client, DATABASE, namespace)
    }

    fn children(&self, child: Child, parent: &Value) -> Objects {
        Objects::in_namespace(&self.client, child.kind(), text(parent, "/metadata/namespace"))
    }

    async fn observe(&self, parent: &Value) -> Result<ObservedChildren, CallError> {
        let mut observed = ObservedChildren::new();
        for child in CHILDREN {
            let objects = self.children(child, parent);
            let child_object = match self.variant.names {
                ChildNames::Derived => objects.get(&child.name(parent)).await?,
                ChildNames::Generated => {
                    let (objects, _) = objects.list(&format!("{NAME_LABEL}={}", name(parent))).await?;
                    objects.into_iter().find(|object| is_owned_by(object, parent))
                }
            };
            observed.extend(child_object.map(|object| (child, object)));
        }
        Ok(observed)
    }

    /// Executes the plan, and returns the number of writes. The responses of the server become the observed state.
    async fn execute_plan(&self, parent: &Value, observed: &mut ObservedChildren) -> Result<usize, CallError> {
        let planned = plan(parent, observed, self.variant.comparison);
        let writes = planned.steps.len();
        for step in planned.steps {
            let (child, written) = match step {
                Step::Create(child, object) => (child, self.create(child, parent, object).await?),
                Step::Update(child, object) => (child, self.update(child, parent, object).await?),
            };
            observed.insert(child, written);
        }
        match planned.obstacle {
            None => Ok(writes),
            Some(Obstacle::Terminating(reason)) => Err(CallError::Transient(reason)),
            Some(Obstacle::Foreign(reason)) => Err(CallError::Permanent(reason)),
        }
    }

    async fn create(&self, child: Child, parent: &Value, mut object: Value) -> Result<Value, CallError> {
        self.add_password(child, &mut object);
        let objects = self.children(child, parent);
        match self.variant.names {
            ChildNames::Derived => objects.create(&object).await,
            ChildNames::Generated => {
                object["metadata"]["name"] = Value::Null;
                object["metadata"]["generateName"] = json!(format!("{}-", child.name(parent)));
                let mut response = objects.create(&object).await;
                for _ in 1..SENDS_MAX {
                    if !matches!(response, Err(CallError::Transient(_) | CallError::Unknown(_))) {
                        break;
                    }
                    response = objects.create(&object).await;
                }
                response
            }
        }
    }

    async fn update(&self, child: Child, parent: &Value, mut object: Value) -> Result<Value, CallError> {
        if text(&object, "/data/password").is_empty() {
            self.add_password(child, &mut object);
        }
        match self.variant.updates {
            UpdateMode::Conditional => {}
            UpdateMode::Blind => object["metadata"]["resourceVersion"] = Value::Null,
        }
        self.children(child, parent).replace(&object).await
    }

    fn add_password(&self, child: Child, object: &mut Value) {
        if child == Child::Secret {
            let password = hex::encode(self.entropy.bytes::<16>());
            object["stringData"] = json!({"password": password});
        }
    }

    /// Writes the status if it has changed, and returns the database with it.
    async fn write_status(
        &self,
        parent: &Value,
        observed: &ObservedChildren,
        rejection: Option<&str>,
    ) -> Result<Value, CallError> {
        let status = build_status(parent, observed, rejection, &self.clock.now().to_string());
        if parent.get("status") == Some(&status) {
            return Ok(parent.clone());
        }
        let mut updated = parent.clone();
        updated["status"] = status;
        self.parents(text(parent, "/metadata/namespace")).replace_status(&updated).await
    }
}

impl std::fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler").field("variant", &self.variant).finish_non_exhaustive()
    }
}
