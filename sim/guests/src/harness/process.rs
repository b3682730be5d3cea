//! Hosts of guests, and the dependencies that a guest receives each time it starts.

use std::future::Future;
use std::sync::Arc;

use http::Uri;
use http::header::{HeaderValue, USER_AGENT};
use kube::{Client, Config};
use sindri_agent::cluster::kube_client;
use sindri_model::{Clock, Entropy};
use sindri_world::engine::HostNetwork;
use sindri_world::{entropy_source, wall_time};

use super::journal::GUEST;
use super::world::{Guest, World};

/// Dependencies of a guest, for one start of its process.
pub struct Process {
    network: HostNetwork,
    name: String,
    /// The wall clock of the world.
    pub clock: Clock,
    /// Entropy, different for each process.
    pub entropy: Entropy,
}

impl Process {
    /// Returns a client of an API server over the simulated network.
    pub fn client(&self, api: &str) -> Client {
        let address: Uri = format!("http://{api}").parse().expect("names of hosts are valid");
        let mut config = Config::new(address);
        let user_agent = HeaderValue::try_from(format!("{GUEST}{}", self.name));
        config.headers.push((USER_AGENT, user_agent.expect("names of hosts are valid in a header")));
        kube_client(&config, self.network.connector()).expect("plain HTTP needs no files")
    }
}

impl World {
    /// Adds a host that runs a controller: it starts now, and again after each kill.
    pub fn add_guest<F, R>(&mut self, name: &str, program: F)
    where
        F: Fn(Process) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let entropy = entropy_source(self.seed, name);
        let (guest_name, start) = (name.to_owned(), Arc::new(program));
        let program = move |network| {
            let process =
                Process { network, name: guest_name.clone(), clock: Clock::new(wall_time), entropy: entropy() };
            let start = start.clone();
            let process_future = async move {
                // Called here, inside the host's runtime, because clients spawn tasks when they are created.
                start(process).await;
                // A controller that returns leaves an idle host.
                std::future::pending::<()>().await;
            };
            Box::pin(process_future) as std::pin::Pin<Box<dyn Future<Output = ()> + Send>>
        };
        let host = self.engine.add_host(name, Box::new(program));
        self.guests.insert(name.to_owned(), Guest { host, is_dead: false });
    }
}
