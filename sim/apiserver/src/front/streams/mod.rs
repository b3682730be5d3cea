//! Streams of pods on upgraded connections: the process of an exec or an attach, and connections to ports.
//!
//! The machine has decided what answers, and in which protocol; here are the WebSocket, SPDY, and the time. Every stream ends
//! with its connection, its container or pod, or after [`IDLE_MAX`] without input.

mod forward;
mod handshake;
mod process_streams;
mod run_process;
mod websocket;
mod wire;

use std::pin::pin;
use std::time::Duration;

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;

pub(super) use self::handshake::upgrade_response;
use super::shared::SharedServer;
use crate::http::upgrade::{Place, Session, Upgrade};

/// Longest time without input, as in the kubelet.
const IDLE_MAX: Duration = Duration::from_secs(4 * 3600);

/// Connection after its upgrade.
type Io = TokioIo<Upgraded>;

/// The connection has ended, or must end because its client violates the protocol.
#[derive(Debug)]
struct Gone;

/// Serves the streams of an upgraded connection to their end.
pub(super) async fn serve_streams(server: &SharedServer, upgrade: Upgrade, connection: Upgraded) {
    let io = TokioIo::new(connection);
    let Upgrade { protocol, place, session, .. } = upgrade;
    // The client knows why its connection ended; the server has nothing to do.
    let _gone = match session {
        Session::Ports { ports } => forward::forward_ports(server, &place, protocol, &ports, io).await,
        Session::Process { program, streams, is_attach } => {
            run_process::run(server, &place, (program, is_attach), (protocol, streams), io).await
        }
        Session::Failed { message, streams } => run_process::fail(&message, (protocol, streams), io).await,
    };
}

/// Resolves when the container or the pod of a stream no longer runs.
async fn ended(server: &SharedServer, place: &Place) {
    loop {
        let mut changed = pin!(server.changed());
        changed.as_mut().enable();
        if !server.with(|machine| machine.is_running(place)) {
            return;
        }
        changed.await;
    }
}

/// Waits for a future at most [`IDLE_MAX`].
async fn in_time<T>(future: impl Future<Output = Result<T, Gone>>) -> Result<T, Gone> {
    tokio::time::timeout(IDLE_MAX, future).await.unwrap_or(Err(Gone))
}
