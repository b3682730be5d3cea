//! A TCP proxy in front of PostgreSQL that can swallow data, as a frozen process or a broken network does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// The statement with which a transaction ends.
const COMMIT: &[u8] = b"COMMIT\0";

pub struct Proxy {
    /// URL of the database through the proxy.
    pub url: String,
    controls: Arc<Controls>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Controls {
    /// Connections of an earlier generation swallow everything.
    generation: AtomicU64,
    /// True if a connection that sends COMMIT freezes before it.
    freezes_before_commit: AtomicBool,
    frozen: Notify,
    /// Delay of the next COMMIT.
    commit_delay_micros: AtomicU64,
    /// Delay of each piece of data.
    delay_micros: AtomicU64,
}

/// One connection through the proxy.
struct ProxiedConnection {
    controls: Arc<Controls>,
    generation: u64,
    is_frozen: AtomicBool,
}

impl Proxy {
    pub async fn start(url: &str) -> Self {
        let (before, rest) = url.split_once("://").unwrap();
        let (authority, path) = rest.split_once('/').unwrap();
        let (user, server) = authority.rsplit_once('@').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap();
        let controls = Arc::new(Controls::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, server.to_owned(), controls.clone()));
        Self { url: format!("{before}://{user}@{own}/{path}"), controls, _tasks: tasks }
    }

    /// From now on a connection stops for good before it sends COMMIT, with its transaction open.
    pub fn freeze_before_commit(&self) {
        self.controls.freezes_before_commit.store(true, Ordering::SeqCst);
    }

    /// Delays the next COMMIT.
    pub fn delay_next_commit(&self, delay: Duration) {
        self.controls.commit_delay_micros.store(delay.as_micros() as u64, Ordering::SeqCst);
    }

    /// Completes when a connection has stopped before its COMMIT, or when the delay of a COMMIT has begun.
    pub async fn await_frozen(&self) {
        self.controls.frozen.notified().await;
    }

    /// Delays each piece of data in both directions, as a network does.
    pub fn delay(&self, delay: Duration) {
        self.controls.delay_micros.store(delay.as_micros() as u64, Ordering::SeqCst);
    }

    /// From now on the open connections swallow everything in both directions and stay open; new ones work.
    pub fn swallow_open_connections(&self) {
        self.controls.generation.fetch_add(1, Ordering::SeqCst);
    }
}

async fn accept(listener: TcpListener, server: String, controls: Arc<Controls>) {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(&server).await.unwrap();
        let generation = controls.generation.load(Ordering::SeqCst);
        let connection =
            Arc::new(ProxiedConnection { controls: controls.clone(), generation, is_frozen: AtomicBool::new(false) });
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        connections.spawn(connection.clone().pass(from_client, to_server));
        connections.spawn(connection.pass(from_server, to_client));
    }
}

impl ProxiedConnection {
    async fn pass(self: Arc<Self>, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = from.read(&mut buffer).await.unwrap_or(0);
            let data = &buffer[..read];
            match self.controls.delay_micros.load(Ordering::SeqCst) {
                0 => {}
                delay => tokio::time::sleep(Duration::from_micros(delay)).await,
            }
            let commits = data.windows(COMMIT.len()).any(|part| part == COMMIT);
            let delay = if commits { self.controls.commit_delay_micros.swap(0, Ordering::SeqCst) } else { 0 };
            if delay > 0 {
                self.controls.frozen.notify_one();
                tokio::time::sleep(Duration::from_micros(delay)).await;
            }
            if commits && self.controls.freezes_before_commit.load(Ordering::SeqCst) {
                self.is_frozen.store(true, Ordering::SeqCst);
                self.controls.frozen.notify_one();
            }
            match (self.swallows(), read) {
                // A frozen process does not close its connections.
                (true, 0) => std::future::pending().await,
                (true, _) => {}
                (false, 0) => return,
                (false, _) if to.write_all(data).await.is_err() => return,
                (false, _) => {}
            }
        }
    }

    fn swallows(&self) -> bool {
        self.is_frozen.load(Ordering::SeqCst) || self.generation < self.controls.generation.load(Ordering::SeqCst)
    }
}
