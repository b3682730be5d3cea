//! The programs of the hosts: the production broker and agent with a virtual clock, network, disk and entropy
//! handed in, the simulated API server, and the operator.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use sindri_agent::cluster::{Cluster, kube_client};
use sindri_agent::{Agent, RetryPolicy, Settings};
use sindri_apiserver::SharedServer;
use sindri_broker::{Broker, SqliteStore};
use sindri_client::Client;
use sindri_model::{Clock, Entropy, Pak};
use tokio::sync::{Mutex, mpsc};

use crate::dice::Dice;
use crate::disk;
use crate::engine::Program;
use crate::gate::Gate;
use crate::shim;
use crate::stage::Job;

const PORT: u16 = 80;

/// The wall time of this thread's world.
pub fn wall_time() -> Timestamp {
    let nanos = i128::from(shim::EPOCH_SECONDS) * 1_000_000_000 + i128::from(shim::now());
    Timestamp::from_nanosecond(nanos).expect("a run ends long before the calendar does")
}

/// Fresh entropy for each process of a host.
fn entropy_source(seed: u64, host: &str) -> impl Fn() -> Entropy + use<> {
    let (host, started) = (host.to_owned(), AtomicU64::new(0));
    move || {
        let process = started.fetch_add(1, Ordering::Relaxed);
        Dice::new(seed, &format!("entropy {host} {process}")).into_entropy()
    }
}

/// The production broker over a database on the simulated disk.
pub fn broker(seed: u64, admin: Pak) -> Program {
    let entropy = entropy_source(seed, "broker");
    Box::new(move |port| {
        let (entropy, admin) = (entropy(), admin.clone());
        Box::pin(async move {
            let store = SqliteStore::open("broker.db", Some(disk::VFS_NAME)).expect("the simulated disk works");
            let started = Broker::start(store, Clock::new(wall_time), entropy).await;
            let broker = started.expect("the simulated disk works");
            broker.initialise(&admin).await.expect("the simulated disk works");
            let listener = port.listen(PORT).await.expect("one process per host listens");
            sindri_broker::serve(listener, broker, pending()).await.expect("the listener never fails");
        })
    })
}

/// A simulated API server; its state outlives its process, as etcd's would.
pub fn api_server(server: SharedServer, gate: Arc<Gate>) -> Program {
    Box::new(move |port| {
        let (server, gate) = (server.clone(), gate.clone());
        Box::pin(async move {
            let listener = port.listen(PORT).await.expect("one process per host listens");
            sindri_apiserver::serve(listener, server, Arc::new(wall_time), gate, pending()).await;
        })
    })
}

/// The production agent.
pub fn agent(seed: u64, name: &str, key: String, polling_interval: Duration) -> Program {
    let entropy = entropy_source(seed, name);
    let name = name.to_owned();
    Box::new(move |port| {
        let (entropy, name, key) = (entropy(), name.clone(), key.clone());
        Box::pin(async move {
            let api: http::Uri = format!("http://{name}-api").parse().expect("names of hosts are valid");
            let client = kube_client(&kube::Config::new(api), port.connector()).expect("plain HTTP needs no files");
            let broker = http::Uri::from_static("http://broker");
            let agent = Agent {
                broker: Client::new(port.connector(), broker, &key).expect("the address and the key are well formed"),
                cluster: Cluster::new(client, RetryPolicy::default()),
                entropy,
                settings: Settings { name: name.clone(), cluster_name: name, polling_interval },
            };
            if let Err(error) = agent.run(pending()).await {
                tracing::error!("the agent ended: {error}");
            }
            pending::<()>().await;
        })
    })
}

/// Someone who calls the broker's API when the story says so.
pub fn operator(key: String, queue: mpsc::Receiver<Job>) -> Program {
    let queue = Arc::new(Mutex::new(queue));
    Box::new(move |port| {
        let (queue, key) = (queue.clone(), key.clone());
        Box::pin(async move {
            let broker = http::Uri::from_static("http://broker");
            let client = Client::new(port.connector(), broker, &key).expect("the address and the key are well formed");
            let mut queue = queue.lock().await;
            while let Some(job) = queue.recv().await {
                job(client.clone()).await;
            }
        })
    })
}
