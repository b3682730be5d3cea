//! The programs of the hosts: the production broker and agent with a virtual clock, network, disk and entropy
//! handed in, the simulated API server, and the operator.

use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use jiff::Timestamp;
use sindri_agent::cluster::{Cluster, sender};
use sindri_agent::{Agent, RetryPolicy, Settings};
use sindri_apiserver::SharedServer;
use sindri_broker::{Broker, SqliteStore};
use sindri_client::Client;
use sindri_model::{Clock, Entropy, Pak};
use tokio::sync::{Mutex, mpsc};
use tower_service::Service;

use crate::dice::Dice;
use crate::disk;
use crate::engine::{Connector, Program};
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
pub fn entropy_source(seed: u64, host: &str) -> impl Fn() -> Entropy + use<> {
    let (host, started) = (host.to_owned(), AtomicU64::new(0));
    move || {
        let process = started.fetch_add(1, Ordering::Relaxed);
        Dice::new(seed, &format!("entropy {host} {process}")).into_entropy()
    }
}

/// What becomes of a broker's database besides being used.
#[derive(Clone, Default)]
pub struct Database {
    /// It does not answer.
    pub is_stalled: Arc<AtomicBool>,
    /// It was restored, and the operator says so at the next start.
    pub is_declared_restored: Arc<AtomicBool>,
    /// One server for several brokers, which outlives them; without it a broker opens its own file.
    pub shared: Option<Arc<SqliteStore>>,
}

/// How often a call that waits for a stalled database looks again.
const STALL_LOOK: Duration = Duration::from_millis(100);

impl Database {
    /// A database for several brokers at once.
    pub fn shared() -> Self {
        Self { shared: Some(Arc::new(open_file())), ..Self::default() }
    }

    fn open(&self) -> SqliteStore {
        let store = self.shared.as_ref().map_or_else(open_file, |shared| shared.replica());
        let is_stalled = self.is_stalled.clone();
        store.gated(Arc::new(move || {
            let is_stalled = is_stalled.clone();
            Box::pin(async move {
                while is_stalled.load(Ordering::Relaxed) {
                    tokio::time::sleep(STALL_LOOK).await;
                }
            })
        }))
    }
}

fn open_file() -> SqliteStore {
    SqliteStore::open("broker.db", Some(disk::VFS_NAME)).expect("the simulated disk works")
}

/// The production broker over a database on the simulated disk.
pub fn broker(seed: u64, name: &str, admin: Pak, database: Database) -> Program {
    let entropy = entropy_source(seed, name);
    Box::new(move |port| {
        let (entropy, admin, database) = (entropy(), admin.clone(), database.clone());
        Box::pin(async move {
            let started = Broker::start(database.open(), Clock::new(wall_time), entropy).await;
            let broker = started.expect("the simulated disk works");
            broker.initialise(&admin).await.expect("the simulated disk works");
            if database.is_declared_restored.swap(false, Ordering::Relaxed) {
                broker.restored("the operator said so".to_owned()).await.expect("the simulated disk works");
            }
            let listener = port.listen(PORT).await.expect("one process per host listens");
            sindri_broker::serve(listener, broker, pending()).await.expect("the listener never fails");
        })
    })
}

/// The name of the n-th broker, from 0.
pub fn broker_name(index: usize) -> String {
    if index == 0 { "broker".to_owned() } else { format!("broker-{}", index + 1) }
}

/// The brokers as their clients see them: each connection goes to the next one that answers.
#[derive(Clone)]
pub struct Brokers {
    connector: Connector,
    count: usize,
    next: Arc<AtomicUsize>,
}

/// How long a client waits for one broker before it tries the next.
const CONNECT_MAX: Duration = Duration::from_secs(3);

impl Brokers {
    fn new(connector: Connector, count: usize, first: usize) -> Self {
        Self { connector, count, next: Arc::new(AtomicUsize::new(first)) }
    }
}

impl Service<Uri> for Brokers {
    type Response = <Connector as Service<Uri>>::Response;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        if self.count == 1 {
            return Box::pin(self.connector.call(uri));
        }
        let mut this = self.clone();
        Box::pin(async move {
            let mut last = io::Error::from(io::ErrorKind::TimedOut);
            for _ in 0..this.count {
                let index = this.next.fetch_add(1, Ordering::Relaxed) % this.count;
                let uri = format!("http://{}", broker_name(index)).parse().expect("names of hosts are valid");
                match tokio::time::timeout(CONNECT_MAX, this.connector.call(uri)).await {
                    Ok(Ok(stream)) => return Ok(stream),
                    Ok(Err(error)) => last = error,
                    Err(_) => {}
                }
            }
            Err(last)
        })
    }
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

/// The name of the n-th process of an agent, from 0.
pub fn replica_name(agent: &str, index: usize) -> String {
    if index == 0 { agent.to_owned() } else { format!("{agent}-{}", index + 1) }
}

/// The key of an agent, which may become another while its host goes on.
#[derive(Clone)]
pub struct AgentKey(Arc<std::sync::Mutex<String>>);

impl AgentKey {
    /// This key.
    pub fn new(key: String) -> Self {
        Self(Arc::new(std::sync::Mutex::new(key)))
    }

    /// From the next start of a process on.
    pub fn set(&self, key: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = key;
    }

    fn get(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a process of an agent is started with.
#[derive(Clone)]
pub struct AgentSetup {
    /// Its settings.
    pub settings: Settings,
    /// The key that it shows to the broker.
    pub key: AgentKey,
    /// How many brokers there are.
    pub brokers: usize,
    /// By how much its clock is ahead.
    pub clocks_ahead: Duration,
}

/// The production agent; `identity` is the name of this process of it.
pub fn agent(seed: u64, identity: &str, setup: AgentSetup) -> Program {
    let entropy = entropy_source(seed, identity);
    let identity = identity.to_owned();
    Box::new(move |port| {
        let (entropy, identity, key) = (entropy(), identity.clone(), setup.key.get());
        let AgentSetup { settings, brokers, clocks_ahead, .. } = setup.clone();
        let name = settings.name.clone();
        Box::pin(async move {
            let api: http::Uri = format!("http://{name}-api").parse().expect("names of hosts are valid");
            let sender = sender(&kube::Config::new(api), port.connector()).expect("plain HTTP needs no files");
            let broker = http::Uri::from_static("http://broker");
            let agent = Agent {
                broker: Client::new(Brokers::new(port.connector(), brokers, name.len()), broker, &key)
                    .expect("the address and the key are well formed"),
                cluster: Cluster::new(sender, RetryPolicy::default()).within(settings.namespace.clone()),
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

/// Someone who calls the broker's API when the story says so.
pub fn operator(key: String, queue: mpsc::Receiver<Job>, brokers: usize) -> Program {
    let queue = Arc::new(Mutex::new(queue));
    Box::new(move |port| {
        let (queue, key) = (queue.clone(), key.clone());
        Box::pin(async move {
            let broker = http::Uri::from_static("http://broker");
            let connector = Brokers::new(port.connector(), brokers, brokers - 1);
            let client = Client::new(connector, broker, &key).expect("the address and the key are well formed");
            let mut queue = queue.lock().await;
            while let Some(job) = queue.recv().await {
                job(client.clone()).await;
            }
        })
    })
}
