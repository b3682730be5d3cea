//! The host of one process of a production agent.

use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Uri};
use kube::client::Body;
use sindri_agent::cluster::{Cluster, UNACKNOWLEDGED_MAX, sender};
use sindri_agent::{Agent, Limits, RetryPolicy, Settings};
use sindri_client::Client;
use sindri_model::Clock;
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;

use super::broker_connector::BrokerConnector;
use crate::engine::Program;
use crate::http_faults::FaultInjector;
use crate::rng::entropy_source;
use crate::wall_clock::wall_time;

/// Key with which an agent authenticates to the broker; may be replaced while its host exists.
#[derive(Clone)]
pub struct AgentKey(Arc<Mutex<String>>);

impl AgentKey {
    /// Creates a key.
    pub fn new(key: String) -> Self {
        Self(Arc::new(Mutex::new(key)))
    }

    /// Replaces the key, from the next start of a process on.
    pub fn set(&self, key: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = key;
    }

    fn get(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Configuration of a process of an agent.
#[derive(Clone)]
pub struct AgentSetup {
    /// Settings of the agent.
    pub settings: Settings,
    /// Its key.
    pub key: AgentKey,
    /// Number of brokers.
    pub brokers: usize,
    /// Time by which its clock is ahead.
    pub clocks_ahead: Duration,
    /// Limits of its work.
    pub limits: Limits,
    /// Faults of its requests to the API server.
    pub faults: Arc<FaultInjector>,
}

/// Returns the program of a production agent; `identity` is the name of this process of it.
pub fn agent(seed: u64, identity: &str, setup: AgentSetup) -> Program {
    let entropy = entropy_source(seed, identity);
    let identity = identity.to_owned();
    Box::new(move |network| {
        let (entropy, identity, key) = (entropy(), identity.clone(), setup.key.get());
        let AgentSetup { settings, brokers, clocks_ahead, limits, faults, .. } = setup.clone();
        let name = settings.name.clone();
        Box::pin(async move {
            let api: Uri = format!("http://{name}-api").parse().expect("names of hosts are valid");
            let connector = network.connector().with_stall_max(UNACKNOWLEDGED_MAX);
            let sender = sender(&kube::Config::new(api), connector.clone()).expect("plain HTTP needs no files");
            let sender = BoxCloneSyncService::new(sender.map_request(move |request: Request<Body>| {
                faults.panic_if_planned(request.method(), request.uri());
                request
            }));
            let broker = Uri::from_static("http://broker");
            let agent = Agent {
                broker: Client::new(BrokerConnector::new(connector, brokers, name.len()), broker, &key)
                    .expect("the address and the key are well formed"),
                cluster: Cluster::new(sender, RetryPolicy::default())
                    .with_namespace_scope(settings.namespace.clone())
                    .with_reserved_namespaces(settings.reserved_namespaces.clone())
                    .with_limits(limits),
                clock: Clock::new(move || wall_time() + clocks_ahead),
                entropy,
                identity,
                settings,
                metrics: Arc::default(),
                readiness: Arc::default(),
            };
            if let Err(error) = agent.run(pending()).await {
                tracing::error!("the agent ended: {error}");
            }
            pending::<()>().await;
        })
    })
}
