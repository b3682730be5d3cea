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
    client: Client,
    connection: ServerConnection,
}

impl ListeningConnection {
    /// Executes a statement; returns false if it failed or the connection has ended. Notifications that arrive meanwhile
    /// are dropped.
    async fn execute(&mut self, sql: &str) -> bool {
        let mut executed = std::pin::pin!(self.client.batch_execute(sql));
        loop {
            tokio::select! {
                biased; // The end of the statement before other messages of the server.
                done = &mut executed => return done.is_ok(),
                message = poll_fn(|context| self.connection.poll_message(context)) => {
                    if !matches!(message, Some(Ok(_))) { return false }
                }
            }
        }
    }
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
        let is_alive = match timeout(WAIT_MAX, next_notification(&mut listening.connection)).await {
            Ok(is_alive) => is_alive,
            // A connection that swallows its requests looks like one without notifications.
            Err(_) => timeout(WAIT_MAX, listening.execute("")).await.unwrap_or(false),
        };
        if !is_alive {
            *open = None;
        }
    }

    async fn connect(&self) -> Option<ListeningConnection> {
        let (client, connection) = self.config.connect(self.tls.clone()).await.ok()?;
        let mut listening = ListeningConnection { client, connection };
        listening.execute(&format!("LISTEN {CHANNEL}")).await.then_some(listening)
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
