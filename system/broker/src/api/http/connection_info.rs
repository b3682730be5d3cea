//! Extensions of a request with data about its connection.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tokio_util::sync::CancellationToken;

use crate::broker::Broker;

/// Address of the client that sent a request; `None` if the listener has no addresses, as in the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub Option<IpAddr>);

/// Replaces the address of a trusted proxy by that of its client.
pub(crate) async fn find_client(State(broker): State<Broker>, mut request: Request, next: Next) -> Response {
    if let Some(PeerAddress(Some(peer))) = request.extensions().get().copied() {
        let client = broker.trusted_proxies.client_address(peer, request.headers());
        request.extensions_mut().insert(PeerAddress(Some(client)));
    }
    next.run(request).await
}

/// Closes the connection of a request. Without a connection, as in the simulation, it does nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct CloseConnection(pub CancellationToken);

/// Flag of a connection that is set when a key was accepted on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyAcceptedFlag(Arc<AtomicBool>);

impl KeyAcceptedFlag {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Flag that is set when the body of a request did not arrive in time. Only requests with a body have one.
#[derive(Clone, Debug, Default)]
pub(crate) struct BodyTimeoutFlag(Arc<AtomicBool>);

impl BodyTimeoutFlag {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
