//! The connection that keeps a container alive.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// What the other side says when it holds the leash.
const GREETING: &[u8] = b"held\n";
/// How long one try may take, and how many there are: the container has only begun to start.
const TRY_MAX: Duration = Duration::from_secs(2);
const TRIES_MAX: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// Connects, and waits until the other side says that it holds on. What is in between, a proxy of the engine, may
/// accept a connection before anyone listens behind it.
pub(super) async fn hold(port: u16) -> Option<TcpStream> {
    for _ in 0..TRIES_MAX {
        if let Ok(Some(connection)) = timeout(TRY_MAX, greeted(port)).await {
            return Some(connection);
        }
        sleep(PAUSE).await;
    }
    None
}

async fn greeted(port: u16) -> Option<TcpStream> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let mut greeting = [0; GREETING.len()];
    connection.read_exact(&mut greeting).await.ok()?;
    (greeting == GREETING).then_some(connection)
}

/// Waits until the other side lets go.
pub(super) async fn cut(connection: &mut TcpStream) {
    let mut byte = [0];
    while matches!(connection.read(&mut byte).await, Ok(length) if length > 0) {}
}
