//! Faults of the clusters of a scenario: on the simulated API server by its own endpoint, on a real one by an admission webhook,
//! if the API server can reach this program.

use http::Method;
use serde_json::{Value, json};
use sindri_cluster::{Access, ProviderName};
use sindri_world::environment::{ClusterCall, StepError};
use sindri_world::scenario::ClusterFault;

use crate::cluster_api;
use crate::rewrite::Rewrite;
use crate::runtime::InterruptibleRuntime;
use crate::webhook::Webhook;

/// Endpoint of the simulated API server for faults.
const SIMULATED: &str = "/sindri/faults";

/// The faults of one cluster.
pub struct Faults {
    provider: ProviderName,
    present: Vec<Fault>,
}

enum Fault {
    /// Injected by the simulated API server.
    Simulated,
    /// Injected by a webhook of this program.
    Served(Webhook),
}

impl Faults {
    /// Creates an empty set for a cluster of this provider.
    pub fn none(provider: ProviderName) -> Self {
        Self { provider, present: Vec::new() }
    }

    /// Injects a fault.
    pub fn add(
        &mut self,
        runtime: &InterruptibleRuntime,
        access: &Access,
        fault: &ClusterFault,
    ) -> Result<(), StepError> {
        let rewrite = Rewrite::from_fault(fault)?;
        self.present.push(match self.provider {
            ProviderName::Sim => {
                send_to_simulated(runtime, access, Method::POST, &rewrite.to_simulated())?;
                Fault::Simulated
            }
            ProviderName::Local => {
                Fault::Served(Webhook::register(runtime, access, rewrite).map_err(StepError::Failed)?)
            }
            // They have a loopback interface of their own.
            ProviderName::Container | ProviderName::Kind => {
                return Err(StepError::UnsupportedByCluster(
                    "an API server that runs in a container does not reach a webhook of this program",
                ));
            }
            ProviderName::Kubeconfig => {
                return Err(StepError::UnsupportedByCluster(
                    "an API server that runs elsewhere does not reach a webhook of this program",
                ));
            }
        });
        Ok(())
    }

    /// Removes all faults.
    pub fn clear(&mut self, runtime: &InterruptibleRuntime, access: &Access) -> Result<(), StepError> {
        self.present.drain(..).try_for_each(|fault| match fault {
            // Removes all of them at once; repeating it is harmless.
            Fault::Simulated => send_to_simulated(runtime, access, Method::DELETE, &json!({})),
            Fault::Served(webhook) => webhook.remove(runtime, access).map_err(StepError::Failed),
        })
    }
}

fn send_to_simulated(
    runtime: &InterruptibleRuntime,
    access: &Access,
    method: Method,
    body: &Value,
) -> Result<(), StepError> {
    let body = body.to_string().into_bytes();
    let request = ClusterCall { method, target: SIMULATED.to_owned(), content_type: "application/json", body };
    cluster_api::send_expecting_success(runtime, access, request).map(drop).map_err(StepError::Failed)
}
