//! What a measurement does: declares stacks at the broker, asks the cluster, and looks at what the agent counts.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use http::{Method, Request};
use serde_json::Value;
use sindri_client::Client;
use sindri_model::wire::{EventStatus, NewStack};
use sindri_model::{AgentId, GeneratorId, RevisionId, StackId};

use crate::counts::Counts;
use crate::page::metrics;

/// How often the agent or the broker is looked at: nothing is timed by it, and it must cost them little.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";

/// Clients of everything that runs.
pub struct Hands {
    /// The broker, as its administrator.
    pub broker: Client,
    /// The cluster, with the rights of the agent.
    pub cluster: kube::Client,
    /// The cluster, as someone else.
    pub someone: kube::Client,
    /// Who the agent is.
    pub agent: AgentId,
    /// Whose stacks it gets.
    pub generator: GeneratorId,
    /// Where the agent answers.
    pub probes: String,
    /// Where the broker answers.
    pub broker_address: String,
}

impl Hands {
    /// A new stack for the agent, with its first revision.
    pub async fn declare(&self, name: &str, bundle: &str) -> Result<(StackId, RevisionId), String> {
        let stack = self.stack(name).await?;
        self.broker.add_target(self.agent, stack).await.map_err(words)?;
        Ok((stack, self.submit(stack, bundle).await?))
    }

    /// A new stack for nobody.
    pub async fn stack(&self, name: &str) -> Result<StackId, String> {
        let stack = NewStack { name: name.to_owned(), description: None, generator_id: self.generator };
        Ok(self.broker.create_stack(&stack).await.map_err(words)?.id)
    }

    /// A further revision.
    pub async fn submit(&self, stack: StackId, bundle: &str) -> Result<RevisionId, String> {
        self.broker.submit(stack, bundle).await.map(|revision| revision.id).map_err(words)
    }

    /// Deletes the only stack, and waits until nothing is wanted of the agent any more.
    pub async fn remove(&self, stack: StackId) -> Result<(), String> {
        self.broker.delete_stack(stack).await.map_err(words)?;
        while self.counts().await?.stacks() > 0 {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Waits until the agent has told that it applied all of these.
    pub async fn until_applied(&self, revisions: &[RevisionId]) -> Result<(), String> {
        loop {
            let outcomes = self.broker.outcomes(self.agent).await.map_err(words)?;
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
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// How long it took the agent to apply a revision: from when the broker took it in to when it knew, by its own clock.
    pub async fn time_to_apply(&self, revision: RevisionId) -> Result<Duration, String> {
        self.until_applied(&[revision]).await?;
        let outcomes = self.broker.outcomes(self.agent).await.map_err(words)?;
        let outcome = outcomes.iter().find(|outcome| outcome.deployment_object_id == revision);
        let applied = outcome.ok_or("an outcome is gone again")?.created_at;
        let submitted = self.broker.revision(revision).await.map_err(words)?.created_at;
        Duration::try_from(applied.duration_since(submitted)).map_err(words)
    }

    /// Waits until the agent has polled so many times more, each without anything new.
    pub async fn until_polled(&self, times: u64) -> Result<Counts, String> {
        let before = self.counts().await?.idle_polls();
        loop {
            let counts = self.counts().await?;
            if counts.idle_polls() >= before + times {
                return Ok(counts);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// What the agent has counted so far.
    pub async fn counts(&self) -> Result<Counts, String> {
        Ok(Counts::new(&metrics(&self.probes).await?))
    }

    /// What the broker has counted so far.
    pub async fn broker_counts(&self) -> Result<Counts, String> {
        Ok(Counts::new(&metrics(&self.broker_address).await?))
    }
}

/// Server-side apply.
pub async fn apply(client: &kube::Client, path: &str, query: &str, object: &impl Display) -> Result<Value, String> {
    let target = format!("{path}?fieldManager=bare&force=true{query}");
    ask(client, Method::PATCH, &target, APPLY, object.to_string()).await
}

/// Makes an object.
pub async fn create(client: &kube::Client, path: &str, object: &Value) -> Result<Value, String> {
    ask(client, Method::POST, path, JSON, object.to_string()).await
}

/// Deletes an object.
pub async fn delete(client: &kube::Client, path: &str) -> Result<Value, String> {
    ask(client, Method::DELETE, path, JSON, String::new()).await
}

/// Reads an object; nothing if it is not there.
pub async fn read(client: &kube::Client, path: &str) -> Result<Option<Value>, String> {
    let request = Request::get(path).body(Vec::new()).map_err(words)?;
    match client.request::<Value>(request).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(format!("GET {path}: {error}")),
    }
}

async fn ask(client: &kube::Client, method: Method, path: &str, kind: &str, body: String) -> Result<Value, String> {
    let what = format!("{method} {path}");
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.body(body.into_bytes()).map_err(words)?;
    client.request::<Value>(request).await.map_err(|error| format!("{what}: {error}"))
}

/// Does all of it, so much at once; the first error ends it.
pub async fn all<F: Future<Output = Result<Value, String>>>(
    number: usize,
    work: impl Iterator<Item = F>,
) -> Result<(), String> {
    stream::iter(work).buffer_unordered(number).try_for_each(async |_| Ok(())).await
}

/// An error as it is told.
pub fn words(error: impl Display) -> String {
    error.to_string()
}
