//! One reconciliation: observe, plan, act, report.

use std::time::Duration;

use kube::Client;
use serde_json::Value;
use sindri_model::Clock;

use super::children::{CHILDREN, Child};
use super::crd::AGENT;
use super::plan::{ObservedChildren, Obstacle, Step, plan};
use super::references::{References, read_references};
use super::status::Report;
use super::variant::Variant;
use crate::client::{CallError, Objects};
use crate::object::{is_deleting, name, text, uid};

/// Largest number of immediate attempts after conflicts; then the backoff applies as after any failure.
const ATTEMPTS_MAX: usize = 5;

/// Result of a reconciliation without a temporary failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReconcileResult {
    /// The agent does not exist, or is being deleted.
    NothingToDo,
    /// The status is written.
    Reported {
        /// Reason why the children do not have their desired state. A retry does not help soon.
        rejection: Option<String>,
        /// Time until the status changes by itself.
        changes_after: Option<Duration>,
    },
}

/// Reconciles agents, one at a time.
pub struct Reconciler {
    /// The cluster.
    pub client: Client,
    /// Source of the times in the status.
    pub clock: Clock,
    /// Variant of the controller.
    pub variant: Variant,
}

impl Reconciler {
    /// Reconciles one agent. An error is temporary.
    pub async fn reconcile(&self, namespace: &str, agent: &str) -> Result<ReconcileResult, CallError> {
        let mut last = CallError::Conflict;
        for _ in 0..ATTEMPTS_MAX {
            match self.try_reconcile(namespace, agent).await {
                Err(error) if error.is_stale() => last = error,
                // Writing the status was rejected too: only the log is left.
                Err(CallError::Permanent(reason)) => {
                    return Ok(ReconcileResult::Reported { rejection: Some(reason), changes_after: None });
                }
                result => return result,
            }
        }
        Err(last)
    }

    async fn try_reconcile(&self, namespace: &str, agent: &str) -> Result<ReconcileResult, CallError> {
        let agents = Objects::in_namespace(&self.client, AGENT, namespace);
        let Some(agent) = agents.get(agent).await? else { return Ok(ReconcileResult::NothingToDo) };
        if is_deleting(&agent) {
            return Ok(ReconcileResult::NothingToDo);
        }
        let mut observed = ObservedChildren::new();
        let rejection = match self.observe_and_act(&agent, &mut observed).await {
            Ok(rejection) => rejection,
            Err(CallError::Permanent(reason)) => Some(reason),
            Err(error) => return Err(error),
        };
        let changes_after = self.write_status(&agent, &observed, rejection.as_deref()).await?;
        Ok(ReconcileResult::Reported { rejection, changes_after })
    }

    /// Returns the reason why the children do not have their desired state.
    async fn observe_and_act(
        &self,
        agent: &Value,
        observed: &mut ObservedChildren,
    ) -> Result<Option<String>, CallError> {
        for child in CHILDREN {
            let live = self.children(child, agent).get(&child.name(agent)).await?;
            observed.extend(live.map(|live| (child, live)));
        }
        let references = read_references(&self.client, agent).await?;
        self.execute_plan(agent, &references, observed).await?;
        match references {
            References::Complete(_) => Ok(None),
            References::Missing(reason) => Ok(Some(reason)),
        }
    }

    fn children(&self, child: Child, agent: &Value) -> Objects {
        Objects::in_namespace(&self.client, child.kind(), text(agent, "/metadata/namespace"))
    }

    /// Executes the plan. The responses of the server become the observed state.
    async fn execute_plan(
        &self,
        agent: &Value,
        references: &References,
        observed: &mut ObservedChildren,
    ) -> Result<(), CallError> {
        let planned = plan(agent, references, observed, self.variant);
        for step in planned.steps {
            match step {
                Step::Create(child, object) => {
                    observed.insert(child, self.children(child, agent).create(&object).await?);
                }
                Step::Update(child, object) => {
                    observed.insert(child, self.children(child, agent).replace(&object).await?);
                }
                Step::Delete(child, object) => {
                    self.children(child, agent).delete(name(&object), Some(uid(&object))).await?;
                    observed.remove(&child);
                }
            }
        }
        match planned.obstacle {
            None => Ok(()),
            Some(Obstacle::Terminating(reason)) => Err(CallError::Transient(reason)),
            Some(Obstacle::Foreign(reason)) => Err(CallError::Permanent(reason)),
        }
    }

    /// Writes the status if it has changed, and returns the time until it changes by itself.
    async fn write_status(
        &self,
        agent: &Value,
        observed: &ObservedChildren,
        rejection: Option<&str>,
    ) -> Result<Option<Duration>, CallError> {
        let report = Report { agent, deployment: observed.get(&Child::Deployment), rejection, now: self.clock.now() };
        let (status, changes_after) = report.build(self.variant);
        if agent.get("status") != Some(&status) {
            let mut updated = agent.clone();
            updated["status"] = status;
            let agents = Objects::in_namespace(&self.client, AGENT, text(agent, "/metadata/namespace"));
            agents.replace_status(&updated).await?;
        }
        Ok(changes_after)
    }
}

impl std::fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler").field("variant", &self.variant).finish_non_exhaustive()
    }
}
