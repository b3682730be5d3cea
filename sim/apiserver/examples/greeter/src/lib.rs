//! A small controller written with kube: each Greeting gets a ConfigMap with its words.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, Patch, PatchParams};
use kube::runtime::Controller;
use kube::runtime::controller::Action;
use kube::runtime::watcher;
use kube::{Api, Client, CustomResource, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Interval at which a greeting is reconciled without any event.
pub const RECONCILE_INTERVAL: Duration = Duration::from_secs(300);
/// Delay before the retry after a failure.
pub const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Desired state of a greeting.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
pub struct GreetingSpec {
    /// Name of the greeted person.
    pub whom: String,
}

/// Error of one reconciliation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request to the API server failed.
    #[error(transparent)]
    Cluster(#[from] kube::Error),
}

/// Reconciles the greetings of a namespace, forever.
pub async fn run(client: Client, namespace: &str) {
    let greetings: Api<Greeting> = Api::namespaced(client.clone(), namespace);
    let words: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    Controller::new(greetings, watcher::Config::default())
        .owns(words, watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(RETRY_DELAY), Arc::new(client))
        .for_each(|_| std::future::ready(()))
        .await;
}

async fn reconcile(greeting: Arc<Greeting>, client: Arc<Client>) -> Result<Action, Error> {
    let (name, namespace) = (greeting.name_any(), greeting.namespace().unwrap_or_default());
    let words = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            owner_references: greeting.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("words".to_owned(), format!("Hello, {}!", greeting.spec.whom))])),
        ..ConfigMap::default()
    };
    let api: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    api.patch(&name, &PatchParams::apply("greeter").force(), &Patch::Apply(&words)).await?;
    Ok(Action::requeue(RECONCILE_INTERVAL))
}
