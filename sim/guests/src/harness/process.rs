//! A guest's machine: what its program is handed each time it starts.

use std::future::Future;
use std::sync::Arc;

use http::Uri;
use http::header::{HeaderValue, USER_AGENT};
use kube::{Client, Config};
use sindri_agent::cluster::kube_client;
use sindri_model::{Clock, Entropy};
use sindri_world::engine::HostNetwork;
use sindri_world::{entropy_source, wall_time};

use super::{GUEST, Guest, World};

/// What a program is handed.
pub struct Process {
    port: HostNetwork,
    name: String,
    /// The wall clock of the world.
    pub clock: Clock,
    /// Fresh for each process.
    pub entropy: Entropy,
}

impl Process {
    /// A client of an API server, over the simulated network.
    pub fn client(&self, api: &str) -> Client {
        let address: Uri = format!("http://{api}").parse().expect("names of hosts are valid");
        let mut config = Config::new(address);
        let introduction = HeaderValue::try_from(format!("{GUEST}{}", self.name));
        config.headers.push((USER_AGENT, introduction.expect("names of hosts are valid in a header")));
        kube_client(&config, self.port.connector()).expect("plain HTTP needs no files")
    }
}

impl World {
    /// Adds a machine whose program is begun now, and again after each kill.
    pub fn add_guest<F, R>(&mut self, name: &str, program: F)
    where
        F: Fn(Process) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let entropy = entropy_source(self.seed, name);
        let (called, begin) = (name.to_owned(), Arc::new(program));
        let program = move |port| {
            let process = Process { port, name: called.clone(), clock: Clock::new(wall_time), entropy: entropy() };
            let begin = begin.clone();
            let staying = async move {
                // Begun in here, where the machine's runtime is: clients start tasks when they are made.
                begin(process).await;
                // What ends by itself leaves an idle machine behind.
                std::future::pending::<()>().await;
            };
            Box::pin(staying) as std::pin::Pin<Box<dyn Future<Output = ()> + Send>>
        };
        let host = self.engine.add_host(name, Box::new(program));
        self.guests.insert(name.to_owned(), Guest { host, is_dead: false });
    }
}
