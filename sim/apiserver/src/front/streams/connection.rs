//! An upgraded connection, and the reasons for its end.

use std::pin::pin;
use std::time::Duration;

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;

use crate::front::shared::SharedServer;
use crate::http::upgrade::Place;

/// Longest time without input, as in the kubelet.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(4 * 3600);
/// Longest time that the client has to read the end of a connection.
pub(super) const LINGER_MAX: Duration = Duration::from_secs(2);

/// Connection after its upgrade.
pub(super) type Io = TokioIo<Upgraded>;

/// The connection has ended, or must end because its client violates the protocol.
#[derive(Debug)]
pub(super) struct Gone;

/// Resolves when the container or the pod of a stream no longer runs.
pub(super) async fn ended(server: &SharedServer, place: &Place) {
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
pub(super) async fn in_time<T>(future: impl Future<Output = Result<T, Gone>>) -> Result<T, Gone> {
    tokio::time::timeout(IDLE_MAX, future).await.unwrap_or(Err(Gone))
}
