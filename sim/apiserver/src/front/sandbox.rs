//! An API server inside a test: a `kube::Client` without sockets, on the time of the test's own runtime.
//!
//! Time is tokio's. In a runtime whose time is paused (`#[tokio::test(start_paused = true)]`) a wait of an hour takes no time,
//! for the controller under test and for those of the control plane alike, and the same seed gives the same names and
//! identities each time.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower_service::Service;

use crate::front::admin::{Admin, FaultRule};
use crate::front::gate::Clock;
use crate::front::serve::{Body, Cut, Front, Port, respond, tick};
use crate::front::shared::SharedServer;
use crate::server::ApiServer;

/// Start time of every sandbox: 2030-01-01T00:00:00Z.
const BEGIN: i64 = 1_893_456_000;

/// A cluster for one test. Its control plane runs until it is dropped. Streams of pods, such as `exec`, need a connection, and so a
/// port.
///
/// ```
/// use serde_json::{Value, json};
/// use sindri_apiserver::{FaultRule, NamedFault, Sandbox};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = Sandbox::new(7);
/// let create = || {
///     let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "greeting"}});
///     let request = http::Request::post("/api/v1/namespaces/default/configmaps");
///     request.header("content-type", "application/json").body(object.to_string().into_bytes())
/// };
/// // The request is executed, and its response is lost: the controller under test has to find out.
/// cluster.fail(FaultRule { times: Some(1), fault: Some(NamedFault::LoseResponse), ..FaultRule::default() })?;
/// assert!(cluster.client().request::<Value>(create()?).await.is_err());
/// assert!(cluster.machine(|server| server.objects().any(|(key, _)| key.name == "greeting")));
/// # Ok(())
/// # }
/// ```
pub struct Sandbox {
    front: Front,
    admin: Admin,
    _ticking: JoinSet<Infallible>,
}

impl Sandbox {
    /// Creates an API server with the controllers of a control plane. Must be called inside a runtime.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with(|begin| ApiServer::new(seed, begin))
    }

    /// Creates one with a custom machine: with workloads and nodes, other delays, or an administrator.
    #[must_use]
    pub fn with(make: impl FnOnce(Timestamp) -> ApiServer) -> Self {
        let (begin, began) = (Timestamp::from_second(BEGIN).unwrap_or(Timestamp::UNIX_EPOCH), Instant::now());
        let clock: Clock = Arc::new(move || {
            let elapsed = SignedDuration::try_from(began.elapsed()).unwrap_or(SignedDuration::MAX);
            begin.checked_add(elapsed).unwrap_or(Timestamp::MAX)
        });
        let admin = Admin::new(clock);
        let (server, clock) = (SharedServer::new(make(begin)), admin.clock());
        let front = Front { server, clock, gate: Arc::new(admin.clone()), port: Port::default() };
        let mut ticking = JoinSet::new();
        let ticks = front.clone();
        ticking.spawn(async move { tick(&ticks).await });
        Self { front, admin, _ticking: ticking }
    }

    /// Returns a client, whose default namespace is `default`.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(Requests(self.front.clone()), "default")
    }

    /// Adds a fault rule.
    ///
    /// # Errors
    /// When the rule is invalid, or there are too many.
    pub fn fail(&self, rule: FaultRule) -> Result<(), String> {
        self.admin.fail(rule)
    }

    /// Removes every fault rule.
    pub fn heal(&self) {
        self.admin.heal();
    }

    /// Calls a function with the machine, for example to read its objects and its journal or to expire its watches.
    pub fn machine<R>(&self, using: impl FnOnce(&mut ApiServer) -> R) -> R {
        self.front.server.with(using)
    }
}

/// Service that passes the requests of a client to the machine.
struct Requests(Front);

impl Service<http::Request<kube::client::Body>> for Requests {
    type Response = http::Response<Body>;
    type Error = Cut;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Cut>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Cut>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<kube::client::Body>) -> Self::Future {
        Box::pin(respond(self.0.clone(), None, request, None))
    }
}
