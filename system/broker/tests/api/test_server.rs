//! A broker on a real socket, and raw connections to it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use sindri_broker::{Broker, Limits, ServeOptions, SqliteStore, TrustedProxies, serve_with};
use sindri_model::{Entropy, Pak};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::support::{counting_entropy, fixed_clock};

/// Short enough for a test, long enough for a busy machine.
pub const SHORT: Duration = Duration::from_millis(200);
/// Timeout of a failing test.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

pub struct TestServer {
    pub address: SocketAddr,
    pub admin: String,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinSet<io::Result<()>>,
}

impl TestServer {
    pub async fn new(limits: Limits) -> Self {
        Self::with(ServeOptions { limits, ..ServeOptions::default() }).await
    }

    pub async fn with(options: ServeOptions) -> Self {
        Self::with_proxies(options, TrustedProxies::default()).await
    }

    pub async fn with_proxies(options: ServeOptions, proxies: TrustedProxies) -> Self {
        Self::start(SqliteStore::open(":memory:", None).unwrap(), options, proxies).await
    }

    /// Serves a broker over a store, which may have others.
    pub async fn on_store(store: SqliteStore) -> Self {
        Self::start(store, ServeOptions::default(), TrustedProxies::default()).await
    }

    async fn start(store: SqliteStore, options: ServeOptions, proxies: TrustedProxies) -> Self {
        let admin = Pak::generate(&Entropy::new(|bytes| bytes.fill(7)));
        let broker = Broker::start(store, fixed_clock(), counting_entropy()).await.unwrap();
        broker.create_admin_key(&admin).await.unwrap();
        let broker = broker.with_trusted_proxies(proxies);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let mut serving = JoinSet::new();
        serving.spawn(serve_with(listener, broker, options, async move { drop(stopped.await) }));
        Self { address, admin: admin.reveal(), stop: Some(stop), serving }
    }

    /// Starts the shutdown.
    pub fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits for the end of the shutdown.
    pub async fn await_shutdown(&mut self) {
        with_timeout(self.serving.join_next()).await.unwrap().unwrap().unwrap();
    }

    pub async fn connect(&self) -> RawConnection {
        RawConnection(TcpStream::connect(self.address).await.unwrap())
    }

    /// Sends a request on a new connection and returns status and body.
    pub async fn request(&self, request: &str) -> (u16, String) {
        let mut peer = self.connect().await;
        peer.send(request).await;
        peer.read_response().await
    }
}

pub async fn with_timeout<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, future).await.expect("the operation ends in time")
}

pub struct RawConnection(pub TcpStream);

impl RawConnection {
    pub async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads the next response and returns status and body.
    pub async fn read_response(&mut self) -> (u16, String) {
        let head = self.read_head().await;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        with_timeout(self.0.read_exact(&mut body)).await.unwrap();
        (status, String::from_utf8(body).unwrap())
    }

    pub async fn read_head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(with_timeout(self.0.read_u8()).await.expect("the connection was closed before a response"));
        }
        String::from_utf8(head).unwrap()
    }

    /// Waits until the broker has closed the connection without a further byte.
    pub async fn expect_close(&mut self) {
        let mut rest = Vec::new();
        match with_timeout(self.0.read_to_end(&mut rest)).await {
            Ok(_) => assert_eq!(String::from_utf8_lossy(&rest), ""),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
        }
    }
}

/// Returns the value of a header.
pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

pub fn error_code(body: &str) -> String {
    let problem: Value = serde_json::from_str(body).unwrap();
    problem["code"].as_str().unwrap().to_owned()
}

/// Returns a request without a body.
pub fn get(path: &str, key: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: b\r\nauthorization: {key}\r\n\r\n")
}

/// Returns the head of a request with a body.
pub fn post(path: &str, key: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: b\r\nauthorization: {key}\r\ncontent-length: {length}\r\n\r\n")
}
