//! Notifications (LISTEN/NOTIFY) that another broker has committed a change.
//!
//! A notification has no content: the change is read from the tables, so a lost notification only costs time.

use std::future::poll_fn;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::session::CHANNEL;

/// Longest wait for a notification, and so the delay that a lost one can cause.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Pause after a failure to connect or to listen.
const RETRY_AFTER: Duration = Duration::from_secs(1);

type ServerConnection = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Connection that listens, opened at the first use and again after a failure.
pub(super) struct NotificationListener {
    config: Config,
    tls: MakeRustlsConnect,
    open: Mutex<Option<ListeningConnection>>,
}

/// A connection that listens. It ends when its client is dropped.
struct ListeningConnection {
    _client: Client,
    connection: ServerConnection,
}

impl NotificationListener {
    pub(super) fn new(config: Config, tls: MakeRustlsConnect) -> Self {
        Self { config, tls, open: Mutex::new(None) }
    }

    /// Completes after a notification, and after a bounded time in any case.
    pub(super) async fn await_notification(&self) {
        let mut open = self.open.lock().await;
        if open.is_none() {
            match timeout(WAIT_MAX, self.connect()).await {
                // A change may have been committed before the connection listened.
                Ok(Some(fresh)) => return *open = Some(fresh),
                Ok(None) | Err(_) => return sleep(RETRY_AFTER).await,
            }
        }
        let Some(listening) = open.as_mut() else { return };
        if let Ok(false) = timeout(WAIT_MAX, next_notification(&mut listening.connection)).await {
            *open = None;
        }
    }

    async fn connect(&self) -> Option<ListeningConnection> {
        let (client, mut connection) = self.config.connect(self.tls.clone()).await.ok()?;
        let listen = format!("LISTEN {CHANNEL}");
        let listened = {
            let mut listen = std::pin::pin!(client.batch_execute(&listen));
            loop {
                tokio::select! {
                    biased; // The end of the statement before other messages of the server.
                    done = &mut listen => break done.is_ok(),
                    message = poll_fn(|context| connection.poll_message(context)) => {
                        if !matches!(message, Some(Ok(_))) { break false }
                    }
                }
            }
        };
        listened.then_some(ListeningConnection { _client: client, connection })
    }
}

/// Waits for a notification; returns false if the connection has ended.
async fn next_notification(connection: &mut ServerConnection) -> bool {
    loop {
        match poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notification(_))) => return true,
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return false,
        }
    }
}
