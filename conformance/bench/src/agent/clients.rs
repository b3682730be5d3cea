//! Clients of the broker, the cluster and the agent's metrics that a benchmark uses.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use http::{Method, Request};
use serde_json::Value;
use sindri_client::Client;
use sindri_conformance::metrics::Counters;
use sindri_model::wire::{EventStatus, NewStack};
use sindri_model::{AgentId, GeneratorId, RevisionId, StackId};

/// Time between two reads of the agent's or the broker's state. No time is measured with it, and it must cost them little.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";

/// Clients of all running processes of a benchmark.
pub struct Clients {
    /// The broker, as its administrator.
    pub broker: Client,
    /// The cluster, with the permissions of the agent.
    pub cluster: kube::Client,
    /// The cluster, as its administrator.
    pub administrator: kube::Client,
    /// Id of the agent.
    pub agent: AgentId,
    /// Generator of the stacks.
    pub generator: GeneratorId,
    /// `HOST:PORT` of the agent's metrics.
    pub agent_address: String,
    /// `HOST:PORT` of the broker.
    pub broker_address: String,
}

impl Clients {
    /// Creates a stack with its first revision, targeted at the agent.
    pub async fn declare(&self, name: &str, bundle: &str) -> Result<(StackId, RevisionId), String> {
        let stack = NewStack { name: name.to_owned(), description: None, generator_id: self.generator };
        let stack = self.broker.create_stack(&stack).await.map_err(to_message)?.id;
        self.broker.add_target(self.agent, stack).await.map_err(to_message)?;
        Ok((stack, self.submit(stack, bundle).await?))
    }

    /// Submits a revision.
    pub async fn submit(&self, stack: StackId, bundle: &str) -> Result<RevisionId, String> {
        self.broker.submit_revision(stack, bundle).await.map(|revision| revision.id).map_err(to_message)
    }

    /// Deletes the only stack, and waits until the agent has no stack any more.
    pub async fn remove(&self, stack: StackId) -> Result<(), String> {
        self.broker.delete_stack(stack).await.map_err(to_message)?;
        while self.agent_counts().await?.stacks() > 0 {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
        Ok(())
    }

    /// Waits until the agent has reported that it applied all of these revisions.
    pub async fn wait_until_applied(&self, revisions: &[RevisionId]) -> Result<(), String> {
        loop {
            let outcomes = self.broker.list_outcomes(self.agent).await.map_err(to_message)?;
            let mut applied = BTreeSet::new();
            for outcome in outcomes.iter().filter(|outcome| revisions.contains(&outcome.deployment_object_id)) {
                match outcome.status {
                    EventStatus::Success => applied.insert(outcome.deployment_object_id),
                    EventStatus::Failure | EventStatus::Other(_) => {
                        return Err(format!("a stack was not applied: {:?}", outcome.message));
                    }
                };
            }
            if applied.len() == revisions.len() {
                return Ok(());
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Waits until a revision is applied. Returns the time from its submission to its outcome, both by the broker's clock.
    pub async fn time_to_apply(&self, revision: RevisionId) -> Result<Duration, String> {
        self.wait_until_applied(&[revision]).await?;
        let outcomes = self.broker.list_outcomes(self.agent).await.map_err(to_message)?;
        let outcome = outcomes.iter().find(|outcome| outcome.deployment_object_id == revision);
        let applied = outcome.ok_or("the broker no longer returns the outcome")?.created_at;
        let submitted = self.broker.get_revision(revision).await.map_err(to_message)?.created_at;
        Duration::try_from(applied.duration_since(submitted)).map_err(to_message)
    }

    /// Waits until the agent has made this number of further polls that returned nothing new. Returns its counters after the last.
    pub async fn wait_for_idle_polls(&self, polls: u64) -> Result<Counters, String> {
        let before = self.agent_counts().await?.idle_polls();
        loop {
            let counts = self.agent_counts().await?;
            if counts.idle_polls() >= before + polls {
                return Ok(counts);
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Reads the agent's counters.
    pub async fn agent_counts(&self) -> Result<Counters, String> {
        Counters::fetch(&self.agent_address).await
    }

    /// Reads the broker's counters.
    pub async fn broker_counts(&self) -> Result<Counters, String> {
        Counters::fetch(&self.broker_address).await
    }
}

/// Sends a server-side apply.
pub async fn apply(client: &kube::Client, path: &str, query: &str, object: &impl Display) -> Result<Value, String> {
    let target = format!("{path}?fieldManager=bare&force=true{query}");
    send(client, Method::PATCH, &target, APPLY, object.to_string()).await
}

/// Creates an object.
pub async fn create(client: &kube::Client, path: &str, object: &Value) -> Result<Value, String> {
    send(client, Method::POST, path, JSON, object.to_string()).await
}

/// Deletes an object.
pub async fn delete(client: &kube::Client, path: &str) -> Result<Value, String> {
    send(client, Method::DELETE, path, JSON, String::new()).await
}

/// Reads an object; `None` if it does not exist.
pub async fn read(client: &kube::Client, path: &str) -> Result<Option<Value>, String> {
    let request = Request::get(path).body(Vec::new()).map_err(to_message)?;
    match client.request::<Value>(request).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(format!("GET {path}: {error}")),
    }
}

async fn send(
    client: &kube::Client,
    method: Method,
    path: &str,
    content_type: &str,
    body: String,
) -> Result<Value, String> {
    let description = format!("{method} {path}");
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    let request = request.body(body.into_bytes()).map_err(to_message)?;
    client.request::<Value>(request).await.map_err(|error| format!("{description}: {error}"))
}

/// Awaits all futures, at most `concurrency` at a time. The first error ends it.
pub async fn run_all<F: Future<Output = Result<Value, String>>>(
    concurrency: usize,
    work: impl Iterator<Item = F>,
) -> Result<(), String> {
    stream::iter(work).buffer_unordered(concurrency).try_for_each(async |_| Ok(())).await
}

/// Formats an error.
pub fn to_message(error: impl Display) -> String {
    error.to_string()
}
