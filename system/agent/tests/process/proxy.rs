//! Polls behind a proxy that changes requests and responses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::JoinSet;

use crate::support::{admin, agent_of, broker, client, cluster, declare, in_time, listener, serve};

const INTERVAL: Duration = Duration::from_millis(250);
/// Time in which polls are counted: eight intervals.
const COUNTED: Duration = Duration::from_secs(2);
/// Most polls in that time. The first response may be followed by another poll at once, and so may a changed ETag.
const POLLS_MAX: usize = 12;

/// Change that a proxy makes. The length of a message stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// The broker does not receive `If-None-Match`.
    NoIfNoneMatch,
    /// The agent does not receive `ETag`.
    NoEtag,
    /// The agent receives another `ETag` each time.
    OtherEtags,
    /// The path of the policies does not exist.
    NoPolicies,
}

/// A proxy in front of a broker.
#[derive(Clone)]
struct Proxy {
    broker: SocketAddr,
    change: Change,
    is_on: Arc<AtomicBool>,
    polls: Arc<AtomicUsize>,
    responses: Arc<AtomicUsize>,
}

impl Proxy {
    /// Starts a proxy that ends with the set.
    async fn start(broker: SocketAddr, change: Change) -> (Self, SocketAddr, JoinSet<()>) {
        let (listener, address) = listener().await;
        let is_on = Arc::new(AtomicBool::new(true));
        let proxy = Self { broker, change, is_on, polls: Arc::default(), responses: Arc::default() };
        let mut running = JoinSet::new();
        let accepting = proxy.clone();
        running.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(accepting.clone().forward(stream));
            }
        });
        (proxy, address, running)
    }

    async fn forward(self, stream: TcpStream) {
        let (from_agent, to_agent) = stream.into_split();
        let (from_broker, to_broker) = TcpStream::connect(self.broker).await.unwrap().into_split();
        let requests = copy(from_agent, to_broker, |message| self.change_request(message));
        let responses = copy(from_broker, to_agent, |message| self.change_response(message));
        tokio::join!(requests, responses);
    }

    fn change_request(&self, message: &mut [u8]) {
        if find(message, b"/target-state").is_some() {
            self.polls.fetch_add(1, Ordering::SeqCst);
        }
        match self.change {
            Change::NoIfNoneMatch => replace(message, b"if-none-match:", b"x-none-match-:"),
            Change::NoPolicies if self.is_on.load(Ordering::SeqCst) => replace(message, b"/policies", b"/policiez"),
            Change::NoPolicies | Change::NoEtag | Change::OtherEtags => {}
        }
    }

    fn change_response(&self, message: &mut [u8]) {
        match self.change {
            Change::NoEtag => replace(message, b"\r\netag: ", b"\r\nxtag: "),
            Change::OtherEtags => {
                let count = self.responses.fetch_add(1, Ordering::SeqCst);
                replace(message, b"\r\netag: \"1.", format!("\r\netag: \"{}x", count % 10).as_bytes());
            }
            Change::NoIfNoneMatch | Change::NoPolicies => {}
        }
    }
}

/// Copies messages until the connection ends. Each message of these tests is small enough to be read at once.
async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, change: impl Fn(&mut [u8])) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        change(&mut buffer[..count]);
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

fn find(message: &[u8], part: &[u8]) -> Option<usize> {
    message.windows(part.len()).position(|window| window == part)
}

fn replace(message: &mut [u8], part: &[u8], by: &[u8]) {
    if let Some(start) = find(message, part) {
        message[start..start + part.len()].copy_from_slice(&by[..part.len()]);
    }
}

/// Returns the status of the declared object in the cluster.
pub async fn object_status(api: SocketAddr) -> u16 {
    let mut stream = TcpStream::connect(api).await.unwrap();
    let path = "/api/v1/namespaces/default/configmaps/a";
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    in_time(stream.read_to_string(&mut response)).await.unwrap();
    response.split(' ').nth(1).unwrap().parse().unwrap()
}

pub async fn wait_for_object(api: SocketAddr) {
    in_time(async {
        while object_status(api).await != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_proxy_that_hides_or_changes_the_etag_does_not_make_the_agent_poll_without_pauses() {
    for change in [Change::NoIfNoneMatch, Change::NoEtag, Change::OtherEtags] {
        let ((broker_listener, broker_address), (api_listener, api)) = (listener().await, listener().await);
        let (broker, _cluster) = (broker().await, cluster(api_listener));
        let _serving = serve(&broker, broker_listener, None);
        let (key, _) = declare(&client(broker_address, &admin().reveal())).await;
        let (proxy, address, _proxy) = Proxy::start(broker_address, change).await;
        let agent = agent_of(address, api, &key, INTERVAL);
        let mut running = JoinSet::new();
        running.spawn(async move { agent.run(std::future::pending()).await.unwrap() });
        wait_for_object(api).await;
        let before = proxy.polls.load(Ordering::SeqCst);
        tokio::time::sleep(COUNTED).await;
        let polls = proxy.polls.load(Ordering::SeqCst) - before;
        assert!((2..=POLLS_MAX).contains(&polls), "{change:?}: {polls} polls");
    }
}

#[tokio::test]
async fn a_proxy_that_does_not_know_the_path_of_the_policies_does_not_hide_them() {
    let ((broker_listener, broker_address), (api_listener, api)) = (listener().await, listener().await);
    let (broker, _cluster) = (broker().await, cluster(api_listener));
    let _serving = serve(&broker, broker_listener, None);
    let administrator = client(broker_address, &admin().reveal());
    let (key, stack) = declare(&administrator).await;
    administrator.annotate_stack(stack, "sindri.dev/suspend", "true").await.unwrap();
    let (proxy, address, _proxy) = Proxy::start(broker_address, Change::NoPolicies).await;
    let agent = agent_of(address, api, &key, INTERVAL);
    let mut running = JoinSet::new();
    running.spawn(async move { agent.run(std::future::pending()).await.unwrap() });
    let wait_for_polls = async |count: usize| {
        in_time(async {
            while proxy.polls.load(Ordering::SeqCst) < count {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    };
    wait_for_polls(4).await;
    assert_eq!(object_status(api).await, 404, "the stack is suspended, and nothing of it may be written");
    proxy.is_on.store(false, Ordering::SeqCst);
    administrator.remove_stack_annotation(stack, "sindri.dev/suspend").await.unwrap();
    wait_for_object(api).await;
}
