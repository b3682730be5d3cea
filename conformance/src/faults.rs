//! What goes wrong in the cluster of a story: on the simulated API server by its administrator's hand, on a real one by a
//! webhook, where the API server can ask this program.

use http::Method;
use serde_json::{Value, json};
use sindri_cluster::{Access, ProviderName};
use sindri_world::environment::{ClusterCall, StepError};
use sindri_world::scenario::ClusterFault;

use crate::api;
use crate::rewrite::Rewrite;
use crate::waiter::Waiter;
use crate::webhook::Webhook;

/// Where the simulated API server is told of faults.
const SIMULATED: &str = "/sindri/faults";

/// The faults of one cluster.
pub struct Faults {
    provider: ProviderName,
    present: Vec<Fault>,
}

enum Fault {
    /// The API server has it in itself.
    Simulated,
    /// This program answers for it.
    Served(Webhook),
}

impl Faults {
    /// None, in a cluster from there.
    pub fn none(provider: ProviderName) -> Self {
        Self { provider, present: Vec::new() }
    }

    /// Something begins to go wrong.
    pub fn add(&mut self, waiter: &Waiter, access: &Access, fault: &ClusterFault) -> Result<(), StepError> {
        let rewrite = Rewrite::of(fault)?;
        self.present.push(match self.provider {
            ProviderName::Sim => {
                tell(waiter, access, Method::POST, &rewrite.to_simulated())?;
                Fault::Simulated
            }
            ProviderName::Local => {
                Fault::Served(Webhook::register(waiter, access, rewrite).map_err(StepError::Failed)?)
            }
            // Their loopback interface is not the one of this program.
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

    /// Everything is well again.
    pub fn end(&mut self, waiter: &Waiter, access: &Access) -> Result<(), StepError> {
        self.present.drain(..).try_for_each(|fault| match fault {
            // All of them at once, which may be repeated.
            Fault::Simulated => tell(waiter, access, Method::DELETE, &json!({})),
            Fault::Served(webhook) => webhook.remove(waiter, access).map_err(StepError::Failed),
        })
    }
}

fn tell(waiter: &Waiter, access: &Access, method: Method, body: &Value) -> Result<(), StepError> {
    let body = body.to_string().into_bytes();
    let request = ClusterCall { method, target: SIMULATED.to_owned(), content_type: "application/json", body };
    api::carry_out(waiter, access, request).map(drop).map_err(StepError::Failed)
}
