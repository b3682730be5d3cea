//! Hears that another broker has committed something. What it was is read from the tables: a missed word is no loss.

use std::future::poll_fn;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::session::CHANNEL;

/// Nobody waits longer than this for news: a word that got lost costs no more.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// After a failure to listen.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

type Wire = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

pub(super) struct Listener {
    config: Config,
    tls: MakeRustlsConnect,
    open: Mutex<Option<Open>>,
}

/// The connection ends when its client is dropped.
struct Open {
    _client: Client,
    wire: Wire,
}

impl Listener {
    pub(super) fn new(config: Config, tls: MakeRustlsConnect) -> Self {
        Self { config, tls, open: Mutex::new(None) }
    }

    /// Ends when somebody has committed something, or after a while.
    pub(super) async fn heard(&self) {
        let mut open = self.open.lock().await;
        if open.is_none() {
            match timeout(LOOK_EVERY, self.connect()).await {
                // What was committed before we listened is looked for at once.
                Ok(Some(fresh)) => return *open = Some(fresh),
                Ok(None) | Err(_) => return sleep(AGAIN_AFTER).await,
            }
        }
        let Some(listening) = open.as_mut() else { return };
        if let Ok(false) = timeout(LOOK_EVERY, next(&mut listening.wire)).await {
            *open = None;
        }
    }

    async fn connect(&self) -> Option<Open> {
        let (client, mut wire) = self.config.connect(self.tls.clone()).await.ok()?;
        let listen = format!("LISTEN {CHANNEL}");
        let listened = {
            let mut listen = std::pin::pin!(client.batch_execute(&listen));
            loop {
                tokio::select! {
                    biased; // The statement's end counts before what else the connection says.
                    done = &mut listen => break done.is_ok(),
                    said = poll_fn(|context| wire.poll_message(context)) => if !matches!(said, Some(Ok(_))) { break false },
                }
            }
        };
        listened.then_some(Open { _client: client, wire })
    }
}

/// Whether a notification came; if not, the connection is over.
async fn next(wire: &mut Wire) -> bool {
    loop {
        match poll_fn(|context| wire.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notification(_))) => return true,
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return false,
        }
    }
}
