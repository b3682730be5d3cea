//! A broker and a cluster to run agents against, and the agent's binary.

use std::io;
use std::net::SocketAddr;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use sindri_agent::cluster::{Cluster, sender};
use sindri_agent::{Agent, RetryPolicy, Settings};
use sindri_apiserver::{ApiServer, OpenGate, SharedServer, Timestamp};
use sindri_broker::{Broker, ServeOptions, SqliteStore, Tls, serve_with};
use sindri_client::Client;
use sindri_model::wire::{AgentStatus, CreateAgentRequest, NewGenerator, NewStack, UpdateAgentRequest};
use sindri_model::{AgentId, Clock, Entropy, GeneratorId, Pak, StackId};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Bundle with one object.
pub const BUNDLE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {x: '1'}\n";
/// Time limit, which a passing test never reaches.
const TIME_MAX: Duration = Duration::from_secs(30);

/// Returns a command that runs the binary in an empty environment.
pub fn agent() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sindri-agent"));
    command.env_clear();
    command
}

/// Returns the only line of the error output of a process that failed.
pub fn error_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text.trim_end().to_owned()
}

pub async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIME_MAX, future).await.expect("it ends")
}

/// Returns different bytes at each call, the same in each run.
pub fn counting_entropy() -> Entropy {
    let calls = Arc::new(AtomicU64::new(1));
    Entropy::new(move |bytes| {
        let mut state = calls.fetch_add(1, Ordering::SeqCst).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for byte in bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 56) as u8;
        }
    })
}

pub fn noon() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

/// Opens a listener on a free port. Connections wait until it is served.
pub async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Administrator's key of every broker in these tests.
pub fn admin() -> Pak {
    Pak::generate(&Entropy::new(|bytes| bytes.fill(7)))
}

/// Starts a broker that has only its administrator.
pub async fn broker() -> Broker {
    let store = SqliteStore::open(":memory:", None).unwrap();
    let broker = Broker::start(store, Clock::new(noon), counting_entropy()).await.unwrap();
    broker.create_admin_key(&admin()).await.unwrap();
    broker
}

/// Serves a broker until the result is dropped.
pub fn serve(broker: &Broker, listener: TcpListener, tls: Option<Tls>) -> JoinSet<io::Result<()>> {
    let mut serving = JoinSet::new();
    let options = ServeOptions { tls, ..ServeOptions::default() };
    serving.spawn(serve_with(listener, broker.clone(), options, std::future::pending()));
    serving
}

/// Serves a simulated cluster until the result is dropped.
pub fn cluster(listener: TcpListener) -> JoinSet<()> {
    let server = SharedServer::new(ApiServer::new(1, noon()));
    let mut serving = JoinSet::new();
    serving.spawn(sindri_apiserver::serve(
        listener,
        server,
        Arc::new(noon),
        Arc::new(OpenGate),
        std::future::pending(),
    ));
    serving
}

/// Returns a client of a broker without TLS.
pub fn client(address: SocketAddr, key: &str) -> Client {
    Client::new(HttpConnector::new(), format!("http://{address}").parse().unwrap(), key).unwrap()
}

/// Returns an agent that runs in this process; it is called east.
pub fn agent_of(broker: SocketAddr, api: SocketAddr, key: &str, polling_interval: Duration) -> Agent {
    let config = kube::Config::new(format!("http://{api}").parse().unwrap());
    let metrics = Arc::default();
    let cluster = Cluster::new(sender(&config, HttpConnector::new()).unwrap(), RetryPolicy::default());
    Agent {
        broker: client(broker, key),
        cluster: cluster.with_metrics(Arc::clone(&metrics)),
        clock: Clock::new(noon),
        entropy: counting_entropy(),
        identity: "east".to_owned(),
        settings: Settings { polling_interval, ..Settings::new("east".to_owned(), "demo".to_owned()) },
        metrics,
        readiness: Arc::default(),
    }
}

/// Creates an active agent and a stack with one object for it; returns the agent's key and the stack.
pub async fn declare(admin: &Client) -> (String, StackId) {
    let generator = admin
        .create_generator(&NewGenerator { name: "g".to_owned(), description: None, key_expires_at: None })
        .await
        .unwrap();
    let generator_id = generator.generator.id;
    let (agent, key) = create_agent(admin, "east", Some(vec![generator_id])).await;
    let stack = NewStack { name: "web".to_owned(), description: None, generator_id };
    let stack = admin.create_stack(&stack).await.unwrap();
    admin.submit_revision(stack.id, BUNDLE).await.unwrap();
    admin.add_target(agent, stack.id).await.unwrap();
    (key, stack.id)
}

/// Creates an active agent; returns its id and key.
pub async fn create_agent(admin: &Client, name: &str, generator_ids: Option<Vec<GeneratorId>>) -> (AgentId, String) {
    let (name, cluster_name) = (name.to_owned(), "demo".to_owned());
    let request = CreateAgentRequest { name, cluster_name, generator_ids, key_expires_at: None };
    let made = admin.create_agent(&request).await.unwrap();
    let active = UpdateAgentRequest { name: None, cluster_name: None, status: Some(AgentStatus::Active) };
    admin.update_agent(made.agent.id, &active).await.unwrap();
    (made.agent.id, made.initial_pak)
}
